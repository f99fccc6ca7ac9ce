//! Doc comments open with a noun phrase ("A queue's politeness state.") or a verb ("Returns…"), not with a wh-word
//! (`docs/STYLE.md`). "Whether" is allowed: it opens the plain description of a bool.

use crate::ratchet::{Offender, Ratchet};
use crate::repository::{Source, sources};

/// Doc comments in the repository that open with a wh-word.
const DOC_COMMENTS_MAX: usize = 0;

/// Words with which no doc comment may open.
const WH_WORDS: [&str; 16] = [
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Which",
    "Whichever",
    "That",
    "How",
    "However",
    "Where",
    "Wherever",
    "When",
    "Whenever",
    "Why",
];

const RATCHET: Ratchet = Ratchet {
    constant: "DOC_COMMENTS_MAX (tests/tidy/src/doc_comments.rs)",
    max: DOC_COMMENTS_MAX,
    faults: "doc comments open with a wh-word",
    fix: "name the thing or the effect first (\"Returns…\", \"A queue's state.\"); see docs/STYLE.md",
};

/// First lines of doc comments that open with a wh-word.
fn offenders(sources: &[Source]) -> Vec<Offender> {
    let mut offenders = Vec::new();
    for source in sources {
        let mut inside = false;
        for (number, line) in source.text.lines().enumerate() {
            let doc = doc_text(line);
            if let Some(text) = doc.filter(|_| !inside)
                && WH_WORDS.contains(&first_word(text))
            {
                offenders.push(Offender {
                    path: source.path.clone(),
                    line: number + 1,
                    text: line.trim().to_owned(),
                });
            }
            inside = doc.is_some();
        }
    }
    offenders
}

/// The text of a line that is a doc comment.
pub(crate) fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .filter(|rest| !rest.starts_with('/'));
    text.or_else(|| line.strip_prefix("//!"))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_alphabetic());
    end.map_or(text, |end| &text[..end])
}

#[test]
fn the_number_of_opening_wh_words_does_not_grow() {
    if let Err(message) = RATCHET.hold(offenders(&sources("rs"))) {
        panic!("{message}");
    }
}

#[test]
fn only_the_first_line_of_a_doc_comment_counts() {
    // Tildes replace slashes, because this text would be counted otherwise.
    let text = "\
/~! What this file is.
/~! Which is not counted.

//~ Where it stands.
//~ When it is due.
fn a() {} // What is no doc comment
//~/ Who counts this? Nobody.
//~ Whether it is open.
//~ A queue's state.
fn b() {}
    //~ Why. And more.
    //~ Thatched roofs.
"
    .replace('~', "/");
    let found: Vec<_> = offenders(&[Source::new("a.rs", &text)])
        .into_iter()
        .map(|it| it.line)
        .collect();
    assert_eq!(found, [1, 4, 11]);
}
