//! The contents of the bucket of members, as far as a node knows them.

use std::collections::BTreeMap;

use super::records::{LeaderRecord, NodeRecord, SessionState};

/// The last known revision and record of a key. Deleted keys have a revision only.
#[derive(Debug)]
pub(super) struct Known<R> {
    pub(super) revision: u64,
    pub(super) record: Option<R>,
}

/// Keys that a node knows.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) nodes: BTreeMap<String, Known<NodeRecord>>,
    pub(super) leader: Known<LeaderRecord>,
    /// The key with which an operator drains this node.
    pub(super) drain: Known<()>,
}

impl<R> Default for Known<R> {
    fn default() -> Self {
        Self {
            revision: 0,
            record: None,
        }
    }
}

impl View {
    /// Returns `true` if this session of a node is live.
    pub(super) fn is_live(&self, node: &str, session: &str) -> bool {
        self.nodes
            .get(node)
            .and_then(|known| known.record.as_ref())
            .is_some_and(|record| record.state == SessionState::Live && record.session == session)
    }
}
