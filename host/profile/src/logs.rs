//! Log settings: the folder of the logs, their kinds, and their rotation.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// Logs: their folder, their kinds, and their rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LogsFile {
    /// The folder of the logs, relative to the job's. Default `"logs"`: operators look there first.
    pub directory: String,

    /// Size at which a log continues in a new file; the old one gets the time after its name. Default `"none"`: each log is one
    /// file.
    pub rotate_size: SizeWritten,

    /// `true` if every log continues in a new file when a checkpoint is made, as in Heritrix. Default `false`: each log is one
    /// file.
    pub rotate_at_checkpoint: bool,

    /// `true` if `crawl.jsonl` is written besides `crawl.log`: the same lines as JSON. Default `false`: it takes twice as much
    /// space.
    pub json: bool,

    /// `true` if `crawl.log` has a thirteenth column, of JSON: the bytes received, and the place in the archive. Default `false`:
    /// it takes half as much space again, and scripts for twelve columns may fail.
    pub extra_info: bool,

    /// `true` if `scope.log` is written: the scope's decision about every link, with the reason. Default `false`: most links are
    /// found again and again, and it would soon be the largest file of the job.
    pub scope: bool,

    /// Time between two lines of `progress-statistics.log`. Default `"20s"`: the same as in Heritrix.
    pub progress_interval: DurationWritten,
}

/// Logs: their folder, their kinds, and their rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The folder of the logs, relative to the job's.
    pub directory: PathBuf,
    /// Size at which a log continues in a new file; `None`: never.
    pub rotate_size: Option<ByteSize>,
    /// `true` if every log continues in a new file when a checkpoint is made.
    pub rotate_at_checkpoint: bool,
    /// `true` if `crawl.jsonl` is written.
    pub json: bool,
    /// `true` if `crawl.log` has the thirteenth column.
    pub extra_info: bool,
    /// `true` if `scope.log` is written.
    pub scope: bool,
    /// Time between two lines of `progress-statistics.log`.
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
