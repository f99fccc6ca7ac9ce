//! The epoch clock: guests look at a counter, and stop when it has passed their deadline; a thread moves it on.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two ticks. A call is stopped at most two ticks after its limit; a hundred wake-ups a second cost
/// nothing that can be measured.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks until dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(engine: wasmtime::Engine) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("opilio-epochs".to_owned())
            .spawn(move || {
                while matches!(stopped.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) {
                    engine.increment_epoch();
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and if it did there would be nothing to do about it.
            let _ = thread.join();
        }
    }
}

/// Ticks that surely give a call this much time: the one under way may be nearly over.
pub(crate) fn ticks(time: Duration) -> u64 {
    let whole = time.as_nanos().div_ceil(TICK.as_nanos());
    // Far below the counter's range, so that deadline arithmetic cannot overflow.
    u64::try_from(whole).unwrap_or(u64::MAX).min(u64::MAX >> 2) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_early() {
        assert_eq!(ticks(Duration::ZERO), 1);
        assert_eq!(ticks(Duration::from_millis(1)), 2);
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert_eq!(ticks(Duration::MAX), (u64::MAX >> 2) + 1);
    }
}
