//! Seeds that were added, removed or redirected since the job was made: one file of lines each, next to the copy of the original
//! seeds.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FrozenProfile, Job, JobError};
pub use crate::changes::{ADDED_SEEDS, REDIRECTED_SEEDS, REMOVED_SEEDS};
use crate::text_file::write_text;

impl Job {
    /// Adds the seeds that the job does not have yet. They apply after every later resume as well.
    pub fn add_seeds(&self, lines: &[String]) -> Result<(), JobError> {
        let known = FrozenProfile::read(&self.directory)?.seeds;
        let known: HashSet<&str> = known.lines().collect();
        let new = lines.iter().filter(|line| !known.contains(line.as_str()));
        let new: String = new.map(|line| format!("{line}\n")).collect();
        if new.is_empty() {
            return Ok(());
        }
        add_seeds(&self.directory, &new)
            .map_err(|source| JobError::io(&self.directory.join(ADDED_SEEDS), source))
    }

    /// Removes these seeds from the list of removed seeds, because the operator has added them again.
    pub fn restore_seeds(&self, seeds: &opilio_profile::Seeds) -> Result<(), JobError> {
        restore_removed(&self.directory, &seeds.list)
            .map_err(|source| JobError::io(&self.directory.join(REMOVED_SEEDS), source))
    }

    /// Returns the file of SURT prefixes of redirected seeds, one a line.
    pub fn redirected_seeds(&self) -> PathBuf {
        self.directory.join(REDIRECTED_SEEDS)
    }
}

/// Returns the seeds added after the job in `directory` was made; empty if there is no such file.
pub fn added_seeds(directory: &Path) -> String {
    fs::read_to_string(directory.join(ADDED_SEEDS)).unwrap_or_default()
}

/// Appends lines to the added seeds. They are on disk when this returns.
pub fn add_seeds(directory: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join(ADDED_SEEDS))?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()
}

/// Returns the seeds that were removed from the job in `directory`.
pub fn removed_seeds(directory: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(directory.join(REMOVED_SEEDS)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Removes these seeds from the list of removed seeds.
pub fn restore_removed(directory: &Path, seeds: &[opilio_profile::Seed]) -> io::Result<()> {
    let removed = removed_seeds(directory);
    let mut left = removed.clone();
    for seed in seeds {
        left.remove(seed.uri.as_str());
    }
    if left.len() == removed.len() {
        return Ok(());
    }
    let list: String = left.iter().map(|seed| format!("{seed}\n")).collect();
    write_text(&directory.join(REMOVED_SEEDS), &list)
}

/// Returns the SURT prefixes of redirected seeds of the job in `directory`; empty if there is no such file.
pub fn redirected_seeds(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join(REDIRECTED_SEEDS)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
