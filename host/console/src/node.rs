//! This daemon as a node of its cluster: it joins at its start, renews its session, and leaves at its end. It logs events of the
//! cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_cluster::control::{SessionEnd, SessionState};
use opilio_cluster::{
    Availability, Cluster, ClusterConfig, ClusterConnection, ClusterError, Member, MemberEvent,
    MemberEvents, MemberScope, MemberStatus, NodeOverview, TakeoverScope,
};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

/// Time limit for a list of the nodes. NATS answers within milliseconds, unless a server has died.
const LIST_TIME_MAX: Duration = Duration::from_secs(10);

/// Time limit for leaving. After a failure the session ends by itself, and the name is free after the time to live.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(5);

/// The membership of this daemon.
pub(crate) struct ClusterNode {
    cluster: Cluster,
    member: Member,
    log: JoinHandle<()>,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ListedNode {
    /// Name of the node.
    pub name: String,
    /// State of the node's session.
    pub state: NodeState,
    /// `true` if an operator drains the node: its daemon starts no crawls.
    pub is_drained: bool,
    /// `true` if the node is the leader: it observes the other nodes.
    pub is_leader: bool,
    /// Version of the node's program.
    pub version: String,
    /// Time at which the node joined, by its own clock.
    pub since: Timestamp,
    /// Time of the last renewal of its session, by the clock of NATS.
    pub renewed: Timestamp,
    /// Difference of the node's clock from the clock of NATS, in seconds; positive if the node's clock is ahead.
    pub clock_skew_s: f64,
}

/// State of a node's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// The node renews its session, or no other node has noticed yet that it does not.
    Live,
    /// The node does not renew its session, and another node has noticed this.
    Gone,
    /// The node has left.
    Left,
}

impl ClusterNode {
    /// Joins the cluster, and creates it if it does not exist.
    pub(crate) async fn join(config: ClusterConfig) -> Result<ClusterNode, ClusterError> {
        let node = config.node.clone();
        let connection = ClusterConnection::open(config).await?;
        let cluster = Cluster::open(connection, &MemberScope::Nodes).await?;
        tracing::info!(node, "joining the cluster");
        let (member, events) = Member::join(&cluster, env!("CARGO_PKG_VERSION")).await?;
        tracing::info!(node, "joined the cluster");
        let log = tokio::spawn(log(node, member.status(), events));
        Ok(ClusterNode {
            cluster,
            member,
            log,
        })
    }

    /// Returns the node's name.
    pub(crate) fn name(&self) -> &str {
        &self.cluster.config().node
    }

    /// The cluster.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The settings of the cluster.
    pub(crate) fn settings(&self) -> &ClusterConfig {
        self.cluster.config()
    }

    /// The present state of the membership.
    pub(crate) fn status(&self) -> MemberStatus {
        self.member.status().borrow().clone()
    }

    /// Returns `true` if an operator drains the node.
    pub(crate) fn is_drained(&self) -> bool {
        self.member.status().borrow().is_drained
    }

    /// Leaves the cluster, so that the name is free at once.
    pub(crate) async fn leave(&self) {
        self.member.leave(SessionEnd::Left).await;
        let mut status = self.member.status();
        let left = status.wait_for(|status| status.availability == Availability::Outside);
        if tokio::time::timeout(LEAVE_TIME_MAX, left).await.is_err() {
            tracing::warn!(
                node = self.name(),
                "NATS does not answer: the node leaves the cluster when its session ends"
            );
        }
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.log.abort();
    }
}

impl ListedNode {
    /// All nodes, by name.
    ///
    /// # Errors
    /// NATS fails, or does not answer.
    pub async fn all(cluster: &Cluster) -> Result<Vec<ListedNode>, ClusterError> {
        let listed = overviews(cluster).await?;
        Ok(listed.into_iter().map(ListedNode::from).collect())
    }

    /// The node of a name.
    ///
    /// # Errors
    /// There is no such node, or as [`Self::all`].
    pub async fn one(cluster: &Cluster, name: &str) -> Result<ListedNode, ClusterError> {
        let mut nodes = Self::all(cluster).await?.into_iter();
        let found = nodes.find(|node| node.name == name);
        found.ok_or_else(|| ClusterError::UnknownNode {
            node: name.to_owned(),
        })
    }
}

/// Returns the cluster's overviews of all nodes, by name.
///
/// # Errors
/// NATS fails, or does not answer.
pub(crate) async fn overviews(cluster: &Cluster) -> Result<Vec<NodeOverview>, ClusterError> {
    answer_of(cluster.nodes()).await
}

/// Returns the crawls whose parts nodes take over, by node.
///
/// # Errors
/// NATS fails, or does not answer.
pub(crate) async fn takeover_scopes(
    cluster: &Cluster,
) -> Result<BTreeMap<String, TakeoverScope>, ClusterError> {
    answer_of(cluster.takeover_scopes()).await
}

/// Waits for a list of NATS.
async fn answer_of<T>(
    list: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    let listed = tokio::time::timeout(LIST_TIME_MAX, list).await;
    listed.map_err(|elapsed| ClusterError::Unavailable {
        kind: "a question for the nodes",
        source: elapsed.into(),
    })?
}

impl From<NodeOverview> for ListedNode {
    fn from(node: NodeOverview) -> ListedNode {
        let time = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap_or_default();
        ListedNode {
            state: match node.state {
                SessionState::Live => NodeState::Live,
                SessionState::Expired => NodeState::Gone,
                SessionState::Left => NodeState::Left,
            },
            is_drained: node.is_drained,
            is_leader: node.is_leader,
            version: node.version,
            since: time(node.since_ms),
            renewed: time(node.renewed_ms),
            clock_skew_s: node.clock_skew_ms as f64 / 1000.0,
            name: node.name,
        }
    }
}

impl NodeState {
    /// Returns the state's name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NodeState::Live => "live",
            NodeState::Gone => "gone",
            NodeState::Left => "left",
        }
    }
}

/// All states of the connection to NATS, with their names in API and metrics.
pub(crate) const AVAILABILITIES: [(Availability, &str); 6] = [
    (Availability::Outside, "outside"),
    (Availability::Working, "working"),
    (Availability::Slow, "slow"),
    (Availability::Riding, "riding"),
    (Availability::Paused, "paused"),
    (Availability::Full, "full"),
];

/// The name of a state in API and metrics.
pub(crate) fn availability_name(availability: Availability) -> &'static str {
    let mut known = AVAILABILITIES.iter();
    let found = known.find(|(state, _)| *state == availability);
    found.map_or("", |(_, name)| name)
}

/// Writes events and changes of the membership to the log, until the node has left.
async fn log(node: String, mut status: watch::Receiver<MemberStatus>, mut events: MemberEvents) {
    let mut known = status.borrow_and_update().clone();
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => log_event(&node, event),
                None => return,
            },
            changed = status.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = status.borrow_and_update().clone();
                log_change(&node, &known, &now);
                known = now;
            }
        }
    }
}

fn log_event(node: &str, event: MemberEvent) {
    match event {
        MemberEvent::NodeGone(gone) => tracing::warn!(
            node,
            "node {gone:?} is gone: it does not renew its session; if it does not come back, run `opilio node remove {gone}`"
        ),
        MemberEvent::ClockSkew { node, milliseconds } => tracing::warn!(
            node,
            "the clock of node {node:?} differs from that of NATS by {milliseconds} ms: run a time service, such as chrony"
        ),
        MemberEvent::SessionLost => tracing::warn!(
            node,
            "other nodes ended the session of this node, because it was not renewed; the node joins again"
        ),
        MemberEvent::NameInUse => tracing::error!(
            node,
            "another process is in the cluster under the name of this node: stop it, or choose another name in cluster.node"
        ),
        MemberEvent::Left => tracing::info!(node, "left the cluster"),
        MemberEvent::Leading(true) => tracing::info!(node, "this node leads the cluster"),
        MemberEvent::Leading(false) => {
            tracing::info!(node, "this node no longer leads the cluster")
        }
    }
}

fn log_change(node: &str, before: &MemberStatus, now: &MemberStatus) {
    if before.is_drained != now.is_drained {
        match now.is_drained {
            true => tracing::info!(node, "this node is drained: the daemon starts no crawls"),
            false => tracing::info!(node, "this node is no longer drained"),
        }
    }
    if before.availability == now.availability {
        return;
    }
    match now.availability {
        Availability::Working => tracing::info!(node, "NATS answers"),
        Availability::Slow => tracing::warn!(node, "NATS answers slowly"),
        Availability::Riding => tracing::warn!(node, "NATS does not answer"),
        Availability::Paused => tracing::warn!(
            node,
            "NATS has not answered for so long that the session of this node may have ended"
        ),
        Availability::Full => tracing::error!(
            node,
            "JetStream has no room: raise max_file_store of nats-server, or free disk"
        ),
        Availability::Outside => tracing::info!(node, "this node is not in the cluster"),
    }
}
