//! The crawls whose parts each node takes over, in the bucket of nodes. A daemon that wants a part waits for the nodes before it in the
//! order of the part. It need not wait for those that take no parts of the crawl over.

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
    /// Names of crawls, in which `*` stands for any characters; empty if it takes no parts over.
    pub crawls: Vec<String>,
}

impl Cluster {
    /// Tells the other nodes of which crawls this one takes parts over.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn publish_takeover_scope(&self, scope: &TakeoverScope) -> Result<(), ClusterError> {
        let key = format!("{PREFIX}{}", self.config().node);
        let json = serde_json::to_vec(scope).unwrap_or_default();
        self.bucket.put(&key, json).await
    }

    /// The crawls of which nodes take parts over, by node. A node that has told nothing is missing.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn takeover_scopes(&self) -> Result<BTreeMap<String, TakeoverScope>, ClusterError> {
        // The format always exists, so that the list is never empty.
        let keys = ["format", "takeovers.*"];
        let entries = self.bucket.list(&keys).await?;
        let scopes = entries.into_iter().filter_map(|entry| {
            let node = entry.key.strip_prefix(PREFIX)?.to_owned();
            // One that cannot be read is of another version.
            let scope = serde_json::from_slice(entry.value.as_deref()?).ok()?;
            Some((node, scope))
        });
        Ok(scopes.collect())
    }

    /// Deletes what a node that is removed from the list has told.
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
