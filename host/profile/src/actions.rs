//! Settings of the folder `action` of a job, into which operators put files.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// Settings of the folder `action` of a job. Operators put files with seeds, URIs and exclusions into it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ActionsFile {
    /// Interval at which the crawl reads the folder; `"none"` for never. Default `"30s"`: the same as in Heritrix.
    pub interval: DurationWritten,
}

/// Settings of the folder `action` of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// Interval at which the crawl reads the folder; `None`: never.
    pub interval: Option<Duration>,
}

impl Default for ActionsFile {
    fn default() -> Self {
        Self {
            interval: "30s".into(),
        }
    }
}

impl ActionsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Actions {
        Actions {
            interval: part.duration_limit("interval", &self.interval),
        }
    }
}
