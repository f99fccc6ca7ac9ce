//! Progress of a crawl while it runs, and its summary when it ends.

use std::path::PathBuf;
use std::time::Duration;

use opilio_frontier::Statistics;

use crate::End;

use crate::alerts::Alert;
use crate::plugin_report::PluginReport;

/// A crawl at one moment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since this process began to crawl.
    pub elapsed: Duration,
    /// The frontier's counters, over all processes of the job.
    pub statistics: Statistics,
    /// Number of visits finished by this process.
    pub uris: u64,
    /// Bytes of content received by this process.
    pub bytes: u64,
    /// Plugin errors in this process.
    pub faults: u64,
    /// Outlinks that the scope left out, in this process. A link that is found often counts often.
    pub out_of_scope: u64,
    /// Alerts that the operator should know of and that are still active, the worst first.
    pub alerts: Vec<Alert>,
    /// The busiest queues of this process, the busiest first.
    pub busiest: Vec<(String, QueueTally)>,
}

/// Work that one queue has done in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Visits finished.
    pub uris: u64,
    /// Content received, in bytes.
    pub bytes: u64,
    /// Fetch status of the last visit.
    pub last_status: i32,
}

/// A crawl that has ended.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Reason for the end.
    pub end: End,
    /// Progress at the end.
    pub progress: Progress,
    /// WARC files that this process finished.
    pub warcs: Vec<PathBuf>,
    /// Directory of the job.
    pub job: PathBuf,
    /// The job's WARC directory.
    pub warc_directory: PathBuf,
    /// The job's log directory.
    pub logs: PathBuf,
    /// Every plugin with its figures.
    pub plugins: Vec<PluginReport>,
}
