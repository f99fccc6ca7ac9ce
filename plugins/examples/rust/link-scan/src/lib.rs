//! Finds URIs in HTML without parsing it. The extractor exists in every language, for comparison.

use opilio_plugin::prelude::*;

const SPACE: [char; 5] = [' ', '\t', '\n', '\u{c}', '\r'];

/// Settings in the profile.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Attributes whose values are URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub attributes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            attributes: vec!["href".to_owned(), "src".to_owned()],
        }
    }
}

/// The configured plugin.
pub struct LinkScan {
    attributes: Vec<Attribute>,
}

struct Attribute {
    name: String,
    context: String,
    hop: Hop,
}

impl Plugin for LinkScan {
    const NAME: &'static str = "link-scan";
    const SUMMARY: &'static str = "Finds URIs in HTML without parsing it.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let faults = settings
            .attributes
            .iter()
            .enumerate()
            .filter(|(_, name)| name.is_empty() || !name.chars().all(is_allowed))
            .map(|(n, _)| {
                SettingsFault::new(format!("/attributes/{n}"), "not a name of an attribute")
            })
            .collect();
        let attribute = |name: String| Attribute {
            context: format!("@{name}"),
            hop: if name == "href" {
                Hop::Link
            } else {
                Hop::Embed
            },
            name,
        };
        let attributes = settings.attributes.into_iter().map(attribute).collect();
        none_or(faults, Self { attributes })
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html"])
    }
}

impl Extractor for LinkScan {
    fn extract(&self, document: &Document) -> Extraction {
        let text = document.text();
        let mut links = Vec::new();
        let mut after_space = false;
        let mut rest = text.as_str();
        while let Some(&first) = rest.as_bytes().first() {
            let found = after_space.then(|| self.attribute(rest)).flatten();
            let consumed = if let Some(attribute) = found {
                let start = attribute.name.len() + 1;
                let (value, length) = value(&rest[start..]);
                if !value.is_empty() {
                    links.push(Link::new(value, attribute.hop.clone(), &attribute.context));
                }
                start + length
            } else if let Some((uri, length)) = absolute_uri(rest) {
                if let Some(uri) = uri {
                    links.push(Link::new(uri, Hop::Speculative, "text"));
                }
                length
            } else {
                // Skips one character.
                (1..).find(|&n| rest.is_char_boundary(n)).unwrap_or(1)
            };
            after_space = match consumed {
                0 => after_space,
                1 => SPACE.contains(&char::from(first)),
                _ => rest[..consumed].ends_with(SPACE),
            };
            rest = &rest[consumed..];
        }
        Extraction::links(links)
    }
}

impl LinkScan {
    /// Returns the attribute whose name and equals sign begin the text.
    fn attribute(&self, text: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| {
            let (name, text) = (attribute.name.as_bytes(), text.as_bytes());
            text.get(name.len()) == Some(&b'=') && text[..name.len()].eq_ignore_ascii_case(name)
        })
    }
}

/// Returns the attribute value at the beginning of the text, and its length with quotes. If an opening quote has no closing
/// one, the value is empty and the length is 1.
fn value(text: &str) -> (String, usize) {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return match text[1..].find(quote) {
            Some(length) => (clean(&text[1..=length]), length + 2),
            None => (String::new(), 1),
        };
    }
    let length = text
        .find(|c| SPACE.contains(&c) || c == '>')
        .unwrap_or(text.len());
    (clean(&text[..length]), length)
}

fn clean(value: &str) -> String {
    value.trim_matches(SPACE).replace("&amp;", "&")
}

/// Returns the URI at the beginning of the text, and the length of the text up to its end. The URI is `None` if nothing follows
/// the scheme. Returns `None` if the text does not begin with a scheme.
fn absolute_uri(text: &str) -> Option<(Option<&str>, usize)> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme))?;
    let end = text
        .find(|c| SPACE.contains(&c) || matches!(c, '"' | '\'' | '<' | '>'))
        .unwrap_or(text.len());
    let remainder = text[scheme.len()..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let uri = &text[..scheme.len() + remainder.len()];
    Some(((!remainder.is_empty()).then_some(uri), end))
}

opilio_plugin::export!(extractors: [LinkScan]);
