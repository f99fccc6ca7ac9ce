//! The `html` extractor: links, embeds, and inline scripts and styles as fragments. Also the `forms` extractor, which uses the
//! same tokenizer.
//!
//! [`page::read`] extracts them from text; this file defines the plugin. Policy (robots, scope, limits) belongs to the host.

pub mod entities;
mod foreign;
pub mod forms;
mod kinds;
mod names;
pub mod page;
mod reference;
mod refresh;
mod settings;
mod srcset;
pub mod tokenizer;

use opilio_plugin::prelude::*;

use crate::forms::Forms;
use crate::page::Syntax;
pub use crate::settings::{FormActions, LinkUse, Settings};

/// The configured plugin.
#[derive(Clone, Debug)]
pub struct Html {
    settings: Settings,
}

impl Plugin for Html {
    const NAME: &'static str = "html";
    const SUMMARY: &'static str = "Links, embedded resources, scripts and styles of HTML pages";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "text/html",
            "application/xhtml+xml",
            "application/xhtml",
            "application/vnd.wap.xhtml+xml",
        ])
    }
}

impl Extractor for Html {
    fn extract(&self, document: &Document) -> Extraction {
        // Pages sent as `application/xhtml`, or as fragments, were written for browsers' HTML parsers.
        let syntax = match document.media_type().as_str() {
            "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => Syntax::Xml,
            _ => Syntax::Html,
        };
        let page = page::read(&document.text(), syntax, &self.settings);
        if let Some(robots) = &page.robots {
            document.set_note("robots-meta", robots);
        }
        Extraction {
            links: page.links,
            fragments: page.fragments,
            base: page.base,
            finished: true,
            problem: None,
        }
    }
}

opilio_plugin::export!(extractors: [Html, Forms]);
