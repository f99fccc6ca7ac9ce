//! Commands on many URIs at once: count, delete, forget. A sweep works in parts, and the frontier is free between two parts.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_frontier::{SweepAction, SweepStep, UriRecord};

use super::admin::PART_PAUSE;
use super::answer::Respond;
use super::{
    Author, CommandResponse, ControlError, ErrorKind, JobAdmin, SweepResult, UriSelection,
};
use opilio_crawl::context::CrawlContext;
use opilio_job::crawl_log::{CrawlLogLine, ExtraInfo};
use opilio_job::ledger::Ledger;
use opilio_job::logs::JobLogs;
use opilio_visit::status;

/// Maximum number of URIs that a sweep examines while the frontier is locked.
const SWEEP_PART: usize = 2_000;

/// Crawl log that receives a line for each deleted URI.
enum DeletionLog {
    /// Log of the running crawl.
    Running(Arc<CrawlContext>),
    /// Log that is opened for this sweep, because no process runs the job.
    AtRest(Box<JobLogs>),
}

impl DeletionLog {
    fn logs(&self) -> &JobLogs {
        match self {
            DeletionLog::Running(context) => &context.outputs.logs,
            DeletionLog::AtRest(logs) => logs,
        }
    }
}

impl JobAdmin<'_> {
    pub(super) fn sweep(
        &self,
        action: SweepAction,
        which: &UriSelection,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        if action != SweepAction::Count && *which == UriSelection::default() {
            return Err(ControlError::new(
                ErrorKind::Request,
                "this would select every URI; give a condition, such as a SURT prefix",
            ));
        }
        let name = match action {
            SweepAction::Count => "count",
            SweepAction::Delete => "delete",
            SweepAction::Forget | SweepAction::ForgetSole => "forget",
        };
        let done = match action {
            SweepAction::Count => "counted",
            SweepAction::Delete => "deleted",
            SweepAction::Forget | SweepAction::ForgetSole => "forgotten",
        };
        let swept = self.sweep_where(
            action,
            selection.key_prefix(),
            &|record| selection.takes(record),
            by,
            respond,
        )?;
        let (meant, in_process) = (swept.meant, swept.in_process);
        respond(CommandResponse::Swept(SweepResult {
            action: name.to_owned(),
            examined: swept.examined,
            meant,
            in_process,
        }));
        Ok(format!("{meant} {done}, {in_process} in process left out"))
    }

    /// Sweeps in parts. The frontier is free between two parts.
    pub(super) fn sweep_where(
        &self,
        action: SweepAction,
        key_prefix: &str,
        is_meant: &dyn Fn(&UriRecord) -> bool,
        by: &Author,
        respond: Respond<'_>,
    ) -> Result<SweepStep, ControlError> {
        let failure = |problem: io::Error| ControlError::failure(&problem);
        let deletes = action == SweepAction::Delete;
        let log = deletes.then(|| self.deletion_log()).transpose();
        let log = log.map_err(failure)?;
        let mut total = SweepStep::default();
        loop {
            let after = total.after.as_deref();
            let part = {
                let mut frontier = self.frontier();
                if let Some(log) = &log {
                    // The log comes first, so that a crash logs a deletion twice rather than never.
                    let part =
                        frontier.would_sweep(action, key_prefix, after, SWEEP_PART, is_meant)?;
                    self.log_deleted(log, &part.deleted, by).map_err(failure)?;
                }
                let now = Timestamp::now();
                frontier.sweep(action, key_prefix, after, SWEEP_PART, is_meant, now)?
            };
            total.examined += part.examined;
            total.meant += part.meant;
            total.in_process += part.in_process;
            total.shared += part.shared;
            total.after = part.after;
            if total.after.is_none() {
                return Ok(total);
            }
            let (examined, meant) = (total.examined, total.meant);
            if !respond(CommandResponse::Progress { examined, meant }) {
                return Err(ControlError::new(
                    ErrorKind::State,
                    format!("client disconnected after {examined} URIs ({meant} matched)"),
                ));
            }
            std::thread::sleep(PART_PAUSE);
        }
    }

    /// Opens the crawl log for deletions. Locks the frontier for a moment.
    fn deletion_log(&self) -> io::Result<DeletionLog> {
        if let Some(running) = self.running {
            return Ok(DeletionLog::Running(running.context.clone()));
        }
        let directory = self.job.join(&self.profile.logs.directory);
        let ledger = Ledger::open(&directory, self.store())?;
        let logs = JobLogs::open(&directory, &self.profile.logs, Arc::new(ledger))?;
        Ok(DeletionLog::AtRest(Box::new(logs)))
    }

    /// Writes a crawl log line with status −6000 and the operator's name for each deleted URI.
    fn log_deleted(&self, log: &DeletionLog, deleted: &[UriRecord], by: &Author) -> io::Result<()> {
        deleted.iter().try_for_each(|record| {
            log.logs().crawl(&CrawlLogLine {
                logged: Timestamp::now(),
                status: status::DELETED,
                size: None,
                uri: record.uri.clone(),
                hop_path: record.hop_path.as_str().to_owned(),
                via: record.via.clone(),
                media_type: None,
                worker: 0,
                fetch: None,
                digest: None,
                source: record.source.clone(),
                annotations: vec![format!("deletedBy:{by}")],
                extra: self.profile.logs.extra_info.then(ExtraInfo::default),
            })
        })
    }
}
