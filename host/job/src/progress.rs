//! Progress of a crawl while it runs, and its summary when it ends.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::Statistics;
use serde::Serialize;

use crate::End;

use crate::alerts::Alert;
use crate::job_state::JobState;
use crate::ledger::VisitCounts;
use crate::plugin_report::PluginReport;
use crate::queue_tally::QueueTally;
use crate::seed_outcome::SeedOutcomes;

/// A crawl at one moment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since this process began to crawl.
    pub elapsed: Duration,
    /// State of the crawl: running, pausing, paused or ending.
    pub state: JobState,
    /// The frontier's counters, over all processes of the job.
    pub statistics: Statistics,
    /// Finished visits by outcome, over all processes of the job.
    pub visits: VisitCounts,
    /// Number of visits finished by this process.
    pub uris: u64,
    /// Bytes of content received by this process.
    pub bytes: u64,
    /// Plugin errors in this process.
    pub faults: u64,
    /// Outlinks that the scope rejected in this process. A link that is found several times counts each time.
    pub out_of_scope: u64,
    /// Active alerts that the operator should see, the most severe first.
    pub alerts: Vec<Alert>,
    /// The busiest queues of this process, the busiest first.
    pub busiest: Vec<(String, QueueTally)>,
    /// Number of queues that back off after failures, at the last count.
    pub failing: u64,
    /// One of these queues, with its tally.
    pub failing_queue: Option<(String, QueueTally)>,
    /// Time before which no URI is due.
    pub waits_until: Option<Timestamp>,
}

/// A crawl that has ended.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Reason for the end.
    pub end: End,
    /// Outcomes of the seeds; `None` if the system terminated the process, since counting them takes time.
    pub seeds: Option<SeedOutcomes>,
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
    /// Files that were handed over, for each receiver.
    pub handovers: Vec<HandoverTotals>,
}

impl Summary {
    /// Returns a description of the end, with the files that were not handed over.
    pub fn outcome(&self) -> String {
        let left = self.handovers.iter().filter_map(HandoverTotals::leftover);
        let parts: Vec<String> = [self.end.to_string()].into_iter().chain(left).collect();
        parts.join("; ")
    }
}

/// Files that a process has handed over to a store or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandoverTotals {
    /// URL of the store, or `on-close` for the command.
    pub to: String,
    /// Number of files that this process has handed over.
    pub files: u64,
    /// Number of files that were not handed over yet.
    pub left: u64,
    /// Last failure, if files are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl HandoverTotals {
    /// Returns a message about the files that were not handed over, with the command for them; `None` if all were handed over.
    pub fn leftover(&self) -> Option<String> {
        let files = match self.left {
            0 => return None,
            1 => "1 file was".to_owned(),
            left => format!("{left} files were"),
        };
        let to = &self.to;
        let cause = self.problem.as_ref();
        let cause = cause.map_or_else(String::new, |problem| format!(" ({problem})"));
        Some(format!(
            "{files} not handed over to {to}{cause}; `opilio job handover JOB` does so"
        ))
    }
}
