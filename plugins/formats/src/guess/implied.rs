//! The `implied` extractor: URIs that a document's URI implies, by convention or knowledge of a site.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

use super::compile;
use crate::Results;

/// One convention.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// A regular expression that must match somewhere in the document's URI.
    pub uri: String,
    /// The implied URI; `$1` or `${name}` stand for groups of the expression.
    pub implies: String,
}

/// Settings of the `implied` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Conventions; all of them are tried.
    pub rules: Vec<Rule>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: vec![Rule {
                uri: "^(https?://[^/?#]+)/?$".to_owned(),
                implies: "$1/favicon.ico".to_owned(),
            }],
        }
    }
}

/// The configured plugin.
#[derive(Clone, Debug)]
pub struct Implied {
    rules: Vec<(Regex, String)>,
}

impl Plugin for Implied {
    const NAME: &'static str = "implied";
    const SUMMARY: &'static str = "URIs implied by a document's URI, such as /favicon.ico";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let (mut rules, mut faults) = (Vec::new(), Vec::new());
        for (at, rule) in settings.rules.into_iter().enumerate() {
            match compile(&rule.uri, format!("/rules/{at}/uri")) {
                Ok(regex) => rules.push((regex, rule.implies)),
                Err(fault) => faults.push(fault),
            }
        }
        none_or(faults, Self { rules })
    }
}

impl Extractor for Implied {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() || !(200..300).contains(&document.status()) {
            return Extraction::default();
        }
        let uri = document.uri();
        let mut found = Results::default();
        for (regex, implies) in &self.rules {
            let Some(groups) = regex.captures(&uri) else {
                continue;
            };
            let mut implied = String::new();
            groups.expand(implies, &mut implied);
            if implied != uri {
                found.push(Link::new(implied, Hop::Inferred, "implied"));
            }
        }
        Extraction::links(found.links)
    }
}
