//! The seeds of a job: what became of each, and new ones.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A seed, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SeedReport {
    /// The URI.
    pub uri: String,
    /// Where it comes from: `job` for those that it was made with, `added` for later ones.
    pub origin: String,
    /// A version of it is archived.
    pub captured: bool,
    /// When it was last fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Timestamp>,
    /// Fetch status of its last turn; 0 before the first.
    pub status: i32,
    /// Where its last answer redirected to, as far as the job knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// URIs that were found from it and fetched with success.
    pub pages: u64,
    /// Visits with success.
    pub visits: u64,
    /// When it was last found new or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// When it is visited next, where it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}
