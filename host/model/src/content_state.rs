//! The content state of a document: new, changed, unchanged or unknown, against the last archived version.

use serde::{Deserialize, Serialize};

/// State of the content against the last archived version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentState {
    /// First visit.
    New,
    /// Differs from the last archived version.
    Changed,
    /// The same, by digest, change evaluator or a 304 of the server.
    Unchanged,
    /// There is nothing to compare with.
    #[default]
    Unknown,
}

impl ContentState {
    /// Returns `true` if the visit found a new version.
    #[must_use]
    pub fn is_version(self) -> bool {
        matches!(self, Self::New | Self::Changed)
    }

    /// The name in exports, reports and cases of plugins.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Unknown => "unknown",
        }
    }
}
