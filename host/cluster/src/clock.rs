//! The clock of sessions: time since the process started. It never goes back, and advances while the machine is suspended.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

/// Difference up to which the wall clock is ignored if it is ahead of the monotonic clock: such differences are adjustments.
const SLEEP_MIN: Duration = Duration::from_millis(100);

/// A clock that advances with the monotonic clock of the system, or with the wall clock if that has advanced more. The monotonic
/// clock of Linux stops while a machine is suspended, so a session would seem valid after a long suspension. A wall clock that
/// jumps ahead ends sessions early, which causes a pause but no duplicate fetches.
#[derive(Debug)]
pub(crate) struct SessionClock {
    last: Mutex<ClockReading>,
}

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    monotonic: Instant,
    wall: SystemTime,
    elapsed: Duration,
}

impl Default for SessionClock {
    fn default() -> Self {
        Self {
            last: Mutex::new(ClockReading {
                monotonic: Instant::now(),
                wall: SystemTime::now(),
                elapsed: Duration::ZERO,
            }),
        }
    }
}

impl SessionClock {
    /// Returns the time since the clock was created.
    pub(crate) fn now(&self) -> Duration {
        // After a panic of another thread, the reading is still valid.
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        last.advance(Instant::now(), SystemTime::now());
        last.elapsed
    }
}

impl ClockReading {
    fn advance(&mut self, monotonic: Instant, wall: SystemTime) {
        let ticked = monotonic.saturating_duration_since(self.monotonic);
        let by_wall = wall.duration_since(self.wall).unwrap_or_default();
        let has_slept = by_wall > ticked + SLEEP_MIN;
        self.elapsed += if has_slept { by_wall } else { ticked };
        self.monotonic = monotonic;
        self.wall = wall;
    }
}

/// The wall clock in milliseconds since 1970, for records only.
pub(crate) fn wall_clock_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[track_caller]
    fn check(steps: &[(u64, i64)], expected: u64) {
        let (start, wall) = (Instant::now(), SystemTime::UNIX_EPOCH + 1_000_000 * SECOND);
        let mut reading = ClockReading {
            monotonic: start,
            wall,
            elapsed: Duration::ZERO,
        };
        for (monotonic, wall_seconds) in steps {
            let wall = match u64::try_from(*wall_seconds) {
                Ok(ahead) => wall + Duration::from_secs(ahead),
                Err(_) => wall - Duration::from_secs(wall_seconds.unsigned_abs()),
            };
            reading.advance(start + Duration::from_secs(*monotonic), wall);
        }
        assert_eq!(reading.elapsed, Duration::from_secs(expected));
    }

    #[test]
    fn suspension_counts_and_a_clock_that_is_set_back_does_not() {
        check(&[(1, 1), (2, 2)], 2);
        // Suspended for an hour.
        check(&[(1, 1), (2, 3_602)], 3_602);
        // The wall clock is set back by an hour, and then ahead again.
        check(&[(1, -3_600), (2, -3_599), (3, 3)], 3_604);
        check(&[(10, 5), (20, 15)], 20);
    }
}
