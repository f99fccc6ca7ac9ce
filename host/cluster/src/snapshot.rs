//! Snapshots of partitions in the object store. A pointer in the job's bucket names the newest one of each partition. It only moves
//! forward, and only by the owner or its successors.

use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::bucket::BucketError;
use crate::error::ClusterError;
use crate::guard::LeaseGuard;
use crate::job::{CHUNK_BYTES, ClusterJob};
use crate::log::LogPosition;
use crate::partition::Partition;

/// A stored snapshot of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSnapshot {
    /// The snapshot has the effects of all entries up to this place of the log.
    pub position: LogPosition,
    /// Epoch of the owner that saved it.
    pub epoch: u64,
    /// Its size.
    pub bytes: u64,
    /// Its name in the object store.
    object: String,
    /// Its digest as the object store has it.
    digest: String,
}

impl ClusterJob {
    /// The newest snapshot of a partition; `None` if there is none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn newest_snapshot(
        &self,
        partition: Partition,
    ) -> Result<Option<PartitionSnapshot>, ClusterError> {
        Ok(self.pointer(partition).await?.1)
    }

    /// Saves a snapshot that has the effects of all acknowledged entries up to `position`, and no others. An older one than the
    /// newest is not saved. Afterwards the log can be [trimmed](crate::PartitionLog::trim) to the place that is returned.
    ///
    /// # Errors
    /// A later owner has saved one, `content` cannot be read, or NATS fails or has no room.
    pub async fn save_snapshot(
        &self,
        guard: &LeaseGuard,
        position: LogPosition,
        content: &mut (impl AsyncRead + Unpin),
    ) -> Result<LogPosition, ClusterError> {
        let partition = guard.partition();
        let (revision, newest) = self.pointer(partition).await?;
        if let Some(newest) = &newest {
            self.check_epoch(guard, newest)?;
            if newest.position.index >= position.index {
                return Ok(newest.position);
            }
        }
        // Two names for each owner: one that the pointer has, and one for the next snapshot. What was cut short is overwritten.
        let own = |slot: char| format!("{partition}/{}-{slot}", guard.epoch());
        let object = match &newest {
            Some(newest) if newest.object == own('a') => own('b'),
            _ => own('a'),
        };
        let metadata = ObjectMetadata {
            name: object.clone(),
            chunk_size: Some(CHUNK_BYTES),
            ..ObjectMetadata::default()
        };
        let put = self.snapshots.put(metadata, content).await;
        let info = put.map_err(|error| ClusterError::of_request("a snapshot", error))?;
        let snapshot = PartitionSnapshot {
            position,
            epoch: guard.epoch(),
            bytes: info.size as u64,
            object,
            digest: info.digest.unwrap_or_default(),
        };
        let json = serde_json::to_vec(&snapshot).unwrap_or_default();
        match self
            .state
            .write(&pointer_key(partition), json, revision)
            .await
        {
            Ok(_) => {}
            Err(BucketError::Failed(error)) => return Err(error),
            Err(BucketError::Conflict) => {
                if let (_, Some(newest)) = self.pointer(partition).await? {
                    self.check_epoch(guard, &newest)?;
                }
                return Err(ClusterError::Unavailable {
                    kind: "a snapshot",
                    source: "another snapshot of the partition was saved at the same time".into(),
                });
            }
        }
        // The two names of an earlier owner are free. If this fails, they are deleted with the next snapshot of a new owner.
        if let Some(older) = newest.filter(|newest| newest.epoch < guard.epoch()) {
            for slot in ['a', 'b'] {
                let name = format!("{partition}/{}-{slot}", older.epoch);
                self.snapshots.delete(&name).await.ok();
            }
        }
        Ok(position)
    }

    /// Writes the content of a snapshot to `target`. Its digest has been compared when this returns.
    ///
    /// # Errors
    /// The content is damaged or was replaced by a newer snapshot, `target` fails, or NATS fails.
    pub async fn load_snapshot(
        &self,
        snapshot: &PartitionSnapshot,
        target: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), ClusterError> {
        let damaged = || ClusterError::SnapshotDamaged {
            object: snapshot.object.clone(),
        };
        let got = self.snapshots.get(&snapshot.object).await;
        let mut object = got.map_err(|error| match error.kind() {
            GetErrorKind::NotFound => damaged(),
            _ => ClusterError::of_request("a question for a snapshot", error),
        })?;
        if object.info.digest.as_ref() != Some(&snapshot.digest) {
            // A replica that is behind, or a newer snapshot under this name: ask again for the newest.
            return Err(ClusterError::Unavailable {
                kind: "a question for a snapshot",
                source: "the snapshot was replaced".into(),
            });
        }
        match tokio::io::copy(&mut object, target).await {
            Ok(bytes) if bytes == snapshot.bytes => Ok(()),
            Ok(_) => Err(damaged()),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(damaged()),
            Err(error) => Err(ClusterError::of_request("a question for a snapshot", error)),
        }
    }

    async fn pointer(
        &self,
        partition: Partition,
    ) -> Result<(u64, Option<PartitionSnapshot>), ClusterError> {
        let Some(entry) = self.state.read(&pointer_key(partition)).await? else {
            return Ok((0, None));
        };
        let Some(value) = entry.value else {
            return Ok((entry.revision, None));
        };
        let snapshot = serde_json::from_slice(&value).map_err(|_| ClusterError::Malformed {
            kind: "pointer to a snapshot",
            stream: format!("KV_opilio_job_{}", self.name),
            sequence: entry.revision,
        })?;
        Ok((entry.revision, Some(snapshot)))
    }

    fn check_epoch(
        &self,
        guard: &LeaseGuard,
        newest: &PartitionSnapshot,
    ) -> Result<(), ClusterError> {
        if newest.epoch <= guard.epoch() {
            return Ok(());
        }
        Err(ClusterError::Fenced {
            partition: guard.partition().number(),
            epoch: newest.epoch,
        })
    }
}

fn pointer_key(partition: Partition) -> String {
    format!("snapshots.{partition}")
}
