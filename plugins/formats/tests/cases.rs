//! Golden cases, and cases of Heritrix. A case with a `reason` deliberately expects another answer than that of Heritrix.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use opilio_plugin::testing::document;
use opilio_plugin::{Configured, Hop};
use serde::Deserialize;
use url::Url;

/// Plugins in the order of the built-in profiles. The last two skip documents that an earlier one has recognised.
const STACK: [&str; 8] = [
    "robots", "sitemap", "feed", "manifest", "svg", "media", "json", "xml",
];

#[derive(Deserialize)]
struct Case {
    id: String,
    input: String,
    base: String,
    content_type: String,
    #[serde(default = "ok")]
    status: i32,
    /// Plugins to leave out of this case.
    #[serde(default)]
    without: Vec<String>,
    /// The letter of the hop, a blank, and the URI.
    expected: Vec<String>,
}

fn ok() -> i32 {
    200
}

/// Returns the plugins that handle this type and URI, chosen as by the host.
fn plugins_for(media_type: &str, uri: &str) -> Vec<(&'static str, Configured)> {
    let plugins = opilio_formats::plugins();
    let handled = |name: &str| {
        let description = plugins
            .describe()
            .into_iter()
            .find(|one| one.name == name)
            .unwrap();
        let types = &description.handles.media_types;
        let is_robots = !description.handles.uris.is_empty();
        (types.is_empty()
            || types.iter().any(|one| {
                one == media_type
                    || one
                        .strip_prefix('*')
                        .is_some_and(|end| media_type.ends_with(end))
            }))
            && (!is_robots || uri.ends_with("/robots.txt"))
    };
    STACK
        .into_iter()
        .filter(|name| handled(name))
        .map(|name| (name, plugins.configure(name, "{}").unwrap()))
        .collect()
}

fn letter(hop: &Hop) -> char {
    match hop {
        Hop::Link => 'L',
        Hop::Embed => 'E',
        Hop::Manifest => 'M',
        Hop::Inferred => 'I',
        _ => 'X',
    }
}

#[test]
fn golden_cases_pass() {
    opilio_plugin::testing::check_cases(&opilio_formats::plugins(), "cases");
}

#[test]
fn every_heritrix_case_passes() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../cases/predecessor/cases.json")).unwrap();
    assert!(cases.len() >= 13);
    for case in cases {
        let base = Url::parse(&case.base).unwrap();
        let mut found = BTreeSet::new();
        let document = document(&case.base)
            .media_type(&case.content_type)
            .status(case.status)
            .text(&case.input);
        for (name, plugin) in plugins_for(&case.content_type, &case.base) {
            if case.without.iter().any(|other| other == name) {
                continue;
            }
            let extraction = plugin.extract(std::slice::from_ref(&document)).remove(0);
            found.extend(
                extraction
                    .links
                    .iter()
                    .map(|link| (letter(&link.hop), base.join(&link.uri).unwrap())),
            );
        }
        let expected = case.expected.iter().map(|one| {
            let (hop, uri) = one.split_once(' ').unwrap();
            (hop.chars().next().unwrap(), Url::parse(uri).unwrap())
        });
        assert_eq!(found, expected.collect(), "{}", case.id);
    }
}

#[test]
fn recognised_documents_have_a_note() {
    for (name, media_type, text) in [
        ("sitemap", "text/plain", "http://e.org/a\nhttp://e.org/b"),
        (
            "feed",
            "text/xml",
            "<rss><channel><link>/</link></channel></rss>",
        ),
        ("manifest", "application/manifest+json", "{}"),
        ("svg", "image/svg+xml", "<svg/>"),
        ("media", "text/plain", "#EXTM3U"),
    ] {
        let plugin = opilio_formats::plugins().configure(name, "{}").unwrap();
        let document = document("http://e.org/").media_type(media_type).text(text);
        let _ = plugin.extract(std::slice::from_ref(&document));
        assert_eq!(document.note("format").as_deref(), Some(name));
    }
}
