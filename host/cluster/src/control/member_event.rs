//! Events of a membership, as the crawl is told of them.

/// An event of a membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEvent {
    /// The session was ended by others, and the node joins again by itself.
    SessionLost,
    /// Another process uses the name of this node; this node does nothing until the other is silent.
    NameInUse,
    /// The node has left, as it was asked to.
    Left,
    /// The node became or is no longer leader.
    Leading(bool),
    /// A node did not renew its session.
    NodeGone(String),
    /// The wall clock of a node differs from that of NATS.
    ClockSkew {
        /// The node.
        node: String,
        /// The difference in milliseconds; positive if the node is ahead.
        milliseconds: i64,
    },
}
