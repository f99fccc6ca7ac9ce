//! A URI that waits and is considered anew: its wait evaluator wanted to be asked again before the visit, since prices and
//! what is known around it change. Nothing is sent, nothing is logged, and what plugins keep stays as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::Outcome;
use opilio_profile::Strategy;

use crate::context::Halt;
use crate::control::Step;
use crate::lanes::Lane;
use opilio_visit::budget::{Answered, Place};
use opilio_visit::consideration::Consideration;

use super::Chain;

impl Chain<'_> {
    /// Asks, and lets it wait on.
    pub(super) async fn consider(&self) -> Result<(), Halt> {
        let media_type = self.issue.record.media_type.clone();
        let (settings, stacks) = self.for_response(&media_type);
        let mut outcome = Outcome::Considered {
            wait: None,
            ask_again: None,
        };
        if settings.strategy == Strategy::Revisit {
            self.flight.step(Step::Wait);
            let memory = self.memory()?;
            let asked = Consideration::of(self.issue, self.started, self.measures()?, &memory);
            let answer = self
                .context
                .lanes
                .run(Lane::Header, move || asked.evaluate(&stacks.wait))
                .await?;
            self.context.failures(&answer.failures)?;
            if let Some(considered) =
                Consideration::judge(self.issue, self.started, &answer, &settings.revisit)
            {
                self.promised(considered.in_all, false)?;
                outcome = considered.outcome();
            }
        }
        let now = Timestamp::now();
        self.context
            .frontier()
            .finished(self.issue.ticket, outcome, now)?;
        Ok(())
    }

    /// What evaluators may ask for: prices.
    pub(super) fn measures(&self) -> Result<BTreeMap<String, f64>, Halt> {
        let mut budget = self.context.budget();
        let frontier = self.context.frontier();
        Ok(budget.measures(&frontier, Place::of(self.issue), self.started)?)
    }

    /// Takes note of a wait in the prices, and keeps these now and then.
    pub(super) fn promised(&self, wait: Duration, is_visit: bool) -> Result<(), Halt> {
        let mut budget = self.context.budget();
        let mut frontier = self.context.frontier();
        let answered = Answered {
            now: self.started,
            wait,
            is_visit,
            pace: frontier.pace(&self.issue.queue, self.elapsed())?,
            queued: frontier.statistics().queued,
            budget: self.context.current().settings().revisit.budget,
        };
        budget.answered(&frontier, self.issue, answered)?;
        if let Some(prices) = budget.due_prices(self.started) {
            frontier.put_servers(&prices)?;
        }
        Ok(())
    }
}
