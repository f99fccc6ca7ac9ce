//! Stages of a visit at which plugins are called.

use std::fmt;

/// A stage of a URI's visit at which plugins are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Filters that decide whether a URI belongs to the crawl.
    Scope,
    /// Precedence plugins, which rank URIs and queues.
    Precedence,
    /// Filters that decide whether a URI may be fetched now.
    PreFetch,
    /// Filters that decide by the headers whether the body is fetched.
    MidFetch,
    /// Filters that judge the complete response.
    PostFetch,
    /// Filters that decide whether a page is rendered.
    Render,
    /// Digest strippers.
    Digest,
    /// Change evaluators.
    Change,
    /// Filters that decide whether links are extracted.
    PreExtract,
    /// Extractors.
    Extract,
    /// Filters that decide whether the document is archived.
    Archive,
    /// Page behaviours.
    Behave,
    /// Wait evaluators.
    Wait,
    /// Observers.
    Observe,
}

impl Stage {
    /// All stages, in the order of a visit.
    pub const ALL: [Self; 14] = [
        Self::Scope,
        Self::Precedence,
        Self::PreFetch,
        Self::MidFetch,
        Self::PostFetch,
        Self::Render,
        Self::Digest,
        Self::Change,
        Self::PreExtract,
        Self::Extract,
        Self::Archive,
        Self::Behave,
        Self::Wait,
        Self::Observe,
    ];

    /// Its key in the profile.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Precedence => "precedence",
            Self::PreFetch => "pre-fetch",
            Self::MidFetch => "mid-fetch",
            Self::PostFetch => "post-fetch",
            Self::Render => "render",
            Self::Digest => "digest",
            Self::Change => "change",
            Self::PreExtract => "pre-extract",
            Self::Extract => "extract",
            Self::Archive => "archive",
            Self::Behave => "behave",
            Self::Wait => "wait",
            Self::Observe => "observe",
        }
    }

    /// Returns `true` if the stage is for filters.
    pub const fn is_for_filters(self) -> bool {
        matches!(
            self,
            Self::Scope
                | Self::PreFetch
                | Self::MidFetch
                | Self::PostFetch
                | Self::Render
                | Self::PreExtract
                | Self::Archive
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
