//! `job.log`: what operators did, and when the crawl began, paused, went on and ended. One line each: time, who,
//! command, ` => `, what came of it.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use opilio_job::crawl_log::printable;

/// Who writes lines of the crawl's own.
const CRAWL: &str = "crawl";

/// The open log.
pub(crate) struct JobLog(Mutex<File>);

/// The log, held by one who writes.
pub(super) struct Held<'l>(MutexGuard<'l, File>);

impl JobLog {
    /// Opens it for appending.
    pub(crate) fn open(directory: &Path) -> io::Result<JobLog> {
        fs::create_dir_all(directory)?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("job.log"))?;
        Ok(JobLog(Mutex::new(file)))
    }

    /// Nobody else's lines come before the next one of whoever holds it.
    pub(super) fn hold(&self) -> Held<'_> {
        Held(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A turn in the life of the crawl. A log that cannot be written is no reason not to crawl: the crawl's own logs
    /// find that out.
    pub(crate) fn crawl(&self, what: &str, result: &str) {
        if let Err(problem) = self.hold().action(&CRAWL, &what, result) {
            tracing::error!("job.log cannot be written: {problem}");
        }
    }
}

impl Held<'_> {
    /// What somebody did, and what came of it.
    pub(super) fn action(
        &mut self,
        by: &dyn Display,
        command: &dyn Display,
        result: &str,
    ) -> io::Result<()> {
        let result = printable(result);
        let line = format!("{:.3} {by} {command} => {result}\n", Timestamp::now());
        self.0.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_line_is_a_line_whatever_is_in_it() {
        let home = tempfile::tempdir().unwrap();
        let log = JobLog::open(&home.path().join("logs")).unwrap();
        log.crawl("begin", "12 URIs\nknown");
        let mut held = log.hold();
        held.action(&"lena:7", &"pause", "pausing").unwrap();
        let text = fs::read_to_string(home.path().join("logs/job.log")).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| &line[25..]).collect();
        assert_eq!(
            lines,
            ["crawl begin => 12 URIs known", "lena:7 pause => pausing"]
        );
    }
}
