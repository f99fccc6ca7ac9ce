//! Counts of the frontier, made by reading it through: queues by state, and pages of a continuous crawl by freshness. Both counts
//! are repeated while the crawl runs.
//!
//! These figures cannot be updated with each visit, because queues change their state as time passes. Both counts read the store in
//! parts. They pause between two parts, so that they take at most a fiftieth of the time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_frontier::{Overdue, QueueReport, QueueState, SharedFrontier, UriRecord, UriState};
use opilio_uri::Hop;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::transfer::Selection;

/// Queues or records that are read while the frontier is locked.
const PART: usize = 500;
/// Maximum of failing queues that are named.
const FAILING_NAMED_MAX: usize = 5;

/// Latest counts; not set before the first count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Census {
    /// Counts of queues.
    pub queues: Option<QueueCensus>,
    /// Counts of pages; not set in crawls without revisits.
    pub pages: Option<PageCensus>,
}

/// Counts of queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueCensus {
    /// Time of the count.
    pub at: Timestamp,
    /// Queues by state.
    pub states: QueueStates,
    /// Number of queues that back off after failures.
    pub failing: u64,
    /// Names of the first of these queues.
    pub failing_named: Vec<String>,
    /// Number of URIs in the longest queue.
    pub deepest: u64,
    /// Name of the longest queue; empty if there is no queue.
    pub deepest_queue: String,
    /// Number of URIs in all queues.
    pub uris: u64,
}

/// Queues by state; `docs/FRONTIER.md` explains the states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueStates {
    /// Could issue a URI now.
    pub ready: u64,
    /// Have as many URIs in process as they may.
    pub in_process: u64,
    /// Wait for a politeness delay, a back-off, or the due time of a URI.
    pub snoozed: u64,
    /// Wait for other queues of their precedence.
    pub inactive: u64,
    /// Have a precedence at or above the floor.
    pub ineligible: u64,
    /// Have used up a budget or quota, or were retired by an operator.
    pub retired: u64,
    /// Were frozen by an operator.
    pub frozen: u64,
    /// Contain no URI.
    pub exhausted: u64,
}

/// Counts of the pages of a continuous crawl, without prerequisites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PageCensus {
    /// Time of the count.
    pub at: Timestamp,
    /// Pages that have been visited and will be visited again.
    pub visited: u64,
    /// Pages that wait for their first visit.
    pub unvisited: u64,
    /// Share of `visited` in `visited` and `unvisited` together; 1 if both are 0.
    pub coverage: f64,
    /// Estimated share of pages that have not changed since their last visit, among pages visited at least twice; not set if
    /// there is no such page. `docs/METRICS.md` has the formula.
    pub freshness: Option<f64>,
    /// Number of pages visited at least twice, which the estimate is based on.
    pub estimated: u64,
    /// Number of pages whose next visit is due.
    pub due: u64,
    /// Due pages by delay: at most a second, a minute, ten minutes, an hour, six hours, a day, a week, four weeks, and more.
    pub due_by_lateness: Vec<u64>,
    /// Visited pages by age of their last visit, with the same bounds.
    pub by_age: Vec<u64>,
}

/// The last counts, shared by all their readers.
#[derive(Default)]
pub struct LastCensus(Mutex<Census>);

impl LastCensus {
    /// Returns the last counts.
    pub fn get(&self) -> Census {
        self.lock().clone()
    }

    /// Locks the counts, to replace one of them.
    pub fn lock(&self) -> MutexGuard<'_, Census> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueStates {
    /// All states, in the order of reports.
    pub const ALL: [QueueState; 8] = [
        QueueState::Ready,
        QueueState::InProcess,
        QueueState::Snoozed,
        QueueState::Inactive,
        QueueState::Ineligible,
        QueueState::Retired,
        QueueState::Frozen,
        QueueState::Exhausted,
    ];

    fn of(&mut self, state: QueueState) -> &mut u64 {
        match state {
            QueueState::Ready => &mut self.ready,
            QueueState::InProcess => &mut self.in_process,
            QueueState::Snoozed => &mut self.snoozed,
            QueueState::Inactive => &mut self.inactive,
            QueueState::Ineligible => &mut self.ineligible,
            QueueState::Retired => &mut self.retired,
            QueueState::Frozen => &mut self.frozen,
            QueueState::Exhausted => &mut self.exhausted,
        }
    }

    /// Returns each count with the name of its state.
    pub fn named(mut self) -> [(&'static str, u64); 8] {
        Self::ALL.map(|state| (state.name(), *self.of(state)))
    }

    /// Returns the number of queues that hold URIs.
    pub fn nonempty(&self) -> u64 {
        let all: u64 = self.named().iter().map(|(_, count)| count).sum();
        all - self.exhausted
    }
}

impl QueueCensus {
    fn new() -> QueueCensus {
        QueueCensus {
            at: Timestamp::now(),
            states: QueueStates::default(),
            failing: 0,
            failing_named: Vec::new(),
            deepest: 0,
            deepest_queue: String::new(),
            uris: 0,
        }
    }

    fn count(&mut self, queue: QueueReport) {
        *self.states.of(queue.state) += 1;
        let uris = queue.ready + queue.waiting;
        self.uris += uris;
        if queue.failures > 0 && queue.state != QueueState::Exhausted {
            self.failing += 1;
            if self.failing_named.len() < FAILING_NAMED_MAX {
                self.failing_named.push(queue.queue.clone());
            }
        }
        if uris > self.deepest {
            self.deepest = uris;
            self.deepest_queue = queue.queue;
        }
    }
}

/// A count of pages in progress.
struct PageCount {
    census: PageCensus,
    fresh: f64,
}

impl PageCount {
    fn new() -> PageCount {
        PageCount {
            census: PageCensus {
                at: Timestamp::now(),
                visited: 0,
                unvisited: 0,
                coverage: 1.0,
                freshness: None,
                estimated: 0,
                due: 0,
                due_by_lateness: vec![0; Overdue::BOUNDS.len() + 1],
                by_age: vec![0; Overdue::BOUNDS.len() + 1],
            },
            fresh: 0.0,
        }
    }

    fn count(&mut self, record: &UriRecord, now: Timestamp) {
        if record.hop_path.last() == Some(Hop::Prerequisite) {
            return;
        }
        let UriState::Queued { due, .. } = record.state else {
            return;
        };
        let census = &mut self.census;
        if record.visits == 0 {
            census.unvisited += 1;
            return;
        }
        census.visited += 1;
        let last = record.history.iter().find(|past| past.status > 0);
        if let Some(last) = last {
            let age = Duration::try_from(now - last.at).unwrap_or_default();
            census.by_age[class(age)] += 1;
            if let Some(fresh) = fresh(record, last.at, age) {
                census.estimated += 1;
                self.fresh += fresh;
            }
        }
        if let Ok(late) = Duration::try_from(now - due) {
            census.due += 1;
            census.due_by_lateness[class(late)] += 1;
        }
    }

    fn done(mut self) -> PageCensus {
        let census = &mut self.census;
        census.at = Timestamp::now();
        let pages = census.visited + census.unvisited;
        if pages > 0 {
            census.coverage = census.visited as f64 / pages as f64;
        }
        if census.estimated > 0 {
            census.freshness = Some(self.fresh / census.estimated as f64);
        }
        self.census
    }
}

impl PageCount {
    fn of_host(self, is_partial: bool) -> HostPages {
        let census = self.done();
        HostPages {
            visited: census.visited,
            unvisited: census.unvisited,
            due: census.due,
            freshness: census.freshness,
            is_partial,
        }
    }
}

/// Returns the probability that a page has not changed since its last visit; `None` after a single visit.
fn fresh(record: &UriRecord, last: Timestamp, age: Duration) -> Option<f64> {
    let intervals = record.visits.checked_sub(1).filter(|count| *count > 0)?;
    let watched = Duration::try_from(last - record.discovered).ok()?;
    let interval = watched.as_secs_f64() / intervals as f64;
    let changes = record.versions.saturating_sub(1).min(intervals);
    let ages = age.as_secs_f64() / interval;
    (interval > 0.0).then(|| unchanged(intervals, changes, ages))
}

/// Returns the same probability for a page that was found changed after `changes` of `intervals` equal intervals. Its last visit
/// was `ages` intervals ago. Changes are modelled as a Poisson process: e to the power of minus rate times age. The rate is the
/// estimate of Cho and Garcia-Molina (2003) for visits at regular intervals: −ln((n − X + ½) / (n + ½)) for each interval, with n
/// intervals of which X ended with a change.
fn unchanged(intervals: u64, changes: u64, ages: f64) -> f64 {
    let (n, x) = (intervals as f64, changes as f64);
    let rate = -((n - x + 0.5) / (n + 0.5)).ln();
    (-rate * ages).exp()
}

fn class(duration: Duration) -> usize {
    Overdue::BOUNDS.partition_point(|bound| *bound < duration)
}

/// Counts the queues of a job in one pass. Calls `pause` with the time that each part took. Returns `None` if `pause` returns
/// `false`.
pub fn queues(
    frontier: &SharedFrontier,
    mut pause: impl FnMut(Duration) -> bool,
) -> Result<Option<QueueCensus>, opilio_frontier::FrontierError> {
    let mut census = QueueCensus::new();
    let mut after: Option<String> = None;
    loop {
        let began = Instant::now();
        let part = frontier
            .lock()
            .queues(after.as_deref(), PART, Timestamp::now())?;
        let is_last = part.len() < PART;
        for queue in part {
            after = Some(queue.queue.clone());
            census.count(queue);
        }
        if is_last {
            census.at = Timestamp::now();
            return Ok(Some(census));
        }
        if !pause(began.elapsed()) {
            return Ok(None);
        }
    }
}

/// Counts the pages of a job in one pass. Calls `pause` with the time that each part took. Returns `None` if `pause` returns
/// `false`.
pub fn pages(
    frontier: &SharedFrontier,
    mut pause: impl FnMut(Duration) -> bool,
) -> Result<Option<PageCensus>, opilio_frontier::FrontierError> {
    let mut count = PageCount::new();
    let mut after: Option<String> = None;
    loop {
        let began = Instant::now();
        let part = frontier.lock().records_after(after.as_deref(), PART)?;
        let is_last = part.len() < PART;
        let now = Timestamp::now();
        for (key, record) in part {
            count.count(&record, now);
            after = Some(key);
        }
        if is_last {
            return Ok(Some(count.done()));
        }
        if !pause(began.elapsed()) {
            return Ok(None);
        }
    }
}

/// Counts of the pages of one host, without prerequisites. The fields mean the same as in [`PageCensus`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostPages {
    /// Pages that have been visited and will be visited again.
    pub visited: u64,
    /// Pages that wait for their first visit.
    pub unvisited: u64,
    /// Number of pages whose next visit is due.
    pub due: u64,
    /// Estimated share of pages that have not changed since their last visit; not set without a page visited at least twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<f64>,
    /// `true` if the host has more URIs than were counted: the counts are of its first 2,000 URIs.
    #[serde(default)]
    pub is_partial: bool,
}

/// Maximum number of a host's URIs that are counted.
const HOST_URIS_MAX: usize = 2_000;

/// Counts the pages of a host. The frontier is locked for each part of the count, not for all of it.
pub fn host_pages(
    frontier: &SharedFrontier,
    host: &str,
) -> Result<HostPages, opilio_frontier::FrontierError> {
    let mut count = PageCount::new();
    let Some(selection) = Selection::default().with_host(host) else {
        return Ok(HostPages::default());
    };
    // In a key, the name of the host is followed by a port or the end of the authority. Their characters sort before those of
    // subdomains.
    let prefix = selection.key_prefix();
    let (ports, own) = (format!("{prefix}#"), format!("{prefix})"));
    let mut after = format!("{prefix}\"");
    let mut left = HOST_URIS_MAX;
    loop {
        let part = frontier
            .lock()
            .records_after(Some(&after), PART.min(left + 1))?;
        let is_last = part.len() < PART.min(left + 1);
        let now = Timestamp::now();
        for (key, record) in part {
            if !key.starts_with(&ports) && !key.starts_with(&own) {
                return Ok(count.of_host(false));
            }
            if left == 0 {
                return Ok(count.of_host(true));
            }
            left -= 1;
            count.count(&record, now);
            after = key;
        }
        if is_last {
            return Ok(count.of_host(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_is_estimated_from_past_changes() {
        for (intervals, changes, ages, expected) in [
            // Never changed, so not changed now.
            (10, 0, 5.0, 1.0),
            // The formula by hand: 0.5 / 1.5, 1.5 / 2.5, and its square after two intervals.
            (1, 1, 1.0, 1.0 / 3.0),
            (2, 1, 1.0, 0.6),
            (2, 1, 2.0, 0.36),
            // Just visited.
            (5, 5, 0.0, 1.0),
        ] {
            let found = unchanged(intervals, changes, ages);
            let is_near = (found - expected).abs() < 1e-9;
            assert!(is_near, "{changes} of {intervals}, {ages}: {found}");
        }
    }
}
