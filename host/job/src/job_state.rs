//! The states of a job, and their names in commands, the API, the console, events and metrics.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::End;
use crate::process_record::{ProcessEndKind, ProcessRecord};

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Created and never started.
    New,
    /// Waits to be started: for a free place, for its crawl window, or for the next attempt.
    Waiting,
    /// Its process is starting or about to end.
    Starting,
    /// Crawling.
    Running,
    /// Starts no new fetches, and waits for fetches in flight.
    Pausing,
    /// Paused; no fetches in flight.
    Paused,
    /// Stop requested; waits for fetches in flight.
    Ending,
    /// Stopped by an operator.
    Stopped,
    /// Finished: no URIs left, or a limit of the profile reached.
    Finished,
    /// Stopped because of an error.
    Failed,
    /// The process of the crawl died.
    Crashed,
    /// The directory of the job cannot be read.
    Damaged,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [JobState; 12] = [
        JobState::New,
        JobState::Waiting,
        JobState::Starting,
        JobState::Running,
        JobState::Pausing,
        JobState::Paused,
        JobState::Ending,
        JobState::Stopped,
        JobState::Finished,
        JobState::Failed,
        JobState::Crashed,
        JobState::Damaged,
    ];

    /// Returns the state's name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            JobState::New => "new",
            JobState::Waiting => "waiting",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Pausing => "pausing",
            JobState::Paused => "paused",
            JobState::Ending => "ending",
            JobState::Stopped => "stopped",
            JobState::Finished => "finished",
            JobState::Failed => "failed",
            JobState::Crashed => "crashed",
            JobState::Damaged => "damaged",
        }
    }

    /// Returns the state of a job without a running process, from the record of its last process. Jobs that wait to be started are
    /// not recognised here: only the daemon's folder of jobs has this information.
    pub fn without_process(last: Option<&ProcessRecord>) -> JobState {
        match last {
            None => JobState::New,
            Some(last) => match &last.ended {
                None => JobState::Crashed,
                Some(ended) => JobState::from(ended.how),
            },
        }
    }

    /// Describes the state with its reason, which may begin with the state's name.
    pub fn with_reason(self, reason: Option<&str>) -> String {
        match (self.name(), reason) {
            (name, None) => name.to_owned(),
            (name, Some(reason)) if reason.starts_with(name) => reason.to_owned(),
            (name, Some(reason)) => format!("{name}: {reason}"),
        }
    }

    /// Returns the state of a job whose crawl has ended.
    pub fn after(end: &End) -> JobState {
        JobState::from(ProcessEndKind::of(end))
    }
}

impl From<ProcessEndKind> for JobState {
    fn from(end: ProcessEndKind) -> JobState {
        match end {
            ProcessEndKind::Finished => JobState::Finished,
            ProcessEndKind::Stopped | ProcessEndKind::Terminated => JobState::Stopped,
            ProcessEndKind::Halted => JobState::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use opilio_frontier::Statistics;

    use super::*;
    use crate::ledger::Totals;

    #[test]
    fn json_uses_the_name_of_each_state() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        assert!(JobState::ALL.is_sorted());
    }

    #[test]
    fn the_reason_follows_the_state_without_repeating_its_name() {
        let check = |state: JobState, reason, expected: &str| {
            assert_eq!(state.with_reason(reason), expected);
        };
        check(JobState::New, None, "new");
        let finished = "finished: no URIs left";
        check(JobState::Finished, Some(finished), finished);
        check(
            JobState::Failed,
            Some("halted: the disk is full"),
            "failed: halted: the disk is full",
        );
    }

    #[test]
    fn a_job_without_a_process_has_the_state_in_which_its_last_process_ended() {
        let home = tempfile::tempdir().unwrap();
        let state = || {
            let last = ProcessRecord::read(home.path()).unwrap();
            JobState::without_process(last.as_ref())
        };
        assert_eq!(state(), JobState::New);
        for (end, expected) in [
            (End::Finished, JobState::Finished),
            (End::TimeLimit, JobState::Finished),
            (End::Stopped, JobState::Stopped),
            (End::Terminated, JobState::Stopped),
            (End::Halted("full".to_owned()), JobState::Failed),
        ] {
            let mut process = ProcessRecord::begin(home.path(), Statistics::default()).unwrap();
            assert_eq!(state(), JobState::Crashed);
            process
                .end(home.path(), Statistics::default(), Totals::default(), &end)
                .unwrap();
            assert_eq!(state(), expected, "{end}");
            assert_eq!(JobState::after(&end), expected, "{end}");
        }
    }
}
