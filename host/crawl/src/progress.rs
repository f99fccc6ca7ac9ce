//! What a crawl shows of itself while it runs, and what it says when it ends.

use std::path::PathBuf;
use std::time::Duration;

use opilio_frontier::Statistics;

use opilio_job::End;

use crate::alerts::Alert;
use crate::plugin_report::PluginReport;

/// A crawl at one moment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Since this process began to crawl.
    pub elapsed: Duration,
    /// The frontier's counters, over all processes of the job.
    pub statistics: Statistics,
    /// URIs finished by this process.
    pub uris: u64,
    /// Content received by this process, in bytes.
    pub bytes: u64,
    /// Faults of plugins in this process.
    pub faults: u64,
    /// Found links that the scope left out, in this process; a page found often counts often.
    pub out_of_scope: u64,
    /// What the operator should know: alerts that hold, the worst first.
    pub alerts: Vec<Alert>,
    /// The busiest queues of this process, the busiest first.
    pub busiest: Vec<(String, QueueTally)>,
}

/// What one queue has done in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Turns finished.
    pub uris: u64,
    /// Content received, in bytes.
    pub bytes: u64,
    /// Fetch status of the last turn.
    pub last_status: i32,
}

/// A crawl that has ended.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Why.
    pub end: End,
    /// The last state.
    pub progress: Progress,
    /// WARC files that this process finished.
    pub warcs: Vec<PathBuf>,
    /// The job's directory.
    pub job: PathBuf,
    /// The job's WARC directory.
    pub warc_directory: PathBuf,
    /// The job's log directory.
    pub logs: PathBuf,
    /// Every plugin with what was seen of it.
    pub plugins: Vec<PluginReport>,
}
