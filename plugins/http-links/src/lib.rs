//! The `http` extractor: references in the headers of a response, whatever its media type.
//!
//! It reads `Location` of a redirect, `Content-Location`, `Refresh`, and `Link` (RFC 8288). It ignores `Alt-Svc`, which names
//! another server for the same resource.

mod link_header;

use opilio_plugin::prelude::*;

pub use crate::link_header::{LinkValue, parse};

/// Longest reference reported, in bytes.
const REFERENCE_BYTES_MAX: usize = 16 * 1024;

/// Settings of the `http` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report `Content-Location`: another URI of the same content (hop I).
    pub content_location: bool,
    /// Whether to report `Link` headers.
    pub link_headers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            content_location: true,
            link_headers: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Debug)]
pub struct HttpLinks {
    settings: Settings,
}

impl Plugin for HttpLinks {
    const NAME: &'static str = "http";
    const SUMMARY: &'static str =
        "References in response headers: Location, Content-Location, Refresh, Link";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Extractor for HttpLinks {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() {
            return Extraction::default();
        }
        Extraction::links(self.links(document.status(), &document.headers()))
    }
}

impl HttpLinks {
    /// References in the headers of a response with this status, in the order of the headers.
    #[must_use]
    pub fn links(&self, status: i32, headers: &[Header]) -> Vec<Link> {
        let mut links = Vec::new();
        for header in headers {
            let value = header.value.as_str();
            match header.name.to_ascii_lowercase().as_str() {
                "location" if is_redirect(status) => {
                    push_link(&mut links, value, Hop::Redirect, "Location:")
                }
                "content-location" if self.settings.content_location => {
                    push_link(&mut links, value, Hop::Inferred, "Content-Location:");
                }
                "refresh" => {
                    if let Some(target) = refresh_target(value) {
                        push_link(&mut links, target, Hop::Redirect, "Refresh:");
                    }
                }
                "link" if self.settings.link_headers => {
                    for link in parse(value) {
                        let Some(hop) = link_hop(&link) else {
                            continue;
                        };
                        let before = links.len();
                        push_link(&mut links, &link.target, hop, "Link:");
                        if let Some(found) = links.get_mut(before)
                            && !link.rel.is_empty()
                        {
                            *found = std::mem::take(found)
                                .attribute("rel", link.rel.to_ascii_lowercase());
                        }
                    }
                }
                _ => {}
            }
        }
        links
    }
}

/// Returns `true` if `Location` is a redirect under this status code (RFC 9110 §15.4). With 201 it names the created resource;
/// with 304 it has no meaning.
fn is_redirect(status: i32) -> bool {
    matches!(status, 300..=303 | 307 | 308)
}

/// The hop of a link: `Hop::Embed` if rendering needs the target. `None` without a relation type, and if the target is not a
/// document but a host to connect to or an endpoint.
fn link_hop(link: &LinkValue) -> Option<Hop> {
    let mut words = link
        .rel
        .split_ascii_whitespace()
        .map(str::to_ascii_lowercase)
        .peekable();
    words.peek()?;
    let mut hop = None;
    for word in words {
        match word.as_str() {
            "stylesheet" | "preload" | "modulepreload" | "icon" | "prefetch" | "prerender"
            | "manifest" => {
                return Some(Hop::Embed);
            }
            "dns-prefetch" | "preconnect" | "pingback" | "webmention" => {}
            word if word.starts_with("apple-touch-") => return Some(Hop::Embed),
            // Other types, and URIs as types, belong to ordinary links.
            _ => hop = Some(Hop::Link),
        }
    }
    hop
}

/// The reference in a `Refresh` header, read as browsers read `<meta http-equiv=refresh>`.
fn refresh_target(value: &str) -> Option<&str> {
    let rest = value.trim_start();
    let time = rest
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    if time == 0 {
        return None;
    }
    let after = &rest[time..];
    let rest = after.trim_start();
    let rest = match rest.strip_prefix([';', ',']) {
        Some(rest) => rest.trim_start(),
        None if rest.len() < after.len() => rest,
        None => return None,
    };
    let named = rest
        .split_at_checked(3)
        .filter(|(word, _)| word.eq_ignore_ascii_case("url"))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    let rest = named.unwrap_or(rest).trim_start();
    let target = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest,
    };
    Some(target)
}

/// Restores UTF-8, which servers send. Header values have the bytes outside of ASCII as characters of ISO-8859-1.
fn restore_utf8(value: &str) -> String {
    let bytes: Option<Vec<u8>> = value
        .chars()
        .map(|c| u8::try_from(u32::from(c)).ok())
        .collect();
    match bytes.map(String::from_utf8) {
        Some(Ok(text)) => text,
        _ => value.to_owned(),
    }
}

/// Adds a link, unless its value cannot be fetched or is too long.
fn push_link(links: &mut Vec<Link>, value: &str, hop: Hop, context: &str) {
    let value = value.trim();
    let scheme = value.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_fetchable = ![
        "data",
        "javascript",
        "about",
        "blob",
        "mailto",
        "tel",
        "urn",
    ]
    .iter()
    .any(|other| scheme.eq_ignore_ascii_case(other));
    if !value.is_empty()
        && !value.starts_with('#')
        && value.len() <= REFERENCE_BYTES_MAX
        && is_fetchable
    {
        links.push(Link::new(restore_utf8(value), hop, context));
    }
}

opilio_plugin::export!(extractors: [HttpLinks]);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::document;

    use super::*;

    #[track_caller]
    fn check(status: i32, headers: &[(&str, &str)], expected: &[(&str, Hop)]) {
        let mut draft = document("http://example.org/").status(status);
        for (name, value) in headers {
            draft = draft.header(name, value);
        }
        let plugin = plugins().configure("http", "{}").unwrap();
        let links = plugin.extract(&[draft.text("")]).remove(0).links;
        let found: Vec<_> = links
            .iter()
            .map(|link| (link.uri.as_str(), link.hop.clone()))
            .collect();
        assert_eq!(found, expected, "{status} {headers:?}");
    }

    #[test]
    fn location_is_reported_only_for_redirects() {
        for status in [300, 301, 302, 303, 307, 308] {
            check(status, &[("Location", " /x ")], &[("/x", Hop::Redirect)]);
        }
        for status in [200, 201, 204, 304, 404, 500, -2] {
            check(status, &[("location", "/x")], &[]);
        }
        check(
            301,
            &[("Location", "caf\u{c3}\u{a9}")],
            &[("café", Hop::Redirect)],
        );
        check(
            301,
            &[("Location", "caf\u{e9}")],
            &[("café", Hop::Redirect)],
        );
        check(301, &[("Location", "")], &[]);
        check(301, &[("Location", "#x")], &[]);
        check(302, &[("Location", "mailto:a@example.org")], &[]);
    }

    #[test]
    fn other_headers_are_reported_for_any_status() {
        check(
            200,
            &[("CONTENT-LOCATION", "x.de.html")],
            &[("x.de.html", Hop::Inferred)],
        );
        check(404, &[("Refresh", "5; url=/y")], &[("/y", Hop::Redirect)]);
        check(
            200,
            &[("Refresh", "0;URL='/a b'")],
            &[("/a b", Hop::Redirect)],
        );
        check(200, &[("Refresh", "5")], &[]);
        check(200, &[("Alt-Svc", "h3=\":443\""), ("Server", "x")], &[]);
    }

    #[test]
    fn rel_determines_the_hop_of_link_headers() {
        check(
            200,
            &[
                (
                    "Link",
                    "</a.css>; rel=preload; as=style, </b>; rel=\"next\"",
                ),
                ("Link", "<c>; rel=dns-prefetch, <d>;title=x"),
            ],
            &[("/a.css", Hop::Embed), ("/b", Hop::Link)],
        );
        check(200, &[("Link", "<#x>; rel=next, <>; rel=self")], &[]);
    }

    #[test]
    fn settings_exclude_headers() {
        let plugin = plugins()
            .configure("http", r#"{"content-location":false,"link-headers":false}"#)
            .unwrap();
        let document = document("http://example.org/")
            .header("Content-Location", "x")
            .header("Link", "<y>; rel=next");
        assert!(plugin.extract(&[document.text("")])[0].links.is_empty());
    }

    #[test]
    fn fragments_have_no_headers() {
        let plugin = plugins().configure("http", "{}").unwrap();
        let document = document("http://example.org/")
            .header("Content-Location", "x")
            .fragment("script");
        assert!(plugin.extract(&[document.text("")])[0].links.is_empty());
    }
}
