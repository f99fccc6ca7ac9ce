//! The right to issue URIs of a partition, and the time at which it ends. It is checked before every fetch, so the check takes no
//! lock of the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::LeaseClock;
use crate::partition::Partition;

/// The lease of a partition. It ends by itself, by the clock of this machine, before another node can have the partition. Ask it
/// immediately before a URI is issued; a fetch that has begun may end.
#[derive(Debug, Clone)]
pub struct LeaseGuard {
    partition: Partition,
    epoch: u64,
    clock: Arc<LeaseClock>,
    session: Arc<SessionGuard>,
    is_held: Arc<AtomicBool>,
}

/// Time until which a session holds.
#[derive(Debug, Default)]
pub(crate) struct SessionGuard {
    until_nanos: AtomicU64,
    /// Sessions that others have ended.
    lost: AtomicU64,
}

impl SessionGuard {
    /// Sets the time until which the session holds; `None` ends it.
    pub(crate) fn set(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| {
            u64::try_from(until.as_nanos()).unwrap_or(u64::MAX)
        });
        self.until_nanos.store(nanos, Ordering::Release);
    }

    /// Notes that others have ended the session. Call it before the next session begins.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// Sessions that others have ended.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn until(&self) -> Duration {
        Duration::from_nanos(self.until_nanos.load(Ordering::Acquire))
    }
}

impl LeaseGuard {
    pub(crate) fn new(
        partition: Partition,
        epoch: u64,
        clock: Arc<LeaseClock>,
        session: Arc<SessionGuard>,
    ) -> Self {
        Self {
            partition,
            epoch,
            clock,
            session,
            is_held: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Ends the lease.
    pub(crate) fn end(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    /// The partition.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The fencing number, for everything that is written about the partition.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns `true` if the partition still belongs to this node, as far as it knows. During an outage of NATS the lease may have
    /// lapsed and hold again afterwards.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// Time for which URIs may be issued; `None` if none may.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        if !self.is_held() {
            return None;
        }
        let left = self.session.until().checked_sub(self.clock.now())?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_time_with_its_session_and_with_its_partition() {
        let clock = Arc::new(LeaseClock::default());
        let session = Arc::new(SessionGuard::default());
        let partition = crate::partition::PartitionCount::default()
            .partition(7)
            .unwrap();
        let guard = LeaseGuard::new(partition, 3, clock.clone(), session.clone());
        assert_eq!(guard.time_left(), None);
        let hour = Duration::from_secs(3_600);
        session.set(Some(clock.now() + hour));
        assert!(guard.time_left().is_some_and(|left| left <= hour));
        session.set(Some(clock.now()));
        assert_eq!(guard.time_left(), None);
        session.set(Some(clock.now() + hour));
        guard.end();
        assert_eq!(guard.time_left(), None);
    }
}
