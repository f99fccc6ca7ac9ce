//! The `js` extractor: strings in scripts that look like references, by strict rules. Nothing is run.
//!
//! [`script::read`] is the whole of it as a function over text; this file makes a plugin of it.

mod likely;
mod literal;
mod markup;
pub mod script;
// Shared with the extractors of data, in a file that depends on nothing.
#[path = "../../formats/src/vocabulary.rs"]
mod vocabulary;

use opilio_plugin::prelude::*;

use crate::script::Found;

/// Settings of the `js` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Report relative references (`img/a.png`), not absolute ones and those from the root (`/img/a.png`) alone.
    pub relative: bool,
    /// Report source maps.
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

/// The plugin, configured.
#[derive(Clone, Debug)]
pub struct Js {
    settings: Settings,
}

impl Js {
    /// Links for what was found in a script. `own_base` is what imports and source maps resolve against where the
    /// script is a file of its own: its URI, whatever page runs it.
    #[must_use]
    pub fn links(&self, found: Vec<Found>, own_base: Option<&str>) -> Vec<Link> {
        found
            .into_iter()
            .filter(|found| self.settings.relative || !found.is_relative())
            .filter(|found| self.settings.source_maps || found.place != script::Place::SourceMap)
            .map(|found| {
                let base = found
                    .place
                    .is_of_the_script()
                    .then(|| own_base.map(str::to_owned))
                    .flatten();
                Link {
                    base,
                    ..Link::new(found.uri, Hop::Speculative, found.place.context())
                }
            })
            .collect()
    }
}

impl Plugin for Js {
    const NAME: &'static str = "js";
    const SUMMARY: &'static str = "Strings of scripts that look like references";
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
