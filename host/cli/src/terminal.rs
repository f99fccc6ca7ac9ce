//! Text that guests and the web had a hand in, made fit for a terminal: what they wrote moves no cursor and changes no
//! colour.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text of several lines. Line ends and tabs stay, other control characters become blanks. Those past ASCII become
/// escapes that JSON has as well, so that a text of JSON says the same as before.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if stays(c) => clean.push(c),
            c if c < ' ' => clean.push(' '),
            // Writing to a string does not fail.
            c => drop(write!(clean, "\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(clean)
}

/// A word or a sentence, to stand in a line: every control character becomes a blank, line ends too.
pub(crate) fn line(text: &str) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn guests_move_no_cursor() {
        assert_eq!(lines("a\tb\nä"), "a\tb\nä");
        assert_eq!(lines("n\x1b[31m\r\x07"), "n [31m  ");
        assert_eq!(line("n\x1b[31m\nok \u{9b}1m"), "n [31m ok  1m");
    }

    #[test]
    fn json_says_the_same_as_before() {
        let value = serde_json::json!("\u{9b}1m\u{7f}\x1b");
        let clean = lines(&value.to_string()).into_owned();
        assert!(!clean.contains(char::is_control), "{clean:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&clean).unwrap(),
            value
        );
    }
}
