//! How much room the disks have that a job writes to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much room each disk has for whoever is not root, by one of these folders that is on it; without those of which no system
/// says. Of the folders on one disk it is always the first, so that which one is named does not change with every byte that is
/// written between two looks.
pub(crate) fn rooms<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Vec<(PathBuf, u64)> {
    of_disks(folders, device, free_space)
}

fn of_disks<'p>(
    folders: impl IntoIterator<Item = &'p Path>,
    device: impl Fn(&Path) -> Option<u64>,
    free_space: impl Fn(&Path) -> Option<u64>,
) -> Vec<(PathBuf, u64)> {
    let mut disks = BTreeMap::new();
    for folder in folders {
        // What is not there yet is made in the folder above.
        let there = folder.ancestors().find(|folder| folder.exists());
        if let Some(there) = there {
            disks.entry(device(there)).or_insert((folder, there));
        }
    }
    disks
        .into_values()
        .filter_map(|(folder, there)| Some((folder.to_owned(), free_space(there)?)))
        .collect()
}

/// Which file system a folder is on.
#[cfg(unix)]
fn device(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Some(folder.metadata().ok()?.dev())
}

/// Nobody knows.
#[cfg(not(unix))]
fn device(_: &Path) -> Option<u64> {
    None
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::cell::Cell;

    use super::*;

    #[test]
    fn of_the_folders_on_one_disk_the_same_is_named_while_others_write() {
        let job = tempfile::tempdir().unwrap();
        let folders = ["warcs", "logs", "", "disk-2/warcs"].map(|name| job.path().join(name));
        std::fs::create_dir(job.path().join("disk-2")).unwrap();
        let device = |folder: &Path| Some(u64::from(folder.ends_with("disk-2")));
        // Each look finds less than the one before.
        let left = Cell::new(1_000);
        let free = |folder: &Path| {
            left.set(left.get() - 1);
            match folder.ends_with("disk-2") {
                true => Some(10),
                false => Some(left.get()),
            }
        };
        let look = || of_disks(folders.iter().map(PathBuf::as_path), device, free);
        // The other disk was looked at between.
        for first in [999, 997] {
            let expected = [(folders[0].clone(), first), (folders[3].clone(), 10)];
            assert_eq!(look(), expected);
        }
    }
}
