//! The log files of a job. Lines reach the operating system before the URI is handed back to the frontier.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_sandbox::Fault;

use crate::crawl_log::LogLine;
use crate::extraction::RefusedLink;

/// The open logs of a job.
pub(crate) struct Logs {
    crawl: Log,
    uri_errors: Log,
    runtime_errors: Log,
    nonfatal_errors: Log,
}

impl Logs {
    /// Opens every log for appending.
    pub(crate) fn open(directory: &Path) -> io::Result<Logs> {
        fs::create_dir_all(directory)?;
        Ok(Logs {
            crawl: Log::open(directory, "crawl.log")?,
            uri_errors: Log::open(directory, "uri-errors.log")?,
            runtime_errors: Log::open(directory, "runtime-errors.log")?,
            nonfatal_errors: Log::open(directory, "nonfatal-errors.log")?,
        })
    }

    /// A finished URI.
    pub(crate) fn crawl(&self, line: &LogLine) -> io::Result<()> {
        self.crawl.write(&format!("{line}\n"))
    }

    /// An attempt that will be tried again.
    pub(crate) fn nonfatal(&self, line: &LogLine, attempts: u32) -> io::Result<()> {
        self.nonfatal_errors
            .write(&format!("{line} attempt:{attempts}\n"))
    }

    /// References on a page that are no URI: time, page, problem, reference.
    pub(crate) fn uri_errors(&self, page: &str, refused: &[RefusedLink]) -> io::Result<()> {
        if refused.is_empty() {
            return Ok(());
        }
        let now = Timestamp::now();
        let lines = refused.iter().map(|link| {
            let reference: String = link
                .reference
                .chars()
                .take(500)
                .flat_map(char::escape_default)
                .collect();
            format!("{now:.3} {page} {} {reference:?}\n", link.problem)
        });
        self.uri_errors.write(&lines.collect::<String>())
    }

    /// A URI that the frontier cannot hold: time, page, problem, URI.
    pub(crate) fn uri_error(
        &self,
        page: &str,
        uri: &str,
        problem: &dyn std::fmt::Display,
    ) -> io::Result<()> {
        self.uri_errors.write(&format!(
            "{:.3} {page} {problem} {uri:?}\n",
            Timestamp::now()
        ))
    }

    /// A plugin's fault: what, where, the guest's frames and what it had to say.
    pub(crate) fn fault(&self, fault: &Fault) -> io::Result<()> {
        // What a guest says may hold line ends, which would pass for lines of ours.
        let one_line = |text: &str| text.replace(['\n', '\r'], " ");
        let mut text = format!(
            "{:.3} {} {} {}: {}\n",
            Timestamp::now(),
            fault.plugin,
            fault.kind,
            fault.uri,
            one_line(&fault.message)
        );
        for frame in &fault.backtrace {
            text.push_str(&format!("    at {frame}\n"));
        }
        for line in &fault.log {
            text.push_str(&format!("    said {}\n", one_line(&line.to_string())));
        }
        self.runtime_errors.write(&text)
    }
}

struct Log(Mutex<File>);

impl Log {
    fn open(directory: &Path, name: &str) -> io::Result<Log> {
        Ok(Log(Mutex::new(
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(directory.join(name))?,
        )))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(text.as_bytes())
    }
}
