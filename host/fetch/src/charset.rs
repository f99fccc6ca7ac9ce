//! Detects the encoding of a text before plugins get it.
//!
//! The sources have the order of the WHATWG standards: byte order mark, `charset` of Content-Type, declaration in the document
//! (`<meta>`, XML declaration, `@charset`), detection from the bytes.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes searched for a declaration (WHATWG HTML, "prescan a byte stream": 1024).
pub const PRESCAN_BYTES_MAX: usize = 1024;

/// Bytes given to the detector if no encoding is declared. The limit bounds the work for long documents.
pub const DETECT_BYTES_MAX: usize = 256 * 1024;

/// Facts about a text that are known before it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct CharsetHints<'a> {
    /// `Content-Type` as received, parameters included.
    pub content_type: Option<&'a str>,
    /// The host that sent it: its top-level domain hints at a language.
    pub host: Option<&'a str>,
}

/// The encoding of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charset {
    /// The encoding to decode with.
    pub encoding: &'static Encoding,
    /// The source of the decision.
    pub source: CharsetSource,
    /// Annotations for the crawl log, as Heritrix writes them: `usingCharsetInHTML:…`, `inconsistentCharsetInHTML:…`,
    /// `unsatisfiableCharsetInHeader:…`, `unsatisfiableCharsetInHTML:…`.
    pub annotations: Vec<String>,
}

/// The source of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    ByteOrderMark,
    /// `charset` of Content-Type.
    Header,
    /// A declaration in the document.
    Document,
    /// The format fixes the encoding (JSON), or has a default for documents without a declaration (XML).
    Format,
    /// Detection from the bytes.
    Detected,
}

/// Formats that differ in the way they declare their encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Xml,
    Css,
    Json,
    Other,
}

impl Charset {
    /// Decodes the text. Invalid sequences become U+FFFD, and a byte order mark is left out.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.encoding.decode_with_bom_removal(bytes).0
    }

    /// The standard's label of the encoding, lower-case.
    pub fn label(&self) -> String {
        self.encoding.name().to_ascii_lowercase()
    }
}

/// Decides the encoding of `bytes`, a content without content codings.
pub fn decide(hints: CharsetHints<'_>, bytes: &[u8]) -> Charset {
    let mut annotations = Vec::new();
    let mut known = |label: &str, place: &str| {
        let encoding = Encoding::for_label(label.as_bytes());
        if encoding.is_none() {
            annotations.push(format!(
                "unsatisfiableCharsetIn{place}:{}",
                annotated(label)
            ));
        }
        encoding
    };
    let header = hints.content_type.and_then(charset_parameter);
    let header = header.and_then(|label| known(&label, "Header"));
    let format = Format::of(hints.content_type, bytes);
    let declared = declaration(format, bytes);
    let document = declared.as_deref().and_then(|label| known(label, "HTML"));
    let document = document.map(|encoding| as_declared(encoding, format));

    let (encoding, source) = if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        (encoding, CharsetSource::ByteOrderMark)
    } else if let Some(encoding) = header {
        if document.is_some_and(|document| document != encoding) {
            let label = declared.as_deref().unwrap_or_default();
            annotations.push(format!("inconsistentCharsetInHTML:{}", annotated(label)));
        }
        (encoding, CharsetSource::Header)
    } else if let Some(encoding) = wide_xml(bytes).filter(|_| format == Format::Xml) {
        (encoding, CharsetSource::Format)
    } else if let Some(encoding) = document {
        let label = declared.as_deref().unwrap_or_default();
        annotations.push(format!("usingCharsetInHTML:{}", annotated(label)));
        (encoding, CharsetSource::Document)
    } else if matches!(format, Format::Xml | Format::Json) && is_utf8(bytes) {
        (UTF_8, CharsetSource::Format)
    } else {
        (detect(hints.host, bytes), CharsetSource::Detected)
    };
    Charset {
        encoding,
        source,
        annotations,
    }
}

impl Format {
    fn of(content_type: Option<&str>, bytes: &[u8]) -> Self {
        let essence = content_type.and_then(|value| value.split(';').next());
        let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Format::Html,
            "text/css" => Format::Css,
            "text/xml" | "application/xml" => Format::Xml,
            "application/json" => Format::Json,
            other if other.ends_with("+xml") => Format::Xml,
            other if other.ends_with("+json") => Format::Json,
            "" | "text/plain" | "application/octet-stream" if begins_like_markup(bytes) => {
                Format::Html
            }
            _ => Format::Other,
        }
    }
}

fn begins_like_markup(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"<")
}

/// The `charset` parameter of a media type; quoted or not.
fn charset_parameter(content_type: &str) -> Option<String> {
    let (_, parameters) = content_type.split_once(';')?;
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        let named = name.trim().eq_ignore_ascii_case("charset") && !value.is_empty();
        named.then(|| value.to_owned())
    })
}

/// Replaces labels that a declaration read as ASCII cannot mean, as browsers do.
fn as_declared(encoding: &'static Encoding, format: Format) -> &'static Encoding {
    let wide = encoding == UTF_16LE || encoding == UTF_16BE;
    if wide {
        UTF_8
    } else if format == Format::Html && encoding.name() == "x-user-defined" {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The label that the document declares at its beginning.
fn declaration(format: Format, bytes: &[u8]) -> Option<String> {
    let start = &bytes[..bytes.len().min(PRESCAN_BYTES_MAX)];
    match format {
        Format::Html => meta(start).or_else(|| xml_declaration(start)),
        Format::Xml => xml_declaration(start),
        Format::Css => css_rule(start),
        Format::Json | Format::Other => None,
    }
}

/// The encoding of an XML declaration, `<?xml … encoding="…"?>`, at the very beginning.
fn xml_declaration(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(rest, b"?>").unwrap_or(rest.len());
    let rest = &rest[..end];
    let at = memchr::memmem::find(rest, b"encoding")?;
    let rest = rest[at + b"encoding".len()..].trim_ascii_start();
    quoted(rest.strip_prefix(b"=")?.trim_ascii_start())
}

/// `@charset "…";` as the first bytes (CSS Syntax §3.2).
fn css_rule(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(b"@charset \"")?;
    let end = memchr::memchr(b'"', rest)?;
    rest[end..]
        .starts_with(b"\";")
        .then(|| latin1(&rest[..end]))
}

fn quoted(bytes: &[u8]) -> Option<String> {
    let (quote, rest) = bytes.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let end = memchr::memchr(*quote, rest)?;
    Some(latin1(rest[..end].trim_ascii()))
}

/// The first `<meta>` that declares an encoding, comments skipped (WHATWG HTML, "prescan a byte stream").
fn meta(bytes: &[u8]) -> Option<String> {
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]) {
        at += open;
        let rest = &bytes[at..];
        if rest.starts_with(b"<!--") {
            // `<!-->` is a whole comment: the end may share the dashes of the beginning.
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
        } else if rest.len() > 5
            && rest[..5].eq_ignore_ascii_case(b"<meta")
            && matches!(rest[5], b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'/')
        {
            let mut attributes = Attributes { bytes, at: at + 5 };
            if let Some(label) = label_of_meta(&mut attributes) {
                return Some(label);
            }
            at = attributes.at;
        } else if is_tag(rest) {
            let mut attributes = Attributes { bytes, at: at + 1 };
            attributes.skip_name();
            while attributes.next().is_some() {}
            at = attributes.at;
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            at += memchr::memchr(b'>', rest)? + 1;
        } else {
            at += 1;
        }
    }
    None
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn label_of_meta(attributes: &mut Attributes<'_>) -> Option<String> {
    let (mut pragma, mut from_content, mut charset) = (false, None, None);
    for (name, value) in attributes {
        match name.as_str() {
            "http-equiv" => pragma |= value.eq_ignore_ascii_case("content-type"),
            "content" if from_content.is_none() => from_content = charset_in_content(&value),
            "charset" if charset.is_none() => charset = Some(value),
            _ => {}
        }
    }
    charset.or(from_content.filter(|_| pragma))
}

/// WHATWG HTML, "extracting a character encoding from a meta element".
fn charset_in_content(content: &str) -> Option<String> {
    let lower = content.to_ascii_lowercase();
    let mut from = 0;
    while let Some(found) = lower[from..].find("charset") {
        from += found + "charset".len();
        let rest = lower[from..].trim_ascii_start();
        let Some(rest) = rest.strip_prefix('=') else {
            continue;
        };
        let rest = rest.trim_ascii_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        return match quote {
            Some(quote) => rest[1..]
                .split_once(quote)
                .map(|(label, _)| label.to_owned()),
            None => {
                let end = rest.find(|c: char| c.is_ascii_whitespace() || c == ';');
                Some(rest[..end.unwrap_or(rest.len())].to_owned()).filter(|l| !l.is_empty())
            }
        };
    }
    None
}

/// The attributes of one tag, names lower-case; `at` ends past the tag.
struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Attributes<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_while(&mut self, skip: impl Fn(u8) -> bool) -> usize {
        while self.peek().is_some_and(&skip) {
            self.at += 1;
        }
        self.at
    }

    fn skip_name(&mut self) {
        self.skip_while(|b| !b.is_ascii_whitespace() && b != b'>');
    }
}

impl Iterator for Attributes<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.skip_while(|b| b.is_ascii_whitespace() || b == b'/');
        if self.peek()? == b'>' {
            self.at += 1;
            return None;
        }
        // A name may begin with "=".
        self.at += 1;
        let end = self.skip_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'>' | b'='));
        let name = latin1(&self.bytes[start..end]).to_ascii_lowercase();
        self.skip_while(|b| b.is_ascii_whitespace());
        if self.peek() != Some(b'=') {
            return Some((name, String::new()));
        }
        self.at += 1;
        self.skip_while(|b| b.is_ascii_whitespace());
        let value = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let start = self.at;
                let end = self.skip_while(|b| b != quote);
                self.at = (end + 1).min(self.bytes.len());
                &self.bytes[start..end]
            }
            _ => {
                let start = self.at;
                let end = self.skip_while(|b| !b.is_ascii_whitespace() && b != b'>');
                &self.bytes[start..end]
            }
        };
        Some((name, latin1(value)))
    }
}

/// The encoding of XML in UTF-16 without a byte order mark (XML 1.0, appendix F).
fn wide_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [b'<', 0, b'?', 0, ..] => Some(UTF_16LE),
        [0, b'<', 0, b'?', ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// Returns `true` if the examined bytes are UTF-8. A character cut at the end of the examined part is not an error.
fn is_utf8(bytes: &[u8]) -> bool {
    let look = &bytes[..bytes.len().min(DETECT_BYTES_MAX)];
    match std::str::from_utf8(look) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && look.len() < bytes.len(),
    }
}

fn detect(host: Option<&str>, bytes: &[u8]) -> &'static Encoding {
    // Plain ASCII reads the same either way. Text appended to such a page later is most likely UTF-8.
    if is_utf8(bytes) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[..bytes.len().min(DETECT_BYTES_MAX)], true);
    // The detector accepts only lower-case ASCII without dots.
    let domain = host
        .map(|host| host.trim_end_matches('.'))
        .and_then(|host| host.rsplit('.').next())
        .map(str::to_ascii_lowercase)
        .filter(|domain| {
            !domain.is_empty()
                && domain
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        });
    detector.guess(domain.as_deref().map(str::as_bytes), Utf8Detection::Allow)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// A label shortened and cleaned to fit into one annotation.
fn annotated(label: &str) -> String {
    let cut = label.chars().take(40);
    cut.map(|c| match c {
        c if c.is_whitespace() || c.is_control() || c == ',' => '_',
        c => c,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(
        content_type: &str,
        bytes: &[u8],
        encoding: &str,
        source: CharsetSource,
    ) -> Vec<String> {
        let hints = CharsetHints {
            content_type: Some(content_type),
            host: Some("www.example.com"),
        };
        let charset = decide(hints, bytes);
        assert_eq!(
            (charset.encoding.name(), charset.source),
            (encoding, source)
        );
        charset.annotations
    }

    use CharsetSource::{ByteOrderMark, Detected, Document, Format as ByFormat, Header};

    #[test]
    fn a_byte_order_mark_goes_first() {
        check(
            "text/html; charset=iso-8859-1",
            b"\xef\xbb\xbf<meta charset=gbk>",
            "UTF-8",
            ByteOrderMark,
        );
        check("text/html", b"\xff\xfea\0", "UTF-16LE", ByteOrderMark);
        check("text/html", b"\xfe\xff\0a", "UTF-16BE", ByteOrderMark);
    }

    #[test]
    fn the_content_type_header_goes_second() {
        for header in [
            "text/html; charset=ISO-8859-2",
            "text/html;Charset = \"latin2\"",
            "text/html; a=b; charset='l2'; c",
        ] {
            check(header, b"x", "ISO-8859-2", Header);
        }
        let notes = check(
            "text/html; charset=utf-8",
            b"<meta charset=latin2>",
            "UTF-8",
            Header,
        );
        assert_eq!(notes, ["inconsistentCharsetInHTML:latin2"]);
        let notes = check(
            "text/html; charset=nonsense, x",
            b"<meta charset=latin2>",
            "ISO-8859-2",
            Document,
        );
        assert_eq!(
            notes,
            [
                "unsatisfiableCharsetInHeader:nonsense__x",
                "usingCharsetInHTML:latin2"
            ]
        );
    }

    #[test]
    fn declarations_in_documents_are_found() {
        for html in [
            "<!doctype html><html a='>'><META CharSet = \"koi8-r\">",
            "<meta/charset=koi8-r>",
            "<meta name=x><meta content='text/html; charset=koi8-r' http-equiv=Content-Type>",
            "<meta http-equiv=\"content-type\" content=\"text/html; charset is charset = 'KOI8-R'\">",
            "<!-- <meta charset=gbk> --><meta charset=koi8-r>",
            "<!--><meta charset=koi8-r>",
            "<a b=\"<meta charset=gbk>\"><meta charset=koi8-r>",
            "<? <meta charset=gbk><meta charset=koi8-r>",
            "</ <meta charset=gbk><meta charset=koi8-r>",
            "< meta <metas charset=gbk><meta charset=koi8-r>",
            "<?xml version='1.0' encoding='koi8-r'?><html>",
        ] {
            check("text/html", html.as_bytes(), "KOI8-R", Document);
        }
        check("text/html", b"<meta charset=utf-16>", "UTF-8", Document);
        check(
            "text/html",
            b"<meta charset=x-user-defined>",
            "windows-1252",
            Document,
        );
        check(
            "text/html",
            b"<meta content='charset=gbk'>",
            "UTF-8",
            Detected,
        );
        check(
            "application/rss+xml",
            b"<?xml version=\"1.0\" encoding = \"koi8-r\" ?>",
            "KOI8-R",
            Document,
        );
        check("text/css", b"@charset \"koi8-r\";", "KOI8-R", Document);
        check("text/css", b" @charset \"koi8-r\";", "UTF-8", Detected);
        check("", b" <html><meta charset=koi8-r>", "KOI8-R", Document);
        let late = [&[b' '; PRESCAN_BYTES_MAX][..], b"<meta charset=koi8-r>"].concat();
        check("text/html", &late, "UTF-8", Detected);
    }

    #[test]
    fn some_formats_have_a_fixed_or_default_encoding() {
        check("application/json", b"{}", "UTF-8", ByFormat);
        check("text/xml", b"<a/>", "UTF-8", ByFormat);
        check("text/xml", b"<\0?\0x\0m\0l\0", "UTF-16LE", ByFormat);
        check("text/xml", b"\0<\0?\0x\0m\0l", "UTF-16BE", ByFormat);
    }

    #[test]
    fn undeclared_encodings_are_detected_from_the_bytes() {
        check(
            "text/html",
            "\u{e9}t\u{e9} \u{2014} na\u{ef}ve".as_bytes(),
            "UTF-8",
            Detected,
        );
        check(
            "text/html",
            b"caf\xe9 cr\xe8me br\xfbl\xe9e \xe0 la carte, d\xe9j\xe0 vu",
            "windows-1252",
            Detected,
        );
        let (russian, _, _) = encoding_rs::KOI8_R.encode("\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43c}\u{438}\u{440}. \u{42d}\u{442}\u{43e} \u{43f}\u{440}\u{43e}\u{441}\u{442}\u{43e} \u{442}\u{435}\u{43a}\u{441}\u{442} \u{43d}\u{430} \u{440}\u{443}\u{441}\u{441}\u{43a}\u{43e}\u{43c}.");
        check("text/plain", &russian, "KOI8-U", Detected);
        let cut = [vec![b'a'; DETECT_BYTES_MAX - 1], "\u{e9}".into()].concat();
        check("text/plain", &cut, "UTF-8", Detected);
    }

    #[test]
    fn decoding_removes_the_byte_order_mark() {
        let bytes = b"\xef\xbb\xbfa\xff";
        let charset = decide(CharsetHints::default(), bytes);
        assert_eq!(charset.decode(bytes), "a\u{fffd}");
        assert_eq!(charset.label(), "utf-8");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn nothing_panics(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec!["<meta", " charset", "=", "'", "\"", ">", "<!--", "-->", "content", "http-equiv", "/", "<?xml encoding", " "])
                        .prop_map(|s| s.as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 0..4),
                ],
                0..30,
            ),
            content_type in "(text/(html|css|xml)|application/json)?[;= charset\"'a\u{e9}]{0,12}",
            host in ".{0,10}",
        ) {
            let bytes = parts.concat();
            let hints = CharsetHints { content_type: Some(&content_type), host: Some(&host) };
            let _ = decide(hints, &bytes).decode(&bytes);
        }
    }
}
