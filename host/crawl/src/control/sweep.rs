//! Many URIs at once: counted, deleted, forgotten, in parts between which the frontier is free.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_frontier::{SweepAction, Swept, UriRecord};

use super::perform::{BREATH, Say};
use super::{Answer, By, ControlError, Desk, Fault, Which};
use opilio_job::crawl_log::{ExtraInfo, LogLine};
use opilio_job::ledger::Ledger;
use opilio_job::logs::Logs;
use opilio_visit::status;

/// URIs that a sweep looks at while it holds the frontier.
const SWEEP_PART: usize = 2_000;

impl Desk<'_> {
    pub(super) fn sweep(
        &self,
        action: SweepAction,
        which: &Which,
        by: &By,
        say: Say<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        if action != SweepAction::Count && *which == Which::default() {
            return Err(ControlError::new(
                Fault::Request,
                "every URI would be meant: name a SURT prefix or a regular expression",
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
            say,
        )?;
        let (meant, in_process) = (swept.meant, swept.in_process);
        say(Answer::Swept {
            action: name.to_owned(),
            examined: swept.examined,
            meant,
            in_process,
        });
        Ok(format!(
            "{meant} {done}, {in_process} in process left alone"
        ))
    }

    /// A sweep in parts, between which the frontier is free.
    pub(super) fn sweep_where(
        &self,
        action: SweepAction,
        key_prefix: &str,
        is_meant: &dyn Fn(&UriRecord) -> bool,
        by: &By,
        say: Say<'_>,
    ) -> Result<Swept, ControlError> {
        let mut total = Swept::default();
        loop {
            let part = self.frontier().sweep(
                action,
                key_prefix,
                total.after.as_deref(),
                SWEEP_PART,
                is_meant,
                Timestamp::now(),
            )?;
            self.log_deleted(&part.deleted, by)
                .map_err(|problem| ControlError::failure(&problem))?;
            total.examined += part.examined;
            total.meant += part.meant;
            total.in_process += part.in_process;
            total.shared += part.shared;
            total.after = part.after;
            if total.after.is_none() {
                return Ok(total);
            }
            let (examined, meant) = (total.examined, total.meant);
            if !say(Answer::Progress { examined, meant }) {
                return Err(ControlError::new(
                    Fault::State,
                    format!(
                        "whoever asked has gone: ended after {examined} URIs, of which {meant} were meant"
                    ),
                ));
            }
            std::thread::sleep(BREATH);
        }
    }

    /// A line in the crawl log for each URI that was deleted, with status −6000 and who did it.
    fn log_deleted(&self, deleted: &[UriRecord], by: &By) -> io::Result<()> {
        if deleted.is_empty() {
            return Ok(());
        }
        let alone;
        let logs = match self.running {
            Some(running) => &running.context.logs,
            None => {
                let directory = self.job.join(&self.profile.logs.directory);
                let ledger = Ledger::open(&directory, self.store())?;
                alone = Logs::open(&directory, &self.profile.logs, Arc::new(ledger))?;
                &alone
            }
        };
        deleted.iter().try_for_each(|record| {
            logs.crawl(&LogLine {
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
