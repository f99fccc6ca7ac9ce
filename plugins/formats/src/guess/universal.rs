//! The `universal` extractor: URIs in any bytes. A last resort for documents that no other extractor understands.

use opilio_plugin::prelude::*;

use crate::{Found, reference};

/// Settings of the `universal` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Number of bytes of a document to search.
    #[schemars(range(min = 1, max = 16_777_216))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub size_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            size_max: 1024 * 1024,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Universal {
    settings: Settings,
}

impl Plugin for Universal {
    const NAME: &'static str = "universal";
    const SUMMARY: &'static str = "URIs in any bytes";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Extractor for Universal {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() || crate::is_recognised(document) {
            return Extraction::default();
        }
        let bytes = document.read(0, self.settings.size_max);
        let mut found = Found::default();
        for address in reference::addresses(&ascii(&bytes)) {
            found.push(Link::new(address, Hop::Speculative, "universal"));
        }
        // In programs and old office documents every second byte is zero.
        if memchr::memmem::find(&bytes, b":\0/\0/\0").is_some() {
            for address in reference::addresses(&wide(&bytes)) {
                found.push(Link::new(address, Hop::Speculative, "universal/utf-16"));
            }
        }
        Extraction::links(found.links)
    }
}

/// Replaces everything but printable ASCII by blanks, which end a URI.
fn ascii(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| {
            if byte.is_ascii_graphic() {
                char::from(byte)
            } else {
                ' '
            }
        })
        .collect()
}

/// The same for text with a zero byte after each character, at any offset.
fn wide(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        rest = match behind {
            [0, behind @ ..] if first.is_ascii_graphic() => {
                text.push(char::from(*first));
                behind
            }
            _ => {
                text.push(' ');
                behind
            }
        };
    }
    text
}
