//! Where logs are written.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;

/// Where logs are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LogsFile {
    /// The folder of the logs, relative to the job's. Default `"logs"`: where operators look first.
    pub directory: String,
}

/// Where logs are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The folder of the logs, relative to the job's.
    pub directory: PathBuf,
}

impl Default for LogsFile {
    fn default() -> Self {
        Self {
            directory: "logs".to_owned(),
        }
    }
}

impl LogsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Logs {
        Logs {
            directory: part.directory("directory", &self.directory),
        }
    }
}
