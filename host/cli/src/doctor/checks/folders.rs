//! The folders of jobs and of compiled components.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};

use crate::doctor::environment::{FileSystem, Folder};
use crate::doctor::finding::{Finding, Needs, error, ok, warning};

/// The limits of the component cache, together.
const CACHE_BYTES: u64 = 640 << 20;
/// Minimum number of free inodes. Fewer may be used up within a day, by many small files.
const INODES_FEW: u64 = 10_000;
/// A sync that takes longer slows the frontier down, which syncs several times a second.
const SYNC_SLOW: Duration = Duration::from_millis(200);

pub(super) fn jobs(folder: &Folder, needs: &Needs) -> Finding {
    const NAME: &str = "jobs-folder";
    let path = folder.path.display();
    let sync = match &folder.sync {
        Ok(sync) => *sync,
        Err(problem) => {
            return error(
                NAME,
                format!("{path}: {problem}"),
                "give this account write access, or choose a local disk with --jobs or jobs in opilio.toml",
            );
        }
    };
    let mut found = format!("{path}: {}", free(folder));
    let inodes = folder.free_inodes.unwrap_or(u64::MAX);
    if folder.free_inodes.is_some() {
        found = format!("{found}, {} inodes free", HumanCount(inodes));
    }
    found = format!("{found}, a sync takes {} ms", sync.as_millis());
    let space = folder.free.unwrap_or(u64::MAX);
    if space < needs.disk_pause || inodes < 100 {
        let least = HumanBytes(needs.disk_pause);
        return error(
            NAME,
            format!("{found}; crawls pause below {least}"),
            "free space, or move the jobs to a larger disk",
        );
    }
    match folder.file_system {
        Some(FileSystem::Network(name)) => warning(
            NAME,
            format!("{found}; on {name}"),
            "keep jobs on a local disk: the frontier needs fast syncs and reliable locks; archive.directory may be elsewhere",
        ),
        Some(FileSystem::Overlay) => warning(
            NAME,
            format!("{found}; in a layer of the container"),
            "mount a volume there: the layer is lost with the container",
        ),
        Some(FileSystem::Memory) => warning(
            NAME,
            format!("{found}; in memory"),
            "keep jobs on a disk: this folder is lost when the machine stops",
        ),
        None if space < needs.disk_warn || inodes < INODES_FEW => warning(
            NAME,
            found,
            "free space soon, or move the jobs to a larger disk",
        ),
        None if sync > SYNC_SLOW => warning(
            NAME,
            found,
            "use a faster disk: the frontier syncs several times a second",
        ),
        None => ok(NAME, found),
    }
}

pub(super) fn cache(folder: Option<&Folder>) -> Finding {
    const NAME: &str = "cache-folder";
    let Some(folder) = folder else {
        return warning(
            NAME,
            "this account has no cache folder; plugins are compiled at every start",
            "set XDG_CACHE_HOME or HOME",
        );
    };
    let found = format!("{}: {}", folder.path.display(), free(folder));
    if let Err(problem) = &folder.sync {
        return warning(
            NAME,
            format!(
                "{}: {problem}; plugins are compiled at every start",
                folder.path.display()
            ),
            "set XDG_CACHE_HOME to a folder that this account may write",
        );
    }
    if folder.no_exec {
        return warning(
            NAME,
            format!(
                "{found}; mounted noexec, so compiled plugins are copied into memory at every start"
            ),
            "set XDG_CACHE_HOME to a folder on a file system without noexec",
        );
    }
    match folder.free {
        Some(free) if free < CACHE_BYTES => warning(
            NAME,
            format!("{found}; the cache takes up to {}", HumanBytes(CACHE_BYTES)),
            "free space, or set XDG_CACHE_HOME to a folder on a larger disk",
        ),
        _ => ok(NAME, found),
    }
}

fn free(folder: &Folder) -> String {
    match folder.free {
        Some(free) => format!("{} free", HumanBytes(free)),
        None => "free space not reported".to_owned(),
    }
}
