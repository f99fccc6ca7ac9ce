//! Stores that cannot be opened, and their errors.

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
fn an_empty_format_file_counts_as_torn() {
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
fn a_store_whose_creation_was_interrupted_is_created_again() {
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
        // The set of files differs between two creations; most files exist in each.
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
fn a_complete_store_is_kept_if_its_creation_marker_remains() {
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
fn an_interrupted_creation_is_restarted() {
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
fn a_store_without_its_format_file_is_damaged_and_not_new() {
    let dir = store();
    fs::remove_file(dir.path().join("format")).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, FrontierError::Damaged { .. }), "{error:?}");
}

/// A store with 2,000 URIs in its tables and one more in its journal.
fn store_with_tables() -> tempfile::TempDir {
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

/// Non-empty files of a store whose path within it meets the condition.
fn files(dir: &std::path::Path, matches_path: impl Fn(&str) -> bool) -> Vec<std::path::PathBuf> {
    let all = content(dir).into_iter();
    let all = all.filter(|(path, bytes)| {
        let path = path.strip_prefix(dir).unwrap().to_str().unwrap();
        matches_path(path) && !bytes.is_empty()
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

/// Breaks each of these files in turn and opens the store. The error must be one sentence that names the store and the remedy, and
/// no file may change.
#[track_caller]
fn check_torn(matches_path: impl Fn(&std::path::Path, &str) -> bool, files_min: usize) {
    let dir = store_with_tables();
    let matched = files(dir.path(), |path| matches_path(dir.path(), path));
    assert!(matched.len() >= files_min, "{matched:?}");
    for path in matched {
        let intact = fs::read(&path).unwrap();
        for (number, break_it) in BREAKS.iter().enumerate() {
            let mut bytes = intact.clone();
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
        fs::write(&path, intact).unwrap();
    }
    open(&dir).map(drop).unwrap();
}

/// Returns `true` if a file is the list that its keyspace's `current` names. Other lists are outdated.
fn is_current_list(dir: &std::path::Path, path: &str) -> bool {
    let path = dir.join(path);
    let current = fs::read(path.with_file_name("current")).unwrap_or_default();
    current.first_chunk().is_some_and(|number| {
        let number = u64::from_le_bytes(*number);
        path.file_name().unwrap().to_str().unwrap() == format!("v{number}")
    })
}

#[test]
fn a_torn_list_of_files_is_reported_and_nothing_is_written() {
    check_torn(|_, path| path.ends_with("/current"), 14);
    check_torn(is_current_list, 14);
}

#[test]
fn a_torn_version_of_the_database_is_reported_and_nothing_is_written() {
    let dir = store_with_tables();
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
fn a_lost_file_is_reported_and_nothing_is_written() {
    let dir = store_with_tables();
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
fn a_lost_keyspace_is_damage_and_not_an_empty_keyspace() {
    let dir = store_with_tables();
    fs::remove_dir_all(dir.path().join("store/keyspaces/1")).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, FrontierError::Torn { .. }), "{error:?}");
}

#[test]
fn a_check_finds_a_torn_table() {
    let dir = store_with_tables();
    let tables = files(dir.path(), |path| {
        path.contains("/tables/") && !path.contains("keyspaces/0/")
    });
    assert!(tables.len() >= 5, "{tables:?}");
    for path in tables {
        let intact = fs::read(&path).unwrap();
        for at in [10, intact.len() / 3, intact.len() / 2] {
            let mut bytes = intact.clone();
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
        fs::write(&path, intact).unwrap();
    }
    Frontier::check(dir.path(), &config(), &mut |finding| panic!("{finding}")).unwrap();
}

#[test]
fn reading_a_torn_table_is_an_error() {
    let dir = store_with_tables();
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
fn a_torn_end_of_the_journal_does_not_prevent_opening() {
    let dir = store_with_tables();
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
fn a_frontier_can_be_moved_to_another_thread() {
    let dir = store();
    let frontier = open(&dir).unwrap();
    let statistics = std::thread::spawn(move || frontier.statistics())
        .join()
        .unwrap();
    assert_eq!(statistics.discovered, 1);
}
