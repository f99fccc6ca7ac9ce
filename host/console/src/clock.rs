//! What time it is, for the calendar and for windows. Whoever holds it still can see a year pass.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// One that tells what `time` says.
    pub fn of(time: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(time))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The machine's.
    fn default() -> Clock {
        Clock::of(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
