//! Parts of a job that another node can take over: the node that has each part, and its newest snapshot.
//!
//! A part has an epoch. Each directory of a job that gets the part has a greater epoch, which it passes with all records about the
//! part. NATS compares revisions. So a process whose part was taken over can neither publish a snapshot nor report that the part is
//! at rest. Claim a part only as a member of the job under the name of the part, because then no other process works on it.

use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, BucketEntry, BucketError};
use crate::clock::wall_clock_ms;
use crate::control::SessionState;
use crate::error::ClusterError;
use crate::job::ClusterJob;
use crate::losses::{self, MessagePlace};
use crate::nodes::{Cluster, MemberScope};
use crate::partition::Partition;

/// Attempts to write a record that others write at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Maximum length of the stored cause of a failed takeover, in characters.
const PROBLEM_CHARS_MAX: usize = 1_000;

/// Cause of a failed takeover if its daemon could not record the cause.
const INTERRUPTED: &str = "its daemon ended or lost its session after it had begun at that time";

/// A part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// Fencing number: each directory that gets the part has a greater epoch.
    pub epoch: u64,
    /// The node that has the part.
    pub node: String,
    /// Time at which the node got the part, in milliseconds since 1970, by the node's clock.
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
    /// Number of the snapshot. Later snapshots of the part have greater numbers.
    pub number: u64,
    /// Path of the snapshot's manifest in the store.
    pub manifest: String,
    /// Size of the manifest in bytes.
    pub bytes: u64,
    /// SHA-256 of the manifest, in hexadecimal.
    pub sha256: String,
    /// Number of the last message of the part's inbox that the snapshot includes; 0 for none.
    pub covered: u64,
    /// Known URIs.
    pub uris: u64,
    /// Time of the saved state, in milliseconds since 1970, by the clock of the node.
    pub made_ms: i64,
}

/// Takeovers of a part that daemons have begun or that have failed. The record only informs operators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeoverRecord {
    /// Epoch of the part before the takeovers; 0 if no directory had it.
    pub epoch: u64,
    /// The takeover in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<TakeoverAttempt>,
    /// The last failed takeover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TakeoverFailure>,
}

/// A takeover that a daemon has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeoverAttempt {
    /// The node whose daemon takes the part over.
    pub node: String,
    /// Time at which the takeover began, in milliseconds since 1970, by the node's clock.
    pub since_ms: i64,
}

/// A failed takeover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeoverFailure {
    /// The node whose daemon tried to take the part over.
    pub node: String,
    /// Time of the failure, in milliseconds since 1970, by the clock of the node.
    pub at_ms: i64,
    /// The cause of the failure.
    pub problem: String,
}

impl TakeoverRecord {
    /// Keeps only takeovers that no later takeover has superseded, for a part with this record. They include takeovers by the node
    /// that has got the part, because that node may still have to create the job, or have failed to do so.
    fn of_part(mut self, part: Option<&PartRecord>) -> Option<Self> {
        let (epoch, node) = part.map_or((0, ""), |part| (part.epoch, part.node.as_str()));
        if epoch != self.epoch {
            if epoch != self.epoch.saturating_add(1) {
                return None;
            }
            self.attempt = self.attempt.filter(|attempt| attempt.node == node);
            self.failure = self.failure.filter(|failure| failure.node == node);
        }
        (self.attempt.is_some() || self.failure.is_some()).then_some(self)
    }

    /// Converts a takeover in progress to a failure if its daemon no longer works on it.
    fn checked(mut self, is_at_work: impl Fn(&TakeoverAttempt) -> bool) -> Self {
        let interrupted = self.attempt.take_if(|attempt| !is_at_work(attempt));
        if let Some(attempt) = interrupted {
            self.failure = Some(TakeoverFailure {
                node: attempt.node,
                at_ms: attempt.since_ms,
                problem: INTERRUPTED.to_owned(),
            });
        }
        self
    }
}

impl TakeoverAttempt {
    /// Returns `true` if the takeover may belong to this session of a node, and the session has not ended. Both times are by the
    /// clock of the node.
    fn is_of(&self, node: &str, state: SessionState, since_ms: i64) -> bool {
        node == self.node && state == SessionState::Live && since_ms <= self.since_ms
    }
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
    /// Returns the record of a part; `None` if no node has ever had the part.
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

    /// Publishes a stored snapshot as the newest of its part. `removed` are manifests of earlier snapshots that were removed from
    /// the store. Returns the manifests of earlier snapshots that may still be in the store and are to be removed.
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

    /// Returns the takeovers of a part with this record; `None` without takeovers, or if another directory has got the part since.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn takeover(
        &self,
        part: &str,
        record: Option<&PartRecord>,
    ) -> Result<Option<TakeoverRecord>, ClusterError> {
        let entry = self.state.read(&takeover_key(part)).await?;
        let takeover = entry.and_then(|entry| read_takeover(&entry));
        Ok(takeover.and_then(|takeover| takeover.of_part(record)))
    }

    /// Like [`Self::takeover`], but a takeover whose daemon has ended since, or has lost its session, is returned as a failure.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn checked_takeover(
        &self,
        part: &str,
        record: Option<&PartRecord>,
    ) -> Result<Option<TakeoverRecord>, ClusterError> {
        let takeover = match self.takeover(part, record).await? {
            Some(takeover) if takeover.attempt.is_some() => takeover,
            // Usually no takeover is in progress, and no session has to be queried.
            other => return Ok(other),
        };
        let connection = self.cluster().connection().clone();
        let nodes = match Cluster::find(connection, &MemberScope::Nodes).await? {
            Some(cluster) => cluster.nodes().await?,
            None => Vec::new(),
        };
        Ok(Some(takeover.checked(|attempt| {
            nodes
                .iter()
                .any(|node| attempt.is_of(&node.name, node.state, node.since_ms))
        })))
    }

    /// Records that a node begins to take over a part with this epoch.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn begin_takeover(
        &self,
        part: &str,
        epoch: u64,
        node: &str,
    ) -> Result<(), ClusterError> {
        let attempt = TakeoverAttempt {
            node: node.to_owned(),
            since_ms: wall_clock_ms(),
        };
        let begin = |takeover: &mut TakeoverRecord| takeover.attempt = Some(attempt.clone());
        self.change_takeover(part, epoch, begin).await
    }

    /// Records that a takeover has failed. `epoch` is the epoch of the part when the takeover began.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn fail_takeover(
        &self,
        part: &str,
        epoch: u64,
        node: &str,
        problem: &str,
    ) -> Result<(), ClusterError> {
        let failure = TakeoverFailure {
            node: node.to_owned(),
            at_ms: wall_clock_ms(),
            problem: problem.chars().take(PROBLEM_CHARS_MAX).collect(),
        };
        let fail = |takeover: &mut TakeoverRecord| {
            takeover.failure = Some(failure.clone());
            // Another node may try to take over the part at the same time.
            takeover.attempt = takeover
                .attempt
                .take()
                .filter(|attempt| attempt.node != node);
        };
        self.change_takeover(part, epoch, fail).await
    }

    /// Records that a part with this epoch was taken over.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn end_takeover(&self, part: &str, epoch: u64) -> Result<(), ClusterError> {
        self.change_takeover(part, epoch, |takeover| {
            (takeover.attempt, takeover.failure) = (None, None);
        })
        .await
    }

    async fn change_takeover(
        &self,
        part: &str,
        epoch: u64,
        change: impl Fn(&mut TakeoverRecord),
    ) -> Result<(), ClusterError> {
        let key = takeover_key(part);
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.state.read(&key).await?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let known = entry.and_then(|entry| read_takeover(&entry));
            let mut takeover = match known {
                // Another directory has got the part meanwhile, so the record is about a later takeover.
                Some(known) if known.epoch > epoch => return Ok(()),
                Some(known) if known.epoch == epoch => known,
                _ => TakeoverRecord {
                    epoch,
                    ..TakeoverRecord::default()
                },
            };
            change(&mut takeover);
            let json = serde_json::to_vec(&takeover).unwrap_or_default();
            match self.state.write(&key, json, revision).await {
                Ok(_) => return Ok(()),
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(ClusterError::Unavailable {
            kind: "a takeover",
            source: "other nodes write about the part at the same time".into(),
        })
    }

    /// Publishes the figures of a part, as the crawl encodes them. Only the process of the part may call it.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn publish_figures(&self, part: &str, figures: Vec<u8>) -> Result<(), ClusterError> {
        self.state.put(&figures_key(part), figures).await
    }

    /// Returns the last figures of a part; `None` if its process has published none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn figures(&self, part: &str) -> Result<Option<Vec<u8>>, ClusterError> {
        let entry = self.state.read(&figures_key(part)).await?;
        let value = entry.and_then(|entry| entry.value);
        Ok(value.map(|value| value.to_vec()))
    }

    /// Removes links into a part up to this message from the stream. If the message is no longer in the stream, nothing is removed:
    /// the message was removed before, or NATS has lost it and may have reused the numbers up to it.
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

    /// Returns the number of messages with links into a part that are in the stream.
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

    /// Returns the error for a part that another directory has got, or the error that occurred when the part was read.
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

/// Returns the error for a part that another directory has got.
fn taken(part: &str, record: Option<PartRecord>) -> ClusterError {
    let (node, epoch) = record.map_or((String::new(), 0), |record| (record.node, record.epoch));
    ClusterError::PartTaken {
        part: part.to_owned(),
        node,
        epoch,
    }
}

/// Parses the takeovers of a part; `None` if they were written by another version. They only inform operators.
fn read_takeover(entry: &BucketEntry) -> Option<TakeoverRecord> {
    serde_json::from_slice(entry.value.as_ref()?).ok()
}

fn takeover_key(part: &str) -> String {
    format!("takeovers.{part}")
}

fn figures_key(part: &str) -> String {
    format!("figures.{part}")
}

fn part_key(part: &str) -> String {
    format!("parts.{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takeovers_are_listed_until_another_directory_has_got_the_part() {
        let takeover = TakeoverRecord {
            epoch: 1,
            attempt: Some(TakeoverAttempt {
                node: "b".to_owned(),
                since_ms: 0,
            }),
            failure: Some(TakeoverFailure {
                node: "c".to_owned(),
                at_ms: 0,
                problem: "the disk is full".to_owned(),
            }),
        };
        // Returns the nodes of the takeover in progress and of the failure, after superseded ones were left out.
        let now = |epoch, node: &str| {
            let part = PartRecord {
                epoch,
                node: node.to_owned(),
                claimed_ms: 0,
                snapshot: None,
                replaced: Vec::new(),
            };
            let takeover = takeover.clone().of_part(Some(&part))?;
            let attempt = takeover.attempt.map(|attempt| attempt.node);
            Some((attempt, takeover.failure.map(|failure| failure.node)))
        };
        let name = |node: &str| Some(node.to_owned());
        assert_eq!(now(1, "a"), Some((name("b"), name("c"))));
        // The node has got the part, and is creating the job.
        assert_eq!(now(2, "b"), Some((name("b"), None)));
        assert_eq!(now(2, "d"), None);
        assert_eq!(now(3, "b"), None);
        assert_eq!(takeover.of_part(None), None);
    }

    #[test]
    fn a_takeover_ends_with_the_session_of_its_node() {
        let check = |node: &str, state, since_ms, expected: bool| {
            let takeover = TakeoverRecord {
                epoch: 1,
                attempt: Some(TakeoverAttempt {
                    node: "b".to_owned(),
                    since_ms: 100,
                }),
                failure: None,
            };
            let checked = takeover.checked(|attempt| attempt.is_of(node, state, since_ms));
            assert_eq!(checked.attempt.is_some(), expected, "{checked:?}");
            let failure = checked.failure.map(|failure| (failure.node, failure.at_ms));
            let interrupted = Some(("b".to_owned(), 100));
            assert_eq!(failure, interrupted.filter(|_| !expected));
        };
        check("b", SessionState::Live, 50, true);
        check("b", SessionState::Expired, 50, false);
        check("b", SessionState::Left, 50, false);
        // The daemon was restarted.
        check("b", SessionState::Live, 150, false);
        check("c", SessionState::Live, 50, false);
    }
}
