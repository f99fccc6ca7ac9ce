//! Changes to a job since it was made, with author and time, for machines: `history.jsonl` in its directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::changes::CHANGES;
use crate::overrides;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Change of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Change {
    /// Number of the change, from 1.
    pub number: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// User, as in `job.log`.
    pub by: String,
    /// Reason that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Content of the change.
    #[serde(flatten)]
    pub what: Changed,
}

/// Content of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Changed {
    /// Settings were changed: the text that was added to the profile.
    Set {
        /// TOML text.
        toml: String,
    },
    /// A live override was made, changed, moved or removed.
    Override {
        /// Number of the override.
        id: u64,
        /// Kind of the change.
        action: OverrideAction,
        /// The override in TOML; for `remove`, the removed one.
        toml: String,
    },
    /// Seeds were added.
    AddSeeds {
        /// Seeds, as lines of a seeds file.
        seeds: Vec<String>,
    },
    /// The job returned to a checkpoint. Changes made after the checkpoint no longer apply.
    Restore {
        /// Name of the checkpoint.
        checkpoint: String,
        /// Time of the saved state.
        made: Timestamp,
    },
}

/// Kind of a change of a live override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverrideAction {
    /// The override was added after the existing ones.
    Add,
    /// Settings or conditions of the override were changed.
    Change,
    /// The override was moved to another place in the order.
    Move,
    /// The override was removed.
    Remove,
}

/// The file, in the job's directory.
pub const FILE: &str = "history.jsonl";

/// Reads all changes of the job in this directory, the earliest first. A half-written last line of a killed process is skipped.
pub fn read(job: &Path) -> io::Result<Vec<Change>> {
    let text = match fs::read_to_string(job.join(FILE)) {
        Ok(text) => text,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(problem),
    };
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(lines.collect())
}

/// Returns the number of the next change.
pub fn next_number(job: &Path) -> io::Result<u64> {
    // A change that was listed late has a smaller number than the lines before it.
    let recorded = read(job)?.iter().map(|change| change.number).max();
    // A change that a killed process wrote but did not list counts, too.
    let live = overrides::read(job)?;
    let mut kept = live.iter().map(|one| one.id).max().unwrap_or(0);
    if let Ok(entries) = fs::read_dir(job.join(CHANGES)) {
        for entry in entries {
            let path = entry?.path();
            let number = path
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse().ok());
            kept = kept.max(number.unwrap_or(0));
        }
    }
    Ok(recorded.unwrap_or(0).max(kept) + 1)
}

/// Adds a change. It is on disk when this returns.
pub fn add(job: &Path, change: &Change) -> io::Result<()> {
    let path = job.join(FILE);
    let ends_a_line =
        fs::read(&path).map_or(true, |text| text.last().is_none_or(|last| *last == b'\n'));
    let line = serde_json::to_string(change)?;
    // An incomplete last line of a killed process gets a line end.
    let start = if ends_a_line { "" } else { "\n" };
    let mut file: File = OpenOptions::new().create(true).append(true).open(&path)?;
    file.write_all(format!("{start}{line}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_written_line_does_not_affect_later_lines() {
        let job = tempfile::tempdir().unwrap();
        let change = |number| Change {
            number,
            at: Timestamp::UNIX_EPOCH,
            by: "lena".to_owned(),
            reason: None,
            what: Changed::Set {
                toml: "workers = 3\n".to_owned(),
            },
        };
        add(job.path(), &change(1)).unwrap();
        let file = job.path().join(FILE);
        let torn = fs::read_to_string(&file).unwrap() + "{\"number\":2,\"at";
        fs::write(&file, torn).unwrap();
        add(job.path(), &change(3)).unwrap();
        assert_eq!(read(job.path()).unwrap(), [change(1), change(3)]);
        // A change that is listed late does not lead to the same number twice.
        add(job.path(), &change(2)).unwrap();
        assert_eq!(next_number(job.path()).unwrap(), 4);
    }
}
