//! Seeds that came, went or redirected elsewhere since the job was made: a file of lines each, beside the copy of those that
//! it began with.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::io_error;
use super::{FrozenProfile, Job, JobError, write_text};

/// Seeds that came to the job after it was made, lines as in `seeds.txt`, which stays as it was.
pub const ADDED_SEEDS: &str = "added-seeds.txt";

/// Seeds that the operator has removed, one a line; they count even where the profile names them.
pub const REMOVED_SEEDS: &str = "removed-seeds.txt";

/// SURT prefixes of seeds that redirected elsewhere, one a line, ` # ` and the seed behind it.
pub const REDIRECTED_SEEDS: &str = "redirected-seeds.txt";

impl Job {
    /// Adds those seeds that the job does not know yet, so that they count after the next resume as well.
    pub fn add_seeds(&self, lines: &[String]) -> Result<(), JobError> {
        let known = FrozenProfile::read(&self.directory)?.seeds;
        let known: HashSet<&str> = known.lines().collect();
        let new = lines.iter().filter(|line| !known.contains(line.as_str()));
        let new: String = new.map(|line| format!("{line}\n")).collect();
        if new.is_empty() {
            return Ok(());
        }
        add_seeds(&self.directory, &new)
            .map_err(|source| io_error(&self.directory.join(ADDED_SEEDS), source))
    }

    /// Seeds in force are not removed ones any more: the operator has given them again.
    pub fn restore_seeds(&self, seeds: &opilio_profile::Seeds) -> Result<(), JobError> {
        restore_removed(&self.directory, &seeds.list)
            .map_err(|source| io_error(&self.directory.join(REMOVED_SEEDS), source))
    }

    /// SURT prefixes of seeds that redirected elsewhere, one a line.
    pub fn redirected_seeds(&self) -> PathBuf {
        self.directory.join(REDIRECTED_SEEDS)
    }
}

/// Seeds that came to the job in `directory` after it was made; none where there is no such file.
pub fn added_seeds(directory: &Path) -> String {
    fs::read_to_string(directory.join(ADDED_SEEDS)).unwrap_or_default()
}

/// Adds lines to those seeds, on the disk when this returns.
pub fn add_seeds(directory: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join(ADDED_SEEDS))?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()
}

/// Seeds that were removed from the job in `directory`.
pub fn removed_seeds(directory: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(directory.join(REMOVED_SEEDS)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// These are not removed ones any more.
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

/// SURT prefixes of redirected seeds of the job in `directory`; none where there is no such file.
pub fn redirected_seeds(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join(REDIRECTED_SEEDS)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
