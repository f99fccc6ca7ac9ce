//! Attributes and addresses of HTML, without parsing it: the extractor that every language has, for comparison.

use opilio_plugin::prelude::*;

const SPACE: [char; 5] = [' ', '\t', '\n', '\u{c}', '\r'];

/// Settings of a profile.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Attributes whose values are addresses.
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
    const SUMMARY: &'static str = "Finds addresses in HTML without parsing it.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let faults = settings
            .attributes
            .iter()
            .enumerate()
            .filter(|(_, name)| name.is_empty() || !name.chars().all(known))
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
        let mut behind_space = false;
        let mut rest = text.as_str();
        while let Some(&first) = rest.as_bytes().first() {
            let found = behind_space.then(|| self.attribute(rest)).flatten();
            let passed = if let Some(attribute) = found {
                let start = attribute.name.len() + 1;
                let (value, length) = value(&rest[start..]);
                if !value.is_empty() {
                    links.push(Link::new(value, attribute.hop.clone(), &attribute.context));
                }
                start + length
            } else if let Some((uri, length)) = address(rest) {
                if let Some(uri) = uri {
                    links.push(Link::new(uri, Hop::Speculative, "text"));
                }
                length
            } else {
                // The rest of a character is no beginning of anything.
                (1..).find(|&n| rest.is_char_boundary(n)).unwrap_or(1)
            };
            behind_space = match passed {
                0 => behind_space,
                1 => SPACE.contains(&char::from(first)),
                _ => rest[..passed].ends_with(SPACE),
            };
            rest = &rest[passed..];
        }
        Extraction::links(links)
    }
}

impl LinkScan {
    /// The attribute whose name and equals sign the text begins with.
    fn attribute(&self, text: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| {
            let (name, text) = (attribute.name.as_bytes(), text.as_bytes());
            text.get(name.len()) == Some(&b'=') && text[..name.len()].eq_ignore_ascii_case(name)
        })
    }
}

/// The value that the text begins with, and how much of the text it is, its mark included; of a mark without a second
/// one, the mark alone.
fn value(text: &str) -> (String, usize) {
    if let Some(mark) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return match text[1..].find(mark) {
            Some(length) => (cleaned(&text[1..=length]), length + 2),
            None => (String::new(), 1),
        };
    }
    let length = text
        .find(|c| SPACE.contains(&c) || c == '>')
        .unwrap_or(text.len());
    (cleaned(&text[..length]), length)
}

fn cleaned(value: &str) -> String {
    value.trim_matches(SPACE).replace("&amp;", "&")
}

/// The address that the text begins with, if anything stands behind the scheme, and how much of the text it takes.
fn address(text: &str) -> Option<(Option<&str>, usize)> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme))?;
    let end = text
        .find(|c| SPACE.contains(&c) || matches!(c, '"' | '\'' | '<' | '>'))
        .unwrap_or(text.len());
    let behind = text[scheme.len()..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let uri = &text[..scheme.len() + behind.len()];
    Some(((!behind.is_empty()).then_some(uri), end))
}

opilio_plugin::export!(extractors: [LinkScan]);
