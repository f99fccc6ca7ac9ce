//! Guesses: whether a string of a script is meant as a URI, and which URIs a query carries.
//!
//! A wrong yes costs a request for something that is not there, a wrong no loses a document. So anything that could be a
//! path is taken, and what scripts are full of is not: numbers, media types, property names, pieces of expressions.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use crate::percent;
use crate::uri::Uri;

/// Longest string taken for a URI in bytes. Longer ones in scripts are data.
const LIKELY_BYTES_MAX: usize = 4096;

/// Endings of file names that appear on the web. A name without a slash is taken for a file only with one of these.
const FILE_ENDINGS: &[&str] = &[
    "7z",
    "aac",
    "asf",
    "asp",
    "aspx",
    "atom",
    "avi",
    "avif",
    "bmp",
    "bz2",
    "cfm",
    "cgi",
    "class",
    "css",
    "csv",
    "dcr",
    "do",
    "doc",
    "docx",
    "dtd",
    "eot",
    "eps",
    "epub",
    "exe",
    "flac",
    "flv",
    "geojson",
    "gif",
    "gz",
    "htc",
    "htm",
    "html",
    "ico",
    "ics",
    "jar",
    "jp2",
    "jpe",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jsonld",
    "jsp",
    "jspx",
    "kml",
    "kmz",
    "m3u",
    "m3u8",
    "m4a",
    "m4v",
    "md",
    "mid",
    "midi",
    "mjs",
    "mkv",
    "mov",
    "mp3",
    "mp4",
    "mpd",
    "mpeg",
    "mpg",
    "odp",
    "ods",
    "odt",
    "oga",
    "ogg",
    "ogv",
    "opus",
    "otf",
    "pdf",
    "php",
    "php3",
    "php4",
    "php5",
    "phtml",
    "pl",
    "png",
    "pps",
    "ppt",
    "pptx",
    "ps",
    "py",
    "ra",
    "ram",
    "rar",
    "rdf",
    "rm",
    "rss",
    "rtf",
    "shtml",
    "srt",
    "svg",
    "svgz",
    "swf",
    "tar",
    "tgz",
    "tif",
    "tiff",
    "torrent",
    "ts",
    "ttf",
    "txt",
    "vtt",
    "wasm",
    "wav",
    "webm",
    "webmanifest",
    "webp",
    "wma",
    "wmv",
    "woff",
    "woff2",
    "xht",
    "xhtml",
    "xls",
    "xlsx",
    "xml",
    "xsd",
    "xsl",
    "xslt",
    "zip",
];

/// The registered top-level media types (RFC 6838 §4.2).
const MEDIA_TYPES: &[&str] = &[
    "application",
    "audio",
    "chemical",
    "example",
    "font",
    "haptics",
    "image",
    "message",
    "model",
    "multipart",
    "text",
    "video",
];

/// Whether a string found in a script or an attribute is probably a URI or a relative reference.
#[must_use]
pub fn is_likely_uri(text: &str) -> bool {
    if text.len() > LIKELY_BYTES_MAX || text.chars().any(is_never_in_a_uri) {
        return false;
    }
    if let Some((scheme, rest)) = text.split_once("://")
        && ["http", "https", "ftp", "ftps"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
    {
        return is_server(authority_of(rest));
    }
    if let Some(rest) = text.strip_prefix("//") {
        return is_public_name(authority_of(rest));
    }

    let (text, _fragment) = text.split_once('#').unwrap_or((text, ""));
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    if query.is_some_and(|query| !is_query(query)) {
        return false;
    }
    match query {
        Some(_) if path.is_empty() || path == "/" => true,
        _ => is_likely_path(path),
    }
}

/// Absolute http and https URIs that the query of `uri` carries as whole values, percent-decoded once: in
/// `/out?to=https%3A%2F%2Fexample.org%2F&x=1` the value of `to`. In the order of the query, each once.
#[must_use]
pub fn uris_in_query(uri: &Uri) -> Vec<Uri> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for pair in uri.query().unwrap_or_default().split('&') {
        let value = pair.split_once('=').map_or("", |(_, value)| value);
        for candidate in [pair, value] {
            let candidate = percent::decoded_once(candidate);
            let is_absolute = ["http://", "https://"].iter().any(|start| {
                candidate
                    .get(..start.len())
                    .is_some_and(|c| c.eq_ignore_ascii_case(start))
            });
            if is_absolute
                && let Ok(inner) = Uri::parse(&candidate)
                && seen.insert(inner.clone())
            {
                found.push(inner);
            }
        }
    }
    found
}

fn is_never_in_a_uri(character: char) -> bool {
    character <= ' '
        || character.is_whitespace()
        || matches!(
            character,
            '"' | '\'' | '<' | '>' | '{' | '}' | '|' | '\\' | '^' | '`' | '\u{7f}'
        )
}

fn authority_of(rest: &str) -> &str {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, server)| server)
}

/// A host that an absolute URI may name: what follows `http://` was meant as one, so little is asked of it.
fn is_server(server: &str) -> bool {
    let host = match server.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            if !port.bytes().all(|b| b.is_ascii_digit()) {
                return false;
            }
            host
        }
        _ => server,
    };
    if host.starts_with('[') {
        return host.ends_with(']');
    }
    !host.is_empty()
        && host.split('.').all(|label| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        })
}

/// A name under a suffix of the public suffix list, or an IPv4 address.
fn is_public_name(server: &str) -> bool {
    let host = server.split_once(':').map_or(server, |(host, _)| host);
    if host.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let lower = host.to_ascii_lowercase();
    is_server(server)
        && psl::suffix(lower.as_bytes()).is_some_and(|suffix| suffix.is_known())
        && psl::domain_str(&lower).is_some()
}

/// Scripts hold many strings with a question mark; those that are queries have a name and a value.
fn is_query(query: &str) -> bool {
    query
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty())
}

fn is_likely_path(path: &str) -> bool {
    if !path
        .chars()
        .all(|c| c.is_alphanumeric() || "/._~%!$&+,:@-".contains(c))
    {
        return false;
    }
    let is_rooted = ["/", "./", "../"]
        .iter()
        .any(|start| path.starts_with(start));
    // Dots, slashes and digits alone are dates, fractions and versions.
    if !path.chars().any(char::is_alphabetic) {
        return is_rooted && path.chars().any(char::is_numeric);
    }
    if is_rooted {
        return !path.contains("//");
    }
    let (first, rest) = match path.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    // A colon in the first segment makes it a scheme; a plus sign at an end makes it half an expression.
    if first.is_empty()
        || first.contains(':')
        || path.starts_with(['+', '.', '&', ',', '$', '!', '-', '@'])
        || path.ends_with('+')
    {
        return false;
    }
    match rest {
        None => has_file_ending(path) || is_host_of_a_site(path),
        Some(rest) => !is_media_type(first, rest) && !path.contains("//"),
    }
}

fn has_file_ending(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty()
            && !name.ends_with('.')
            && FILE_ENDINGS
                .binary_search(&ending.to_ascii_lowercase().as_str())
                .is_ok()
    })
}

/// `cdn.example.com`, but not `user.name`: two labels are a property of an object far more often than a site.
fn is_host_of_a_site(name: &str) -> bool {
    name.split('.').count() >= 3 && is_public_name(name)
}

fn is_media_type(first: &str, rest: &str) -> bool {
    MEDIA_TYPES.contains(&first.to_ascii_lowercase().as_str())
        && !rest.contains('/')
        && !has_file_ending(rest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[track_caller]
    fn check(expected: bool, texts: &[&str]) {
        for text in texts {
            assert_eq!(is_likely_uri(text), expected, "{text:?}");
        }
    }

    #[test]
    fn file_endings_can_be_searched() {
        assert!(FILE_ENDINGS.is_sorted());
    }

    #[test]
    fn absolute_uris_and_paths_are_likely() {
        check(
            true,
            &[
                "http://example.com",
                "HTTPS://a.b/c d".trim_end_matches(" d"),
                "//cdn.example.org/x.js",
                "http://localhost:8000/",
            ],
        );
        check(
            true,
            &[
                "photo.jpg",
                "./a",
                "../a/b",
                "/a/b?c=d#e",
                "a/b",
                "images/",
                "?page=2",
                "/?page=2",
                "example.org/x",
                "www.example.org",
                "image/cat.png",
            ],
        );
    }

    #[test]
    fn what_scripts_are_full_of_is_not() {
        check(
            false,
            &[
                "",
                "/",
                "//",
                "#top",
                "0.99",
                "1/2",
                "12/31/2020",
                "text/html",
                "image/svg+xml",
                "a b/c",
                "foo",
                "user.name",
            ],
        );
        check(
            false,
            &[
                "mailto:a@b.c",
                "javascript:void(0)",
                "a=b",
                "x+",
                "/a.html?foo",
                "http://",
                "http://www.",
                "//comment",
                ".example.com",
                "+a/b+",
                "http://a:b/",
            ],
        );
    }

    #[test]
    fn a_query_gives_its_whole_values() {
        let inner = |text: &str| -> Vec<String> {
            uris_in_query(&Uri::parse(text).unwrap())
                .iter()
                .map(Uri::to_string)
                .collect()
        };
        assert_eq!(
            inner("http://e.org/r?a=1&u=http%3A%2F%2Fa.org%2Fx%3Fy"),
            ["http://a.org/x?y"]
        );
        assert_eq!(
            inner("http://e.org/r?http://a.org/?b=c"),
            ["http://a.org/?b=c"]
        );
        assert_eq!(
            inner("http://e.org/r?u=see%20http://a.org/&v=ftp://a.org/"),
            [""; 0]
        );
    }
}
