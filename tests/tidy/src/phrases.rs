//! "X is none" and "X is no Y" are riddles in comments, errors, log lines and documentation. Plain English says "missing",
//! "invalid", "not a Y" or "no Y found" (`docs/STYLE.md`). "There is no Y" and "is no longer" are plain and not counted.

use crate::ratchet::{Offender, Ratchet};
use crate::repository::{Source, sources};

/// Number of such phrases in comments and texts. Lower it whenever the number falls.
const PHRASES_MAX: usize = 0;

/// Files that are searched: the extension, and the beginnings of the paths.
const SEARCHED: [(&str, &[&str]); 11] = [
    ("rs", &[""]),
    ("wit", &[""]),
    ("md", &[""]),
    ("html", &["host/console/assets/"]),
    (
        "js",
        &[
            "host/console/assets/",
            "tests/",
            "xtask/",
            "sdk/",
            "plugins/",
        ],
    ),
    (
        "mjs",
        &[
            "host/console/assets/",
            "tests/",
            "xtask/",
            "sdk/",
            "plugins/",
        ],
    ),
    ("ts", &["sdk/", "plugins/"]),
    ("py", &[""]),
    ("go", &[""]),
    ("c", &[""]),
    ("h", &[""]),
];

/// Files that are left out: this crate and the rules of style quote the phrases, and published contracts do not change.
const LEFT_OUT: [&str; 6] = [
    "CONTRIBUTING.md",
    "docs/GLOSSARY.md",
    "docs/STYLE.md",
    "tests/tidy/",
    "wit/published/",
    "tests/contract/",
];

const PHRASES: [&str; 3] = ["is none", "are none", "is no "];

const PLAIN: [&str; 7] = [
    "is no longer",
    "there is no ",
    "There is no ",
    "there is none",
    "There is none",
    "there are none",
    "There are none",
];

const RATCHET: Ratchet = Ratchet {
    constant: "PHRASES_MAX (tests/tidy/src/phrases.rs)",
    max: PHRASES_MAX,
    faults: "lines say \"is none\", \"are none\" or \"is no X\"",
    fix: "write \"not a …\", \"no … found\", \"missing\" or \"invalid\"; see docs/STYLE.md",
};

/// The files that are searched.
fn searched() -> Vec<Source> {
    let mut searched = Vec::new();
    for (extension, beginnings) in SEARCHED {
        let mut found = sources(extension);
        found.retain(|it| beginnings.iter().any(|start| it.path.starts_with(start)));
        searched.extend(found);
    }
    searched
}

/// Lines with a phrase. Code does not contain these phrases, so whole lines are searched.
fn offenders(sources: &[Source]) -> Vec<Offender> {
    let mut offenders = Vec::new();
    let is_left_out = |path: &str| LEFT_OUT.iter().any(|start| path.starts_with(start));
    for source in sources.iter().filter(|it| !is_left_out(&it.path)) {
        for (number, line) in source.text.lines().enumerate() {
            let counted = PLAIN
                .iter()
                .fold(line.to_owned(), |line, plain| line.replace(plain, ""));
            for _ in PHRASES.iter().filter(|it| counted.contains(**it)) {
                offenders.push(Offender {
                    path: source.path.clone(),
                    line: number + 1,
                    text: line.trim().to_owned(),
                });
            }
        }
    }
    offenders
}

#[test]
fn the_number_of_unclear_phrases_does_not_grow() {
    if let Err(message) = RATCHET.hold(offenders(&searched())) {
        panic!("{message}");
    }
}

#[test]
fn documentation_and_scripts_are_searched() {
    let paths: Vec<_> = searched().into_iter().map(|it| it.path).collect();
    for path in [
        "host/console/assets/editor.js",
        "docs/decisions/0075-ci-runs-cargo-test.md",
        "tests/tidy/src/phrases.rs",
    ] {
        assert!(paths.iter().any(|it| it == path), "{path}");
    }
    let has = |start: &str, end: &str| {
        let mut paths = paths.iter();
        paths.any(|it| it.starts_with(start) && it.ends_with(end))
    };
    assert!(has("tests/judges/", ".py"));
    assert!(has("sdk/", ".go") && has("wit/", ".wit"));
}

#[test]
fn only_unclear_phrases_count() {
    let text = "\
// The base64 is none.
/// A line that is no address.
const A: &str = \"lines that are none of an index\";
// There is no file, and there is none below.
// It is no longer there, and there are none elsewhere.
";
    let found: Vec<_> = offenders(&[Source::new("a.rs", text)])
        .into_iter()
        .map(|it| it.line)
        .collect();
    assert_eq!(found, [1, 2, 3]);
    for path in [
        "tests/tidy/src/a.rs",
        "docs/STYLE.md",
        "wit/published/0.1.0/types.wit",
    ] {
        assert_eq!(offenders(&[Source::new(path, text)]), []);
    }
}
