//! When a document is visited again.

use std::sync::Arc;
use std::time::Duration;

use opilio_frontier::{ContentState, KeptChange, Visit};
use opilio_profile::{Settings, Strategy};

use super::Chain;
use crate::context::Halt;
use crate::crawl_log::revisit_annotations;
use crate::lanes::Lane;
use opilio_stacks::Stacks;
use opilio_visit::found;
use opilio_visit::standing::{self, Known, Memory};

/// What wait evaluators made of a visit.
pub(super) struct Waits {
    pub(super) until_next: Duration,
    /// To ask before, without a visit.
    pub(super) until_asked: Option<Duration>,
    /// Of the answers so far.
    pub(super) swings: Option<KeptChange>,
    /// Who answered, by its name in the profile; none where it is the profile's own.
    pub(super) by: Option<Arc<str>>,
}

impl Chain<'_> {
    /// The wait until the next visit: under revisit what the first evaluator with an answer says, within the limits of
    /// the profile.
    pub(super) async fn wait(
        &self,
        visit: &Visit,
        settings: &Settings,
        stacks: Arc<Stacks>,
        reading: &mut found::Reading,
        memory: &Memory,
    ) -> Result<Option<Waits>, Halt> {
        let record = &self.issue.record;
        match settings.strategy {
            // What others depend on is asked for again when it has expired.
            _ if self.is_prerequisite() => return Ok(None),
            Strategy::Snapshot => return Ok(None),
            Strategy::Fixed => {
                return Ok(Some(Waits {
                    until_next: settings.revisit.fixed_wait,
                    until_asked: None,
                    swings: None,
                    by: None,
                }));
            }
            Strategy::Revisit => {}
        }
        let mut asked = standing::after(Known::of(self.issue), self.started, visit, memory);
        asked.measures = self.measures()?;
        let media_type = visit.media_type.clone();
        let document = reading.document.clone();
        // Nobody asks them later.
        let guards = std::mem::take(&mut reading.guards);
        let answer = self
            .context
            .lanes
            .run(Lane::Header, move || {
                found::evaluate(&stacks.wait, &media_type, &asked, &document, &guards)
            })
            .await?;
        self.context.failures(&answer.failures)?;
        let settled = answer.settle(record, visit.state, &settings.revisit);
        answer.note_odd(settled.odd);
        self.promised(settled.until_next, true)?;
        Ok(Some(Waits {
            until_next: settled.until_next,
            until_asked: settled.until_asked,
            swings: Some(settled.swings),
            by: answer.answered_by().cloned(),
        }))
    }

    pub(super) fn final_annotations(
        &self,
        mut annotations: Vec<String>,
        visit: &Visit,
        waits: Option<&Waits>,
    ) -> Vec<String> {
        let record = &self.issue.record;
        if let Some(waits) = waits {
            let new_version = matches!(visit.state, ContentState::New | ContentState::Changed);
            let versions = record.versions + u64::from(new_version);
            annotations.extend(revisit_annotations(
                waits.until_next,
                waits.by.as_deref(),
                record.visits + 1,
                versions,
                self.issue.overdue,
            ));
        }
        annotations
    }
}
