//! The time until which a member may work. It is checked before every fetch, so the check takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time until which the session of a member is valid, by the clock of this machine.
#[derive(Debug, Default)]
pub(crate) struct SessionGuard {
    until_nanos: AtomicU64,
    /// Sessions that others have ended.
    lost: AtomicU64,
}

impl SessionGuard {
    /// Sets the time until which the session is valid; `None` ends it.
    pub(crate) fn set(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| {
            u64::try_from(until.as_nanos()).unwrap_or(u64::MAX)
        });
        self.until_nanos.store(nanos, Ordering::Release);
    }

    /// Counts a session that others have ended. Must be called before the next session begins.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// Sessions that others have ended.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns the time for which the member may work; `None` if it may not work.
    pub(crate) fn time_left(&self, now: Duration) -> Option<Duration> {
        let until = Duration::from_nanos(self.until_nanos.load(Ordering::Acquire));
        let left = until.checked_sub(now)?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_may_work_until_its_session_ends() {
        const SECOND: Duration = Duration::from_secs(1);
        let guard = SessionGuard::default();
        assert_eq!(guard.time_left(SECOND), None);
        guard.set(Some(5 * SECOND));
        assert_eq!(guard.time_left(2 * SECOND), Some(3 * SECOND));
        assert_eq!(guard.time_left(5 * SECOND), None);
        assert_eq!(guard.time_left(6 * SECOND), None);
        guard.set(None);
        assert_eq!(guard.time_left(Duration::ZERO), None);
    }
}
