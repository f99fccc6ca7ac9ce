//! Limits for all exchanges of a process together, for machines on which several crawls run: bytes a second, and
//! connections. They can be changed at any time and apply at once.
//!
//! Bytes are counted when they are read, with TLS removed. Name look-ups and handshakes are not counted. A read is paid for
//! afterwards: until then no exchange reads, and waiting exchanges are served in order of arrival. So the average is exact
//! to the byte, whatever the size of a read, and one connection cannot starve another.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Longest unused time that can be saved up for reading at once. A longer one would cause noticeable bursts on a shared line. A
/// shorter one would wake tasks more often.
const SAVED_UP_MAX: Duration = Duration::from_millis(250);

const NANOS: u128 = 1_000_000_000;

/// Longest delay that a read can owe: a year, so that no sum of times overflows.
const OWED_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The limits for all exchanges together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes received in a second; `None`: unlimited.
    pub bytes_per_second: Option<u64>,
    /// Connections open at the same time, idle ones included; `None`: unlimited. An FTP session takes two.
    pub connections: Option<usize>,
}

/// The consumption of all exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleUsage {
    /// Bytes received since the process began.
    pub bytes: u64,
    /// Number of reads that had to wait.
    pub waits: u64,
    /// Connections open now.
    pub connections: usize,
}

/// Holds exchanges to an [`Allowance`]. Clones share their state.
#[derive(Clone, Debug)]
pub struct Throttle(Arc<State>);

#[derive(Debug)]
struct State {
    pace: Mutex<Option<Pace>>,
    /// One permit, for the exchange that reads next. Others wait for it in order.
    next: Arc<Semaphore>,
    /// Notified when the pace has changed.
    changed: Notify,
    /// `usize::MAX`: unlimited.
    connections_max: AtomicUsize,
    bytes: AtomicU64,
    waits: AtomicU64,
    connections: AtomicUsize,
}

#[derive(Debug)]
struct Pace {
    bytes_per_second: u64,
    /// The time at which all reads are paid for.
    paid_at: Instant,
}

/// The right to read once. No other waiting exchange reads while it is held.
pub(crate) struct ReadPermit(
    #[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>,
);

/// An open connection.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Throttle);

impl Throttle {
    pub(crate) fn new() -> Self {
        Throttle(Arc::new(State {
            pace: Mutex::new(None),
            next: Arc::new(Semaphore::new(1)),
            changed: Notify::new(),
            connections_max: AtomicUsize::new(usize::MAX),
            bytes: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
        }))
    }

    /// Sets the limits from now on. Zeros count as one, because a limit of zero would stop the crawl without any sign of it.
    pub fn allow(&self, allowance: Allowance) {
        {
            let (mut pace, now) = (self.pace(), Instant::now());
            let rate = allowance.bytes_per_second;
            *pace = rate.map(|rate| Pace::new(rate.max(1), pace.as_ref(), now));
        }
        self.0.changed.notify_one();
        let connections = allowance.connections.map_or(usize::MAX, |most| most.max(1));
        self.0.connections_max.store(connections, Ordering::Relaxed);
    }

    /// The current limits.
    pub fn allowance(&self) -> Allowance {
        let most = self.connections_max();
        Allowance {
            bytes_per_second: self.pace().as_ref().map(|pace| pace.bytes_per_second),
            connections: (most != usize::MAX).then_some(most),
        }
    }

    /// The consumption so far.
    pub fn taken(&self) -> ThrottleUsage {
        ThrottleUsage {
            bytes: self.0.bytes.load(Ordering::Relaxed),
            waits: self.0.waits.load(Ordering::Relaxed),
            connections: self.0.connections.load(Ordering::Relaxed),
        }
    }

    /// Maximum open connections; `usize::MAX` if unlimited.
    pub fn connections_max(&self) -> usize {
        self.0.connections_max.load(Ordering::Relaxed)
    }

    /// Counts a connection that is about to be opened. The pool of idle connections makes room while [`Self::is_crowded`].
    pub(crate) fn count_connection(&self) -> ConnectionGuard {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard(self.clone())
    }

    /// Returns `true` if more connections are open than allowed.
    pub(crate) fn is_crowded(&self) -> bool {
        self.0.connections.load(Ordering::Relaxed) > self.connections_max()
    }

    /// Returns `true` if another exchange may read at once.
    pub(crate) fn is_free(&self) -> bool {
        match &*self.pace() {
            None => true,
            Some(pace) => {
                pace.delay(Instant::now()).is_none() && self.0.next.available_permits() > 0
            }
        }
    }

    /// Waits for the right to read.
    pub(crate) async fn read_permit(self) -> ReadPermit {
        if self.is_free() {
            return ReadPermit(None);
        }
        self.0.waits.fetch_add(1, Ordering::Relaxed);
        // The semaphore is never closed. If it were, reads would not be delayed.
        let place = self.0.next.clone().acquire_owned().await.ok();
        loop {
            let delay = self
                .pace()
                .as_ref()
                .and_then(|pace| pace.delay(Instant::now()));
            let Some(delay) = delay else {
                return ReadPermit(place);
            };
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.0.changed.notified() => {}
            }
        }
    }

    /// Counts this many bytes as read.
    pub(crate) fn count_read(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(pace) = &mut *self.pace() {
            pace.count_read(bytes, Instant::now());
        }
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Option<Pace>> {
        self.0.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    /// Creates a pace. Bytes that are not paid for at the previous pace are paid for at the new one.
    fn new(bytes_per_second: u64, before: Option<&Pace>, now: Instant) -> Pace {
        let owed = before.map_or(0, |before| {
            let time = before.paid_at.saturating_duration_since(now);
            let bytes = u128::from(before.bytes_per_second) * time.as_nanos() / NANOS;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        });
        Pace {
            bytes_per_second,
            paid_at: now + price(owed, bytes_per_second),
        }
    }

    fn count_read(&mut self, bytes: u64, now: Instant) {
        let saved_up = now.checked_sub(SAVED_UP_MAX);
        let from = saved_up.map_or(self.paid_at, |least| self.paid_at.max(least));
        self.paid_at = from + price(bytes, self.bytes_per_second);
    }

    /// Time until all reads are paid for; `None` if they are.
    fn delay(&self, now: Instant) -> Option<Duration> {
        let delay = self.paid_at.saturating_duration_since(now);
        (!delay.is_zero()).then_some(delay)
    }
}

/// Time that this many bytes cost.
fn price(bytes: u64, bytes_per_second: u64) -> Duration {
    let nanos = u128::from(bytes) * NANOS / u128::from(bytes_per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(OWED_MAX)
}

impl ConnectionGuard {
    pub(crate) fn throttle(&self) -> &Throttle {
        &self.0
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began: Instant, milliseconds: u64) -> Instant {
        began + Duration::from_millis(milliseconds)
    }

    /// Reads pieces of 100 bytes as soon as allowed, until `until`. Returns the number of bytes.
    fn read_until(pace: &mut Pace, from: Instant, until: Instant) -> u64 {
        let (mut now, mut bytes) = (from, 0);
        loop {
            now += pace.delay(now).unwrap_or_default();
            if now >= until || bytes > 1_000_000 {
                return bytes;
            }
            pace.count_read(100, now);
            bytes += 100;
        }
    }

    #[test]
    fn reads_keep_to_the_average_rate() {
        let began = Instant::now();
        let mut pace = Pace::new(1_000, None, began);
        let read = read_until(&mut pace, began, at(began, 60_000));
        // No time is saved up at the beginning. The last piece is paid for after the end.
        assert_eq!(read, 60_000);
    }

    #[test]
    fn a_large_piece_is_paid_for_before_the_next() {
        let began = Instant::now();
        let mut pace = Pace::new(1_000, None, began);
        pace.count_read(64_000, began);
        assert_eq!(pace.delay(began), Some(Duration::from_secs(64)));
        assert_eq!(pace.delay(at(began, 64_000)), None);
    }

    #[test]
    fn a_pause_saves_up_little_time() {
        let began = Instant::now();
        let mut pace = Pace::new(1_000, None, began);
        let later = at(began, 3_600_000);
        let read = read_until(&mut pace, later, at(later, 1_000));
        assert_eq!(read, 1_300);
    }

    #[test]
    fn unpaid_bytes_stay_unpaid_at_another_pace() {
        let began = Instant::now();
        let mut slow = Pace::new(10, None, began);
        slow.count_read(1_000, began);
        let owed = slow.delay(began).unwrap();
        let fast = Pace::new(1_000, Some(&slow), began);
        assert_eq!(fast.delay(began), Some(owed / 100));
        // At the slowest pace a sum of times still does not overflow.
        let mut slowest = Pace::new(1, None, began);
        slowest.count_read(u64::MAX, began);
        assert_eq!(slowest.delay(began), Some(OWED_MAX));
    }

    /// A throttle at which no exchange reads until the test allows it.
    fn standstill() -> Throttle {
        let throttle = Throttle::new();
        throttle.allow(Allowance {
            bytes_per_second: Some(1),
            connections: None,
        });
        throttle.count_read(1_000_000);
        throttle
    }

    #[tokio::test]
    async fn waiting_readers_are_served_in_order() {
        let throttle = standstill();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut readers = Vec::new();
        for name in 0..5 {
            let (throttle, order) = (throttle.clone(), order.clone());
            readers.push(tokio::spawn(async move {
                let read_permit = throttle.read_permit().await;
                order.lock().unwrap().push(name);
                drop(read_permit);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(throttle.taken().waits, 5);
        assert!(order.lock().unwrap().is_empty());
        throttle.allow(Allowance::default());
        for reader in readers {
            reader.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn a_cancelled_reader_does_not_block_others() {
        let throttle = standstill();
        let gone = tokio::spawn(throttle.clone().read_permit());
        tokio::task::yield_now().await;
        let stays = tokio::spawn(throttle.clone().read_permit());
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err_and(|gone| gone.is_cancelled()));
        throttle.allow(Allowance::default());
        stays.await.unwrap();
    }

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let throttle = Throttle::new();
        throttle.allow(Allowance {
            bytes_per_second: None,
            connections: Some(1),
        });
        let first = throttle.count_connection();
        assert!(!throttle.is_crowded());
        let second = throttle.count_connection();
        assert!(throttle.is_crowded());
        drop(first);
        assert!(!throttle.is_crowded());
        assert_eq!(throttle.taken().connections, 1);
        drop(second);
    }
}
