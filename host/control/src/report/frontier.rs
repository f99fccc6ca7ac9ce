//! Reports on queues: the number in each state, the longest queues, and each queue with URIs.

use jiff::Timestamp;
use opilio_frontier::QueueReport;
use serde_json::{Value, json};

use super::page::{Column, Page};
use crate::admin::PART;
use crate::{ControlError, JobAdmin, QueueSort};
use opilio_job::census;

/// Number of queues that the summary lists, as in Heritrix.
const LONGEST: usize = 20;

const QUEUES: [Column; 9] = [
    ("queue", "queue"),
    ("state", "state"),
    ("#ready", "ready"),
    ("#waiting", "waiting"),
    ("#in-process", "in_process"),
    ("precedence", "precedence"),
    ("gives-from", "wake"),
    ("#finished", "finished"),
    ("#failed", "failed"),
];

impl JobAdmin<'_> {
    pub(super) fn frontier_summary(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        let statistics = self.frontier().statistics();
        let counted = census::queues(self.store(), |took| {
            std::thread::sleep(took);
            true
        })?;
        let Some(queues) = counted else {
            return Ok(());
        };
        let states = queues.states.named();
        let keys = states.map(|(name, _)| format!("queues_{}", name.replace('-', "_")));
        let all: u64 = states.iter().map(|(_, count)| count).sum();
        let mut facts: Vec<(&str, &str, Value)> = vec![
            (
                "URIs discovered",
                "discovered",
                statistics.discovered.into(),
            ),
            ("URIs queued", "queued", statistics.queued.into()),
            (
                "URIs in process",
                "in_process",
                statistics.in_process.into(),
            ),
            ("", "", Value::Null),
            ("queues", "queues", all.into()),
        ];
        let named = states.iter().zip(&keys);
        facts.extend(named.map(|((name, count), key)| (*name, key.as_str(), (*count).into())));
        facts.extend([
            (
                "backing off after failures",
                "failing",
                queues.failing.into(),
            ),
            (
                "URIs of the longest queue",
                "deepest",
                queues.deepest.into(),
            ),
        ]);
        page.facts(&facts)?;
        page.head(&QUEUES);
        for queue in self.longest()? {
            page.row(&QUEUES, row(queue))?;
        }
        Ok(())
    }

    fn longest(&self) -> Result<Vec<QueueReport>, ControlError> {
        let mut longest: Vec<QueueReport> = Vec::new();
        self.each_queue(|queue| {
            longest.push(queue);
            // Sorts and truncates the list repeatedly, which limits memory use.
            if longest.len() >= PART {
                QueueSort::Size.apply(&mut longest);
                longest.truncate(LONGEST);
            }
            Ok(())
        })?;
        QueueSort::Size.apply(&mut longest);
        longest.truncate(LONGEST);
        Ok(longest)
    }

    pub(super) fn frontier_nonempty(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        page.head(&QUEUES);
        self.each_queue(|queue| page.row(&QUEUES, row(queue)))
    }

    /// Calls `each` with every queue that has URIs, by name.
    fn each_queue(
        &self,
        mut each: impl FnMut(QueueReport) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        let mut after: Option<String> = None;
        loop {
            let part = self
                .frontier()
                .queues(after.as_deref(), PART, Timestamp::now())?;
            let is_last = part.len() < PART;
            for queue in part {
                after = Some(queue.queue.clone());
                if queue.ready + queue.waiting > 0 {
                    each(queue)?;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

fn row(queue: QueueReport) -> Vec<Value> {
    vec![
        queue.queue.into(),
        queue.state.name().into(),
        queue.ready.into(),
        queue.waiting.into(),
        queue.in_process.into(),
        queue.precedence.into(),
        queue.wake.map_or(Value::Null, |wake| json!(wake)),
        queue.finished.into(),
        queue.failed.into(),
    ]
}
