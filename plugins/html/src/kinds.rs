//! Classifies links by the `rel` of `<link>`, the name of `<meta>` and the type of `<script>`.

use opilio_plugin::Hop;

use crate::reference::{is_absolute, is_likely};
use crate::settings::Settings;

/// The hop of `<link rel=… href>`; `None` if the link does not name a document, or the settings ignore it.
pub(crate) fn link_hop(rel: &str, settings: &Settings) -> Option<Hop> {
    let mut hop = None;
    for word in rel.split_ascii_whitespace() {
        let word = word.to_ascii_lowercase();
        let kind = match word.as_str() {
            // The page needs the document; other words do not matter.
            "stylesheet" | "icon" | "preload" | "modulepreload" | "prefetch" | "prerender"
            | "mask-icon" | "fluid-icon" | "image_src" | "import" | "subresource"
            | "stylesheet/less" => return Some(Hop::Embed),
            word if word.starts_with("apple-touch-") => return Some(Hop::Embed),
            // A host to connect to, or an endpoint for other servers; not a document.
            "dns-prefetch" | "preconnect" | "pingback" => None,
            "manifest" => settings.manifest_links.hop(),
            "canonical" => settings.canonical_links.hop(),
            "alternate" => settings.alternate_links.hop(),
            "next" | "prev" | "previous" => settings.next_links.hop(),
            "nofollow" if !settings.follow_nofollow => return None,
            // Words that only modify the others.
            "nofollow" | "noopener" | "noreferrer" | "external" => continue,
            _ => Some(Hop::Link),
        };
        hop = hop.or(kind);
    }
    hop
}

/// The meaning of a `<meta>` content, by its `name`, `property` or `itemprop`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meta {
    /// Rules for robots.
    Robots,
    /// A reference with this hop.
    Reference(Hop),
    /// Text without a reference.
    Text,
}

/// Classifies the content of a `<meta>` by its name.
pub(crate) fn meta(name: &str, content: &str) -> Meta {
    let name = name.trim().to_ascii_lowercase();
    if name == "robots" {
        return Meta::Robots;
    }
    let hop = match name.as_str() {
        "og:image"
        | "og:image:url"
        | "og:image:secure_url"
        | "og:video"
        | "og:video:url"
        | "og:video:secure_url"
        | "og:audio"
        | "og:audio:url"
        | "og:audio:secure_url"
        | "og:logo"
        | "twitter:image"
        | "twitter:image:src"
        | "twitter:player:stream"
        | "msapplication-tileimage"
        | "thumbnail"
        | "image"
        | "thumbnailurl"
        | "contenturl"
        | "logo"
        | "image_src" => Some(Hop::Embed),
        name if is_tile(name) => Some(Hop::Embed),
        "msapplication-config" if !content.trim().eq_ignore_ascii_case("none") => Some(Hop::Embed),
        "og:url" | "twitter:url" | "twitter:player" | "msapplication-starturl" | "url" => {
            Some(Hop::Link)
        }
        name if name.starts_with("citation_") && name.ends_with("_url") => Some(Hop::Link),
        _ => None,
    };
    match hop {
        Some(hop) => Meta::Reference(hop),
        None if is_absolute(content) => Meta::Reference(Hop::Speculative),
        None => Meta::Text,
    }
}

fn is_tile(name: &str) -> bool {
    ["msapplication-square", "msapplication-wide"]
        .iter()
        .any(|start| name.starts_with(start))
        && name.ends_with("logo")
}

/// Returns `true` if an `itemprop` on an element with a reference names a part of the page.
pub(crate) fn is_embedded_property(itemprop: &str) -> bool {
    itemprop.split_ascii_whitespace().any(|word| {
        ["image", "thumbnailurl", "contenturl", "logo"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name))
    })
}

/// The hop of the value of an object's `<param>`; `None` if it is not a reference.
pub(crate) fn param_hop(name: &str, value: &str) -> Option<Hop> {
    match name {
        "movie" | "src" => Some(Hop::Embed),
        _ if !is_likely(value) => None,
        "data" | "filename" | "url" | "href" | "image" | "background" | "source" => {
            Some(Hop::Embed)
        }
        _ => Some(Hop::Speculative),
    }
}

/// The media type of an inline script, for the extractors of that type; `None` if its kind is unknown.
pub(crate) fn script_type(kind: Option<&str>, language: Option<&str>) -> Option<String> {
    const JAVASCRIPT: &str = "text/javascript";
    let kind = kind.map(|kind| {
        kind.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    });
    let found = match kind.as_deref() {
        None | Some("") => match language.map(str::to_ascii_lowercase).as_deref() {
            Some("vbscript" | "vbs") => "text/vbscript",
            _ => JAVASCRIPT,
        },
        Some(
            "module" | "text/javascript" | "application/javascript" | "application/x-javascript" | "text/ecmascript"
            | "application/ecmascript" | "text/x-javascript" | "text/jscript" | "text/livescript" | "text/babel"
            | "text/jsx" | "javascript" | "text/javascript1.0" | "text/javascript1.1" | "text/javascript1.2"
            | "text/javascript1.3" | "text/javascript1.4" | "text/javascript1.5" | "text/typescript"
            // Types with which optimisers defer a script.
            | "text/rocketscript" | "text/plain" | "text/partytown" | "application/x-ecmascript",
        ) => JAVASCRIPT,
        Some("importmap") => "application/importmap+json",
        Some("speculationrules") => "application/speculationrules+json",
        Some(
            "text/template" | "text/x-template" | "text/html" | "text/ng-template" | "text/x-jquery-tmpl"
            | "text/x-handlebars" | "text/x-handlebars-template" | "text/x-mustache" | "text/mustache"
            | "text/x-mustache-template" | "text/x-tmpl" | "text/x-underscore" | "text/x-dot-template" | "x-tmpl-mustache"
            | "text/x-magento-template" | "text/x-kendo-template" | "text/tmpl",
        ) => "text/html",
        // Types of Rocket Loader and similar tools: `<digits>-text/javascript`.
        Some(other) if other.ends_with("-text/javascript") || other.ends_with("-module") => JAVASCRIPT,
        Some(other) if other.contains('/') => return Some(other.to_owned()),
        Some(_) => return None,
    };
    Some(found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rel: &str, expected: Option<Hop>) {
        assert_eq!(link_hop(rel, &Settings::default()), expected, "{rel}");
    }

    #[test]
    fn rel_determines_the_hop() {
        for rel in [
            "stylesheet",
            "my STYLESHEET rocks",
            "shortcut icon",
            "alternate stylesheet",
            "preload",
            "apple-touch-icon-precomposed",
            "manifest",
            "dns-prefetch stylesheet",
        ] {
            check(rel, Some(Hop::Embed));
        }
        for rel in [
            "canonical",
            "alternate",
            "alternate nofollow",
            "next",
            "unknown",
            "author",
            "search",
        ] {
            check(rel, Some(Hop::Link));
        }
        for rel in [
            "",
            "  ",
            "pingback",
            "dns-prefetch",
            "preconnect",
            "dns-prefetch preconnect",
            "noopener",
        ] {
            check(rel, None);
        }
    }

    #[test]
    fn settings_change_or_ignore_links() {
        use crate::settings::LinkUse;
        let settings = Settings {
            manifest_links: LinkUse::Link,
            canonical_links: LinkUse::Ignore,
            ..Settings::default()
        };
        assert_eq!(link_hop("manifest", &settings), Some(Hop::Link));
        assert_eq!(link_hop("canonical", &settings), None);
        let settings = Settings {
            follow_nofollow: false,
            ..Settings::default()
        };
        assert_eq!(link_hop("alternate nofollow", &settings), None);
    }

    #[test]
    fn meta_contents_are_classified_by_name() {
        assert_eq!(meta("ROBOTS", "noindex"), Meta::Robots);
        assert_eq!(meta("og:image", "a.png"), Meta::Reference(Hop::Embed));
        assert_eq!(
            meta("msapplication-square70x70logo", "a.png"),
            Meta::Reference(Hop::Embed)
        );
        assert_eq!(meta("og:url", "/a"), Meta::Reference(Hop::Link));
        assert_eq!(
            meta("citation_pdf_url", "a.pdf"),
            Meta::Reference(Hop::Link)
        );
        assert_eq!(meta("msapplication-config", "none"), Meta::Text);
        assert_eq!(
            meta("x", "https://example.org/"),
            Meta::Reference(Hop::Speculative)
        );
        assert_eq!(meta("description", "see https://example.org/"), Meta::Text);
    }

    #[test]
    fn script_types_are_classified() {
        for (kind, expected) in [
            (None, Some("text/javascript")),
            (Some(""), Some("text/javascript")),
            (Some("module"), Some("text/javascript")),
            (
                Some("Text/JavaScript; charset=utf-8"),
                Some("text/javascript"),
            ),
            (Some("a1b2-text/javascript"), Some("text/javascript")),
            (Some("application/ld+json"), Some("application/ld+json")),
            (Some("importmap"), Some("application/importmap+json")),
            (Some("text/x-template"), Some("text/html")),
            (Some("text/x-unknown"), Some("text/x-unknown")),
            (Some("unknown"), None),
        ] {
            assert_eq!(script_type(kind, None).as_deref(), expected, "{kind:?}");
        }
        assert_eq!(
            script_type(None, Some("VBScript")).as_deref(),
            Some("text/vbscript")
        );
        assert_eq!(
            script_type(None, Some("JavaScript1.2")).as_deref(),
            Some("text/javascript")
        );
    }
}
