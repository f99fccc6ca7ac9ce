//! An HTML tokenizer for finding links. It has the states of the HTML standard (§13.2.5) for tags, attributes, comments, CDATA
//! and raw text, and skips text itself.
//!
//! It builds no tree. The caller supplies the knowledge of a tree builder, such as raw text elements and SVG:
//! [`Tokenizer::raw_text`], [`Tokenizer::foreign`]. Every byte is read a bounded number of times.

use memchr::{memchr, memchr2, memmem};

/// A token that can contain or affect a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A start tag; its attributes are in the caller's list.
    Start {
        /// The name, unchanged; compare without case.
        name: &'a str,
        /// `true` if the tag ends in `/>`.
        self_closing: bool,
    },
    /// An end tag. Its attributes are dropped.
    End {
        /// The name, unchanged; compare without case.
        name: &'a str,
    },
    /// A comment `<!--…-->`, without its delimiters. Bogus comments, CDATA and doctypes are skipped.
    Comment {
        /// The text between the delimiters.
        text: &'a str,
        /// The start of that text.
        offset: usize,
    },
}

/// An attribute. Its value contains undecoded character references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The name, unchanged; compare without case.
    pub name: &'a str,
    /// The value; empty if the attribute has no value.
    pub value: &'a str,
}

/// A kind of text content, which determines where the text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawText {
    /// Ends at the first end tag of that name (RCDATA and RAWTEXT).
    Plain,
    /// Script data, with its escaped and double escaped states.
    Script,
    /// `plaintext`: never ends.
    Endless,
}

/// Reads tags and comments from a text, or from a part of it.
#[derive(Clone, Debug)]
pub struct Tokenizer<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    /// `true` if the position is inside SVG or MathML, where `<![CDATA[` opens a section that only `]]>` ends.
    pub foreign: bool,
}

impl<'a> Tokenizer<'a> {
    /// A tokenizer over `text[start..end]`; both must be character boundaries.
    pub fn new(text: &'a str, start: usize, end: usize) -> Self {
        Self {
            text,
            at: start,
            end,
            foreign: false,
        }
    }

    /// The next token; `None` at the end of the text. An unfinished tag at the end is not a token.
    ///
    /// `attributes` is cleared, then filled with the attributes of a start tag whose name `wanted` accepts. They are in order;
    /// repeated ones are included (the first counts).
    #[inline]
    pub fn next(
        &mut self,
        attributes: &mut Vec<Attribute<'a>>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<Token<'a>> {
        let bytes = &self.text.as_bytes()[..self.end];
        loop {
            let open = self.at + memchr(b'<', bytes.get(self.at..)?)?;
            let Some(&first) = bytes.get(open + 1) else {
                self.at = self.end;
                return None;
            };
            match first {
                b'a'..=b'z' | b'A'..=b'Z' => {
                    let name_end = tag_name_end(bytes, open + 1);
                    self.at = name_end;
                    let self_closing = self.attributes(bytes, attributes, wanted)?;
                    return Some(Token::Start {
                        name: &self.text[open + 1..name_end],
                        self_closing,
                    });
                }
                b'/' => match bytes.get(open + 2) {
                    Some(b'a'..=b'z' | b'A'..=b'Z') => {
                        let name_end = tag_name_end(bytes, open + 2);
                        self.at = name_end;
                        if bytes.get(name_end) == Some(&b'>') {
                            self.at += 1;
                        } else {
                            self.attributes(bytes, attributes, |_| false)?;
                        }
                        return Some(Token::End {
                            name: &self.text[open + 2..name_end],
                        });
                    }
                    Some(_) => self.skip_bogus_comment(bytes, open + 2),
                    None => self.at = self.end,
                },
                b'!' => {
                    let rest = &bytes[open + 2..];
                    if rest.starts_with(b"--") {
                        return Some(self.comment(bytes, open + 4));
                    }
                    if self.foreign && rest.starts_with(b"[CDATA[") {
                        let start = open + 9;
                        self.at = memmem::find(&bytes[start..], b"]]>")
                            .map_or(self.end, |n| start + n + 3);
                    } else {
                        self.skip_bogus_comment(bytes, open + 2);
                    }
                }
                b'?' => self.skip_bogus_comment(bytes, open + 2),
                // Text. The second character may itself be `<`.
                _ => self.at = open + 1,
            }
        }
    }

    /// The position after the last token.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Reads the raw text of the element whose start tag was the last token. Returns its range in the whole text. The next
    /// token is its end tag.
    pub fn raw_text(&mut self, element: &str, kind: RawText) -> (usize, usize) {
        let start = self.at;
        let bytes = &self.text.as_bytes()[..self.end];
        self.at = match kind {
            RawText::Plain => plain_end(bytes, start, element.as_bytes()),
            RawText::Script => script_end(bytes, start),
            RawText::Endless => None,
        }
        .unwrap_or(self.end);
        (start, self.at)
    }

    /// Skips a bogus comment, doctype or processing instruction, which ends at the first `>`, quoted or not.
    fn skip_bogus_comment(&mut self, bytes: &[u8], from: usize) {
        self.at = memchr(b'>', &bytes[from..]).map_or(self.end, |n| from + n + 1);
    }

    /// Reads a comment; `start` is just past `<!--`.
    fn comment(&mut self, bytes: &'a [u8], start: usize) -> Token<'a> {
        let body = &bytes[start..];
        let (length, marks) = if body.starts_with(b">") {
            (0, 1)
        } else if body.starts_with(b"->") {
            (0, 2)
        } else {
            let mut from = 0;
            loop {
                let Some(close) = memchr(b'>', &body[from..]).map(|n| from + n) else {
                    // Dashes at the end of the text are the beginning of an end delimiter.
                    let partial_ends = [b"--!".as_slice(), b"--", b"-"];
                    let end = partial_ends
                        .iter()
                        .find(|marks| body.ends_with(marks))
                        .map_or(0, |marks| marks.len());
                    break (body.len() - end, end);
                };
                if body[..close].ends_with(b"--") {
                    break (close - 2, 3);
                }
                if body[..close].ends_with(b"--!") {
                    break (close - 3, 4);
                }
                from = close + 1;
            }
        };
        self.at = start + length + marks;
        Token::Comment {
            text: &self.text[start..start + length],
            offset: start,
        }
    }

    /// Reads from the end of the tag name to after `>`. Returns whether the tag closed itself; `None` at the end of the text.
    #[inline]
    fn attributes(
        &mut self,
        bytes: &'a [u8],
        found: &mut Vec<Attribute<'a>>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<bool> {
        found.clear();
        let mut at = self.at;
        // A tag without an end is not a token.
        self.at = self.end;
        loop {
            match *bytes.get(at)? {
                b'>' => {
                    self.at = at + 1;
                    return Some(false);
                }
                b'/' => {
                    if bytes.get(at + 1) == Some(&b'>') {
                        self.at = at + 2;
                        return Some(true);
                    }
                    at += 1;
                    continue;
                }
                byte if is_blank(byte) => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let name_start = at;
            // The first character belongs to the name, even `=`.
            at += 1;
            while let Some(&byte) = bytes.get(at) {
                if CLASS[byte as usize] & NAME_END != 0 {
                    break;
                }
                at += 1;
            }
            let name_end = at;
            at = skip_blanks(bytes, at);
            let (mut value_start, mut value_end) = (at, at);
            if bytes.get(at) == Some(&b'=') {
                at = skip_blanks(bytes, at + 1);
                match *bytes.get(at)? {
                    quote @ (b'"' | b'\'') => {
                        value_start = at + 1;
                        value_end = value_start + find_quote(quote, &bytes[value_start..])?;
                        at = value_end + 1;
                    }
                    b'>' => (value_start, value_end) = (at, at),
                    _ => {
                        value_start = at;
                        while CLASS[*bytes.get(at)? as usize] & UNQUOTED_END == 0 {
                            at += 1;
                        }
                        value_end = at;
                    }
                }
            }
            if wanted(&bytes[name_start..name_end]) {
                found.push(Attribute {
                    name: &self.text[name_start..name_end],
                    value: &self.text[value_start..value_end],
                });
            }
        }
    }
}

/// Finds the first `quote`. Most values are short: checking a few bytes in a loop avoids the start-up cost of the vector search.
#[inline]
fn find_quote(quote: u8, bytes: &[u8]) -> Option<usize> {
    const LOOP_BYTES: usize = 16;
    let head = &bytes[..bytes.len().min(LOOP_BYTES)];
    match head.iter().position(|&b| b == quote) {
        Some(n) => Some(n),
        None => memchr(quote, &bytes[head.len()..]).map(|n| head.len() + n),
    }
}

#[inline]
fn tag_name_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if CLASS[byte as usize] & TAG_NAME_END != 0 {
            break;
        }
        at += 1;
    }
    at
}

#[inline]
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// The start of `</element` followed by a blank, `/` or `>`.
fn plain_end(bytes: &[u8], start: usize, element: &[u8]) -> Option<usize> {
    let mut at = start;
    loop {
        at += find_end_tag_open(&bytes[at..])?;
        if ends_name(bytes, at + 2, element) {
            return Some(at);
        }
        at += 2;
    }
}

/// The start of a script's end tag. Inside `<!--` a nested `<script` hides the next `</script`.
fn script_end(bytes: &[u8], start: usize) -> Option<usize> {
    #[derive(PartialEq)]
    enum State {
        Data,
        Escaped,
        DoubleEscaped,
    }
    let mut state = State::Data;
    let mut at = start;
    // The earliest position of the dashes of the `-->` that ends the escaped states.
    let mut dashes_from = start;
    loop {
        let rest = bytes.get(at..)?;
        at += if state == State::Data {
            memchr(b'<', rest)?
        } else {
            memchr2(b'<', b'>', rest)?
        };
        if bytes[at] == b'>' {
            if bytes[dashes_from..at].ends_with(b"--") {
                state = State::Data;
            }
            at += 1;
            continue;
        }
        let next = &bytes[at + 1..];
        match state {
            State::Data if next.starts_with(b"!--") => {
                state = State::Escaped;
                dashes_from = at + 2;
                at += 4;
                continue;
            }
            State::Data | State::Escaped
                if next.starts_with(b"/") && ends_name(bytes, at + 2, b"script") =>
            {
                return Some(at);
            }
            State::Escaped if ends_name(bytes, at + 1, b"script") => {
                state = State::DoubleEscaped;
                // The character after the name is consumed, even if it is `>`.
                at += 1 + b"script".len() + 1;
                dashes_from = at;
                continue;
            }
            State::DoubleEscaped
                if next.starts_with(b"/") && ends_name(bytes, at + 2, b"script") =>
            {
                state = State::Escaped;
                at += 2 + b"script".len() + 1;
                dashes_from = at;
                continue;
            }
            _ => at += 1,
        }
    }
}

fn find_end_tag_open(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'<', &bytes[at..])?;
        match bytes.get(at + 1) {
            Some(b'/') => return Some(at),
            Some(_) => at += 1,
            None => return None,
        }
    }
}

/// Returns `true` if `name` is at `at`, without case, followed by a blank, `/` or `>`.
fn ends_name(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    bytes
        .get(at..end)
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
        && bytes
            .get(end)
            .is_some_and(|&b| CLASS[b as usize] & TAG_NAME_END != 0)
}

#[inline]
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

const TAG_NAME_END: u8 = 1;
const NAME_END: u8 = 2;
const UNQUOTED_END: u8 = 4;

/// The kinds of names and values that each byte ends, as bits.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if is_blank(b) || b == b'>' {
            class[byte] = TAG_NAME_END | NAME_END | UNQUOTED_END;
        } else if b == b'/' {
            class[byte] = TAG_NAME_END | NAME_END;
        } else if b == b'=' {
            class[byte] = NAME_END;
        }
        byte += 1;
    }
    class
};
