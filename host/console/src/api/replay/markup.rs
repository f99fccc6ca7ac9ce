//! Rewrites a page of HTML: inserts its embeds, and removes scripts, forms, frames and links.

use std::borrow::Cow;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Doctype, StartTag, Token, Tokenizer};
use opilio_uri::Uri;

use super::{Parts, style_sheet};

/// Style of disabled links: they look like links unless the page has another style.
const LINKS: &str =
    "<style>:where(a[data-href]){color:-webkit-link;text-decoration:underline}</style>";

/// Rewrites a page.
pub(super) fn rewrite(html: &str, base: Uri, parts: &mut Parts<'_>) -> String {
    let mut page = Page {
        base,
        has_base: false,
        written: String::with_capacity(html.len()),
        inside: None,
        parts,
    };
    page.read(html);
    page.written
}

/// Elements whose content a tokenizer does not read as markup.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Style,
    /// Read as markup by a browser without scripts.
    Noscript,
    /// Copied unchanged.
    Verbatim,
    /// Left out.
    Dropped,
}

struct Page<'a, 'b> {
    base: Uri,
    has_base: bool,
    written: String,
    inside: Option<Inside>,
    parts: &'a mut Parts<'b>,
}

/// The rewritten form of an attribute.
enum RewrittenAttribute<'a> {
    As(Cow<'a, str>),
    /// Under another name.
    Renamed(&'static str),
    Dropped,
}

impl Page<'_, '_> {
    fn read(&mut self, html: &str) {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
            match token {
                Token::Doctype(doctype) => self.doctype(&doctype),
                Token::StartTag(tag) => self.start(&tag),
                Token::EndTag(tag) => {
                    let name = String::from_utf8_lossy(&tag.name);
                    let is_dropped = is_dropped(&name);
                    self.inside = None;
                    if !is_dropped {
                        self.written.push_str("</");
                        self.written.push_str(&name);
                        self.written.push('>');
                    }
                }
                Token::String(text) => self.text(&String::from_utf8_lossy(&text.value)),
                Token::Comment(_) | Token::Error(_) => {}
            }
        }
    }

    /// Copies the doctype, on which the layout of a page depends.
    fn doctype(&mut self, doctype: &Doctype<()>) {
        self.written.push_str("<!DOCTYPE ");
        self.written
            .push_str(&escaped(&String::from_utf8_lossy(&doctype.name)));
        let identifiers = (&doctype.public_identifier, &doctype.system_identifier);
        let mut quoted = |keyword: &str, identifier: &[u8]| {
            let identifier = String::from_utf8_lossy(identifier).replace(['"', '>'], "");
            self.written
                .push_str(&format!("{keyword} \"{identifier}\""));
        };
        match identifiers {
            (Some(public), system) => {
                quoted(" PUBLIC", public);
                if let Some(system) = system {
                    quoted("", system);
                }
            }
            (None, Some(system)) => quoted(" SYSTEM", system),
            (None, None) => {}
        }
        self.written.push('>');
    }

    fn text(&mut self, text: &str) {
        match self.inside {
            None => self.written.push_str(&escaped(text)),
            Some(Inside::Style) => {
                let sheet = style_sheet::rewrite(text, &self.base, self.parts);
                self.written.push_str(&sheet);
            }
            Some(Inside::Noscript) => {
                self.inside = None;
                self.read(text);
            }
            Some(Inside::Verbatim) => self.written.push_str(text),
            Some(Inside::Dropped) => {}
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        let attributes: Vec<(Cow<'_, str>, Cow<'_, str>)> = tag
            .attributes
            .iter()
            .map(|(name, value)| {
                (
                    String::from_utf8_lossy(name),
                    String::from_utf8_lossy(&value.value),
                )
            })
            .collect();
        let attribute = |wanted: &str| {
            let found = attributes.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_ref())
        };
        self.inside = match &*name {
            "style" => Some(Inside::Style),
            "noscript" => Some(Inside::Noscript),
            "xmp" | "noembed" | "plaintext" => Some(Inside::Verbatim),
            "script" | "iframe" => Some(Inside::Dropped),
            _ => None,
        };
        if name == "base" && !self.has_base {
            let base = attribute("href").and_then(|href| self.base.join(href).ok());
            if let Some(base) = base {
                (self.base, self.has_base) = (base, true);
            }
        }
        // The declared encoding is not that of the rewritten page.
        let is_instruction =
            name == "meta" && (attribute("http-equiv").is_some() || attribute("charset").is_some());
        if is_dropped(&name) || is_instruction {
            return;
        }
        let relation = attribute("rel").unwrap_or_default().to_ascii_lowercase();
        let is_sheet = relation
            .split_ascii_whitespace()
            .any(|it| it == "stylesheet");
        if name == "link" && !is_sheet {
            return;
        }
        self.written.push('<');
        self.written.push_str(&name);
        for (key, value) in &attributes {
            let (key, value) = match self.attribute(&name, key, value) {
                RewrittenAttribute::As(value) => (key.as_ref(), value),
                RewrittenAttribute::Renamed(key) => (key, value.clone()),
                RewrittenAttribute::Dropped => continue,
            };
            self.written
                .push_str(&format!(" {key}=\"{}\"", escaped(&value)));
        }
        let is_shown = attribute("src").is_some_and(|source| !source.trim().is_empty());
        if name == "img" && !is_shown {
            self.best_of(attribute("srcset").unwrap_or_default());
        }
        self.written.push_str(match tag.self_closing {
            true => "/>",
            false => ">",
        });
        if name == "head" {
            self.written.push_str(LINKS);
        }
    }

    fn attribute<'v>(&mut self, tag: &str, name: &str, value: &'v str) -> RewrittenAttribute<'v> {
        let part = |page: &mut Self| match page.parts.data(&page.base, value) {
            Some(data) => RewrittenAttribute::As(data.into()),
            None => RewrittenAttribute::Dropped,
        };
        // Other characters are not allowed, because a name that ends the tag would inject markup.
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        if name.starts_with("on") || !name.chars().all(is_name) {
            return RewrittenAttribute::Dropped;
        }
        match (tag, name) {
            (_, "style") => {
                RewrittenAttribute::As(style_sheet::rewrite(value, &self.base, self.parts).into())
            }
            ("img" | "input" | "audio" | "video" | "source" | "track", "src")
            | ("image" | "feimage", "href" | "xlink:href")
            | ("link", "href")
            | (_, "poster" | "background") => part(self),
            (_, "href" | "xlink:href") if value.starts_with('#') => {
                RewrittenAttribute::As(value.into())
            }
            ("a" | "area", "href") => RewrittenAttribute::Renamed("data-href"),
            (
                _,
                "href" | "xlink:href" | "src" | "srcset" | "srcdoc" | "imagesrcset" | "data"
                | "data-href" | "code" | "codebase" | "archive" | "classid" | "action"
                | "formaction" | "ping" | "manifest" | "target" | "integrity" | "crossorigin"
                | "nonce" | "loading",
            ) => RewrittenAttribute::Dropped,
            _ => RewrittenAttribute::As(value.into()),
        }
    }

    /// Writes the first candidate of an image's `srcset` that is archived.
    fn best_of(&mut self, candidates: &str) {
        let references = candidates
            .split(", ")
            .filter_map(|candidate| candidate.split_ascii_whitespace().next());
        for reference in references {
            if let Some(data) = self.parts.data(&self.base, reference.trim_end_matches(',')) {
                self.written
                    .push_str(&format!(" src=\"{}\"", escaped(&data)));
                return;
            }
        }
    }
}

/// Returns `true` if an element is left out, because it would run code, send data, or load another page.
fn is_dropped(name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    matches!(
        name,
        "script"
            | "base"
            | "iframe"
            | "frame"
            | "object"
            | "embed"
            | "applet"
            | "portal"
            | "fencedframe"
    ) || !name.chars().all(is_name)
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"']) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped.into()
}
