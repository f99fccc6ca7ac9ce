//! A copy of a frontier as it is at one moment, written while the crawl goes on.

use std::{fs, path::Path};

use fjall::{Keyspace, Readable as _, Snapshot};

use crate::{
    Config, Error, Frontier,
    store::{Store, fill, folder, sync},
};

/// A frontier as it was at the moment of [`Frontier::checkpoint`]. It costs nothing while nothing changes; as long as it
/// is held, the store keeps what has been overwritten since.
#[must_use = "nothing is written until `Checkpoint::write` is called"]
pub struct Checkpoint {
    snapshot: Snapshot,
    keyspaces: Vec<Keyspace>,
    config: Config,
}

/// What a checkpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointSummary {
    /// URIs known.
    pub uris: u64,
    /// Entries of the store, those of the URIs included.
    pub entries: u64,
    /// Bytes of keys and values, before compression.
    pub bytes: u64,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Checkpoint").finish_non_exhaustive()
    }
}

impl Frontier {
    /// Takes hold of the frontier as it is now, at once and without writing anything. To be written by another thread
    /// while the crawl goes on.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            snapshot: self.store.database.snapshot(),
            keyspaces: self.store.keyspaces().into_iter().cloned().collect(),
            config: self.config.clone(),
        }
    }
}

impl Checkpoint {
    /// Writes it as a store of its own, which [`Frontier::open`] opens: URIs that were in process are back in their queues
    /// there, as after a crash. The folder appears whole or not at all; until then its content grows beside it under the
    /// same name with `.new` behind it, which a later attempt goes over again.
    ///
    /// # Errors
    /// [`Error::Exists`] where `dir` is there already, [`Error::InUse`] where another process writes it just now. Where
    /// reading the store or writing the copy fails.
    pub fn write(self, dir: &Path) -> Result<CheckpointSummary, Error> {
        let exists = || Error::Exists {
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

        let config = Config {
            // Nothing is read there.
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

/// Removes what an attempt left that was cut short. A living one holds the lock and is found by it.
fn discard_unfinished(new: &Path) -> Result<(), Error> {
    if new.symlink_metadata().is_err() {
        return Ok(());
    }
    let lock = crate::store::lock(new)?;
    fs::remove_dir_all(new).map_err(folder(new))?;
    drop(lock);
    Ok(())
}
