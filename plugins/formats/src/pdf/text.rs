//! Finds URIs in the text of PDF pages (PDF 32000-1 §9.4).
//!
//! The layout is not computed: strings on one line are joined, and a move to another line separates them. The fonts of single
//! pages are not known. If several fonts of the document are named `F1`, the text is decoded with each of them. Text in a wrong
//! font does not give URIs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use opilio_plugin::{Hop, Link};

use super::objects::Objects;
use crate::{Results, reference};

/// Most character tables kept for one document, and most entries of all of them.
const TABLES_MAX: usize = 256;
const TABLE_ENTRIES_MAX: usize = 1_000_000;

/// Most fonts kept for one name, and most character tables with which one string is decoded.
const FONTS_PER_NAME_MAX: usize = 16;
const DECODINGS_MAX: usize = 4;

/// Longest line of text, in bytes; the rest is dropped.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The fonts of a document, and their character tables.
#[derive(Debug)]
pub(super) struct Fonts {
    /// Object numbers of fonts, by their name in pages.
    by_name: HashMap<Vec<u8>, Vec<u32>>,
    /// Object number of a font's character table, by the object number of the font.
    tables_of: HashMap<u32, u32>,
    /// Object numbers of tables that have not been read.
    unread: HashSet<u32>,
    /// Tables, by their object number.
    tables: HashMap<u32, Table>,
    entries_left: usize,
}

/// A character table: the characters of a font's codes (`ToUnicode`, §9.10.3).
#[derive(Debug, Default)]
struct Table {
    /// Length of a code in bytes.
    width: usize,
    characters: HashMap<u16, String>,
}

/// The possible decodings of a string whose font is known by name only.
#[derive(Debug, Default)]
struct Decodings<'a> {
    tables: Vec<&'a Table>,
    /// `true` if one of the fonts has no table, so that its bytes are characters.
    is_plain: bool,
}

impl Fonts {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        Self {
            by_name: HashMap::new(),
            tables_of: HashMap::new(),
            unread: HashSet::new(),
            tables: HashMap::new(),
            entries_left: TABLE_ENTRIES_MAX,
        }
    }

    /// Adds the fonts among the objects of the file or of a stream.
    pub(super) fn add_from(&mut self, bytes: &[u8], objects: &Objects) {
        let mut read_before = HashSet::new();
        // `/Font << /F1 5 0 R /F2 6 0 R >>`, or a reference to an object with such a dictionary.
        for at in memchr::memmem::find_iter(bytes, b"/Font") {
            let after = bytes[at + 5..].trim_ascii_start();
            let dictionary = match after {
                [b'<', b'<', inner @ ..] => inner,
                _ => {
                    let number = reference_at(after).filter(|number| read_before.insert(*number));
                    let start = number.and_then(|number| objects.start(number));
                    match start.map(|start| bytes[start..].trim_ascii_start()) {
                        Some([b'<', b'<', inner @ ..]) => inner,
                        _ => continue,
                    }
                }
            };
            self.add_names(dictionary);
        }
        // An object with `/ToUnicode` is a font.
        for at in memchr::memmem::find_iter(bytes, b"/ToUnicode") {
            if let Some(font) = objects.number_at(at)
                && let Some(table) = reference_at(&bytes[at + 10..])
            {
                self.tables_of.insert(font, table);
                self.unread.insert(table);
            }
        }
    }

    /// Adds the names of fonts in a dictionary.
    fn add_names(&mut self, dictionary: &[u8]) {
        /// Most fonts of one dictionary.
        const FONTS_MAX: usize = 200;
        let mut rest = dictionary;
        for _ in 0..FONTS_MAX {
            let [b'/', after @ ..] = rest.trim_ascii_start() else {
                return;
            };
            let (name, after) = word(after);
            let (Some(number), Some(end)) = (reference_at(after), memchr::memchr(b'R', after))
            else {
                return;
            };
            let fonts = self.by_name.entry(name.to_vec()).or_default();
            if fonts.len() < FONTS_PER_NAME_MAX && !fonts.contains(&number) {
                fonts.push(number);
            }
            rest = &after[end + 1..];
        }
    }

    /// Returns `true` if this object is a character table that has not been read.
    pub(super) fn is_table(&self, number: u32) -> bool {
        self.unread.contains(&number)
    }

    /// Reads a character table: `beginbfchar` and `beginbfrange` of a `ToUnicode` stream.
    pub(super) fn read_table(&mut self, number: u32, content: &[u8]) {
        self.unread.remove(&number);
        if self.tables.len() >= TABLES_MAX {
            return;
        }
        let mut table = Table {
            width: 1,
            characters: HashMap::new(),
        };
        for inner in sections(content, b"begincodespacerange", b"endcodespacerange") {
            table.width = hex(inner).map_or(1, |(code, _)| code.len().clamp(1, 2));
        }
        for inner in sections(content, b"beginbfchar", b"endbfchar") {
            table.add_singles(inner, &mut self.entries_left);
        }
        for inner in sections(content, b"beginbfrange", b"endbfrange") {
            table.add_ranges(inner, &mut self.entries_left);
        }
        self.tables.insert(number, table);
    }

    /// Returns the possible decodings of strings in the fonts of this name.
    fn decodings(&self, font: &[u8]) -> Decodings<'_> {
        let mut decodings = Decodings::default();
        for number in self.by_name.get(font).into_iter().flatten() {
            let table = self.tables_of.get(number);
            match table.and_then(|table| self.tables.get(table)) {
                Some(table) if decodings.tables.len() < DECODINGS_MAX => {
                    decodings.tables.push(table);
                }
                Some(_) => {}
                None => decodings.is_plain = true,
            }
        }
        decodings.is_plain |= decodings.tables.is_empty();
        decodings
    }
}

/// Returns the sections between `begin` and `end`. The last one may have no end.
fn sections<'a>(content: &'a [u8], begin: &[u8], end: &[u8]) -> Vec<&'a [u8]> {
    let mut sections = Vec::new();
    let mut rest = content;
    while let Some(at) = memchr::memmem::find(rest, begin) {
        let inner = &rest[at + begin.len()..];
        let length = memchr::memmem::find(inner, end).unwrap_or(inner.len());
        sections.push(&inner[..length]);
        rest = &inner[length..];
    }
    sections
}

impl Table {
    /// Reads `<0003> <0020>`: code and character.
    fn add_singles(&mut self, mut inner: &[u8], entries_left: &mut usize) {
        while *entries_left > 0
            && let Some((code, rest)) = hex(inner)
            && let Some((text, rest)) = hex(rest)
        {
            *entries_left -= 1;
            inner = rest;
            self.characters.insert(number(&code), utf16(&text));
        }
    }

    /// Reads ranges of codes: `<0041> <005A> <0041>` with the first character, `<0041> <0043> [<0041> <0042> <0043>]` with all
    /// characters.
    fn add_ranges(&mut self, mut inner: &[u8], entries_left: &mut usize) {
        while let Some((first, rest)) = hex(inner)
            && let Some((last, rest)) = hex(rest)
        {
            let codes = number(&first)..=number(&last);
            inner = match rest.trim_ascii_start() {
                [b'[', list @ ..] => {
                    let mut rest = list;
                    for code in codes {
                        let Some((text, after)) = hex(rest).filter(|_| *entries_left > 0) else {
                            break;
                        };
                        *entries_left -= 1;
                        rest = after;
                        self.characters.insert(code, utf16(&text));
                    }
                    let end = memchr::memchr(b']', rest).map_or(rest.len(), |at| at + 1);
                    &rest[end..]
                }
                _ => {
                    let Some((mut text, after)) = hex(rest) else {
                        return;
                    };
                    for code in codes.take(*entries_left) {
                        *entries_left -= 1;
                        self.characters.insert(code, utf16(&text));
                        if let Some(last) = text.last_mut() {
                            *last = last.wrapping_add(1);
                        }
                    }
                    after
                }
            };
        }
    }

    fn decode(&self, string: &[u8]) -> String {
        let mut text = String::new();
        for code in string.chunks(self.width) {
            match self.characters.get(&number(code)) {
                Some(characters) => text.push_str(characters),
                // Tables with codes of one byte omit codes that are their own character.
                None if self.width == 1 => text.push(char::from(code[0])),
                None => text.push('\u{FFFD}'),
            }
        }
        text
    }
}

impl Decodings<'_> {
    fn decode(&self, string: &[u8]) -> Vec<String> {
        let plain = || string.iter().map(|byte| char::from(*byte)).collect();
        let tables = self.tables.iter().map(|table| table.decode(string));
        tables.chain(self.is_plain.then(plain)).collect()
    }
}

/// Reports the URIs in the text of a page or of a form on it, except those in `seen`, and adds them to `seen`.
pub(super) fn report_uris(
    content: &[u8],
    fonts: &Fonts,
    seen: &mut BTreeSet<String>,
    found: &mut Results,
) {
    let mut reader = Reader {
        fonts,
        decodings: fonts.decodings(b""),
        lines: vec![String::new()],
        height: None,
        seen,
        found,
    };
    let mut rest = content;
    // The operands of the next operator, and the strings that it shows.
    let mut operands: Vec<&[u8]> = Vec::new();
    let mut strings: Vec<TextItem> = Vec::new();
    while let Some((&first, after)) = rest.trim_ascii_start().split_first() {
        let start = rest.trim_ascii_start();
        rest = match first {
            b'(' => {
                let (string, read) = super::literal(after);
                strings.extend(string.map(TextItem::String));
                after.get(read..).unwrap_or_default()
            }
            b'<' if after.first() != Some(&b'<') => {
                let (string, read) = super::hexadecimal(after);
                strings.extend(string.map(TextItem::String));
                after.get(read..).unwrap_or_default()
            }
            b'%' => &after[memchr::memchr2(b'\n', b'\r', after).unwrap_or(after.len())..],
            b'[' | b']' | b'<' | b'>' | b'{' | b'}' | b')' => after,
            b'/' => {
                let (name, after) = word(after);
                operands.clear();
                operands.push(name);
                after
            }
            _ => {
                let (token, after) = word(start);
                if token.is_empty() {
                    // A byte that does not begin a token.
                    rest = &start[1..];
                    continue;
                }
                if matches!(first, b'0'..=b'9' | b'-' | b'+' | b'.') {
                    // A gap between strings in thousandths of the font size; a large one is a blank.
                    if number_of(token).is_some_and(|gap| gap < -180.0) && !strings.is_empty() {
                        strings.push(TextItem::Gap);
                    }
                    if operands.len() > 8 {
                        operands.remove(0);
                    }
                    operands.push(token);
                } else {
                    reader.operator(token, &operands, &mut strings);
                    operands.clear();
                    strings.clear();
                    // Continues after the data of an inline image.
                    if token == b"ID" {
                        rest = memchr::memmem::find(after, b"EI")
                            .map_or(&[][..], |at| &after[at + 2..]);
                        continue;
                    }
                }
                after
            }
        };
        if reader.found.is_full() {
            return;
        }
    }
    reader.end_line();
}

/// An element of a line of text.
enum TextItem {
    String(Vec<u8>),
    /// A blank.
    Gap,
}

struct Reader<'a> {
    fonts: &'a Fonts,
    /// The decodings in the current font.
    decodings: Decodings<'a>,
    /// The current line, in each of its decodings.
    lines: Vec<String>,
    /// The vertical position of the line, if known.
    height: Option<f64>,
    seen: &'a mut BTreeSet<String>,
    found: &'a mut Results,
}

impl Reader<'_> {
    fn operator(&mut self, operator: &[u8], operands: &[&[u8]], strings: &mut Vec<TextItem>) {
        let operand = |from_last: usize| {
            let at = operands.len().checked_sub(from_last)?;
            operands.get(at).copied().and_then(number_of)
        };
        match operator {
            b"Tf" => {
                if let Some(name) = operands.first() {
                    self.decodings = self.fonts.decodings(name);
                }
            }
            b"Tj" | b"TJ" => self.show(strings),
            b"'" | b"\"" => {
                self.end_line();
                self.show(strings);
            }
            b"Td" | b"TD" => {
                if operand(1).is_some_and(|down| down != 0.0) {
                    self.end_line();
                } else {
                    self.push(" ");
                }
            }
            b"Tm" => {
                let height = operand(1);
                if height == self.height {
                    self.push(" ");
                } else {
                    self.end_line();
                }
                self.height = height;
            }
            b"T*" | b"ET" | b"BT" => {
                self.end_line();
                self.height = None;
            }
            _ => {}
        }
    }

    /// Adds strings and gaps to the current line.
    fn show(&mut self, strings: &mut Vec<TextItem>) {
        for item in strings.drain(..) {
            match item {
                TextItem::Gap => self.push(" "),
                TextItem::String(string) => {
                    let decoded = self.decodings.decode(&string);
                    // A line in several fonts has as many decodings as the font with the most.
                    while self.lines.len() < decoded.len() {
                        self.lines.push(self.lines[0].clone());
                    }
                    for (at, line) in self.lines.iter_mut().enumerate() {
                        let text = decoded.get(at).or(decoded.first());
                        if line.len() < LINE_BYTES_MAX {
                            line.push_str(text.map_or("", String::as_str));
                        }
                    }
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        for line in &mut self.lines {
            if line.len() < LINE_BYTES_MAX && !line.is_empty() {
                line.push_str(text);
            }
        }
    }

    /// Ends the current line, and reports its URIs. A URI at the end of the line may continue on the next one. It is dropped if
    /// its last character suggests that, or if it is the beginning of a URI in `seen`.
    fn end_line(&mut self) {
        for line in &self.lines {
            for uri in reference::uris_in(line) {
                let is_at_end = line.trim_end().ends_with(uri);
                let continues = || {
                    uri.ends_with(['-', '_', '=', '&', '?', '%', '+'])
                        || is_beginning_of_known(uri, self.seen)
                };
                let is_cut = is_at_end && continues();
                if !is_cut && !self.seen.contains(uri) {
                    self.seen.insert(uri.to_owned());
                    self.found
                        .push(Link::new(uri, Hop::Speculative, "pdf/text"));
                }
            }
        }
        self.lines.truncate(1);
        self.lines[0].clear();
    }
}

/// Returns `true` if a URI in `known` begins with this one, which ends within a name or with a slash.
fn is_beginning_of_known(uri: &str, known: &BTreeSet<String>) -> bool {
    let longer = known.range::<str, _>((Bound::Excluded(uri), Bound::Unbounded));
    let rest = longer.take(1).find_map(|longer| longer.strip_prefix(uri));
    rest.is_some_and(|rest| uri.ends_with('/') || !rest.starts_with(['/', '?', '#']))
}

/// Splits off the text up to a blank or a delimiter.
fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                0 | b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
            )
    });
    bytes.split_at(end.unwrap_or(bytes.len()))
}

fn number_of(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// Returns the object number in a reference such as `12 0 R`.
fn reference_at(bytes: &[u8]) -> Option<u32> {
    let (first, rest) = word(bytes.trim_ascii_start());
    let (second, rest) = word(rest.trim_ascii_start());
    let (letter, _) = word(rest.trim_ascii_start());
    if letter != b"R" || !second.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(first).ok()?.parse().ok()
}

/// Reads the next string of hexadecimal digits. Returns its bytes, and the rest.
fn hex(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"<")?;
    let (string, read) = super::hexadecimal(rest);
    Some((string?, rest.get(read..)?))
}

/// Returns the number of a code of one or two bytes.
fn number(code: &[u8]) -> u16 {
    code.iter()
        .take(2)
        .fold(0, |number, byte| number << 8 | u16::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks(2).map(number).collect();
    String::from_utf16_lossy(&units)
}
