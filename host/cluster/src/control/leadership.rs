//! Tasks of a node besides its own session: it ends sessions that were not renewed, and becomes leader if there is none. The leader
//! observes all sessions, and the other nodes observe the session of the leader.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::machine::{ControlAction, NodeMachine};
use super::member_event::MemberEvent;
use super::records::{ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, NodeRecord, SessionState};

impl NodeMachine {
    /// Ends sessions that were not renewed. Nodes wait for different times, so that two of them rarely try at once.
    pub(super) fn expire_silent_nodes(&mut self, now: Duration) -> Vec<ControlAction> {
        let limit = self.timings.time_to_live + self.stagger();
        let mut writes = Vec::new();
        for (node, known) in &self.view.nodes {
            let key = ClusterKey::Node(node.clone());
            let is_free = !self.in_flight.contains(&key) && !self.blocked.contains_key(&key);
            if let Some(record) = &known.record
                && record.state == SessionState::Live
                && *node != self.name
                && is_free
                && self.liveness.is_silent(node, limit, now)
            {
                let state = SessionState::Expired;
                let record = ClusterRecord::Node(NodeRecord {
                    state,
                    ..record.clone()
                });
                let expected = known.revision;
                writes.push(KeyWrite {
                    key,
                    record,
                    expected,
                });
            }
        }
        writes.into_iter().map(|write| self.begin(write)).collect()
    }

    pub(super) fn seek_leadership(&mut self, now: Duration) -> Option<ControlAction> {
        let leader = self.view.leader.record.as_ref();
        let has_leader = leader.is_some_and(|leader| {
            let is_known = self.view.nodes.contains_key(&leader.node);
            !is_known || self.view.is_live(&leader.node, &leader.session)
        });
        if has_leader {
            self.leaderless_since = None;
            return None;
        }
        let since = *self.leaderless_since.get_or_insert(now);
        let is_free = !self.in_flight.contains(&ClusterKey::Leader)
            && !self.blocked.contains_key(&ClusterKey::Leader);
        if now.saturating_sub(since) < self.stagger() || !is_free {
            return None;
        }
        let record = LeaderRecord {
            node: self.name.clone(),
            session: self.session.id(),
            term: leader.map_or(0, |leader| leader.term) + 1,
        };
        let expected = self.view.leader.revision;
        Some(self.begin(KeyWrite {
            key: ClusterKey::Leader,
            record: ClusterRecord::Leader(record),
            expected,
        }))
    }

    pub(super) fn update_leading(&mut self) -> Vec<ControlAction> {
        let leader = self.view.leader.record.as_ref();
        let is_leading = self.session.is_member()
            && leader.is_some_and(|leader| {
                leader.node == self.name && leader.session == self.session.id()
            });
        if is_leading == self.is_leading {
            return Vec::new();
        }
        self.is_leading = is_leading;
        self.has_roster = false;
        self.forget_unobserved();
        vec![ControlAction::Report(MemberEvent::Leading(is_leading))]
    }

    /// Drops the records of nodes whose keys this node no longer observes, because they become outdated.
    pub(super) fn forget_unobserved(&mut self) {
        if self.is_leading {
            return;
        }
        let leader = self.leader().map(|leader| leader.node.clone());
        let is_observed = |node: &String| *node == self.name || Some(node) == leader.as_ref();
        self.view.nodes.retain(|node, _| is_observed(node));
        self.liveness.retain(&is_observed);
    }

    /// Returns a pause that differs from node to node, up to the time between two renewals.
    fn stagger(&self) -> Duration {
        let share = xxh3_64(self.name.as_bytes()) % 1_000;
        self.timings.renewal * (share as u32) / 1_000
    }
}
