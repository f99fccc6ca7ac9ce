//! A Rust file has at most 600 lines, including tests, unless [`LONG`] has a reason for it.

use crate::repository::{Source, sources};

/// Most lines of a file without a reason.
const LINES_MAX: usize = 600;

/// Longer files, each with its reason. A path may be shortened to its end, so that it stays valid if the folder above is moved.
/// "Split" describes how to divide a file. Such entries may be removed but not added.
const LONG: &[(&str, &str)] = &[
    ("host/archive/src/catalogue.rs", "405 lines and their tests"),
    (
        "host/archive/src/reader.rs",
        "Split: `Source` and the damage that is skipped are subjects of their own",
    ),
    (
        "host/archive/src/redact.rs",
        "Split: survey, tombstone and rewriting are three steps",
    ),
    (
        "host/archive/tests/archive/formats.rs",
        "cases of ARC, zstd and dictionaries that share fixtures",
    ),
    (
        "host/cli/tests/cli/serve.rs",
        "stories of the daemon's command line",
    ),
    (
        "host/console/src/supervisor.rs",
        "560 lines and their tests",
    ),
    (
        "alerts/watch.rs",
        "347 lines and their tests: a case for each alert",
    ),
    (
        "control/src/command.rs",
        "a table: every command of an operator with its arguments",
    ),
    ("ledger.rs", "516 lines and their tests"),
    ("reconcile.rs", "457 lines and their tests"),
    (
        "job/src/directory.rs",
        "462 lines and their tests: a creation that is interrupted anywhere",
    ),
    ("transfer/import.rs", "327 lines and their tests"),
    (
        "host/fetch/src/cookies.rs",
        "551 lines and their tests: the cases of RFC 6265bis",
    ),
    ("host/fetch/src/dns.rs", "388 lines and their tests"),
    ("host/fetch/src/ftp.rs", "550 lines and their tests"),
    (
        "host/fetch/src/robots.rs",
        "614 lines and their tests: the cases of RFC 9309 and of Google's parser",
    ),
    (
        "host/fetch/tests/fetch/exchange.rs",
        "cases of one subject that share a server",
    ),
    (
        "host/frontier/src/change.rs",
        "Split: `TouchedQueue` and writing the batch from reading through it",
    ),
    (
        "host/frontier/src/check/tests.rs",
        "one case for each rule of the store",
    ),
    (
        "host/frontier/src/frontier.rs",
        "Split: issuing from scheduling",
    ),
    (
        "host/frontier/src/operator_commands.rs",
        "Split: commands for URIs from commands for queues",
    ),
    (
        "host/frontier/src/store.rs",
        "Split: `FrontierError`, and the keyspaces from opening and locking",
    ),
    (
        "host/frontier/tests/frontier/model.rs",
        "random histories: one model, its steps and its comparison",
    ),
    (
        "host/frontier/tests/frontier/naive.rs",
        "a naive frontier in one piece, to be read beside the real one",
    ),
    (
        "host/frontier/tests/frontier/stories.rs",
        "stories of the frontier that share helpers",
    ),
    (
        "host/profile/src/schema_check.rs",
        "Split: suggestions (`Repair`) from checking",
    ),
    (
        "host/profile/tests/profile/heritrix.rs",
        "cases of the import of Heritrix jobs",
    ),
    (
        "host/profile/tests/profile/overrides.rs",
        "cases of overrides",
    ),
    (
        "host/sandbox/tests/sandbox/hostile.rs",
        "one case for each way of doing harm",
    ),
    ("host/simulate/src/scenario.rs", "438 lines and their tests"),
    ("host/simulate/src/web.rs", "519 lines and their tests"),
    (
        "host/uri/src/canonical.rs",
        "458 lines and their tests: a case for each rule",
    ),
    (
        "host/uri/src/uri.rs",
        "Split: parsing from the forms of a URI; 740 lines and their tests",
    ),
    ("plugins/formats/src/swf.rs", "484 lines and their tests"),
    (
        "plugins/html/src/forms.rs",
        "Split: controls of a form from what it sends",
    ),
    (
        "plugins/html/src/page.rs",
        "one tokenizer loop, fast because it is one",
    ),
    (
        "plugins/js/src/script.rs",
        "620 lines and their tests: one tokenizer",
    ),
    (
        "sdk/rust/src/native/double.rs",
        "doubles of the host's resources, one beside the other",
    ),
    (
        "tests/stories/tests/misbehaving/cases.rs",
        "a table: every misbehaving server and what a crawl makes of it",
    ),
];

const TABLE: &str = "LONG (tests/tidy/src/file_lengths.rs)";

/// Fails unless `long` lists exactly the files with more than [`LINES_MAX`] lines.
fn check(sources: &[Source], long: &[(&str, &str)]) -> Result<(), String> {
    let mut faults = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        if lines <= LINES_MAX {
            continue;
        }
        match long.iter().find(|(end, _)| ends_with(&source.path, end)) {
            Some((end, _)) => used.push(*end),
            None => faults.push(format!(
                "{} has {lines} lines.\n  fix: split it where a second subject begins, or give the reason in {TABLE}",
                source.path
            )),
        }
    }
    for (end, _) in long.iter().filter(|(end, _)| !used.contains(end)) {
        faults.push(format!(
            "{end} has no more than {LINES_MAX} lines, or does not exist.\n  fix: remove its entry in {TABLE}"
        ));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Returns `true` if a path ends with the folders and the name in `end`.
fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[test]
fn every_long_file_has_a_reason() {
    if let Err(message) = check(&sources("rs"), LONG) {
        panic!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_lines(path: &str, lines: usize) -> Source {
        Source::new(path, &"x\n".repeat(lines))
    }

    #[test]
    fn a_long_file_without_a_reason_fails() {
        let sources = [of_lines("a/src/b.rs", LINES_MAX + 1)];
        let message = check(&sources, &[]).expect_err("601 lines");
        assert!(message.starts_with("a/src/b.rs has 601 lines"), "{message}");
        assert_eq!(check(&sources, &[("src/b.rs", "a table")]), Ok(()));
        assert_eq!(check(&[of_lines("a/src/b.rs", LINES_MAX)], &[]), Ok(()));
    }

    #[test]
    fn an_unused_reason_fails() {
        let sources = [of_lines("a/src/sub.rs", 10)];
        let message = check(&sources, &[("sub.rs", "a table")]).expect_err("10 lines");
        assert!(message.contains("remove its entry"), "{message}");
        assert!(!ends_with("a/src/sub.rs", "b.rs"));
    }
}
