//! Tables that a crawl holds for its plugins. They are read when the crawl begins, and again when their files change.
//!
//! A new table is built beside the table in use and replaces it at once. If a file cannot be read or has an invalid row, the table
//! is not changed. The job's log then gets an alert, once for each state of the file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use opilio_profile::{Diagnostics, Profile, TableKind, TableSettings, TableSource};
use opilio_sandbox::{Row, Table, TableProblem, Tables};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use opilio_job::job_log::JobLog;

/// Maximum length of a line of a file, in bytes. It is enough for the longest key of a table, and a value.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The tables of a crawl.
pub struct TableKeeper {
    tables: Tables,
    kept: Mutex<BTreeMap<String, HeldTable>>,
}

/// A table, and the state of its file.
struct HeldTable {
    written: TableSettings,
    report: TableReport,
    /// State of the file at the last check; `None` if it could not be checked.
    stamp: Option<Stamp>,
    looked: Instant,
}

/// Identity of a file's state. A file that was replaced has another inode number; a file that was written has another time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

/// Look-up table of plugins, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TableReport {
    /// Name in the profile.
    pub name: String,
    /// `surt-prefixes`, `regexes` or `key-values`.
    pub kind: String,
    /// Number of rows with different keys.
    pub rows: u64,
    /// File of the table; not set if its rows are in the profile.
    #[schema(value_type = Option<String>)]
    pub file: Option<PathBuf>,
    /// Time of the last read.
    pub read: Timestamp,
    /// Reason why the current version of the file could not be loaded.
    pub problem: Option<String>,
}

impl TableKeeper {
    /// Reads the tables that a profile names. Blocks.
    ///
    /// # Errors
    /// Every error at its place in the profile.
    pub(crate) fn load(profile: &Profile) -> Result<TableKeeper, Diagnostics> {
        let tables = Tables::default();
        let mut faults = Diagnostics::default();
        let mut kept = BTreeMap::new();
        for (name, written) in &profile.tables {
            let stamp = stamp(written);
            match read(written) {
                Ok(table) => {
                    let report = report(name, written, &table);
                    tables.set(name.as_str(), table);
                    kept.insert(
                        name.clone(),
                        HeldTable {
                            written: written.clone(),
                            report,
                            stamp,
                            looked: Instant::now(),
                        },
                    );
                }
                Err(problem) => {
                    let key = match &written.source {
                        TableSource::File(_) => "file",
                        TableSource::Rows(_) => "rows",
                    };
                    faults.push(profile.fault_at(&format!("/tables/{name}/{key}"), problem));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(TableKeeper {
            tables,
            kept: Mutex::new(kept),
        })
    }

    /// Returns the tables in which plugins look things up.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the reports of all tables, in the order of their names.
    pub fn reports(&self) -> Vec<TableReport> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values().map(|kept| kept.report.clone()).collect()
    }

    /// Returns the time of the next check of a file; `None` if no file is checked again.
    fn next_look(&self) -> Option<Instant> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let times = kept.values().filter_map(|kept| {
            let is_file = matches!(kept.written.source, TableSource::File(_));
            Some(kept.looked + kept.written.reload.filter(|_| is_file)?)
        });
        times.min()
    }

    /// Checks the files that are due, and reads changed files again; with `all`, reads every file. Blocks.
    pub fn refresh(&self, all: bool, log: &JobLog) {
        let names: Vec<String> = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.keys().cloned().collect()
        };
        for name in names {
            self.look_at(&name, all, log);
        }
    }

    fn look_at(&self, name: &str, all: bool, log: &JobLog) {
        let (written, stamp_then) = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(kept) = kept.get_mut(name) else {
                return;
            };
            let is_due = kept
                .written
                .reload
                .is_some_and(|reload| kept.looked.elapsed() >= reload);
            if !(all || is_due) || matches!(kept.written.source, TableSource::Rows(_)) {
                return;
            }
            kept.looked = Instant::now();
            (kept.written.clone(), kept.stamp)
        };
        // The stamp is taken before the file is read, so that a write during the reading is detected at the next check.
        let stamp = stamp(&written);
        if !all && stamp == stamp_then {
            return;
        }
        // No lock is held while the file is read, because this takes seconds for a large file.
        let table = read(&written);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = kept.get_mut(name) else {
            return;
        };
        kept.stamp = stamp;
        match table {
            Ok(table) => {
                kept.report = report(name, &written, &table);
                let message = format!("read again: {} rows", table.rows());
                self.tables.set(name, table);
                log.crawl(&format!("table {name}"), &message);
            }
            Err(problem) => {
                let message = format!("not updated: {problem}");
                tracing::warn!("table {name} {message}");
                log.crawl(&format!("alert table {name}"), &message);
                kept.report.problem = Some(problem);
            }
        }
    }
}

/// Checks the files until the crawl ends.
pub(crate) async fn run(
    keeper: Arc<TableKeeper>,
    log: Arc<JobLog>,
    mut ended: watch::Receiver<()>,
) {
    while let Some(next) = keeper.next_look() {
        let pause = next.saturating_duration_since(Instant::now());
        let pause = pause.max(Duration::from_millis(1));
        // Resolves when the sender is dropped.
        if tokio::time::timeout(pause, ended.changed()).await.is_ok() {
            return;
        }
        let (keeper, log) = (keeper.clone(), log.clone());
        let looked = tokio::task::spawn_blocking(move || keeper.refresh(false, &log)).await;
        if let Err(panic) = looked {
            tracing::error!("the tables are no longer updated: {panic}");
            return;
        }
    }
}

fn report(name: &str, written: &TableSettings, table: &Table) -> TableReport {
    TableReport {
        name: name.to_owned(),
        kind: written.kind.name().to_owned(),
        rows: table.rows() as u64,
        file: match &written.source {
            TableSource::File(path) => Some(path.clone()),
            TableSource::Rows(_) => None,
        },
        read: Timestamp::now(),
        problem: None,
    }
}

fn stamp(written: &TableSettings) -> Option<Stamp> {
    let TableSource::File(path) = &written.source else {
        return None;
    };
    let file = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: file.modified().ok(),
        length: file.len(),
        number: number(&file),
    })
}

#[cfg(unix)]
fn number(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

fn read(written: &TableSettings) -> Result<Table, String> {
    match &written.source {
        TableSource::Rows(rows) => {
            let rows = rows.iter().filter_map(|line| row(line));
            make(written.kind, rows).map_err(|problem| problem.to_string())
        }
        TableSource::File(path) => read_file(written.kind, path),
    }
}

fn read_file(kind: TableKind, path: &Path) -> Result<Table, String> {
    let refused = |problem: io::Error| format!("cannot read {}: {problem}", path.display());
    let file = File::open(path).map_err(refused)?;
    // Rows are passed on as they are read, so that a list of millions of rows is in memory only once.
    let mut lines = Lines::new(file);
    let made = make(kind, std::iter::from_fn(|| lines.next_row()));
    if let Some(trouble) = lines.trouble {
        return Err(match trouble {
            RowError::Read(problem) => refused(problem),
            RowError::Line(what) => format!("{} line {}: {what}", path.display(), lines.number),
        });
    }
    made.map_err(|problem| {
        let line = row_of(&problem).and_then(|row| line_of_row(path, row));
        match line {
            Some(line) => format!("{} line {line}: {problem}", path.display()),
            None => format!("{}: {problem}", path.display()),
        }
    })
}

/// The rows of a file.
struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    trouble: Option<RowError>,
}

enum RowError {
    Read(io::Error),
    Line(&'static str),
}

impl Lines<BufReader<File>> {
    fn new(file: File) -> Self {
        Self {
            reader: BufReader::new(file),
            line: Vec::new(),
            number: 0,
            trouble: None,
        }
    }
}

impl<R: BufRead> Lines<R> {
    fn next_row(&mut self) -> Option<Row> {
        loop {
            self.line.clear();
            let read = (&mut self.reader)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut self.line);
            self.number += 1;
            let trouble = match read {
                Ok(0) => return None,
                Ok(length) if length as u64 == LINE_BYTES_MAX => {
                    RowError::Line("longer than 1 MiB")
                }
                Ok(_) => match std::str::from_utf8(&self.line) {
                    Ok(line) => match row(line) {
                        Some(row) => return Some(row),
                        None => continue,
                    },
                    Err(_) => RowError::Line("not UTF-8"),
                },
                Err(problem) => RowError::Read(problem),
            };
            self.trouble = Some(trouble);
            return None;
        }
    }
}

/// Parses a key, and a value after a tab; `None` for an empty line or a comment.
fn row(line: &str) -> Option<Row> {
    let line = line.trim_end_matches(['\n', '\r']);
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    if line.trim().is_empty() || line.starts_with('#') {
        return None;
    }
    let (key, value) = line.split_once('\t').unwrap_or((line, ""));
    Some(Row::from((key.trim(), value.trim())))
}

fn make(kind: TableKind, rows: impl Iterator<Item = Row>) -> Result<Table, TableProblem> {
    match kind {
        TableKind::SurtPrefixes => Table::surt_prefixes(rows),
        TableKind::Regexes => Table::regexes(rows),
        TableKind::KeyValues => Table::key_values(rows),
    }
}

fn row_of(problem: &TableProblem) -> Option<usize> {
    match problem {
        TableProblem::Empty { row }
        | TableProblem::Prefix { row, .. }
        | TableProblem::Regex { row, .. }
        | TableProblem::KeyTooLong { row, .. } => Some(*row),
        _ => None,
    }
}

/// Returns the line number of the row with this number. Comments and empty lines count as lines.
fn line_of_row(path: &Path, row: usize) -> Option<u64> {
    let mut lines = Lines::new(File::open(path).ok()?);
    for _ in 0..row {
        lines.next_row()?;
    }
    Some(lines.number)
}
