//! The `pdf` extractor: targets of annotations and actions in PDF documents.
//!
//! The file is searched, not parsed, so the order of objects and damaged parts do not matter. An action that opens a URI
//! contains `/URI (…)`, in the file itself or in an object stream (PDF 32000-1 §7.5.7), which is unpacked first. The text of
//! pages is searched for URIs. The strings of encrypted files are not decrypted, so such files give no links.

mod objects;
mod text;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::ZlibDecoder;
use opilio_plugin::prelude::*;

use self::objects::Objects;
use self::text::Fonts;
use crate::{Results, reference};

/// Most bytes of a file to search. Actions are mostly at its end, so the end of a longer file is read as well.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most unpacked bytes of one stream, and of all streams with one use.
const STREAM_BYTES_MAX: u64 = 4 * 1024 * 1024;
const STREAMS_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Most streams to examine.
const STREAMS_MAX: usize = 50_000;

/// Longest distance from the start of a dictionary to its stream, in bytes.
const DICTIONARY_BYTES_MAX: usize = 1_024;

/// Longest string to read, in bytes.
const STRING_BYTES_MAX: usize = 16 * 1024;

/// Settings of the `pdf` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report URIs in the text of pages, which are not clickable (hop X).
    #[schemars(extend("x-opilio-overridable" = true))]
    pub text: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { text: true }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Pdf {
    settings: Settings,
}

impl Plugin for Pdf {
    const NAME: &'static str = "pdf";
    const SUMMARY: &'static str = "Links in PDF documents";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/pdf",
            "application/x-pdf",
            "application/octet-stream",
        ])
    }
}

impl Extractor for Pdf {
    fn extract(&self, document: &Document) -> Extraction {
        // PDF viewers accept the signature anywhere in the first kilobyte.
        let is_pdf = memchr::memmem::find(&document.read(0, 1024), b"%PDF-").is_some();
        if document.fragment().is_some() || !is_pdf {
            return Extraction::default();
        }
        let mut found = Results::default();
        let mut problem = None;
        let mut read = |from: u64, found: &mut Results| {
            let bytes = document.read(from, FILE_BYTES_MAX as u32);
            let is_encrypted = memchr::memmem::find(&bytes, b"/Encrypt").is_some();
            if is_encrypted {
                problem = Some("the document is encrypted".to_owned());
            }
            search_actions(&bytes, found);
            search_streams(&bytes, self.settings.text && !is_encrypted, found);
        };
        read(0, &mut found);
        if document.length() > FILE_BYTES_MAX {
            let end = document.length().saturating_sub(FILE_BYTES_MAX);
            read(end.max(FILE_BYTES_MAX), &mut found);
        }
        found.into_extraction(problem)
    }
}

/// Finds the URIs of actions: `/URI (…)`, `/F (…)` with a URI, URIs in scripts.
fn search_actions(bytes: &[u8], found: &mut Results) {
    for (key, context) in [
        (&b"/URI"[..], "pdf/URI"),
        (b"/F", "pdf/F"),
        (b"/JS", "pdf/JS"),
    ] {
        let finder = memchr::memmem::Finder::new(key);
        let mut from = 0;
        while let Some(at) = finder.find(&bytes[from..]) {
            from += at + key.len();
            let (value, read) = string(&bytes[from..]);
            // Continues after the bytes read, so that a string without an end is read only once.
            from += read;
            let Some(value) = value else { continue };
            match context {
                "pdf/URI" => found.push(Link::new(value, Hop::Link, context)),
                "pdf/F" if reference::is_public_uri(&value) => {
                    found.push(Link::new(value, Hop::Link, context));
                }
                "pdf/JS" => {
                    for uri in reference::uris_in(&value) {
                        found.push(Link::new(uri, Hop::Speculative, context));
                    }
                }
                _ => {}
            }
        }
    }
}

/// A stream in the file.
struct Stream<'a> {
    /// Number of its object; `None` if unknown.
    number: Option<u32>,
    dictionary: &'a [u8],
    /// The bytes from its start to the end of the file.
    content: &'a [u8],
}

/// The use of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Objects,
    /// Perhaps page content, or a character table.
    Text,
    /// Not read.
    Other,
}

/// Unpacks and searches object streams, then the text of pages.
fn search_streams(bytes: &[u8], with_text: bool, found: &mut Results) {
    let file_objects = Objects::of_file(bytes);
    let mut fonts = Fonts::new();
    if with_text {
        fonts.add_from(bytes, &file_objects);
    }
    let mut texts = Vec::new();
    let mut left = STREAMS_BYTES_MAX;
    for at in memchr::memmem::find_iter(bytes, b"stream").take(STREAMS_MAX) {
        let before = &bytes[at.saturating_sub(DICTIONARY_BYTES_MAX)..at];
        let dictionary = memchr::memmem::rfind(before, b"obj").map_or(before, |at| &before[at..]);
        let content = &bytes[at + b"stream".len()..];
        let content = content.strip_prefix(b"\r").unwrap_or(content);
        let content = content.strip_prefix(b"\n").unwrap_or(content);
        let stream = Stream {
            number: file_objects.number_at(at),
            dictionary,
            content,
        };
        match stream.usage() {
            Use::Objects => {
                let objects = stream.unpack(&mut left);
                search_actions(&objects, found);
                if with_text {
                    fonts.add_from(&objects, &Objects::of_stream(&objects, dictionary));
                }
            }
            Use::Text if with_text => texts.push(stream),
            Use::Text | Use::Other => {}
        }
    }
    let mut left = STREAMS_BYTES_MAX;
    for stream in &texts {
        if let Some(number) = stream.number.filter(|number| fonts.is_table(*number)) {
            fonts.read_table(number, &stream.unpack(&mut left));
        }
    }
    let mut seen: BTreeSet<String> = found.links.iter().map(|link| link.uri.clone()).collect();
    let mut left = STREAMS_BYTES_MAX;
    for stream in &texts {
        let content = stream.unpack(&mut left);
        if memchr::memmem::find(&content, b"BT").is_some() {
            text::report_uris(&content, &fonts, &mut seen, found);
        }
        if left == 0 || found.is_full() {
            return;
        }
    }
}

impl Stream<'_> {
    /// Returns `true` if the dictionary contains the name.
    fn has(&self, name: &str) -> bool {
        memchr::memmem::find(self.dictionary, name.as_bytes()).is_some()
    }

    fn usage(&self) -> Use {
        /// Names in the dictionaries of images, fonts, colour profiles, metadata and object tables, and names of other filters.
        const OTHERS: [&str; 16] = [
            "/Image",
            "/Length1",
            "/Type1C",
            "/CIDFontType0C",
            "/OpenType",
            "/Metadata",
            "/XRef",
            "/EmbeddedFile",
            "/FunctionType",
            "/ShadingType",
            "/Alternate",
            "/LZWDecode",
            "/ASCII85Decode",
            "/ASCIIHexDecode",
            "/RunLengthDecode",
            "/Crypt",
        ];
        // The search for `stream` also finds `endstream`, which does not follow a dictionary.
        if !self.dictionary.trim_ascii_end().ends_with(b">>") {
            Use::Other
        } else if self.has("/ObjStm") && self.has("/FlateDecode") {
            Use::Objects
        } else if self.has("/ObjStm") || OTHERS.iter().any(|name| self.has(name)) {
            Use::Other
        } else {
            Use::Text
        }
    }

    /// Returns the content, at most `left` bytes, and subtracts its length from `left`. Content ends at the first error.
    fn unpack(&self, left: &mut u64) -> Cow<'_, [u8]> {
        let max = (*left).min(STREAM_BYTES_MAX);
        let content = if self.has("/FlateDecode") {
            let mut unpacked = Vec::new();
            // The content before an error is searched too.
            let _ = ZlibDecoder::new(self.content)
                .take(max)
                .read_to_end(&mut unpacked);
            Cow::Owned(unpacked)
        } else {
            let content = &self.content[..self.content.len().min(max as usize)];
            let end = memchr::memmem::find(content, b"endstream").unwrap_or(content.len());
            Cow::Borrowed(&content[..end])
        };
        *left -= content.len() as u64;
        content
    }
}

/// Returns the next string as text (§7.3.4, §7.9.2.2), and the number of bytes read.
fn string(bytes: &[u8]) -> (Option<String>, usize) {
    let bytes = &bytes[..bytes.len().min(STRING_BYTES_MAX)];
    let start = bytes.trim_ascii_start();
    let blanks = bytes.len() - start.len();
    let (raw, read) = match start {
        [b'(', rest @ ..] => literal(rest),
        [b'<', b'<', ..] => (None, 0),
        [b'<', rest @ ..] => hexadecimal(rest),
        _ => (None, 0),
    };
    (raw.map(decode), blanks + read)
}

/// Decodes UTF-16 with a byte order mark, UTF-8 if valid, or else PDFDocEncoding, which is nearly ISO-8859-1.
fn decode(raw: Vec<u8>) -> String {
    match raw.strip_prefix(b"\xFE\xFF") {
        Some(utf16) => {
            let units: Vec<u16> = utf16
                .chunks_exact(2)
                .map(|two| u16::from_be_bytes([two[0], two[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        None => String::from_utf8(raw).unwrap_or_else(|error| {
            error
                .as_bytes()
                .iter()
                .map(|&byte| char::from(byte))
                .collect()
        }),
    }
}

/// Reads a string in parentheses, after the first. Balanced pairs need no escape. The string is `None` if it has no end.
fn literal(bytes: &[u8]) -> (Option<Vec<u8>>, usize) {
    let mut string = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b')' if depth == 0 => return (Some(string), at),
            b'\\' => at += read_escape(&bytes[at..], &mut string),
            _ => {
                depth += usize::from(byte == b'(');
                depth -= usize::from(byte == b')');
                string.push(byte);
            }
        }
    }
    (None, at)
}

/// Reads the escape after a backslash. Returns its length.
fn read_escape(bytes: &[u8], string: &mut Vec<u8>) -> usize {
    match bytes {
        [b'\r', b'\n', ..] => return 2,
        [b'\r' | b'\n', ..] | [] => return bytes.len().min(1),
        [b'n', ..] => string.push(b'\n'),
        [b'r', ..] => string.push(b'\r'),
        [b't', ..] => string.push(b'\t'),
        [b'0'..=b'7', ..] => {
            let digits = bytes
                .iter()
                .take(3)
                .take_while(|digit| matches!(digit, b'0'..=b'7'))
                .count();
            let code = bytes[..digits]
                .iter()
                .fold(0u32, |code, digit| code * 8 + u32::from(digit - b'0'));
            // The high bit of three digits is ignored.
            string.push((code & 0xFF) as u8);
            return digits;
        }
        [other, ..] => string.push(*other),
    }
    1
}

/// Reads a string of hexadecimal digits, after its `<`. The string is `None` if it is invalid or has no end.
fn hexadecimal(bytes: &[u8]) -> (Option<Vec<u8>>, usize) {
    let Some(end) = memchr::memchr(b'>', bytes) else {
        return (None, bytes.len());
    };
    let digits = bytes[..end]
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace());
    let digits: Option<Vec<u8>> = digits
        .map(|&byte| Some(char::from(byte).to_digit(16)? as u8))
        .collect();
    // A missing last digit counts as zero.
    let string = digits.map(|digits| {
        let pairs = digits.chunks(2);
        pairs
            .map(|pair| pair[0] * 16 + pair.get(1).unwrap_or(&0))
            .collect()
    });
    (string, end + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use opilio_plugin::testing::document;
    use proptest::prelude::*;

    use super::*;

    fn extract(bytes: &[u8]) -> Extraction {
        let document = document("http://e.org/x.pdf")
            .media_type("application/pdf")
            .bytes(bytes);
        let plugin = Pdf::new(Settings::default()).unwrap();
        plugin.extract(&document)
    }

    #[track_caller]
    fn check(body: &[u8], expected: &[&str]) {
        let extraction = extract(&[b"%PDF-1.7\n", body].concat());
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| link.uri.as_str())
            .collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(body));
    }

    /// Returns a packed object stream.
    fn objects(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        [
            b"1 0 obj\n<</Type/ObjStm/N 1/First 0/Filter/FlateDecode/Length 99>>\nstream\r\n",
            encoder.finish().unwrap().as_slice(),
            b"\nendstream\nendobj",
        ]
        .concat()
    }

    #[test]
    fn uris_of_actions() {
        check(
            b"<</S/URI/URI(http://e.org/a)>> <</S /URI /URI (http://e.org/b\\(c\\)\\144)>> /URI(http://e.org/(e))",
            &["http://e.org/a", "http://e.org/b(c)d", "http://e.org/(e)"],
        );
        check(b"/URI <687474703a2f2f652e6f7267 2f>", &["http://e.org/"]);
        check(
            b"/URI(\xFE\xFF\0h\0t\0t\0p\0:\0/\0/\0e\0.\0o\0r\0g)",
            &["http://e.org"],
        );
        check(b"/URI (http://e.org/\\\r\nf)", &["http://e.org/f"]);
        check(
            b"<</FS/URL/F(http://e.org/g)>> /F (h.pdf) /Font 1",
            &["http://e.org/g"],
        );
        check(
            b"/JS (app.launchURL\\(\"http://e.org/i\"\\))",
            &["http://e.org/i"],
        );
        check(b"/URI (mailto:a@e.org) /URI 5 0 R /URI (unfinished", &[]);
    }

    #[test]
    fn object_streams_are_unpacked() {
        check(
            &objects(b"<</S/URI/URI(http://e.org/a)>>"),
            &["http://e.org/a"],
        );
        let mut truncated = objects(&b"<</S/URI/URI(http://e.org/a)>>".repeat(100));
        truncated.truncate(110);
        extract(&[b"%PDF-1.7\n", truncated.as_slice()].concat());
    }

    /// Returns the packed content of a page, after other content of the file.
    fn page(rest: &str, content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        [
            rest.as_bytes(),
            b"\n9 0 obj\n<</Filter/FlateDecode/Length 99>>\nstream\n",
            encoder.finish().unwrap().as_slice(),
            b"\nendstream\nendobj",
        ]
        .concat()
    }

    #[test]
    fn uris_in_the_text_of_pages() {
        check(
            &page(
                "/URI(http://e.org/seen)",
                b"BT /F1 9 Tf 1 0 0 1 72 700 Tm (See http://e.or)Tj (g/a, and)Tj 0 -12 Td [(ht)20(tp://e.org/)-15(b)-333(or)]TJ \
                  T* (http://e.org/seen) Tj ET",
            ),
            &["http://e.org/seen", "http://e.org/a", "http://e.org/b"],
        );
        // Two lines are not joined to one URI. A URI that may continue on the next line is not reported.
        check(
            &page(
                "",
                b"BT (http://e.org/c) Tj 0 -9 TD (more) Tj (http://e.org/d-) ' (e) ' ET",
            ),
            &["http://e.org/c"],
        );
        // A URI that is also a link, broken over two lines.
        check(
            &page(
                "/URI(http://e.org/long/name)",
                b"BT (http://e.org/lo) Tj T* (ng/name) Tj T* (http://e.org/long/) Tj T* (http://e.org) Tj ET",
            ),
            &["http://e.org/long/name", "http://e.org"],
        );
        // Images and comments are not searched.
        check(
            b"8 0 obj <</Subtype/Image>> stream\nBT (http://e.org/) Tj ET\nendstream \
              8 0 obj <<>> stream\nBT % (http://e.org/f) Tj\n(http://e.org/g)Tj ET\nendstream",
            &["http://e.org/g"],
        );
    }

    #[test]
    fn text_in_fonts_with_character_tables() {
        let fonts = "3 0 obj <</Font 4 0 R>> endobj 4 0 obj <</F1 5 0 R /F2 6 0 R>> endobj \
             5 0 obj <</Type/Font/ToUnicode 7 0 R>> endobj 6 0 obj <</Type/Font>> endobj \
             7 0 obj <</Length 1>> stream\n1 begincodespacerange <0000> <FFFF> endcodespacerange \
             2 beginbfrange <0001> <001A> <0061> <0020> <0022> [<003A> <002F> <002E>] endbfrange \
             1 beginbfchar <0030> <00660066> endbfchar\nendstream endobj";
        // http://e.org/ff
        check(
            &page(
                fonts,
                b"BT /F1 9 Tf <00080014001400100020002100210005002 2000F0012000700210030> Tj ET",
            ),
            &["http://e.org/ff"],
        );
        check(
            &page(fonts, b"BT /F2 9 Tf (http://e.org/plain) Tj ET"),
            &["http://e.org/plain"],
        );
    }

    #[test]
    fn the_setting_text_turns_off_uris_in_text() {
        let file = [
            b"%PDF-1.7\n",
            page("", b"BT (http://e.org/a) Tj ET").as_slice(),
        ]
        .concat();
        let document = document("http://e.org/x.pdf").bytes(&file);
        let plugin = Pdf::new(Settings { text: false }).unwrap();
        assert_eq!(plugin.extract(&document).links, []);
    }

    #[test]
    fn other_documents_are_ignored() {
        assert_eq!(extract(b"/URI(http://e.org/)"), Extraction::default());
    }

    #[test]
    fn encrypted_documents_have_a_problem() {
        assert!(extract(b"%PDF-1.7 /Encrypt 5 0 R").problem.is_some());
    }

    #[test]
    fn bombs_are_unpacked_to_the_limit() {
        let bomb = objects(&vec![b' '; 5 * 1024 * 1024]);
        extract(&[b"%PDF-1.7\n", bomb.repeat(20).as_slice()].concat());
        extract(&[b"%PDF-1.7\n", b"/URI(".repeat(100_000).as_slice()].concat());
        let pages = page("", &b"BT (a) Tj ET ".repeat(400_000));
        extract(&[b"%PDF-1.7\n", pages.repeat(20).as_slice()].concat());
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            extract(&[b"%PDF-1.7\n", body.as_slice()].concat());
            let _ = string(&body);
        }

        #[test]
        fn any_string_is_accepted(body in "[()<>\\\\0-9a-f]{0,40}") {
            let _ = string(body.as_bytes());
        }
    }
}
