//! The ledger: results of a job, counted by status, media type, host and source over all its processes, for breakdowns and reports.
//!
//! ```text
//! line of crawl.log ─► pending, in memory ─► every few seconds, in one batch ─► the frontier's store
//! ```
//! `crawl.log` is the journal of these counts. The store keeps the counts together with the offset in the log up to which lines are
//! counted. Counts that a crash removes from memory are therefore counted again from the log when the job resumes. Memory holds
//! only the changes since the last batch, for any number of hosts.

mod host_counts;
mod line;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opilio_frontier::{Frontier, LastOutcome, SharedFrontier};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::log_files;

use self::line::{CountedLine, ResponseContent};

pub use self::host_counts::HostCounts;
pub(crate) use self::line::host as host_of;

/// Name of the stored value with everything that is not a row. The ledger's names in the frontier's store begin with `counts-3:`.
/// Values have no version: a change of their types requires a change of these names, and then the whole log is counted again.
const WHOLE: &str = "counts-3:whole";
/// Prefix of the name of a host.
const HOST: &str = "counts-3:host:";
/// Prefix of a seed.
const SOURCE: &str = "counts-3:source:";
/// Prefix of a seed, NUL and the name of a host.
const SOURCE_HOST: &str = "counts-3:source-host:";

/// Most media types that are counted by name; servers may invent as many as they like. Later ones count as `other`.
const TYPES_MAX: usize = 1000;
/// Longest media type that is counted by name.
const TYPE_BYTES_MAX: usize = 100;
/// Maximum of busiest hosts that are kept in memory.
const BUSIEST_MAX: usize = 100;
/// Longest seed or host that is distinguished: names in the store are limited.
const NAME_BYTES_MAX: usize = 16 * 1024;
/// Maximum of changed rows in memory. Beyond it they must be stored.
const PENDING_MAX: usize = 10_000;

/// Number of visits, and bytes of their content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Amount {
    /// Lines of `crawl.log`.
    pub uris: u64,
    /// Bytes of content.
    pub bytes: u64,
}

/// Totals of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// Lines of `crawl.log`, and bytes of their content.
    pub all: Amount,
    /// Visits with a response: documents, error responses and prerequisites.
    pub responses: Amount,
    /// Of these, new or changed ones.
    pub novel: Amount,
    /// Of these, those whose payload was archived already.
    pub duplicate: Amount,
    /// Of these, those that the server answered with 304.
    pub not_modified: Amount,
    /// Visits that failed without a response.
    pub no_response: u64,
    /// Disregarded URIs.
    pub disregarded: u64,
    /// Responses that a filter identified as bot walls.
    pub walls: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Of the visits with a response: prerequisites, which are DNS look-ups, robots.txt files and logins.
    #[serde(default)]
    pub prerequisites: u64,
    /// Of the visits with a response: error responses (status 4xx and 5xx) to requests for documents.
    #[serde(default)]
    pub error_responses: u64,
}

/// Finished visits by outcome. Each visit is in one of these counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VisitCounts {
    /// Responses to requests for documents, without error responses.
    pub documents: u64,
    /// Error responses (status 4xx and 5xx) to requests for documents.
    pub error_responses: u64,
    /// Visits that failed without a response.
    pub no_response: u64,
    /// Disregarded visits: refused by robots.txt, the scope, a filter, a quota or an operator.
    pub disregarded: u64,
    /// Prerequisites that were answered: DNS look-ups, robots.txt files and logins.
    pub prerequisites: u64,
}

impl Totals {
    /// Returns the visits by outcome.
    pub fn visits(&self) -> VisitCounts {
        VisitCounts {
            documents: self.responses.uris - self.prerequisites - self.error_responses,
            error_responses: self.error_responses,
            no_response: self.no_response,
            disregarded: self.disregarded,
            prerequisites: self.prerequisites,
        }
    }
}

impl VisitCounts {
    /// Returns the failed visits, with a response and without.
    pub fn failed(&self) -> u64 {
        self.error_responses + self.no_response
    }

    /// Returns the sum.
    pub fn all(&self) -> u64 {
        self.documents + self.failed() + self.disregarded + self.prerequisites
    }
}

/// The results of a seed: visits by status.
pub type SourceCounts = BTreeMap<i32, u64>;

/// The small parts of the ledger, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// Sums of everything.
    pub totals: Totals,
    /// By fetch status.
    pub statuses: BTreeMap<i32, Amount>,
    /// By media type.
    pub media_types: BTreeMap<String, Amount>,
    /// The busiest hosts, the busiest first.
    pub busiest: Vec<(String, HostCounts)>,
    position: LogPosition,
}

/// The position in the log up to which lines are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LogPosition {
    /// The newest rotated file when this was written. The offset is in the file that follows it.
    after: String,
    offset: u64,
}

/// Counts that are not in the store yet.
#[derive(Default)]
struct Pending {
    hosts: HashMap<String, HostCounts>,
    sources: HashMap<String, SourceCounts>,
    source_hosts: HashMap<String, u64>,
    is_dirty: bool,
}

/// The counts of a running crawl.
#[derive(Default)]
pub struct Ledger {
    state: Mutex<(LedgerSummary, Pending)>,
    /// Lock for storing: one thread at a time moves pending counts to the store.
    storing: Mutex<()>,
}

impl Ledger {
    /// Resumes from the counts in the store, and counts the lines of the log beyond them.
    ///
    /// # Errors
    /// Fails if the log cannot be read or the store fails.
    pub fn open(directory: &Path, frontier: &SharedFrontier) -> io::Result<Ledger> {
        let whole = stored_whole(frontier).map_err(io::Error::other)?;
        let ledger = Ledger {
            state: Mutex::new((whole, Pending::default())),
            storing: Mutex::default(),
        };
        ledger.catch_up(directory, frontier)?;
        Ok(ledger)
    }

    /// Counts the log after the position in the store: the rest of the file that it names, and every later file.
    fn catch_up(&self, directory: &Path, frontier: &SharedFrontier) -> io::Result<()> {
        let after = self.state().0.position.after.clone();
        let rotated = log_files::rotated(directory, log_files::CRAWL)?;
        for file in rotated.into_iter().filter(|file| *file > after) {
            self.count_rest(&directory.join(&file), frontier)?;
            self.rotated(&file);
        }
        self.count_rest(&directory.join(log_files::CRAWL), frontier)?;
        self.state().1.is_dirty = true;
        self.store(frontier).map_err(io::Error::other)
    }

    /// Counts the lines of a file after the position.
    fn count_rest(&self, file: &Path, frontier: &SharedFrontier) -> io::Result<()> {
        let mut log = match File::open(file) {
            Ok(log) => log,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                self.state().0.position.offset = 0;
                return Ok(());
            }
            Err(problem) => return Err(problem),
        };
        let mut offset = self.state().0.position.offset;
        // If the file is shorter than the position, it is another file: the job was made from a checkpoint, or the operator has
        // removed the old file.
        let length = log.metadata()?.len();
        offset = offset.min(length);
        log.seek(SeekFrom::Start(offset))?;
        let mut log = BufReader::new(log);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = log.read_until(b'\n', &mut line)?;
            offset += length as u64;
            // An incomplete line from a crash does not count. It is removed before the next write.
            if line.last() != Some(&b'\n') {
                self.state().0.position.offset = offset - length as u64;
                return Ok(());
            }
            if self.count(&String::from_utf8_lossy(&line), offset) {
                self.store(frontier).map_err(io::Error::other)?;
            }
        }
    }

    /// Counts a line that ends at offset `end` of the log. Returns `true` if the changed rows in memory should be stored now,
    /// because there are too many.
    pub fn count(&self, line: &str, end: u64) -> bool {
        let mut state = self.state();
        let (whole, pending) = &mut *state;
        whole.position.offset = end;
        pending.is_dirty = true;
        if let Some(line) = CountedLine::read(line) {
            whole.count(&line);
            pending.count(&line);
        }
        pending.len() >= PENDING_MAX
    }

    /// Records that the log continues in a new file. `file` is the new name of the old file.
    pub fn rotated(&self, file: &str) {
        let mut state = self.state();
        state.0.position = LogPosition {
            after: file.to_owned(),
            offset: 0,
        };
        state.1.is_dirty = true;
    }

    /// Returns `true` if older lines are in other files, which may have been removed.
    pub fn was_rotated(&self) -> bool {
        !self.state().0.position.after.is_empty()
    }

    /// Returns `true` if the changed rows in memory should be stored now, because there are too many.
    pub fn is_full(&self) -> bool {
        self.state().1.len() >= PENDING_MAX
    }

    /// Returns the small parts, as of now.
    pub fn summary(&self) -> LedgerSummary {
        self.state().0.clone()
    }

    /// Returns the sums over the whole job, as of now.
    pub fn totals(&self) -> Totals {
        self.state().0.totals
    }

    /// Moves pending counts to the store. If that fails, the store is not used any more; all counts can be recovered from the log.
    pub fn store(&self, frontier: &SharedFrontier) -> Result<(), opilio_frontier::FrontierError> {
        let _alone = self.storing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        if !state.1.is_dirty {
            return Ok(());
        }
        let pending = std::mem::take(&mut state.1);
        let mut whole = state.0.clone();
        drop(state);
        let new_hosts;
        {
            let mut frontier = frontier.lock();
            let mut rows = Vec::with_capacity(pending.len() + 1);
            let hosts = pending.hosts.len();
            let mut known = 0;
            for (host, counts) in pending.hosts {
                let name = format!("{HOST}{host}");
                let row: Option<HostCounts> = row(&frontier, &name)?;
                known += usize::from(row.is_some());
                let mut row = row.unwrap_or_default();
                row.add(&counts);
                whole.is_busy(&host, row);
                rows.push((name, encoded(&row)));
            }
            new_hosts = (hosts - known) as u64;
            for (source, counts) in pending.sources {
                let name = format!("{SOURCE}{source}");
                let mut row: SourceCounts = row(&frontier, &name)?.unwrap_or_default();
                for (status, count) in counts {
                    *row.entry(status).or_default() += count;
                }
                rows.push((name, encoded(&row)));
            }
            for (names, count) in pending.source_hosts {
                let name = format!("{SOURCE_HOST}{names}");
                let row: u64 = row(&frontier, &name)?.unwrap_or_default();
                rows.push((name, encoded(&(row + count))));
            }
            whole.totals.hosts += new_hosts;
            rows.push((WHOLE.to_owned(), encoded(&whole)));
            frontier.put_caller_values(&rows)?;
        }
        let mut state = self.state();
        state.0.busiest = whole.busiest;
        state.0.totals.hosts += new_hosts;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, (LedgerSummary, Pending)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LedgerSummary {
    fn count(&mut self, line: &CountedLine<'_>) {
        let amount = Amount {
            uris: 1,
            bytes: line.bytes,
        };
        let totals = &mut self.totals;
        totals.all.add(amount);
        totals.walls += u64::from(line.is_wall);
        self.statuses.entry(line.status).or_default().add(amount);
        match line.outcome() {
            LastOutcome::Disregarded => totals.disregarded += 1,
            LastOutcome::Prerequisite => totals.prerequisites += 1,
            LastOutcome::Failed if line.is_response() => totals.error_responses += 1,
            LastOutcome::Open | LastOutcome::Failed => totals.no_response += 1,
            LastOutcome::Succeeded => {}
        }
        if !line.is_response() {
            return;
        }
        totals.responses.add(amount);
        match line.content {
            ResponseContent::Novel => totals.novel.add(amount),
            ResponseContent::Duplicate => totals.duplicate.add(amount),
            ResponseContent::NotModified => totals.not_modified.add(amount),
        }
        let is_new = !self.media_types.contains_key(line.media_type);
        let is_too_much =
            self.media_types.len() >= TYPES_MAX || line.media_type.len() > TYPE_BYTES_MAX;
        let media_type = match is_new && is_too_much {
            true => "other",
            false => line.media_type,
        };
        self.media_types
            .entry(media_type.to_owned())
            .or_default()
            .add(amount);
    }

    /// Updates the busiest hosts with the new counts of a host. Counts only grow, so a host that is not among the busiest now was
    /// never among them.
    fn is_busy(&mut self, host: &str, counts: HostCounts) {
        let busiest = &mut self.busiest;
        let uris = |counts: &HostCounts| counts.responses.uris;
        if let Some(known) = busiest.iter_mut().find(|(known, _)| known == host) {
            known.1 = counts;
        } else if busiest.len() < BUSIEST_MAX {
            busiest.push((host.to_owned(), counts));
        } else {
            match busiest.last_mut() {
                Some(last) if uris(&last.1) < uris(&counts) => *last = (host.to_owned(), counts),
                _ => return,
            }
        }
        busiest.sort_by(|(a, one), (b, other)| {
            (Reverse(uris(one)), a).cmp(&(Reverse(uris(other)), b))
        });
    }
}

impl Pending {
    fn len(&self) -> usize {
        self.hosts.len() + self.sources.len() + self.source_hosts.len()
    }

    fn count(&mut self, line: &CountedLine<'_>) {
        let host = clipped(line.host);
        let counts = self.hosts.entry(host.to_owned()).or_default();
        counts.count(line);
        if let Some(source) = line.source.map(clipped) {
            let counts = self.sources.entry(source.to_owned()).or_default();
            *counts.entry(line.status).or_default() += 1;
            if line.is_response() {
                let names = format!("{source}\0{host}");
                *self.source_hosts.entry(names).or_default() += 1;
            }
        }
    }
}

impl Amount {
    /// Adds visits and bytes.
    fn add(&mut self, more: Amount) {
        self.uris += more.uris;
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// Returns `true` if the log of a job that is not running was rotated.
///
/// # Errors
/// Fails if the store fails.
pub fn was_rotated(
    directory: &Path,
    frontier: &SharedFrontier,
) -> Result<bool, opilio_frontier::FrontierError> {
    let is_rotated = !stored_whole(frontier)?.position.after.is_empty();
    let rotated = log_files::rotated(directory, log_files::CRAWL);
    Ok(is_rotated || rotated.is_ok_and(|files| !files.is_empty()))
}

/// Returns the small parts in the store; empty if the job was never counted.
pub fn stored_whole(
    frontier: &SharedFrontier,
) -> Result<LedgerSummary, opilio_frontier::FrontierError> {
    let frontier = frontier.lock();
    Ok(row(&frontier, WHOLE)?.unwrap_or_default())
}

/// Returns up to `max` hosts in the order of their names, starting after `after`.
pub fn hosts(
    frontier: &Frontier,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, HostCounts)>, opilio_frontier::FrontierError> {
    rows(frontier, HOST, after, max)
}

/// Returns the results of one host.
pub fn host(
    frontier: &Frontier,
    host: &str,
) -> Result<Option<HostCounts>, opilio_frontier::FrontierError> {
    row(frontier, &format!("{HOST}{host}"))
}

/// Returns up to `max` seeds in their order, starting after `after`.
pub fn sources(
    frontier: &Frontier,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, SourceCounts)>, opilio_frontier::FrontierError> {
    rows(frontier, SOURCE, after, max)
}

/// Returns the results of one seed, by status.
pub fn source(
    frontier: &Frontier,
    seed: &str,
) -> Result<Option<SourceCounts>, opilio_frontier::FrontierError> {
    row(frontier, &format!("{SOURCE}{seed}"))
}

/// Returns up to `max` pairs of seed and host, separated by NUL, in their order, starting after `after`.
pub fn source_hosts(
    frontier: &Frontier,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, u64)>, opilio_frontier::FrontierError> {
    rows(frontier, SOURCE_HOST, after, max)
}

/// Returns rows without their prefix, which `after` does not have either.
fn rows<T: for<'de> Deserialize<'de>>(
    frontier: &Frontier,
    prefix: &str,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, T)>, opilio_frontier::FrontierError> {
    let after = after.map(|after| format!("{prefix}{after}"));
    let found = frontier.caller_values_after(prefix, after.as_deref(), max)?;
    let read = |(name, bytes): (String, Vec<u8>)| {
        let row = postcard::from_bytes(&bytes).ok()?;
        Some((name.strip_prefix(prefix)?.to_owned(), row))
    };
    Ok(found.into_iter().filter_map(read).collect())
}

fn row<T: for<'de> Deserialize<'de>>(
    frontier: &Frontier,
    name: &str,
) -> Result<Option<T>, opilio_frontier::FrontierError> {
    let bytes = frontier.caller_value(name)?;
    Ok(bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
}

/// Encodes a value. The ledger's own types always serialise.
fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

fn clipped(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::sync::Arc;
    use std::time::Duration;

    use opilio_frontier::FrontierConfig;

    use super::*;
    use crate::crawl_log::CrawlLogLine;
    use crate::logs::JobLogs;

    struct Job {
        home: tempfile::TempDir,
        frontier: SharedFrontier,
    }

    /// The open files of a process.
    struct Process {
        ledger: Arc<Ledger>,
        logs: JobLogs,
    }

    impl Job {
        fn new() -> Job {
            let home = tempfile::tempdir().unwrap();
            let frontier =
                Frontier::open(&home.path().join("state"), FrontierConfig::default()).unwrap();
            Job {
                home,
                frontier: SharedFrontier::new(frontier),
            }
        }

        fn folder(&self) -> std::path::PathBuf {
            self.home.path().join("logs")
        }

        fn process(&self) -> Process {
            let ledger = Arc::new(Ledger::open(&self.folder(), &self.frontier).unwrap());
            let settings = opilio_profile::Logs::default();
            let logs = JobLogs::open(&self.folder(), &settings, ledger.clone()).unwrap();
            Process { ledger, logs }
        }
    }

    fn line(uri: &str, status: i32, annotations: &[&str]) -> CrawlLogLine {
        CrawlLogLine {
            logged: jiff::Timestamp::UNIX_EPOCH,
            status,
            size: (status > 0).then_some(10),
            uri: uri.to_owned(),
            hop_path: "L".to_owned(),
            via: None,
            media_type: (status > 0).then(|| "text/html".to_owned()),
            worker: 1,
            fetch: Some((jiff::Timestamp::UNIX_EPOCH, Duration::from_millis(1))),
            digest: None,
            source: Some("http://a.org/".to_owned()),
            annotations: annotations.iter().map(|it| (*it).to_owned()).collect(),
            extra: None,
        }
    }

    fn prerequisite(uri: &str, status: i32) -> CrawlLogLine {
        CrawlLogLine {
            hop_path: "P".to_owned(),
            ..line(uri, status, &[])
        }
    }

    fn log_sample_lines(process: &Process) {
        for line in [
            line("http://a.org/", 200, &[]),
            line("http://a.org/x", 200, &["unchanged", "duplicate:digest"]),
            line("http://b.org/", 304, &["duplicate:server-not-modified"]),
            line("http://b.org/y", -9998, &["robotExcluded"]),
            line("http://c.org/", -2, &["err=refused"]),
            line("http://a.org/wall", 403, &["botblock:someone"]),
            prerequisite("http://a.org/robots.txt", 404),
        ] {
            process.logs.crawl(&line).unwrap();
        }
    }

    /// Checks the counts after this many calls of [`log_sample_lines`].
    #[track_caller]
    fn check(job: &Job, ledger: &Ledger, rounds: u64) {
        ledger.store(&job.frontier).unwrap();
        let whole = ledger.summary();
        assert_eq!(stored_whole(&job.frontier).unwrap(), whole);
        let of = |uris: u64| Amount {
            uris: uris * rounds,
            bytes: 10 * uris * rounds,
        };
        let totals = Totals {
            all: Amount {
                uris: 7 * rounds,
                bytes: 50 * rounds,
            },
            responses: of(5),
            novel: of(3),
            duplicate: of(1),
            not_modified: of(1),
            no_response: rounds,
            disregarded: rounds,
            walls: rounds,
            hosts: 3,
            prerequisites: rounds,
            error_responses: rounds,
        };
        assert_eq!(whole.totals, totals);
        assert_eq!(whole.statuses[&200], of(2));
        assert_eq!(whole.media_types["text/html"], of(5));
        let visits = VisitCounts {
            documents: 3 * rounds,
            error_responses: rounds,
            no_response: rounds,
            disregarded: rounds,
            prerequisites: rounds,
        };
        assert_eq!((totals.visits(), visits.all()), (visits, 7 * rounds));
        let names: Vec<&str> = whole
            .busiest
            .iter()
            .map(|(host, _)| host.as_str())
            .collect();
        assert_eq!(names, ["a.org", "b.org", "c.org"]);
        let frontier = job.frontier.lock();
        let all = hosts(&frontier, None, 10).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].1.responses, of(4));
        assert_eq!(
            (all[0].1.documents(), all[0].1.errors()),
            (2 * rounds, rounds)
        );
        assert_eq!(all[2].1.errors(), rounds);
        assert_eq!(all[2].1.last_visit, Some(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(all[1].1.robots, rounds);
        assert_eq!(hosts(&frontier, Some("a.org"), 1).unwrap(), all[1..2]);
        let sources = sources(&frontier, None, 10).unwrap();
        assert_eq!(sources[0].0, "http://a.org/");
        assert_eq!(sources[0].1[&403], rounds);
        let pairs = source_hosts(&frontier, None, 10).unwrap();
        let expected = [("http://a.org/\0a.org", 4), ("http://a.org/\0b.org", 1)];
        let expected = expected.map(|(names, urls)| (names.to_owned(), urls * rounds));
        assert_eq!(pairs, expected);
    }

    #[test]
    fn counts_lost_in_a_crash_are_counted_again_from_the_log_once() {
        let job = Job::new();
        let process = job.process();
        log_sample_lines(&process);
        check(&job, &process.ledger, 1);
        log_sample_lines(&process);
        // A crash: the store has no counts of the second call, and the last line is incomplete.
        drop(process);
        let mut log = fs::OpenOptions::new()
            .append(true)
            .open(job.folder().join(log_files::CRAWL))
            .unwrap();
        write!(log, "1970-01-01T00:00:00.000Z   200").unwrap();
        let process = job.process();
        check(&job, &process.ledger, 2);
        log_sample_lines(&process);
        drop(process);
        check(&job, &job.process().ledger, 3);
        check(&job, &job.process().ledger, 3);
    }

    #[test]
    fn rotation_loses_no_counts_in_a_crash() {
        let job = Job::new();
        let process = job.process();
        log_sample_lines(&process);
        check(&job, &process.ledger, 1);
        log_sample_lines(&process);
        assert_eq!(process.logs.rotate().unwrap().len(), 1);
        log_sample_lines(&process);
        assert_eq!(process.logs.rotate().unwrap().len(), 1);
        log_sample_lines(&process);
        drop(process);
        let process = job.process();
        check(&job, &process.ledger, 4);
        log_sample_lines(&process);
        process.ledger.store(&job.frontier).unwrap();
        assert_eq!(process.logs.rotate().unwrap().len(), 1);
        drop(process);
        check(&job, &job.process().ledger, 5);
    }
}
