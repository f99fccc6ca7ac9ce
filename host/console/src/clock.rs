//! The clock of the calendar and the crawl windows. Tests can replace it and simulate a year.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// A source of the current time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Creates a clock that returns the result of `time`.
    pub fn of(time: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(time))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The machine's clock.
    fn default() -> Clock {
        Clock::of(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
