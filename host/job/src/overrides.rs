//! Live overrides: overrides that operators have made since the job was created, in the order in which they apply. They apply after
//! the overrides of the profile.
//!
//! They are stored in `changes/overrides.json` of the job, so that copies and checkpoints of the job include them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_profile::Layer;
use serde::{Deserialize, Serialize};

use crate::changes::CHANGES;
use crate::text_file::write_text;

/// The file, in the folder of changes.
const FILE: &str = "overrides.json";

/// An override that an operator has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveOverride {
    /// Number of the change that made it. It stays the same when the override is changed or moved.
    pub id: u64,
    /// Position of the command that made it in the list of commands of a shared job. It is the same on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// User who made or last changed it.
    pub by: String,
    /// Time at which it was made or last changed.
    pub at: Timestamp,
    /// Reason that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The override, as in a profile.
    pub toml: String,
}

impl LiveOverride {
    /// Name in errors and explanations, in place of a file.
    pub fn name(&self) -> String {
        format!("override {}", self.id)
    }

    /// Returns the override as a layer of the job's profile. `base` is the folder against which its paths are resolved.
    pub fn layer(&self, base: &Path) -> Layer {
        Layer {
            file: self.name(),
            text: self.toml.clone(),
            base: base.to_owned(),
            files: BTreeMap::new(),
        }
    }
}

fn path(job: &Path) -> PathBuf {
    job.join(CHANGES).join(FILE)
}

/// Reads the live overrides of a job, in the order in which they apply.
pub fn read(job: &Path) -> io::Result<Vec<LiveOverride>> {
    let path = path(job);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|problem| {
            io::Error::other(format!(
                "invalid {}: {problem}; return to a checkpoint, or repair the file",
                path.display()
            ))
        }),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

/// Replaces the live overrides of a job on disk. They apply to every later start, even if this process dies.
pub fn write(job: &Path, overrides: &[LiveOverride]) -> io::Result<()> {
    fs::create_dir_all(job.join(CHANGES))?;
    let text = serde_json::to_string_pretty(overrides)?;
    write_text(&path(job), format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_keep_their_order_and_a_damaged_file_is_an_error() {
        let job = tempfile::tempdir().unwrap();
        assert_eq!(read(job.path()).unwrap(), []);
        let one = |id, reason: Option<&str>| LiveOverride {
            id,
            command: None,
            by: "lena".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            reason: reason.map(str::to_owned),
            toml: "[[override]]\nmatch = { host = [\"a.org\"] }\n".to_owned(),
        };
        let all = [one(7, None), one(3, Some("they complained"))];
        write(job.path(), &all).unwrap();
        assert_eq!(read(job.path()).unwrap(), all);
        // The other files of changes are not affected.
        assert_eq!(
            crate::changes::changes(job.path(), Path::new("")).unwrap(),
            []
        );
        fs::write(path(job.path()), "[{").unwrap();
        let problem = read(job.path()).unwrap_err().to_string();
        assert!(problem.contains("overrides.json"), "{problem}");
    }
}
