//! Comparison of a job's data: its archive, the indexes next to the archive's files, `crawl.log` and the frontier. Data that is
//! missing in one of them can be restored from another one.
//!
//! Every archive file is read three times. Memory use is about 32 bytes for each capture.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_archive::{
    WarcInfo, Writer, WriterConfig, archives, index_path, is_archive, write_index,
};
use opilio_frontier::{Candidate, Frontier, SharedFrontier};
use opilio_profile::Profile;
use serde::Serialize;

use super::delivery::{hold_at_rest, must_be_job, note};
use super::{Author, ControlError};
use opilio_crawl::archive::writer_config;
use opilio_crawl::crawl::{fetch_again, fetched_again};
use opilio_crawl::reconcile::{self, CaptureKey, LoggedLine};
use opilio_job::handover::handed_over;
use opilio_job::ledger::{self, Ledger};
use opilio_job::logs::JobLogs;
use opilio_job::profile::frozen_profile;
use opilio_visit::policy;

/// Kind of a discrepancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscrepancyKind {
    /// An archive file has the ending `.open` although no process writes it. Repair: torn records are cut off, and the file gets
    /// its final name.
    ArchiveOpen,
    /// A record of the archive is damaged. Cannot be repaired.
    ArchiveDamaged,
    /// The frontier has captures in an archive file that is missing. Cannot be repaired.
    ArchiveMissing,
    /// An archive file has no index. Repair: the index is written.
    IndexMissing,
    /// An index does not match its archive file. Repair: the index is written anew.
    IndexWrong,
    /// The archive file of an open file's index does not exist. Repair: the index is removed.
    IndexLeft,
    /// A capture has no line in `crawl.log`. Repair: it gets one, with the annotation `recovered`.
    LineMissing,
    /// A line of `crawl.log` names a capture that the archive does not have. Cannot be repaired.
    RecordMissing,
    /// A line of `crawl.log` cannot be read. Cannot be repaired.
    LineUnreadable,
    /// The archive does not have the capture that the frontier knows as the last one of a URI. Repair: the URI is fetched again.
    CaptureMissing,
    /// The store of the frontier is inconsistent. Repair: as by `opilio frontier check --repair`.
    Frontier,
}

/// Discrepancy between two parts of a job's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discrepancy {
    /// Kind of the discrepancy.
    pub kind: DiscrepancyKind,
    /// File or URI with the discrepancy.
    pub place: String,
    /// Further details; may be empty.
    pub detail: String,
    /// `true` if the discrepancy was repaired.
    pub is_repaired: bool,
}

/// Amount of data that was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerificationTotals {
    /// Number of archive files.
    pub files: u64,
    /// Number of captures in them.
    pub captures: u64,
    /// Number of lines of `crawl.log`.
    pub lines: u64,
    /// Number of URIs that the frontier knows.
    pub uris: u64,
    /// Number of missing archive files that were handed over. If there are any, lines are not compared with records.
    pub handed_over: u64,
    /// Number of discrepancies.
    pub problems: u64,
    /// Number of discrepancies that were repaired.
    pub repaired: u64,
}

struct Verifying<'v> {
    job: &'v Path,
    profile: Arc<Profile>,
    config: WriterConfig,
    logs: PathBuf,
    repairs: bool,
    respond: &'v mut dyn FnMut(Discrepancy),
    verified: VerificationTotals,
    /// Captures without a line so far, minus lines without a capture so far.
    captures: HashMap<CaptureKey, u32>,
    /// Start of each capture: hash of file and offset.
    places: HashSet<u64>,
    /// Archive files by their final names.
    files: BTreeMap<String, PathBuf>,
}

/// Compares all data of the job in `job`, and repairs it where possible if `repairs` is set. No process may run the job
/// meanwhile. `respond` receives each discrepancy.
///
/// # Errors
/// The directory is not a job, a process has locked the job, or the job's data cannot be read or written.
pub fn verify(
    job: &Path,
    by: &Author,
    repairs: bool,
    respond: &mut dyn FnMut(Discrepancy),
) -> Result<VerificationTotals, ControlError> {
    must_be_job(job)?;
    let _held = hold_at_rest(job, "verify it")?;
    let profile = Arc::new(frozen_profile(job)?);
    let config = writer_config(&profile, job).map_err(|problem| ControlError::failure(&problem))?;
    let mut verifying = Verifying {
        job,
        logs: job.join(&profile.logs.directory),
        profile,
        config,
        repairs,
        respond,
        verified: VerificationTotals::default(),
        captures: HashMap::new(),
        places: HashSet::new(),
        files: BTreeMap::new(),
    };
    let done = verifying.run();
    let verified = verifying.verified;
    if repairs {
        let words = match &done {
            Ok(()) => format!(
                "{} problems, {} repaired",
                verified.problems, verified.repaired
            ),
            Err(problem) => format!("refused: {problem}"),
        };
        note(job, &by.to_string(), "verify --repair", &words)?;
    }
    done.map(|()| verified)
}

impl Verifying<'_> {
    fn run(&mut self) -> Result<(), ControlError> {
        self.open_files()?;
        self.archive_files()?;
        let handed_over = self.handed_over()?;
        let frontier = self.frontier()?;
        self.log(&frontier, handed_over.is_empty())?;
        self.known_captures(&frontier, &handed_over)
    }

    fn report_discrepancy(
        &mut self,
        kind: DiscrepancyKind,
        place: impl Display,
        detail: impl Display,
        is_repaired: bool,
    ) {
        self.verified.problems += 1;
        self.verified.repaired += u64::from(is_repaired);
        (self.respond)(Discrepancy {
            kind,
            place: place.to_string(),
            detail: detail.to_string(),
            is_repaired,
        });
    }

    /// Finds archive files that a killed process left open, and their indexes.
    fn open_files(&mut self) -> Result<(), ControlError> {
        let mut left = Vec::new();
        for directory in self.config.directories() {
            for name in names(directory)? {
                let path = directory.join(&name);
                let whole = name.strip_suffix(".open").unwrap_or_default();
                if is_archive(whole) {
                    // Jobs may share a directory: another job may be writing the file.
                    let file = fs::File::open(&path);
                    let file = file.map_err(|problem| ControlError::file(&path, &problem))?;
                    if !matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)) {
                        self.files.insert(whole.to_owned(), path.clone());
                        left.push((DiscrepancyKind::ArchiveOpen, path));
                    }
                } else if opilio_archive::is_abandoned_index(&path) {
                    left.push((DiscrepancyKind::IndexLeft, path));
                }
            }
        }
        left.sort_by(|(_, one), (_, other)| one.cmp(other));
        if self.repairs {
            // Opening a writer repairs the files. It writes nothing before the first capture.
            Writer::open(self.config.clone(), WarcInfo::new("opilio"))
                .map_err(|problem| ControlError::failure(&problem))?;
            self.files.clear();
        }
        for (kind, path) in left {
            self.report_discrepancy(kind, path.display(), "", self.repairs && !path.exists());
        }
        Ok(())
    }

    /// Reads every file of the archive and compares it with its index.
    fn archive_files(&mut self) -> Result<(), ControlError> {
        let finished = archives(&self.config).map_err(|problem| ControlError::failure(&problem))?;
        for (path, _) in &finished {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.files.insert(name.into_owned(), path.clone());
        }
        for (name, path) in self.files.clone() {
            let failed = |problem| ControlError::failure(&problem);
            let is_finished = path.file_name().is_some_and(|it| *it == *name);
            let report = opilio_archive::check(&path).map_err(failed)?;
            if is_finished {
                for fault in &report.faults {
                    self.report_discrepancy(
                        DiscrepancyKind::ArchiveDamaged,
                        path.display(),
                        fault,
                        false,
                    );
                }
            }
            self.verified.files += 1;
            let (captures, places) = (&mut self.captures, &mut self.places);
            let mut count = 0;
            reconcile::captures(&path, |capture| {
                count += 1;
                *captures.entry(capture.key).or_default() += 1;
                places.insert(place(&name, capture.offset));
            })
            .map_err(failed)?;
            self.verified.captures += count;
            if is_finished && self.profile.archive.index {
                self.index(&path)?;
            }
        }
        Ok(())
    }

    fn index(&mut self, path: &Path) -> Result<(), ControlError> {
        // A damaged file was reported before, and no index of it could be correct.
        let Ok(entries) = opilio_archive::index(path) else {
            return Ok(());
        };
        let index = index_path(path);
        let expected: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        let kind = match fs::read(&index) {
            Ok(text) if text == expected.as_bytes() => return Ok(()),
            Ok(_) => DiscrepancyKind::IndexWrong,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                DiscrepancyKind::IndexMissing
            }
            Err(problem) => return Err(ControlError::file(&index, &problem)),
        };
        if self.repairs {
            write_index(&index, &entries)
                .map_err(|problem| ControlError::file(&index, &problem))?;
        }
        self.report_discrepancy(kind, index.display(), "", self.repairs);
        Ok(())
    }

    /// Returns the names of missing files that were handed over.
    fn handed_over(&mut self) -> Result<HashSet<String>, ControlError> {
        let taken = handed_over(self.job);
        let taken = taken
            .map_err(|problem| ControlError::file(&self.job.join("handed-over.jsonl"), &problem))?;
        let names = taken.iter().filter_map(|taken| {
            let path = taken.path(self.job);
            let name = path.file_name()?.to_string_lossy().into_owned();
            is_archive(&name).then_some(name)
        });
        let gone: HashSet<String> = names
            .filter(|name| !self.files.contains_key(name))
            .collect();
        self.verified.handed_over = gone.len() as u64;
        Ok(gone)
    }

    /// Checks and opens the frontier's store. Returns `None` if no process of the job has made one.
    fn frontier(&mut self) -> Result<Option<SharedFrontier>, ControlError> {
        let state = self.job.join("state");
        if !state.join("format").exists() {
            return Ok(None);
        }
        let config = policy::frontier_config(&self.profile, Timestamp::now);
        let repairs = self.repairs;
        let mut findings = Vec::new();
        let mut found = |finding| findings.push(finding);
        let checked = match repairs {
            true => Frontier::repair(&state, &config, &mut found),
            false => Frontier::check(&state, &config, &mut found),
        }?;
        for finding in findings {
            let what = finding.fault.description();
            self.report_discrepancy(
                DiscrepancyKind::Frontier,
                finding.key,
                what,
                finding.is_repaired,
            );
        }
        self.verified.uris = checked.uris;
        Ok(Some(SharedFrontier::new(Frontier::open(&state, config)?)))
    }

    /// Compares log lines with captures in both directions.
    fn log(
        &mut self,
        frontier: &Option<SharedFrontier>,
        are_all_files_here: bool,
    ) -> Result<(), ControlError> {
        let logs = self.logs.clone();
        let failed = |problem: io::Error| ControlError::file(&logs, &problem);
        let mut captures = std::mem::take(&mut self.captures);
        let mut lines = 0;
        let mut odd = Vec::new();
        reconcile::lines(&logs, None, |text| {
            lines += 1;
            let Some(line) = LoggedLine::read(text) else {
                let beginning: String = text.chars().take(100).collect();
                odd.push((DiscrepancyKind::LineUnreadable, beginning));
                return;
            };
            let keys = line.keys().into_iter().flatten();
            let mut of_line = keys.filter(|key| captures.get(key).is_some_and(|left| *left > 0));
            match of_line.next() {
                Some(key) => *captures.entry(key).or_default() -= 1,
                None if line.claims_record() && are_all_files_here => {
                    odd.push((DiscrepancyKind::RecordMissing, line.uri.to_owned()));
                }
                None => {}
            }
        })
        .map_err(failed)?;
        self.verified.lines = lines;
        for (kind, place) in odd {
            self.report_discrepancy(kind, place, "", false);
        }
        captures.retain(|_, left| *left > 0);
        if captures.is_empty() {
            return Ok(());
        }
        let since = match frontier {
            Some(frontier) if ledger::was_rotated(&logs, frontier)? => {
                reconcile::oldest_line(&logs).map_err(failed)?
            }
            _ => None,
        };
        let mut missing = Vec::new();
        for path in self.files.values() {
            let (mut of_file, mut has_line) = (Vec::new(), path.starts_with(self.job));
            reconcile::captures(path, |capture| {
                let left = captures.get_mut(&capture.key).filter(|left| **left > 0);
                match left {
                    None => has_line = true,
                    Some(left) => {
                        *left -= 1;
                        if since.is_none_or(|since| capture.date >= since) {
                            of_file.push((path.clone(), capture));
                        }
                    }
                }
            })
            .map_err(|problem| ControlError::failure(&problem))?;
            // A file in another directory, without a line in the log, belongs to another job.
            if has_line {
                missing.extend(of_file);
            }
        }
        let log = match (self.repairs, frontier) {
            (true, Some(frontier)) => {
                let ledger = Ledger::open(&logs, frontier).map_err(failed)?;
                let ledger = Arc::new(ledger);
                let log =
                    JobLogs::open(&logs, &self.profile.logs, ledger.clone()).map_err(failed)?;
                Some((log, ledger, frontier))
            }
            _ => None,
        };
        for (path, capture) in missing {
            let mut is_repaired = false;
            if let Some((log, ..)) = &log {
                let with_extra = self.profile.logs.extra_info;
                let line = reconcile::line_of(&path, capture.offset, with_extra)
                    .map_err(|problem| ControlError::failure(&problem))?;
                if let Some(line) = line {
                    log.crawl(&line).map_err(failed)?;
                    is_repaired = true;
                }
            }
            let detail = format!("{} at {}", path.display(), capture.offset);
            self.report_discrepancy(
                DiscrepancyKind::LineMissing,
                capture.uri,
                detail,
                is_repaired,
            );
        }
        if let Some((_, ledger, frontier)) = log {
            ledger.store(frontier)?;
        }
        Ok(())
    }

    /// Checks that the captures that the frontier knows exist.
    fn known_captures(
        &mut self,
        frontier: &Option<SharedFrontier>,
        handed_over: &HashSet<String>,
    ) -> Result<(), ControlError> {
        let Some(frontier) = frontier else {
            return Ok(());
        };
        let mut frontier = frontier.lock();
        let mut absent: BTreeMap<String, u64> = BTreeMap::new();
        let mut again: Vec<Candidate> = Vec::new();
        for record in frontier.records("") {
            let record = record?;
            let Some(at) = &record.archived else {
                continue;
            };
            if !self.files.contains_key(&at.file) {
                if !handed_over.contains(&at.file) {
                    *absent.entry(at.file.clone()).or_default() += 1;
                }
                continue;
            }
            if self.places.contains(&place(&at.file, at.offset)) {
                continue;
            }
            let candidate = fetched_again(&self.profile, &record).filter(|_| self.repairs);
            let detail = format!("{} at {}", at.file, at.offset);
            self.report_discrepancy(
                DiscrepancyKind::CaptureMissing,
                &record.uri,
                detail,
                candidate.is_some(),
            );
            again.extend(candidate);
        }
        for (file, uris) in absent {
            let detail = format!("the frontier knows captures of {uris} URIs in it");
            self.report_discrepancy(DiscrepancyKind::ArchiveMissing, file, detail, false);
        }
        if !again.is_empty() {
            fetch_again(&mut frontier, again)?;
            frontier.persist()?;
        }
        Ok(())
    }
}

fn place(file: &str, offset: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (file, offset).hash(&mut hasher);
    hasher.finish()
}

fn names(directory: &Path) -> Result<Vec<String>, ControlError> {
    let entries = match fs::read_dir(directory) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries,
    };
    entries
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect()
        })
        .map_err(|problem| ControlError::file(directory, &problem))
}
