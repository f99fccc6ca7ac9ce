//! Liveness of other nodes by the observer's own clock: a session is silent if no renewal was observed for some time. Clocks of
//! different machines are never compared, so a wrong clock ends no session.

use std::collections::BTreeMap;
use std::time::Duration;

/// Last renewals that this node has observed.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    seen: BTreeMap<String, (u64, Duration)>,
}

impl Liveness {
    /// Records a new revision of a node's record. A repeated revision does not count as a renewal.
    pub(super) fn observe(&mut self, node: &str, revision: u64, now: Duration) {
        match self.seen.get_mut(node) {
            Some((known, _)) if *known >= revision => {}
            Some(seen) => *seen = (revision, now),
            None => {
                self.seen.insert(node.to_owned(), (revision, now));
            }
        }
    }

    /// Forgets a removed node.
    pub(super) fn forget(&mut self, node: &str) {
        self.seen.remove(node);
    }

    /// Forgets all other nodes than these.
    pub(super) fn retain(&mut self, is_observed: &dyn Fn(&String) -> bool) {
        self.seen.retain(|node, _| is_observed(node));
    }

    /// Counts silence from now on, because other nodes may have renewed their sessions while this node observed nothing.
    pub(super) fn restart(&mut self, now: Duration) {
        for (_, at) in self.seen.values_mut() {
            *at = now;
        }
    }

    /// Forgets all revisions, because NATS reuses them. Silence is counted from now on.
    pub(super) fn forget_revisions(&mut self, now: Duration) {
        for seen in self.seen.values_mut() {
            *seen = (0, now);
        }
    }

    /// Returns `true` if no renewal was observed for longer than `limit`.
    pub(super) fn is_silent(&self, node: &str, limit: Duration, now: Duration) -> bool {
        self.seen
            .get(node)
            .is_some_and(|(_, at)| now.saturating_sub(*at) > limit)
    }
}
