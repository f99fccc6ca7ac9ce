//! The log files of a job. Lines reach the operating system before the URI is returned to the frontier.
//!
//! A log that reaches the size limit of the profile, or that the operator rotates, continues in a new file of the same name. The
//! time is appended to the name of the old file (`crawl.log.20261120123456789`), so that names sort by age.

pub mod filter;
pub mod read;
pub mod search;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use opilio_sandbox::Fault;

use crate::crawl_log::{CrawlLogLine, column, printable, timestamp17};
use crate::ledger::Ledger;
pub use crate::log_files::{CRAWL, rotated};
use opilio_stacks::chain;
use opilio_visit::extraction::RefusedLink;

/// The open logs of a job.
pub struct JobLogs {
    crawl: Log,
    crawl_json: Option<Log>,
    uri_errors: Log,
    runtime_errors: Log,
    nonfatal_errors: Log,
    alerts: Log,
    progress: Log,
    scope: Option<Log>,
    ledger: Arc<Ledger>,
    /// Number of plugin errors of each kind, by a hash of the kind.
    fault_kinds: Mutex<HashMap<u64, u64>>,
}

/// Maximum of kinds of plugin errors that are counted at the same time. Beyond it, all counts start from zero.
const FAULT_KINDS_MAX: usize = 1_000;

impl JobLogs {
    /// Opens every log for appending. The ledger counts the lines of `crawl.log`.
    pub fn open(
        directory: &Path,
        settings: &opilio_profile::Logs,
        ledger: Arc<Ledger>,
    ) -> io::Result<JobLogs> {
        fs::create_dir_all(directory)?;
        let max = settings.rotate_size.map(|size| size.bytes());
        let open = |name| Log::open(directory, name, max);
        let open_if = |is_wanted: bool, name| is_wanted.then(|| open(name)).transpose();
        Ok(JobLogs {
            crawl: open(CRAWL)?,
            crawl_json: open_if(settings.json, "crawl.jsonl")?,
            uri_errors: open("uri-errors.log")?,
            runtime_errors: open("runtime-errors.log")?,
            nonfatal_errors: open("nonfatal-errors.log")?,
            alerts: open("alerts.log")?,
            progress: open("progress-statistics.log")?,
            scope: open_if(settings.scope, "scope.log")?,
            ledger,
            fault_kinds: Mutex::default(),
        })
    }

    /// Logs a finished URI.
    pub fn crawl(&self, line: &CrawlLogLine) -> io::Result<()> {
        let text = format!("{line}\n");
        let mut log = self.crawl.lock();
        if let Some(file) = log.make_room(text.len())? {
            self.ledger.rotated(&file);
        }
        let end = log.append(&text)?;
        // Lines are counted in the order of the log. Otherwise the offset of the counts would be wrong.
        self.ledger.count(&text, end);
        drop(log);
        match &self.crawl_json {
            Some(log) => log.write(&format!("{}\n", line.as_json())),
            None => Ok(()),
        }
    }

    /// Rotates every log that is not empty. Returns the new names of the old files.
    pub fn rotate(&self) -> io::Result<Vec<String>> {
        let mut rotated = Vec::new();
        let mut log = self.crawl.lock();
        if let Some(file) = log.rotate()? {
            self.ledger.rotated(&file);
            rotated.push(file);
        }
        drop(log);
        let always = [
            &self.uri_errors,
            &self.runtime_errors,
            &self.nonfatal_errors,
            &self.alerts,
            &self.progress,
        ];
        let wanted = [&self.crawl_json, &self.scope].into_iter().flatten();
        for log in always.into_iter().chain(wanted) {
            rotated.extend(log.lock().rotate()?);
        }
        Ok(rotated)
    }

    /// Returns `true` if older lines of `crawl.log` are in other files, which may have been removed.
    pub fn was_rotated(&self) -> bool {
        self.ledger.was_rotated()
    }

    /// Returns `true` if decisions of the scope are to be logged.
    pub fn has_scope(&self) -> bool {
        self.scope.is_some()
    }

    /// Logs the scope's decisions on links: time, decision, deciding filter and reason, link, page.
    pub fn scope<'l>(
        &self,
        page: &str,
        decisions: impl Iterator<Item = (&'l str, bool, &'l str)>,
    ) -> io::Result<()> {
        let Some(log) = &self.scope else {
            return Ok(());
        };
        let now = Timestamp::now();
        let lines = decisions.map(|(link, is_accepted, because)| {
            let decision = if is_accepted { "ACCEPT" } else { "REJECT" };
            let because = column(because);
            let because = if because.is_empty() { "-" } else { &because };
            format!("{now:.3} {decision} {because} {link} {page}\n")
        });
        log.write(&lines.collect::<String>())
    }

    /// Logs an alert that is raised or cleared.
    pub fn alert(&self, line: &str) -> io::Result<()> {
        self.alerts.write(&format!("{line}\n"))
    }

    /// Logs the state of the crawl at one moment. Each file begins with the names of the columns.
    pub fn progress(&self, names: &str, line: &str) -> io::Result<()> {
        let mut log = self.progress.lock();
        log.make_room(line.len() + 1)?;
        if log.size == 0 {
            log.append(&format!("{names}\n"))?;
        }
        log.append(&format!("{line}\n")).map(drop)
    }

    /// Logs an attempt that will be retried.
    pub fn nonfatal(&self, line: &CrawlLogLine, attempts: u32) -> io::Result<()> {
        self.nonfatal_errors
            .write(&format!("{line} attempt:{attempts}\n"))
    }

    /// Logs invalid references on a page: time, page, problem, reference.
    pub fn uri_errors(&self, page: &str, refused: &[RefusedLink]) -> io::Result<()> {
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

    /// Logs a URI that the frontier cannot hold: time, page, problem, URI.
    pub fn uri_error(
        &self,
        page: &str,
        uri: &str,
        problem: &dyn std::fmt::Display,
    ) -> io::Result<()> {
        let problem = one_line(&problem.to_string());
        let now = Timestamp::now();
        self.uri_errors
            .write(&format!("{now:.3} {page} {problem} {uri:?}\n"))
    }

    /// Logs a plugin error in a line. The first one of its kind is followed by the guest's stack frames and log lines; later
    /// ones have their number.
    pub fn fault(&self, fault: &Fault) -> io::Result<()> {
        let number = self.number_of(fault);
        let line = format!(
            "{:.3} {} {} {}: {}",
            Timestamp::now(),
            fault.plugin,
            fault.kind,
            fault.uri,
            one_line(&fault.message)
        );
        if number > 1 {
            let line = format!("{line} (error {number} of this kind)\n");
            return self.runtime_errors.write(&line);
        }
        let mut text = line + "\n";
        if let Some(described) = &fault.described {
            text.push_str(&format!("    of {}\n", one_line(described)));
        }
        for frame in &fault.backtrace {
            text.push_str(&format!("    at {}\n", one_line(frame)));
        }
        for line in &fault.log {
            text.push_str(&format!("    logged {}\n", one_line(&line.to_string())));
        }
        self.runtime_errors.write(&text)
    }

    /// Counts an error. Errors of a plugin are of one kind if they trap at the same place; without a place, if their messages
    /// are the same.
    fn number_of(&self, fault: &Fault) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&fault.plugin, fault.kind, &fault.backtrace).hash(&mut hasher);
        if fault.backtrace.is_empty() {
            fault.message.hash(&mut hasher);
        }
        let kinds = self.fault_kinds.lock();
        let mut kinds = kinds.unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= FAULT_KINDS_MAX {
            kinds.clear();
        }
        let count = kinds.entry(hasher.finish()).or_default();
        *count += 1;
        *count
    }
}

/// Puts a text of a guest or a page on one line, because its line ends could imitate lines of the log.
fn one_line(text: &str) -> String {
    printable(text)
}

/// One log file.
struct Log(Mutex<OpenLog>);

/// An open log file, locked for writing.
struct OpenLog {
    directory: PathBuf,
    name: &'static str,
    file: File,
    size: u64,
    size_max: Option<u64>,
    /// `true` if the file ends with half a line that could not be removed.
    is_torn: bool,
}

impl Log {
    fn open(directory: &Path, name: &'static str, size_max: Option<u64>) -> io::Result<Log> {
        let (file, size) = open_file(&directory.join(name))?;
        Ok(Log(Mutex::new(OpenLog {
            directory: directory.to_owned(),
            name,
            file,
            size,
            size_max,
            is_torn: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, OpenLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut log = self.lock();
        log.make_room(text.len())?;
        log.append(text).map(drop)
    }
}

impl OpenLog {
    /// Rotates the log if the text would make the file too large. In that case it returns the old file's new name.
    fn make_room(&mut self, length: usize) -> io::Result<Option<String>> {
        let is_full = |max: u64| self.size + length as u64 > max;
        match self.size_max.is_some_and(is_full) {
            true => self.rotate(),
            false => Ok(None),
        }
    }

    /// Rotates the log. Returns the old file's new name; `None` if the file is empty.
    fn rotate(&mut self) -> io::Result<Option<String>> {
        if self.size == 0 {
            return Ok(None);
        }
        // An archive file with the captures of these lines may be deleted after its hand-over.
        self.file.sync_data()?;
        let mut now = Timestamp::now();
        let old = loop {
            let old = format!("{}.{}", self.name, timestamp17(now));
            if !self.directory.join(&old).exists() {
                break old;
            }
            now += std::time::Duration::from_millis(1);
        };
        let path = self.directory.join(self.name);
        fs::rename(&path, self.directory.join(&old))?;
        (self.file, self.size) = open_file(&path)?;
        Ok(Some(old))
    }

    /// Appends a text and returns the offset of its end. If it cannot be written completely, the written part is removed, because
    /// the next text would continue its line.
    fn append(&mut self, text: &str) -> io::Result<u64> {
        if self.is_torn {
            self.file.set_len(self.size)?;
            self.is_torn = false;
        }
        if let Err(problem) = self.file.write_all(text.as_bytes()) {
            self.is_torn = self.file.set_len(self.size).is_err();
            return Err(problem);
        }
        self.size += text.len() as u64;
        Ok(self.size)
    }
}

/// Opens a file for appending. An incomplete line from a crash is removed, so that the next text does not continue it.
fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(path)?;
    let length = file.metadata()?.len();
    let size = whole_lines(&mut file, length)?;
    if size < length {
        file.set_len(size)?;
    }
    Ok((file, size))
}

/// Returns the end of the last complete line.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = vec![0; 64 * 1024];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let piece = &mut block[..usize::try_from(end - start).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(piece)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use opilio_uri::Uri;

    use super::*;

    fn logs(directory: &Path, rotate_size: Option<&str>) -> JobLogs {
        let settings = opilio_profile::Logs {
            rotate_size: rotate_size.map(|size| size.parse().unwrap()),
            ..opilio_profile::Logs::default()
        };
        JobLogs::open(directory, &settings, Arc::default()).unwrap()
    }

    #[test]
    fn an_invalid_reference_is_logged_with_its_reason() {
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
            problem: Uri::parse(reference).unwrap_err().into(),
        });
        let home = tempfile::tempdir().unwrap();
        let logs = logs(home.path(), None);
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
        assert!(lines[2].contains(": invalid port number"), "{}", lines[2]);
        assert!(
            lines[3].contains(" 70013 bytes, more than 65536 "),
            "{}",
            lines[3]
        );
        assert!(lines[4].contains(" bytes, more than 253 "), "{}", lines[4]);
    }

    #[test]
    fn the_stack_of_a_plugin_error_is_logged_once_and_each_error_has_a_line() {
        let home = tempfile::tempdir().unwrap();
        let logs = logs(home.path(), None);
        let fault = |uri: &str, message: &str, frame: &str| Fault {
            plugin: "html".into(),
            described: Some("html 1.0.0".into()),
            uri: uri.into(),
            kind: opilio_sandbox::FaultKind::Trap,
            message: message.to_owned(),
            backtrace: Box::new([frame.to_owned()]),
            log: Vec::new(),
        };
        for one in [
            fault("http://a.org/", "no title", "parse"),
            fault("http://a.org/b", "no title of b", "parse"),
            fault("http://a.org/c", "no title", "read"),
        ] {
            logs.fault(&one).unwrap();
        }
        let text = fs::read_to_string(home.path().join("runtime-errors.log")).unwrap();
        let lines = text.lines().map(|line| match line.starts_with(' ') {
            true => line,
            false => &line[25..],
        });
        let expected = [
            "html trap http://a.org/: no title",
            "    of html 1.0.0",
            "    at parse",
            "html trap http://a.org/b: no title of b (error 2 of this kind)",
            "html trap http://a.org/c: no title",
            "    of html 1.0.0",
            "    at read",
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_torn_last_line_is_removed_before_the_next_line() {
        for torn in ["1970 half", "half of the first", &"x".repeat(200_000)] {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("alerts.log");
            let whole = if torn.starts_with("half") {
                ""
            } else {
                "one\n"
            };
            fs::write(&file, format!("{whole}{torn}")).unwrap();
            logs(home.path(), None).alert("two").unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("{whole}two\n"));
        }
    }

    #[test]
    fn a_partly_written_line_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let logs = logs(home.path(), None);
        logs.alert("one").unwrap();
        let file = home.path().join("alerts.log");
        // A full disk: half of the line was written, and neither the rest nor the cut was possible.
        let mut open = logs.alerts.lock();
        open.file.write_all(b"hal").unwrap();
        let sound = std::mem::replace(&mut open.file, File::open(&file).unwrap());
        open.append("two\n").unwrap_err();
        assert!(open.is_torn);
        open.file = sound;
        drop(open);
        logs.alert("three").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\nthree\n");
    }

    #[test]
    fn a_log_that_would_exceed_its_limit_continues_in_a_new_file() {
        let home = tempfile::tempdir().unwrap();
        let logs = logs(home.path(), Some("100B"));
        for number in 0..10 {
            logs.alert(&format!("{number} {}", "x".repeat(38))).unwrap();
        }
        let mut files = rotated(home.path(), "alerts.log").unwrap();
        assert_eq!(files.len(), 4, "{files:?}");
        files.push("alerts.log".to_owned());
        let text: String = files
            .iter()
            .map(|file| fs::read_to_string(home.path().join(file)).unwrap())
            .collect();
        let numbers: Vec<&str> = text.lines().map(|line| &line[..1]).collect();
        assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    }
}
