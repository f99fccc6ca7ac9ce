//! The log files of a job. Lines reach the operating system before the URI is handed back to the frontier.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_sandbox::Fault;

use crate::crawl_log::LogLine;
use crate::extraction::RefusedLink;
use crate::stacks::chain;

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
            let problem = one_line(&chain(&link.problem));
            format!("{now:.3} {page} {problem} \"{reference}\"\n")
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

/// What a guest or a page says may hold line ends, which would pass for lines of ours.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_uri::Uri;

    use super::*;

    #[test]
    fn a_reference_that_is_no_uri_is_logged_with_its_reason() {
        let long = format!("http://a.org/{}", "x".repeat(70_000));
        let labels = format!("http://{}org/", "a.".repeat(10_000));
        let references = [
            "http://a..org/",
            "http://a\u{1} \nb.org/",
            "http://a.org:99999/",
            &long,
            &labels,
        ];
        let refused = references.map(|reference| RefusedLink {
            reference: reference.to_owned(),
            problem: Uri::parse(reference).unwrap_err(),
        });
        let home = tempfile::tempdir().unwrap();
        let logs = Logs::open(home.path()).unwrap();
        logs.uri_errors("http://p.org/", &refused).unwrap();
        let text = fs::read_to_string(home.path().join("uri-errors.log")).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| &line[25..]).collect();
        assert_eq!(lines.len(), references.len(), "{text}");
        assert_eq!(
            lines[0],
            r#"http://p.org/ host "a..org" cannot exist: an empty label "http://a..org/""#
        );
        assert!(
            lines[1].ends_with(r#"invalid international domain name "http://a\u{1} \nb.org/""#),
            "{}",
            lines[1]
        );
        assert!(
            lines[2].contains("is no URI: invalid port number"),
            "{}",
            lines[2]
        );
        assert!(
            lines[3].contains(" 70013 bytes, more than 65536 "),
            "{}",
            lines[3]
        );
        assert!(lines[4].contains(" bytes, more than 253 "), "{}", lines[4]);
    }
}
