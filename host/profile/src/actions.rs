//! Files that operators drop into a job's folder `action`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// Files that operators drop into a job's folder `action`: seeds, URIs, exclusions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ActionsFile {
    /// How often the folder is looked at; `"none"` for never. Default `"30s"`: as operators of Heritrix know it.
    pub interval: DurationWritten,
}

/// Files that operators drop into a job's folder `action`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// How often the folder is looked at; none: never.
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
