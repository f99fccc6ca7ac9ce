//! Periodic checkpoints of a running crawl.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// Checkpoints that a running crawl makes by itself, in the job's folder `checkpoints`. Checkpoints made by operators are kept
/// until an operator removes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CheckpointFile {
    /// Interval between two checkpoints of a running crawl; `"none"` for never. No checkpoint is made while nothing is
    /// finished. Default `"none"`: a crash loses nothing without a checkpoint, and each is a copy of the frontier.
    pub every: DurationWritten,

    /// Number of these checkpoints that are kept; older ones are removed. Default `2`: the latest, and one more if the latest
    /// was made too late.
    #[schemars(range(min = 1, max = 1000))]
    pub keep: u32,

    /// Interval at which each node of a shared crawl publishes a checkpoint of its part in `archive.store`, so that another node can
    /// take the part over; `"none"` for never. Parts can be taken over only if this is set when the crawl is created.
    /// Default `"none"`: each is a copy of the frontier, and closes all archive files.
    pub publish_every: DurationWritten,
}

/// Checkpoints that a running crawl makes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodicCheckpoints {
    /// Interval between two checkpoints; `None`: never.
    pub every: Option<Duration>,
    /// Number of checkpoints that are kept; at least 1.
    pub keep: usize,
    /// Interval at which a part of a shared crawl is published; `None`: never.
    pub publish_every: Option<Duration>,
}

impl Default for CheckpointFile {
    fn default() -> Self {
        Self {
            every: "none".into(),
            keep: 2,
            publish_every: "none".into(),
        }
    }
}

impl CheckpointFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> PeriodicCheckpoints {
        PeriodicCheckpoints {
            every: part.duration_limit("every", &self.every),
            keep: self.keep.max(1) as usize,
            publish_every: part.duration_limit("publish-every", &self.publish_every),
        }
    }
}
