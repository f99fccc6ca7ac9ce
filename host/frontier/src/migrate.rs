//! Stores of older formats. One is rewritten as a whole, beside itself, when it is opened:
//!
//! ```text
//! format   store   store.new   store.old
//! 1        1       -           -           as it was
//! 1        1       in part     -           a death here: begun anew
//! 2        1       2           -           from now on it is the new one
//! 2        -       2           1
//! 2        2       -           1           in part: being removed
//! 2        2       -           -           done
//! ```
//!
//! The one step that counts is the format file, which appears whole. Before it the old version of this code still opens the
//! store; after it no version opens the old database, and [`conclude`] goes on wherever a process has died.

mod format_1;

use std::{fs, path::Path};

use fjall::Keyspace;

use crate::{
    Config, Error, FORMAT_VERSION,
    store::{DATABASE, Store, folder, sync, write_version},
};

const NEW: &str = "store.new";
const OLD: &str = "store.old";

/// Rewrites a store of format 1, whose lock the caller holds. [`conclude`] is to follow.
pub(crate) fn migrate(dir: &Path, config: &Config) -> Result<(), Error> {
    let path = dir.join(NEW);
    remove(&path)?;
    tracing::info!(
        "rewriting the frontier's store {} from format 1 to format {FORMAT_VERSION}",
        dir.display()
    );
    let old = format_1::Old::open(dir, &dir.join(DATABASE), config.cache_bytes)?;
    let new = Store::open_database(dir, &path, config.cache_bytes, None)?;
    format_1::rewrite(&old, &new, config)?;
    new.persist()?;
    drop(new);

    let new = Store::open_database(dir, &path, config.cache_bytes, None)?;
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
