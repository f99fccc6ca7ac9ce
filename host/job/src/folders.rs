//! Folders of a job, for code that reads a job without running it. The profile can set any path for them.

use std::path::{Path, PathBuf};

use crate::profile::{ProfileError, frozen_profile};

/// Returns the folder in the user's cache directory that keeps compiled components between runs. Returns `None` if the user has
/// no cache directory.
pub fn component_cache() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = || {
        set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(|home| home.join(".cache"))
    };
    let cache = set("XDG_CACHE_HOME").or_else(home)?;
    Some(cache.join("opilio").join("components"))
}

/// The folders of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFolders {
    /// Folders of the archive files.
    pub archives: Vec<PathBuf>,
    /// Folder of the logs.
    pub logs: PathBuf,
    /// Folder of the index of stored payloads. It does not exist if the crawl has no such index.
    pub payloads: PathBuf,
}

impl JobFolders {
    /// Returns the folders of the job in `directory`.
    ///
    /// # Errors
    /// [`ProfileError`] if the job or its copy of the profile cannot be read.
    pub fn of(directory: &Path) -> Result<JobFolders, ProfileError> {
        let profile = frozen_profile(directory)?;
        let archive = &profile.archive;
        let mut archives = vec![directory.join(&archive.directory)];
        for further in &archive.more_directories {
            archives.push(directory.join(further));
        }
        Ok(JobFolders {
            archives,
            logs: directory.join(&profile.logs.directory),
            payloads: directory.join(&archive.duplicates.index),
        })
    }
}
