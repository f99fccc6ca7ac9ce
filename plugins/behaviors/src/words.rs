//! Words on buttons, as regular expressions for clicks.

/// Characters with a meaning in regular expressions of JavaScript.
const SYNTAX: &str = r"^$\.*+?()[]{}|/";

/// Characters that may follow the words of a button, such as a number of comments.
const REST_MAX: u32 = 40;

/// An expression for texts that are one of these, apart from signs around it.
pub(crate) fn whole<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    format!(r"^\P{{L}}*(?:{})\P{{L}}*$", alternatives(words))
}

/// An expression for texts that begin with one of these, such as `Load more (24 comments)`.
pub(crate) fn beginning<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = alternatives(words);
    format!(r"^\P{{L}}*(?:{words})(?:\P{{L}}[\s\S]{{0,{REST_MAX}}})?$")
}

fn alternatives<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = words.into_iter().map(|word| {
        // Pages break lines within words' groups.
        let parts = word.split_whitespace().map(escaped);
        parts.collect::<Vec<_>>().join(r"\s+")
    });
    words.collect::<Vec<_>>().join("|")
}

fn escaped(word: &str) -> String {
    let mut escaped = String::new();
    for character in word.chars() {
        if SYNTAX.contains(character) {
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
    fn words_stand_for_themselves() {
        assert_eq!(
            whole(["ok", "no, thanks"]),
            r"^\P{L}*(?:ok|no,\s+thanks)\P{L}*$"
        );
        assert_eq!(
            beginning(["more (all)?"]),
            r"^\P{L}*(?:more\s+\(all\)\?)(?:\P{L}[\s\S]{0,40})?$"
        );
    }
}
