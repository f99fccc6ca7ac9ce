//! "X is none" and "X is no Y" are riddles in comments, errors and log lines. Plain English says "missing", "invalid", "not a
//! Y" or "no Y found" (`docs/STYLE.md`). "There is no Y" and "is no longer" are plain and not counted.

use crate::ratchet::{Offender, Ratchet};
use crate::repository::{Source, sources};

/// Number of such phrases in comments and texts. Lower it whenever the number falls.
const PHRASES_MAX: usize = 2;

/// This crate quotes the phrases.
const OWN_FOLDER: &str = "tests/tidy/";

const PHRASES: [&str; 3] = ["is none", "are none", "is no "];

const PLAIN: [&str; 5] = [
    "is no longer",
    "there is no ",
    "There is no ",
    "there is none",
    "There is none",
];

const RATCHET: Ratchet = Ratchet {
    constant: "PHRASES_MAX (tests/tidy/src/phrases.rs)",
    max: PHRASES_MAX,
    faults: "lines say \"is none\", \"are none\" or \"is no X\"",
    fix: "write \"not a …\", \"no … found\", \"missing\" or \"invalid\"; see docs/STYLE.md",
};

/// Lines with a phrase. Rust code does not contain these phrases, so whole lines are searched.
fn offenders(sources: &[Source]) -> Vec<Offender> {
    let mut offenders = Vec::new();
    for source in sources.iter().filter(|it| !it.path.starts_with(OWN_FOLDER)) {
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
    if let Err(message) = RATCHET.hold(offenders(&sources("rs"))) {
        panic!("{message}");
    }
}

#[test]
fn only_unclear_phrases_count() {
    let text = "\
// The base64 is none.
/// A line that is no address.
const A: &str = \"lines that are none of an index\";
// There is no file, and there is none below.
// It is no longer there.
";
    let found: Vec<_> = offenders(&[Source::new("a.rs", text)])
        .into_iter()
        .map(|it| it.line)
        .collect();
    assert_eq!(found, [1, 2, 3]);
    assert_eq!(offenders(&[Source::new("tests/tidy/src/a.rs", text)]), []);
}
