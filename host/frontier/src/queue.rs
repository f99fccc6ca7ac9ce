//! A queue: the URIs that share one server's patience. Its record is durable; its state is computed, never driven.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Politeness, instant, instant::Millis};

/// What the store keeps of a queue. Idle queues cost this much disk and no memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    /// URIs that are ready, in process ones included.
    pub(crate) ready: u64,
    /// URIs that are not yet due.
    pub(crate) waiting: u64,
    /// None of those that wait is due before this.
    pub(crate) first_due: Millis,
    /// Queues of a lower number go first.
    pub(crate) precedence: u8,
    /// When it was, or will be, able to give a URI; its place among the queues. None: it has none to give.
    pub(crate) turn: Option<Turn>,
    /// When each of its slots may issue again. One slot for now: valence above 1 adds more.
    pub(crate) slots: Vec<Millis>,
    /// Retries in a row.
    pub(crate) failures: u32,
    /// From its robots.txt, as written there.
    pub(crate) crawl_delay: Option<Duration>,
    /// Its own, instead of the configuration's.
    pub(crate) politeness: Option<Politeness>,
    /// URIs it has issued that were finished, however they ended.
    pub(crate) finished: u64,
    /// Of these, successes.
    pub(crate) succeeded: u64,
}

/// A queue's place in the line of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) wake: Millis,
    /// Breaks ties: who came first goes first.
    pub(crate) arrival: u64,
}

impl QueueRecord {
    pub(crate) fn new(precedence: u8) -> Self {
        Self {
            precedence,
            slots: vec![Millis::MIN],
            first_due: Millis::MAX,
            ..Self::default()
        }
    }

    /// When the sole slot may issue again.
    pub(crate) fn next_ready(&self) -> Millis {
        self.slots.first().copied().unwrap_or(Millis::MIN)
    }

    pub(crate) fn set_next_ready(&mut self, at: Millis) {
        match self.slots.first_mut() {
            Some(slot) => *slot = at,
            None => self.slots.push(at),
        }
    }
}

/// A queue as a report shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Computed for the time of the report.
    pub state: QueueState,
    /// URIs that are ready, one in process included.
    pub ready: u64,
    /// URIs that are not yet due.
    pub waiting: u64,
    /// Queues of a lower number go first.
    pub precedence: u8,
    /// Politeness and back-off end then; none before its first fetch.
    pub next_ready: Option<Timestamp>,
    /// When it can give a URI; none when it has none to give.
    pub wake: Option<Timestamp>,
    /// Retries in a row.
    pub failures: u32,
    /// From its robots.txt, as written there.
    pub crawl_delay: Option<Duration>,
    /// Turns completed, however they ended.
    pub finished: u64,
    /// Of these, successes.
    pub succeeded: u64,
}

/// What a queue is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueState {
    /// It could give a URI now.
    Ready,
    /// One of its URIs is being fetched.
    InProcess,
    /// It rests, backs off, or its first URI is not yet due.
    Snoozed,
    /// It holds no URI.
    Exhausted,
}

impl QueueReport {
    pub(crate) fn new(queue: &str, record: &QueueRecord, in_process: bool, now: Timestamp) -> Self {
        let state = match record.turn {
            _ if in_process => QueueState::InProcess,
            None => QueueState::Exhausted,
            Some(turn) if turn.wake <= instant::floor(now) => QueueState::Ready,
            Some(_) => QueueState::Snoozed,
        };
        let next_ready = record.next_ready();
        Self {
            queue: queue.to_owned(),
            state,
            ready: record.ready,
            waiting: record.waiting,
            precedence: record.precedence,
            next_ready: (next_ready != Millis::MIN).then(|| instant::timestamp(next_ready)),
            wake: record.turn.map(|turn| instant::timestamp(turn.wake)),
            failures: record.failures,
            crawl_delay: record.crawl_delay,
            finished: record.finished,
            succeeded: record.succeeded,
        }
    }
}
