//! Settings of server groups: the limits that queues share.

use opilio_model::GroupSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// Limits of each server group for its queues together. `queue.group` decides which queues form a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GroupFile {
    /// URIs of the group that are fetched at the same time. Default `1`: one server gets one request at a time.
    #[schemars(range(min = 1, max = 1000))]
    pub valence: u32,

    /// Shortest delay of a group between the end of a fetch and the start of the next, in addition to the delays of its queues.
    /// Default `"0s"`: the politeness delays of the queues are enough.
    pub min_delay: DurationWritten,
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
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> GroupSettings {
        GroupSettings {
            valence: u16::try_from(self.valence).unwrap_or(u16::MAX),
            min_delay: part.duration("min-delay", &self.min_delay),
        }
    }
}
