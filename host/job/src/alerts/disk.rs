//! Free space of the disks that a job writes to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the free space in bytes of each disk for users other than root, with the first of these folders that is on the disk.
/// Disks whose free space the system does not report are left out. The choice of the folder does not depend on the free space, so
/// it stays the same while data is written between two calls.
pub fn free_space_of_disks<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Vec<(PathBuf, u64)> {
    of_disks(folders, device, free_space)
}

fn of_disks<'p>(
    folders: impl IntoIterator<Item = &'p Path>,
    device: impl Fn(&Path) -> Option<u64>,
    free_space: impl Fn(&Path) -> Option<u64>,
) -> Vec<(PathBuf, u64)> {
    let mut disks = BTreeMap::new();
    for folder in folders {
        // A missing folder will be created in the folder above.
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

/// Returns the device number of a folder's file system.
#[cfg(unix)]
fn device(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Some(folder.metadata().ok()?.dev())
}

/// Returns `None`: the device is not known on this system.
#[cfg(not(unix))]
fn device(_: &Path) -> Option<u64> {
    None
}

/// Returns the bytes free for users other than root on a folder's file system; `None` if the system does not report them.
#[cfg(unix)]
pub fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns `None`: the free space is not known on this system.
#[cfg(not(unix))]
pub fn free_space(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_disk_is_always_reported_with_its_first_folder() {
        let job = tempfile::tempdir().unwrap();
        let folders = ["warcs", "logs", "", "disk-2/warcs"].map(|name| job.path().join(name));
        std::fs::create_dir(job.path().join("disk-2")).unwrap();
        let device = |folder: &Path| Some(u64::from(folder.ends_with("disk-2")));
        // Each call reports less free space than the call before.
        let left = Cell::new(1_000);
        let free = |folder: &Path| {
            left.set(left.get() - 1);
            match folder.ends_with("disk-2") {
                true => Some(10),
                false => Some(left.get()),
            }
        };
        let look = || of_disks(folders.iter().map(PathBuf::as_path), device, free);
        // The call in between is about the other disk.
        for first in [999, 997] {
            let expected = [(folders[0].clone(), first), (folders[3].clone(), 10)];
            assert_eq!(look(), expected);
        }
    }
}
