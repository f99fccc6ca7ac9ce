//! `application/warc-fields`: lines of `name: value`, the body of `warcinfo` and `metadata`.

use bytes::Bytes;

/// Lines of `name: value`, in the order in which they were added. Control characters in values cannot break a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    lines: Vec<(String, String)>,
}

impl Fields {
    /// Creates fields without lines.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Adds a line. Control characters in the value become blanks (several in a row become one);
    /// characters that no field name may have become `-`.
    pub fn push(&mut self, name: &str, value: impl AsRef<str>) -> &mut Fields {
        let name = name
            .chars()
            .map(|c| if is_token(c) { c } else { '-' })
            .collect();
        self.lines.push((name, one_line(value.as_ref())));
        self
    }

    /// Adds a line if there is a value.
    pub fn push_some(&mut self, name: &str, value: Option<impl AsRef<str>>) -> &mut Fields {
        match value {
            Some(value) => self.push(name, value),
            None => self,
        }
    }

    /// Adds `outlink: URI hop context`. The URI and the hop are one word each, so that a reader can split at the first two
    /// blanks. The context is the rest of the line.
    pub fn outlink(&mut self, uri: &str, hop: char, context: &str) -> &mut Fields {
        self.push(
            "outlink",
            format!("{} {hop} {}", safe_uri(uri), one_line(context)),
        )
    }

    /// The lines in the order in which they were added, with safe names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The text of the lines, each ended by CR LF.
    pub fn to_bytes(&self) -> Bytes {
        let mut text = String::new();
        for (name, value) in &self.lines {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.into()
    }

    /// Parses a block. Folded lines (a blank in front) continue the one before. A line without a colon is left out. Invalid
    /// UTF-8 becomes U+FFFD.
    pub fn parse(block: &[u8]) -> Fields {
        let mut fields = Fields::new();
        for line in String::from_utf8_lossy(block).split('\n') {
            let line = line.trim_end_matches('\r');
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = fields.lines.last_mut() {
                    value.push(' ');
                    value.push_str(&one_line(line));
                }
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push(trim(name), value);
            }
        }
        fields
    }
}

/// Returns `true` if a character is a token character (RFC 9110). Header and field names consist of them.
pub(crate) fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// Puts a value on one line: runs of control characters and line separators become one blank, and the ends are trimmed.
pub(crate) fn one_line(value: &str) -> String {
    let breaks = |c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}';
    if !value.contains(breaks) {
        return trim(value).to_owned();
    }
    let pieces: Vec<&str> = value
        .split(breaks)
        .filter(|piece| !piece.is_empty())
        .collect();
    trim(&pieces.join(" ")).to_owned()
}

/// Removes blanks and tabs around a text. A header line may have these and no others.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Makes a URI one word on one line: blanks and control characters are percent-encoded, all else is unchanged.
pub(crate) fn safe_uri(uri: &str) -> String {
    let mut safe = String::with_capacity(uri.len());
    for c in uri.chars() {
        if c.is_control() || c.is_whitespace() {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                safe.push_str(&format!("%{byte:02X}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, expected: &str) {
        let mut fields = Fields::new();
        fields.push(name, value);
        assert_eq!(fields.to_bytes(), format!("{expected}\r\n"));
    }

    #[test]
    fn a_value_never_breaks_its_line() {
        check("via", "http://example.com/", "via: http://example.com/");
        check(
            "via",
            "a\r\nWARC-Type: response",
            "via: a WARC-Type: response",
        );
        check("via", "\na\u{85}b\u{2028}c\0d\n", "via: a b c d");
        check("note", "Zürich", "note: Zürich");
        check("note", "", "note: ");
        check("note", " \u{a0} ", "note: \u{a0}");
    }

    #[test]
    fn a_name_stays_a_token() {
        check("plug in:\n1", "x", "plug-in--1: x");
    }

    #[test]
    fn outlinks_can_be_split_at_blanks() {
        let mut fields = Fields::new();
        fields.outlink("http://example.com/a b\r\nx", 'L', "a/@href\nimg");
        assert_eq!(
            fields.to_bytes(),
            "outlink: http://example.com/a%20b%0D%0Ax L a/@href img\r\n"
        );
    }

    #[test]
    fn lines_are_read_back_and_folds_joined() {
        let fields = Fields::parse(b"a: 1\r\nb: 2\r\n  and more\r\nno line\r\nc:3\n");
        let lines: Vec<_> = fields.iter().collect();
        assert_eq!(lines, [("a", "1"), ("b", "2 and more"), ("c", "3")]);
    }
}
