//! The crawls whose parts each node takes over, in the bucket of nodes. A daemon that could take over a part waits longer for each node
//! that precedes it in the order of the part. Nodes that take over no parts of the crawl do not count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bucket::BucketError;
use crate::error::ClusterError;
use crate::nodes::Cluster;

/// Beginning of the keys, before the name of the node.
const PREFIX: &str = "takeovers.";

/// The crawls whose parts the daemon of a node takes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeoverScope {
    /// Names of crawls, in which `*` stands for any characters; empty if the daemon takes over no parts.
    pub crawls: Vec<String>,
}

impl Cluster {
    /// Publishes the crawls whose parts this node takes over, for the other nodes.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn publish_takeover_scope(&self, scope: &TakeoverScope) -> Result<(), ClusterError> {
        let key = format!("{PREFIX}{}", self.config().node);
        let json = serde_json::to_vec(scope).unwrap_or_default();
        self.bucket.put(&key, json).await
    }

    /// Returns the crawls whose parts nodes take over, by node. A node that has published none is missing.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn takeover_scopes(&self) -> Result<BTreeMap<String, TakeoverScope>, ClusterError> {
        let entries = self.bucket.list("takeovers.*").await?;
        let scopes = entries.into_iter().filter_map(|entry| {
            let node = entry.key.strip_prefix(PREFIX)?.to_owned();
            // An entry that cannot be read is of another version.
            let scope = serde_json::from_slice(entry.value.as_deref()?).ok()?;
            Some((node, scope))
        });
        Ok(scopes.collect())
    }

    /// Deletes the entry of a node that is removed from the list of nodes.
    pub(crate) async fn forget_takeover_scope(&self, node: &str) -> Result<(), ClusterError> {
        let key = format!("{PREFIX}{node}");
        let entry = self.bucket.read(&key).await?;
        let Some(entry) = entry.filter(|entry| entry.value.is_some()) else {
            return Ok(());
        };
        match self.bucket.delete(&key, entry.revision).await {
            // The node has joined again.
            Ok(()) | Err(BucketError::Conflict) => Ok(()),
            Err(BucketError::Failed(error)) => Err(error),
        }
    }
}
