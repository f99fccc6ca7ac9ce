//! Reports: what the job has come to, in the lines that operators and their scripts know, or as JSON.
//!
//! ```text
//! ledger, frontier, plugins ─► Page ─┬► text: the predecessor's columns under their names
//!                                    └► facts (one object) and rows (one object each)
//! ```
//! Rows are read from the store in parts and written as they are read, so that a report on a million hosts takes no more
//! memory than one on ten. `JOB/reports/` has all of them as they were when the job last ended.

mod counts;
mod crawl;
mod frontier;
mod page;
mod work;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::page::{Form, Page};
use super::perform::Say;
use super::{Answer, By, ControlError, Desk, Fault};
use crate::alerts::{Acknowledged, Alert, AlertKind, Board};
use crate::census::Census;
use crate::series;
use opilio_job::breakdown::Breakdown;
use opilio_job::ledger::{Ledger, Whole};

/// Rows that are read while the frontier is held.
pub(super) const PART: usize = 500;

/// Which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportKind {
    /// The crawl in a few lines.
    Crawl,
    /// Each seed, and whether it was crawled.
    Seeds,
    /// What each host has brought in, the busiest first.
    Hosts,
    /// What each seed has brought in, by host.
    Source,
    /// By media type.
    Mimetype,
    /// By fetch status.
    Responsecode,
    /// Each plugin.
    Processors,
    /// Queues by state, and the longest.
    FrontierSummary,
    /// Each queue that holds URIs.
    FrontierNonempty,
    /// What is being fetched.
    Threads,
    /// How fresh the pages of a continuous crawl are.
    Freshness,
}

impl ReportKind {
    /// All of them, in the order in which they are read.
    pub const ALL: [ReportKind; 11] = [
        ReportKind::Crawl,
        ReportKind::Seeds,
        ReportKind::Hosts,
        ReportKind::Source,
        ReportKind::Mimetype,
        ReportKind::Responsecode,
        ReportKind::Processors,
        ReportKind::FrontierSummary,
        ReportKind::FrontierNonempty,
        ReportKind::Threads,
        ReportKind::Freshness,
    ];

    /// The word for it; its file is this and `-report.txt`.
    pub fn name(self) -> &'static str {
        match self {
            ReportKind::Crawl => "crawl",
            ReportKind::Seeds => "seeds",
            ReportKind::Hosts => "hosts",
            ReportKind::Source => "source",
            ReportKind::Mimetype => "mimetype",
            ReportKind::Responsecode => "responsecode",
            ReportKind::Processors => "processors",
            ReportKind::FrontierSummary => "frontier-summary",
            ReportKind::FrontierNonempty => "frontier-nonempty",
            ReportKind::Threads => "threads",
            ReportKind::Freshness => "freshness",
        }
    }

    /// By its word.
    pub fn named(name: &str) -> Option<ReportKind> {
        ReportKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Desk<'_> {
    /// A report, as text or as objects.
    pub(super) fn report_of(
        &self,
        kind: ReportKind,
        is_text: bool,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let form = match is_text {
            true => Form::Text,
            false => Form::Objects,
        };
        let mut page = Page::new(form, say);
        self.report_on(&mut page, kind)?;
        page.finish()?;
        Ok(String::new())
    }

    fn report_on(&self, page: &mut Page<'_>, kind: ReportKind) -> Result<(), ControlError> {
        match kind {
            ReportKind::Crawl => self.crawl_report(page),
            ReportKind::Seeds => self.seeds_report(page),
            ReportKind::Hosts => self.hosts_report(page),
            ReportKind::Source => self.source_report(page),
            ReportKind::Mimetype => self.mimetype_report(page),
            ReportKind::Responsecode => self.responsecode_report(page),
            ReportKind::Processors => self.processors_report(page),
            ReportKind::FrontierSummary => self.frontier_summary(page),
            ReportKind::FrontierNonempty => self.frontier_nonempty(page),
            ReportKind::Threads => self.threads_report(page),
            ReportKind::Freshness => self.freshness_report(page),
        }
    }

    /// The course of the crawl.
    pub(super) fn series(
        &self,
        since: Option<Timestamp>,
        points: Option<u64>,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let points = points.map(|points| usize::try_from(points).unwrap_or(usize::MAX));
        let samples = match self.running {
            Some(running) => running.context.series.since(since, points),
            None => {
                let file = self.job.join("reports/series.jsonl");
                let written = series::written(self.job)
                    .map_err(|problem| ControlError::file(&file, &problem))?;
                series::thinned(written, since, points)
            }
        };
        say(Answer::Series { samples });
        Ok(String::new())
    }

    /// What the job has brought in.
    pub(super) fn breakdown(&self, say: Say<'_>) -> Result<String, ControlError> {
        let breakdown = Box::new(Breakdown::new(&self.counted()?));
        say(Answer::Breakdown(breakdown));
        Ok(String::new())
    }

    /// What the operator should know. Of a job that nobody runs: what held when it was last crawled.
    pub(super) fn alerts(&self, say: Say<'_>) -> Result<String, ControlError> {
        let alerts = self.on_board(Board::all);
        say(Answer::Alerts { alerts });
        Ok(String::new())
    }

    /// Alerts that hold.
    pub(super) fn active_alerts(&self) -> Vec<Alert> {
        self.on_board(Board::active)
    }

    /// Somebody knows of an alert.
    pub(super) fn acknowledge(
        &self,
        by: &By,
        kind: AlertKind,
        subject: Option<&str>,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let by = Acknowledged {
            by: by.to_string(),
            at: Timestamp::now(),
        };
        let known = self.on_board(|board| board.acknowledge(kind, subject, &by));
        if known.is_empty() {
            let which = subject.map_or_else(String::new, |subject| format!(" of {subject:?}"));
            return Err(ControlError::new(
                Fault::Unknown,
                format!(
                    "no alert {}{which} holds; `opilio job alerts` lists those that do",
                    kind.name()
                ),
            ));
        }
        let subjects = known.iter().map(|alert| alert.subject.as_str());
        let words = format!(
            "{} {}",
            kind.name(),
            subjects.collect::<Vec<_>>().join(", ")
        );
        let result = format!("acknowledged: {}", words.trim_end());
        Ok(super::perform::done(&result, say))
    }

    fn on_board<T>(&self, look: impl FnOnce(&Board) -> T) -> T {
        match self.running {
            Some(running) => look(&running.context.board),
            None => look(&Board::open(self.job)),
        }
    }

    /// Every log goes on in a new file.
    pub(super) fn rotate_logs(&self, say: Say<'_>) -> Result<String, ControlError> {
        let running = self.running("nobody writes its logs: rename them by hand")?;
        let rotated = running.context.logs.rotate().map_err(|problem| {
            ControlError::file(&self.job.join(&self.profile.logs.directory), &problem)
        })?;
        let result = match rotated.is_empty() {
            true => "there is nothing in the logs yet".to_owned(),
            false => format!("rotated: {}", rotated.join(", ")),
        };
        Ok(super::perform::done(&result, say))
    }

    /// What is counted, the last line of the log included; all of it is in the store then.
    fn counted(&self) -> Result<Whole, ControlError> {
        if let Some(running) = self.running {
            running.context.ledger.store(self.store())?;
            return Ok(running.context.ledger.whole());
        }
        let logs = self.job.join(&self.profile.logs.directory);
        let ledger = Ledger::open(&logs, self.store())
            .map_err(|problem| ControlError::file(&logs, &problem))?;
        Ok(ledger.whole())
    }
}

/// Writes every report below the job's `reports/`, as text and as lines of JSON. `last` is what was counted when the crawl
/// still ran. What cannot be written is said and left.
pub(crate) fn write_all(desk: &Desk<'_>, last: &Census) -> io::Result<()> {
    let folder = desk.job.join("reports");
    std::fs::create_dir_all(&folder)?;
    for kind in ReportKind::ALL {
        write_one(kind, &folder, |page| match kind {
            ReportKind::Freshness => desk.last_freshness_report(last.pages.as_ref(), page),
            _ => desk.report_on(page, kind),
        })?;
    }
    Ok(())
}

/// Both forms of a report, made at one go; each is written whole or not at all.
fn write_one(
    kind: ReportKind,
    folder: &Path,
    make: impl FnOnce(&mut Page<'_>) -> Result<(), ControlError>,
) -> io::Result<()> {
    let named = |ending| folder.join(format!("{}-report.{ending}", kind.name()));
    let mut text = Draft::of(named("txt"))?;
    let mut objects = Draft::of(named("jsonl"))?;
    let mut written = Ok(());
    let mut say = |answer: Answer| {
        written = match answer {
            Answer::Text { text: piece } => text.out.write_all(piece.as_bytes()),
            Answer::Facts { facts: object } | Answer::Row { row: object } => {
                writeln!(objects.out, "{object}")
            }
            _ => Ok(()),
        };
        written.is_ok()
    };
    let mut page = Page::new(Form::Both, &mut say);
    let reported = make(&mut page).and_then(|()| page.finish());
    written?;
    reported.map_err(io::Error::other)?;
    text.keep()?;
    objects.keep()
}

/// A file that takes its name once all of it is written.
struct Draft {
    file: PathBuf,
    draft: PathBuf,
    out: BufWriter<File>,
}

impl Draft {
    fn of(file: PathBuf) -> io::Result<Draft> {
        let mut draft = file.clone().into_os_string();
        draft.push(".draft");
        let draft = PathBuf::from(draft);
        let out = BufWriter::new(File::create(&draft)?);
        Ok(Draft { file, draft, out })
    }

    fn keep(self) -> io::Result<()> {
        self.out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        std::fs::rename(&self.draft, &self.file)
    }
}
