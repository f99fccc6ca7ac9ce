//! Liveness of other nodes, judged by the observer's own clock alone: a session is silent if no renewal has been seen for a while.
//! Clocks of different machines are never compared, so a wrong clock expires nobody.

use std::collections::BTreeMap;
use std::time::Duration;

/// Last renewals that this node has seen.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    seen: BTreeMap<String, (u64, Duration)>,
}

impl Liveness {
    /// Notes a revision of a node's record. The same revision again does not count.
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

    /// Counts silence from now on. While this node saw nothing, others may have renewed.
    pub(super) fn restart(&mut self, now: Duration) {
        for (_, at) in self.seen.values_mut() {
            *at = now;
        }
    }

    /// Forgets all revisions, which NATS gives again. Silence counts from now on.
    pub(super) fn forget_revisions(&mut self, now: Duration) {
        for seen in self.seen.values_mut() {
            *seen = (0, now);
        }
    }

    /// Returns `true` if no renewal has been seen for longer than `limit`.
    pub(super) fn is_silent(&self, node: &str, limit: Duration, now: Duration) -> bool {
        self.seen
            .get(node)
            .is_some_and(|(_, at)| now.saturating_sub(*at) > limit)
    }
}
