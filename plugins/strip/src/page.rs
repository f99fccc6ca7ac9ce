//! Walks over the tags of a page and keeps the list of open elements. It uses the tokenizer of the extractor `html`, and builds
//! no tree. Missing optional end tags are added by the lists below. Any other unclosed element ends with its parent.

use opilio_plugin::prelude::*;

use crate::selector::{Element, Selector};
use crate::tokenizer::{Attribute, RawText, Token, Tokenizer};

/// Largest number of open elements. Deeper ones are skipped. Browsers also stop at 512.
const DEPTH_MAX: usize = 512;

/// Parts of the page, in document order.
pub(crate) enum Event<'a, 'p> {
    /// A start tag. Its element is the last of the open ones.
    Start {
        open: &'a [Element],
        /// All attributes, unchanged.
        attributes: &'a [Attribute<'p>],
    },
    /// A comment. The span includes the delimiters.
    Comment { text: &'p str, span: (usize, usize) },
}

/// The content as text with the same byte positions as the document. If it is not UTF-8, each byte outside of ASCII becomes
/// `?`. `None` for UTF-16 and ISO-2022-JP, in which a byte below 0x80 is not always an ASCII character.
pub(crate) fn text_of(document: &Document) -> Option<String> {
    let is_wide = |charset: String| charset.starts_with("utf-16") || charset == "iso-2022-jp";
    if document.charset().is_some_and(is_wide) {
        return None;
    }
    Some(match String::from_utf8(document.content()) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.into_bytes().into_iter();
            let readable = bytes.map(|byte| if byte.is_ascii() { byte } else { b'?' });
            readable.map(char::from).collect()
        }
    })
}

/// Walks over a page and returns the spans to remove. `removes` decides on each comment, and on each element with its content.
/// It is not called for the content of removed elements.
pub(crate) fn walk<'p>(
    text: &'p str,
    names: &Names,
    mut removes: impl FnMut(Event<'_, 'p>) -> bool,
) -> Vec<(usize, usize)> {
    let mut walk = Walk {
        text,
        tokens: Tokenizer::new(text, 0, text.len()),
        open: Vec::new(),
        too_deep: 0,
        optional_ends: 0,
        removed: None,
        spans: Vec::new(),
    };
    let mut attributes = Vec::new();
    // All attributes are read, because any can have a changing value.
    while let Some(token) = walk.tokens.next(&mut attributes, |_| true) {
        match token {
            Token::Comment { text, offset } => {
                let start = offset - "<!--".len();
                let event = Event::Comment {
                    text,
                    span: (start, walk.position()),
                };
                if walk.removed.is_none() && removes(event) {
                    walk.spans.push((start, walk.position()));
                }
            }
            Token::Start { name, self_closing } => {
                walk.start(name, self_closing, &attributes, names, &mut removes);
            }
            Token::End { name } => walk.end(name),
        }
    }
    walk.close(0, text.len());
    walk.spans
}

/// Attributes that selectors examine, in lower case. Other attributes of open elements are not stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) fn of<'s>(selectors: impl Iterator<Item = &'s Selector>) -> Self {
        let mut names: Vec<_> = selectors
            .flat_map(Selector::attributes)
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        Self(names)
    }
}

struct Walk<'p> {
    text: &'p str,
    tokens: Tokenizer<'p>,
    open: Vec<Element>,
    /// Number of open elements deeper than the limit.
    too_deep: usize,
    /// Number of open elements with an optional end tag. If it is 0, no search for them is needed.
    optional_ends: usize,
    /// Start of the element that is being removed, and the number of its ancestors.
    removed: Option<(usize, usize)>,
    spans: Vec<(usize, usize)>,
}

impl<'p> Walk<'p> {
    /// The position after the last token.
    fn position(&self) -> usize {
        self.tokens.position()
    }

    /// The position of `part`, which must be a slice of the text.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn start(
        &mut self,
        name: &'p str,
        self_closing: bool,
        attributes: &[Attribute<'p>],
        names: &Names,
        removes: &mut impl FnMut(Event<'_, 'p>) -> bool,
    ) {
        let tag = (self.offset(name) - 1, self.position());
        let element = Element {
            name: name.to_ascii_lowercase(),
            attributes: attributes
                .iter()
                .filter(|attribute| {
                    let is_wanted = |wanted: &String| wanted.eq_ignore_ascii_case(attribute.name);
                    names.0.iter().any(is_wanted)
                })
                .map(|attribute| {
                    let value = decode_references(attribute.value);
                    (attribute.name.to_ascii_lowercase(), value)
                })
                .collect(),
        };
        if self.too_deep == 0 {
            self.close_implied(&element.name, tag.0);
        }
        if self.open.len() >= DEPTH_MAX {
            self.too_deep += usize::from(!is_void(&element.name));
            return;
        }
        let element_name = element.name.clone();
        // No element of SVG or MathML itself holds raw text.
        let is_foreign = self.is_foreign() || matches!(&*element_name, "svg" | "math");
        self.optional_ends += usize::from(has_optional_end(&element_name));
        self.open.push(element);
        if self.removed.is_none() {
            let open = &self.open;
            if removes(Event::Start { open, attributes }) {
                self.removed = Some((tag.0, self.open.len() - 1));
            }
        }
        if is_void(&element_name) || (self_closing && is_foreign) {
            let depth = self.open.len() - 1;
            self.close(depth, tag.1);
        } else if !is_foreign && let Some(kind) = raw_text(&element_name) {
            // The next token is its end tag.
            self.tokens.raw_text(name, kind);
        }
        self.tokens.foreign = self.is_foreign();
    }

    fn end(&mut self, name: &str) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let mut open = self.open.iter().enumerate().rev();
        // An end tag without a start tag is ignored. In a table, so is the end tag of an element that contains the table.
        let depth = open
            .find(|(_, element)| {
                element.name.eq_ignore_ascii_case(name)
                    || (element.name == "table" && !encloses_tables(name))
            })
            .filter(|(_, element)| element.name.eq_ignore_ascii_case(name))
            .map(|(depth, _)| depth);
        if let Some(depth) = depth {
            let end = self.position();
            // Open descendants end before the end tag. The element itself ends after it.
            let inner = self.offset(name).saturating_sub("</".len());
            self.close(depth + 1, inner);
            self.close(depth, end);
        }
        self.tokens.foreign = self.is_foreign();
    }

    /// Closes all but the first `depth` open elements at this position.
    fn close(&mut self, depth: usize, at: usize) {
        let closed = self.open.drain(depth.min(self.open.len())..);
        self.optional_ends -= closed
            .filter(|element| has_optional_end(&element.name))
            .count();
        if let Some((start, depth_of_removed)) = self.removed
            && depth <= depth_of_removed
        {
            self.spans.push((start, at));
            self.removed = None;
        }
    }

    /// Closes elements whose optional end tag is implied by a start tag of this name (HTML, 13.1.2.4).
    fn close_implied(&mut self, name: &str, at: usize) {
        if self.optional_ends == 0 {
            return;
        }
        let (closed, stops): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "option" | "optgroup" => (&["option"], &["select"]),
            "tr" => (&["tr", "td", "th"], &["table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tbody" | "tfoot" | "thead" => {
                (&["tbody", "tfoot", "thead", "tr", "td", "th"], &["table"])
            }
            name if ends_paragraph(name) => (
                &["p"],
                &["button", "td", "th", "table", "object", "template"],
            ),
            _ => return,
        };
        let mut depth = None;
        for (index, element) in self.open.iter().enumerate().rev() {
            if closed.contains(&element.name.as_str()) {
                depth = Some(index);
                if name == "tr" || name.starts_with('t') {
                    continue;
                }
                break;
            }
            if stops.contains(&element.name.as_str()) {
                break;
            }
        }
        if let Some(depth) = depth {
            self.close(depth, at);
        }
    }

    fn is_foreign(&self) -> bool {
        let mut ancestors = self.open.iter().rev();
        // `foreignObject`, `desc` and `title` contain HTML elements inside of SVG.
        let is_boundary =
            |name: &str| matches!(name, "svg" | "math" | "foreignobject" | "desc" | "title");
        let nearest = ancestors.find(|element| is_boundary(&element.name));
        nearest.is_some_and(|element| matches!(&*element.name, "svg" | "math"))
    }
}

/// Returns `true` if [`Walk::close_implied`] may close an element of this name.
fn has_optional_end(name: &str) -> bool {
    matches!(
        name,
        "li" | "dt" | "dd" | "option" | "p" | "tr" | "td" | "th" | "tbody" | "tfoot" | "thead"
    )
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "basefont"
            | "bgsound"
            | "frame"
            | "keygen"
    )
}

fn raw_text(name: &str) -> Option<RawText> {
    match name {
        "script" => Some(RawText::Script),
        "style" | "textarea" | "title" | "xmp" | "iframe" | "noembed" | "noframes" => {
            Some(RawText::Plain)
        }
        "plaintext" => Some(RawText::Endless),
        _ => None,
    }
}

/// Returns `true` if an end tag inside of a table may close an element that contains the table.
fn encloses_tables(name: &str) -> bool {
    name.eq_ignore_ascii_case("body") || name.eq_ignore_ascii_case("html")
}

fn ends_paragraph(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "center"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "search"
            | "section"
            | "table"
            | "ul"
    )
}

/// Decodes the character references of an attribute's value: numeric ones and `amp`, `lt`, `gt`, `quot`, `apos`.
fn decode_references(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest[1..].split_once(';').map(|(name, _)| name);
        let character = reference.and_then(|name| match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            name => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)
            }
        });
        match (character, reference) {
            (Some(character), Some(name)) => {
                text.push(character);
                rest = &rest[name.len() + 2..];
            }
            _ => {
                text.push('&');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::selector;

    /// Compares the removed parts of a page, separated by `|`, with `expected`.
    #[track_caller]
    fn check(selector: &str, page: &str, expected: &str) {
        let selectors = selector::parse(selector).unwrap();
        let names = Names::of(selectors.iter());
        let spans = walk(page, &names, |event| match event {
            Event::Start { open, .. } => selectors.iter().any(|selector| selector.matches(open)),
            Event::Comment { .. } => false,
        });
        let parts: Vec<_> = spans
            .iter()
            .map(|&(start, end)| &page[start..end])
            .collect();
        assert_eq!(parts.join("|"), expected, "{selector} in {page}");
    }

    #[test]
    fn an_element_is_removed_with_its_content() {
        check(
            ".ad",
            "a<div class=ad>b<div>c</div>d</div>e",
            "<div class=ad>b<div>c</div>d</div>",
        );
        check(
            ".ad",
            "<p class=ad><b class=ad>x</b></p><p class=ad>y</p>",
            "<p class=ad><b class=ad>x</b></p>|<p class=ad>y</p>",
        );
        check("img", "a<img src='>'>b", "<img src='>'>");
        check("iframe", "<iframe><p></iframe >x", "<iframe><p></iframe >");
    }

    #[test]
    fn missing_optional_end_tags_are_added() {
        check(".ad", "<ul><li class=ad>a<li>b</ul>", "<li class=ad>a");
        check(
            ".ad",
            "<ul><li class=ad>a<ul><li>b</ul>c<li>d</ul>",
            "<li class=ad>a<ul><li>b</ul>c",
        );
        check(".ad", "<p class=ad>a<div>b</div>", "<p class=ad>a");
        check(".ad", "<div><p class=ad>a</div>b", "<p class=ad>a");
        check(
            ".ad",
            "<table><tr class=ad><td>a<tr><td>b</table>",
            "<tr class=ad><td>a",
        );
        check(
            ".ad",
            "<table><tr><td class=ad>a<td>b</table>",
            "<td class=ad>a",
        );
        check(
            ".ad",
            "<div class=ad>never closed",
            "<div class=ad>never closed",
        );
    }

    #[test]
    fn unmatched_end_tags_are_ignored() {
        check(
            ".ad",
            "<div class=ad>a</span>b</div>c",
            "<div class=ad>a</span>b</div>",
        );
        check(
            ".ad",
            "<span class=ad><table><td>a</span>b</table></span>c",
            "<span class=ad><table><td>a</span>b</table></span>",
        );
    }

    #[test]
    fn tags_in_scripts_are_text() {
        check(
            "b",
            "<script>'<b>'</script><b>x</b><svg><b/><title><b>y</b></title></svg>",
            "<b>x</b>|<b/>|<b>y</b>",
        );
    }

    #[test]
    fn deep_pages_are_walked_to_the_end() {
        let page = "<div>".repeat(20_000);
        check("p", &page, "");
        let page = format!("{page}{}<p>x</p>", "</div>".repeat(20_000));
        check("p", &page, "<p>x</p>");
    }

    #[test]
    fn character_references_in_values_are_decoded() {
        check(
            "[id='a&b\"']",
            "<i id='a&amp;b&#34;'>x</i>",
            "<i id='a&amp;b&#34;'>x</i>",
        );
        check("[id='&x;']", "<i id='&x;'>y</i>", "<i id='&x;'>y</i>");
    }
}
