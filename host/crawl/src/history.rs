//! What was changed in a job since it was made, by whom and when, for machines: `history.jsonl` in its directory.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A change of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Change {
    /// Counted from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who, as `job.log` has it.
    pub by: String,
    /// What kind of change.
    #[serde(flatten)]
    pub what: Changed,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Changed {
    /// Settings: the text that was added to the profile's.
    Set {
        /// TOML.
        toml: String,
    },
    /// Seeds were added.
    AddSeeds {
        /// Lines as a file of seeds has them.
        seeds: Vec<String>,
    },
}
