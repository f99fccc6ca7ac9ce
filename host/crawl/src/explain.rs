//! What a profile or a job makes of one URI: every setting, and the answer of every filter that is asked before it is
//! fetched.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a profile or a job makes of a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedUri {
    /// The URI as normalised.
    pub uri: String,
    /// What it counts as.
    pub canonical: String,
    /// The queue that it stands in.
    pub queue: String,
    /// The rest of that queue after a fetch that took a second, in seconds.
    pub rest_s: f64,
    /// It belongs to the crawl.
    pub in_scope: bool,
    /// What the filters of the scope answer, in the order asked.
    pub scope: Vec<FilterAnswer>,
    /// It is fetched when its turn has come.
    pub fetched: bool,
    /// What the filters before a fetch answer, in the order asked.
    pub pre_fetch: Vec<FilterAnswer>,
    /// Every setting that holds for it.
    pub settings: Vec<ExplainedSetting>,
}

/// What a filter answers about a URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FilterAnswer {
    /// Its name in the profile.
    pub filter: String,
    /// `accept`, `reject`, `pass`; `failed` where it could not be asked, `not-asked` where it does not handle such URIs or
    /// its own filters keep it from seeing this one.
    pub answer: String,
    /// Why; may be empty.
    pub reason: String,
    /// Its answer is the one that holds.
    pub decides: bool,
}

/// A setting that holds for a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedSetting {
    /// Its name with its tables.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The value as TOML writes it.
    pub toml: String,
    /// The file that says so; none: its default.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<usize>,
}
