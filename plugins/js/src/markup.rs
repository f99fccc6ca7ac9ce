//! Finds references in markup in strings: `'<a href="/x">'`. The whole value of the attribute must be in the string.

/// Attributes whose value is a reference.
const NAMES: [&str; 9] = [
    "href",
    "src",
    "data-src",
    "data-href",
    "poster",
    "action",
    "background",
    "data-original",
    "data-url",
];

/// Returns `true` if the text contains a tag.
pub(crate) fn is_markup(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'<', bytes)
        .any(|at| bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic))
}

/// References in the attributes of the tags in `text`. `&amp;` is decoded.
pub(crate) fn references(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    // A failed search to the end is not repeated, which keeps the total time linear.
    let (mut no_double, mut no_single, mut no_blank) = (false, false, false);
    // No attribute can come before the first tag.
    if let Some(first) = memchr::memchr(b'<', bytes) {
        at = first;
    }
    while let Some(equals) = memchr::memchr(b'=', &bytes[at..]).map(|n| at + n) {
        let name_end = at + bytes[at..equals].trim_ascii_end().len();
        let name_start = bytes[at..name_end]
            .iter()
            .rposition(|&b| !(b.is_ascii_alphanumeric() || b == b'-'));
        let name = &text[name_start.map_or(at, |n| at + n + 1)..name_end];
        let is_separated = name_start.is_some_and(|n| {
            bytes[at + n].is_ascii_whitespace() || matches!(bytes[at + n], b'"' | b'\'' | b'/')
        });
        let mut value_start = equals + 1;
        while bytes.get(value_start).is_some_and(u8::is_ascii_whitespace) {
            value_start += 1;
        }
        let quote = bytes.get(value_start).copied();
        let has_no_end = match quote {
            Some(b'"') => &mut no_double,
            Some(b'\'') => &mut no_single,
            _ => &mut no_blank,
        };
        let value = match quote {
            _ if *has_no_end => None,
            Some(quote @ (b'"' | b'\'')) => {
                value_start += 1;
                memchr::memchr(quote, &bytes[value_start..])
            }
            // An unquoted value must end within the string too: text after the string may belong to it.
            _ => bytes[value_start..]
                .iter()
                .position(|b| b.is_ascii_whitespace() || *b == b'>'),
        };
        *has_no_end = value.is_none();
        let value = value.map(|n| value_start + n);
        let Some(value_end) = value else {
            at = value_start.max(equals + 1);
            continue;
        };
        at = value_end;
        if is_separated && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            let value = text[value_start..value_end].trim();
            if is_reference(value) {
                found.push(value.replace("&amp;", "&"));
            }
        }
    }
    found
}

/// Returns `true` if the value of such an attribute is a reference. Only placeholders and values without a target are not.
fn is_reference(value: &str) -> bool {
    const UNFETCHABLE: [&str; 9] = [
        "javascript:",
        "data:",
        "mailto:",
        "tel:",
        "about:",
        "blob:",
        "sms:",
        "whatsapp:",
        "file:",
    ];
    !value.is_empty()
        && !value.starts_with('#')
        && !value.bytes().any(|b| {
            b <= b' '
                || matches!(
                    b,
                    b'"' | b'\'' | b'<' | b'>' | b'{' | b'}' | b'$' | b'|' | b'\\' | b'^' | b'`'
                )
        })
        && !UNFETCHABLE.iter().any(|scheme| {
            value
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
        && !crate::likely::has_placeholder(value)
        && value.chars().any(char::is_alphanumeric)
        && !matches!(value, "http://" | "https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(references(text), expected, "{text}");
    }

    #[test]
    fn complete_values_are_found() {
        check(
            "<a href=\"http://example.org/x\">y</a>",
            &["http://example.org/x"],
        );
        check("<img width=1 src='i.png'/><A HREF = /b >", &["i.png", "/b"]);
        check("<a href=\"?a=1&amp;b=2\">", &["?a=1&b=2"]);
        check("<img alt=\"\"src=\"i.png\">", &["i.png"]);
    }

    #[test]
    fn partial_values_and_placeholders_are_ignored() {
        check("<a href=\"", &[]);
        check("<a href=\"/x", &[]);
        check("<img src=/x", &[]);
        check("<a href=\"{{url}}\"><a href=\"$1\"><a href=\"%s\">", &[]);
        check("<a href=\"#\"><a href=\"javascript:x\"><a href=\"\">", &[]);
        check("<a xhref=\"/x\" class=\"/y\">", &[]);
        check("a.href=\"/x\"", &[]);
    }

    #[test]
    fn long_rows_of_equals_signs_take_linear_time() {
        assert!(references(&format!("<a {}", "=".repeat(200_000))).is_empty());
        assert!(references(&format!("<a {}", "a ='".repeat(100_001))).is_empty());
        assert!(references(&format!("<a {}", "href=\"".repeat(100_000))).len() < 100_000);
    }
}
