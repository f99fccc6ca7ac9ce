//! Reconsideration: a call of wait evaluators for a waiting URI without a visit, and the outcome of the call.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_frontier::{Issue, Outcome};
use opilio_profile::Revisit;
use opilio_sandbox::{Document, Visit};

use crate::evaluation::{Evaluation, WaitCorrection, evaluate};
use crate::plugin_view::{self, PluginMemory};
use crate::{reading, synthetic};
use opilio_stacks::Staged;
use opilio_stacks::guards::Guards;

/// The input of a reconsideration: the URI in the state after its last visit, with the present time and prices.
pub(crate) struct Reconsideration {
    visit: Visit,
    document: Document,
}

/// The result of a reconsideration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewWait {
    /// Time from the URI's last visit to the next.
    pub(crate) in_all: Duration,
    wait: Duration,
    ask_again: Option<Duration>,
}

impl Reconsideration {
    pub(crate) fn of(
        issue: &Issue,
        now: Timestamp,
        measures: BTreeMap<String, f64>,
        memory: &PluginMemory,
    ) -> Self {
        let record = &issue.record;
        let media_type = Some(record.media_type.clone());
        let visit = Visit {
            visits: record.visits,
            overdue: Duration::ZERO,
            measures,
            // Nothing has been fetched, so the view is the one before a fetch.
            ..plugin_view::visit(issue, now, 0, media_type, memory)
        };
        let head = synthetic::head(0, Vec::new());
        let uri = issue.uri.as_str();
        let document = reading::document(uri, uri, &head, Bytes::new(), None, memory);
        Self { visit, document }
    }

    pub(crate) fn evaluate(self, stack: &[Staged]) -> Evaluation {
        let guards = Guards::default();
        let media_type = self.visit.media_type.clone();
        evaluate(stack, &media_type, &self.visit, &self.document, &guards)
    }

    /// Returns the new wait; `None` if no evaluator answered. Then the wait stays the same.
    pub(crate) fn judge(
        issue: &Issue,
        now: Timestamp,
        answer: &Evaluation,
        limits: &Revisit,
    ) -> Option<NewWait> {
        let wait = answer.wait?;
        let last = issue.record.history.first()?.at;
        let since = Duration::try_from(now - last).unwrap_or_default();
        let in_all = since.saturating_add(wait);
        answer.note_corrections(WaitCorrection::of(in_all, limits));
        let in_all = in_all.clamp(limits.min_wait, limits.max_wait);
        let wait = in_all.saturating_sub(since);
        Some(NewWait {
            in_all,
            wait,
            ask_again: answer.until_reconsidered(wait, limits),
        })
    }
}

impl NewWait {
    pub(crate) fn outcome(self) -> Outcome {
        Outcome::Considered {
            wait: Some(self.wait),
            ask_again: self.ask_again,
        }
    }
}
