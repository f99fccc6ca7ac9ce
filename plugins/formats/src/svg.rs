//! The `svg` extractor: images, links and scripts of SVG images.

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::markup::{Bases, Markup, Tag, Token};
use crate::xml::style_sheet;
use crate::{Results, recognise};

/// The plugin. It has no settings, because all parts of an image belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Svg;

impl Plugin for Svg {
    const NAME: &'static str = "svg";
    const SUMMARY: &'static str = "Images, styles, scripts and links of SVG images";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&["image/svg+xml", "image/svg", "image/svg-xml"])
    }
}

impl Extractor for Svg {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_none() {
            recognise(document, Self::NAME);
        }
        let content = content(document);
        let mut markup = Markup::new(&content.text);
        let mut reader = SvgReader::default();
        while let Some(token) = markup.next() {
            match token {
                Token::Start(tag) => {
                    reader.bases.enter(&tag, markup.depth());
                    reader.start(&tag);
                }
                Token::End(name) => {
                    match name.as_str() {
                        "style" => reader.fragment("text/css", markup.text(), "style"),
                        "script" => reader.fragment("text/javascript", markup.text(), "script"),
                        _ => {}
                    }
                    reader.bases.leave(markup.depth());
                }
                Token::Instruction { target, content } => {
                    if let Some(href) = style_sheet(&target, &content) {
                        reader.push(&href, Hop::Embed, "xml-stylesheet/@href");
                    }
                }
                Token::DocumentType(_) => {}
            }
        }
        reader
            .found
            .into_extraction(content.problem.or(markup.into_problem()))
    }
}

/// The state of an image while it is read.
#[derive(Default)]
struct SvgReader {
    bases: Bases,
    found: Results,
}

impl SvgReader {
    fn start(&mut self, tag: &Tag<'_>) {
        let element = tag.local_name();
        for (name, value) in tag.attributes() {
            let context = || format!("{element}/@{name}");
            match name {
                // HTML in an image (`foreignObject`) uses `src`.
                "href" | "xlink:href" | "src" => {
                    let hop = if matches!(element, "a" | "area") {
                        Hop::Link
                    } else {
                        Hop::Embed
                    };
                    self.push(&value, hop, &context());
                }
                "style" => self.fragment("text/css", &value, "@style"),
                // `fill`, `filter`, `mask` and `cursor` may refer to another file. Most refer to a part of this one.
                _ if value.contains("url(") && !value.trim_start().starts_with("url(#") => {
                    self.fragment("text/css", &format!("{name}:{value}"), &context());
                }
                _ if name.len() > 3 && name.starts_with("on") => {
                    self.fragment("text/javascript", &value, &context());
                }
                _ => {}
            }
        }
    }

    fn push(&mut self, uri: &str, hop: Hop, context: &str) {
        self.found.push(Link {
            base: self.bases.current().map(str::to_owned),
            ..Link::new(uri, hop, context)
        });
    }

    fn fragment(&mut self, media_type: &str, text: &str, context: &str) {
        // Most styles have no references, and there may be thousands.
        let has_reference =
            media_type != "text/css" || text.contains("url(") || text.contains("@import");
        if !text.trim().is_empty() && has_reference {
            let base = self.bases.current();
            self.found.fragment(media_type, text, context, base);
        }
    }
}
