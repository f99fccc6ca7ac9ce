#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const LENA: ChangeNote<'_> = ChangeNote {
    by: "lena",
    reason: Some(" slower "),
};

fn numbers(store: &ProfileStore, name: &str) -> Vec<(u64, ProfileChange)> {
    let versions = store.versions(name).unwrap();
    versions.iter().map(|it| (it.number, it.change)).collect()
}

#[test]
fn every_change_is_a_version_and_no_number_is_used_twice() {
    use ProfileChange::{Copy, Delete, File, Save};
    let home = tempfile::tempdir().unwrap();
    let store = ProfileStore::new(home.path().join("profiles"));
    assert!(store.names().is_empty());
    let one = store.save("a", "workers = 1\n", ExpectedProfile::Missing, LENA);
    let one = one.unwrap();
    let two = store.save("a", "workers = 2\n", ExpectedProfile::Tag(&one.tag()), LENA);
    let two = two.unwrap();
    let same = store
        .save("a", "workers = 2\n", ExpectedProfile::Any, LENA)
        .unwrap();
    assert_eq!((one.version, two.version, &same), (1, 2, &two));
    // An editor of the administrator.
    fs::write(&two.file, "workers = 3\n").unwrap();
    assert_eq!(store.get("a").unwrap().version, 3);
    assert_eq!(numbers(&store, "a"), [(1, Save), (2, Save), (3, File)]);
    store
        .copy("b", "workers = 3\n", "a@3".to_owned(), LENA)
        .unwrap();
    assert_eq!(numbers(&store, "b"), [(1, Copy)]);
    store.delete("a", ExpectedProfile::Any, LENA).unwrap();
    assert_eq!(store.names(), ["b"]);
    assert!(matches!(
        store.get("a"),
        Err(ProfileStoreError::Unknown { .. })
    ));
    store
        .save("a", "workers = 5\n", ExpectedProfile::Missing, LENA)
        .unwrap();
    let all = [(1, Save), (2, Save), (3, File), (4, Delete), (5, Save)];
    assert_eq!(numbers(&store, "a"), all);
    for (version, text) in [
        (1, "workers = 1\n"),
        (3, "workers = 3\n"),
        (5, "workers = 5\n"),
    ] {
        assert_eq!(store.text("a", version).unwrap(), text);
    }
    for missing in [0, 4, 6] {
        let text = store.text("a", missing);
        assert!(
            matches!(text, Err(ProfileStoreError::Version { .. })),
            "{missing}: {text:?}"
        );
    }
    let first = &store.versions("a").unwrap()[0];
    assert_eq!(first.by.as_deref(), Some("lena"));
    assert_eq!(first.reason.as_deref(), Some("slower"));
}

#[test]
fn a_version_that_was_not_read_is_not_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let store = ProfileStore::new(home.path().to_owned());
    let seen = store
        .save("a", "workers = 1\n", ExpectedProfile::Missing, LENA)
        .unwrap();
    store
        .save(
            "a",
            "workers = 2\n",
            ExpectedProfile::Tag(&seen.tag()),
            LENA,
        )
        .unwrap();
    let late = store.save(
        "a",
        "workers = 9\n",
        ExpectedProfile::Tag(&seen.tag()),
        LENA,
    );
    let message = late.unwrap_err().to_string();
    assert!(message.contains("version 2, by lena"), "{message}");
    assert!(
        store
            .delete("a", ExpectedProfile::Tag(&seen.tag()), LENA)
            .is_err()
    );
    let taken = store.save("a", "workers = 9\n", ExpectedProfile::Missing, LENA);
    assert!(
        matches!(taken, Err(ProfileStoreError::Taken(_))),
        "{taken:?}"
    );
    let gone = store.save("b", "", ExpectedProfile::Tag("1-0"), LENA);
    assert!(
        matches!(gone, Err(ProfileStoreError::Unknown { .. })),
        "{gone:?}"
    );
    assert_eq!(store.get("a").unwrap().text, "workers = 2\n");
}

#[test]
fn a_text_without_a_recorded_version_counts_as_changed_by_other_means() {
    let home = tempfile::tempdir().unwrap();
    let store = ProfileStore::new(home.path().to_owned());
    store
        .save("a", "workers = 1\n", ExpectedProfile::Missing, LENA)
        .unwrap();
    // The state after a crash between the writes of the file and of the list, in the middle of a line.
    fs::write(home.path().join("a.toml"), "workers = 2\n").unwrap();
    let list = home.path().join(".versions/a/versions.jsonl");
    let torn = fs::read_to_string(&list).unwrap() + "{\"number\":2,";
    fs::write(&list, torn).unwrap();
    store
        .save("a", "workers = 3\n", ExpectedProfile::Any, LENA)
        .unwrap();
    use ProfileChange::{File, Save};
    assert_eq!(numbers(&store, "a"), [(1, Save), (2, File), (3, Save)]);
}

#[test]
fn names_with_paths_and_names_of_shipped_profiles_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = ProfileStore::new(home.path().to_owned());
    for name in ["", "..", "a/b", ".versions", "ä", "a b"] {
        let saved = store.save(name, "", ExpectedProfile::Any, LENA);
        assert!(
            matches!(saved, Err(ProfileStoreError::Name(_))),
            "{name}: {saved:?}"
        );
        assert!(store.versions(name).is_err(), "{name}");
    }
    let saved = store.save("default", "", ExpectedProfile::Any, LENA);
    assert!(
        matches!(saved, Err(ProfileStoreError::Shipped(_))),
        "{saved:?}"
    );
}

#[test]
fn a_difference_has_the_lines_of_both() {
    let diff = profile_difference(("a@1", "x = 1\ny = 2\n"), ("a@2", "x = 1\ny = 3\n"));
    assert_eq!(
        diff,
        "--- a@1\n+++ a@2\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    );
    assert_eq!(profile_difference(("a", "x"), ("b", "x")), "");
}
