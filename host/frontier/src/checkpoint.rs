//! Checkpoints: copies of a frontier at one moment, written while the crawl continues.

use std::{fs, path::Path};

use fjall::{Keyspace, Readable as _, Snapshot};

use crate::{
    Frontier, FrontierConfig, FrontierError,
    store::{Store, fill, folder, sync},
};

/// The frontier at the moment of [`Frontier::checkpoint`]. It costs nothing while nothing changes. Until it is dropped, the store
/// keeps the values that have been overwritten since.
#[must_use = "nothing is written until `FrontierCheckpoint::write` is called"]
pub struct FrontierCheckpoint {
    snapshot: Snapshot,
    keyspaces: Vec<Keyspace>,
    config: FrontierConfig,
    changes: u64,
}

/// Counts of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointSummary {
    /// URIs known.
    pub uris: u64,
    /// Entries of the store, including the URIs.
    pub entries: u64,
    /// Bytes of keys and values, before compression.
    pub bytes: u64,
}

impl std::fmt::Debug for FrontierCheckpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FrontierCheckpoint")
            .finish_non_exhaustive()
    }
}

impl Frontier {
    /// Takes a snapshot of the frontier, at once and without writing anything. Another thread should write it while the crawl
    /// continues.
    pub fn checkpoint(&self) -> FrontierCheckpoint {
        FrontierCheckpoint {
            snapshot: self.store.database.snapshot(),
            keyspaces: self.store.keyspaces().into_iter().cloned().collect(),
            config: self.config.clone(),
            changes: self.changes(),
        }
    }
}

impl FrontierCheckpoint {
    /// The number of [changes](Frontier::changes) that the frontier had seen.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Writes the checkpoint as a separate store, which [`Frontier::open`] opens. URIs that were in process are back in their
    /// queues there, as after a crash. The folder appears whole or not at all. Until then its content grows next to it under the
    /// same name with `.new`, which a later attempt replaces.
    ///
    /// # Errors
    /// [`FrontierError::Exists`] if `dir` exists already, [`FrontierError::InUse`] if another process is writing it. Fails if
    /// reading the store or writing the copy fails.
    pub fn write(self, dir: &Path) -> Result<CheckpointSummary, FrontierError> {
        let exists = || FrontierError::Exists {
            dir: dir.to_owned(),
        };
        if dir.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let name = dir.file_name().ok_or_else(exists)?;
        let mut name = name.to_owned();
        name.push(".new");
        let new = dir.with_file_name(name);
        discard_unfinished(&new)?;

        let config = FrontierConfig {
            // Nothing is read from this store, so it needs no cache.
            cache_bytes: 1024 * 1024,
            survives: true,
            ..self.config
        };
        let store = Store::create(&new, &config)?;
        let mut summary = CheckpointSummary::default();
        for (from, to) in self.keyspaces.iter().zip(store.keyspaces()) {
            let bytes = &mut summary.bytes;
            let entries = self.snapshot.iter(from).map(|guard| {
                let (key, value) = guard.into_inner()?;
                *bytes += key.len() as u64 + value.len() as u64;
                Ok((key, value))
            });
            let written = fill(to, entries)?;
            summary.entries += written;
            if std::ptr::eq(to, &raw const store.uris) {
                summary.uris = written;
            }
        }
        drop(Store::finish(&new, store)?);
        if dir.symlink_metadata().is_ok() {
            return Err(exists());
        }
        fs::rename(&new, dir).map_err(folder(dir))?;
        sync(match dir.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        })?;
        tracing::info!(
            uris = summary.uris,
            bytes = summary.bytes,
            "a checkpoint of the frontier is in {}",
            dir.display()
        );
        Ok(summary)
    }
}

/// Removes the remains of an attempt that was cut short. A running attempt holds the lock, and is detected by it.
fn discard_unfinished(new: &Path) -> Result<(), FrontierError> {
    if new.symlink_metadata().is_err() {
        return Ok(());
    }
    let lock = crate::store::lock(new)?;
    fs::remove_dir_all(new).map_err(folder(new))?;
    drop(lock);
    Ok(())
}
