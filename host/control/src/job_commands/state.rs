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
pub(crate) struct CommandState {
    /// Number of the last command that was carried out in the order of the log; 0 for none.
    pub(super) carried_out: u64,
    /// Time at which NATS stored that command, in nanoseconds since 1970; 0 for none. It distinguishes commands with the same
    /// number.
    pub(super) carried_out_ns: i64,
    /// Number of the last pause, resumption or stop that was carried out before an earlier command, because that one failed; 0
    /// for none. Pauses, resumptions and stops up to this number are skipped later, in the order of the log.
    pub(super) ahead: u64,
    /// Time at which NATS stored that command.
    pub(super) ahead_ns: i64,
    /// `true` if the crawl is paused on all nodes.
    pub(super) is_paused: bool,
    /// `true` from the start of a process until its orderly end.
    pub(super) is_running: bool,
    /// `true` if a stop was carried out while no process ran and the last process had died: the next process stops at once.
    pub(super) is_stopped: bool,
}

impl CommandState {
    pub(super) fn read(job: &Path) -> Result<CommandState, ControlError> {
        Ok(CommandState::read_stored(job)?.unwrap_or_default())
    }

    /// Reads the place that is stored in a directory; `None` if no other node shares the job.
    fn read_stored(job: &Path) -> Result<Option<CommandState>, ControlError> {
        let path = job.join(SHARED_COMMANDS);
        let failed = |problem| ControlError::file(&path, &problem);
        match fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(io::Error::other)
                .map_err(failed)
                .map(Some),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(failed(problem)),
        }
    }

    pub(super) fn write(&self, job: &Path) -> Result<(), ControlError> {
        let path = job.join(SHARED_COMMANDS);
        let json = serde_json::to_vec(self).map_err(|problem| ControlError::failure(&problem))?;
        write_text(&path, json).map_err(|problem| ControlError::file(&path, &problem))
    }

    /// Returns the place for a copy of the job, which no process runs; `None` if no other node shares the job.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn for_copy(job: &Path) -> Result<Option<CommandState>, ControlError> {
        let stored = CommandState::read_stored(job)?;
        Ok(stored.map(|state| CommandState {
            is_running: false,
            is_stopped: false,
            ..state
        }))
    }

    /// Writes the place, if there is one, into a copy of the job.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_copy(copied: Option<&CommandState>, to: &Path) -> Result<(), ControlError> {
        copied.map_or(Ok(()), |state| state.write(to))
    }

    /// Records in a copy of a job that its process has died, so that stops that it had not carried out take effect.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn note_death(job: &Path) -> Result<(), ControlError> {
        let state = CommandState {
            is_running: true,
            ..CommandState::read(job)?
        };
        state.write(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> CommandState {
        CommandState {
            carried_out: 7,
            carried_out_ns: 70,
            ahead: 9,
            ahead_ns: 90,
            is_paused: true,
            is_running: true,
            is_stopped: false,
        }
    }

    #[test]
    fn the_place_in_the_log_is_kept_and_damage_is_named() {
        let job = tempfile::tempdir().unwrap();
        let read = || CommandState::read(job.path());
        assert_eq!(read().unwrap(), CommandState::default());
        state().write(job.path()).unwrap();
        assert_eq!(read().unwrap(), state());
        fs::write(job.path().join(SHARED_COMMANDS), "{").unwrap();
        let problem = read().unwrap_err().to_string();
        assert!(problem.contains("cluster-commands.json"), "{problem}");
    }

    #[test]
    fn no_process_runs_a_copy() {
        let (job, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(CommandState::for_copy(job.path()).unwrap(), None);
        CommandState::write_copy(None, copy.path()).unwrap();
        assert!(!copy.path().join(SHARED_COMMANDS).exists());

        let stopped = CommandState {
            is_stopped: true,
            ..state()
        };
        stopped.write(job.path()).unwrap();
        let copied = CommandState::for_copy(job.path()).unwrap();
        CommandState::write_copy(copied.as_ref(), copy.path()).unwrap();
        let expected = CommandState {
            is_running: false,
            ..state()
        };
        assert_eq!(CommandState::read(copy.path()).unwrap(), expected);

        CommandState::note_death(copy.path()).unwrap();
        assert_eq!(CommandState::read(copy.path()).unwrap(), state());
    }
}
