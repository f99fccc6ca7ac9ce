//! Where a job has its files, for whoever looks at a job from outside: the profile may have put them anywhere.

use std::path::{Path, PathBuf};

use crate::crawl::{CrawlError, frozen_profile};

/// Where compiled components are kept between runs: the user's cache directory. None where the user has none.
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
pub struct Places {
    /// Those of its archive files.
    pub archives: Vec<PathBuf>,
    /// That of its logs.
    pub logs: PathBuf,
    /// That of its index of stored payloads, which may not be there: not every crawl has one.
    pub payloads: PathBuf,
}

impl Places {
    /// Those of the job in `directory`.
    ///
    /// # Errors
    /// [`CrawlError`] where the job or its copy of the profile cannot be read.
    pub fn of(directory: &Path) -> Result<Places, CrawlError> {
        let profile = frozen_profile(directory)?;
        let archive = &profile.archive;
        let mut archives = vec![directory.join(&archive.directory)];
        for further in &archive.more_directories {
            archives.push(directory.join(further));
        }
        Ok(Places {
            archives,
            logs: directory.join(&profile.logs.directory),
            payloads: directory.join(&archive.duplicates.index),
        })
    }
}
