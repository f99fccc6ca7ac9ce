//! Reads a page in one pass over its tags. Links and fragments are collected in document order.

use std::borrow::Cow;

use opilio_plugin::{Fragment, Hop, Link};

use crate::entities::decode;
use crate::foreign::ForeignContent;
use crate::kinds::{self, Meta};
use crate::names::{AttributeName, DataAttribute, NAME_BYTES_MAX, data_attribute, may_matter};
use crate::reference::{self, Reference};
use crate::refresh;
use crate::settings::Settings;
use crate::srcset;
use crate::tokenizer::{Attribute, RawText, Token, Tokenizer};

/// Most `on*` and `data-*` attributes read per tag. No tag written by a person has more.
const PREFIXED_ATTRIBUTES_MAX: usize = 64;

/// Most image candidates, archives or pings read per attribute.
const LIST_MAX: usize = 1_000;

/// Longest text of robots rules that is kept, in bytes.
const ROBOTS_BYTES_MAX: usize = 1_000;

/// Links, fragments and metadata of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In document order.
    pub links: Vec<Link>,
    /// Scripts, styles and pages embedded in the page.
    pub fragments: Vec<Fragment>,
    /// The first `<base href>`, unchanged.
    pub base: Option<String>,
    /// The contents of `<meta name=robots>`, joined by commas.
    pub robots: Option<String>,
}

/// The syntax of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// HTML, where `/>` has no effect.
    Html,
    /// XHTML served as XML, where any element may close itself and CDATA sections are recognised.
    Xml,
}

/// Reads a page, or a fragment of one.
pub fn read(text: &str, syntax: Syntax, settings: &Settings) -> Page {
    let mut reader = Reader {
        text,
        syntax,
        settings,
        page: Page::default(),
        values: [None; AttributeName::COUNT],
        form_is_reported: settings.form_actions.report(None),
        inert: 0,
    };
    reader.read_part(0, text.len(), settings.conditional_comments);
    reader.page
}

struct Reader<'a, 's> {
    text: &'a str,
    syntax: Syntax,
    settings: &'s Settings,
    page: Page,
    /// Values of the known attributes of the current tag. The first attribute of a name counts.
    values: [Option<&'a str>; AttributeName::COUNT],
    /// `true` if the targets of the last opened form are reported; before the first form, those of a form without a method.
    form_is_reported: bool,
    /// Number of templates and comments around the current tag. Links in them are reported, but `base` and robots rules are
    /// ignored.
    inert: usize,
}

impl<'a> Reader<'a, '_> {
    /// Reads `text[start..end]`: the page, or a conditional comment in it. Conditional comments are not nested, so each byte is
    /// read at most twice.
    fn read_part(&mut self, start: usize, end: usize, conditional_comments: bool) {
        let text = self.text;
        let mut tokenizer = Tokenizer::new(text, start, end);
        let mut foreign = ForeignContent::default();
        let mut attributes = Vec::new();
        let mut buffer = [0; NAME_BYTES_MAX];
        // The kind and the start of the text of an open SVG `script` or `style`. The text ends at the next tag.
        let mut foreign_text = None;
        while let Some(token) = tokenizer.next(&mut attributes, may_matter) {
            if let Token::Start { name, .. } | Token::End { name } = token
                && let Some((kind, start)) = foreign_text.take()
            {
                let tag = name.as_ptr() as usize - text.as_ptr() as usize;
                let end = start + text[start..tag].rfind('<').unwrap_or_default();
                self.add_fragment(kind, (start, end));
            }
            match token {
                Token::Start { name, self_closing } => {
                    let element = lower(name, &mut buffer);
                    let is_foreign = foreign.start(element, self_closing);
                    if !attributes.is_empty() {
                        self.start_tag(element, is_foreign, &attributes);
                    } else if element == "form" {
                        self.form_is_reported = self.settings.form_actions.report(None);
                    }
                    let closed = self_closing && (is_foreign || self.syntax == Syntax::Xml);
                    if !closed && is_foreign && matches!(element, "script" | "style") {
                        let kind = self.text_kind(element, !attributes.is_empty());
                        foreign_text = kind.map(|kind| (kind, tokenizer.position()));
                    } else if !closed && let Some(kind) = raw_text(element, is_foreign) {
                        let range = tokenizer.raw_text(name, kind);
                        if let Some(kind) = self.text_kind(element, !attributes.is_empty()) {
                            self.add_fragment(kind, range);
                        }
                    }
                    if element == "template" && !is_foreign && !closed {
                        self.inert += 1;
                    }
                    tokenizer.foreign = foreign.inside() || self.syntax == Syntax::Xml;
                }
                Token::End { name } => {
                    let element = lower(name, &mut buffer);
                    if element == "template" && !foreign.inside() {
                        self.inert = self.inert.saturating_sub(1);
                    }
                    foreign.end(element);
                    tokenizer.foreign = foreign.inside() || self.syntax == Syntax::Xml;
                }
                Token::Comment { text, offset } => {
                    if conditional_comments
                        && text.trim_start().starts_with("[if")
                        && let Some(open) = text.find("]>")
                    {
                        let inert = self.inert;
                        self.inert += 1;
                        self.read_part(offset + open + 2, offset + text.len(), false);
                        self.inert = inert;
                    }
                }
            }
        }
        if let Some((kind, start)) = foreign_text {
            self.add_fragment(kind, (start, end));
        }
    }

    fn value(&self, known: AttributeName) -> Option<&'a str> {
        self.values[known as usize]
    }

    fn decoded(&self, known: AttributeName) -> Option<Cow<'a, str>> {
        self.value(known).map(decode)
    }

    fn start_tag(&mut self, element: &str, is_foreign: bool, attributes: &[Attribute<'a>]) {
        self.values = [None; AttributeName::COUNT];
        let mut buffer = [0; NAME_BYTES_MAX];
        // Attributes that describe the tag are read before its references.
        // For the first 64 attributes: whether the attribute is the first of its name.
        let mut first = 0_u64;
        for (at, attribute) in attributes.iter().enumerate() {
            if let Some(known) = AttributeName::parse(lower(attribute.name, &mut buffer).as_bytes())
                && self.values[known as usize].is_none()
            {
                self.values[known as usize] = Some(attribute.value);
                if at < 64 {
                    first |= 1 << at;
                }
            }
        }
        if element == "form" {
            let method = self.value(AttributeName::Method);
            self.form_is_reported = self.settings.form_actions.report(method);
        }
        let mut prefixed = Vec::new();
        for (at, attribute) in attributes.iter().enumerate() {
            let name = lower(attribute.name, &mut buffer);
            if let Some(known) = AttributeName::parse(name.as_bytes()) {
                let is_first = if at < 64 {
                    first >> at & 1 != 0
                } else {
                    self.values[known as usize]
                        .is_some_and(|value| std::ptr::eq(value, attribute.value))
                };
                if is_first {
                    self.known_attribute(element, is_foreign, known, attribute.value);
                }
            } else if prefixed.len() < PREFIXED_ATTRIBUTES_MAX
                && !prefixed
                    .iter()
                    .any(|earlier: &&str| earlier.eq_ignore_ascii_case(attribute.name))
            {
                prefixed.push(attribute.name);
                self.prefixed_attribute(element, name, attribute.value);
            }
        }
    }

    fn known_attribute(
        &mut self,
        element: &str,
        is_foreign: bool,
        known: AttributeName,
        raw: &'a str,
    ) {
        let at = Position {
            element,
            attribute: known,
        };
        match known {
            AttributeName::Href | AttributeName::XlinkHref => self.href(at, is_foreign, raw),
            AttributeName::Src
                if matches!(element, "iframe" | "frame" | "fencedframe" | "portal") =>
            {
                if let Some(hop) = self.settings.frame_links.hop() {
                    self.add_raw(raw, hop, at);
                }
            }
            AttributeName::Src
            | AttributeName::Poster
            | AttributeName::Background
            | AttributeName::Lowsrc
            | AttributeName::Dynsrc
            | AttributeName::Icon
            | AttributeName::LazySrc
            | AttributeName::Realsrc => self.add_raw(raw, Hop::Embed, at),
            AttributeName::Manifest if element == "html" => self.add_raw(raw, Hop::Embed, at),
            AttributeName::Srcset | AttributeName::Imagesrcset => self.srcset(raw, at),
            AttributeName::Cite | AttributeName::Longdesc | AttributeName::Pluginspage => {
                self.add_raw(raw, Hop::Link, at)
            }
            AttributeName::Profile if element == "head" => self.add_raw(raw, Hop::Link, at),
            AttributeName::Ping if matches!(element, "a" | "area") => {
                if let Some(hop) = self.settings.ping_links.hop() {
                    for word in decode(raw).split_ascii_whitespace().take(LIST_MAX) {
                        self.add(word, hop.clone(), at);
                    }
                }
            }
            AttributeName::Action if element == "form" && self.form_is_reported => {
                self.add_raw(raw, Hop::Link, at)
            }
            AttributeName::Formaction if matches!(element, "button" | "input") => {
                let is_reported = match self.value(AttributeName::Formmethod) {
                    None => self.form_is_reported,
                    method => self.settings.form_actions.report(method),
                };
                if is_reported {
                    self.add_raw(raw, Hop::Link, at);
                }
            }
            AttributeName::Data if element == "object" => self.add_under_codebase(&decode(raw), at),
            AttributeName::Classid | AttributeName::Object
                if matches!(element, "object" | "applet") =>
            {
                self.add_under_codebase(&decode(raw), at);
            }
            AttributeName::Archive if matches!(element, "object" | "applet" | "embed") => {
                for word in decode(raw)
                    .split([' ', '\t', '\n', '\r', ','])
                    .filter(|word| !word.is_empty())
                    .take(LIST_MAX)
                {
                    self.add_under_codebase(word, at);
                }
            }
            AttributeName::Code if matches!(element, "applet" | "embed" | "object") => {
                self.add_under_codebase(&class_file(&decode(raw)), at);
            }
            AttributeName::Codebase if matches!(element, "object" | "applet" | "embed") => {
                self.add_raw(raw, Hop::Link, at)
            }
            AttributeName::Content if element == "meta" => self.meta(raw, at),
            AttributeName::Value => self.value_attribute(element, raw, at),
            AttributeName::Flashvars => self.flashvars(&decode(raw), at),
            AttributeName::Style if self.settings.styles && raw.contains('(') => {
                self.page
                    .fragments
                    .push(Fragment::text("text/css", decode(raw), "@style"));
            }
            AttributeName::Srcdoc if element == "iframe" => {
                self.page.fragments.push(Fragment::text(
                    "text/html",
                    decode(raw),
                    "iframe/@srcdoc",
                ));
            }
            _ => {}
        }
    }

    /// Reads `on*` and `data-*` attributes.
    fn prefixed_attribute(&mut self, element: &str, name: &str, raw: &'a str) {
        if name.starts_with("on") {
            // Code without a string cannot contain a reference.
            let code = decode(raw);
            if self.settings.scripts && code.contains(['"', '\'', '`']) {
                self.page.fragments.push(Fragment::text(
                    "text/javascript",
                    code,
                    context(element, name),
                ));
            }
            return;
        }
        if !self.settings.data_attributes || reference::is_data(raw) {
            return;
        }
        let Some(kind) = data_attribute(name) else {
            return;
        };
        let value = decode(raw);
        match kind {
            DataAttribute::Srcset => {
                for word in srcset::candidates(&value).take(LIST_MAX) {
                    self.add_with_context(word, Hop::Embed, || context(element, name));
                }
            }
            DataAttribute::Embed if srcset::is_list(&value, reference::is_likely) => {
                for word in srcset::candidates(&value).take(LIST_MAX) {
                    self.add_with_context(word, Hop::Embed, || context(element, name));
                }
            }
            DataAttribute::Embed | DataAttribute::Link => {
                let value = without_css_url(&value);
                if reference::is_likely(value) {
                    let is_media = matches!(
                        element,
                        "img" | "source" | "video" | "audio" | "iframe" | "embed" | "script"
                    );
                    let hop = if kind == DataAttribute::Embed || is_media {
                        Hop::Embed
                    } else {
                        Hop::Link
                    };
                    self.add_with_context(value, hop, || context(element, name));
                }
            }
        }
    }

    fn href(&mut self, at: Position<'_>, is_foreign: bool, raw: &'a str) {
        match at.element {
            "a" | "area" => {
                let value = decode(raw);
                let rel = self
                    .decoded(AttributeName::Rel)
                    .filter(|rel| !rel.trim().is_empty());
                let is_nofollow = rel.as_deref().is_some_and(has_nofollow);
                if is_nofollow && !self.settings.follow_nofollow {
                    return;
                }
                let before = self.page.links.len();
                self.add(&value, Hop::Link, at);
                if let (Some(rel), Some(link)) = (rel, self.page.links.get_mut(before)) {
                    *link = std::mem::take(link).attribute("rel", rel.trim().to_ascii_lowercase());
                }
            }
            "base" if !is_foreign && self.inert == 0 => {
                let value = decode(raw);
                if let Reference::Link(base) = reference::reference(&value)
                    && self.page.base.is_none()
                {
                    self.page.base = Some(base.to_owned());
                    self.add(&value, Hop::Link, at);
                }
            }
            "base" => {}
            "link" => {
                let rel = self.decoded(AttributeName::Rel).unwrap_or_default();
                let hop = match self.value(AttributeName::Itemprop) {
                    Some(itemprop) if rel.trim().is_empty() => {
                        Some(if kinds::is_embedded_property(itemprop) {
                            Hop::Embed
                        } else {
                            Hop::Link
                        })
                    }
                    _ => kinds::link_hop(&rel, self.settings),
                };
                let Some(hop) = hop else {
                    return;
                };
                let before = self.page.links.len();
                self.add_raw(raw, hop, at);
                if let Some(link) = self.page.links.get_mut(before)
                    && !rel.trim().is_empty()
                {
                    *link = std::mem::take(link).attribute("rel", rel.trim().to_ascii_lowercase());
                }
            }
            // `use`, `image`, `feImage`, `script` … of SVG.
            _ if is_foreign || at.attribute == AttributeName::XlinkHref => {
                self.add_raw(raw, Hop::Embed, at)
            }
            _ => self.add_raw(raw, Hop::Link, at),
        }
    }

    fn meta(&mut self, raw: &'a str, at: Position<'_>) {
        if self
            .value(AttributeName::HttpEquiv)
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
        {
            let content = decode(raw);
            if let Some(target) = refresh::target(&content) {
                self.add(target, Hop::Redirect, at);
            }
            return;
        }
        let Some(name) = self
            .decoded(AttributeName::Property)
            .or(self.decoded(AttributeName::Name))
            .or(self.decoded(AttributeName::Itemprop))
        else {
            return;
        };
        let content = decode(raw);
        match kinds::meta(&name, &content) {
            Meta::Robots if self.inert > 0 => {}
            Meta::Robots => {
                let robots = self.page.robots.get_or_insert_default();
                if robots.len() + content.len() < ROBOTS_BYTES_MAX {
                    if !robots.is_empty() {
                        robots.push_str(", ");
                    }
                    robots.push_str(content.trim());
                }
            }
            Meta::Reference(hop) => self.add(&content, hop, at),
            Meta::Text => {}
        }
    }

    /// Reads a `value` attribute, which may contain a reference or other text.
    fn value_attribute(&mut self, element: &str, raw: &'a str, at: Position<'_>) {
        if !self.settings.value_attributes {
            return;
        }
        match element {
            "option" => {
                let value = decode(raw);
                if reference::is_likely(&value) {
                    self.add(&value, Hop::Link, at);
                }
            }
            "input" => {
                let value = decode(raw);
                if reference::is_absolute(&value) {
                    self.add(&value, Hop::Speculative, at);
                }
            }
            "param" => {
                let name = self
                    .decoded(AttributeName::Name)
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
                let value = decode(raw);
                if name == "flashvars" {
                    self.flashvars(&value, at);
                } else if let Some(hop) = kinds::param_hop(&name, &value) {
                    self.add(&value, hop, at);
                }
            }
            _ => {}
        }
    }

    /// Reads values that look like references from `flashvars` (`a=1&file=movie.flv`).
    fn flashvars(&mut self, value: &str, at: Position<'_>) {
        if !self.settings.value_attributes {
            return;
        }
        for pair in value.split('&').take(LIST_MAX) {
            let value = pair.split_once('=').map_or("", |(_, value)| value);
            let value = percent_decode(value);
            if reference::is_likely(&value) {
                self.add(&value, Hop::Speculative, at);
            }
        }
    }

    fn srcset(&mut self, raw: &'a str, at: Position<'_>) {
        for word in srcset::candidates(&decode(raw)).take(LIST_MAX) {
            self.add(word, Hop::Embed, at);
        }
    }

    /// Adds a reference of an object or applet, resolved against its `codebase`.
    fn add_under_codebase(&mut self, value: &str, at: Position<'_>) {
        if let Reference::Link(value) = reference::reference(value) {
            let value = match self
                .decoded(AttributeName::Codebase)
                .filter(|base| !base.trim().is_empty())
            {
                Some(base) => Cow::Owned(reference::join(&base, value)),
                None => Cow::Borrowed(value),
            };
            self.add(&value, Hop::Embed, at);
        }
    }

    /// Adds the reference in a raw attribute value.
    fn add_raw(&mut self, raw: &str, hop: Hop, at: Position<'_>) {
        if !reference::is_data(raw) {
            self.add(&decode(raw), hop, at);
        }
    }

    /// Adds the reference in a value whose character references are decoded.
    fn add(&mut self, value: &str, hop: Hop, at: Position<'_>) {
        self.add_with_context(value, hop, || at.context());
    }

    fn add_with_context(&mut self, value: &str, hop: Hop, context: impl Fn() -> String) {
        match reference::reference(value) {
            Reference::Link(uri) => self.page.links.push(Link::new(uri, hop, context())),
            Reference::Script(code) if self.settings.scripts => {
                let code = percent_decode(code);
                if code.contains(['"', '\'', '`']) {
                    self.page
                        .fragments
                        .push(Fragment::text("text/javascript", code, context()));
                }
            }
            Reference::Script(_) | Reference::None => {}
        }
    }

    /// The media type and the context of an element's text; `None` if extractors do not read it. `has_attributes`: whether
    /// `values` holds the attributes of its start tag.
    fn text_kind(&self, element: &str, has_attributes: bool) -> Option<(String, &'static str)> {
        let value = |known: AttributeName| {
            if has_attributes {
                self.decoded(known)
            } else {
                None
            }
        };
        match element {
            // With `src`, browsers ignore the element's content.
            "script" if self.settings.scripts && value(AttributeName::Src).is_none() => {
                let kind = kinds::script_type(
                    value(AttributeName::Type).as_deref(),
                    value(AttributeName::Language).as_deref(),
                );
                kind.map(|kind| (kind, "script"))
            }
            "style" if self.settings.styles => {
                match value(AttributeName::Type).as_deref().map(str::trim) {
                    None | Some("") => Some("text/css".to_owned()),
                    Some(kind) => Some(kind.to_ascii_lowercase()).filter(|kind| kind.contains('/')),
                }
                .map(|kind| (kind, "style"))
            }
            // HTML for browsers without support for the element.
            "noframes" => Some((HTML.to_owned(), "noframes")),
            "iframe" => Some((HTML.to_owned(), "iframe")),
            "noembed" => Some((HTML.to_owned(), "noembed")),
            _ => None,
        }
    }

    /// Adds the text of an element as a fragment.
    fn add_fragment(
        &mut self,
        (media_type, element): (String, &'static str),
        (start, end): (usize, usize),
    ) {
        let content = self.text[start..end].trim_ascii();
        let is_script = matches!(element, "script" | "style");
        if !content.is_empty() && (is_script || content.contains('<')) {
            let fragment = Fragment::text_at(media_type, start..end, element);
            self.page.fragments.push(fragment);
        }
    }
}

/// The media type of the content of `iframe` and similar elements.
const HTML: &str = "text/html";

/// The position of a link.
#[derive(Clone, Copy)]
struct Position<'e> {
    element: &'e str,
    attribute: AttributeName,
}

impl Position<'_> {
    fn context(self) -> String {
        context(self.element, self.attribute.as_str())
    }
}

fn context(element: &str, attribute: &str) -> String {
    let mut context = String::with_capacity(element.len() + attribute.len() + 2);
    context.push_str(element);
    context.push_str("/@");
    context.push_str(attribute);
    context
}

/// The kind of text that an element contains instead of markup. Elements of SVG and MathML have no raw text, not even their
/// scripts and styles (HTML standard §13.2.6.5).
pub(crate) fn raw_text(element: &str, is_foreign: bool) -> Option<RawText> {
    match element {
        _ if is_foreign => None,
        "script" => Some(RawText::Script),
        "style" => Some(RawText::Plain),
        "title" | "textarea" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawText::Plain),
        "plaintext" => Some(RawText::Endless),
        _ => None,
    }
}

/// A name in lower case; empty if it is longer than any known name.
#[inline]
pub(crate) fn lower<'b>(name: &str, buffer: &'b mut [u8; NAME_BYTES_MAX]) -> &'b str {
    let Some(target) = buffer.get_mut(..name.len()) else {
        return "";
    };
    target.copy_from_slice(name.as_bytes());
    target.make_ascii_lowercase();
    std::str::from_utf8(target).unwrap_or_default()
}

fn has_nofollow(rel: &str) -> bool {
    rel.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case("nofollow"))
}

/// Removes the `url(…)` around a reference. Scripts that load images lazily write `url(a.jpg)` or `url('a.jpg')` in `data-bg`.
fn without_css_url(value: &str) -> &str {
    let value = reference::trim(value);
    match value
        .strip_prefix("url(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(inner) => inner.trim().trim_matches(['"', '\'']),
        None => value,
    }
}

/// The file of an applet's class: `C`, `org.example.C` and `C.class` name classes.
fn class_file(code: &str) -> String {
    let code = reference::trim(code);
    if code.is_empty() {
        return String::new();
    }
    let class = code.strip_suffix(".class").unwrap_or(code);
    format!("{}.class", class.replace('.', "/"))
}

/// Decodes `%41` to `A`, once. Invalid UTF-8 becomes U+FFFD.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        // `from_str_radix` accepts a sign.
        match byte.filter(|_| bytes[at + 1] != b'+') {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}
