//! Facts of our extractors about a document, in the judges' format: class, hop, context and value, separated by tabs.

use anyhow::{Result, anyhow};
use opilio_plugin::testing::document;
use opilio_plugin::{Document, Extraction, Fragment, FragmentContent, Hop, Link, Plugins};

use super::corpus::Kind;

/// URI of all documents. References are compared as written, so its value has no effect.
const URI: &str = "http://example.org/folder/document";

/// Schemes whose links are compared. Links with other schemes are left to the scope.
const SCHEMES: [&str; 3] = ["http", "https", "ftp"];

/// Number of leading characters of a script or style that are compared, together with its length.
const EXCERPT_CHARACTERS: usize = 60;

/// The links that the extractor of this kind finds.
pub(crate) fn facts(kind: Kind, content: &[u8]) -> Result<Vec<String>> {
    let (component, media_type): (fn() -> Plugins, _) = match kind {
        Kind::Html => (opilio_html::plugins, "text/html"),
        Kind::Css => (opilio_css::plugins, "text/css"),
        Kind::Js => (opilio_js::plugins, "text/javascript"),
        Kind::Json => (opilio_formats::plugins, "application/json"),
        Kind::Xml => (opilio_formats::plugins, "application/xml"),
        Kind::Svg => (opilio_formats::plugins, "image/svg+xml"),
        Kind::Pdf => (opilio_formats::plugins, "application/pdf"),
    };
    // The judge does not extract from the text of pages.
    let settings = match kind {
        Kind::Pdf => r#"{"text": false}"#,
        _ => "{}",
    };
    let plugin = component()
        .configure(kind.name(), settings)
        .map_err(|faults| anyhow!("{}: {faults:?}", kind.name()))?;
    let draft = document(URI).media_type(media_type);
    let (document, text): (Document, String) = match kind {
        Kind::Pdf => (draft.bytes(content), String::new()),
        _ => {
            let text = String::from_utf8_lossy(content);
            // The host also removes the byte order mark.
            let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text).to_owned();
            (draft.text(&text), text)
        }
    };
    let mut extraction = Extraction::default();
    for part in plugin.extract(&[document]) {
        extraction.links.extend(part.links);
        extraction.fragments.extend(part.fragments);
    }
    extraction.links.retain(|link| is_compared(&link.uri));
    Ok(match kind {
        Kind::Html => {
            let mut facts: Vec<String> = extraction.links.iter().map(of_a_page).collect();
            let fragments = extraction.fragments.iter();
            facts.extend(fragments.filter_map(|fragment| of_fragment(fragment, &text)));
            facts
        }
        Kind::Css => {
            let line = |link: &Link| line("link", "E", &link.context, &link.uri);
            extraction.links.iter().map(line).collect()
        }
        Kind::Svg => {
            let line = |link: &Link| line("link", letter(&link.hop), "", &link.uri);
            once(extraction.links.iter().map(line))
        }
        _ => once(
            extraction
                .links
                .iter()
                .map(|link| line("link", "", "", &link.uri)),
        ),
    })
}

/// For formats in which a document states a fact in several ways: each line counts once.
fn once(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.dedup();
    lines
}

fn of_a_page(link: &Link) -> String {
    // Links in attributes that may hold other values are guesses with any parser.
    let attribute = link.context.rsplit('@').next().unwrap_or_default();
    let is_guess = link.hop == Hop::Speculative
        || attribute.starts_with("data-")
        || matches!(attribute, "value" | "flashvars");
    if is_guess {
        line("guess", "", &link.context, &link.uri)
    } else {
        line("link", letter(&link.hop), &link.context, &link.uri)
    }
}

/// Scripts and styles of a page, identified by length and first characters.
fn of_fragment(fragment: &Fragment, text: &str) -> Option<String> {
    let content = match &fragment.content {
        FragmentContent::Text(content) => content.as_str(),
        FragmentContent::TextAt(span) => {
            let start = usize::try_from(span.offset).ok()?;
            let length = usize::try_from(span.length).ok()?;
            text.get(start..start.checked_add(length)?)?
        }
        _ => return None,
    };
    let content = lines(content.trim());
    let begin: String = content.chars().take(EXCERPT_CHARACTERS).collect();
    let excerpt = format!("{} {begin}", content.chars().count());
    Some(line("part", "", &fragment.context, &excerpt))
}

fn is_compared(uri: &str) -> bool {
    let end = uri.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    match end {
        Some(end) if end > 0 && uri[end..].starts_with(':') => {
            let scheme = &uri[..end];
            SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(scheme))
        }
        _ => true,
    }
}

fn letter(hop: &Hop) -> &'static str {
    match hop {
        Hop::Link => "L",
        Hop::Embed => "E",
        Hop::Redirect => "R",
        _ => "X",
    }
}

fn line(class: &str, hop: &str, context: &str, value: &str) -> String {
    format!("{class}\t{hop}\t{context}\t{}", lines(value))
}

/// HTML parsers convert every line break to `\n`.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
