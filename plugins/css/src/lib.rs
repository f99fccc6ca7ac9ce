//! The `css` extractor: imports, images, fonts and all other references of a style sheet.
//!
//! [`sheet::read`] finds them in text; this file defines the plugin.

pub mod sheet;

use opilio_plugin::prelude::*;

/// The plugin. It has no settings, because all references of a style sheet belong to the page.
#[derive(Clone, Copy, Debug)]
pub struct Css;

impl Plugin for Css {
    const NAME: &'static str = "css";
    const SUMMARY: &'static str = "Imports, images and fonts of style sheets";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/css"])
    }
}

impl Extractor for Css {
    fn extract(&self, document: &Document) -> Extraction {
        let text = document.text();
        // Most `style` attributes are fragments of a few bytes, and `sheet::read` is fast on them.
        let links = sheet::read(&text)
            .into_iter()
            .map(|found| Link::new(found.uri, Hop::Embed, found.syntax.context()))
            .collect();
        Extraction {
            links,
            finished: true,
            ..Extraction::default()
        }
    }
}

opilio_plugin::export!(extractors: [Css]);
