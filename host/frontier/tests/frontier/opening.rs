//! Stores that do not open, and why.

use std::fs;

use opilio_frontier::{Error, FORMAT_VERSION, Frontier};

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

fn open(dir: &tempfile::TempDir) -> Result<Frontier, Error> {
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
    for written in ["2", "0", "", "yesterday"] {
        fs::write(dir.path().join("format"), written).unwrap();
        let before = content(dir.path());
        let error = open(&dir).map(drop).unwrap_err();
        assert!(
            matches!(&error, Error::OtherVersion { written: found, .. } if found == written),
            "{error:?}"
        );
        assert!(
            error.to_string().ends_with(&format!(
                "was written in format {written}, this version reads format {FORMAT_VERSION}"
            )),
            "{error}"
        );
        assert!(content(dir.path()) == before, "a file has changed");
    }
    fs::write(dir.path().join("format"), format!("{FORMAT_VERSION}\n")).unwrap();
    open(&dir).map(drop).unwrap();
}

#[test]
fn a_store_in_use_is_refused() {
    let dir = store();
    let holder = open(&dir).unwrap();
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
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
    assert!(matches!(error, Error::Folder { .. }), "{error:?}");
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
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
}

#[test]
fn a_damaged_database_is_one_error_and_no_panic() {
    for (file, content) in [
        ("store/version", &b"FJL\x09"[..]),
        ("store/version", b"nonsense"),
        ("store/keyspaces/0/current", b""),
    ] {
        let dir = store();
        assert!(dir.path().join(file).exists(), "{file}");
        fs::write(dir.path().join(file), content).unwrap();
        let error = open(&dir).map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Unopenable { .. }),
            "{file}: {error:?}"
        );
    }
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
