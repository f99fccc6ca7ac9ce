//! Finds references in a style sheet, with the tokens of CSS Syntax Level 3 (§4): comments, strings and escapes are recognised.
//! The sheet is not parsed: a reference counts anywhere. So invalid and truncated sheets and `style` attributes need no special
//! rules.

use std::borrow::Cow;

use memchr::memmem;

/// Longest reference reported, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 128 * 1024;

/// Deepest nesting of brackets that is tracked. Deeper `image-set` with bare strings is not recognised.
const DEPTH_MAX: usize = 1_000;

/// A reference in a style sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundReference {
    /// The reference with decoded escapes.
    pub uri: String,
    /// The syntax of the reference.
    pub syntax: Syntax,
}

/// Syntax of a reference in a style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `@import "…"` and `@import url(…)`.
    Import,
    /// `url(…)` and `src(…)`.
    Url,
    /// A string in `image-set(…)` or `image(…)`.
    Image,
    /// `AlphaImageLoader(src='…')`, a filter of Internet Explorer.
    Filter,
}

impl Syntax {
    /// The text for the link's context.
    pub fn context(self) -> &'static str {
        match self {
            Self::Import => "css/@import",
            Self::Url => "css/url",
            Self::Image => "css/image-set",
            Self::Filter => "css/filter",
        }
    }
}

/// Finds every reference of a style sheet, in order.
pub fn read(text: &str) -> Vec<FoundReference> {
    let mut reader = Reader {
        text,
        at: 0,
        open: Vec::new(),
        too_deep: 0,
        rule: Rule::None,
        expects_source: false,
        found: Vec::new(),
    };
    reader.read();
    reader.found
}

/// The at-rule whose prelude is being read, if it changes the meaning of references.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    None,
    /// The next string or `url(…)` is an import.
    Import,
    /// `@namespace`, `@document`: URLs in them are names, not references.
    Naming,
}

/// The construct that an open bracket belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Bracket {
    /// `url(` and `src(` with a string in them. Only the first string is the reference.
    Url,
    /// `image-set(`, `image(`: strings in them are references.
    Image,
    /// `AlphaImageLoader(`.
    Filter,
    /// Any other bracket.
    Other,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Bracket>,
    /// Number of open brackets deeper than the limit.
    too_deep: usize,
    rule: Rule,
    /// `true` if the next string in a filter is the value of `src`.
    expects_source: bool,
    found: Vec<FoundReference>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match CLASS[byte as usize] {
                // `<!--` is one token; its dashes do not begin a name.
                Class::Plain if bytes[self.at..].starts_with(b"<!--") => self.at += 4,
                Class::Plain => self.at += 1,
                Class::Name if byte == b'-' && !starts_name(bytes, self.at) => self.at += 1,
                Class::Name => self.name(),
                Class::Number => self.number(),
                Class::Quote => {
                    let string = self.string(byte);
                    self.on_string(string);
                }
                Class::Slash => match bytes.get(self.at + 1) {
                    Some(b'*') => self.skip_comment(),
                    _ => self.at += 1,
                },
                Class::Backslash => match is_escape(bytes, self.at) {
                    true => self.name(),
                    false => self.at += 1,
                },
                Class::At => {
                    self.at += 1;
                    if starts_name(bytes, self.at) {
                        let name = self.take_name();
                        self.rule = rule_named(&name);
                    }
                }
                Class::Hash => {
                    self.at += 1;
                    if bytes.get(self.at).is_some_and(|&b| is_name_byte(b))
                        || is_escape(bytes, self.at)
                    {
                        self.take_name();
                    }
                }
                Class::Open => {
                    self.at += 1;
                    self.open(Bracket::Other);
                }
                Class::Close => {
                    self.at += 1;
                    self.close();
                }
                // The end of a prelude.
                Class::End => {
                    self.at += 1;
                    self.rule = Rule::None;
                    if byte != b';' {
                        // The start or end of a block. Earlier open brackets were never closed.
                        self.open.clear();
                        self.too_deep = 0;
                    }
                }
            }
        }
    }

    fn open(&mut self, bracket: Bracket) {
        if self.open.len() < DEPTH_MAX {
            self.open.push(bracket);
        } else {
            self.too_deep += 1;
        }
    }

    fn close(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else {
            self.open.pop();
        }
    }

    fn bracket(&self) -> Bracket {
        if self.too_deep > 0 {
            Bracket::Other
        } else {
            self.open.last().copied().unwrap_or(Bracket::Other)
        }
    }

    /// Reads an identifier, or a function if a bracket follows it.
    fn name(&mut self) {
        let bytes = self.text.as_bytes();
        let name = self.take_name();
        if bytes.get(self.at) != Some(&b'(') {
            if self.bracket() == Bracket::Filter {
                self.expects_source = name.eq_ignore_ascii_case("src");
            }
            return;
        }
        self.at += 1;
        if name.eq_ignore_ascii_case("url") {
            let inner = skip_blanks(bytes, self.at);
            match bytes.get(inner) {
                Some(b'"' | b'\'') => self.open(Bracket::Url),
                _ => {
                    self.at = inner;
                    if let Some(uri) = self.unquoted_url() {
                        self.report_url(uri);
                    }
                }
            }
            return;
        }
        self.open(bracket_of(&name));
    }

    /// Reads a number (§4.3.12) with its unit, so that the unit is not taken for a name (`1url(`).
    fn number(&mut self) {
        let bytes = self.text.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let skip_digits = |mut at: usize| {
            while is_digit(at) {
                at += 1;
            }
            at
        };
        self.at = skip_digits(self.at);
        if bytes.get(self.at) == Some(&b'.') && is_digit(self.at + 1) {
            self.at = skip_digits(self.at + 1);
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            let signed = matches!(bytes.get(self.at + 1), Some(b'+' | b'-'));
            let digits = self.at + 1 + usize::from(signed);
            if is_digit(digits) {
                self.at = skip_digits(digits);
            }
        }
        if starts_name(bytes, self.at) {
            self.take_name();
        }
    }

    /// Reports a string if it is a reference.
    fn on_string(&mut self, string: Cow<'a, str>) {
        match self.bracket() {
            Bracket::Url => {
                // Further strings belong to modifiers.
                if let Some(last) = self.open.last_mut() {
                    *last = Bracket::Other;
                }
                self.report_url(string);
            }
            Bracket::Image if self.rule != Rule::Naming => self.report(string, Syntax::Image),
            Bracket::Filter if self.expects_source => {
                self.expects_source = false;
                self.report(string, Syntax::Filter);
            }
            _ if self.rule == Rule::Import && self.open.is_empty() => {
                self.rule = Rule::None;
                self.report(string, Syntax::Import);
            }
            _ => {}
        }
    }

    /// Reports the reference of a `url(…)`, unless it is a name.
    fn report_url(&mut self, uri: Cow<'a, str>) {
        match self.rule {
            Rule::Naming => {}
            Rule::Import => {
                self.rule = Rule::None;
                self.report(uri, Syntax::Import);
            }
            Rule::None => self.report(uri, Syntax::Url),
        }
    }

    fn report(&mut self, uri: Cow<'a, str>, syntax: Syntax) {
        let uri = uri.trim_matches(|c: char| c <= ' ');
        if is_fetchable(uri) {
            self.found.push(FoundReference {
                uri: uri.to_owned(),
                syntax,
            });
        }
    }

    /// Reads a name (§4.3.11); the caller has checked that one begins here.
    fn take_name(&mut self) -> Cow<'a, str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes.get(self.at).is_some_and(|&b| is_name_byte(b)) {
            self.at += 1;
        }
        let plain = &self.text[start..self.at];
        if !is_escape(bytes, self.at) {
            return Cow::Borrowed(plain);
        }
        let mut name = plain.to_owned();
        loop {
            if is_escape(bytes, self.at) {
                self.at += 1;
                name.push(self.escape());
                continue;
            }
            let start = self.at;
            while bytes.get(self.at).is_some_and(|&b| is_name_byte(b)) {
                self.at += 1;
            }
            if start == self.at {
                return Cow::Owned(name);
            }
            name.push_str(&self.text[start..self.at]);
        }
    }

    /// Reads a string (§4.3.5). A line break ends it and makes it empty.
    fn string(&mut self, quote: u8) -> Cow<'a, str> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            let run = bytes[self.at..]
                .iter()
                .position(|&b| b == quote || matches!(b, b'\\' | b'\n' | b'\r' | 0x0C));
            let end = run.map_or(bytes.len(), |n| self.at + n);
            self.at = end;
            let part = &self.text[start..end];
            match bytes.get(end) {
                Some(b'\\') => {
                    let unescaped = unescaped.get_or_insert_default();
                    unescaped.push_str(part);
                    self.at += 1;
                    match bytes.get(self.at) {
                        None => {}
                        Some(b'\n' | 0x0C) => self.at += 1,
                        Some(b'\r') => {
                            self.at += if bytes.get(self.at + 1) == Some(&b'\n') {
                                2
                            } else {
                                1
                            }
                        }
                        Some(_) => unescaped.push(self.escape()),
                    }
                    start = self.at;
                }
                Some(b'\n' | b'\r' | 0x0C) => return Cow::Borrowed(""),
                // The closing quote, or the end of the sheet, which also closes strings.
                _ => {
                    self.at = (end + 1).min(bytes.len());
                    return match unescaped {
                        Some(mut text) => {
                            text.push_str(part);
                            Cow::Owned(text)
                        }
                        None => Cow::Borrowed(part),
                    };
                }
            }
        }
    }

    /// Reads the text of an unquoted `url(` (§4.3.6), from its first byte that is not a blank. `None` for a bad URL.
    fn unquoted_url(&mut self) -> Option<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            let Some(&byte) = bytes.get(self.at) else {
                return Some(concatenated(unescaped, &self.text[start..]));
            };
            match byte {
                b')' => {
                    self.at += 1;
                    return Some(concatenated(unescaped, &self.text[start..self.at - 1]));
                }
                b' ' | b'\t' | b'\n' | b'\r' | 0x0C => {
                    let end = self.at;
                    self.at = skip_blanks(bytes, self.at);
                    return match bytes.get(self.at) {
                        Some(b')') => {
                            self.at += 1;
                            Some(concatenated(unescaped, &self.text[start..end]))
                        }
                        None => Some(concatenated(unescaped, &self.text[start..end])),
                        Some(_) => self.bad_url(),
                    };
                }
                b'"' | b'\'' | b'(' | 0..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F => {
                    return self.bad_url();
                }
                b'\\' if is_escape(bytes, self.at) => {
                    unescaped
                        .get_or_insert_default()
                        .push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let character = self.escape();
                    unescaped.get_or_insert_default().push(character);
                    start = self.at;
                }
                b'\\' => return self.bad_url(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips the rest of a bad `url(` (§4.3.14).
    fn bad_url(&mut self) -> Option<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b')' => break,
                b'\\' if is_escape(bytes, self.at - 1) => {
                    self.escape();
                }
                _ => {}
            }
        }
        None
    }

    /// Reads an escaped character (§4.3.7) after its backslash.
    fn escape(&mut self) -> char {
        const DIGITS_MAX: usize = 6;
        let bytes = self.text.as_bytes();
        let digits = bytes[self.at..]
            .iter()
            .take(DIGITS_MAX)
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        if digits == 0 {
            let character = self.text[self.at..]
                .chars()
                .next()
                .unwrap_or(char::REPLACEMENT_CHARACTER);
            self.at = (self.at + character.len_utf8()).min(bytes.len());
            return character;
        }
        let code = u32::from_str_radix(&self.text[self.at..self.at + digits], 16).unwrap_or(0);
        self.at += digits;
        match bytes.get(self.at) {
            Some(b'\r') if bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
            Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0C) => self.at += 1,
            _ => {}
        }
        char::from_u32(code)
            .filter(|&c| c != '\0')
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn skip_comment(&mut self) {
        let body = self.at + 2;
        let end = memmem::find(&self.text.as_bytes()[body..], b"*/");
        self.at = end.map_or(self.text.len(), |n| body + n + 2);
    }
}

fn concatenated<'a>(unescaped: Option<String>, rest: &'a str) -> Cow<'a, str> {
    match unescaped {
        Some(text) => Cow::Owned(text + rest),
        None => Cow::Borrowed(rest),
    }
}

fn rule_named(name: &str) -> Rule {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("import") {
        Rule::Import
    } else if is("namespace") || is("document") || is("-moz-document") {
        Rule::Naming
    } else {
        Rule::None
    }
}

fn bracket_of(name: &str) -> Bracket {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("src") {
        Bracket::Url
    } else if is("image-set") || is("-webkit-image-set") || is("image") {
        Bracket::Image
    } else if is("alphaimageloader") {
        Bracket::Filter
    } else {
        Bracket::Other
    }
}

/// Returns `true` if a reference can be fetched: not empty, not a fragment of the same document, not `data:` or similar.
fn is_fetchable(uri: &str) -> bool {
    const UNFETCHABLE: [&str; 7] = [
        "data",
        "about",
        "blob",
        "javascript",
        "vbscript",
        "mailto",
        "chrome",
    ];
    if uri.is_empty() || uri.starts_with('#') || uri.len() > REFERENCE_BYTES_MAX {
        return false;
    }
    // A placeholder of a template or preprocessor is not a reference.
    if ["{{", "<%", "${", "#{"]
        .iter()
        .any(|mark| uri.contains(mark))
    {
        return false;
    }
    match uri.split_once(':') {
        Some((scheme, _)) => !UNFETCHABLE
            .iter()
            .any(|other| scheme.eq_ignore_ascii_case(other)),
        None => true,
    }
}

#[inline]
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0C)) {
        at += 1;
    }
    at
}

/// Returns `true` if a valid escape begins here (§4.3.8).
#[inline]
fn is_escape(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'\\') && !matches!(bytes.get(at + 1), Some(b'\n' | b'\r' | 0x0C))
}

/// Returns `true` if a name begins here (§4.3.9).
fn starts_name(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(b'-') => {
            matches!(bytes.get(at + 1), Some(&b) if b == b'-' || is_name_start(b))
                || is_escape(bytes, at + 1)
        }
        Some(b'\\') => is_escape(bytes, at),
        Some(&byte) => is_name_start(byte),
        None => false,
    }
}

#[inline]
const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 || byte == 0
}

#[inline]
const fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'-'
}

#[derive(Clone, Copy)]
enum Class {
    Plain,
    Name,
    Number,
    Quote,
    Slash,
    Backslash,
    At,
    Hash,
    Open,
    Close,
    End,
}

/// The class of the token that each byte begins.
static CLASS: [Class; 256] = {
    let mut class = [Class::Plain; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        class[byte] = match b {
            b'0'..=b'9' => Class::Number,
            b'"' | b'\'' => Class::Quote,
            b'/' => Class::Slash,
            b'\\' => Class::Backslash,
            b'@' => Class::At,
            b'#' => Class::Hash,
            b'(' | b'[' => Class::Open,
            b')' | b']' => Class::Close,
            b';' | b'{' | b'}' => Class::End,
            _ if is_name_byte(b) => Class::Name,
            _ => Class::Plain,
        };
        byte += 1;
    }
    class
};
