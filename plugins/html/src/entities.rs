//! Decodes character references in attribute values, as in the HTML standard (§13.2.5.72–80).
//!
//! Text outside of attributes is not decoded here. In an attribute value, a name without its semicolon counts only if neither `=`
//! nor a letter or digit follows it, so `?a=1&copy=2` stays unchanged.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// All named references of the standard, one per line, sorted by bytes. A line has the name, `;` or `&`, and the characters. `&`
/// marks a name that also counts without a semicolon.
const NAMES: &str = include_str!("entities.txt");

/// Longest name in the table (`CounterClockwiseContourIntegral`), in bytes.
const NAME_BYTES_MAX: usize = 31;

/// Decodes the character references in an attribute value.
pub fn decode(value: &str) -> Cow<'_, str> {
    let Some(first) = memchr2(b'&', 0, value.as_bytes()) else {
        return Cow::Borrowed(value);
    };
    if memchr(0, &value.as_bytes()[first..]).is_some() {
        return Cow::Owned(decode(&value.replace('\0', "\u{FFFD}")).into_owned());
    }
    let mut decoded = String::with_capacity(value.len());
    decoded.push_str(&value[..first]);
    let mut rest = &value[first..];
    loop {
        // `rest` begins with `&`.
        match reference(&rest[1..]) {
            Some((characters, length)) => {
                characters.push_to(&mut decoded);
                rest = &rest[1 + length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
        let Some(next) = memchr(b'&', rest.as_bytes()) else {
            decoded.push_str(rest);
            return Cow::Owned(decoded);
        };
        decoded.push_str(&rest[..next]);
        rest = &rest[next..];
    }
}

enum Characters {
    One(char),
    Named(&'static str),
}

impl Characters {
    fn push_to(&self, text: &mut String) {
        match self {
            Self::One(character) => text.push(*character),
            // The table escapes line breaks and tabs, which would break its lines.
            Self::Named("\\n") => text.push('\n'),
            Self::Named("\\t") => text.push('\t'),
            Self::Named(characters) => text.push_str(characters),
        }
    }
}

/// The characters of the reference after an `&`, and its length in bytes; `None` if it is not a reference.
fn reference(text: &str) -> Option<(Characters, usize)> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'#') {
        return numeric(bytes);
    }
    let length = bytes
        .iter()
        .take(NAME_BYTES_MAX + 1)
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let name = &text[..length];
    match bytes.get(length) {
        Some(b';') => {
            named(name).map(|(characters, _)| (Characters::Named(characters), length + 1))
        }
        Some(b'=') => None,
        _ => match named(name) {
            Some((characters, true)) => Some((Characters::Named(characters), length)),
            _ => None,
        },
    }
}

/// The numeric reference in `bytes`, which begins with `#`.
fn numeric(bytes: &[u8]) -> Option<(Characters, usize)> {
    let (radix, start) = match bytes.get(1) {
        Some(b'x' | b'X') => (16, 2),
        _ => (10, 1),
    };
    let mut at = start;
    let mut code = 0_u32;
    while let Some(digit) = bytes.get(at).and_then(|&b| char::from(b).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return None;
    }
    if bytes.get(at) == Some(&b';') {
        at += 1;
    }
    let character = match code {
        0 => char::REPLACEMENT_CHARACTER,
        // Pages used the C1 controls for windows-1252.
        0x80..=0x9F => WINDOWS_1252[(code - 0x80) as usize],
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Some((Characters::One(character), at))
}

/// The characters of a name, and whether it counts without a semicolon.
fn named(name: &str) -> Option<(&'static str, bool)> {
    if name.is_empty() {
        return None;
    }
    if name == "amp" {
        return Some(("&", true));
    }
    let (mut low, mut high) = (0, NAMES.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let line_start = NAMES.as_bytes()[..middle]
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |n| n + 1);
        let line_end =
            memchr(b'\n', &NAMES.as_bytes()[middle..]).map_or(NAMES.len(), |n| middle + n);
        let line = &NAMES[line_start..line_end];
        let name_end = line.bytes().position(|b| matches!(b, b';' | b'&'))?;
        match line[..name_end].cmp(name) {
            std::cmp::Ordering::Equal => {
                return Some((&line[name_end + 1..], line.as_bytes()[name_end] == b'&'));
            }
            std::cmp::Ordering::Less => low = line_end + 1,
            std::cmp::Ordering::Greater => high = line_start,
        }
    }
    None
}

/// Characters of the numeric references 0x80 to 0x9F. Those undefined in windows-1252 stay control characters.
const WINDOWS_1252: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &str) {
        assert_eq!(decode(value), expected);
    }

    #[test]
    fn named_references_are_decoded() {
        check("?a=1&amp;b=2", "?a=1&b=2");
        check("&lt;a href=x.html&gt;", "<a href=x.html>");
        check("caf&eacute;", "café");
        check("&AElig;&zwnj;", "Æ\u{200C}");
        check("&CounterClockwiseContourIntegral;", "∳");
        check("a&NewLine;b&Tab;c", "a\nb\tc");
        check("&acE;", "\u{223E}\u{333}");
        check("&semi;&colon;&sol;", ";:/");
    }

    #[test]
    fn a_name_without_semicolon_counts_only_if_nothing_continues_it() {
        check("?a=1&amp", "?a=1&");
        check("?a&amp/b", "?a&/b");
        check("?a=1&copy=2&reg=3", "?a=1&copy=2&reg=3");
        check("&notit;", "&notit;");
        check("?x&lang=de&sect1", "?x&lang=de&sect1");
        check("&hellip", "&hellip");
        check("&copy;=", "©=");
    }

    #[test]
    fn numeric_references_are_decoded() {
        check("&#47;&#x2f;&#X2F", "///");
        check("&#58x", ":x");
        check(
            "&#128;&#0;&#xD800;&#x110000;&#99999999999;",
            "€\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}",
        );
        check("&#;&#x;&#xg", "&#;&#x;&#xg");
    }

    #[test]
    fn nul_becomes_a_replacement_character() {
        check("\0a&amp;\0", "\u{FFFD}a&\u{FFFD}");
        check("&amp\0;", "&\u{FFFD};");
    }

    #[test]
    fn lone_ampersands_stay_unchanged() {
        check("a&b", "a&b");
        check("&", "&");
        check("&&amp;&", "&&&");
        check(
            "&nosuchreferencewhatsoeverinthetablesofanybody;",
            "&nosuchreferencewhatsoeverinthetablesofanybody;",
        );
    }

    #[test]
    fn the_table_is_sorted_and_every_name_is_found() {
        let mut before = "";
        for line in NAMES.lines() {
            let end = line.find([';', '&']).unwrap_or_default();
            let name = &line[..end];
            assert!(before < name, "{before} before {name}");
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            assert!(named(name).is_some(), "{name}");
            before = name;
        }
    }
}
