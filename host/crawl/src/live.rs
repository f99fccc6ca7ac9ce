//! State of a running crawl: its pause, the URIs in flight, and the signal that wakes the dispatcher.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::{ExchangeProgress, ServerTime, ThrottleUsage};
use opilio_frontier::Ticket;
use opilio_job::job_state::JobState;
use opilio_job::share::ShareTaken;
use opilio_visit::Step;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// URI in process.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FetchInFlight {
    /// The URI.
    pub uri: String,
    /// Time at which it was issued.
    pub since: Timestamp,
    /// Number of the worker, as in `crawl.log`.
    #[serde(default)]
    pub worker: usize,
    /// Current step of the visit.
    #[serde(default)]
    pub step: Step,
    /// Time at which the step began.
    #[serde(default)]
    pub step_since: Timestamp,
}

/// State shared by the dispatcher, the workers and operator commands.
#[derive(Default)]
pub struct Live {
    state: Mutex<State>,
    /// Wakes the dispatcher after a change that affects it.
    dispatcher: Notify,
    /// Locked by a command while it changes settings.
    changing: Mutex<()>,
}

#[derive(Default)]
struct State {
    is_pause_requested: bool,
    /// `true` if an operator has paused a crawl that several nodes share, on all of them.
    is_paused_everywhere: bool,
    /// `true` if the dispatcher has stopped issuing URIs because of a pause.
    has_seen_pause: bool,
    /// `true` if the settings of the present profile have been applied to every queue.
    are_queues_resolved: bool,
    in_flight: HashMap<Ticket, InFlight>,
    /// Number of fetches in flight that wait for slow servers.
    slow: usize,
    /// Time before which no URI is due, as the frontier last reported.
    waits_until: Option<Timestamp>,
    /// Number of times that a URI could not be issued because all permitted connections were in use.
    waited_for_connections: u64,
    /// Number of commands that are changing the queues now.
    queue_commands: usize,
    /// Number of such commands that have begun since the start.
    queue_commands_begun: u64,
    /// `true` after the end of the crawl, when nothing was left to fetch. Then no command may change the queues any more.
    is_over: bool,
}

/// Guard of a command that changes the queues. While it exists, the crawl does not end for lack of URIs.
pub struct QueueCommandGuard(Arc<Live>);

/// Number of [`QueueCommandGuard`]s that had been made so far, taken at a time when none existed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueCommandsBegun(u64);

struct InFlight {
    uri: String,
    worker: usize,
    since: Timestamp,
    step: Step,
    step_since: Timestamp,
    stage: Stage,
    cancelled: Arc<Notify>,
}

/// Stage of a URI in flight, with respect to cancelling.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The request was not sent yet, or the response is being received.
    Fetching,
    /// An operator has cancelled the fetch.
    Cancelled,
    /// The response is complete and is being processed.
    Fetched,
}

/// URI in flight, from its issue to its outcome.
pub(crate) struct Flight {
    live: Arc<Live>,
    ticket: Ticket,
    cancelled: Arc<Notify>,
    received: ExchangeProgress,
}

/// Start of the period in which a fetch must receive data. Otherwise it counts as slow.
struct Window {
    time: ServerTime,
    /// Bytes received before the period.
    bytes: u64,
}

/// Guard of a fetch that counts as slow until this is dropped.
struct SlowFetch<'a>(&'a Live);

/// Rate in bytes per second. A fetch with a lower rate over a period counts as slow. At this rate, a page of common size takes a
/// minute.
const SLOW_BYTES_PER_SECOND: f64 = 16.0 * 1024.0;

/// Result of a request to cancel a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The fetch will be cancelled.
    Requested,
    /// The response is already complete and is being processed.
    TooLate,
    /// The URI is not in process.
    NotInProcess,
}

impl Drop for QueueCommandGuard {
    fn drop(&mut self) {
        self.0.state().queue_commands -= 1;
        // The dispatcher may have decided on an older state of the queues.
        self.0.wake_dispatcher();
    }
}

impl Live {
    /// Waits until no other command changes settings. Other commands wait while the guard is held.
    pub fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a URI in flight, with the worker's number.
    pub(crate) fn begin(self: &Arc<Self>, ticket: Ticket, uri: &str, worker: usize) -> Flight {
        let cancelled = Arc::new(Notify::new());
        let now = Timestamp::now();
        self.state().in_flight.insert(
            ticket,
            InFlight {
                uri: uri.to_owned(),
                worker,
                since: now,
                step: Step::Prepare,
                step_since: now,
                stage: Stage::Fetching,
                cancelled: cancelled.clone(),
            },
        );
        Flight {
            live: self.clone(),
            ticket,
            cancelled,
            received: ExchangeProgress::default(),
        }
    }

    /// Returns the number of slow fetches.
    pub fn slow(&self) -> usize {
        self.state().slow
    }

    /// Marks a requested pause as seen by the dispatcher, and returns `true` if there is one. The dispatcher must not issue URIs
    /// then. Until it has seen the pause, the crawl does not count as paused, because it may just be issuing a URI.
    pub(crate) fn observe_pause(&self) -> bool {
        let mut state = self.state();
        state.has_seen_pause = state.is_pause_requested || state.is_paused_everywhere;
        state.has_seen_pause
    }

    /// Records that the settings of the profile have been applied to every queue. Retired queues may be active again.
    pub(crate) fn queues_resolved(&self) {
        self.state().are_queues_resolved = true;
        self.wake_dispatcher();
    }

    /// Returns `true` if the settings of the profile have been applied to every queue. Until then, the crawl does not end, even if
    /// the frontier issues nothing.
    pub(crate) fn are_queues_resolved(&self) -> bool {
        self.state().are_queues_resolved
    }

    /// Returns a guard for a command that may change the queues; `None` if the crawl is over.
    pub fn begin_queue_command(self: &Arc<Self>) -> Option<QueueCommandGuard> {
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        state.queue_commands += 1;
        state.queue_commands_begun += 1;
        Some(QueueCommandGuard(self.clone()))
    }

    /// Returns the number of guards so far if no [`QueueCommandGuard`] exists, for [`Live::try_end`]. It must be called before
    /// the frontier is queried.
    pub(crate) fn queue_commands_if_idle(&self) -> Option<QueueCommandsBegun> {
        let state = self.state();
        (state.queue_commands == 0).then_some(QueueCommandsBegun(state.queue_commands_begun))
    }

    /// Marks the crawl as over, unless a [`QueueCommandGuard`] exists, existed at `before`, or has begun since. Returns `true` if
    /// the crawl is over. Call it after the frontier has reported that nothing is left. After the end no [`QueueCommandGuard`] is
    /// given out.
    pub(crate) fn try_end(&self, before: Option<QueueCommandsBegun>) -> bool {
        let mut state = self.state();
        state.is_over |= state.queue_commands == 0
            && before == Some(QueueCommandsBegun(state.queue_commands_begun));
        state.is_over
    }

    /// Records the time at which the frontier issues the next URI; `None` if it issues one now, or waits for URIs in process.
    pub(crate) fn wait_until(&self, at: Option<Timestamp>) {
        self.state().waits_until = at;
    }

    /// Returns the time before which no URI is due.
    pub(crate) fn waits_until(&self) -> Option<Timestamp> {
        self.state().waits_until
    }

    /// Records that workers are idle only because all permitted connections are in use.
    pub(crate) fn wants_connections(&self) {
        self.state().waited_for_connections += 1;
    }

    /// Returns the crawl's use of its share of bandwidth and connections.
    pub fn taken(&self, taken: ThrottleUsage) -> ShareTaken {
        let state = self.state();
        ShareTaken {
            bytes: taken.bytes,
            waited_for_bytes: taken.waits,
            connections: taken.connections.max(state.in_flight.len()) as u64,
            waited_for_connections: state.waited_for_connections,
        }
    }

    /// Wakes the dispatcher after a change that affects it.
    pub fn wake_dispatcher(&self) {
        self.dispatcher.notify_one();
    }

    /// Waits for a call of [`Self::wake_dispatcher`].
    pub(crate) async fn dispatcher_woken(&self) {
        self.dispatcher.notified().await;
    }

    /// Requests a pause, or the end of a pause. Returns `false` if it was requested already.
    pub fn pause(&self, is_pause_requested: bool) -> bool {
        let before = std::mem::replace(&mut self.state().is_pause_requested, is_pause_requested);
        self.wake_dispatcher();
        before != is_pause_requested
    }

    /// Requests a pause of all nodes of a shared crawl, or the end of this pause. A pause of this node alone is not changed.
    pub fn pause_everywhere(&self, is_paused: bool) {
        self.state().is_paused_everywhere = is_paused;
        self.wake_dispatcher();
    }

    /// Returns `true` if an operator has paused a crawl that several nodes share, on all of them.
    pub(crate) fn is_paused_everywhere(&self) -> bool {
        self.state().is_paused_everywhere
    }

    /// Returns the state of the crawl, except for a stop that was requested: running, pausing or paused.
    pub fn crawl_state(&self) -> JobState {
        let state = self.state();
        let is_pause_requested = state.is_pause_requested || state.is_paused_everywhere;
        match (is_pause_requested, state.has_seen_pause) {
            (false, _) => JobState::Running,
            (true, true) if state.in_flight.is_empty() => JobState::Paused,
            (true, _) => JobState::Pausing,
        }
    }

    /// Returns the URIs in flight, the oldest first.
    pub fn in_flight(&self, max: usize) -> Vec<FetchInFlight> {
        let state = self.state();
        let mut all: Vec<&InFlight> = state.in_flight.values().collect();
        all.sort_by_key(|flight| flight.since);
        let some = all.into_iter().take(max);
        some.map(|flight| FetchInFlight {
            uri: flight.uri.clone(),
            since: flight.since,
            worker: flight.worker,
            step: flight.step,
            step_since: flight.step_since,
        })
        .collect()
    }

    /// Cancels the fetch of a URI.
    pub fn cancel(&self, uri: &str) -> Cancelled {
        let mut state = self.state();
        let mut flights = state.in_flight.values_mut();
        let Some(flight) = flights.find(|flight| flight.uri == uri) else {
            return Cancelled::NotInProcess;
        };
        if flight.stage == Stage::Fetched {
            return Cancelled::TooLate;
        }
        flight.stage = Stage::Cancelled;
        flight.cancelled.notify_one();
        Cancelled::Requested
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Sets the present step of the visit.
    pub(crate) fn step(&self, step: Step) {
        if let Some(flight) = self.live.state().in_flight.get_mut(&self.ticket) {
            flight.step = step;
            flight.step_since = Timestamp::now();
        }
    }

    /// Returns the counter of received bytes, for [`Self::waiting`].
    pub(crate) fn received(&self) -> ExchangeProgress {
        self.received.clone()
    }

    /// Waits for a server. A fetch that receives little for `slow_after` counts as slow from then on, so that the dispatcher starts
    /// another fetch in addition. Time in which the crawl itself throttled the fetch does not count, because even a fast server
    /// delivers little then.
    pub(crate) async fn waiting<T>(
        &self,
        slow_after: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(slow_after) = slow_after else {
            return work.await;
        };
        // Without a minimum, repeatedly throttled fetches would have ever shorter periods.
        let least_pause = slow_after / 8;
        let mut work = std::pin::pin!(work);
        let mut window = Window::begin(&self.received);
        loop {
            let left = slow_after.saturating_sub(window.time.elapsed());
            tokio::select! {
                // The timer is polled first. Otherwise, work that is always ready would use up the task's budget before the timer
                // is polled.
                biased;
                () = tokio::time::sleep(left.max(least_pause)) => {}
                done = &mut work => return done,
            }
            let time = window.time.elapsed();
            if time < slow_after {
                continue;
            }
            let came = self.received.bytes() - window.bytes;
            if (came as f64) < SLOW_BYTES_PER_SECOND * time.as_secs_f64() {
                break;
            }
            window = Window::begin(&self.received);
        }
        self.aside(work).await
    }

    /// Waits without occupying a worker, for instance for a browser.
    pub(crate) async fn aside<T>(&self, work: impl Future<Output = T>) -> T {
        let _slow = SlowFetch::new(&self.live);
        work.await
    }

    /// Runs the fetch unless an operator cancels it. Returns `None` if it was cancelled. Afterwards the fetch cannot be cancelled
    /// any more.
    pub(crate) async fn unless_cancelled<T>(&self, fetch: impl Future<Output = T>) -> Option<T> {
        let fetched = tokio::select! {
            biased;
            () = self.cancelled.notified() => return None,
            fetched = fetch => fetched,
        };
        let mut state = self.live.state();
        let stage = &mut state.in_flight.get_mut(&self.ticket)?.stage;
        if *stage == Stage::Cancelled {
            return None;
        }
        *stage = Stage::Fetched;
        Some(fetched)
    }
}

impl Window {
    fn begin(received: &ExchangeProgress) -> Window {
        Window {
            time: received.server_time(),
            bytes: received.bytes(),
        }
    }
}

impl<'a> SlowFetch<'a> {
    fn new(live: &'a Live) -> Self {
        live.state().slow += 1;
        live.wake_dispatcher();
        SlowFetch(live)
    }
}

impl Drop for SlowFetch<'_> {
    fn drop(&mut self) {
        self.0.state().slow -= 1;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.live.state().in_flight.remove(&self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use opilio_frontier::{Candidate, Frontier, FrontierConfig, Next};
    use opilio_uri::{HopPath, Uri};

    use super::*;

    #[test]
    fn a_pause_of_all_nodes_and_a_pause_of_this_node_are_independent() {
        let live = Live::default();
        live.pause_everywhere(true);
        assert!(live.pause(true) && live.observe_pause() && live.is_paused_everywhere());
        live.pause_everywhere(false);
        assert!(live.observe_pause() && live.pause(false) && !live.observe_pause());
    }

    #[test]
    fn a_crawl_does_not_end_if_a_command_may_have_queued_uris() {
        let live = Arc::new(Live::default());
        // The command runs when the frontier is queried, and still after the answer.
        let command = live.begin_queue_command().unwrap();
        let before = live.queue_commands_if_idle();
        assert!(!live.try_end(before));
        // The command has ended before the answer.
        drop(command);
        assert!(!live.try_end(before));
        // The command begins and ends before the answer.
        let before = live.queue_commands_if_idle();
        drop(live.begin_queue_command());
        assert!(!live.try_end(before));

        assert!(live.try_end(live.queue_commands_if_idle()));
        assert!(live.begin_queue_command().is_none());
    }

    /// Returns a ticket. Only frontiers make tickets.
    fn ticket() -> Ticket {
        let home = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(home.path(), FrontierConfig::default()).unwrap();
        let uri = Uri::parse("http://a.org/").unwrap();
        let candidate = Candidate::new(uri, HopPath::new(), opilio_frontier::Strategy::Snapshot);
        let now = Timestamp::now();
        frontier.schedule(vec![candidate], now).unwrap();
        match frontier.next(now).unwrap() {
            Next::Issue(issue) => issue.ticket,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_fetch_can_be_cancelled_only_before_its_response_is_complete() {
        let live = Arc::new(Live::default());
        let uri = "http://a.org/";
        assert_eq!(live.cancel(uri), Cancelled::NotInProcess);
        let ticket = ticket();

        let flight = live.begin(ticket, uri, 1);
        assert_eq!(live.cancel("http://b.org/"), Cancelled::NotInProcess);
        assert_eq!(flight.unless_cancelled(async { 7 }).await, Some(7));
        assert_eq!(live.cancel(uri), Cancelled::TooLate);
        drop(flight);
        assert_eq!(live.cancel(uri), Cancelled::NotInProcess);

        let flight = live.begin(ticket, uri, 1);
        assert_eq!(live.cancel(uri), Cancelled::Requested);
        let never = std::future::pending::<()>();
        assert_eq!(flight.unless_cancelled(never).await, None);
    }

    #[tokio::test]
    async fn a_fetch_that_receives_little_counts_as_slow_until_it_ends() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "http://a.org/", 1);
        let soon = Some(Duration::from_millis(1));
        let (end, ended) = tokio::sync::oneshot::channel();
        let slow = flight.waiting(soon, ended);
        let watch = async {
            live.dispatcher_woken().await;
            assert_eq!(live.slow(), 1);
            end.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(slow, watch);
        ended.unwrap();
        assert_eq!(live.slow(), 0);
    }

    #[tokio::test]
    async fn a_fetch_that_is_throttled_by_the_crawl_does_not_count_as_slow() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "whois://a.org/", 1);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            while client.write_all(&[b'x'; 16 * 1024]).is_ok() {}
        });
        let mut config = opilio_fetch::FetcherConfig::new("test", std::env::temp_dir());
        config.addresses.loopback = true;
        let fetcher = opilio_fetch::Fetcher::new(config).unwrap();
        // The first piece that the fetch reads uses the allowance of many hours.
        fetcher.throttle().allow(opilio_fetch::Allowance {
            bytes_per_second: Some(1),
            connections: None,
        });
        let uri = Uri::parse(&format!("whois://a.org:{}/x", address.port())).unwrap();
        let request = opilio_fetch::Request {
            received: flight.received(),
            ..opilio_fetch::Request::new(uri, vec![address.ip()])
        };
        let soon = Duration::from_secs(1);
        let fetch = flight.waiting(Some(soon), fetcher.whois(request));
        // On a busy machine it takes a while until the first piece is received.
        let is_held_up = async {
            while flight.received.held_up() < 2 * soon {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = fetch => panic!("it ended"),
            () = is_held_up => assert_eq!(live.slow(), 0),
        }
        assert!(flight.received.bytes() > 0);
    }

    #[tokio::test]
    async fn without_a_time_limit_no_fetch_counts_as_slow() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "http://a.org/", 1);
        let work = tokio::time::sleep(Duration::from_millis(20));
        let watched = async {
            work.await;
            assert_eq!(live.slow(), 0);
        };
        flight.waiting(None, watched).await;
    }

    #[test]
    fn a_crawl_is_paused_once_the_dispatcher_has_stopped_and_no_fetch_is_in_flight() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "http://a.org/", 1);
        assert!(!live.observe_pause());
        assert!(live.pause(true));
        assert!(!live.pause(true));
        assert_eq!(live.crawl_state(), JobState::Pausing);
        drop(flight);
        // The dispatcher may just be issuing another URI.
        assert_eq!(live.crawl_state(), JobState::Pausing);
        assert!(live.observe_pause());
        assert_eq!(live.crawl_state(), JobState::Paused);
        assert!(live.pause(false));
        assert_eq!(live.crawl_state(), JobState::Running);
    }
}
