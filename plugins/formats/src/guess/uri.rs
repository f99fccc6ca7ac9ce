//! The `uri` extractor: URIs in the document's own URI, as in the URIs of redirectors and web archives.

use opilio_plugin::prelude::*;

use crate::{Results, reference};

/// Deepest nesting of URIs in URIs.
const DEPTH_MAX: usize = 3;

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct UriInUri;

impl Plugin for UriInUri {
    const NAME: &'static str = "uri";
    const SUMMARY: &'static str = "URIs in the path and query of a document's own URI";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }
}

impl Extractor for UriInUri {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() {
            return Extraction::default();
        }
        let mut found = Results::default();
        find_in(&document.uri(), DEPTH_MAX, &mut found);
        Extraction::links(found.links)
    }
}

/// Finds URIs in the path of a URI and in the values of its query, percent-encoded or not.
fn find_in(uri: &str, depth: usize, found: &mut Results) {
    let Some((_, rest)) = uri.split_once("://").filter(|_| depth > 0) else {
        return;
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = path.split_once('/').map_or("", |(_, path)| path);
    if let Some(at) = uri_start(path) {
        // The query belongs to an unencoded URI in the path.
        let query_start = if query.is_empty() { "" } else { "?" };
        push(
            &format!("{}{query_start}{query}", &path[at..]),
            "uri/path",
            depth,
            found,
        );
    }
    for (at, value) in values(query) {
        let value = percent_decode(value);
        if uri_start(&value) == Some(0) {
            push(&value, "uri/query", depth, found);
        } else if uri_start(&percent_decode(&query[at..])) == Some(0) {
            push(&query[at..], "uri/query", depth, found);
        }
    }
}

/// Adds a URI, and the URIs in it.
fn push(value: &str, context: &str, depth: usize, found: &mut Results) {
    // Some servers merge two slashes into one.
    let value = match value.split_once(":/") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.trim_start_matches('/')),
        None => value.to_owned(),
    };
    if reference::is_public_uri(&value) {
        found.push(Link::new(value.as_str(), Hop::Speculative, context));
        find_in(&value, depth - 1, found);
    }
}

/// Returns the position of the first URI: of `http:/` or `https:/`, encoded or not.
fn uri_start(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    ["http:/", "https:/", "http%3a", "https%3a"]
        .iter()
        .filter_map(|start| lower.find(start))
        .min()
}

/// Returns the values of a query's parameters, with their positions. A parameter without a name is a value.
fn values(query: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    query.split(['&', ';']).map(move |parameter| {
        let start = at;
        at += parameter.len() + 1;
        match parameter.split_once('=') {
            Some((name, value)) if !name.contains(':') => (start + name.len() + 1, value),
            _ => (start, parameter),
        }
    })
}

/// Percent-decodes a text. Returns it unchanged if the result is not UTF-8.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(uri: &str, expected: &[&str]) {
        let mut found = Results::default();
        find_in(uri, DEPTH_MAX, &mut found);
        let uris: Vec<_> = found.links.iter().map(|link| link.uri.as_str()).collect();
        assert_eq!(uris, expected, "{uri}");
    }

    #[test]
    fn uris_in_queries() {
        check(
            "http://e.org/go?u=http%3A%2F%2Fe.net%2Fa%3Fb%3Dc&d=e",
            &["http://e.net/a?b=c"],
        );
        check("http://e.org/go?http://e.net/a", &["http://e.net/a"]);
        check(
            "http://e.org/?u=https://a.org/?q=1",
            &["https://a.org/?q=1"],
        );
        check("http://e.org/?a=1;u=http://e.net/", &["http://e.net/"]);
        check("http://e.org/?u=e.net&v=/http", &[]);
    }

    #[test]
    fn uris_in_paths() {
        check(
            "http://archive.e.org/web/2024/http://e.net/a?b=c",
            &["http://e.net/a?b=c"],
        );
        check("http://e.org/to/https:/e.net/a", &["https://e.net/a"]);
    }

    #[test]
    fn uris_in_uris_up_to_the_depth() {
        check(
            "http://a.org/http://b.org/http://c.org/http://d.org/http://e.org/",
            &[
                "http://b.org/http://c.org/http://d.org/http://e.org/",
                "http://c.org/http://d.org/http://e.org/",
                "http://d.org/http://e.org/",
            ],
        );
    }

    proptest! {
        #[test]
        fn any_uri_is_accepted(uri in "http://e.org/(http|:|/|%3A|%2F|&|=|;|\\?|#|é|%){0,40}") {
            find_in(&uri, DEPTH_MAX, &mut Results::default());
        }
    }
}
