//! The end of a job whose nodes work independently: each node reports when it has nothing left to do, and any node can find out that
//! this is true of all.
//!
//! A node is at rest if its frontier is empty, other nodes have taken all links that it had to send, and it will take nothing from NATS
//! before it has reported that it works again. The job is finished if all nodes are at rest, no link waits, and no node has
//! worked in between. The number of each change shows that: a node that worked for a moment has another number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bucket::BucketError;
use crate::error::ClusterError;
use crate::job::ClusterJob;

/// Attempts to write a node's state. Nobody else writes it.
const ATTEMPTS_MAX: usize = 5;

/// Progress of a job, as far as one reading shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobProgress {
    /// All nodes are at rest, and no link waits.
    Finished,
    /// These nodes have not reported that they are at rest.
    NodesAtWork(Vec<String>),
    /// All nodes are at rest, but links wait: a node that has to process them has ended.
    LinksWait(u64),
}

/// State of a node's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct NodeWork {
    is_at_rest: bool,
    /// Number of the change.
    change: u64,
    /// Epoch of the part, if another node can take it over.
    #[serde(default)]
    epoch: u64,
}

impl ClusterJob {
    /// Reports that this node is at rest, or at work. Report work before the node takes links, and wait until this returns.
    /// `epoch` is that of its part; 0 if no other node can take the part over.
    ///
    /// # Errors
    /// [`ClusterError::PartTaken`] if the part has a greater epoch. NATS fails; then the state may have been written.
    pub async fn set_rest(&self, is_at_rest: bool, epoch: u64) -> Result<(), ClusterError> {
        let key = format!("rest.{}", self.cluster.config().node);
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.state.read(&key).await?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let known = entry.and_then(|entry| entry.value);
            let known = known.and_then(|value| serde_json::from_slice::<NodeWork>(&value).ok());
            if let Some(known) = known
                && known.epoch > epoch
            {
                return Err(self.taken(&self.cluster.config().node).await);
            }
            let work = NodeWork {
                is_at_rest,
                change: known.map_or(0, |work| work.change) + 1,
                epoch,
            };
            let json = serde_json::to_vec(&work).unwrap_or_default();
            match self.state.write(&key, json, revision).await {
                Ok(_) => return Ok(()),
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(ClusterError::Unavailable {
            kind: "the state of a node's work",
            source: "another process writes it at the same time".into(),
        })
    }

    /// Returns `true` if a node has recorded that it is at rest.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn is_at_rest(&self, node: &str) -> Result<bool, ClusterError> {
        let entry = self.state.read(&format!("rest.{node}")).await?;
        let value = entry.and_then(|entry| entry.value);
        let work = value.and_then(|value| serde_json::from_slice::<NodeWork>(&value).ok());
        Ok(work.is_some_and(|work| work.is_at_rest))
    }

    /// Progress of these nodes towards the end of the job.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn progress(&self, nodes: &[String]) -> Result<JobProgress, ClusterError> {
        let before = self.work().await?;
        let at_work = |node: &&String| before.get(*node).is_none_or(|work| !work.is_at_rest);
        let at_work: Vec<String> = nodes.iter().filter(at_work).cloned().collect();
        if !at_work.is_empty() {
            return Ok(JobProgress::NodesAtWork(at_work));
        }
        let waiting = self.waiting_link_messages().await?;
        let after = self.work().await?;
        let changed = |node: &&String| before.get(*node) != after.get(*node);
        let changed: Vec<String> = nodes.iter().filter(changed).cloned().collect();
        Ok(match (changed.is_empty(), waiting) {
            (false, _) => JobProgress::NodesAtWork(changed),
            (true, 0) => JobProgress::Finished,
            (true, waiting) => JobProgress::LinksWait(waiting),
        })
    }

    /// The state of all nodes' work.
    async fn work(&self) -> Result<BTreeMap<String, NodeWork>, ClusterError> {
        let entries = self.state.list("rest.*").await?;
        let work = entries.into_iter().filter_map(|entry| {
            let node = entry.key.strip_prefix("rest.")?.to_owned();
            let work = serde_json::from_slice(entry.value.as_deref()?).ok()?;
            Some((node, work))
        });
        Ok(work.collect())
    }
}
