//! Stores of older formats. One is rewritten as a whole, beside itself, when it is opened:
//!
//! ```text
//! format   store   store.new   store.old
//! old      old     -           -           as it was
//! old      old     in part     -           a death here: begun anew
//! new      old     new         -           from now on it is the new one
//! new      -       new         old
//! new      new     -           old         in part: being removed
//! new      new     -           -           done
//! ```
//!
//! The one step that counts is the format file, which appears whole. Before it the old version of this code still opens the
//! store; after it no version opens the old database, and [`conclude`] goes on wherever a process has died.

mod format_1;
mod format_2;

use std::{fs, path::Path};

use fjall::Keyspace;

use crate::{
    Config, Error, FORMAT_VERSION,
    store::{DATABASE, Entry, Format, Store, folder, sync, write_version},
};

const NEW: &str = "store.new";
const OLD: &str = "store.old";

/// URIs between two messages of progress.
const PROGRESS: u64 = 1_000_000;

/// The name of what plugins kept when it had none.
const NAMELESS: &str = "value";

/// Rewrites a store of an older format, whose lock the caller holds. [`conclude`] is to follow.
pub(crate) fn migrate(dir: &Path, format: Format, config: &Config) -> Result<(), Error> {
    let path = dir.join(NEW);
    remove(&path)?;
    tracing::info!(
        "rewriting the frontier's store {} from format {} to format {FORMAT_VERSION}",
        dir.display(),
        format.number()
    );
    let old = Old::open(dir, format, config.cache_bytes)?;
    let new = Store::open_database(dir, &path, config, None)?;
    old.rewrite(&new, config)?;
    new.persist()?;
    drop(new);

    let new = Store::open_database(dir, &path, config, None)?;
    for (before, after) in old.counterparts(&new) {
        if count(before)? != count(after)? {
            return Err(crate::store::damaged(
                "another number of entries after rewriting",
                after.name().as_bytes(),
            ));
        }
    }
    drop((old, new));
    sync(dir)?;
    write_version(dir)
}

/// A database of an older format.
enum Old {
    One(format_1::Old),
    Two(format_2::Old),
}

impl Old {
    fn open(dir: &Path, format: Format, cache_bytes: u64) -> Result<Self, Error> {
        let path = dir.join(DATABASE);
        Ok(match format {
            Format::One => Self::One(format_1::Old::open(dir, &path, cache_bytes)?),
            Format::Two => Self::Two(format_2::Old::open(dir, &path, cache_bytes)?),
        })
    }

    fn rewrite(&self, new: &Store, config: &Config) -> Result<(), Error> {
        match self {
            Self::One(old) => format_1::rewrite(old, new, config),
            Self::Two(old) => format_2::rewrite(old, new),
        }
    }

    /// Keyspaces that must have as many entries after rewriting as before.
    fn counterparts<'s>(&'s self, new: &'s Store) -> Vec<(&'s Keyspace, &'s Keyspace)> {
        match self {
            Self::One(old) => old.counterparts(new),
            Self::Two(old) => old.counterparts(new),
        }
    }
}

/// Puts the rewritten database in the place of the old one, as far as that has not been done.
pub(crate) fn conclude(dir: &Path) -> Result<(), Error> {
    let (database, new, old) = (dir.join(DATABASE), dir.join(NEW), dir.join(OLD));
    if new.exists() {
        if database.exists() {
            remove(&old)?;
            fs::rename(&database, &old).map_err(folder(&old))?;
        }
        fs::rename(&new, &database).map_err(folder(&database))?;
        sync(dir)?;
        tracing::info!(
            "the frontier's store {} is of format {FORMAT_VERSION} now",
            dir.display()
        );
    }
    remove(&old)
}

fn entries(keyspace: &Keyspace) -> impl Iterator<Item = Result<Entry, Error>> {
    keyspace.iter().map(|guard| {
        let (key, value) = guard.into_inner()?;
        Ok((key.to_vec(), value.to_vec()))
    })
}

/// Reads a keyspace to its end, and with it every block's checksum.
fn count(keyspace: &Keyspace) -> Result<u64, Error> {
    let mut entries = 0;
    for guard in keyspace.iter() {
        guard.into_inner()?;
        entries += 1;
    }
    Ok(entries)
}

fn remove(path: &Path) -> Result<(), Error> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(folder(path))?;
    }
    Ok(())
}
