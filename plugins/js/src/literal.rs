//! Decodes escapes in JavaScript and JSON strings (ECMA-262 §12.9.4).

use std::borrow::Cow;

/// The value of a literal from the text between its quotes. Unknown escapes stand for their character.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    let Some(first) = raw.find('\\') else {
        return Cow::Borrowed(raw);
    };
    let mut text = String::with_capacity(raw.len());
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    loop {
        // `rest` begins with a backslash.
        let mut characters = rest[1..].chars();
        let (character, length) = match characters.next() {
            None => return Cow::Owned(text),
            Some('n') => (Some('\n'), 2),
            Some('t') => (Some('\t'), 2),
            Some('r') => (Some('\r'), 2),
            Some('b' | 'f' | 'v') => (Some(' '), 2),
            Some('0') => (Some('\0'), 2),
            Some('\n') => (None, 2),
            Some('\r') => (None, if rest[2..].starts_with('\n') { 3 } else { 2 }),
            Some('x') => {
                hex(&rest[2..], 2).map_or((Some('x'), 2), |code| (char::from_u32(code), 4))
            }
            Some('u') => {
                unicode(&rest[2..]).map_or((Some('u'), 2), |(c, length)| (Some(c), 2 + length))
            }
            Some(other) => (Some(other), 1 + other.len_utf8()),
        };
        text.extend(character);
        rest = &rest[length..];
        let Some(next) = rest.find('\\') else {
            text.push_str(rest);
            return Cow::Owned(text);
        };
        text.push_str(&rest[..next]);
        rest = &rest[next..];
    }
}

/// The character after `\u`, and the number of bytes read.
fn unicode(text: &str) -> Option<(char, usize)> {
    if let Some(braced) = text.strip_prefix('{') {
        let digits = braced.get(..braced.find('}').filter(|&n| n <= 8)?)?;
        let code = hex(digits, digits.len())?;
        return Some((
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            digits.len() + 2,
        ));
    }
    let code = hex(text, 4)?;
    if (0xD800..0xDC00).contains(&code)
        && let Some(low) = text[4..].strip_prefix("\\u").and_then(|rest| hex(rest, 4))
        && (0xDC00..0xE000).contains(&low)
    {
        let code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(code)?, 10));
    }
    Some((
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
        4,
    ))
}

fn hex(text: &str, digits: usize) -> Option<u32> {
    let digits = text.get(..digits)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(unescape(raw), expected, "{raw}");
    }

    #[test]
    fn escapes_are_decoded() {
        check(r"http:\/\/example.org\/a", "http://example.org/a");
        check(r"\u002fsites\u002Fa", "/sites/a");
        check(r"\x2fa\x2Fb", "/a/b");
        check(r"\u{2f}a\u{1F600}", "/a😀");
        check(r"\uD83D\uDE00", "😀");
        check("a\\\nb", "ab");
        check("a\\\r\nb", "ab");
        check(r#"\"\'\\"#, "\"'\\");
    }

    #[test]
    fn text_after_invalid_escapes_is_decoded() {
        check(r"\u12", "u12");
        check(r"\xg1/a", "xg1/a");
        check(r"\u{110000}", "\u{FFFD}");
        check(r"\u{zz}", "u{zz}");
        check(r"\uD83D/a", "\u{FFFD}/a");
        check(r"a\", "a");
        check(r"\é", "é");
    }
}
