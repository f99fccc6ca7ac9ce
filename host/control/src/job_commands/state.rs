//! The place of a directory in the log of commands of a shared job: `cluster-commands.json`.

use std::fs;
use std::io;
use std::path::Path;

use opilio_job::changes::SHARED_COMMANDS;
use opilio_job::text_file::write_text;
use serde::{Deserialize, Serialize};

use crate::ControlError;

/// The place of a directory in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CommandState {
    /// The last command that was carried out; 0 for none.
    pub(super) carried_out: u64,
    /// `true` if the crawl is paused on all nodes.
    pub(super) is_paused: bool,
    /// `true` from the start of a process until it has ended in good order.
    pub(super) is_running: bool,
}

impl CommandState {
    pub(super) fn read(job: &Path) -> Result<CommandState, ControlError> {
        let path = job.join(SHARED_COMMANDS);
        let failed = |problem| ControlError::file(&path, &problem);
        match fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(io::Error::other)
                .map_err(failed),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(problem) => Err(failed(problem)),
        }
    }

    pub(super) fn write(&self, job: &Path) -> Result<(), ControlError> {
        let path = job.join(SHARED_COMMANDS);
        let json = serde_json::to_vec(self).map_err(|problem| ControlError::failure(&problem))?;
        write_text(&path, json).map_err(|problem| ControlError::file(&path, &problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_the_log_is_kept_and_damage_is_named() {
        let job = tempfile::tempdir().unwrap();
        let read = || CommandState::read(job.path());
        assert_eq!(read().unwrap(), CommandState::default());
        let state = CommandState {
            carried_out: 7,
            is_paused: true,
            is_running: true,
        };
        state.write(job.path()).unwrap();
        assert_eq!(read().unwrap(), state);
        fs::write(job.path().join(SHARED_COMMANDS), "{").unwrap();
        let problem = read().unwrap_err().to_string();
        assert!(problem.contains("cluster-commands.json"), "{problem}");
    }
}
