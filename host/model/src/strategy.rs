//! The strategy of a document: one visit, or visits again and again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments are descriptions in the JSON Schema of profiles.
/// Whether documents are fetched once or again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Each document once; the crawl ends when none is left.
    #[default]
    Snapshot,
    /// Each document again and again, with waits from wait evaluators; the crawl ends when an operator ends it.
    Revisit,
    /// Each document again every `revisit.fixed-wait`, whatever wait evaluators answer; the crawl ends when an operator ends it.
    Fixed,
}

impl Strategy {
    /// Returns `true` if the URI is visited more than once. After failures it is then probed, soon at first and later less often.
    #[must_use]
    pub fn revisits(self) -> bool {
        self != Self::Snapshot
    }

    /// The name in profiles and exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Revisit => "revisit",
            Self::Fixed => "fixed",
        }
    }
}
