//! `process.json` in a job's directory: the state of the job's last process, for programs that list many jobs without opening
//! them.
//!
//! The file is written when a process begins, at growing intervals of up to half a minute, and when the process ends. A killed
//! process leaves it without an end, which marks the crash.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::End;
use crate::ledger::Totals;
use crate::text_file::write_text;

/// The file, in the job's directory.
pub const FILE: &str = "process.json";

/// Progress of the last process of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProcessRecord {
    /// Time at which the first process of the job started.
    pub first_began: Timestamp,
    /// Time at which the last process started.
    pub began: Timestamp,
    /// Process id.
    pub pid: u32,
    /// Time at which this was written.
    pub at: Timestamp,
    /// Statistics over all processes of the job.
    pub statistics: Statistics,
    /// Totals of the ledger over all processes of the job. They include visits after the checkpoints to which the job was reset.
    #[serde(default)]
    pub totals: Totals,
    /// Crawl time after the checkpoints to which the job was reset. `statistics` does not include it; logs and archive do.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub undone: Duration,
    /// End of the process; not set if the process is running or was killed.
    pub ended: Option<ProcessEnd>,
}

/// End of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessEnd {
    /// Time of the end.
    pub at: Timestamp,
    /// Kind of the end.
    pub how: ProcessEndKind,
    /// Reason, as a sentence.
    pub why: String,
}

/// Kind of the end of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessEndKind {
    /// Finished: no URIs left, or a limit of the profile reached.
    Finished,
    /// Stopped by an operator.
    Stopped,
    /// Terminated by the system, for example at a shutdown of the machine, without a request by an operator.
    Terminated,
    /// Stopped because of an error.
    Halted,
}

impl ProcessRecord {
    /// Reads the file of the job in this directory; `None` if no process of the job has begun.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn read(job: &Path) -> io::Result<Option<ProcessRecord>> {
        match fs::read(job.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Writes the file when a process begins.
    pub fn begin(job: &Path, statistics: Statistics) -> io::Result<ProcessRecord> {
        let at = Timestamp::now();
        // An unreadable file does not prevent the crawl.
        let before = ProcessRecord::read(job).ok().flatten();
        let process_record = ProcessRecord {
            first_began: before.as_ref().map_or(at, |before| before.first_began),
            began: at,
            pid: std::process::id(),
            at,
            statistics,
            // The ledger is opened later.
            totals: before
                .as_ref()
                .map(|before| before.totals)
                .unwrap_or_default(),
            undone: before.map_or(Duration::ZERO, |before| before.undone),
            ended: None,
        };
        process_record.write(job)?;
        Ok(process_record)
    }

    /// Updates the file while the process runs.
    pub fn update(&mut self, job: &Path, statistics: Statistics, totals: Totals) -> io::Result<()> {
        self.at = Timestamp::now();
        self.statistics = statistics;
        self.totals = totals;
        self.write(job)
    }

    /// Updates the file when the process has ended.
    pub fn end(
        &mut self,
        job: &Path,
        statistics: Statistics,
        totals: Totals,
        end: &End,
    ) -> io::Result<()> {
        self.ended = Some(ProcessEnd {
            at: Timestamp::now(),
            how: ProcessEndKind::of(end),
            why: end.to_string(),
        });
        self.update(job, statistics, totals)
    }

    /// Records that the job was reset to an earlier state and that no process runs it. The file is written into `beside`, unless
    /// no process of the job ever began.
    pub fn record_reset(
        job: &Path,
        beside: &Path,
        statistics: Statistics,
        why: String,
    ) -> io::Result<()> {
        let at = Timestamp::now();
        // An unreadable file does not prevent the reset.
        let Some(process_record) = ProcessRecord::read(job).ok().flatten() else {
            return Ok(());
        };
        let ended = Some(ProcessEnd {
            at,
            how: ProcessEndKind::Stopped,
            why,
        });
        let (ran, then) = (process_record.statistics.run_time, statistics.run_time);
        let process_record = ProcessRecord {
            at,
            statistics,
            undone: process_record.undone + ran.saturating_sub(then),
            ended,
            ..process_record
        };
        process_record.write(beside)
    }

    fn write(&self, job: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_text(&job.join(FILE), text)
    }
}

impl ProcessEndKind {
    /// Returns the kind of an end.
    pub(crate) fn of(end: &End) -> ProcessEndKind {
        match end {
            End::Stopped => ProcessEndKind::Stopped,
            End::Terminated => ProcessEndKind::Terminated,
            End::Halted(_) => ProcessEndKind::Halted,
            End::Finished
            | End::NoSeedFetched(_)
            | End::DocumentLimit
            | End::ByteLimit
            | End::Quota(_)
            | End::ArchiveLimit
            | End::TimeLimit => ProcessEndKind::Finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_killed_process_has_no_end() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(ProcessRecord::read(home.path()).unwrap(), None);
        let first = ProcessRecord::begin(home.path(), Statistics::default()).unwrap();
        assert_eq!(
            ProcessRecord::read(home.path()).unwrap().unwrap().ended,
            None
        );

        let mut second = ProcessRecord::begin(home.path(), Statistics::default()).unwrap();
        assert_eq!(second.first_began, first.first_began);
        let end = End::Halted("the disk is full".to_owned());
        let totals = Totals {
            no_response: 3,
            ..Totals::default()
        };
        second
            .end(home.path(), Statistics::default(), totals, &end)
            .unwrap();
        let ended = ProcessRecord::read(home.path())
            .unwrap()
            .unwrap()
            .ended
            .unwrap();
        assert_eq!(ended.how, ProcessEndKind::Halted);
        assert_eq!(ended.why, "halted: the disk is full");
        // A new process keeps the totals until it has read the log.
        let third = ProcessRecord::begin(home.path(), Statistics::default()).unwrap();
        assert_eq!((third.totals, third.ended), (totals, None));
    }
}
