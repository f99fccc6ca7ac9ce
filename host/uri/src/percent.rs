//! Percent-encoding (RFC 3986 §2.1): normalises, decodes and encodes.

use std::borrow::Cow;

/// Makes the digits of percent-encodings upper-case (RFC 3986 §6.2.2.1). A `%` without two digits stays unchanged.
pub(crate) fn upper_hex(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_lower = |at: usize| {
        bytes[at] == b'%'
            && bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
            && (bytes[at + 1].is_ascii_lowercase() || bytes[at + 2].is_ascii_lowercase())
    };
    if !bytes.contains(&b'%') || !(0..bytes.len()).any(is_lower) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut digits = 0;
    for (at, character) in text.char_indices() {
        if is_lower(at) {
            digits = 3;
        }
        if digits > 0 {
            digits -= 1;
            out.push(character.to_ascii_uppercase());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Decodes percent-encoding once. Invalid UTF-8 becomes replacement characters.
pub(crate) fn decoded_once(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match encoded_byte(&bytes[at..]) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes percent-encoding until none is left, in one pass: a byte that completes an encoding is decoded again.
pub(crate) fn decoded_fully(text: &str) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        while let Some(decoded) = out
            .len()
            .checked_sub(3)
            .and_then(|at| encoded_byte(&out[at..]))
        {
            out.truncate(out.len() - 3);
            out.push(decoded);
        }
    }
    out
}

/// Appends `bytes`. Those that satisfy `is_encoded` are percent-encoded; the others must be ASCII.
pub(crate) fn push_encoded(
    out: &mut String,
    bytes: impl IntoIterator<Item = u8>,
    is_encoded: impl Fn(u8) -> bool,
) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if is_encoded(byte) {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        } else {
            out.push(char::from(byte));
        }
    }
}

/// The byte of a percent-encoding at the start of `bytes`.
fn encoded_byte(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else {
        return None;
    };
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some(digit(*high)? * 16 + digit(*low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encodings_become_upper_case() {
        for (text, expected) in [
            ("%c3%a4é%zz%a", "%C3%A4é%zz%a"),
            ("%2F", "%2F"),
            ("%%aa", "%%AA"),
        ] {
            assert_eq!(upper_hex(text), expected);
        }
    }

    #[test]
    fn encodings_are_undone_once_or_fully() {
        assert_eq!(decoded_once("%2541%zz%4"), "%41%zz%4");
        assert_eq!(decoded_fully("%25%34%31%zz%4"), b"A%zz%4");
    }
}
