//! Reports on a job's results, as text lines in the format that operators and their scripts know, or as JSON.
//!
//! ```text
//! ledger, frontier, plugins ─► Page ─┬► text: Heritrix's columns under their names
//!                                    └► facts (one object) and rows (one object each)
//! ```
//! Rows are read from the store in parts and written at once. A report on a million hosts takes no more memory than one on ten.
//! `JOB/reports/` has all reports from the end of the last process.

mod counts;
mod crawl;
mod frontier;
mod page;
mod work;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use self::page::{Form, Page};
use super::answer::{Respond, done};
use super::{Author, CommandResponse, ControlError, ErrorKind, JobAdmin, ReportKind};
use opilio_job::alerts::{Acknowledged, Alert, AlertBoard, AlertKind};
use opilio_job::breakdown::Breakdown;
use opilio_job::census::Census;
use opilio_job::series;

impl JobAdmin<'_> {
    /// Sends a report as text or as objects.
    pub(super) fn report_of(
        &self,
        kind: ReportKind,
        is_text: bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let form = match is_text {
            true => Form::Text,
            false => Form::Objects,
        };
        let mut page = Page::new(form, respond);
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

    /// Sends the time series of the crawl.
    pub(super) fn series(
        &self,
        since: Option<Timestamp>,
        points: Option<u64>,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let points = points.map(|points| usize::try_from(points).unwrap_or(usize::MAX));
        let samples = match self.running {
            Some(running) => running.context.figures.series.since(since, points),
            None => {
                let file = self.job.join("reports/series.jsonl");
                let written = series::written(self.job)
                    .map_err(|problem| ControlError::file(&file, &problem))?;
                series::thinned(written, since, points)
            }
        };
        respond(CommandResponse::Series { samples });
        Ok(String::new())
    }

    /// Sends the amounts that the job has fetched.
    pub(super) fn breakdown(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let breakdown = Box::new(Breakdown::new(&self.counted()?));
        respond(CommandResponse::Breakdown(breakdown));
        Ok(String::new())
    }

    /// Sends the alerts. For a job that no process runs, these are the alerts of its last process.
    pub(super) fn alerts(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let alerts = self.on_board(AlertBoard::all);
        respond(CommandResponse::Alerts { alerts });
        Ok(String::new())
    }

    /// Returns the active alerts.
    pub(super) fn active_alerts(&self) -> Vec<Alert> {
        self.on_board(AlertBoard::active)
    }

    /// Acknowledges an alert.
    pub(super) fn acknowledge(
        &self,
        by: &Author,
        kind: AlertKind,
        subject: Option<&str>,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let by = Acknowledged {
            by: by.name(),
            at: Timestamp::now(),
        };
        let known = self.on_board(|board| board.acknowledge(kind, subject, &by));
        if known.is_empty() {
            let which = subject.map_or_else(String::new, |subject| format!(" of {subject:?}"));
            return Err(ControlError::new(
                ErrorKind::Unknown,
                format!(
                    "no active alert {}{which}; `opilio job alerts JOB` lists the active alerts",
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
        Ok(done(&result, respond))
    }

    fn on_board<T>(&self, look: impl FnOnce(&AlertBoard) -> T) -> T {
        match self.running {
            Some(running) => look(&running.context.alerts.board),
            None => look(&AlertBoard::open(self.job)),
        }
    }

    /// Rotates the logs: each continues in a new file.
    pub(super) fn rotate_logs(&self, respond: Respond<'_>) -> Result<String, ControlError> {
        let running = self.running("its logs are not being written; rename the files")?;
        let rotated = running.context.outputs.logs.rotate().map_err(|problem| {
            ControlError::file(&self.job.join(&self.profile.logs.directory), &problem)
        })?;
        let result = match rotated.is_empty() {
            true => "the logs are empty".to_owned(),
            false => format!("rotated: {}", rotated.join(", ")),
        };
        Ok(done(&result, respond))
    }
}

/// Writes every report below the job's `reports/`, as text and as lines of JSON. `last` is the last count of the running crawl.
/// Returns the first error; the remaining reports are then not written.
pub(crate) fn write_all(admin: &JobAdmin<'_>, last: &Census) -> io::Result<()> {
    let folder = admin.job.join("reports");
    std::fs::create_dir_all(&folder)?;
    for kind in ReportKind::ALL {
        write_one(kind, &folder, |page| match kind {
            ReportKind::Freshness => admin.last_freshness_report(last.pages.as_ref(), page),
            _ => admin.report_on(page, kind),
        })?;
    }
    Ok(())
}

/// Writes both forms of a report in one pass. Each file is written completely or not at all.
fn write_one(
    kind: ReportKind,
    folder: &Path,
    make: impl FnOnce(&mut Page<'_>) -> Result<(), ControlError>,
) -> io::Result<()> {
    let named = |ending| folder.join(format!("{}-report.{ending}", kind.name()));
    let mut text = Draft::of(named("txt"))?;
    let mut objects = Draft::of(named("jsonl"))?;
    let mut written = Ok(());
    let mut respond = |answer: CommandResponse| {
        written = match answer {
            CommandResponse::Text { text: piece } => text.out.write_all(piece.as_bytes()),
            CommandResponse::Facts { facts: object } | CommandResponse::Row { row: object } => {
                writeln!(objects.out, "{object}")
            }
            _ => Ok(()),
        };
        written.is_ok()
    };
    let mut page = Page::new(Form::Both, &mut respond);
    let reported = make(&mut page).and_then(|()| page.finish());
    written?;
    reported.map_err(io::Error::other)?;
    text.keep()?;
    objects.keep()
}

/// Draft of a file, which is renamed when it is complete.
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
