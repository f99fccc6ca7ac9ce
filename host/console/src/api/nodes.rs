//! Nodes of the cluster.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use opilio_cluster::{Cluster, ClusterError};
use opilio_control::chain;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Done, Shared};
use crate::access::{Caller, Role};
use crate::daemon::Daemon;
use crate::input::PathParams;
use crate::node::ListedNode;
use crate::problem::Problem;

/// Nodes of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// Name of the node whose daemon answers.
    own: String,
    /// All nodes, by name.
    nodes: Vec<ListedNode>,
}

/// Lists the nodes of the cluster.
#[utoipa::path(get, path = "/nodes", operation_id = "list_nodes", tag = "daemon", responses((status = 200, body = NodeList)))]
pub(crate) async fn list(State(daemon): Shared) -> Result<Json<NodeList>, Problem> {
    let cluster = daemon.cluster()?;
    Ok(Json(NodeList {
        own: cluster.config().node.clone(),
        nodes: ListedNode::all(cluster).await?,
    }))
}

/// Shows a node of the cluster.
#[utoipa::path(get, path = "/nodes/{node}", operation_id = "show_node", tag = "daemon", params(("node" = String, Path, description = "Name of the node")), responses((status = 200, body = ListedNode)))]
pub(crate) async fn show(
    State(daemon): Shared,
    PathParams(node): PathParams<String>,
) -> Result<Json<ListedNode>, Problem> {
    Ok(Json(ListedNode::one(daemon.cluster()?, &node).await?))
}

/// Drains a node: its daemon starts no crawls any more. Running crawls continue.
#[utoipa::path(post, path = "/nodes/{node}/drain", operation_id = "drain_node", tag = "daemon", params(("node" = String, Path, description = "Name of the node")), responses((status = 200, body = Done)))]
pub(crate) async fn drain(
    State(daemon): Shared,
    PathParams(node): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    daemon.cluster()?.drain(&node).await?;
    let result = format!("node {node:?} is drained: its daemon starts no crawls");
    Ok(Json(Done { result }))
}

/// Ends the draining of a node.
#[utoipa::path(delete, path = "/nodes/{node}/drain", operation_id = "undrain_node", tag = "daemon", params(("node" = String, Path, description = "Name of the node")), responses((status = 200, body = Done)))]
pub(crate) async fn undrain(
    State(daemon): Shared,
    PathParams(node): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    daemon.cluster()?.undrain(&node).await?;
    let result = format!("node {node:?} is no longer drained");
    Ok(Json(Done { result }))
}

/// Removes a node that has left or is gone. If no other node was there to notice that the node is gone, the answer takes as long as
/// the node's time to live.
#[utoipa::path(delete, path = "/nodes/{node}", operation_id = "remove_node", tag = "daemon", params(("node" = String, Path, description = "Name of the node")), responses((status = 204, description = "The node is removed")))]
pub(crate) async fn remove(
    State(daemon): Shared,
    caller: Caller,
    PathParams(node): PathParams<String>,
) -> Result<StatusCode, Problem> {
    caller.needs(Role::Admin)?;
    daemon.cluster()?.remove(&node).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Daemon {
    pub(crate) fn cluster(&self) -> Result<&Cluster, Problem> {
        let node = self.node.as_ref().ok_or_else(|| {
            Problem::conflict(
                "this daemon is in no cluster: add [cluster] to its configuration, and restart it",
            )
        })?;
        Ok(node.cluster())
    }
}

impl From<ClusterError> for Problem {
    fn from(problem: ClusterError) -> Problem {
        let message = chain(&problem);
        match problem {
            ClusterError::Config(_) => Problem::unusable(message),
            ClusterError::UnknownNode { .. } => Problem::not_found(message),
            ClusterError::NodeAlive { .. } => Problem::conflict(message),
            problem if problem.is_temporary() => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, message)
            }
            _ => Problem::failure(message),
        }
    }
}
