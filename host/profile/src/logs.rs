//! Where logs are written, which, and when they go on in a new file.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// Where logs are written, which, and when they go on in a new file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LogsFile {
    /// The folder of the logs, relative to the job's. Default `"logs"`: where operators look first.
    pub directory: String,

    /// A log that would grow larger goes on in a new file; the old one gets the time behind its name.
    /// Default `"none"`: whoever reads a log finds all of it in one file.
    pub rotate_size: SizeWritten,

    /// Every log goes on in a new file when a checkpoint is made, as the predecessor does it. Default `false`: whoever
    /// reads a log finds all of it in one file.
    pub rotate_at_checkpoint: bool,

    /// Write `crawl.jsonl` beside `crawl.log`: the same lines as JSON. Default `false`: it takes twice as much room.
    pub json: bool,

    /// A thirteenth column in `crawl.log`, of JSON: how much came, and where it was archived. Default `false`: it takes half
    /// as much room again, and scripts that were made for twelve columns may stumble.
    pub extra_info: bool,

    /// Write `scope.log`: what the scope has made of every link, and why. Default `false`: most links are found again and
    /// again, and the log would soon be the largest file of the job.
    pub scope: bool,

    /// Between two lines of `progress-statistics.log`. Default `"20s"`: as the predecessor has it.
    pub progress_interval: DurationWritten,
}

/// Where logs are written, which, and when they go on in a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The folder of the logs, relative to the job's.
    pub directory: PathBuf,
    /// A log that would grow larger goes on in a new file; none: it grows.
    pub rotate_size: Option<ByteSize>,
    /// Every log goes on in a new file when a checkpoint is made.
    pub rotate_at_checkpoint: bool,
    /// Write `crawl.jsonl`.
    pub json: bool,
    /// Write the thirteenth column of `crawl.log`.
    pub extra_info: bool,
    /// Write `scope.log`.
    pub scope: bool,
    /// Between two lines of `progress-statistics.log`.
    pub progress_interval: Duration,
}

impl Default for LogsFile {
    fn default() -> Self {
        Self {
            directory: "logs".to_owned(),
            rotate_size: "none".into(),
            rotate_at_checkpoint: false,
            json: false,
            extra_info: false,
            scope: false,
            progress_interval: "20s".into(),
        }
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            directory: "logs".into(),
            rotate_size: None,
            rotate_at_checkpoint: false,
            json: false,
            extra_info: false,
            scope: false,
            progress_interval: Duration::from_secs(20),
        }
    }
}

impl LogsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Logs {
        Logs {
            directory: part.directory("directory", &self.directory),
            rotate_size: part.size_limit("rotate-size", &self.rotate_size),
            rotate_at_checkpoint: self.rotate_at_checkpoint,
            json: self.json,
            extra_info: self.extra_info,
            scope: self.scope,
            progress_interval: part.positive_duration("progress-interval", &self.progress_interval),
        }
    }
}
