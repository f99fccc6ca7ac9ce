//! Errors of commands.

use std::path::Path;

use opilio_job::profile::ProfileError;
use opilio_job::remedy::{remedy, with_remedy};
use opilio_job::symlinks::leads_out;
use serde::{Deserialize, Serialize};

/// Reason why a command was not carried out, or not completed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ControlError {
    /// Cause of the error.
    pub kind: ErrorKind,
    /// Message, one sentence.
    pub message: String,
}

/// Cause of a command's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The command is invalid: it can never be carried out in this form.
    Request,
    /// The command names something that the job does not have.
    Unknown,
    /// The command is valid but does not fit the present state of the job.
    State,
    /// Opilio or the machine failed: a full disk, a damaged store.
    Failure,
}

impl ControlError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> ControlError {
        ControlError {
            kind,
            message: message.into(),
        }
    }

    /// Creates a failure with its causes.
    pub(super) fn failure(problem: &(dyn std::error::Error + 'static)) -> ControlError {
        ControlError::new(ErrorKind::Failure, with_remedy(problem))
    }

    /// Creates a failure about a file. A link that leads out of the job is an error of state, which the operator must fix.
    pub(super) fn file(path: &Path, problem: &std::io::Error) -> ControlError {
        if leads_out(problem) {
            return ControlError::new(ErrorKind::State, problem.to_string());
        }
        let remedy = remedy(problem).map(|remedy| format!("; {remedy}"));
        let remedy = remedy.unwrap_or_default();
        ControlError::new(
            ErrorKind::Failure,
            format!("cannot use {}: {problem}{remedy}", path.display()),
        )
    }
}

impl From<opilio_frontier::FrontierError> for ControlError {
    fn from(problem: opilio_frontier::FrontierError) -> ControlError {
        match problem {
            // Another process is opening or closing the frontier.
            opilio_frontier::FrontierError::InUse { .. } => ControlError::new(
                ErrorKind::State,
                format!("{problem}, which is starting or ending; try again"),
            ),
            problem => ControlError::failure(&problem),
        }
    }
}

impl From<opilio_job::directory::JobError> for ControlError {
    fn from(problem: opilio_job::directory::JobError) -> ControlError {
        let kind = match &problem {
            opilio_job::directory::JobError::Io { .. } => ErrorKind::Failure,
            opilio_job::directory::JobError::NotEmpty { .. } => ErrorKind::Request,
            _ => ErrorKind::State,
        };
        ControlError::new(kind, with_remedy(&problem))
    }
}

impl From<ProfileError> for ControlError {
    fn from(problem: ProfileError) -> ControlError {
        match problem {
            ProfileError::Faults(faults) => ControlError::new(
                ErrorKind::State,
                format!("the job's profile.toml has errors\n{faults}"),
            ),
            ProfileError::Job(problem) => problem.into(),
        }
    }
}
