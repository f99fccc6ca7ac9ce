//! The `js` extractor: strings in scripts that look like references, by strict rules. The extractor runs no code.
//!
//! [`script::read`] finds them in text; this file defines the plugin.

mod likely;
mod literal;
mod markup;
pub mod script;
// A file of the data extractors, without dependencies.
#[path = "../../formats/src/vocabulary.rs"]
mod vocabulary;

use opilio_plugin::prelude::*;

use crate::script::FoundReference;

/// Settings of the `js` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report relative references (`img/a.png`) too, not only absolute ones and those from the root (`/img/a.png`).
    pub relative: bool,
    /// Whether to report source maps.
    pub source_maps: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            relative: true,
            source_maps: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Debug)]
pub struct Js {
    settings: Settings,
}

impl Js {
    /// Makes links of the references in a script. `own_base` is the URI of a script that is not inline. Its imports and source
    /// maps resolve against this URI, and its other references against the page that runs it.
    #[must_use]
    pub fn links(&self, found: Vec<FoundReference>, own_base: Option<&str>) -> Vec<Link> {
        found
            .into_iter()
            .filter(|found| self.settings.relative || !found.is_relative())
            .filter(|found| self.settings.source_maps || found.syntax != script::Syntax::SourceMap)
            .map(|found| {
                let base = found
                    .syntax
                    .resolves_against_script()
                    .then(|| own_base.map(str::to_owned))
                    .flatten();
                Link {
                    base,
                    ..Link::new(found.uri, Hop::Speculative, found.syntax.context())
                }
            })
            .collect()
    }
}

impl Plugin for Js {
    const NAME: &'static str = "js";
    const SUMMARY: &'static str = "Strings in scripts that look like references";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "text/javascript",
            "application/javascript",
            "application/x-javascript",
            "text/x-javascript",
            "text/ecmascript",
            "application/ecmascript",
            "text/jscript",
        ])
    }
}

impl Extractor for Js {
    fn extract(&self, document: &Document) -> Extraction {
        let found = script::read(&document.text());
        let own_base = if document.fragment().is_none() {
            Some(document.uri())
        } else {
            None
        };
        Extraction {
            links: self.links(found, own_base.as_deref()),
            finished: true,
            ..Extraction::default()
        }
    }
}

opilio_plugin::export!(extractors: [Js]);
