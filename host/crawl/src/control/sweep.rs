//! Many URIs at once: counted, deleted, forgotten, in parts between which the frontier is free.

use jiff::Timestamp;
use opilio_frontier::{SweepAction, Swept, UriRecord};

use super::perform::{BREATH, Say};
use super::{Answer, ControlError, Desk, Fault, Which};

/// URIs that a sweep looks at while it holds the frontier.
const SWEEP_PART: usize = 2_000;

impl Desk<'_> {
    pub(super) fn sweep(
        &self,
        action: SweepAction,
        which: &Which,
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
}
