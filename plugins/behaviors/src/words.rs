//! Regular expressions that find buttons by their text.

/// Characters with a special meaning in regular expressions of JavaScript.
const SPECIAL_CHARACTERS: &str = r"^$\.*+?()[]{}|/";

/// Largest number of characters after the words of a button, such as a number of comments.
const REST_MAX: u32 = 40;

/// An expression that matches a text if it is one of `words`. Characters other than letters may surround the words.
pub(crate) fn matching_whole<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    format!(r"^\P{{L}}*(?:{})\P{{L}}*$", alternatives(words))
}

/// An expression that matches a text if it begins with one of `words`, such as `Load more (24 comments)`. Characters other than
/// letters may come before the words.
pub(crate) fn matching_start<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = alternatives(words);
    format!(r"^\P{{L}}*(?:{words})(?:\P{{L}}[\s\S]{{0,{REST_MAX}}})?$")
}

fn alternatives<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = words.into_iter().map(|word| {
        // The text of a button may have line breaks between words.
        let parts = word.split_whitespace().map(escape);
        parts.collect::<Vec<_>>().join(r"\s+")
    });
    words.collect::<Vec<_>>().join("|")
}

fn escape(word: &str) -> String {
    let mut escaped = String::new();
    for character in word.chars() {
        if SPECIAL_CHARACTERS.contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped() {
        assert_eq!(
            matching_whole(["ok", "no, thanks"]),
            r"^\P{L}*(?:ok|no,\s+thanks)\P{L}*$"
        );
        assert_eq!(
            matching_start(["more (all)?"]),
            r"^\P{L}*(?:more\s+\(all\)\?)(?:\P{L}[\s\S]{0,40})?$"
        );
    }
}
