//! Runs the built-in extractors on a document and its fragments, and compares the resolved links with a case. It routes documents
//! to extractors by media type, like the crawl, but more simply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use opilio_sandbox::{Document, DocumentParts, Fragment, Hop, Kind, Link, Notes, Plugin};
use opilio_uri::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Bench;
use crate::builtin::components;

/// Depth to which nested fragments are extracted, as in the crawl.
const FRAGMENT_DEPTH_MAX: usize = 4;
/// Extractors that are in no stack by default, because they guess.
const BY_REQUEST: [&str; 5] = ["forms", "uri", "universal", "implied", "multi-regex"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) id: String,
    input: String,
    /// The document's URI.
    base: String,
    /// The page that runs a script. The script's strings are resolved against it.
    via: Option<String>,
    content_type: String,
    #[serde(default = "ok")]
    status: i32,
    /// Plugins that are left out of this case.
    #[serde(default)]
    without: Vec<String>,
    /// Settings of the plugins of the case's folder. The other plugins have their defaults.
    #[serde(default = "no_settings")]
    settings: Value,
    expected: Vec<String>,
    #[serde(default = "with_hops")]
    r#match: Match,
    /// Links that Heritrix found, with the reason if they are not correct.
    #[serde(default, rename = "predecessor")]
    _predecessor: Vec<String>,
    #[serde(default, rename = "reason")]
    _reason: String,
}

fn no_settings() -> Value {
    json!({})
}

fn ok() -> i32 {
    200
}

fn with_hops() -> Match {
    Match::HopSet
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Match {
    /// The case expects exactly these URIs.
    Set,
    /// The case expects exactly these URIs, each preceded by the letter of its hop.
    HopSet,
    /// The case expects at least these URIs.
    Contains,
}

impl Case {
    /// Extracts the document's links and reports differences from the case.
    pub(super) fn check(&self, bench: &mut Bench, folder: &str) -> Result<(), String> {
        let extractors = self.extractors(bench, folder)?;
        let mut found = BTreeSet::new();
        let mut level = vec![self.document()];
        for _ in 0..=FRAGMENT_DEPTH_MAX {
            level = run_level(&extractors, &level, &mut found)?;
        }
        let expected = self
            .expected
            .iter()
            .map(|entry| self.normalised(entry))
            .collect::<Result<BTreeSet<String>, String>>()?;
        let found: BTreeSet<String> = found
            .into_iter()
            .map(|(hop, uri)| self.entry(hop, &uri))
            .collect();
        let holds = match self.r#match {
            Match::Set | Match::HopSet => expected == found,
            Match::Contains => expected.is_subset(&found),
        };
        if holds {
            return Ok(());
        }
        Err(format!(
            "expected {expected:?}\nthe components found {found:?}"
        ))
    }

    fn extractors(&self, bench: &mut Bench, folder: &str) -> Result<Vec<Plugin>, String> {
        let mut extractors = Vec::new();
        for (name, component) in components() {
            let settings = if *name == folder {
                self.settings.clone()
            } else {
                no_settings()
            };
            for description in component.plugins() {
                let plugin = &description.name;
                let is_asked =
                    !BY_REQUEST.contains(&plugin.as_str()) && !self.without.contains(plugin);
                if is_asked && description.kinds.contains(&Kind::Extractor) {
                    let plugin = bench.plugin(name, &description.name, &settings);
                    extractors.push(plugin.map_err(|error| error.to_string())?);
                }
            }
        }
        Ok(extractors)
    }

    fn document(&self) -> Document {
        Document::new(DocumentParts {
            uri: self.base.clone(),
            base: self.via.as_ref().unwrap_or(&self.base).clone(),
            status: self.status,
            headers: Arc::from([]),
            media_type: self.content_type.clone(),
            charset: Some(encoding_rs::UTF_8),
            fragment: None,
            content: Bytes::copy_from_slice(self.input.as_bytes()),
            notes: Notes::new(),
            kept: opilio_sandbox::SharedKeptValues::default(),
        })
    }

    /// Normalises an entry of `expected`: a URI, or the letter of a hop and a URI.
    fn normalised(&self, entry: &str) -> Result<String, String> {
        let (hop, uri) = match entry.split_once(' ') {
            Some((hop, uri)) => (hop.chars().next(), uri),
            None => (None, entry),
        };
        let uri = Uri::parse(uri).map_err(|error| format!("expected {entry:?}: {error}"))?;
        match (self.r#match, hop) {
            (Match::HopSet, None) => Err(format!("expected {entry:?} lacks its hop")),
            (_, hop) => Ok(self.entry(hop.unwrap_or_default(), uri.as_str())),
        }
    }

    fn entry(&self, hop: char, uri: &str) -> String {
        match self.r#match {
            Match::HopSet => format!("{hop} {uri}"),
            Match::Set | Match::Contains => uri.to_owned(),
        }
    }
}

/// Runs all extractors on the documents of one nesting level, one call for each media type. Returns the next level.
fn run_level(
    extractors: &[Plugin],
    documents: &[Document],
    found: &mut BTreeSet<(char, String)>,
) -> Result<Vec<Document>, String> {
    let mut by_type: BTreeMap<&str, Vec<Document>> = BTreeMap::new();
    for document in documents {
        by_type
            .entry(document.media_type())
            .or_default()
            .push(document.clone());
    }
    let mut fragments = Vec::new();
    for (media_type, documents) in by_type {
        for extractor in extractors {
            if !extractor.handles(media_type, documents[0].uri()) {
                continue;
            }
            let answers = extractor
                .extract(documents.clone())
                .map_err(|fault| format!("{fault}\n{fault:#?}"))?;
            for (document, answer) in documents.iter().zip(answers) {
                if let Some(base) = answer
                    .base
                    .as_deref()
                    .and_then(|base| joined(&document.base(), base))
                {
                    document.set_base(base);
                }
                for link in &answer.links {
                    found.extend(resolved(document, link));
                }
                for fragment in &answer.fragments {
                    fragments.push(inner(document, fragment)?);
                }
            }
        }
    }
    Ok(fragments)
}

fn inner(document: &Document, fragment: &Fragment) -> Result<Document, String> {
    let inner = document
        .fragment_of(fragment)
        .map_err(|problem| problem.to_string())?;
    if let Some(base) = fragment
        .base
        .as_deref()
        .and_then(|base| joined(&document.base(), base))
    {
        inner.set_base(base);
    }
    Ok(inner)
}

/// The letter of a link's hop and its resolved URI. `None` if the link is not a valid URI.
fn resolved(document: &Document, link: &Link) -> Option<(char, String)> {
    let letter = match link.hop {
        Hop::Link => 'L',
        Hop::Embed => 'E',
        Hop::Redirect => 'R',
        Hop::Prerequisite => 'P',
        Hop::Inferred => 'I',
        Hop::Manifest => 'M',
        Hop::Submit => 'S',
        Hop::Speculative | Hop::Other(_) => 'X',
    };
    let base = match &link.base {
        Some(own) => joined(&document.base(), own)?,
        None => document.base(),
    };
    Some((letter, joined(&base, &link.uri)?))
}

fn joined(base: &str, reference: &str) -> Option<String> {
    let uri = Uri::parse(base).ok()?.join(reference).ok()?;
    Some(uri.as_str().to_owned())
}
