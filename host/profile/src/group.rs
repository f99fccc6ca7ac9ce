//! What a server group allows its queues together.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// What each server group allows its queues together; `queue.group` says which queues form one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GroupFile {
    /// How many URIs of the group are fetched at the same time. Default `1`: one server, one visitor.
    #[schemars(range(min = 1, max = 1000))]
    pub valence: u32,

    /// The least a group rests between the end of a fetch and the next, beside what each queue rests. Default `"0s"`: the
    /// queues' own politeness holds.
    pub min_delay: DurationWritten,
}

/// What each server group allows its queues together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Fetches at the same time; 1 to 1,000.
    pub valence: u32,
    /// The least it rests.
    pub min_delay: Duration,
}

impl Default for GroupFile {
    fn default() -> Self {
        Self {
            valence: 1,
            min_delay: "0s".into(),
        }
    }
}

impl GroupFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Group {
        Group {
            valence: self.valence,
            min_delay: part.duration("min-delay", &self.min_delay),
        }
    }
}
