//! The leader's plan: which partitions get a new target now. Partitions without a living owner come first; balancing moves one
//! partition at a time from and to each node.

use std::collections::{BTreeMap, BTreeSet};

use super::assignment::assign;
use super::records::{
    ClusterKey, ClusterRecord, KeyWrite, LeaderRecord, NodeRecord, PartitionRecord, SessionState,
};
use crate::partition::{Partition, PartitionCount};

/// Partitions without owner that a node takes over at a time. Loading each takes time.
const TAKEOVERS_MAX: usize = 4;

/// The last known revision and record of a key. Deleted keys have a revision only.
#[derive(Debug, Clone)]
pub(super) struct Known<R> {
    pub(super) revision: u64,
    pub(super) record: Option<R>,
}

impl<R> Default for Known<R> {
    fn default() -> Self {
        Self {
            revision: 0,
            record: None,
        }
    }
}

/// The bucket as this node knows it.
#[derive(Debug)]
pub(super) struct View {
    pub(super) nodes: BTreeMap<String, Known<NodeRecord>>,
    pub(super) drained: BTreeMap<String, Known<()>>,
    pub(super) leader: Known<LeaderRecord>,
    pub(super) partitions: Vec<Known<PartitionRecord>>,
}

impl View {
    pub(super) fn new(count: Option<PartitionCount>) -> Self {
        Self {
            nodes: BTreeMap::new(),
            drained: BTreeMap::new(),
            leader: Known::default(),
            partitions: vec![Known::default(); count.map_or(0, |count| count.get().into())],
        }
    }

    /// Returns `true` if this session of a node is live.
    pub(super) fn is_live(&self, node: &str, session: &str) -> bool {
        self.nodes
            .get(node)
            .and_then(|known| known.record.as_ref())
            .is_some_and(|record| record.state == SessionState::Live && record.session == session)
    }

    fn live_nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|(name, known)| {
            let is_live = known.record.as_ref()?.state == SessionState::Live;
            is_live.then_some(name.as_str())
        })
    }

    pub(super) fn is_drained(&self, node: &str) -> bool {
        let drained = self.drained.get(node);
        drained.is_some_and(|known| known.record.is_some())
    }

    fn living_owner<'r>(&self, record: &'r PartitionRecord) -> Option<&'r str> {
        let owner = record.owner.as_ref()?;
        let is_live = self.is_live(&owner.node, &owner.session);
        is_live.then_some(owner.node.as_str())
    }
}

/// The writes that bring the partitions closer to their assignment, as many as may be under way at once.
pub(super) fn plan(
    count: PartitionCount,
    view: &View,
    is_in_flight: &dyn Fn(&ClusterKey) -> bool,
) -> Vec<KeyWrite> {
    let nodes: Vec<&str> = view
        .live_nodes()
        .filter(|node| !view.is_drained(node))
        .collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let candidates: BTreeSet<&str> = nodes.iter().copied().collect();
    let empty = PartitionRecord::default();
    let record = |partition: Partition| -> &PartitionRecord {
        view.partitions[partition.index()]
            .record
            .as_ref()
            .unwrap_or(&empty)
    };
    let desired = assign(count, &nodes, &|partition| {
        let record = record(partition);
        let target = record
            .target
            .as_deref()
            .filter(|node| candidates.contains(node));
        let place = target.or_else(|| view.living_owner(record));
        place.map(str::to_owned)
    });
    let mut transfers = Transfers::default();
    for partition in count.all() {
        let record = record(partition);
        let owner = view.living_owner(record);
        let target = record
            .target
            .as_deref()
            .filter(|node| candidates.contains(node));
        match (owner, target) {
            (Some(owner), Some(target)) if owner != target => {
                transfers.begin(owner);
                transfers.begin(target);
            }
            (Some(owner), _) if !record.ready => transfers.begin(owner),
            (None, Some(target)) if record.owner.is_none() => transfers.begin(target),
            _ => {}
        }
    }
    let mut writes = Vec::new();
    let mut write = |partition: Partition, record: PartitionRecord| {
        writes.push(KeyWrite {
            key: ClusterKey::Partition(partition),
            record: ClusterRecord::Partition(record),
            expected: view.partitions[partition.index()].revision,
        });
    };
    let mut balancing = Vec::new();
    for partition in count.all() {
        let Some(node) = desired[partition.index()].as_deref() else {
            continue;
        };
        let record = record(partition);
        let is_targeted = record.target.as_deref() == Some(node);
        if is_in_flight(&ClusterKey::Partition(partition)) {
            continue;
        }
        match view.living_owner(record) {
            None if is_targeted && record.owner.is_none() => {}
            None => {
                if transfers.count(node) < TAKEOVERS_MAX {
                    transfers.begin(node);
                    let target = Some(node.to_owned());
                    write(
                        partition,
                        PartitionRecord {
                            epoch: record.epoch,
                            target,
                            ..empty.clone()
                        },
                    );
                }
            }
            Some(owner) if owner == node && record.target.is_none() => {}
            Some(_) if is_targeted => {}
            // The target is gone, or the partition is to stay after all.
            Some(owner) if record.target.is_some() => {
                let target = (owner != node).then(|| node.to_owned());
                write(
                    partition,
                    PartitionRecord {
                        target,
                        ..record.clone()
                    },
                );
            }
            Some(owner) => balancing.push((partition, owner, node)),
        }
    }
    for (partition, owner, node) in balancing {
        if transfers.count(owner) == 0 && transfers.count(node) == 0 {
            transfers.begin(owner);
            transfers.begin(node);
            let target = Some(node.to_owned());
            write(
                partition,
                PartitionRecord {
                    target,
                    ..record(partition).clone()
                },
            );
        }
    }
    writes
}

/// Partitions that each node is giving up or taking over.
#[derive(Default)]
struct Transfers(BTreeMap<String, usize>);

impl Transfers {
    fn begin(&mut self, node: &str) {
        *self.0.entry(node.to_owned()).or_default() += 1;
    }

    fn count(&self, node: &str) -> usize {
        self.0.get(node).copied().unwrap_or_default()
    }
}
