//! Queues as reports show them: each with its state, which is computed from its record, its URIs in process and its server group.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    FrontierConfig, QueueSettings, RetiredBy, Tally,
    groups::GroupHold,
    in_process::BusyQueue,
    instant::{self, Millis},
    queue::{QueueHold, QueueRecord},
};

/// A queue as a report shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Its state at the time of the report.
    pub state: QueueState,
    /// `true` if the operator has frozen it. URIs of it may still be in process.
    pub is_frozen: bool,
    /// The cause of its retirement, if it is retired.
    pub retired_by: Option<RetiredBy>,
    /// URIs that are ready, those in process included.
    pub ready: u64,
    /// URIs that are not yet due.
    pub waiting: u64,
    /// URIs in process.
    pub in_process: u64,
    /// Its precedence: queues of a lower number go first.
    pub precedence: u8,
    /// The precedence of its best ready URI; `None` if no URI is ready.
    pub best: Option<u8>,
    /// Time at which politeness, back-off and bandwidth let it issue again; `None` before its first fetch.
    pub next_ready: Option<Timestamp>,
    /// Time at which it can issue a URI. `None` if it has none to issue, or stands back for URIs of its group in process.
    pub wake: Option<Timestamp>,
    /// `true` if its server group waits, or has as many URIs in process as allowed.
    pub stands_back: bool,
    /// Times in a row that it has backed off as a whole, without a success since.
    pub failures: u32,
    /// Fetch status of the failure that it backs off from; `None` if it does not back off.
    pub last_failure: Option<i32>,
    /// The crawl-delay of its robots.txt, as written there.
    pub crawl_delay: Option<Duration>,
    /// The server group that limits it.
    pub group: Option<String>,
    /// Visits completed, whatever their outcome.
    pub finished: u64,
    /// Of these, URIs that could not be fetched, without prerequisites.
    pub failed: u64,
    /// Counts of its documents, bytes and time.
    pub tally: Tally,
    /// Cost so far.
    pub spent: u64,
    /// Its settings.
    pub settings: QueueSettings,
}

/// The state of a queue.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum QueueState {
    /// The queue could issue a URI now.
    Ready,
    /// As many of its URIs are in process as allowed, or as it has.
    InProcess,
    /// The queue or its server group waits, the queue backs off, or its first URI is not yet due.
    Snoozed,
    /// The queue could issue a URI, but others of its precedence go first: it has spent its session budget, or has not had a
    /// session.
    Inactive,
    /// Its precedence is at the floor or past it.
    Ineligible,
    /// Its budget or quota is spent, or the operator retired it.
    Retired,
    /// The operator froze it.
    Frozen,
    /// The queue holds no URI.
    Exhausted,
}

impl QueueState {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::InProcess => "in-process",
            Self::Snoozed => "snoozed",
            Self::Inactive => "inactive",
            Self::Ineligible => "ineligible",
            Self::Retired => "retired",
            Self::Frozen => "frozen",
            Self::Exhausted => "exhausted",
        }
    }
}

impl QueueReport {
    pub(crate) fn new(
        queue: &str,
        record: &QueueRecord,
        busy: Option<&BusyQueue>,
        group: Option<GroupHold>,
        config: &FrontierConfig,
        now: Timestamp,
    ) -> Self {
        let held = record.hold(config);
        let is_ineligible = config
            .precedence_floor
            .is_some_and(|floor| record.precedence >= floor);
        let state = match (held, record.order_key) {
            _ if busy.is_some_and(|busy| busy.is_full) => QueueState::InProcess,
            _ if record.ready.is_empty() && record.waiting == 0 => QueueState::Exhausted,
            (Some(QueueHold::Frozen), _) => QueueState::Frozen,
            (Some(QueueHold::Retired(_)), _) => QueueState::Retired,
            (None, None) if busy.is_some() => QueueState::InProcess,
            // The first call of `next` puts back the URIs that were in process when the store was closed.
            (None, None) => QueueState::Ready,
            (None, Some(_)) if is_ineligible => QueueState::Ineligible,
            (None, Some(order_key)) if order_key.wake > instant::floor(now) => QueueState::Snoozed,
            (None, Some(_)) if group.is_some() => QueueState::Snoozed,
            (None, Some(order_key)) if order_key.is_inactive => QueueState::Inactive,
            (None, Some(_)) => QueueState::Ready,
        };
        let wake = match (record.order_key, group) {
            (Some(order_key), Some(GroupHold::Waits(at))) => Some(order_key.wake.max(at)),
            // The time depends on URIs in process.
            (_, Some(GroupHold::Full)) => None,
            (order_key, _) => order_key.map(|order_key| order_key.wake),
        };
        let next_ready = record.next_ready(config);
        Self {
            queue: queue.to_owned(),
            state,
            is_frozen: record.is_frozen,
            retired_by: match held {
                Some(QueueHold::Retired(by)) => Some(by),
                _ => None,
            },
            ready: record.ready_count(),
            waiting: record.waiting,
            in_process: busy.map_or(0, |busy| busy.slots.len() as u64),
            precedence: record.precedence,
            best: record.ready.first().map(|(precedence, _)| *precedence),
            next_ready: (next_ready != Millis::MIN).then(|| instant::timestamp(next_ready)),
            wake: wake.map(instant::timestamp),
            stands_back: record.order_key.is_some() && group.is_some(),
            failures: record.failures,
            last_failure: Some(record.last_failure)
                .filter(|status| *status != 0 && record.failures > 0),
            crawl_delay: record.crawl_delay,
            group: record.group(config).map(str::to_owned),
            finished: record.finished,
            failed: record.failed,
            tally: record.tally,
            spent: record.spent,
            settings: record.settings(config).clone(),
        }
    }
}
