//! References in data: values that are likely references, and references that cannot be fetched.

use crate::vocabulary::{is_namespace, is_web_ending};

/// Longest reference reported, in bytes. The host rejects references over 64 KiB and logs them.
const REFERENCE_BYTES_MAX: usize = 128 * 1024;

/// Longest value of unknown meaning to examine, in bytes.
const LIKELY_BYTES_MAX: usize = 4 * 1024;

/// Schemes without documents that a crawler could fetch, sorted.
const UNFETCHABLE: &[&str] = &[
    "about",
    "acct",
    "android-app",
    "blob",
    "chrome",
    "chrome-extension",
    "cid",
    "data",
    "doi",
    "geo",
    "intent",
    "ios-app",
    "javascript",
    "magnet",
    "mailto",
    "market",
    "mid",
    "resource",
    "sms",
    "spotify",
    "tag",
    "tel",
    "urn",
    "uuid",
    "webcal",
    "xmpp",
];

/// Returns the reference in a value that should be one, without surrounding blanks. Returns `None` if it cannot be fetched: it
/// is empty or only a fragment (`#top`), has a scheme without documents, or has a template's placeholder.
pub(crate) fn usable_reference(value: &str) -> Option<&str> {
    let value = value.trim_matches(|c: char| c <= ' ');
    if value.is_empty()
        || value.starts_with('#')
        || value.len() > REFERENCE_BYTES_MAX
        || value.contains("{{")
        || value.contains("${")
    {
        return None;
    }
    match scheme(value) {
        Some(scheme) if UNFETCHABLE.binary_search(&scheme.as_str()).is_ok() => None,
        Some(scheme)
            if matches!(scheme.as_str(), "http" | "https")
                && value[scheme.len() + 1..].trim_matches('/').is_empty() =>
        {
            None
        }
        _ => Some(value),
    }
}

/// The scheme of a URI, in lower case; `None` if the value is a relative reference.
fn scheme(value: &str) -> Option<String> {
    /// Longer than any scheme in use.
    const SCHEME_BYTES_MAX: usize = 32;
    let end = value
        .bytes()
        .take(SCHEME_BYTES_MAX)
        .position(|b| b == b':')?;
    let scheme = &value[..end];
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// The text after `http://`, `https://` or `ftp://`.
fn after_scheme(value: &str) -> Option<&str> {
    ["http://", "https://", "ftp://"].iter().find_map(|scheme| {
        value
            .get(..scheme.len())
            .filter(|start| start.eq_ignore_ascii_case(scheme))
            .map(|_| &value[scheme.len()..])
    })
}

/// Returns `true` for a URI on the internet: `http`, `https` or `ftp`, with a public host, and not the name of a vocabulary.
pub(crate) fn is_public_uri(value: &str) -> bool {
    value.len() <= LIKELY_BYTES_MAX
        && !value.bytes().any(is_excluded)
        && after_scheme(value).is_some_and(|rest| {
            let (host, after) = host_of(rest);
            is_public_host(host) && !is_namespace(host, after)
        })
}

/// Returns `true` for a byte that URIs contain only in encoded form. Bytes of non-ASCII characters are accepted.
fn is_excluded(byte: u8) -> bool {
    byte <= b' '
        || matches!(
            byte,
            b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`' | 0x7F
        )
}

/// Splits the text after `//` into the host, without user and port, and the text after the authority.
fn host_of(rest: &str) -> (&str, &str) {
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => host,
    };
    (host, after)
}

/// Returns `true` for a host that may be public: at least two labels, the last one with a letter, or a public IPv4 address.
fn is_public_host(host: &str) -> bool {
    /// The limit of DNS.
    const HOST_BYTES_MAX: usize = 253;
    let labels: Vec<&str> = host.split('.').take(64).collect();
    host.len() <= HOST_BYTES_MAX
        && labels.len() > 1
        && labels.iter().all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || b >= 0x80)
        })
        && (labels.last().is_some_and(|last| {
            last.len() > 1
                && last.contains(|c: char| c.is_alphabetic())
                // A hyphen in the last label comes from hyphenation at a line break, except in Punycode.
                && (!last.contains('-') || last.starts_with("xn--"))
        }) || is_public_ipv4(&labels))
}

/// Returns `true` for an IPv4 address that is not private, link-local or of the machine itself.
fn is_public_ipv4(labels: &[&str]) -> bool {
    let octets: Vec<u8> = labels
        .iter()
        .map_while(|label| label.parse().ok())
        .collect();
    labels.len() == 4
        && octets.len() == 4
        && !matches!(
            octets[..2],
            [0 | 10 | 127, _] | [169, 254] | [172, 16..=31] | [192, 168]
        )
}

/// The likelihood that a value is a reference, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameHint {
    /// The name suggests a reference: `href`, `imageUrl`, `next`.
    Promising,
    /// Any other name.
    Any,
}

/// Returns the reference if the value looks like one. Every wrong guess costs a request to a server.
pub(crate) fn likely_reference(value: &str, hint: NameHint) -> Option<&str> {
    let value = value.trim();
    let is_reference = if value.len() < 2 || value.len() > LIKELY_BYTES_MAX {
        false
    } else if value.contains(' ') {
        // Some references have unencoded blanks, but sentences have blanks too.
        let path = &value[..value.find(['?', '#']).unwrap_or(value.len())];
        let is_rooted = path.starts_with('/') || after_scheme(path).is_some();
        (is_rooted || hint == NameHint::Promising && path.contains('/'))
            && has_web_ending(path)
            && path.len() == value.len()
            && !value.contains("  ")
            && looks_like_reference(&value.replace(' ', "%20"), hint)
    } else {
        looks_like_reference(value, hint)
    };
    is_reference.then_some(value)
}

fn looks_like_reference(value: &str, hint: NameHint) -> bool {
    if value.bytes().any(is_excluded) || has_placeholder(value) {
        return false;
    }
    if after_scheme(value).is_some() {
        return is_public_uri(value);
    }
    if let Some(rest) = value.strip_prefix("//") {
        return is_public_host(host_of(rest).0);
    }
    let path = &value[..value.find(['?', '#']).unwrap_or(value.len())];
    if scheme(path).is_some() || path.contains("//") || path.contains(':') || !is_usual_path(path) {
        return false;
    }
    let has_ending = has_web_ending(path);
    let is_rooted = path.starts_with('/');
    let is_dotted = path.starts_with("./") || path.starts_with("../");
    let letters = path.chars().filter(|c| c.is_alphabetic()).count();
    match hint {
        NameHint::Promising => {
            has_ending
                || ((is_rooted || is_dotted) && letters > 0)
                || (path.is_empty() && value.starts_with('?') && value.contains('='))
        }
        NameHint::Any => has_ending && (is_rooted || is_dotted || path.contains('/')),
    }
}

/// Returns `true` if the value has a placeholder such as `%s`, `:id` or `&package;`, which a program replaces before a fetch.
fn has_placeholder(value: &str) -> bool {
    let bytes = value.as_bytes();
    memchr::memchr_iter(b'%', bytes).any(|at| {
        !bytes
            .get(at + 1..at + 3)
            .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    }) || value.contains("/:")
        || value.contains('*')
        || has_entity(value)
}

/// Returns `true` if the value has an entity such as `&package;`, which only its document type defines. `&amp;` does not count,
/// because it comes from text that was escaped twice.
fn has_entity(value: &str) -> bool {
    memchr::memchr_iter(b'&', value.as_bytes()).any(|at| {
        let after = &value[at + 1..];
        let name = after.len()
            - after
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
                .len();
        let (name, after) = after.split_at(name);
        after.starts_with(';') && !matches!(name, "" | "amp")
    })
}

/// Returns `true` if the path has only characters that are usual in paths of URIs.
fn is_usual_path(path: &str) -> bool {
    path.bytes().all(|b| {
        b.is_ascii_alphanumeric()
            || b >= 0x80
            || matches!(
                b,
                b'/' | b'.' | b'-' | b'_' | b'~' | b'%' | b'@' | b',' | b'=' | b'+' | b'&' | b'!'
            )
    }) && !path.contains("...")
}

fn has_web_ending(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && is_web_ending(ending))
}

/// Judges a name by its last word in `camelCase`, `snake_case` or `kebab-case`. `path` and `location` are not in the list, because
/// most of their values are files, or positions in other data.
pub(crate) fn name_hint(name: &str) -> NameHint {
    /// Longer names contain data.
    const NAME_BYTES_MAX: usize = 64;
    /// Words that suggest a reference, sorted.
    const WORDS: &[&str] = &[
        "attachment",
        "audio",
        "avatar",
        "background",
        "banner",
        "canonical",
        "cover",
        "download",
        "enclosure",
        "favicon",
        "feed",
        "first",
        "href",
        "icon",
        "image",
        "images",
        "img",
        "last",
        "link",
        "links",
        "logo",
        "next",
        "page",
        "permalink",
        "photo",
        "picture",
        "poster",
        "prev",
        "preview",
        "previous",
        "redirect",
        "self",
        "src",
        "srcset",
        "thumb",
        "thumbnail",
        "uri",
        "url",
        "urls",
        "video",
    ];
    let mut word = String::new();
    let mut was_lower = false;
    let mut ended = false;
    for character in name.chars().take(NAME_BYTES_MAX + 1) {
        if character.is_ascii_alphabetic() {
            if ended || (character.is_ascii_uppercase() && was_lower) {
                word.clear();
            }
            word.push(character.to_ascii_lowercase());
        }
        ended = !character.is_ascii_alphabetic();
        was_lower = character.is_ascii_lowercase();
    }
    let is_promising = name.len() <= NAME_BYTES_MAX && WORDS.binary_search(&word.as_str()).is_ok();
    if is_promising {
        NameHint::Promising
    } else {
        NameHint::Any
    }
}

/// Returns the URIs in running text, in their order.
pub(crate) fn uris_in(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let colon = from + memchr::memmem::find(&bytes[from..], b"://")?;
            let scheme = bytes[from..colon]
                .iter()
                .rev()
                .take(5)
                .take_while(|b| b.is_ascii_alphabetic())
                .count();
            let start = colon - scheme;
            let end = bytes[colon..]
                .iter()
                .position(|&b| is_excluded(b) || b == b'\'')
                .map_or(bytes.len(), |length| colon + length);
            from = end;
            let found = text.get(start..end).unwrap_or_default();
            // Checked first, because the semicolon of a final entity would be trimmed as punctuation.
            if has_entity(found) {
                continue;
            }
            // URIs do not contain unencoded typographic quotes.
            let found = found
                .split(['”', '“', '„', '‘', '’', '‚', '«', '»', '‹', '›', '…'])
                .next()
                .unwrap_or_default();
            let found = found.trim_end_matches(['.', ',', ';', ':', '!', '?']);
            // A parenthesis opened before the URI is closed after it.
            let found = match found.strip_suffix(')') {
                Some(inner) if !inner.contains('(') => inner,
                _ => found,
            };
            if is_public_uri(found) && !has_placeholder(found) {
                return Some(found);
            }
        }
    })
}

/// Returns `true` if a text looks like HTML with references, and not like a sentence with a `<`.
pub(crate) fn is_markup(text: &str) -> bool {
    memchr::memchr_iter(b'<', text.as_bytes())
        .take(64)
        .any(|at| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic()))
        && ["href", "src", "</"].iter().any(|word| text.contains(word))
}

/// Resolves `value` against a `base` that may be relative too (RFC 3986 §5.2.2). Dot segments stay; the host resolves them.
pub(crate) fn join(base: &str, value: &str) -> String {
    if value.is_empty() || value.starts_with("//") || scheme(value).is_some() {
        return if value.is_empty() { base } else { value }.to_owned();
    }
    let path_start = match base.find("//") {
        Some(0) => authority_end(base, 2),
        Some(at) if base[..at].ends_with(':') => authority_end(base, at + 2),
        _ => 0,
    };
    let path = &base[path_start..];
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    let authority = &base[..path_start];
    if value.starts_with('/') {
        return format!("{authority}{value}");
    }
    match path.rfind('/') {
        Some(slash) => format!("{authority}{}{value}", &path[..=slash]),
        None if authority.is_empty() => value.to_owned(),
        None => format!("{authority}/{value}"),
    }
}

fn authority_end(base: &str, from: usize) -> usize {
    base[from..]
        .find(['/', '?', '#'])
        .map_or(base.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn schemes_are_sorted() {
        assert!(UNFETCHABLE.is_sorted());
    }

    #[test]
    fn unfetchable_references_are_rejected() {
        for value in [
            "a b.html",
            "//example.org",
            "http://example.org",
            "?a=tel:1",
            "a:b",
        ] {
            assert_eq!(usable_reference(&format!("\n {value} ")), Some(value));
        }
        for value in [
            "",
            " ",
            "#top",
            "mailto:a@example.org",
            "DATA:,x",
            "urn:isbn:1",
            "tag:example.org,2024:1",
            "http://",
            "https:",
            "{{ url }}",
            "/a/${b}",
        ] {
            assert_eq!(usable_reference(value), None, "{value}");
        }
    }

    #[test]
    fn values_that_look_like_references() {
        for value in [
            "http://example.org",
            "HTTPS://EXAMPLE.ORG:8443/a?b=c#d",
            "http://user@example.org/",
            "http://192.0.2.1/x",
            "ftp://example.org/a.zip",
            "//cdn.example.org/x",
            "/img/a.png",
            "/Public Comments/a.pdf",
            "http://example.org/a b.pdf",
            "../a/b.pdf?x=1",
            "img/a.webp",
            "https://creativecommons.org/licenses/by/4.0/",
            "http://www.w3.org/TR/xml/",
        ] {
            assert_eq!(likely_reference(value, NameHint::Any), Some(value));
            assert_eq!(likely_reference(value, NameHint::Promising), Some(value));
        }
        for value in [
            "/a/b",
            "a.png",
            "./next",
            "/search?q=a+b",
            "?page=2",
            "Public Comments/a.pdf",
        ] {
            assert_eq!(likely_reference(value, NameHint::Promising), Some(value));
            assert_eq!(likely_reference(value, NameHint::Any), None, "{value}");
        }
        for value in [
            "",
            "plain",
            "a b",
            "see /a.png now",
            "/a  b.png",
            "/a b?c=d.png",
            "/a b",
            "1.5",
            "12/31/2024",
            "text/html",
            "#fff",
            "/",
            "/1",
            "http://localhost/x",
            "http://a",
            "http://www.w3.org/1999/xhtml",
            "https://schema.org/Person",
            "http://example.org/%s",
            "/users/:id",
            "/a/*.png",
            "mailto:a@example.org",
            "a//b.png",
            "{x}.png",
            "Europe/Berlin",
        ] {
            assert_eq!(
                likely_reference(value, NameHint::Promising),
                None,
                "{value}"
            );
            assert_eq!(likely_reference(value, NameHint::Any), None, "{value}");
        }
    }

    #[test]
    fn the_last_word_of_a_name_counts() {
        for name in [
            "url",
            "imageUrl",
            "image_url",
            "hero-image",
            "thumbnailURL",
            "@src",
            "Next",
            "image1",
            "url_2",
        ] {
            assert_eq!(name_hint(name), NameHint::Promising, "{name}");
        }
        for name in [
            "",
            "propertyPath",
            "sourceArn",
            "firstName",
            "hrefLang",
            "title",
            "curl",
            "security",
            "nextflow",
            "imaginary",
        ] {
            assert_eq!(name_hint(name), NameHint::Any, "{name}");
        }
    }

    #[test]
    fn uris_in_running_text() {
        let text = "See http://example.org/a. Or (https://example.org/b), <ftp://example.org/c>; \
                    xhttp://example.org/d 'http://example.org/e' http://x/ ://y http://example.org/f_(g) \
                    “http://example.org/h” http://127.0.0.1/ http://www.example-";
        let found: Vec<_> = uris_in(text).collect();
        assert_eq!(
            found,
            [
                "http://example.org/a",
                "https://example.org/b",
                "ftp://example.org/c",
                "http://example.org/e",
                "http://example.org/f_(g)",
                "http://example.org/h",
            ]
        );
    }

    #[test]
    fn values_with_entities_are_rejected() {
        let text = "http://example.org/current/&package;/ http://example.org/&b; http://example.org/?a=1&amp;b=2;";
        let found: Vec<_> = uris_in(text).collect();
        assert_eq!(found, ["http://example.org/?a=1&amp;b=2"]);
        assert_eq!(likely_reference("/a/&b;.html", NameHint::Promising), None);
        for value in ["/a.html?b=1&c;d;", "/a.html?b&;", "/a.html?&#38;"] {
            assert!(has_entity(value) == value.contains("&c;"), "{value}");
        }
    }

    #[test]
    fn references_are_resolved() {
        for (base, value, expected) in [
            ("http://example.org/x/y?z", "a", "http://example.org/x/a"),
            ("http://example.org", "a", "http://example.org/a"),
            ("http://example.org/x/", "/a", "http://example.org/a"),
            ("/x/", "a", "/x/a"),
            ("x", "a", "a"),
            ("/x/", "http://example.org/", "http://example.org/"),
            ("/x/y", "", "/x/y"),
        ] {
            assert_eq!(join(base, value), expected, "{base} {value}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "([ a-z./:?#%<'()-]|http://|é){0,60}") {
            for found in uris_in(&text) {
                prop_assert!(text.contains(found));
            }
            usable_reference(&text);
            likely_reference(&text, NameHint::Promising);
            is_markup(&text);
            join(&text, "a");
        }
    }
}
