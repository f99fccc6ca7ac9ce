//! Events that wait for one receiver, and the task that sends them. Senders take batches; a batch that is not accepted is sent
//! again at growing intervals.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opilio_profile::EventKind;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{CrawlEvent, Occurrence};

/// Maximum of waiting events about captures: some seconds of a fast crawl.
const CAPTURES_MAX: usize = 10_000;

/// Maximum of other waiting events.
const OTHERS_MAX: usize = 1_000;

/// First pause after a failed batch. Each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause after failed batches.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// Maximum time for waiting events at the end.
const GRACE: Duration = Duration::from_secs(10);

/// Waiting events of one receiver, and the task that sends them.
pub(super) struct EventQueue {
    events: Arc<WaitingEvents>,
    sending: Mutex<Option<JoinHandle<()>>>,
}

/// Events that wait for one receiver.
pub(super) struct WaitingEvents {
    /// Name of the receiver in messages, such as `webhook desk`.
    receiver: String,
    kinds: BTreeSet<EventKind>,
    waiting: Mutex<WaitingByKind>,
    /// Signals an event, or the end.
    news: Notify,
    is_ending: AtomicBool,
    /// Events of the batch that is being sent.
    in_flight: AtomicU64,
    lost: AtomicU64,
}

#[derive(Default)]
struct WaitingByKind {
    captures: VecDeque<CrawlEvent>,
    /// Other events. They are sent before captures, so that many captures do not delay them.
    others: VecDeque<CrawlEvent>,
}

/// Events that are sent together, until they are accepted or refused.
pub(super) struct Batch {
    count: u64,
    /// Pause after the next failure.
    pause: Duration,
}

/// Reason for which a batch was not accepted.
pub(super) enum Failure {
    /// A repeated batch would be refused again.
    Refused(String),
    Temporary(String),
}

impl EventQueue {
    /// Starts a sender. It takes batches with [`WaitingEvents::next_batch`], and ends after an empty one.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        receiver: String,
        kinds: BTreeSet<EventKind>,
        send: impl FnOnce(Arc<WaitingEvents>) -> F,
    ) -> EventQueue {
        let events = Arc::new(WaitingEvents {
            receiver,
            kinds,
            waiting: Mutex::default(),
            news: Notify::new(),
            is_ending: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let sending = tokio::spawn(send(events.clone()));
        let sending = Mutex::new(Some(sending));
        EventQueue { events, sending }
    }

    pub(super) fn wants(&self, kind: EventKind) -> bool {
        self.events.kinds.contains(&kind)
    }

    pub(super) fn push(&self, event: CrawlEvent) {
        let mut waiting = self.events.lock();
        let (queue, max) = match event.what {
            Occurrence::Capture { .. } => (&mut waiting.captures, CAPTURES_MAX),
            _ => (&mut waiting.others, OTHERS_MAX),
        };
        if queue.len() >= max {
            drop(waiting);
            self.events.lose(1, "too many events wait");
            return;
        }
        queue.push_back(event);
        drop(waiting);
        self.events.news.notify_one();
    }

    /// Sends the waiting events, up to a time limit. Returns the name of the receiver and the number of lost events.
    pub(super) async fn finish(&self) -> (String, u64) {
        self.events.is_ending.store(true, Ordering::Relaxed);
        self.events.news.notify_one();
        let sending = self.sending.lock();
        let sending = sending.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut sending) = sending {
            if timeout(GRACE, &mut sending).await.is_err() {
                sending.abort();
            }
            let waiting = self.events.lock().take(usize::MAX).len() as u64;
            let left = waiting + self.events.in_flight.swap(0, Ordering::Relaxed);
            if left > 0 {
                self.events.lose(left, "the process ends");
            }
        }
        (self.events.receiver.clone(), self.events.lost())
    }
}

impl WaitingEvents {
    /// Name of the receiver in messages.
    pub(super) fn receiver(&self) -> &str {
        &self.receiver
    }

    /// Number of events that were lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits for events, and then for more of them. Returns no events at the end.
    pub(super) async fn next_batch(&self, max: usize, wait: Duration) -> Vec<CrawlEvent> {
        let is_ending = || self.is_ending.load(Ordering::Relaxed);
        while self.lock().len() == 0 && !is_ending() {
            self.news.notified().await;
        }
        let full = async {
            while self.lock().len() < max && !is_ending() {
                self.news.notified().await;
            }
        };
        // A batch need not be full.
        let _ = timeout(wait, full).await;
        self.lock().take(max)
    }

    /// Begins a batch of this many events.
    pub(super) fn begin(&self, count: u64) -> Batch {
        self.in_flight.store(count, Ordering::Relaxed);
        let pause = PAUSE_MIN;
        Batch { count, pause }
    }

    /// Processes the result of an attempt to send a batch. Returns `true` if the batch is done: accepted or refused. Otherwise it
    /// waits before the next attempt and returns `false`. At the end of the crawl, the time limit of [`EventQueue::finish`] stops
    /// the repetition.
    pub(super) async fn record_result(
        &self,
        batch: &mut Batch,
        result: Result<(), Failure>,
    ) -> bool {
        let (receiver, count) = (&self.receiver, batch.count);
        match result {
            Ok(()) => {}
            Err(Failure::Refused(why)) => {
                tracing::warn!("{receiver}: {count} events were refused: {why}");
                self.lose(count, &why);
            }
            Err(Failure::Temporary(why)) => {
                if batch.pause == PAUSE_MIN {
                    tracing::warn!(
                        "{receiver}: events were not accepted: {why}; they are sent again"
                    );
                }
                tokio::time::sleep(batch.pause).await;
                batch.pause = (2 * batch.pause).min(PAUSE_MAX);
                return false;
            }
        }
        self.in_flight.store(0, Ordering::Relaxed);
        true
    }

    /// Counts lost events. Only the first loss is logged; the number is logged at the end.
    pub(super) fn lose(&self, count: u64, why: &str) {
        if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            tracing::warn!("{} loses events: {why}", self.receiver);
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingByKind> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingByKind {
    fn len(&self) -> usize {
        self.others.len() + self.captures.len()
    }

    /// Takes the next events.
    fn take(&mut self, max: usize) -> Vec<CrawlEvent> {
        let others = self.others.len().min(max);
        let captures = self.captures.len().min(max - others);
        let mut events: Vec<_> = self.others.drain(..others).collect();
        events.extend(self.captures.drain(..captures));
        events
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn alerts_are_sent_before_captures() {
        let event = |what| CrawlEvent {
            at: Timestamp::UNIX_EPOCH,
            job: "a".to_owned(),
            profile: None,
            what,
        };
        let mut waiting = WaitingByKind::default();
        let line = serde_json::Value::Null;
        waiting
            .captures
            .extend([event(Occurrence::Capture { line })]);
        waiting.others.extend([event(Occurrence::Job {
            state: "running".to_owned(),
            reason: None,
        })]);
        let batch = waiting.take(1);
        assert!(matches!(batch[0].what, Occurrence::Job { .. }), "{batch:?}");
        assert_eq!((waiting.take(5).len(), waiting.len()), (1, 0));
    }
}
