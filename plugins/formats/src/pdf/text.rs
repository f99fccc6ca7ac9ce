//! Text of PDF pages, for finding URIs (PDF 32000-1 §9.4).
//!
//! There is no layout: strings on one line are joined, and a move to another line separates them. Fonts are not resolved by
//! page. If several fonts of the document are named `F1`, the text is read with each of them; wrong readings do not give URIs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use opilio_plugin::{Hop, Link};

use super::objects::Objects;
use crate::{Found, reference};

/// Most character tables kept for one document, and most steps for reading them.
const TABLES_MAX: usize = 256;
const STEPS_MAX: usize = 1_000_000;

/// Most fonts kept for one name, and most of them with which a text is read.
const NAMESAKES_MAX: usize = 16;
const READINGS_MAX: usize = 4;

/// Longest joined line of text, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Fonts whose bytes are not characters, by their names in pages.
#[derive(Debug)]
pub(super) struct Fonts {
    /// Object numbers of fonts, by name.
    named: HashMap<Vec<u8>, Vec<u32>>,
    /// Object number of a font's table, by the font's number.
    tables_of: HashMap<u32, u32>,
    /// Object numbers of tables still to be read.
    wanted: HashSet<u32>,
    /// Tables, by their object number.
    tables: HashMap<u32, Table>,
    steps_left: usize,
}

/// The characters of a font's codes (`ToUnicode`, §9.10.3).
#[derive(Debug, Default)]
struct Table {
    /// Bytes of a code.
    width: usize,
    characters: HashMap<u16, String>,
}

/// The readings of strings in a font.
#[derive(Debug, Default)]
struct Reading<'a> {
    tables: Vec<&'a Table>,
    /// Whether the bytes may also be characters.
    is_plain: bool,
}

impl Fonts {
    /// An empty set.
    pub(super) fn new() -> Self {
        Self {
            named: HashMap::new(),
            tables_of: HashMap::new(),
            wanted: HashSet::new(),
            tables: HashMap::new(),
            steps_left: STEPS_MAX,
        }
    }

    /// Finds fonts among the objects of the file or of a stream.
    pub(super) fn look_for(&mut self, bytes: &[u8], objects: &Objects) {
        let mut read = HashSet::new();
        // `/Font << /F1 5 0 R /F2 6 0 R >>`, or the number of an object that is such a dictionary.
        for at in memchr::memmem::find_iter(bytes, b"/Font") {
            let behind = bytes[at + 5..].trim_ascii_start();
            let dictionary = match behind {
                [b'<', b'<', inner @ ..] => inner,
                _ => {
                    let number = reference_at(behind).filter(|number| read.insert(*number));
                    let start = number.and_then(|number| objects.start(number));
                    match start.map(|start| bytes[start..].trim_ascii_start()) {
                        Some([b'<', b'<', inner @ ..]) => inner,
                        _ => continue,
                    }
                }
            };
            self.names(dictionary);
        }
        // The object with a `/ToUnicode` is a font.
        for at in memchr::memmem::find_iter(bytes, b"/ToUnicode") {
            if let Some(font) = objects.around(at)
                && let Some(table) = reference_at(&bytes[at + 10..])
            {
                self.tables_of.insert(font, table);
                self.wanted.insert(table);
            }
        }
    }

    fn names(&mut self, dictionary: &[u8]) {
        /// Most fonts of one page.
        const FONTS_MAX: usize = 200;
        let mut rest = dictionary;
        for _ in 0..FONTS_MAX {
            let [b'/', behind @ ..] = rest.trim_ascii_start() else {
                return;
            };
            let (name, behind) = word(behind);
            let (Some(number), Some(end)) = (reference_at(behind), memchr::memchr(b'R', behind))
            else {
                return;
            };
            let fonts = self.named.entry(name.to_vec()).or_default();
            if fonts.len() < NAMESAKES_MAX && !fonts.contains(&number) {
                fonts.push(number);
            }
            rest = &behind[end + 1..];
        }
    }

    /// Whether this object is a character table still to be read.
    pub(super) fn is_table(&self, number: u32) -> bool {
        self.wanted.contains(&number)
    }

    /// Reads a table: `beginbfchar` and `beginbfrange` of a `ToUnicode` stream.
    pub(super) fn table(&mut self, number: u32, content: &[u8]) {
        self.wanted.remove(&number);
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
            table.singles(inner, &mut self.steps_left);
        }
        for inner in sections(content, b"beginbfrange", b"endbfrange") {
            table.ranges(inner, &mut self.steps_left);
        }
        self.tables.insert(number, table);
    }

    fn reading(&self, font: &[u8]) -> Reading<'_> {
        let mut reading = Reading::default();
        for number in self.named.get(font).into_iter().flatten() {
            let table = self.tables_of.get(number);
            match table.and_then(|table| self.tables.get(table)) {
                Some(table) if reading.tables.len() < READINGS_MAX => reading.tables.push(table),
                Some(_) => {}
                None => reading.is_plain = true,
            }
        }
        reading.is_plain |= reading.tables.is_empty();
        reading
    }
}

/// The sections between `begin` and `end`.
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
    /// `<0003> <0020>`
    fn singles(&mut self, mut inner: &[u8], steps_left: &mut usize) {
        while *steps_left > 0
            && let Some((code, rest)) = hex(inner)
            && let Some((text, rest)) = hex(rest)
        {
            *steps_left -= 1;
            inner = rest;
            self.characters.insert(number(&code), utf16(&text));
        }
    }

    /// `<0041> <005A> <0041>` and `<0041> <0043> [<0041> <0042> <0043>]`
    fn ranges(&mut self, mut inner: &[u8], steps_left: &mut usize) {
        while let Some((first, rest)) = hex(inner)
            && let Some((last, rest)) = hex(rest)
        {
            let codes = number(&first)..=number(&last);
            inner = match rest.trim_ascii_start() {
                [b'[', list @ ..] => {
                    let mut rest = list;
                    for code in codes {
                        let Some((text, behind)) = hex(rest).filter(|_| *steps_left > 0) else {
                            break;
                        };
                        *steps_left -= 1;
                        rest = behind;
                        self.characters.insert(code, utf16(&text));
                    }
                    let end = memchr::memchr(b']', rest).map_or(rest.len(), |at| at + 1);
                    &rest[end..]
                }
                _ => {
                    let Some((mut text, behind)) = hex(rest) else {
                        return;
                    };
                    for code in codes.take(*steps_left) {
                        *steps_left -= 1;
                        self.characters.insert(code, utf16(&text));
                        if let Some(last) = text.last_mut() {
                            *last = last.wrapping_add(1);
                        }
                    }
                    behind
                }
            };
        }
    }

    fn read(&self, string: &[u8]) -> String {
        let mut text = String::new();
        for code in string.chunks(self.width) {
            match self.characters.get(&number(code)) {
                Some(characters) => text.push_str(characters),
                // Fonts with codes of one byte omit codes that stand for themselves.
                None if self.width == 1 => text.push(char::from(code[0])),
                None => text.push('\u{FFFD}'),
            }
        }
        text
    }
}

impl Reading<'_> {
    fn of(&self, string: &[u8]) -> Vec<String> {
        let plain = || string.iter().map(|byte| char::from(*byte)).collect();
        let tables = self.tables.iter().map(|table| table.read(string));
        tables.chain(self.is_plain.then(plain)).collect()
    }
}

/// Reports the URIs in the text of a page or of a form on it, except those in `seen`.
pub(super) fn addresses(
    content: &[u8],
    fonts: &Fonts,
    seen: &mut BTreeSet<String>,
    found: &mut Found,
) {
    let mut reader = Reader {
        fonts,
        reading: fonts.reading(b""),
        lines: vec![String::new()],
        height: None,
        seen,
        found,
    };
    let mut rest = content;
    // The last operands, and the strings to be shown.
    let mut operands: Vec<&[u8]> = Vec::new();
    let mut strings: Vec<Shown> = Vec::new();
    while let Some((&first, behind)) = rest.trim_ascii_start().split_first() {
        let start = rest.trim_ascii_start();
        rest = match first {
            b'(' => {
                let (string, read) = super::literal(behind);
                strings.extend(string.map(Shown::String));
                behind.get(read..).unwrap_or_default()
            }
            b'<' if behind.first() != Some(&b'<') => {
                let (string, read) = super::hexadecimal(behind);
                strings.extend(string.map(Shown::String));
                behind.get(read..).unwrap_or_default()
            }
            b'%' => &behind[memchr::memchr2(b'\n', b'\r', behind).unwrap_or(behind.len())..],
            b'[' | b']' | b'<' | b'>' | b'{' | b'}' | b')' => behind,
            b'/' => {
                let (name, behind) = word(behind);
                operands.clear();
                operands.push(name);
                behind
            }
            _ => {
                let (token, behind) = word(start);
                if token.is_empty() {
                    // A byte that does not begin a token.
                    rest = &start[1..];
                    continue;
                }
                if matches!(first, b'0'..=b'9' | b'-' | b'+' | b'.') {
                    // A distance that means a blank, in thousandths of the font size.
                    if number_of(token).is_some_and(|gap| gap < -180.0) && !strings.is_empty() {
                        strings.push(Shown::Gap);
                    }
                    if operands.len() > 8 {
                        operands.remove(0);
                    }
                    operands.push(token);
                } else {
                    reader.operator(token, &operands, &mut strings);
                    operands.clear();
                    strings.clear();
                    // After the data of an inline image.
                    if token == b"ID" {
                        rest = memchr::memmem::find(behind, b"EI")
                            .map_or(&[][..], |at| &behind[at + 2..]);
                        continue;
                    }
                }
                behind
            }
        };
        if reader.found.is_full() {
            return;
        }
    }
    reader.end_line();
}

enum Shown {
    String(Vec<u8>),
    Gap,
}

struct Reader<'a> {
    fonts: &'a Fonts,
    /// The reading in the current font.
    reading: Reading<'a>,
    /// The current line, in each of its readings.
    lines: Vec<String>,
    /// The vertical position of the line, if known.
    height: Option<f64>,
    seen: &'a mut BTreeSet<String>,
    found: &'a mut Found,
}

impl Reader<'_> {
    fn operator(&mut self, operator: &[u8], operands: &[&[u8]], strings: &mut Vec<Shown>) {
        let operand = |from_last: usize| {
            let at = operands.len().checked_sub(from_last)?;
            operands.get(at).copied().and_then(number_of)
        };
        match operator {
            b"Tf" => {
                if let Some(name) = operands.first() {
                    self.reading = self.fonts.reading(name);
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

    fn show(&mut self, strings: &mut Vec<Shown>) {
        for shown in strings.drain(..) {
            match shown {
                Shown::Gap => self.push(" "),
                Shown::String(string) => {
                    let readings = self.reading.of(&string);
                    // A line in several fonts has as many readings as the font with the most.
                    while self.lines.len() < readings.len() {
                        self.lines.push(self.lines[0].clone());
                    }
                    for (at, line) in self.lines.iter_mut().enumerate() {
                        let reading = readings.get(at).or(readings.first());
                        if line.len() < LINE_BYTES_MAX {
                            line.push_str(reading.map_or("", String::as_str));
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

    /// Ends a line. A URI that continues on the next line would be incomplete. So a URI is dropped if it ends in a continuing
    /// character, or begins a link of the document.
    fn end_line(&mut self) {
        for line in &self.lines {
            for address in reference::addresses(line) {
                let is_at_end = line.trim_end().ends_with(address);
                let goes_on = || {
                    address.ends_with(['-', '_', '=', '&', '?', '%', '+'])
                        || is_begin_of_one(address, self.seen)
                };
                let is_cut = is_at_end && goes_on();
                if !is_cut && !self.seen.contains(address) {
                    self.seen.insert(address.to_owned());
                    self.found
                        .push(Link::new(address, Hop::Speculative, "pdf/text"));
                }
            }
        }
        self.lines.truncate(1);
        self.lines[0].clear();
    }
}

/// Whether a URI in `known` continues this one, within a name or after a slash.
fn is_begin_of_one(address: &str, known: &BTreeSet<String>) -> bool {
    let longer = known.range::<str, _>((Bound::Excluded(address), Bound::Unbounded));
    let rest = longer
        .take(1)
        .find_map(|longer| longer.strip_prefix(address));
    rest.is_some_and(|rest| address.ends_with('/') || !rest.starts_with(['/', '?', '#']))
}

/// The text up to a blank or a delimiter, and the rest.
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

/// The object number in `12 0 R`.
fn reference_at(bytes: &[u8]) -> Option<u32> {
    let (first, rest) = word(bytes.trim_ascii_start());
    let (second, rest) = word(rest.trim_ascii_start());
    let (letter, _) = word(rest.trim_ascii_start());
    if letter != b"R" || !second.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(first).ok()?.parse().ok()
}

/// The next string of hexadecimal digits, and the rest.
fn hex(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"<")?;
    let (string, read) = super::hexadecimal(rest);
    Some((string?, rest.get(read..)?))
}

/// The number of a code of one or two bytes.
fn number(code: &[u8]) -> u16 {
    code.iter()
        .take(2)
        .fold(0, |number, byte| number << 8 | u16::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks(2).map(number).collect();
    String::from_utf16_lossy(&units)
}
