//! The epoch clock. A thread increments a counter, and guests stop when it has passed their deadline. The thread sleeps if no guest
//! has run for a while, so that an idle crawl uses no processor time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two ticks. A call is stopped at most two ticks after its limit.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks in a row without a running guest, after which the clock stops. Calls take microseconds, and waking a thread takes as
/// long, so it should happen once a second at most.
const IDLE_TICKS: u32 = 100;

/// The clock: it ticks while guests run, until dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    clock: Arc<Clock>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Clock {
    running_guests: AtomicUsize,
    is_asleep: AtomicBool,
    is_over: AtomicBool,
}

/// Guard that keeps the clock running until dropped.
pub(crate) struct Ticking<'t>(&'t Clock);

impl Ticker {
    pub(crate) fn start(engine: wasmtime::Engine) -> io::Result<Self> {
        Self::of(move || engine.increment_epoch())
    }

    fn of(tick: impl Fn() + Send + 'static) -> io::Result<Self> {
        let clock = Arc::new(Clock::default());
        let own = clock.clone();
        let thread = thread::Builder::new()
            .name("opilio-epochs".to_owned())
            .spawn(move || own.run(tick))?;
        Ok(Self {
            clock,
            thread: Some(thread),
        })
    }

    /// Records that a guest begins. The guest counts as running until the returned guard is dropped.
    pub(crate) fn ticking(&self) -> Ticking<'_> {
        self.clock.running_guests.fetch_add(1, Ordering::SeqCst);
        if self.clock.is_asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        Ticking(&self.clock)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Clock {
    fn run(&self, tick: impl Fn()) {
        let mut idle = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            thread::sleep(TICK);
            tick();
            idle = match self.running_guests.load(Ordering::SeqCst) {
                0 => idle + 1,
                _ => 0,
            };
            if idle >= IDLE_TICKS {
                self.sleep();
                idle = 0;
            }
        }
    }

    /// Sleeps until a guest begins. A guest counts itself as running before it checks whether the clock sleeps. This thread does so
    /// in the opposite order, so at least one of the two notices the other.
    fn sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        while self.is_asleep.load(Ordering::SeqCst)
            && self.running_guests.load(Ordering::SeqCst) == 0
            && !self.is_over.load(Ordering::SeqCst)
        {
            thread::park();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.running_guests.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.clock.is_over.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic, and a panic could not be handled here.
            let _ = thread.join();
        }
    }
}

/// Number of ticks that give a call at least this much time. The current tick may be nearly over.
pub(crate) fn ticks(time: Duration) -> u64 {
    let whole = time.as_nanos().div_ceil(TICK.as_nanos());
    // Far below the counter's range, so that deadline arithmetic cannot overflow.
    u64::try_from(whole).unwrap_or(u64::MAX).min(u64::MAX >> 2) + 1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_clock_ticks_only_while_guests_run() {
        let ticks = Arc::new(AtomicU64::new(0));
        let counted = ticks.clone();
        let ticker = Ticker::of(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        let until = |what: &str, holds: &dyn Fn() -> bool| {
            while !holds() {
                assert!(Instant::now() < patience, "{what}");
                thread::sleep(TICK);
            }
        };
        let is_asleep = || ticker.clock.is_asleep.load(Ordering::SeqCst);
        for _ in 0..2 {
            until("it sleeps", &is_asleep);
            let before = ticks.load(Ordering::SeqCst);
            thread::sleep(TICK * 10);
            assert_eq!(ticks.load(Ordering::SeqCst), before);
            let ticking = ticker.ticking();
            // Longer than the clock takes to fall asleep.
            until("it goes", &|| {
                ticks.load(Ordering::SeqCst) > before + u64::from(2 * IDLE_TICKS)
            });
            assert!(!is_asleep());
            drop(ticking);
        }
    }

    #[test]
    fn a_deadline_is_never_early() {
        assert_eq!(ticks(Duration::ZERO), 1);
        assert_eq!(ticks(Duration::from_millis(1)), 2);
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert_eq!(ticks(Duration::MAX), (u64::MAX >> 2) + 1);
    }
}
