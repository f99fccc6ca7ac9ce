//! What only a running crawl has: its pause, what is in flight, and a way to wake who waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::{Received, Taken};
use opilio_frontier::Ticket;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{FetchInFlight, Standing};
use crate::share::ShareTaken;
use opilio_visit::Step;

/// Shared by the dispatcher, the workers and whoever gives commands.
#[derive(Default)]
pub(crate) struct Live {
    state: Mutex<State>,
    /// Wakes the dispatcher: something has changed that it should look at.
    nudge: Notify,
}

#[derive(Default)]
struct State {
    is_pause_asked: bool,
    /// The dispatcher has seen that it is to begin nothing.
    holds: bool,
    /// Every queue has the settings that the profile gives it now.
    are_queues_resolved: bool,
    in_flight: HashMap<Ticket, InFlight>,
    /// How many of them wait for servers that are slow.
    slow: usize,
    /// Nothing is due before this, as the frontier last said.
    waits_until: Option<Timestamp>,
    /// Times that a URI could not be begun, for want of connections.
    waited_for_connections: u64,
    /// Those who are just changing what is queued.
    hands: usize,
    /// How many of them have begun in all.
    hands_begun: u64,
    /// Nothing was left to fetch: nobody may change what is queued any more.
    is_over: bool,
}

/// Somebody beside the crawl changes what is queued, until this is dropped. A crawl does not end meanwhile for want of URIs.
pub(crate) struct Hand(Arc<Live>);

/// How many hands had begun when none was at work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandsAtRest(u64);

struct InFlight {
    uri: String,
    worker: usize,
    since: Timestamp,
    step: Step,
    step_since: Timestamp,
    stage: Stage,
    cancelled: Arc<Notify>,
}

/// How far a URI in flight is, as far as breaking it off goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked for yet, or the answer is on its way.
    Fetching,
    /// The operator wants it broken off.
    Cancelled,
    /// The answer is here, and is being dealt with.
    Fetched,
}

/// A URI in flight, from when it is issued until it is back.
pub(crate) struct Flight {
    live: Arc<Live>,
    ticket: Ticket,
    cancelled: Arc<Notify>,
    received: Received,
}

/// The beginning of the time in which a fetch is to bring something, or is slow.
struct Window {
    since: Instant,
    /// The bytes that had come by then.
    bytes: u64,
    /// The time for which the server had been held up by then.
    held_up: Duration,
}

/// A fetch that is counted as slow, until this is dropped.
struct SlowFetch<'a>(&'a Live);

/// A fetch that brings less in a second is slow, once it has lasted: a page of common size takes a minute at that rate.
const SLOW_BYTES_PER_SECOND: f64 = 16.0 * 1024.0;

/// What became of the wish to break off a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// It will be.
    Asked,
    /// Its answer has come already, and is being dealt with.
    TooLate,
    /// It is not in process.
    NotInProcess,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.0.state().hands -= 1;
        // What the dispatcher saw is not what there is now.
        self.0.nudge();
    }
}

impl Live {
    /// A URI takes off, with the worker of this number.
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
            received: Received::default(),
        }
    }

    /// How many fetches are slow.
    pub(crate) fn slow(&self) -> usize {
        self.state().slow
    }

    /// Whether the dispatcher is to begin nothing. By asking it has seen it, so that nothing is called paused while a URI
    /// is just being issued.
    pub(crate) fn holds(&self) -> bool {
        let mut state = self.state();
        state.holds = state.is_pause_asked;
        state.holds
    }

    /// Every queue has been given the settings of the profile: some may be back that were retired.
    pub(crate) fn queues_resolved(&self) {
        self.state().are_queues_resolved = true;
        self.nudge();
    }

    /// Whether every queue has the settings of the profile. Until then a frontier that gives nothing is not at its end.
    pub(crate) fn are_queues_resolved(&self) -> bool {
        self.state().are_queues_resolved
    }

    /// A hand that may change what is queued; none where the crawl has come to its end.
    pub(crate) fn hand(self: &Arc<Self>) -> Option<Hand> {
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        state.hands += 1;
        state.hands_begun += 1;
        Some(Hand(self.clone()))
    }

    /// Whether no hand is at work. To be asked before the frontier is, for [`Live::is_over`].
    pub(crate) fn hands_at_rest(&self) -> Option<HandsAtRest> {
        let state = self.state();
        (state.hands == 0).then_some(HandsAtRest(state.hands_begun))
    }

    /// The frontier, asked after `before`, has nothing left. That is the end, unless a hand has begun since or was at work
    /// then; from now on none begins.
    pub(crate) fn is_over(&self, before: Option<HandsAtRest>) -> bool {
        let mut state = self.state();
        state.is_over |= state.hands == 0 && before == Some(HandsAtRest(state.hands_begun));
        state.is_over
    }

    /// What the frontier says of when it gives the next URI; none: it gives one, or waits for what is in process.
    pub(crate) fn wait_until(&self, at: Option<Timestamp>) {
        self.state().waits_until = at;
    }

    /// Before when nothing is due.
    pub(crate) fn waits_until(&self) -> Option<Timestamp> {
        self.state().waits_until
    }

    /// As many URIs are in process as there may be connections, and workers have nothing to do for that reason alone.
    pub(crate) fn wants_connections(&self) {
        self.state().waited_for_connections += 1;
    }

    /// What the crawl makes of its share.
    pub(super) fn taken(&self, taken: Taken) -> ShareTaken {
        let state = self.state();
        ShareTaken {
            bytes: taken.bytes,
            waited_for_bytes: taken.waits,
            connections: taken.connections.max(state.in_flight.len()) as u64,
            waited_for_connections: state.waited_for_connections,
        }
    }

    /// Something has changed that the dispatcher should look at.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Until somebody nudges.
    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// Asks for a pause, or for its end. False where it is so already.
    pub(crate) fn pause(&self, is_pause_asked: bool) -> bool {
        let mut state = self.state();
        let changed = state.is_pause_asked != is_pause_asked;
        state.is_pause_asked = is_pause_asked;
        drop(state);
        self.nudge();
        changed
    }

    pub(crate) fn standing(&self) -> Standing {
        let state = self.state();
        match (state.is_pause_asked, state.holds) {
            (false, _) => Standing::Running,
            (true, true) if state.in_flight.is_empty() => Standing::Paused,
            (true, _) => Standing::Pausing,
        }
    }

    /// What is in flight, the oldest first.
    pub(super) fn in_flight(&self, max: usize) -> Vec<FetchInFlight> {
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

    /// Breaks off the fetch of a URI.
    pub(super) fn cancel(&self, uri: &str) -> Cancelled {
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
        Cancelled::Asked
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// What is done about it from now on.
    pub(crate) fn step(&self, step: Step) {
        if let Some(flight) = self.live.state().in_flight.get_mut(&self.ticket) {
            flight.step = step;
            flight.step_since = Timestamp::now();
        }
    }

    /// Counts what comes, for [`Self::waiting`].
    pub(crate) fn received(&self) -> Received {
        self.received.clone()
    }

    /// Waits for a server. A fetch that brings little for `slow_after` is counted as slow from then on, so that the dispatcher
    /// begins another one in its place. The time for which the crawl itself held the server up is left out: little may come of
    /// a fast one then.
    pub(crate) async fn waiting<T>(
        &self,
        slow_after: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(slow_after) = slow_after else {
            return work.await;
        };
        // Where servers are held up again and again, what is left gets ever shorter.
        let least_pause = slow_after / 8;
        let mut work = std::pin::pin!(work);
        let mut window = Window::begin(&self.received);
        loop {
            let left = slow_after.saturating_sub(window.server_time(&self.received));
            tokio::select! {
                // The timer first: work that always has something to do leaves it no budget.
                biased;
                () = tokio::time::sleep(left.max(least_pause)) => {}
                done = &mut work => return done,
            }
            let time = window.server_time(&self.received);
            if time < slow_after {
                continue;
            }
            let came = self.received.bytes() - window.bytes;
            if (came as f64) < SLOW_BYTES_PER_SECOND * time.as_secs_f64() {
                break;
            }
            window = Window::begin(&self.received);
        }
        let _slow = SlowFetch::new(&self.live);
        work.await
    }

    /// Fetches, unless the operator wants it broken off; none where that is so. Later wishes come too late.
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
    fn begin(received: &Received) -> Window {
        Window {
            since: Instant::now(),
            bytes: received.bytes(),
            held_up: received.held_up(),
        }
    }

    /// The server's part of the time since then.
    fn server_time(&self, received: &Received) -> Duration {
        let held_up = received.held_up().saturating_sub(self.held_up);
        self.since.elapsed().saturating_sub(held_up)
    }
}

impl<'a> SlowFetch<'a> {
    fn new(live: &'a Live) -> Self {
        live.state().slow += 1;
        live.nudge();
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
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write as _;

    use opilio_frontier::{Candidate, Config, Frontier, Next};
    use opilio_uri::{HopPath, Uri};

    use super::*;

    #[test]
    fn a_crawl_is_not_over_while_or_after_somebody_may_have_queued_something() {
        let live = Arc::new(Live::default());
        // At work when the frontier is asked, and still when it has answered.
        let hand = live.hand().unwrap();
        let before = live.hands_at_rest();
        assert!(!live.is_over(before));
        // Done before it has answered.
        drop(hand);
        assert!(!live.is_over(before));
        // Begun and done while it answers.
        let before = live.hands_at_rest();
        drop(live.hand());
        assert!(!live.is_over(before));

        assert!(live.is_over(live.hands_at_rest()));
        assert!(live.hand().is_none());
    }

    /// A ticket, which frontiers alone make.
    fn ticket() -> Ticket {
        let home = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(home.path(), Config::default()).unwrap();
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
    async fn a_fetch_is_cancelled_before_its_answer_has_come_and_not_after() {
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
        assert_eq!(live.cancel(uri), Cancelled::Asked);
        let never = std::future::pending::<()>();
        assert_eq!(flight.unless_cancelled(never).await, None);
    }

    #[tokio::test]
    async fn a_fetch_that_brings_little_is_slow_until_it_ends() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "http://a.org/", 1);
        let soon = Some(Duration::from_millis(1));
        let (end, ended) = tokio::sync::oneshot::channel();
        let slow = flight.waiting(soon, ended);
        let watch = async {
            live.nudged().await;
            assert_eq!(live.slow(), 1);
            end.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(slow, watch);
        ended.unwrap();
        assert_eq!(live.slow(), 0);
    }

    #[tokio::test]
    async fn a_fetch_that_the_crawl_itself_holds_up_is_not_slow() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "whois://a.org/", 1);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            while client.write_all(&[b'x'; 16 * 1024]).is_ok() {}
        });
        let mut config = opilio_fetch::Config::new("test", std::env::temp_dir());
        config.addresses.loopback = true;
        let fetcher = opilio_fetch::Fetcher::new(config).unwrap();
        // The first piece that it reads is paid for after many hours.
        fetcher.throttle().allow(opilio_fetch::Allowance {
            bytes_per_second: Some(1),
            connections: None,
        });
        let uri = Uri::parse(&format!("whois://a.org:{}/x", address.port())).unwrap();
        let request = opilio_fetch::Request {
            received: flight.received(),
            ..opilio_fetch::Request::new(uri, vec![address.ip()])
        };
        let soon = Some(Duration::from_millis(400));
        let fetch = flight.waiting(soon, fetcher.whois(request));
        let looked_at = tokio::time::sleep(Duration::from_secs(2));
        tokio::select! {
            _ = fetch => panic!("it ended"),
            () = looked_at => assert_eq!(live.slow(), 0),
        }
        assert!(flight.received.bytes() > 0);
        assert!(flight.received.held_up() > Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_fetch_whose_server_may_take_as_long_as_it_likes_is_not_slow() {
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
    fn a_crawl_is_paused_when_the_dispatcher_holds_and_nothing_is_in_flight() {
        let live = Arc::new(Live::default());
        let flight = live.begin(ticket(), "http://a.org/", 1);
        assert!(!live.holds());
        assert!(live.pause(true));
        assert!(!live.pause(true));
        assert_eq!(live.standing(), Standing::Pausing);
        drop(flight);
        // It may just be issuing another one.
        assert_eq!(live.standing(), Standing::Pausing);
        assert!(live.holds());
        assert_eq!(live.standing(), Standing::Paused);
        assert!(live.pause(false));
        assert_eq!(live.standing(), Standing::Running);
    }
}
