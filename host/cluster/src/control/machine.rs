//! The control plane of one node as a state machine. Inputs are keys of the bucket, results of writes and the time. Outputs are
//! [`ControlAction`]s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::liveness::Liveness;
use super::member_event::MemberEvent;
use super::records::{
    ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, NodeRecord, SessionEnd, SessionState,
    SessionTimings,
};
use super::session::Session;
use super::view::{Known, View};

/// Difference between the wall clocks of a node and of NATS above which it is reported. Waits and WARC dates are wrong by this
/// difference.
const SKEW_MAX_MS: i64 = 2_000;

/// The control plane of one member: a daemon, or a process of a job. Times are durations since any fixed moment of its own clock.
#[derive(Debug)]
pub struct NodeMachine {
    pub(super) name: String,
    pub(super) timings: SessionTimings,
    pub(super) session: Session,
    pub(super) view: View,
    pub(super) liveness: Liveness,
    pub(super) is_synced: bool,
    pub(super) has_roster: bool,
    /// State in which the session is to end, if the node was asked to leave.
    pub(super) leaving: Option<SessionEnd>,
    pub(super) is_leading: bool,
    /// Keys with a write in progress.
    pub(super) in_flight: BTreeSet<ClusterKey>,
    /// Keys whose last write failed, with the time until which to wait.
    pub(super) blocked: BTreeMap<ClusterKey, Duration>,
    pub(super) skewed: BTreeSet<String>,
    pub(super) leaderless_since: Option<Duration>,
    pub(super) ticked: Duration,
}

/// A task for the caller of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAction {
    /// Write a key, and report the result with [`NodeMachine::finish_write`].
    Write(KeyWrite),
    /// Read a key from the leader of its stream, and report it with [`NodeMachine::observe`].
    Read(ClusterKey),
    /// Report an event to the daemon or the crawl.
    Report(MemberEvent),
}

/// Result of a [`KeyWrite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// Stored, as this revision.
    Accepted(u64),
    /// Refused: the key has another revision.
    Conflict,
    /// No answer. The write may have been stored, or may be stored later.
    Unknown,
}

impl NodeMachine {
    /// Creates the machine of a node that joins. `session_seed` must be different for each process, such as a UUID.
    #[must_use]
    pub fn new(name: &str, version: &str, session_seed: &str, timings: SessionTimings) -> Self {
        Self {
            name: name.to_owned(),
            timings,
            session: Session::new(name, version, session_seed, timings),
            view: View::default(),
            liveness: Liveness::default(),
            is_synced: false,
            has_roster: false,
            leaving: None,
            is_leading: false,
            in_flight: BTreeSet::new(),
            blocked: BTreeMap::new(),
            skewed: BTreeSet::new(),
            leaderless_since: None,
            ticked: Duration::ZERO,
        }
    }

    /// Returns the interval at which [`NodeMachine::tick`] must be called.
    #[must_use]
    pub fn tick_interval(&self) -> Duration {
        self.timings.renewal / 10
    }

    /// Sets that all present keys have been observed. Before that, the node does not join.
    pub fn set_synced(&mut self, now: Duration) {
        if !self.is_synced {
            self.is_synced = true;
            self.liveness.restart(now);
        }
    }

    /// Sets that the leader's watch has observed the present keys of all nodes. The silence of nodes is counted from now on.
    pub fn set_roster(&mut self, now: Duration) {
        if self.is_leading && !self.has_roster {
            self.has_roster = true;
            self.liveness.restart(now);
        }
    }

    /// Returns `true` if this node needs to observe the key of a node: its own and the leader's always, all others if it leads. So
    /// the renewals of a thousand nodes are sent to one reader instead of a thousand.
    #[must_use]
    pub fn observes(&self, node: &str) -> bool {
        self.is_leading
            || node == self.name
            || self.leader().is_some_and(|leader| leader.node == node)
    }

    /// Sets that the connection was interrupted. The silence of other nodes is counted from now on.
    pub fn reset_liveness(&mut self, now: Duration) {
        self.liveness.restart(now);
    }

    /// Forgets the revisions of all keys, because NATS has lost the last ones and reuses them. Records stay in effect until their
    /// keys are observed again.
    pub fn forget_revisions(&mut self, now: Duration) {
        let view = &mut self.view;
        for known in view.nodes.values_mut() {
            known.revision = 0;
        }
        view.drain.revision = 0;
        view.leader.revision = 0;
        self.liveness.forget_revisions(now);
    }

    /// Makes the node leave, and end its session in this state. [`MemberEvent::Left`] follows after that.
    pub fn leave(&mut self, end: SessionEnd) {
        self.leaving = Some(end);
    }

    /// Returns the time until which the session is valid, if the node is a member.
    #[must_use]
    pub fn member_until(&self) -> Option<Duration> {
        self.session.guard_until()
    }

    /// Returns `true` if an operator drains this node.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.view.drain.record.is_some()
    }

    /// Returns `true` if this node leads.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// Returns the record of the leader, if there is a leader.
    #[must_use]
    pub fn leader(&self) -> Option<&LeaderRecord> {
        self.view.leader.record.as_ref()
    }

    /// Processes the state of a key. `record` is `None` if the key was deleted. `stored_ms` is the wall clock of NATS at the time
    /// of the write, if known.
    pub fn observe(
        &mut self,
        key: &ClusterKey,
        record: Option<ClusterRecord>,
        revision: u64,
        stored_ms: Option<i64>,
        now: Duration,
    ) -> Vec<ControlAction> {
        match (key, record) {
            (ClusterKey::Node(node), record) => {
                let record = match record {
                    Some(ClusterRecord::Node(record)) => Some(record),
                    _ => None,
                };
                self.observe_node(node, record, revision, stored_ms, now)
            }
            (ClusterKey::Drain(node), record) => {
                if *node == self.name && self.view.drain.revision < revision {
                    let record = record.map(|_| ());
                    self.view.drain = Known { revision, record };
                }
                Vec::new()
            }
            (ClusterKey::Leader, record) => {
                if self.view.leader.revision < revision {
                    let record = match record {
                        Some(ClusterRecord::Leader(record)) => Some(record),
                        _ => None,
                    };
                    self.view.leader = Known { revision, record };
                }
                let mut actions = self.update_leading();
                self.forget_unobserved();
                let leader = self.leader().map(|leader| leader.node.clone());
                let unknown = leader.filter(|node| !self.view.nodes.contains_key(node));
                actions.extend(unknown.map(|node| ControlAction::Read(ClusterKey::Node(node))));
                actions
            }
        }
    }

    /// Processes the result of a write.
    pub fn finish_write(
        &mut self,
        write: KeyWrite,
        result: WriteResult,
        now: Duration,
    ) -> Vec<ControlAction> {
        self.in_flight.remove(&write.key);
        let is_accepted = matches!(result, WriteResult::Accepted(_));
        if write.key == ClusterKey::Node(self.name.clone()) {
            self.session.finish_write(is_accepted, now);
        }
        match result {
            WriteResult::Accepted(revision) => {
                self.observe(&write.key, Some(write.record), revision, None, now)
            }
            WriteResult::Conflict | WriteResult::Unknown => {
                self.blocked
                    .insert(write.key.clone(), now + self.timings.renewal / 3);
                vec![ControlAction::Read(write.key)]
            }
        }
    }

    /// Performs the due actions. `clock_ms` is the node's wall clock, which is used for records only.
    pub fn tick(&mut self, now: Duration, clock_ms: i64) -> Vec<ControlAction> {
        if now.saturating_sub(self.ticked) > self.timings.time_to_live / 2 {
            // The process was stopped for a while, so writes of others have not been read yet.
            self.liveness.restart(now);
        }
        self.ticked = now;
        if !self.is_synced {
            return Vec::new();
        }
        self.blocked.retain(|_, until| *until > now);
        let mut actions = Vec::new();
        let own = self
            .view
            .nodes
            .get(&self.name)
            .map_or(0, |known| known.revision);
        let write = match self.leaving {
            Some(end) => self.session.leave(end, own, now, clock_ms),
            None => self.session.due_write(own, now, clock_ms),
        };
        actions.extend(write.map(|write| self.begin(write)));
        let may_act = self.session.guard_until().is_some_and(|until| now < until);
        if may_act && self.leaving.is_none() {
            actions.extend(self.expire_silent_nodes(now));
            actions.extend(self.seek_leadership(now));
        }
        actions
    }

    fn observe_node(
        &mut self,
        node: &str,
        record: Option<NodeRecord>,
        revision: u64,
        stored_ms: Option<i64>,
        now: Duration,
    ) -> Vec<ControlAction> {
        let mut actions = Vec::new();
        actions.extend(self.report_clock_skew(node, record.as_ref(), stored_ms));
        let known = self.view.nodes.entry(node.to_owned()).or_default();
        if known.revision >= revision {
            return actions;
        }
        let state = |record: &Option<NodeRecord>| record.as_ref().map(|record| record.state);
        let session =
            |record: &Option<NodeRecord>| record.as_ref().map(|record| record.session.clone());
        let is_same =
            state(&known.record) == state(&record) && session(&known.record) == session(&record);
        let has_gone = state(&known.record) == Some(SessionState::Live)
            && state(&record) == Some(SessionState::Expired);
        *known = Known { revision, record };
        let record = known.record.clone();
        match &record {
            Some(_) => self.liveness.observe(node, revision, now),
            None => self.liveness.forget(node),
        }
        if has_gone && node != self.name {
            actions.push(ControlAction::Report(MemberEvent::NodeGone(
                node.to_owned(),
            )));
        }
        if node == self.name {
            let event = self.session.observe(record.as_ref(), revision, now);
            actions.extend(event.map(ControlAction::Report));
        }
        if !is_same {
            actions.extend(self.update_leading());
        }
        actions
    }

    /// Reports once that a node's clock differs from the clock of NATS.
    fn report_clock_skew(
        &mut self,
        node: &str,
        record: Option<&NodeRecord>,
        stored_ms: Option<i64>,
    ) -> Option<ControlAction> {
        let record = record.filter(|record| record.state == SessionState::Live)?;
        let milliseconds = record.clock_ms - stored_ms?;
        if milliseconds.abs() <= SKEW_MAX_MS {
            self.skewed.remove(node);
            return None;
        }
        let node = node.to_owned();
        let is_new = self.skewed.insert(node.clone());
        is_new.then_some(ControlAction::Report(MemberEvent::ClockSkew {
            node,
            milliseconds,
        }))
    }

    pub(super) fn begin(&mut self, write: KeyWrite) -> ControlAction {
        self.in_flight.insert(write.key.clone());
        ControlAction::Write(write)
    }
}
