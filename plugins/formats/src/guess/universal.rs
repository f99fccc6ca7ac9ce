//! The `universal` extractor: URIs in any bytes, for documents that no other extractor recognises.

use opilio_plugin::prelude::*;

use crate::{Results, reference};

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
        let mut found = Results::default();
        for uri in reference::uris_in(&ascii(&bytes)) {
            found.push(Link::new(uri, Hop::Speculative, "universal"));
        }
        // Programs and old office documents contain UTF-16: every second byte of ASCII text is zero.
        if memchr::memmem::find(&bytes, b":\0/\0/\0").is_some() {
            for uri in reference::uris_in(&utf_16(&bytes)) {
                found.push(Link::new(uri, Hop::Speculative, "universal/utf-16"));
            }
        }
        Extraction::links(found.links)
    }
}

/// Returns the bytes as text. All bytes except printable ASCII become blanks, which end a URI.
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

/// Returns ASCII text in UTF-16 (little-endian) that begins at any offset. All other bytes become blanks.
fn utf_16(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = match after {
            [0, after @ ..] if first.is_ascii_graphic() => {
                text.push(char::from(*first));
                after
            }
            _ => {
                text.push(' ');
                after
            }
        };
    }
    text
}
