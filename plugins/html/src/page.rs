//! Reads a page in one pass over its tags. Links and fragments are collected in document order.

use std::borrow::Cow;

use opilio_plugin::{Fragment, Hop, Link};

use crate::entities::decode;
use crate::foreign::Foreign;
use crate::kinds::{self, Meta};
use crate::names::{DataAttribute, Known, NAME_BYTES_MAX, data_attribute, may_matter};
use crate::reference::{self, Reference};
use crate::refresh;
use crate::settings::{FormActions, Settings};
use crate::srcset;
use crate::tokenizer::{Attribute, RawText, Token, Tokenizer};

/// Most `on*` and `data-*` attributes read per tag. No tag written by a person has more.
const FREE_ATTRIBUTES_MAX: usize = 64;

/// Most image candidates, archives or pings read per attribute.
const LIST_MAX: usize = 1_000;

/// Longest kept text of rules for robots.
const ROBOTS_BYTES_MAX: usize = 1_000;

/// The result for a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In document order.
    pub links: Vec<Link>,
    /// Scripts, styles and pages within the page.
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
        values: [None; Known::COUNT],
        form_is_get: true,
        inert: 0,
    };
    reader.part(0, text.len(), settings.conditional_comments);
    reader.page
}

struct Reader<'a, 's> {
    text: &'a str,
    syntax: Syntax,
    settings: &'s Settings,
    page: Page,
    /// Known attributes of the current tag. The first of a name counts.
    values: [Option<&'a str>; Known::COUNT],
    /// Whether the last opened form is sent with GET.
    form_is_get: bool,
    /// Number of templates and comments around the current tag. Its links count, but not its statements about the page.
    inert: usize,
}

impl<'a> Reader<'a, '_> {
    /// Reads `text[start..end]`: the page, or a conditional comment in it. Conditional comments are not nested, so each byte is
    /// read at most twice.
    fn part(&mut self, start: usize, end: usize, conditional_comments: bool) {
        let text = self.text;
        let mut tokenizer = Tokenizer::new(text, start, end);
        let mut foreign = Foreign::default();
        let mut attributes = Vec::new();
        let mut buffer = [0; NAME_BYTES_MAX];
        // An open script or style of SVG, whose text ends at the next tag, and the start of that text.
        let mut foreign_text = None;
        while let Some(token) = tokenizer.next(&mut attributes, may_matter) {
            if let Token::Start { name, .. } | Token::End { name } = token
                && let Some((kind, start)) = foreign_text.take()
            {
                let tag = name.as_ptr() as usize - text.as_ptr() as usize;
                let end = start + text[start..tag].rfind('<').unwrap_or_default();
                self.embedded(kind, (start, end));
            }
            match token {
                Token::Start { name, self_closing } => {
                    let element = lower(name, &mut buffer);
                    let is_foreign = foreign.start(element, self_closing);
                    if !attributes.is_empty() {
                        self.tag(element, is_foreign, &attributes);
                    } else if element == "form" {
                        self.form_is_get = true;
                    }
                    let closed = self_closing && (is_foreign || self.syntax == Syntax::Xml);
                    if !closed && is_foreign && matches!(element, "script" | "style") {
                        let kind = self.text_kind(element, !attributes.is_empty());
                        foreign_text = kind.map(|kind| (kind, tokenizer.position()));
                    } else if !closed && let Some(kind) = raw_text(element, is_foreign) {
                        let range = tokenizer.raw_text(name, kind);
                        if let Some(kind) = self.text_kind(element, !attributes.is_empty()) {
                            self.embedded(kind, range);
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
                        self.part(offset + open + 2, offset + text.len(), false);
                        self.inert = inert;
                    }
                }
            }
        }
        if let Some((kind, start)) = foreign_text {
            self.embedded(kind, (start, end));
        }
    }

    fn value(&self, known: Known) -> Option<&'a str> {
        self.values[known as usize]
    }

    fn decoded(&self, known: Known) -> Option<Cow<'a, str>> {
        self.value(known).map(decode)
    }

    fn tag(&mut self, element: &str, is_foreign: bool, attributes: &[Attribute<'a>]) {
        self.values = [None; Known::COUNT];
        let mut buffer = [0; NAME_BYTES_MAX];
        // Attributes that describe the tag are read before its references.
        let mut first = 0_u64;
        for (at, attribute) in attributes.iter().enumerate() {
            if let Some(known) = Known::of(lower(attribute.name, &mut buffer).as_bytes())
                && self.values[known as usize].is_none()
            {
                self.values[known as usize] = Some(attribute.value);
                if at < 64 {
                    first |= 1 << at;
                }
            }
        }
        if element == "form" {
            self.form_is_get = self.is_get(self.value(Known::Method));
        }
        let mut free = Vec::new();
        for (at, attribute) in attributes.iter().enumerate() {
            let name = lower(attribute.name, &mut buffer);
            if let Some(known) = Known::of(name.as_bytes()) {
                let is_first = if at < 64 {
                    first >> at & 1 != 0
                } else {
                    self.values[known as usize]
                        .is_some_and(|value| std::ptr::eq(value, attribute.value))
                };
                if is_first {
                    self.known(element, is_foreign, known, attribute.value);
                }
            } else if free.len() < FREE_ATTRIBUTES_MAX
                && !free
                    .iter()
                    .any(|seen: &&str| seen.eq_ignore_ascii_case(attribute.name))
            {
                free.push(attribute.name);
                self.free(element, name, attribute.value);
            }
        }
    }

    fn known(&mut self, element: &str, is_foreign: bool, known: Known, raw: &'a str) {
        let at = At {
            element,
            attribute: known,
        };
        match known {
            Known::Href | Known::XlinkHref => self.href(at, is_foreign, raw),
            Known::Src if matches!(element, "iframe" | "frame" | "fencedframe" | "portal") => {
                if let Some(hop) = self.settings.frame_links.hop() {
                    self.link(raw, hop, at);
                }
            }
            Known::Src
            | Known::Poster
            | Known::Background
            | Known::Lowsrc
            | Known::Dynsrc
            | Known::Icon
            | Known::LazySrc
            | Known::Realsrc => self.link(raw, Hop::Embed, at),
            Known::Manifest if element == "html" => self.link(raw, Hop::Embed, at),
            Known::Srcset | Known::Imagesrcset => self.srcset(raw, at),
            Known::Cite | Known::Longdesc | Known::Pluginspage => self.link(raw, Hop::Link, at),
            Known::Profile if element == "head" => self.link(raw, Hop::Link, at),
            Known::Ping if matches!(element, "a" | "area") => {
                if let Some(hop) = self.settings.ping_links.hop() {
                    for word in decode(raw).split_ascii_whitespace().take(LIST_MAX) {
                        self.found(word, hop.clone(), at);
                    }
                }
            }
            Known::Action if element == "form" && self.form_is_get => self.link(raw, Hop::Link, at),
            Known::Formaction if matches!(element, "button" | "input") => {
                let method = self.value(Known::Formmethod);
                if if method.is_some() {
                    self.is_get(method)
                } else {
                    self.form_is_get
                } {
                    self.link(raw, Hop::Link, at);
                }
            }
            Known::Data if element == "object" => self.under_codebase(&decode(raw), at),
            Known::Classid | Known::Object if matches!(element, "object" | "applet") => {
                self.under_codebase(&decode(raw), at);
            }
            Known::Archive if matches!(element, "object" | "applet" | "embed") => {
                for word in decode(raw)
                    .split([' ', '\t', '\n', '\r', ','])
                    .filter(|word| !word.is_empty())
                    .take(LIST_MAX)
                {
                    self.under_codebase(word, at);
                }
            }
            Known::Code if matches!(element, "applet" | "embed" | "object") => {
                self.under_codebase(&class_file(&decode(raw)), at);
            }
            Known::Codebase if matches!(element, "object" | "applet" | "embed") => {
                self.link(raw, Hop::Link, at)
            }
            Known::Content if element == "meta" => self.meta(raw, at),
            Known::Value => self.any_value(element, raw, at),
            Known::Flashvars => self.flashvars(&decode(raw), at),
            Known::Style if self.settings.styles && raw.contains('(') => {
                self.page
                    .fragments
                    .push(Fragment::text("text/css", decode(raw), "@style"));
            }
            Known::Srcdoc if element == "iframe" => {
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
    fn free(&mut self, element: &str, name: &str, raw: &'a str) {
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
                    self.found_as(word, Hop::Embed, || context(element, name));
                }
            }
            DataAttribute::Embed if srcset::is_list(&value, reference::is_likely) => {
                for word in srcset::candidates(&value).take(LIST_MAX) {
                    self.found_as(word, Hop::Embed, || context(element, name));
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
                    self.found_as(value, hop, || context(element, name));
                }
            }
        }
    }

    fn href(&mut self, at: At<'_>, is_foreign: bool, raw: &'a str) {
        match at.element {
            "a" | "area" => {
                let value = decode(raw);
                let rel = self
                    .decoded(Known::Rel)
                    .filter(|rel| !rel.trim().is_empty());
                let is_nofollow = rel.as_deref().is_some_and(has_nofollow);
                if is_nofollow && !self.settings.follow_nofollow {
                    return;
                }
                let before = self.page.links.len();
                self.found(&value, Hop::Link, at);
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
                    self.found(&value, Hop::Link, at);
                }
            }
            "base" => {}
            "link" => {
                let rel = self.decoded(Known::Rel).unwrap_or_default();
                let hop = match self.value(Known::Itemprop) {
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
                self.link(raw, hop, at);
                if let Some(link) = self.page.links.get_mut(before)
                    && !rel.trim().is_empty()
                {
                    *link = std::mem::take(link).attribute("rel", rel.trim().to_ascii_lowercase());
                }
            }
            // `use`, `image`, `feImage`, `script` … of SVG.
            _ if is_foreign || at.attribute == Known::XlinkHref => self.link(raw, Hop::Embed, at),
            _ => self.link(raw, Hop::Link, at),
        }
    }

    fn meta(&mut self, raw: &'a str, at: At<'_>) {
        if self
            .value(Known::HttpEquiv)
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
        {
            let content = decode(raw);
            if let Some(target) = refresh::target(&content) {
                self.found(target, Hop::Redirect, at);
            }
            return;
        }
        let Some(name) = self
            .decoded(Known::Property)
            .or(self.decoded(Known::Name))
            .or(self.decoded(Known::Itemprop))
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
            Meta::Reference(hop) => self.found(&content, hop, at),
            Meta::Text => {}
        }
    }

    /// Reads the `value` of an element that may hold a reference or something else.
    fn any_value(&mut self, element: &str, raw: &'a str, at: At<'_>) {
        if !self.settings.value_attributes {
            return;
        }
        match element {
            "option" => {
                let value = decode(raw);
                if reference::is_likely(&value) {
                    self.found(&value, Hop::Link, at);
                }
            }
            "input" => {
                let value = decode(raw);
                if reference::is_absolute(&value) {
                    self.found(&value, Hop::Speculative, at);
                }
            }
            "param" => {
                let name = self
                    .decoded(Known::Name)
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
                let value = decode(raw);
                if name == "flashvars" {
                    self.flashvars(&value, at);
                } else if let Some(hop) = kinds::param_hop(&name, &value) {
                    self.found(&value, hop, at);
                }
            }
            _ => {}
        }
    }

    /// `a=1&file=movie.flv`: values that look like references.
    fn flashvars(&mut self, value: &str, at: At<'_>) {
        if !self.settings.value_attributes {
            return;
        }
        for pair in value.split('&').take(LIST_MAX) {
            let value = pair.split_once('=').map_or("", |(_, value)| value);
            let value = percent_decode(value);
            if reference::is_likely(&value) {
                self.found(&value, Hop::Speculative, at);
            }
        }
    }

    fn srcset(&mut self, raw: &'a str, at: At<'_>) {
        for word in srcset::candidates(&decode(raw)).take(LIST_MAX) {
            self.found(word, Hop::Embed, at);
        }
    }

    /// References of objects and applets resolve against their `codebase`.
    fn under_codebase(&mut self, value: &str, at: At<'_>) {
        if let Reference::Link(value) = reference::reference(value) {
            let value = match self
                .decoded(Known::Codebase)
                .filter(|base| !base.trim().is_empty())
            {
                Some(base) => Cow::Owned(reference::join(&base, value)),
                None => Cow::Borrowed(value),
            };
            self.found(&value, Hop::Embed, at);
        }
    }

    /// Whether forms with this method are links, by the method and the profile.
    fn is_get(&self, method: Option<&str>) -> bool {
        match self.settings.form_actions {
            FormActions::Get => !method.is_some_and(|method| {
                ["post", "dialog"]
                    .iter()
                    .any(|other| method.trim().eq_ignore_ascii_case(other))
            }),
            FormActions::All => true,
            FormActions::None => false,
        }
    }

    /// Adds a reference from an attribute.
    fn link(&mut self, raw: &str, hop: Hop, at: At<'_>) {
        if !reference::is_data(raw) {
            self.found(&decode(raw), hop, at);
        }
    }

    /// Adds a reference with decoded character references.
    fn found(&mut self, value: &str, hop: Hop, at: At<'_>) {
        self.found_as(value, hop, || at.context());
    }

    fn found_as(&mut self, value: &str, hop: Hop, context: impl Fn() -> String) {
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

    /// Media type and name of an element's text, if an extractor may read it. `has_attributes`: `values` holds the attributes
    /// of its start tag.
    fn text_kind(&self, element: &str, has_attributes: bool) -> Option<(String, &'static str)> {
        let value = |known: Known| {
            if has_attributes {
                self.decoded(known)
            } else {
                None
            }
        };
        match element {
            // With `src`, browsers ignore the element's content.
            "script" if self.settings.scripts && value(Known::Src).is_none() => {
                let kind = kinds::script_type(
                    value(Known::Type).as_deref(),
                    value(Known::Language).as_deref(),
                );
                kind.map(|kind| (kind, "script"))
            }
            "style" if self.settings.styles => match value(Known::Type).as_deref().map(str::trim) {
                None | Some("") => Some("text/css".to_owned()),
                Some(kind) => Some(kind.to_ascii_lowercase()).filter(|kind| kind.contains('/')),
            }
            .map(|kind| (kind, "style")),
            // Content for browsers without frames.
            "noframes" => Some((HTML.to_owned(), "noframes")),
            "iframe" => Some((HTML.to_owned(), "iframe")),
            "noembed" => Some((HTML.to_owned(), "noembed")),
            _ => None,
        }
    }

    /// Adds the text of an element as a fragment.
    fn embedded(
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
struct At<'e> {
    element: &'e str,
    attribute: Known,
}

impl At<'_> {
    fn context(self) -> String {
        context(self.element, self.attribute.name())
    }
}

fn context(element: &str, attribute: &str) -> String {
    let mut context = String::with_capacity(element.len() + attribute.len() + 2);
    context.push_str(element);
    context.push_str("/@");
    context.push_str(attribute);
    context
}

/// The kind of text that an element holds instead of markup. Elements of SVG and MathML have no raw text, not even their
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

/// Removes the `url(…)` around a reference: lazy loaders keep `url(a.jpg)` or `url('a.jpg')` in `data-bg`.
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
