//! Events of a membership, for the crawl or the daemon.

/// An event of a membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEvent {
    /// Other nodes have ended the session. The node joins again automatically.
    SessionLost,
    /// Another process uses the name of this node. This node does nothing until the other session is silent.
    NameInUse,
    /// The node has left on request.
    Left,
    /// The node has become leader, or is no longer leader.
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
