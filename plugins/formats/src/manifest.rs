//! The `manifest` extractor: start page, icons, screenshots and shortcuts of web app manifests (W3C).

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::values::{self, ValueHandler};
use crate::{Results, recognise};

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Manifest;

impl Plugin for Manifest {
    const NAME: &'static str = "manifest";
    const SUMMARY: &'static str = "Start page, icons and shortcuts of web app manifests";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/manifest+json",
            "application/x-web-app-manifest+json",
            "application/json",
            "text/json",
        ])
    }
}

impl Extractor for Manifest {
    fn extract(&self, document: &Document) -> Extraction {
        let is_declared = document.media_type().contains("manifest");
        if document.fragment().is_some() || !(is_declared || is_named(&document.uri())) {
            return Extraction::default();
        }
        let content = content(document);
        let mut members = Members::default();
        let outcome = values::read(&content.text, &mut members);
        // Other files are also called `manifest.json`, but have no such links.
        if !is_declared && members.found.links.is_empty() {
            return Extraction::default();
        }
        recognise(document, Self::NAME);
        members
            .found
            .into_extraction(content.problem.or(outcome.err()))
    }
}

/// Returns `true` if the path ends like that of a manifest. Most servers send manifests as `application/json`.
fn is_named(uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    path.ends_with("manifest.json") || path.ends_with(".webmanifest")
}

/// The links found in the members of a manifest.
#[derive(Default)]
struct Members {
    found: Results,
}

impl ValueHandler for Members {
    fn text(&mut self, path: &[String], value: &str) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let hop = match path.as_slice() {
            ["start_url"]
            | ["shortcuts" | "related_applications", "url"]
            | ["note_taking", "new_note_url"]
            | ["file_handlers", "action"]
            | ["tab_strip", "new_tab_button", "url"] => Hop::Link,
            ["icons" | "screenshots", "src"]
            | ["shortcuts" | "file_handlers", "icons", "src"]
            | ["serviceworker", "src"]
            | ["splash_screens", "src"] => Hop::Embed,
            _ => return,
        };
        let context = format!("manifest/{}", path.join("/"));
        self.found.push(Link::new(value, hop, context));
    }
}
