//! The control plane of one node as a state machine. Its inputs are keys of the bucket, results of writes, reports of the caller
//! and the time. Its outputs are [`ControlAction`]s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::liveness::Liveness;
use super::planner::{Known, View};
use super::records::{
    ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, LeaseOwner, LeaseTimings, NodeRecord,
    PartitionRecord, SessionState,
};
use super::session::{Session, SessionChange};
use crate::partition::{Partition, PartitionCount};

/// Difference between a node's wall clock and that of NATS above which it is reported. Waits and WARC dates are off by as much.
const SKEW_MAX_MS: i64 = 2_000;

/// The control plane of one node. Times are durations since any fixed moment of the node's own clock.
#[derive(Debug)]
pub struct NodeMachine {
    pub(super) name: String,
    /// `None`: the members share no partitions.
    pub(super) count: Option<PartitionCount>,
    pub(super) timings: LeaseTimings,
    pub(super) session: Session,
    pub(super) view: View,
    pub(super) liveness: Liveness,
    pub(super) is_synced: bool,
    pub(super) has_roster: bool,
    pub(super) is_leaving: bool,
    pub(super) is_leading: bool,
    pub(super) holdings: BTreeMap<Partition, Holding>,
    /// Keys with a write under way.
    pub(super) in_flight: BTreeSet<ClusterKey>,
    /// Keys whose last write failed, and until when to wait.
    pub(super) blocked: BTreeMap<ClusterKey, Duration>,
    /// Partitions to look at in the next tick.
    pub(super) pending: BTreeSet<Partition>,
    pub(super) skewed: BTreeSet<String>,
    pub(super) leaderless_since: Option<Duration>,
    pub(super) needs_plan: bool,
    pub(super) planned: Duration,
    pub(super) ticked: Duration,
}

/// A partition of this node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holding {
    epoch: u64,
    phase: HoldingPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldingPhase {
    Loading,
    Ready,
    Releasing,
    Released,
}

/// A task for the caller of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAction {
    /// Write a key, and report the result with [`NodeMachine::finish_write`].
    Write(KeyWrite),
    /// Read a key from the leader of its stream, and report it with [`NodeMachine::observe`].
    Read(ClusterKey),
    /// Tell the crawl.
    Report(ControlEvent),
}

/// Result of a [`KeyWrite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// Stored, as this revision.
    Accepted(u64),
    /// Refused: the key has another revision.
    Conflict,
    /// No answer. It may have been stored, or may still be.
    Unknown,
}

/// An event of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlEvent {
    /// The node is a member.
    Joined,
    /// The session was ended by others. All partitions are lost; the node joins again by itself.
    SessionLost,
    /// Another process uses the name of this node.
    NameInUse,
    /// The node has left, as it was asked to.
    Left,
    /// The node owns a partition. Load it, then call [`NodeMachine::set_ready`].
    Claimed(Partition, u64),
    /// Stop the partition, write everything, then call [`NodeMachine::release`].
    Release(Partition, u64),
    /// The partition belongs to another node. Drop it; nothing may be written any more.
    Lost(Partition, u64),
    /// The node became or is no longer leader.
    Leading(bool),
    /// A node did not renew its session.
    NodeGone(String),
    /// The wall clock of a node differs from that of NATS by so many milliseconds; positive if it is ahead.
    ClockSkew(String, i64),
}

impl NodeMachine {
    /// A machine for a node that joins. `session_seed` must be different for each process, such as a UUID. Without a number of
    /// partitions, the cluster has sessions and a leader only.
    #[must_use]
    pub fn new(
        name: &str,
        version: &str,
        session_seed: &str,
        count: impl Into<Option<PartitionCount>>,
        timings: LeaseTimings,
    ) -> Self {
        let count = count.into();
        Self {
            name: name.to_owned(),
            count,
            timings,
            session: Session::new(name, version, session_seed, timings),
            view: View::new(count),
            liveness: Liveness::default(),
            is_synced: false,
            has_roster: false,
            is_leaving: false,
            is_leading: false,
            holdings: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            blocked: BTreeMap::new(),
            pending: BTreeSet::new(),
            skewed: BTreeSet::new(),
            leaderless_since: None,
            needs_plan: true,
            planned: Duration::ZERO,
            ticked: Duration::ZERO,
        }
    }

    /// Interval of [`NodeMachine::tick`].
    #[must_use]
    pub fn tick_interval(&self) -> Duration {
        self.timings.renewal / 10
    }

    /// Tells that all present keys have been observed. Before that the node does not join.
    pub fn set_synced(&mut self, now: Duration) {
        if !self.is_synced {
            self.is_synced = true;
            self.liveness.restart(now);
        }
    }

    /// Tells that the leader's watch has observed the present keys of all nodes. Before that it does not lead.
    pub fn set_roster(&mut self, now: Duration) {
        if self.is_leading && !self.has_roster {
            self.has_roster = true;
            self.needs_plan = true;
            self.liveness.restart(now);
        }
    }

    /// Returns `true` if this node needs to observe the key of a node: its own and the leader's always, all others if it leads. So
    /// the renewals of a thousand nodes go to one reader, and not to a thousand.
    #[must_use]
    pub fn observes(&self, node: &str) -> bool {
        self.is_leading
            || node == self.name
            || self.leader().is_some_and(|leader| leader.node == node)
    }

    /// Tells that the connection was interrupted. The silence of others is counted from now on.
    pub fn reset_liveness(&mut self, now: Duration) {
        self.liveness.restart(now);
    }

    /// Forgets the revisions of all keys, because NATS has lost the last ones and gives them again. Records count until their keys are
    /// observed again.
    pub fn forget_revisions(&mut self, now: Duration) {
        let view = &mut self.view;
        for known in view.nodes.values_mut() {
            known.revision = 0;
        }
        for known in view.drained.values_mut() {
            known.revision = 0;
        }
        for known in &mut view.partitions {
            known.revision = 0;
        }
        view.leader.revision = 0;
        self.liveness.forget_revisions(now);
    }

    /// Asks the node to give up its partitions and to leave.
    pub fn leave(&mut self) -> Vec<ControlAction> {
        self.is_leaving = true;
        let held: Vec<Partition> = self.holdings.keys().copied().collect();
        held.into_iter()
            .flat_map(|partition| self.reconcile(partition))
            .collect()
    }

    /// Tells that a claimed partition is loaded.
    pub fn set_ready(&mut self, partition: Partition) -> Vec<ControlAction> {
        if let Some(holding) = self.holdings.get_mut(&partition)
            && holding.phase == HoldingPhase::Loading
        {
            holding.phase = HoldingPhase::Ready;
        }
        self.reconcile(partition)
    }

    /// Tells that a partition has stopped and that everything about it is written.
    pub fn release(&mut self, partition: Partition) -> Vec<ControlAction> {
        if let Some(holding) = self.holdings.get_mut(&partition)
            && holding.phase == HoldingPhase::Releasing
        {
            holding.phase = HoldingPhase::Released;
        }
        self.reconcile(partition)
    }

    /// Time until which URIs of a partition may be issued, if any may. The answer changes with every call of the machine.
    #[must_use]
    pub fn issue_until(&self, partition: Partition) -> Option<Duration> {
        let holding = self.holdings.get(&partition)?;
        let guard_until = self.session.guard_until()?;
        (holding.phase == HoldingPhase::Ready).then_some(guard_until)
    }

    /// Time until which the session holds, if the node is a member.
    #[must_use]
    pub fn member_until(&self) -> Option<Duration> {
        self.session.guard_until()
    }

    /// Partitions that the node owns, with their epochs.
    pub fn held(&self) -> impl Iterator<Item = (Partition, u64)> {
        self.holdings
            .iter()
            .map(|(partition, holding)| (*partition, holding.epoch))
    }

    /// Returns `true` if an operator drains this node.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.view.is_drained(&self.name)
    }

    /// Returns `true` if this node leads.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// The records of all nodes, and whether each is drained.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &NodeRecord, bool)> {
        self.view.nodes.iter().filter_map(|(name, known)| {
            let is_drained = self.view.is_drained(name);
            Some((name.as_str(), known.record.as_ref()?, is_drained))
        })
    }

    /// The record of a partition, if it has one.
    #[must_use]
    pub fn partition(&self, partition: Partition) -> Option<&PartitionRecord> {
        self.view.partitions.get(partition.index())?.record.as_ref()
    }

    /// The record of the leader, if there is one.
    #[must_use]
    pub fn leader(&self) -> Option<&LeaderRecord> {
        self.view.leader.record.as_ref()
    }

    /// Takes note of a key. `record` is `None` if the key was deleted. `stored_ms` is the wall clock of NATS at that time, if known.
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
                let known = self.view.drained.entry(node.clone()).or_default();
                if known.revision < revision {
                    let record = record.map(|_| ());
                    *known = Known { revision, record };
                    self.needs_plan = true;
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
            (ClusterKey::Partition(partition), record) => {
                let Some(known) = self.view.partitions.get_mut(partition.index()) else {
                    return Vec::new();
                };
                if known.revision < revision {
                    let record = match record {
                        Some(ClusterRecord::Partition(record)) => Some(record),
                        _ => None,
                    };
                    *known = Known { revision, record };
                    self.needs_plan = true;
                }
                self.reconcile(*partition)
            }
        }
    }

    /// Takes note of the result of a write.
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
                if let ClusterKey::Partition(partition) = write.key {
                    self.pending.insert(partition);
                }
                self.needs_plan = true;
                vec![ControlAction::Read(write.key)]
            }
        }
    }

    /// Does what is due. `clock_ms` is the node's wall clock, for records only.
    pub fn tick(&mut self, now: Duration, clock_ms: i64) -> Vec<ControlAction> {
        if now.saturating_sub(self.ticked) > self.timings.time_to_live / 2 {
            // The process was stopped: what others wrote meanwhile has not been read yet.
            self.liveness.restart(now);
        }
        self.ticked = now;
        if !self.is_synced {
            return Vec::new();
        }
        let blocked = self.blocked.len();
        self.blocked.retain(|_, until| *until > now);
        // The last plan left these keys out.
        self.needs_plan |= self.blocked.len() < blocked;
        let mut actions = Vec::new();
        let own = self
            .view
            .nodes
            .get(&self.name)
            .map_or(0, |known| known.revision);
        let write = match self.is_leaving {
            true if self.holdings.is_empty() => self.session.leave(own, now, clock_ms),
            true if !self.session.is_member() => None,
            _ => self.session.due_write(own, now, clock_ms),
        };
        actions.extend(write.map(|write| self.begin(write)));
        for partition in std::mem::take(&mut self.pending) {
            actions.extend(self.reconcile(partition));
        }
        let may_act = self.session.guard_until().is_some_and(|until| now < until);
        if may_act && !self.is_leaving {
            actions.extend(self.expire_silent_nodes(now));
            actions.extend(self.seek_leadership(now));
            actions.extend(self.lead(now));
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
        actions.extend(self.judge_clock(node, record.as_ref(), stored_ms));
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
            actions.push(ControlAction::Report(ControlEvent::NodeGone(
                node.to_owned(),
            )));
        }
        if node == self.name {
            let change = self.session.observe(record.as_ref(), revision, now);
            actions.extend(
                change
                    .into_iter()
                    .flat_map(|change| self.change_session(change)),
            );
        }
        if !is_same {
            self.needs_plan = true;
            actions.extend(self.update_leading());
        }
        actions
    }

    /// Reports a clock that differs from the clock of NATS, once.
    fn judge_clock(
        &mut self,
        node: &str,
        record: Option<&NodeRecord>,
        stored_ms: Option<i64>,
    ) -> Option<ControlAction> {
        let record = record.filter(|record| record.state == SessionState::Live)?;
        let skew = record.clock_ms - stored_ms?;
        if skew.abs() <= SKEW_MAX_MS {
            self.skewed.remove(node);
            return None;
        }
        let is_new = self.skewed.insert(node.to_owned());
        is_new.then(|| ControlAction::Report(ControlEvent::ClockSkew(node.to_owned(), skew)))
    }

    fn change_session(&mut self, change: SessionChange) -> Vec<ControlAction> {
        match change {
            SessionChange::Joined => {
                let mut actions = vec![ControlAction::Report(ControlEvent::Joined)];
                for partition in self.count.into_iter().flat_map(PartitionCount::all) {
                    actions.extend(self.reconcile(partition));
                }
                actions
            }
            SessionChange::NameInUse => vec![ControlAction::Report(ControlEvent::NameInUse)],
            SessionChange::Lost | SessionChange::Left => {
                let held = std::mem::take(&mut self.holdings);
                let lost = held.into_iter().map(|(partition, holding)| {
                    ControlAction::Report(ControlEvent::Lost(partition, holding.epoch))
                });
                let mut actions: Vec<ControlAction> = lost.collect();
                let event = match change {
                    SessionChange::Left => ControlEvent::Left,
                    _ => ControlEvent::SessionLost,
                };
                actions.push(ControlAction::Report(event));
                actions
            }
        }
    }

    /// Compares what the node holds of a partition with the partition's record.
    fn reconcile(&mut self, partition: Partition) -> Vec<ControlAction> {
        let key = ClusterKey::Partition(partition);
        let Some(known) = self.view.partitions.get(partition.index()) else {
            return Vec::new();
        };
        let record = known.record.clone().unwrap_or_default();
        let expected = known.revision;
        let is_own = self.session.is_member()
            && record
                .owner
                .as_ref()
                .is_some_and(|owner| owner.node == self.name && owner.session == self.session.id());
        let mut actions = Vec::new();
        let holding = self.holdings.get(&partition).copied();
        let holding = match (holding, is_own) {
            (Some(holding), is_own) if !is_own || holding.epoch != record.epoch => {
                self.holdings.remove(&partition);
                actions.push(ControlAction::Report(ControlEvent::Lost(
                    partition,
                    holding.epoch,
                )));
                None
            }
            (holding, _) => holding,
        };
        let change = match holding {
            None if is_own => {
                let (epoch, phase) = (record.epoch, HoldingPhase::Loading);
                self.holdings.insert(partition, Holding { epoch, phase });
                actions.push(ControlAction::Report(ControlEvent::Claimed(
                    partition, epoch,
                )));
                None
            }
            None => {
                let is_target =
                    record.owner.is_none() && record.target.as_ref() == Some(&self.name);
                let may_claim = is_target && self.session.is_member() && !self.is_leaving;
                may_claim.then(|| PartitionRecord {
                    epoch: record.epoch + 1,
                    owner: Some(LeaseOwner {
                        node: self.name.clone(),
                        session: self.session.id(),
                    }),
                    ready: false,
                    target: None,
                })
            }
            Some(holding) => {
                let is_moving = record
                    .target
                    .as_ref()
                    .is_some_and(|target| *target != self.name);
                let is_ready = holding.phase == HoldingPhase::Ready;
                if is_ready && (is_moving || self.is_leaving) {
                    let (epoch, phase) = (holding.epoch, HoldingPhase::Releasing);
                    self.holdings.insert(partition, Holding { epoch, phase });
                    actions.push(ControlAction::Report(ControlEvent::Release(
                        partition, epoch,
                    )));
                    None
                } else if holding.phase == HoldingPhase::Released {
                    let target = record.target.clone().filter(|target| *target != self.name);
                    let (owner, ready, epoch) = (None, false, record.epoch);
                    Some(PartitionRecord {
                        epoch,
                        owner,
                        ready,
                        target,
                    })
                } else if is_ready && !record.ready {
                    Some(PartitionRecord {
                        ready: true,
                        ..record
                    })
                } else {
                    None
                }
            }
        };
        if let Some(record) = change {
            if self.in_flight.contains(&key) || self.blocked.contains_key(&key) {
                self.pending.insert(partition);
            } else {
                let record = ClusterRecord::Partition(record);
                actions.push(self.begin(KeyWrite {
                    key,
                    record,
                    expected,
                }));
            }
        }
        actions
    }

    pub(super) fn begin(&mut self, write: KeyWrite) -> ControlAction {
        self.in_flight.insert(write.key.clone());
        ControlAction::Write(write)
    }
}
