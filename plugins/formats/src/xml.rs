//! The `xml` extractor: references in any XML, for documents that no other extractor recognised.
//!
//! XLink, XInclude and style sheets define how a reference is used. Other references are guessed from their names and values
//! (hop X). Namespace names look like URIs but are not reported.

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::markup::{Bases, Markup, Tag, Token, local_part, unescape};
use crate::reference::{self, NameHint};
use crate::{Results, is_recognised};

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Xml;

impl Plugin for Xml {
    const NAME: &'static str = "xml";
    const SUMMARY: &'static str = "References in XML of any kind";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&["application/xml", "text/xml", "text/xsl", "*+xml"])
    }
}

impl Extractor for Xml {
    fn extract(&self, document: &Document) -> Extraction {
        if is_recognised(document) {
            return Extraction::default();
        }
        let content = content(document);
        let mut reader = XmlReader {
            markup: Markup::new(&content.text),
            bases: Bases::default(),
            found: Results::default(),
        };
        reader.run();
        let problem = reader.markup.into_problem();
        reader.found.into_extraction(content.problem.or(problem))
    }
}

/// The state of a document while it is read.
struct XmlReader<'a> {
    markup: Markup<'a>,
    bases: Bases,
    found: Results,
}

impl XmlReader<'_> {
    fn run(&mut self) {
        while !self.found.is_full()
            && let Some(token) = self.markup.next()
        {
            match token {
                Token::Start(tag) => {
                    self.text("");
                    self.bases.enter(&tag, self.markup.depth());
                    self.start(&tag);
                }
                Token::End(name) => {
                    self.text(&name);
                    self.bases.leave(self.markup.depth());
                }
                Token::Instruction { target, content } => {
                    if let Some(href) = style_sheet(&target, &content) {
                        self.push(&href, Hop::Embed, "xml-stylesheet/@href");
                    }
                }
                Token::DocumentType(content) => {
                    if let Some(system) = system_identifier(&content) {
                        self.guess(system, "doctype", NameHint::Promising);
                    }
                }
            }
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let element = tag.local_name().to_owned();
        let is_link = tag.attributes().any(|(name, _)| name == "xlink:href");
        let hop = if is_link {
            xlink_hop(tag)
        } else {
            Hop::Speculative
        };
        for (name, value) in tag.attributes() {
            let context = || format!("{element}/@{name}");
            match (local_part(name), element.as_str()) {
                _ if name == "xmlns" || name.starts_with("xmlns:") || name == "xml:base" => {}
                ("href", _) if name == "xlink:href" => self.push(&value, hop.clone(), &context()),
                // XInclude and XSLT.
                ("href", "include" | "import") => self.push(&value, Hop::Embed, &context()),
                ("href", _) => self.push(&value, Hop::Speculative, &context()),
                ("schemaLocation", "include" | "import" | "redefine")
                | ("noNamespaceSchemaLocation", _) => {
                    self.guess(&value, &context(), NameHint::Promising);
                }
                // Pairs of a namespace name and the URI of its schema.
                ("schemaLocation", _) => {
                    for location in value.split_ascii_whitespace().skip(1).step_by(2) {
                        self.guess(location, &context(), NameHint::Promising);
                    }
                }
                // Namespace names.
                ("namespace" | "targetNamespace" | "uri" | "role" | "arcrole", _)
                    if !name.contains(':') || is_link => {}
                (name, _) => self.guess(&value, &context(), reference::name_hint(name)),
            }
        }
    }

    /// Reads the text before a tag. `element` is the element that contains only this text, or empty.
    fn text(&mut self, element: &str) {
        let text = self.markup.text().trim().to_owned();
        if text.len() < 2 {
            return;
        }
        let context = if element.is_empty() { "text" } else { element };
        if reference::is_markup(&text) {
            let base = self.bases.current();
            return self.found.fragment("text/html", &text, context, base);
        }
        let hint = reference::name_hint(element);
        if let Some(uri) = reference::likely_reference(&text, hint) {
            self.push(uri, Hop::Speculative, context);
        } else {
            for uri in reference::uris_in(&text) {
                self.push(uri, Hop::Speculative, context);
            }
        }
    }

    fn guess(&mut self, value: &str, context: &str, hint: NameHint) {
        if let Some(uri) = reference::likely_reference(value, hint) {
            self.push(uri, Hop::Speculative, context);
        }
    }

    fn push(&mut self, uri: &str, hop: Hop, context: &str) {
        self.found.push(Link {
            base: self.bases.current().map(str::to_owned),
            ..Link::new(uri, hop, context)
        });
    }
}

/// The hop of an XLink by its `show` and `actuate` (XLink 1.1 §5.6).
fn xlink_hop(tag: &Tag<'_>) -> Hop {
    let value = |name| tag.attribute(name).unwrap_or_default();
    match (value("show").as_str(), value("actuate").as_str()) {
        ("embed", _) | (_, "onLoad") => Hop::Embed,
        ("new" | "replace", _) | (_, "onRequest") => Hop::Link,
        _ => Hop::Speculative,
    }
}

/// The URI in `<?xml-stylesheet href="…"?>`.
pub(crate) fn style_sheet(target: &str, content: &str) -> Option<String> {
    if target != "xml-stylesheet" {
        return None;
    }
    let (_, rest) = content.split_once("href")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (href, _) = rest[1..].split_once(quote)?;
    Some(unescape(href).into_owned())
}

/// The system identifier of a `DOCTYPE`: the second literal of `PUBLIC "…" "…"`, or the only one of `SYSTEM "…"`.
fn system_identifier(content: &str) -> Option<&str> {
    let external = content.split('[').next().unwrap_or_default();
    let mut literals = Vec::new();
    let mut rest = external;
    while let Some(at) = rest.find(['"', '\'']) {
        let quote = if rest[at..].starts_with('"') {
            '"'
        } else {
            '\''
        };
        let (literal, after) = rest[at + 1..].split_once(quote)?;
        literals.push(literal);
        if literals.len() == 2 {
            break;
        }
        rest = after;
    }
    let is_public = external.contains("PUBLIC");
    literals.get(usize::from(is_public)).copied()
}

#[cfg(test)]
mod tests {
    use opilio_plugin::testing::document;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, Hop)]) {
        let document = document("http://e.org/f/x.xml")
            .media_type("text/xml")
            .text(text);
        let extraction = Xml.extract(&document);
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| (link.uri.as_str(), link.hop.clone()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_with_a_defined_use() {
        check(
            "<?xml-stylesheet type='text/xsl' href='a.xsl?b&amp;c'?><a/>",
            &[("a.xsl?b&c", Hop::Embed)],
        );
        check(
            "<a xlink:href='b' xlink:show='replace'/><c xlink:href='d' xlink:actuate='onLoad'/>\
             <e xlink:href='f' xlink:role='http://e.org/role'/>",
            &[("b", Hop::Link), ("d", Hop::Embed), ("f", Hop::Speculative)],
        );
        check(
            "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='a.xml'/>",
            &[("a.xml", Hop::Embed)],
        );
        check(
            "<!DOCTYPE a PUBLIC '-//X//Y' 'http://e.org/a.dtd' [<!ENTITY b 'c'>]><a/>",
            &[("http://e.org/a.dtd", Hop::Speculative)],
        );
        check(
            "<!DOCTYPE a SYSTEM \"a.xml\"><a/>",
            &[("a.xml", Hop::Speculative)],
        );
    }

    #[test]
    fn guessed_references() {
        check(
            "<outline xmlUrl='http://e.org/a' title='x'/><icon><href>img/b.png</href></icon>\
             <p>see http://e.org/c, and <b/>https://e.org/d</p><name>e.org</name>",
            &[
                ("http://e.org/a", Hop::Speculative),
                ("img/b.png", Hop::Speculative),
                ("http://e.org/c", Hop::Speculative),
                ("https://e.org/d", Hop::Speculative),
            ],
        );
    }

    #[test]
    fn namespace_names_are_not_reported() {
        check(
            "<a xmlns='http://e.org/ns' xmlns:b='http://e.org/ns2' targetNamespace='http://e.org/ns3'\
             xsi:schemaLocation='http://e.org/ns http://e.org/a.xsd http://e.org/ns2 b.xsd'>\
             http://www.w3.org/1999/xhtml</a>",
            &[
                ("http://e.org/a.xsd", Hop::Speculative),
                ("b.xsd", Hop::Speculative),
            ],
        );
    }

    #[test]
    fn html_in_text_becomes_a_fragment() {
        let document = document("http://e.org/")
            .media_type("text/xml")
            .text("<a xml:base='/x/'>&lt;a href='b'>c&lt;/a></a>");
        let extraction = Xml.extract(&document);
        assert_eq!(extraction.fragments.len(), 1);
        assert_eq!(extraction.fragments[0].base.as_deref(), Some("/x/"));
    }
}
