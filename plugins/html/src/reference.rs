//! Classifies values of attributes: references to fetch, scripts, and values that are neither.

/// Longest reference reported, in bytes. The host rejects references over 64 KiB and logs them. A value longer than 128 KiB is
/// not intended as a URI.
pub(crate) const REFERENCE_BYTES_MAX: usize = 128 * 1024;

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference<'a> {
    /// A reference to resolve and fetch, without surrounding blanks.
    Link(&'a str),
    /// The percent-encoded code of a `javascript:` URI.
    Script(&'a str),
    /// Nothing to fetch: empty, a position on the same page, a scheme without documents, or a template's placeholder.
    None,
}

/// Schemes without documents that a crawler could fetch, sorted.
const UNFETCHABLE: &[&str] = &[
    "about",
    "blob",
    "callto",
    "chrome",
    "chrome-extension",
    "cid",
    "clsid",
    "data",
    "facetime",
    "fax",
    "feed-reader",
    "geo",
    "im",
    "intent",
    "java",
    "livescript",
    "magnet",
    "mailto",
    "maps",
    "market",
    "mid",
    "mocha",
    "ms-settings",
    "res",
    "resource",
    "sip",
    "sips",
    "skype",
    "sms",
    "smsto",
    "steam",
    "tel",
    "tg",
    "urn",
    "vbscript",
    "viber",
    "view-source",
    "webcal",
    "whatsapp",
    "x-apple-reader",
    "xmpp",
];

/// Classifies a value whose character references are decoded.
pub(crate) fn reference(value: &str) -> Reference<'_> {
    let value = trim(value);
    if value.is_empty()
        || value.starts_with('#')
        || value.len() > REFERENCE_BYTES_MAX
        || is_template(value)
    {
        return Reference::None;
    }
    match scheme(value) {
        None => Reference::Link(value),
        Some((scheme, rest)) => match scheme.as_str() {
            "javascript" => Reference::Script(rest),
            scheme if UNFETCHABLE.binary_search(&scheme).is_ok() => Reference::None,
            "http" | "https" if !may_have_host(rest) => Reference::None,
            _ => Reference::Link(value),
        },
    }
}

/// Returns `true` if the text after the scheme may begin with a host. `http:` or `https://` alone and a host `<host>` come from
/// templates and examples.
fn may_have_host(rest: &str) -> bool {
    let after = rest.trim_start_matches(['/', '\\']);
    let end = after.find(['/', '\\', '?', '#']);
    let authority = &after[..end.unwrap_or(after.len())];
    !authority.is_empty() && !authority.contains(['<', '>'])
}

/// Returns `true` if a raw value is a `data:` URI. The check before decoding saves the decoding of megabytes.
pub(crate) fn is_data(raw: &str) -> bool {
    let raw = trim(raw).as_bytes();
    raw.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"data:"))
}

/// Strips the blanks and controls that browsers strip from both ends of a reference.
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches(|c: char| c <= ' ')
}

/// Returns `true` if a value contains a placeholder of a template.
fn is_template(value: &str) -> bool {
    value.contains("{{") || value.contains("<%") || value.contains("${")
}

/// The scheme in lower case, and the text after its colon. Line breaks and tabs in it are ignored, as in browsers:
/// `java&#10;script:` runs.
fn scheme(value: &str) -> Option<(String, &str)> {
    /// Longest scheme that is recognised, in bytes. All schemes in use are shorter.
    const SCHEME_BYTES_MAX: usize = 32;
    let mut scheme = String::new();
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            b'a'..=b'z' | b'A'..=b'Z' => scheme.push(byte.to_ascii_lowercase().into()),
            b'0'..=b'9' | b'+' | b'-' | b'.' if !scheme.is_empty() => scheme.push(byte.into()),
            b':' if !scheme.is_empty() => return Some((scheme, &value[at + 1..])),
            _ => return None,
        }
        if scheme.len() > SCHEME_BYTES_MAX {
            return None;
        }
    }
    None
}

/// Resolves `value` against a `base` that may itself be relative, such as the codebase of an applet (RFC 3986 §5.2.2). The host
/// resolves dot segments.
pub(crate) fn join(base: &str, value: &str) -> String {
    let base = trim(base);
    if value.starts_with("//") || scheme(value).is_some() {
        return value.to_owned();
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
        .map_or(base.len(), |n| from + n)
}

/// File endings that mark a value as a reference if its attribute may contain other text, sorted.
const PAGE_ENDINGS: &[&str] = &[
    "asp", "aspx", "cfm", "cgi", "css", "doc", "docx", "gif", "htm", "html", "jpeg", "jpg", "js",
    "json", "jsp", "mp3", "mp4", "pdf", "php", "png", "rss", "shtml", "svg", "swf", "txt", "webm",
    "webp", "xhtml", "xml", "zip",
];

/// Returns `true` if the value of a general attribute (`value`, `data-*`) looks like a reference.
pub(crate) fn is_likely(value: &str) -> bool {
    let value = trim(value);
    if value.len() > REFERENCE_BYTES_MAX
        || value.bytes().any(|b| {
            b <= b' '
                || matches!(
                    b,
                    b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`'
                )
        })
    {
        return false;
    }
    if is_absolute(value) {
        return true;
    }
    if let Some(rest) = value.strip_prefix("//") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return host.starts_with(char::is_alphanumeric)
            && host.contains('.')
            && !host.ends_with('.');
    }
    let path = value.strip_prefix("./").unwrap_or(value);
    let path = path.trim_start_matches("../");
    let has_dots = path.len() < value.len();
    let rest = path.strip_prefix('/').unwrap_or(path);
    if !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '~' | '%' | '?' | '-'))
    {
        return false;
    }
    if rest.len() < path.len() {
        return true;
    }
    let file = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    let ending = file
        .rsplit_once('.')
        .filter(|(stem, _)| !stem.is_empty())
        .map(|(_, ending)| ending.to_ascii_lowercase());
    !file.contains(':')
        && (has_dots
            || ending.is_some_and(|ending| PAGE_ENDINGS.binary_search(&ending.as_str()).is_ok()))
}

/// Returns `true` if a value begins with `http://` or `https://` and a host, and contains no blanks.
pub(crate) fn is_absolute(value: &str) -> bool {
    let value = trim(value);
    ["http://", "https://"].iter().any(|scheme| {
        value
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && value[scheme.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '[')
    }) && !value.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: Reference<'_>) {
        assert_eq!(reference(value), expected, "{value:?}");
    }

    #[test]
    fn references_to_documents_are_links() {
        check(" x y.html ", Reference::Link("x y.html"));
        check("a\nb.html", Reference::Link("a\nb.html"));
        check(
            "//cdn.example.org/x",
            Reference::Link("//cdn.example.org/x"),
        );
        check("HTTP://example.org", Reference::Link("HTTP://example.org"));
        check(
            "ftp://example.org/a",
            Reference::Link("ftp://example.org/a"),
        );
        check("a:b", Reference::Link("a:b"));
        check("http://e.org/<a>", Reference::Link("http://e.org/<a>"));
        check("?a=tel:1", Reference::Link("?a=tel:1"));
    }

    #[test]
    fn unfetchable_values_are_not_links() {
        for value in [
            "",
            " \n",
            "#top",
            "mailto:a@example.org",
            "TEL:1",
            "data:,x",
            "about:blank",
            "blob:x",
            "da\nta:,x",
            "urn:isbn:1",
            "http://",
            "https:",
            "http://<host>/a",
            "https://<user>@<host>",
            "{{ url }}",
            "<%= url %>",
            "/a/${b}",
        ] {
            check(value, Reference::None);
        }
        check(&"a".repeat(REFERENCE_BYTES_MAX + 1), Reference::None);
    }

    #[test]
    fn script_uris_give_their_code() {
        check(" java\tscript:open('/x')", Reference::Script("open('/x')"));
    }

    #[test]
    fn lists_are_sorted() {
        assert!(UNFETCHABLE.is_sorted());
        assert!(PAGE_ENDINGS.is_sorted());
    }

    #[test]
    fn references_resolve_against_a_codebase() {
        for (base, value, expected) in [
            ("lib/", "a.jar", "lib/a.jar"),
            ("lib", "a.jar", "a.jar"),
            ("/x/y?z=/", "a.jar", "/x/a.jar"),
            ("http://example.org", "a.jar", "http://example.org/a.jar"),
            (
                "http://example.org/x/y",
                "/a.jar",
                "http://example.org/a.jar",
            ),
            ("//example.org/x/", "../a.jar", "//example.org/x/../a.jar"),
            (
                "lib/",
                "http://example.org/a.jar",
                "http://example.org/a.jar",
            ),
            ("lib/", "//example.org/a.jar", "//example.org/a.jar"),
        ] {
            assert_eq!(join(base, value), expected, "{base} {value}");
        }
    }

    #[test]
    fn values_that_look_like_references() {
        for value in [
            "/o.html",
            "http://example.org",
            "https://example.org/a b"
                .split(' ')
                .next()
                .unwrap_or_default(),
            "a/b.html",
            "../x",
            "./x",
            "photo.jpg",
            "list.php?page=2",
            "/a",
            "//cdn.example.org/x.js",
        ] {
            assert!(is_likely(value), "{value}");
        }
        for value in [
            "plain",
            "",
            "1.5",
            "12/31/2024",
            "text/html",
            "#fff",
            "a b.html",
            "/",
            "/*",
            "http://",
            "{{x}}.png",
            ".html",
            "a:b.html",
        ] {
            assert!(!is_likely(value), "{value}");
        }
    }
}
