//! Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.

use opilio_plugin::prelude::*;

/// The plugin.
pub struct Relay;

/// The plugin has no settings.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {}

impl Plugin for Relay {
    const NAME: &'static str = "relay-rust";
    const SUMMARY: &'static str = "Reports the first line as a link and the rest as a fragment.";
    type Settings = Settings;

    fn new(_: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles::media_types(&["application/x-relay-rust"])
    }
}

impl Extractor for Relay {
    fn extract(&self, document: &Document) -> Extraction {
        let text = document.text();
        match text.as_str() {
            "fail" => panic!("relay-rust was told to fail"),
            "wrong" => drop(vec![text.as_bytes()[text.len()]]),
            _ => {}
        }
        let (line, rest) = match text.split_once('\n') {
            Some((line, rest)) => (line, Some(rest)),
            None => (text.as_str(), None),
        };
        let mut found = Extraction::links(vec![Link::new(line, Hop::Link, "relay/rust")]);
        let as_fragment = |rest| Fragment::text("application/x-relay-cpp", rest, "rest");
        found.fragments.extend(rest.map(as_fragment));
        found
    }
}

opilio_plugin::export!(extractors: [Relay]);
