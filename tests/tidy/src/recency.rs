//! The age of lines, from git: untracked files are newest, then uncommitted lines, then lines of recent commits. It is used only
//! after a check has failed. Without git the order does not change.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use crate::ratchet::Offender;
use crate::repository::root;

/// Number of commits that are examined.
const COMMITS: &str = "-n50";

/// Files that are examined.
const FILES: [&str; 6] = ["*.html", "*.js", "*.md", "*.mjs", "*.py", "*.rs"];

/// Sorts offenders by age, the newest first.
pub(crate) fn newest_first(mut offenders: Vec<Offender>) -> Vec<Offender> {
    let untracked = git(&["ls-files", "--others", "--exclude-standard"]);
    let untracked: HashSet<&str> = untracked.lines().collect();
    let uncommitted = git_files(&["diff", "-U0", "HEAD"]);
    let committed = git_files(&["log", "-p", "-U0", "--format=", COMMITS]);
    let added = added_lines(&format!("{uncommitted}\n{committed}"));
    offenders.sort_by_key(|it| {
        if untracked.contains(it.path.as_str()) {
            return 0;
        }
        let line = (it.path.clone(), it.text.clone());
        added.get(&line).map_or(usize::MAX, |rank| rank + 1)
    });
    offenders
}

/// The lines that a diff adds, each with its rank: 0 is the newest.
fn added_lines(diff: &str) -> HashMap<(String, String), usize> {
    let mut added = HashMap::new();
    let mut path = String::new();
    for (rank, line) in diff.lines().enumerate() {
        if let Some(file) = line.strip_prefix("+++ b/") {
            path = file.to_owned();
        } else if let Some(text) = line.strip_prefix('+') {
            let key = (path.clone(), text.trim().to_owned());
            added.entry(key).or_insert(rank);
        }
    }
    added
}

/// The output of git for [`FILES`].
fn git_files(arguments: &[&str]) -> String {
    let mut arguments = arguments.to_vec();
    arguments.push("--");
    arguments.extend(FILES);
    git(&arguments)
}

fn git(arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(root())
        .args(arguments)
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[test]
fn the_first_added_line_of_a_diff_is_the_newest() {
    let added = added_lines("+++ b/a.rs\n@@ -1 +1 @@\n+    new\n-gone\n+++ b/b.rs\n+old\n+new\n");
    let rank = |path: &str, text: &str| added.get(&(path.to_owned(), text.to_owned())).copied();
    assert!(rank("a.rs", "new") < rank("b.rs", "old"), "{added:?}");
    assert_eq!(rank("a.rs", "gone"), None);
}
