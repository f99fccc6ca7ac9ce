//! Stores that do not open, and why.

use std::fs;

use opilio_frontier::{FORMAT_VERSION, Frontier, FrontierError};

use crate::site::{at, candidate, config};

/// A store with a URI in it, closed.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut frontier = Frontier::open(dir.path(), config()).unwrap();
    frontier
        .schedule(vec![candidate("http://a.org/1", "")], at(0))
        .unwrap();
    dir
}

fn open(dir: &tempfile::TempDir) -> Result<Frontier, FrontierError> {
    Frontier::open(dir.path(), config())
}

/// Every file of a store but its lock, with its content.
fn content(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_store_of_another_version_is_refused_and_not_touched() {
    let dir = store();
    for written in ["3", "5", "yesterday", "1.5"] {
        fs::write(dir.path().join("format"), written).unwrap();
        let before = content(dir.path());
        let error = open(&dir).map(drop).unwrap_err();
        assert!(
            matches!(&error, FrontierError::OtherVersion { written: found, .. } if found == written),
            "{error:?}"
        );
        let text = error.to_string();
        for part in [
            &format!(
                "was written in format {written}, this version reads format {FORMAT_VERSION}; "
            ),
            "use the version of Opilio that wrote it, or export its URIs",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let error = Frontier::check(dir.path(), &config(), &mut |_| {}).unwrap_err();
        assert!(
            matches!(error, FrontierError::OtherVersion { .. }),
            "{error:?}"
        );
        assert!(content(dir.path()) == before, "a file has changed");
    }
    fs::write(dir.path().join("format"), format!("{FORMAT_VERSION}\n")).unwrap();
    open(&dir).map(drop).unwrap();
}

#[test]
fn an_empty_format_file_is_a_torn_one() {
    let dir = store();
    fs::write(dir.path().join("format"), "\n").unwrap();
    let before = content(dir.path());
    let error = open(&dir).map(drop).unwrap_err();
    assert!(
        matches!(&error, FrontierError::Torn { file, .. } if file.to_str() == Some("format")),
        "{error:?}"
    );
    assert!(content(dir.path()) == before, "a file has changed");
}

#[test]
fn a_store_whose_making_was_cut_short_is_made_again_whatever_is_in_it() {
    let made = |dir: &tempfile::TempDir| {
        drop(open(dir).unwrap());
        fs::remove_file(dir.path().join("format")).unwrap();
        fs::write(dir.path().join("making"), "").unwrap();
    };
    let dir = tempfile::tempdir().unwrap();
    made(&dir);
    let files = content(&dir.path().join("store"));
    assert!(files.len() > 15, "{files:?}");
    for (path, bytes) in files.into_iter().step_by(8) {
        // Which files there are differs from one making to the next; most are there each time.
        if path.exists() {
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
        let torn = path.strip_prefix(dir.path()).unwrap().to_owned();
        let opened = open(&dir).unwrap_or_else(|problem| panic!("{}: {problem:?}", torn.display()));
        drop(opened);
        assert!(!dir.path().join("making").exists());
        made(&dir);
    }
}

#[test]
fn a_store_that_is_made_is_kept_though_its_marker_was_not_removed() {
    let dir = store();
    fs::write(dir.path().join("making"), "").unwrap();
    let frontier = open(&dir).unwrap();
    assert_eq!(frontier.statistics().discovered, 1);
    assert!(!dir.path().join("making").exists());
}

#[test]
fn a_store_in_use_is_refused() {
    let dir = store();
    let holder = open(&dir).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, FrontierError::InUse { .. }), "{error:?}");
    drop(holder);
    open(&dir).map(drop).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Frontier::open(&file.join("store"), config())
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, FrontierError::Folder { .. }), "{error:?}");
}

#[test]
fn a_creation_cut_short_is_begun_anew() {
    for files in [
        &["lock"][..],
        &["lock", "store/lock"],
        &["lock", "store/lock", "store/0.jnl", "store/keyspaces/0/x"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut frontier = open(&dir).unwrap_or_else(|error| panic!("{files:?}: {error:?}"));
        frontier
            .schedule(vec![candidate("http://a.org/1", "")], at(0))
            .unwrap();
    }
}

#[test]
fn a_store_that_lost_its_format_file_is_not_taken_for_a_new_one() {
    let dir = store();
    fs::remove_file(dir.path().join("format")).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, FrontierError::Damaged { .. }), "{error:?}");
}

/// A store with everything written out in order, and more in its journal.
fn settled() -> tempfile::TempDir {
    let (first, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut frontier = open(&first).unwrap();
    let many = (0..2_000)
        .map(|number| candidate(&format!("http://a.org/{number}"), ""))
        .collect();
    frontier.schedule(many, at(0)).unwrap();
    fs::remove_dir(dir.path()).unwrap();
    frontier.checkpoint().write(dir.path()).unwrap();
    open(&dir)
        .unwrap()
        .schedule(vec![candidate("http://a.org/last", "")], at(1))
        .unwrap();
    dir
}

/// Files of a store whose path within it ends so.
fn files(dir: &std::path::Path, is_meant: impl Fn(&str) -> bool) -> Vec<std::path::PathBuf> {
    let all = content(dir).into_iter();
    let all = all.filter(|(path, bytes)| {
        let path = path.strip_prefix(dir).unwrap().to_str().unwrap();
        is_meant(path) && !bytes.is_empty()
    });
    all.map(|(path, _)| path).collect()
}

/// Ways of breaking a file.
const BREAKS: [fn(&mut Vec<u8>); 4] = [
    Vec::clear,
    |bytes| bytes.truncate(bytes.len() / 2),
    |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
    },
    |bytes| *bytes.last_mut().unwrap() ^= 1,
];

/// Opens a store with a broken file, which must be one sentence that names the store and what to do, and change nothing.
#[track_caller]
fn check_torn(is_meant: impl Fn(&std::path::Path, &str) -> bool, files_min: usize) {
    let dir = settled();
    let meant = files(dir.path(), |path| is_meant(dir.path(), path));
    assert!(meant.len() >= files_min, "{meant:?}");
    for path in meant {
        let sound = fs::read(&path).unwrap();
        for (number, break_it) in BREAKS.iter().enumerate() {
            let mut bytes = sound.clone();
            break_it(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let before = content(dir.path());
            let error = open(&dir).map(drop).unwrap_err();
            let sentence = error.to_string();
            assert!(
                sentence.contains(dir.path().to_str().unwrap())
                    && sentence.ends_with("restore a checkpoint"),
                "{} broken as {number}: {sentence}",
                path.display()
            );
            assert!(
                content(dir.path()) == before,
                "{} broken as {number}: a file has changed",
                path.display()
            );
        }
        fs::write(&path, sound).unwrap();
    }
    open(&dir).map(drop).unwrap();
}

/// Returns `true` if a file is one that a keyspace's `current` names. Others are left by writers that have gone on.
fn is_current_list(dir: &std::path::Path, path: &str) -> bool {
    let path = dir.join(path);
    let current = fs::read(path.with_file_name("current")).unwrap_or_default();
    current.first_chunk().is_some_and(|number| {
        let number = u64::from_le_bytes(*number);
        path.file_name().unwrap().to_str().unwrap() == format!("v{number}")
    })
}

#[test]
fn a_torn_list_of_files_is_one_sentence_and_no_write() {
    check_torn(|_, path| path.ends_with("/current"), 14);
    check_torn(is_current_list, 14);
}

#[test]
fn a_torn_version_of_the_database_is_one_sentence_and_no_write() {
    let dir = settled();
    for bytes in [&b""[..], b"FJL\x09", b"nonsense"] {
        fs::write(dir.path().join("store/version"), bytes).unwrap();
        let before = content(dir.path());
        let error = open(&dir).map(drop).unwrap_err();
        assert!(
            matches!(error, FrontierError::Unopenable { .. }),
            "{bytes:?}: {error:?}"
        );
        assert!(content(dir.path()) == before, "a file has changed");
    }
}

#[test]
fn a_lost_file_is_one_sentence_and_no_write() {
    let dir = settled();
    let lists = |path: &str| {
        path.ends_with("/current") || path == "store/version" || is_current_list(dir.path(), path)
    };
    for path in files(dir.path(), lists) {
        let moved = dir.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        let before = content(dir.path());
        let error = open(&dir).map(drop).unwrap_err();
        assert!(matches!(error, FrontierError::Torn { .. }), "{error:?}");
        assert!(
            content(dir.path()) == before,
            "{}: a file has changed",
            path.display()
        );
        fs::rename(&moved, &path).unwrap();
    }
    open(&dir).map(drop).unwrap();
}

#[test]
fn a_lost_keyspace_is_not_taken_for_an_empty_one() {
    let dir = settled();
    fs::remove_dir_all(dir.path().join("store/keyspaces/1")).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, FrontierError::Torn { .. }), "{error:?}");
}

#[test]
fn what_is_torn_within_a_table_is_found_by_a_check() {
    let dir = settled();
    let tables = files(dir.path(), |path| {
        path.contains("/tables/") && !path.contains("keyspaces/0/")
    });
    assert!(tables.len() >= 5, "{tables:?}");
    for path in tables {
        let sound = fs::read(&path).unwrap();
        for at in [10, sound.len() / 3, sound.len() / 2] {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x40;
            fs::write(&path, bytes).unwrap();
            let checked = Frontier::check(dir.path(), &config(), &mut |_| {});
            let error = checked.map(|_| ()).unwrap_err();
            assert!(
                matches!(&error, FrontierError::Torn { file, .. } if dir.path().join(file) == path),
                "{} at {at}: {error:?}",
                path.display()
            );
        }
        fs::write(&path, sound).unwrap();
    }
    Frontier::check(dir.path(), &config(), &mut |finding| panic!("{finding}")).unwrap();
}

#[test]
fn what_is_torn_within_a_table_is_an_error_and_no_answer() {
    let dir = settled();
    let table = files(dir.path(), |path| path.contains("/tables/"))
        .into_iter()
        .max_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[100] ^= 0x40;
    fs::write(&table, bytes).unwrap();
    let error = open(&dir)
        .and_then(|frontier| {
            frontier
                .records("")
                .collect::<Result<Vec<_>, _>>()
                .map(drop)
        })
        .unwrap_err();
    assert!(matches!(error, FrontierError::Unreadable(_)), "{error:?}");
    assert!(
        error.to_string().ends_with("restore a checkpoint"),
        "{error}"
    );
}

#[test]
fn a_torn_tail_of_the_journal_is_what_a_sudden_death_leaves() {
    let dir = settled();
    let journal = files(dir.path(), |path| path.ends_with(".jnl"));
    let [journal] = &journal[..] else {
        panic!("{journal:?}");
    };
    let bytes = fs::read(journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    fs::write(journal, &bytes[..end - 3]).unwrap();
    let frontier = open(&dir).unwrap();
    assert!(frontier.records("").count() >= 2_000);
    drop(frontier);
    let summary = Frontier::check(dir.path(), &config(), &mut |finding| panic!("{finding}"));
    assert!(summary.unwrap().uris >= 2_000);
}

#[test]
fn a_frontier_can_be_given_to_a_thread_of_its_own() {
    let dir = store();
    let frontier = open(&dir).unwrap();
    let statistics = std::thread::spawn(move || frontier.statistics())
        .join()
        .unwrap();
    assert_eq!(statistics.discovered, 1);
}
