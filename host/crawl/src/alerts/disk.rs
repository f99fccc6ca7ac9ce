//! How much room the disks have that a job writes to.

use std::path::{Path, PathBuf};

/// The folder with the least room for whoever is not root, and how much that is; none where no system says.
pub(crate) fn room<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Option<(PathBuf, u64)> {
    let rooms = folders.into_iter().filter_map(|folder| {
        // What is not there yet is made in the folder above.
        let there = folder.ancestors().find(|folder| folder.exists())?;
        Some((folder.to_owned(), free_space(there)?))
    });
    rooms.min_by_key(|(_, bytes)| *bytes)
}

/// Bytes free on the file system of a folder, for whoever is not root; none where no system says.
#[cfg(unix)]
pub fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Nobody knows.
#[cfg(not(unix))]
pub fn free_space(_: &Path) -> Option<u64> {
    None
}
