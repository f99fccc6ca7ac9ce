//! What a crawl shows of itself while it runs, and what it says when it ends.

use std::path::PathBuf;
use std::time::Duration;

use opilio_frontier::Statistics;

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

/// Why a crawl ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to fetch.
    Finished,
    /// It was asked to stop.
    Stopped,
    /// The system asked it to end, as it does before the machine goes down.
    Terminated,
    /// The profile's limit on documents was reached.
    DocumentLimit,
    /// The profile's limit on bytes was reached.
    ByteLimit,
    /// A quota of the whole crawl was reached, by its name in the profile.
    Quota(&'static str),
    /// The archive's files have reached the size that the profile allows them.
    ArchiveLimit,
    /// The profile's limit on time was reached.
    TimeLimit,
    /// It cannot go on: why, and the remedy.
    Halted(String),
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

impl End {
    /// A limit of the profile was reached: there may be more to fetch.
    pub fn is_limit(&self) -> bool {
        match self {
            End::DocumentLimit
            | End::ByteLimit
            | End::Quota(_)
            | End::ArchiveLimit
            | End::TimeLimit => true,
            End::Finished | End::Stopped | End::Terminated | End::Halted(_) => false,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Finished => "finished: nothing is left to fetch",
            End::Stopped => "stopped; the same command goes on from here",
            End::Terminated => "ended by the system; the same command goes on from here",
            End::DocumentLimit => "limit of documents reached; the same command goes on from here",
            End::ByteLimit => "limit of bytes reached; the same command goes on from here",
            End::Quota(which) => {
                return write!(f, "quota of the crawl reached: {which}; raised, the same command goes on from here");
            }
            End::ArchiveLimit => {
                "the archive has the size that archive.max-total-bytes allows; raised, the same command goes on from here"
            }
            End::TimeLimit => "limit of time reached; the same command goes on from here",
            End::Halted(why) => return write!(f, "halted: {why}"),
        })
    }
}
