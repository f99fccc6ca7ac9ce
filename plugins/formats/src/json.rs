//! The `json` extractor: values of JSON that look like references, or whose names suggest one.
//!
//! JSON-LD defines some members: pages (hop L) and images (hop E). All others are guesses (hop X). Strings with HTML or JSON are
//! passed to the extractors of these types.

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::reference::{self, NameHint};
use crate::values::{self, ValueHandler};
use crate::{Results, is_recognised};

/// Longest string that is passed on as a fragment, in bytes. Longer strings are data, not text for people.
const FRAGMENT_BYTES_MAX: usize = 1024 * 1024;

/// Settings of the `json` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report relative references too, not only URIs with a host.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub relative: bool,
    /// Whether to pass texts with HTML or JSON to their extractors.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub fragments: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            relative: true,
            fragments: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Json {
    settings: Settings,
}

impl Plugin for Json {
    const NAME: &'static str = "json";
    const SUMMARY: &'static str = "References in JSON and JSON-LD";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/json",
            "text/json",
            "application/x-json",
            "application/jsonlines",
            "application/x-ndjson",
            "*+json",
        ])
    }
}

impl Extractor for Json {
    fn extract(&self, document: &Document) -> Extraction {
        if is_recognised(document) {
            return Extraction::default();
        }
        let content = content(document);
        let mut values = Values {
            settings: self.settings,
            is_json_ld: document.media_type() == "application/ld+json",
            found: Results::default(),
        };
        let outcome = values::read(&content.text, &mut values);
        values
            .found
            .into_extraction(content.problem.or(outcome.err()))
    }
}

/// The references found in a document.
struct Values {
    settings: Settings,
    /// `true` for JSON-LD, which defines the meaning of some members.
    is_json_ld: bool,
    found: Results,
}

impl ValueHandler for Values {
    fn is_full(&self) -> bool {
        self.found.is_full()
    }

    fn text(&mut self, path: &[String], value: &str) {
        let name = path.last().map_or("", String::as_str);
        match json_ld_member(name) {
            // Such as `@context` and `@type`: names and words of vocabularies, not documents.
            Some(Member::Name) => self.is_json_ld |= name == "@context",
            Some(Member::Reference(hop)) if self.is_json_ld => {
                self.push_if_reference(name, value, hop);
            }
            _ if path.iter().any(|name| name == "@context") => {}
            _ => self.guess(name, value),
        }
    }
}

impl Values {
    fn push_if_reference(&mut self, name: &str, value: &str, hop: Hop) {
        let is_reference = reference::is_public_uri(value.trim())
            || (self.settings.relative
                && reference::likely_reference(value, NameHint::Promising).is_some());
        if is_reference {
            self.push(name, value, hop);
        }
    }

    fn guess(&mut self, name: &str, value: &str) {
        let hint = reference::name_hint(name);
        match reference::likely_reference(value, hint) {
            Some(value) if self.settings.relative || value.contains("//") => {
                self.push(name, value, Hop::Speculative);
            }
            Some(_) => {}
            None => self.read_text(name, value),
        }
    }

    fn push(&mut self, name: &str, value: &str, hop: Hop) {
        self.found.push(Link::new(value, hop, context(name)));
    }

    /// Passes on a text with HTML or JSON as a fragment. Finds URIs in any other text.
    fn read_text(&mut self, name: &str, value: &str) {
        if !(8..=FRAGMENT_BYTES_MAX).contains(&value.len()) {
            return;
        }
        let media_type = match value.trim_start().as_bytes().first() {
            Some(b'{' | b'[') if value.contains("/") => "application/json",
            _ if reference::is_markup(value) => "text/html",
            _ => return self.push_uris_in(name, value),
        };
        if self.settings.fragments {
            self.found.fragment(media_type, value, &context(name), None);
        }
    }

    fn push_uris_in(&mut self, name: &str, value: &str) {
        for uri in reference::uris_in(value) {
            self.push(name, uri, Hop::Speculative);
        }
    }
}

/// Returns the context of a member, such as `json/imageUrl`.
fn context(name: &str) -> String {
    /// The host keeps 200 bytes of a context.
    const NAME_BYTES_MAX: usize = 180;
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    if name.is_empty() {
        "json".to_owned()
    } else {
        format!("json/{name}")
    }
}

/// Meaning of a JSON-LD member.
enum Member {
    Reference(Hop),
    /// A name or word of a vocabulary.
    Name,
}

/// Returns the meaning of a member that schema.org or JSON-LD itself defines; `None` for all others.
fn json_ld_member(name: &str) -> Option<Member> {
    Some(match name {
        "@id" | "url" | "sameAs" | "mainEntityOfPage" | "item" | "significantLink"
        | "relatedLink" | "discussionUrl" | "downloadUrl" | "installUrl" | "license"
        | "acquireLicensePage" | "isPartOf" | "hasPart" | "target" => Member::Reference(Hop::Link),
        "image" | "logo" | "thumbnailUrl" | "thumbnail" | "contentUrl" | "embedUrl" | "photo"
        | "primaryImageOfPage" => Member::Reference(Hop::Embed),
        "@context" | "@type" | "@vocab" | "$schema" | "inLanguage" => Member::Name,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::document;

    use super::*;

    fn extract(media_type: &str, json: &str) -> Extraction {
        let document = document("http://e.org/").media_type(media_type).text(json);
        Json::new(Settings::default()).unwrap().extract(&document)
    }

    #[track_caller]
    fn check(media_type: &str, json: &str, expected: &[(&str, Hop)]) {
        let extraction = extract(media_type, json);
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| (link.uri.as_str(), link.hop.clone()))
            .collect();
        assert_eq!(found, expected, "{json}");
    }

    #[test]
    fn references_in_objects_and_arrays() {
        check(
            "application/json",
            r#"{"items": [{"href": "/a"}, {"x": ["http://e.org/b", "img/c.png", "d.png", 5]}],
                "next": "?page=2", "logo": "d.png", "text": "see http://e.org/e."}"#,
            &[
                ("/a", Hop::Speculative),
                ("http://e.org/b", Hop::Speculative),
                ("img/c.png", Hop::Speculative),
                ("?page=2", Hop::Speculative),
                ("d.png", Hop::Speculative),
                ("http://e.org/e", Hop::Speculative),
            ],
        );
    }

    #[test]
    fn values_that_are_not_references() {
        check(
            "application/json",
            r#"{"$schema": "http://json-schema.org/schema", "type": "text/html", "date": "12/31/2024",
                "ns": "http://www.w3.org/2000/svg", "mail": "mailto:a@e.org", "host": "e.org", "path": "/",
                "url": "data:image/png;base64,AAAA", "@context": {"name": "http://e.org/terms#name"}}"#,
            &[],
        );
    }

    #[test]
    fn json_ld_defines_hops() {
        let json = r##"{"@context": "https://schema.org", "@type": "NewsArticle", "@id": "#a",
            "url": "https://e.org/story", "image": ["/a.jpg", {"url": "/b.jpg"}], "sameAs": "https://e.net/",
            "keywords": "http://e.org/c"}"##;
        let expected = [
            ("https://e.org/story", Hop::Link),
            ("/a.jpg", Hop::Embed),
            ("/b.jpg", Hop::Link),
            ("https://e.net/", Hop::Link),
            ("http://e.org/c", Hop::Speculative),
        ];
        check("application/ld+json", json, &expected);
        check("application/json", json, &expected);
    }

    #[test]
    fn strings_of_html_and_json_become_fragments() {
        let extraction = extract(
            "application/json",
            r#"{"rendered": "<p><a href=\"/a\">x<\/a><\/p>", "state": "{\"url\":\"/b\"}", "note": "a < b"}"#,
        );
        let fragments: Vec<_> = extraction
            .fragments
            .iter()
            .map(|fragment| (fragment.media_type.as_str(), fragment.context.as_str()))
            .collect();
        assert_eq!(
            fragments,
            [
                ("text/html", "json/rendered"),
                ("application/json", "json/state")
            ]
        );
    }

    #[test]
    fn without_fragments_uris_in_text_are_reported() {
        let settings = Settings {
            fragments: false,
            ..Settings::default()
        };
        let json =
            r#"{"rendered": "<p><a href=\"/a\">x<\/a><\/p>", "text": "see http://e.org/b."}"#;
        let document = document("http://e.org/")
            .media_type("application/json")
            .text(json);
        let extraction = Json::new(settings).unwrap().extract(&document);
        assert!(extraction.fragments.is_empty());
        let found: Vec<_> = extraction.links.iter().map(|link| &link.uri).collect();
        assert_eq!(found, ["http://e.org/b"]);
    }

    #[test]
    fn links_of_a_truncated_document_are_reported() {
        let extraction = extract("application/json", r#"{"url": "/a.html", "b": "#);
        assert_eq!(extraction.links.len(), 1);
        assert!(extraction.problem.is_some());
    }
}
