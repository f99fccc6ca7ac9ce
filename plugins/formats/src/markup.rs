//! Reads XML as found on the web, token by token, with a tolerant configuration of quick-xml.
//!
//! Unmatched end tags, undeclared entities, bare ampersands and attributes without quotes are accepted. Only XML's five entities
//! and character references are expanded. Nothing is fetched. The nesting and the number of errors are limited.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::events::{BytesStart, Event};

/// Deepest nesting of elements. Documents with more levels are made to break parsers.
const DEPTH_MAX: usize = 2_000;

/// Most errors in the form of the document after which reading continues.
const ERRORS_MAX: usize = 1_000;

/// Parts of a document. An empty element gives a start and an end.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    Start(Tag<'a>),
    /// The local name of the element. It may differ from that of the last opened element.
    End(String),
    /// `<?target content?>`
    Instruction {
        target: String,
        content: String,
    },
    /// The text in `<!DOCTYPE …>`.
    DocumentType(String),
}

/// A start tag.
#[derive(Debug)]
pub(crate) struct Tag<'a>(BytesStart<'a>);

impl Tag<'_> {
    /// The name without its prefix, in its original case.
    pub(crate) fn local_name(&self) -> &str {
        local_part(self.0.name().into_inner())
    }

    /// The name, with prefix, and the decoded value of every attribute.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&str, String)> {
        // The check for duplicates compares every attribute with all earlier ones.
        let mut attributes = self.0.html_attributes();
        attributes.with_checks(false);
        attributes.filter_map(Result::ok).map(|attribute| {
            let value = unescape(&attribute.value).into_owned();
            (attribute.key.into_inner(), value)
        })
    }

    /// The first attribute with this local name.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.html_attributes();
        attributes.with_checks(false);
        let attribute = attributes
            .filter_map(Result::ok)
            .find(|attribute| local_part(attribute.key.into_inner()) == name)?;
        Some(unescape(&attribute.value).trim().to_owned())
    }
}

/// The name without its prefix: `href` for `xlink:href`.
pub(crate) fn local_part(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// The state of reading a document.
pub(crate) struct Markup<'a> {
    document: &'a str,
    reader: Reader<&'a [u8]>,
    /// Decoded text since the last tag.
    text: String,
    /// Start of the text since the last tag.
    text_start: usize,
    /// Start of the last tag.
    tag_start: usize,
    depth: usize,
    errors: usize,
    /// The element whose start tag was the last tag; `None` after an end tag.
    leaf: Option<String>,
    problem: Option<String>,
}

impl<'a> Markup<'a> {
    pub(crate) fn new(document: &'a str) -> Self {
        // Servers put line breaks and byte order marks before the declaration.
        let leading = document.len()
            - document
                .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
                .len();
        let mut reader = Reader::from_str(&document[leading..]);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        config.expand_empty_elements = true;
        Self {
            document: &document[leading..],
            reader,
            text: String::new(),
            text_start: 0,
            tag_start: 0,
            depth: 0,
            errors: 0,
            leaf: None,
            problem: None,
        }
    }

    /// The text between the last two tokens.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Number of open elements, including the one that the last token started.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The end of the last token in the document, in bytes.
    pub(crate) fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// The part of the document from a position to the start of the last tag.
    pub(crate) fn before_token(&self, from: usize) -> &'a str {
        self.document.get(from..self.tag_start).unwrap_or_default()
    }

    /// Returns the reason if reading stopped before the end of the document.
    pub(crate) fn into_problem(self) -> Option<String> {
        self.problem
    }

    /// Returns the next token; `None` at the end, or if the rest cannot be read.
    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        self.text.clear();
        self.text_start = self.position();
        loop {
            let start = self.position();
            match self.reader.read_event() {
                Ok(Event::Text(text)) => self.text.push_str(&text),
                Ok(Event::CData(text)) => self.text.push_str(&text),
                Ok(Event::GeneralRef(reference)) => {
                    let raw = format!("&{};", &*reference);
                    self.text.push_str(&unescape(&raw));
                }
                Ok(Event::Start(tag) | Event::Empty(tag)) => {
                    self.tag_start = start;
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        self.problem =
                            Some(format!("elements are nested more than {DEPTH_MAX} deep"));
                        return None;
                    }
                    let tag = Tag(tag);
                    self.leaf = Some(tag.local_name().to_owned());
                    return Some(Token::Start(tag));
                }
                Ok(Event::End(tag)) => {
                    self.tag_start = start;
                    self.depth = self.depth.saturating_sub(1);
                    self.leaf = None;
                    return Some(Token::End(local_part(tag.name().into_inner()).to_owned()));
                }
                Ok(Event::PI(instruction)) => {
                    return Some(Token::Instruction {
                        target: instruction.target().to_owned(),
                        content: instruction.content().to_owned(),
                    });
                }
                Ok(Event::DocType(content)) => {
                    return Some(Token::DocumentType(content.to_string()));
                }
                Ok(Event::Comment(_) | Event::Decl(_)) => {}
                Ok(Event::Eof) => return None,
                Err(Error::IllFormed(error)) => {
                    self.errors += 1;
                    if self.errors > ERRORS_MAX {
                        self.problem = Some(error.to_string());
                        return None;
                    }
                }
                Err(error) => {
                    self.problem = Some(format!("{error} (byte {})", self.reader.error_position()));
                    // A document truncated within an end tag contains the whole element.
                    let rest = self.document.get(start..).unwrap_or_default();
                    self.tag_start = start;
                    return self
                        .leaf
                        .take()
                        .filter(|_| rest.starts_with("</"))
                        .map(Token::End);
                }
            }
        }
    }
}

/// Decodes character references and XML's five entities. Invalid references stay unchanged.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    /// The length of `&#x0010FFFF;`.
    const REFERENCE_BYTES_MAX: usize = 12;
    let Some(first) = memchr::memchr(b'&', raw.as_bytes()) else {
        return Cow::Borrowed(raw);
    };
    let mut text = String::with_capacity(raw.len());
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let end = after
            .bytes()
            .take(REFERENCE_BYTES_MAX)
            .position(|b| b == b';');
        let character = end.and_then(|end| referenced_character(&after[..end]));
        let after = match (character, end) {
            (Some(character), Some(end)) => {
                text.push(character);
                &after[end + 1..]
            }
            _ => {
                text.push('&');
                after
            }
        };
        let next = memchr::memchr(b'&', after.as_bytes()).unwrap_or(after.len());
        text.push_str(&after[..next]);
        rest = &after[next..];
    }
    Cow::Owned(text)
}

/// Returns the character that `amp`, `#38` or `#x26` stands for.
fn referenced_character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).filter(|character| *character != '\0')
        }
    }
}

/// Longest accepted base, in bytes.
const BASE_BYTES_MAX: usize = 2 * 1024;

/// Values of `xml:base` of the open elements, each with the depth of its element.
#[derive(Debug, Default)]
pub(crate) struct Bases(Vec<(usize, String)>);

impl Bases {
    /// Enters the element of a start tag at this depth.
    pub(crate) fn enter(&mut self, tag: &Tag<'_>, depth: usize) {
        let mut attributes = tag.attributes().filter(|(name, _)| *name == "xml:base");
        if let Some((_, base)) = attributes.next() {
            let base = match self.current() {
                Some(outer) => crate::reference::join(outer, base.trim()),
                None => base.trim().to_owned(),
            };
            // Relative bases of nested elements could add up to any length.
            if base.len() <= BASE_BYTES_MAX {
                self.0.push((depth, base));
            }
        }
    }

    /// Leaves the elements below `depth`, the number of elements that remain open.
    pub(crate) fn leave(&mut self, depth: usize) {
        while self.0.last().is_some_and(|(at, _)| *at > depth) {
            self.0.pop();
        }
    }

    /// The current base, which may be relative to the document's base.
    pub(crate) fn current(&self) -> Option<&str> {
        self.0.last().map(|(_, base)| base.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a text for each token, after the text before it: `<name attributes>` for a start, `/name` for an end.
    fn read(document: &str) -> (Vec<String>, Option<String>) {
        let mut markup = Markup::new(document);
        let mut tokens = Vec::new();
        while let Some(token) = markup.next() {
            let text = markup.text().to_owned();
            tokens.push(match token {
                Token::Start(tag) => {
                    let attributes: String = tag
                        .attributes()
                        .map(|(name, value)| format!(" {name}={value}"))
                        .collect();
                    format!("{text}<{}{attributes}>", tag.local_name())
                }
                Token::End(name) => format!("{text}/{name}"),
                Token::Instruction { target, content } => format!("{text}?{target}{content}"),
                Token::DocumentType(content) => format!("{text}!{content}"),
            });
        }
        (tokens, markup.into_problem())
    }

    #[track_caller]
    fn check(document: &str, expected: &[&str]) {
        assert_eq!(read(document).0, expected, "{document}");
    }

    #[test]
    fn well_formed_documents() {
        check(
            "<?xml version='1.0'?><?go x?><a:b c='1'>x<d/>y<![CDATA[<&z>]]></a:b>",
            &["?go x", "<b c=1>", "x<d>", "/d", "y<&z>/b"],
        );
        check(
            "<a b='&amp;&#38;&#x26;'>&lt;&gt;</a>",
            &["<a b=&&&>", "<>/a"],
        );
        check(
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            &["!a [<!ENTITY b 'c'>]", "<a>", "&b;/a"],
        );
        check("<a>x<!-- y -->z</a>", &["<a>", "xz/a"]);
    }

    #[test]
    fn common_errors_are_tolerated() {
        check("\u{feff}\r\n <?xml version='1.0'?><a/>", &["<a>", "/a"]);
        check("<a>x</b></c></a>", &["<a>", "x/b", "/c", "/a"]);
        check(
            "<a b=?x=1&y=2&amp;z c>1&2 & 3</a>",
            &["<a b=?x=1&y=2&z c=>", "1&2 & 3/a"],
        );
        check(
            "<a>&nbsp;&#0;&#xFFFFFFFF;</a>",
            &["<a>", "&nbsp;&#0;&#xFFFFFFFF;/a"],
        );
        check("<a b='1' b='2'/>", &["<a b=1 b=2>", "/a"]);
        check("no markup", &[]);
    }

    #[test]
    fn truncated_documents_are_read_to_their_end() {
        let (tokens, problem) = read("<a><b>x</b><c>y</");
        assert_eq!(tokens, ["<a>", "<b>", "x/b", "<c>", "y/c"]);
        assert!(problem.is_some());
        check("<a><b>x", &["<a>", "<b>"]);
        check("<a><b", &["<a>"]);
    }

    #[test]
    fn reading_stops_at_the_deepest_nesting() {
        let (tokens, problem) = read(&"<a>".repeat(DEPTH_MAX + 10));
        assert_eq!(tokens.len(), DEPTH_MAX);
        assert!(problem.is_some());
    }

    #[test]
    fn bases_apply_to_their_elements() {
        let mut markup = Markup::new(
            "<a xml:base='http://example.org/x/y'><b xml:base='z/'><c/></b><d xml:base='/w'/><e/></a>",
        );
        let mut bases = Bases::default();
        let mut found = Vec::new();
        while let Some(token) = markup.next() {
            match token {
                Token::Start(tag) => {
                    bases.enter(&tag, markup.depth());
                    found.push(bases.current().unwrap_or_default().to_owned());
                }
                Token::End(_) => bases.leave(markup.depth()),
                _ => {}
            }
        }
        assert_eq!(
            found,
            [
                "http://example.org/x/y",
                "http://example.org/x/z/",
                "http://example.org/x/z/",
                "http://example.org/w",
                "http://example.org/x/y",
            ]
        );
    }

    #[test]
    fn long_bases_are_ignored() {
        let long = format!("<a xml:base='{}'>", "b".repeat(BASE_BYTES_MAX + 1));
        let mut markup = Markup::new(&long);
        let mut bases = Bases::default();
        while let Some(token) = markup.next() {
            if let Token::Start(tag) = token {
                bases.enter(&tag, markup.depth());
            }
        }
        assert_eq!(bases.current(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(document in "([<>/?!&;= '\"a-c\\[\\]-]|<!\\[CDATA\\[|&#x|<!--|é){0,60}") {
            read(&document);
        }
    }
}
