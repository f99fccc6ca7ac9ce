//! Dispatcher of a crawl: passes URIs that the frontier issues to idle workers, until there is a reason to end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{Issue, Next};
use tokio::task::JoinSet;

use super::Crawl;
use super::workers::Workers;
use crate::context::CrawlContext;
use crate::error::Halt;
use crate::live::Flight;
use crate::membership::JobMembership;
use crate::visit::CrawlVisit;
use opilio_job::End;
use opilio_job::job_log::JobLog;

/// Maximum pause before the frontier is queried again. A clock that is set back delays the crawl by no more than this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Time for which fetches in flight may continue after the crawl's time limit. Nearly all fetches end within this time, and others
/// may rely on the time limit because they need the machine.
const TIME_LIMIT_GRACE: Duration = Duration::from_secs(5);

/// Longest wait of a node for its next URI during which it keeps its shares of limits.
const SHARE_KEPT_MAX: Duration = Duration::from_secs(5);

impl Crawl {
    /// Passes issued URIs to workers until the end, then waits for the busy workers.
    pub(super) async fn dispatch(&self) -> Result<End, Halt> {
        let mut stop = self.stop.reason_receiver();
        let mut at_work: JoinSet<(usize, Result<(), Halt>)> = JoinSet::new();
        let mut workers = Workers::new(self.context.current().workers);
        let throttle = self.context.network.fetchers.base().throttle();
        let mut halted = None;
        let mut paused = Paused::No;
        let end = loop {
            while let Some(done) = at_work.try_join_next() {
                halted = halted.or(returned(done, &mut workers));
            }
            let capacity = self.capacity();
            workers.set_count(capacity);
            if halted.is_some() {
                break End::Stopped;
            }
            let stop_reason = self.stop.reason();
            if let Some(end) = stop_reason.or_else(|| self.limit_reached()) {
                // The crawl shows that it is ending while the last fetches finish.
                self.stop.end(end.clone());
                break end;
            }
            let membership = self.context.membership.as_deref();
            let is_held = self.live.observe_pause() || membership.is_some_and(|it| !it.has_part());
            paused = paused.then(is_held, at_work.is_empty(), &self.log);
            let are_busy = workers.are_busy() || at_work.len() >= capacity;
            let is_at_share = !are_busy && at_work.len() >= throttle.connections_max();
            if is_at_share && !is_held {
                self.live.wants_connections();
            }
            let has_room = self.context.may_issue(at_work.len());
            let is_full = are_busy || is_at_share || !has_room;
            // A node of a shared crawl waits for its share of a limit.
            let lacks_share = membership.is_some() && !has_room;
            // These are read before the frontier is queried. Otherwise its answer could lack queues that are resolved, or URIs that
            // are queued or delivered, between the query and the reading.
            let are_queues_resolved = self.live.are_queues_resolved();
            let queue_commands = self.live.queue_commands_if_idle();
            let delivered = membership.map_or(0, JobMembership::delivered);
            let next = match is_held || is_full {
                true if lacks_share && !is_held && at_work.is_empty() => self.next_if_empty()?,
                true => Next::InProcess,
                false => self.context.frontier().next(Timestamp::now())?,
            };
            if at_work.is_empty() && is_far(&next) {
                self.release_shares();
            }
            self.live.wait_until(match (&next, is_held || is_full) {
                (Next::WaitUntil(at), false) => Some(*at),
                (Next::Empty, false) => Some(Timestamp::MAX),
                _ => None,
            });
            let pause = match next {
                Next::Issue(issue) => {
                    if let Some(membership) = membership {
                        membership.record_work();
                    }
                    if let Some(worker) = workers.take() {
                        let flight = self.live.begin(issue.ticket, issue.uri.as_str(), worker);
                        at_work.spawn(work(self.context.clone(), issue, worker, flight));
                    }
                    continue;
                }
                // Queues that the operator froze, or that are below a floor, will continue at some time. Retired queues are
                // finished.
                Next::Empty
                    if are_queues_resolved
                        && !self.is_held_back()?
                        && is_finished_elsewhere(membership, delivered)
                        && self.live.try_end(queue_commands) =>
                {
                    break End::Finished;
                }
                Next::Empty => PAUSE_MAX,
                Next::InProcess if at_work.is_empty() && !is_held && !lacks_share => {
                    break Err(Halt::NobodyAtWork)?;
                }
                Next::InProcess => PAUSE_MAX,
                Next::WaitUntil(at) => {
                    Duration::try_from(at - Timestamp::now()).unwrap_or_default()
                }
            };
            self.context.nothing_issued(at_work.len());
            // The end of a worker's task wakes the dispatcher.
            tokio::select! {
                Some(done) = at_work.join_next() => halted = halted.or(returned(done, &mut workers)),
                () = tokio::time::sleep(pause.min(PAUSE_MAX).min(self.time_left())) => {}
                _ = stop.changed() => {}
                () = self.live.dispatcher_woken() => {}
            }
        };
        let by_limit = self.time_left().saturating_add(TIME_LIMIT_GRACE);
        let grace = self.context.profile.settings().fetch.stop_grace;
        let grace = grace.map_or(by_limit, |grace| grace.min(by_limit));
        let mut grace = pin!(tokio::time::sleep(grace));
        let mut waits = true;
        loop {
            // Pages that are still being rendered may use places under the limits that finished documents have released.
            self.context.nothing_issued(at_work.len());
            tokio::select! {
                done = at_work.join_next() => match done {
                    Some(done) => halted = halted.or(returned(done, &mut workers)),
                    None => break,
                },
                () = &mut grace, if waits => {
                    waits = false;
                    self.stop.stop_without_waiting();
                }
            }
        }
        halted.map_or(Ok(end), Err)
    }

    /// Returns the maximum of URIs in process: one for each worker, and one for each slow fetch, which does not count as a busy
    /// worker.
    fn capacity(&self) -> usize {
        let profile = self.context.current();
        let slow_max = profile.settings().fetch.slow_fetches;
        profile.workers + self.live.slow().min(slow_max)
    }

    /// Returns the frontier's answer if the frontier has no URI to issue. A node needs no share of a limit to find out that it is
    /// at rest.
    fn next_if_empty(&self) -> Result<Next, Halt> {
        let mut frontier = self.context.frontier();
        match frontier.statistics().queued {
            0 => Ok(frontier.next(Timestamp::now())?),
            _ => Ok(Next::InProcess),
        }
    }

    /// Returns `true` if operator commands keep the crawl from finishing: frozen queues, and queues below a floor that is not the
    /// profile's. Queues below the profile's own floor are not part of the crawl.
    fn is_held_back(&self) -> Result<bool, Halt> {
        let usual = self.context.current().frontier.precedence_floor;
        let frontier = self.context.frontier();
        Ok(frontier.statistics().queued > 0
            && (frontier.has_frozen()? || frontier.has_below_floor(usual)?))
    }
}

/// Returns `true` if no URI is due for so long that other nodes should get this node's shares of limits.
fn is_far(next: &Next) -> bool {
    match next {
        Next::Empty => true,
        Next::WaitUntil(at) => {
            let wait = Duration::try_from(*at - Timestamp::now()).unwrap_or_default();
            wait > SHARE_KEPT_MAX
        }
        Next::Issue(_) | Next::InProcess => false,
    }
}

/// Records that this process has nothing left to do. Returns `true` if the other nodes of a shared job have nothing left to do
/// either.
fn is_finished_elsewhere(membership: Option<&JobMembership>, delivered: u64) -> bool {
    membership.is_none_or(|membership| {
        membership.record_rest(delivered);
        membership.is_finished()
    })
}

async fn work(
    context: Arc<CrawlContext>,
    issue: Box<Issue>,
    worker: usize,
    flight: Flight,
) -> (usize, Result<(), Halt>) {
    let flight = Arc::new(flight);
    let done = CrawlVisit::new(&context, *issue, &flight, worker)
        .run()
        .await;
    (worker, done)
}

/// Marks a worker as idle again. A task that panicked is a defect of Opilio. Its URI stays in process and is put back at the next
/// start. The crawl stops, because the state of the worker is unknown.
fn returned(
    done: Result<(usize, Result<(), Halt>), tokio::task::JoinError>,
    workers: &mut Workers,
) -> Option<Halt> {
    match done {
        Ok((worker, result)) => {
            workers.give_back(worker);
            result.err().filter(|halt| !matches!(halt, Halt::Stopped))
        }
        Err(panic) => Some(Halt::Worker(panic.to_string())),
    }
}

/// State of a pause, for the job's log.
#[derive(Clone, Copy, PartialEq)]
enum Paused {
    No,
    Pausing,
    Yes,
}

impl Paused {
    fn then(self, is_held: bool, is_idle: bool, log: &JobLog) -> Paused {
        let next = match (is_held, is_idle) {
            (false, _) => Paused::No,
            (true, false) => Paused::Pausing,
            (true, true) => Paused::Yes,
        };
        match (self, next) {
            (before, Paused::Yes) if before != Paused::Yes => {
                log.crawl("pause", "paused; no fetches in flight");
            }
            (before, Paused::No) if before != Paused::No => log.crawl("resume", "resumed"),
            _ => {}
        }
        next
    }
}
