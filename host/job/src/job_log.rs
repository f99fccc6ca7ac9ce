//! `job.log`: the commands of operators, and the beginning, pauses, resumptions and end of the crawl. Each line has a time, an
//! author, a command, ` => ` and the result.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::crawl_log::printable;

/// Author name of lines that the crawl itself writes.
const CRAWL: &str = "crawl";

/// Open job log.
pub struct JobLog(Mutex<File>);

/// Job log, locked by one writer.
pub struct JobLogGuard<'l>(MutexGuard<'l, File>);

impl JobLog {
    /// Opens the job log for appending.
    pub fn open(directory: &Path) -> io::Result<JobLog> {
        fs::create_dir_all(directory)?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("job.log"))?;
        Ok(JobLog(Mutex::new(file)))
    }

    /// Locks the log: no other writer adds lines until the returned guard is dropped.
    pub fn lock(&self) -> JobLogGuard<'_> {
        JobLogGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a line about a change of the crawl's state. An error does not stop the crawl: a write to the other logs will fail
    /// with the same error and stop it.
    pub fn crawl(&self, what: &str, result: &str) {
        if let Err(problem) = self.lock().action(&CRAWL, &what, result) {
            tracing::error!("cannot write job.log: {problem}");
        }
    }
}

impl JobLogGuard<'_> {
    /// Writes a line with an author's command and its result.
    pub fn action(
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
    use super::*;

    #[test]
    fn line_ends_in_commands_and_results_do_not_split_a_log_line() {
        let home = tempfile::tempdir().unwrap();
        let log = JobLog::open(&home.path().join("logs")).unwrap();
        log.crawl("begin", "12 URIs\nknown");
        let mut held = log.lock();
        held.action(&"lena:7", &"pause", "pausing").unwrap();
        let text = fs::read_to_string(home.path().join("logs/job.log")).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| &line[25..]).collect();
        assert_eq!(
            lines,
            ["crawl begin => 12 URIs known", "lena:7 pause => pausing"]
        );
    }
}
