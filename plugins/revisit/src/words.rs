//! Words in the visible text of a page or in a plain text, for comparing texts and finding keywords.

/// The words of a text: runs of letters and digits. In markup, tags, comments, scripts and styles are skipped.
pub(crate) struct Words<'a> {
    rest: &'a str,
    is_markup: bool,
}

impl<'a> Words<'a> {
    pub(crate) fn of(text: &'a str, is_markup: bool) -> Self {
        Self {
            rest: text,
            is_markup,
        }
    }

    /// The text after the tag or comment that begins here. If none does, the text after the `<`.
    fn after_markup(&self) -> &'a str {
        let rest = &self.rest[1..];
        let after = |end: &str| rest.find(end).map_or("", |at| &rest[at + end.len()..]);
        if rest.starts_with("!--") {
            return after("-->");
        }
        let is_tag = rest.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        if !is_tag {
            return rest;
        }
        for element in ["script", "style"] {
            let is_element = rest
                .get(..element.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(element));
            if is_element {
                return from_end_tag(rest, element);
            }
        }
        after(">")
    }
}

/// The text from the end tag of an element on, or an empty text if it has no end tag.
fn from_end_tag<'a>(text: &'a str, element: &str) -> &'a str {
    let mut at = 0;
    while let Some(found) = text[at..].find("</") {
        at += found + 2;
        let name = text.get(at..at + element.len());
        if name.is_some_and(|name| name.eq_ignore_ascii_case(element)) {
            return &text[at - 2..];
        }
    }
    ""
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let is_start = |c: char| c.is_alphanumeric() || (self.is_markup && c == '<');
            self.rest = &self.rest[self.rest.find(is_start)?..];
            if self.is_markup && self.rest.starts_with('<') {
                self.rest = self.after_markup();
                continue;
            }
            let end = self.rest.find(|c: char| !c.is_alphanumeric());
            let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest;
            return Some(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<&str> {
        Words::of(text, true).collect()
    }

    #[test]
    fn words_are_those_of_the_visible_text() {
        assert_eq!(
            words_of(
                "<p title='x>y'>Ein Haus,<!-- so > what --> tvö <b>hús</b>: 3 < 4 <SCRIPT>var a = '</p>'</sCript >end<style>p{}"
            ),
            ["y", "Ein", "Haus", "tvö", "hús", "3", "4", "end"]
        );
        assert_eq!(words_of("<script>for ever"), [""; 0]);
        assert_eq!(words_of("<"), [""; 0]);
        assert_eq!(
            Words::of("a<b>c", false).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }
}
