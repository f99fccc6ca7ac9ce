//! Parts of a job that another node can take over: who has each part, and its newest snapshot.
//!
//! A part has an epoch. Each directory of a job that gets the part has a greater one, and names this epoch when it writes
//! about the part. The server compares revisions, so a process whose part was taken over can neither publish a snapshot nor say
//! that the part is at rest. Claim a part only as a member of the job under the name of the part: then no other process works on it.

use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, BucketError};
use crate::clock::wall_clock_ms;
use crate::error::ClusterError;
use crate::job::ClusterJob;
use crate::losses::{self, MessagePlace};
use crate::partition::Partition;

/// Attempts to write a record that others write at the same time.
const ATTEMPTS_MAX: usize = 5;

/// A part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// Fencing number: each directory that gets the part has a greater one.
    pub epoch: u64,
    /// The node that has the part.
    pub node: String,
    /// Time at which it got the part, in milliseconds since 1970, by its own clock.
    pub claimed_ms: i64,
    /// The newest snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PublishedSnapshot>,
    /// Paths of the manifests of earlier snapshots that may still be in the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
}

/// A snapshot of a part in the job's archive store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSnapshot {
    /// Its number. Later snapshots of the part have greater ones.
    pub number: u64,
    /// Path of its manifest in the store.
    pub manifest: String,
    /// Size of the manifest in bytes.
    pub bytes: u64,
    /// SHA-256 of the manifest, in hexadecimal.
    pub sha256: String,
    /// The last message of the part's inbox that the snapshot covers; 0 for none.
    pub covered: u64,
    /// Known URIs.
    pub uris: u64,
    /// Time of the saved state, in milliseconds since 1970, by the clock of the node.
    pub made_ms: i64,
}

/// The part of a process.
#[derive(Debug, Clone, Copy)]
pub struct OwnPart<'a> {
    /// Name of the part.
    pub name: &'a str,
    /// Epoch of its directory.
    pub epoch: u64,
}

impl ClusterJob {
    /// The record of a part; `None` if no node has ever had it.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn part(&self, part: &str) -> Result<Option<PartRecord>, ClusterError> {
        Ok(self.read_part(part).await?.1)
    }

    /// Gives a part to this node. `known` is the epoch that the caller knows, 0 for a part that no node has had. Returns the new
    /// epoch.
    ///
    /// # Errors
    /// Another directory has got the part, or NATS fails.
    pub async fn claim_part(
        &self,
        part: &str,
        known: u64,
        node: &str,
    ) -> Result<u64, ClusterError> {
        let (revision, record) = self.read_part(part).await?;
        let epoch = record.as_ref().map_or(0, |record| record.epoch);
        if epoch != known {
            return Err(taken(part, record));
        }
        let claimed = PartRecord {
            epoch: epoch + 1,
            node: node.to_owned(),
            claimed_ms: wall_clock_ms(),
            replaced: record
                .as_ref()
                .map_or_else(Vec::new, |record| record.replaced.clone()),
            snapshot: record.and_then(|record| record.snapshot),
        };
        match write(&self.state, &part_key(part), &claimed, revision).await {
            Ok(()) => Ok(claimed.epoch),
            Err(BucketError::Failed(error)) => Err(error),
            Err(BucketError::Conflict) => Err(self.taken(part).await),
        }
    }

    /// Checks that no other directory has got the part.
    ///
    /// # Errors
    /// [`ClusterError::PartTaken`], or NATS fails.
    pub async fn check_part(&self, own: OwnPart<'_>) -> Result<(), ClusterError> {
        let record = self.part(own.name).await?;
        match record.as_ref().is_some_and(|it| it.epoch == own.epoch) {
            true => Ok(()),
            false => Err(taken(own.name, record)),
        }
    }

    /// Makes a snapshot, which is in the store, the newest of its part. `removed` are manifests of earlier ones that are no longer there.
    /// Returns the manifests of those that may be: remove these snapshots.
    ///
    /// # Errors
    /// [`ClusterError::PartTaken`] if another directory has got the part, or NATS fails. The snapshot may have been published.
    pub async fn publish_snapshot(
        &self,
        own: OwnPart<'_>,
        snapshot: PublishedSnapshot,
        removed: &[String],
    ) -> Result<Vec<String>, ClusterError> {
        for _ in 0..ATTEMPTS_MAX {
            let (revision, record) = self.read_part(own.name).await?;
            let Some(mut record) = record.filter(|record| record.epoch == own.epoch) else {
                return Err(self.taken(own.name).await);
            };
            let before = record.snapshot.replace(snapshot.clone());
            record.replaced.extend(before.map(|before| before.manifest));
            record
                .replaced
                .retain(|manifest| !removed.contains(manifest) && *manifest != snapshot.manifest);
            match write(&self.state, &part_key(own.name), &record, revision).await {
                Ok(()) => return Ok(record.replaced),
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(ClusterError::Unavailable {
            kind: "a snapshot",
            source: "another process writes about the part at the same time".into(),
        })
    }

    /// Publishes the figures of a part, as the crawl encodes them. Call it as its process.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn publish_figures(&self, part: &str, figures: Vec<u8>) -> Result<(), ClusterError> {
        self.state.put(&figures_key(part), figures).await
    }

    /// The last figures of a part; `None` if its process has published none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn figures(&self, part: &str) -> Result<Option<Vec<u8>>, ClusterError> {
        let entry = self.state.read(&figures_key(part)).await?;
        let value = entry.and_then(|entry| entry.value);
        Ok(value.map(|value| value.to_vec()))
    }

    /// Removes links into a part or partition up to this message from the stream. If the message is not there any more, nothing is
    /// removed: it was removed before, or NATS has lost it, and others may have the numbers up to it.
    ///
    /// # Errors
    /// NATS fails. Then the links are delivered again to the next reader.
    pub async fn acknowledge_links(
        &self,
        partition: Partition,
        through: MessagePlace,
    ) -> Result<(), ClusterError> {
        let (stream, subject) = self.links(partition);
        if !losses::has(stream, through, "acknowledging links").await? {
            return Ok(());
        }
        let behind = through.sequence + 1;
        let purged = stream.purge().filter(subject).sequence(behind).await;
        purged
            .map(drop)
            .map_err(|error| ClusterError::of_request("acknowledging links", error))
    }

    /// Messages with links into a part or partition that are in the stream.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn inbox_messages(&self, partition: Partition) -> Result<u64, ClusterError> {
        let (stream, subject) = self.links(partition);
        let failed = "a question for links";
        let info = stream.info_with_subjects(&subject).await;
        let mut info = info.map_err(|error| ClusterError::of_request(failed, error))?;
        let mut messages = 0;
        while let Some(counted) = crate::bucket::next(&mut info).await {
            let (_, count) = counted.map_err(|error| ClusterError::of_request(failed, error))?;
            messages += count as u64;
        }
        Ok(messages)
    }

    /// The error for a part that another directory has got, or the reason why that is unknown.
    pub(crate) async fn taken(&self, part: &str) -> ClusterError {
        match self.part(part).await {
            Ok(record) => taken(part, record),
            Err(error) => error,
        }
    }

    async fn read_part(&self, part: &str) -> Result<(u64, Option<PartRecord>), ClusterError> {
        let Some(entry) = self.state.read(&part_key(part)).await? else {
            return Ok((0, None));
        };
        let Some(value) = entry.value else {
            return Ok((entry.revision, None));
        };
        let record = serde_json::from_slice(&value).map_err(|_| ClusterError::Malformed {
            kind: "record of a part",
            stream: format!("KV_opilio_job_{}", self.name),
            sequence: entry.revision,
        })?;
        Ok((entry.revision, Some(record)))
    }
}

async fn write(
    bucket: &Bucket,
    key: &str,
    record: &PartRecord,
    revision: u64,
) -> Result<(), BucketError> {
    let json = serde_json::to_vec(record).unwrap_or_default();
    bucket.write(key, json, revision).await.map(drop)
}

/// The error for a part that another directory has got.
fn taken(part: &str, record: Option<PartRecord>) -> ClusterError {
    let (node, epoch) = record.map_or((String::new(), 0), |record| (record.node, record.epoch));
    ClusterError::PartTaken {
        part: part.to_owned(),
        node,
        epoch,
    }
}

fn figures_key(part: &str) -> String {
    format!("figures.{part}")
}

fn part_key(part: &str) -> String {
    format!("parts.{part}")
}
