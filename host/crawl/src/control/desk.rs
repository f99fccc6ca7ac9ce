//! What commands are performed on, and why they are refused.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opilio_frontier::Frontier;
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};

use super::{JobLog, Live};
use crate::context::Context;
use crate::crawl::{Stop, View};
use opilio_job::inside::leads_out;
use opilio_job::remedy::{remedy, with_remedy};

/// A job as commands see it.
pub(crate) struct Desk<'a> {
    pub(super) job: &'a Path,
    pub(super) profile: &'a Arc<Profile>,
    pub(super) log: &'a JobLog,
    /// None: no process runs it but the one that performs the command.
    pub(super) running: Option<&'a Running>,
    frontier: &'a Mutex<Frontier>,
}

/// A crawl at work, as commands see it.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) context: Arc<Context>,
    pub(crate) live: Arc<Live>,
    pub(crate) stop: Stop,
    pub(crate) view: View,
    pub(crate) job: PathBuf,
    pub(crate) log: Arc<JobLog>,
}

impl Running {
    /// What commands are performed on; the profile is that with all that was changed: [`Context::current`].
    pub(crate) fn desk<'d>(&'d self, profile: &'d Arc<Profile>) -> Desk<'d> {
        Desk {
            job: &self.job,
            profile,
            log: &self.log,
            running: Some(self),
            frontier: &self.context.frontier,
        }
    }
}

impl<'a> Desk<'a> {
    /// Of a job that this process alone has opened.
    pub(crate) fn new(
        job: &'a Path,
        profile: &'a Arc<Profile>,
        frontier: &'a Mutex<Frontier>,
        log: &'a JobLog,
    ) -> Desk<'a> {
        Desk {
            job,
            profile,
            log,
            running: None,
            frontier,
        }
    }

    /// The frontier, for one bounded part of a command. Never held while an answer is on its way.
    pub(super) fn frontier(&self) -> MutexGuard<'a, Frontier> {
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frontier, for whoever takes it in parts of their own.
    pub(super) fn store(&self) -> &'a Mutex<Frontier> {
        self.frontier
    }

    /// What only a running crawl has.
    pub(super) fn running(&self, what: &str) -> Result<&'a Running, ControlError> {
        self.running.ok_or_else(|| {
            ControlError::new(
                Fault::State,
                format!("no process runs job {}: {what}", self.job.display()),
            )
        })
    }

    /// The dispatcher should look again: what may be fetched has changed.
    pub(super) fn nudge(&self) {
        if let Some(running) = self.running {
            running.live.nudge();
        }
    }
}

/// Why a command was not carried out, or not to its end.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ControlError {
    /// Whose fault it is.
    pub fault: Fault,
    /// A sentence.
    pub message: String,
}

/// Whose fault it is that a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The command's: as it stands it can never be carried out.
    Request,
    /// The command's: it names something that the job does not have.
    Unknown,
    /// Nobody's: it does not fit what the job is or does now.
    State,
    /// Opilio's or the machine's: a full disk, a damaged store.
    Failure,
}

impl ControlError {
    pub(super) fn new(fault: Fault, message: impl Into<String>) -> ControlError {
        ControlError {
            fault,
            message: message.into(),
        }
    }

    /// A failure, with its causes.
    pub(super) fn failure(problem: &(dyn std::error::Error + 'static)) -> ControlError {
        ControlError::new(Fault::Failure, with_remedy(problem))
    }

    /// A failure about a file; or that a link leads out of the job, which is for the operator to mend.
    pub(super) fn file(path: &Path, problem: &std::io::Error) -> ControlError {
        if leads_out(problem) {
            return ControlError::new(Fault::State, problem.to_string());
        }
        let remedy = remedy(problem).map(|remedy| format!("; {remedy}"));
        let remedy = remedy.unwrap_or_default();
        ControlError::new(
            Fault::Failure,
            format!("cannot use {}: {problem}{remedy}", path.display()),
        )
    }
}

impl From<opilio_frontier::Error> for ControlError {
    fn from(problem: opilio_frontier::Error) -> ControlError {
        match problem {
            // Somebody is just leaving it.
            opilio_frontier::Error::InUse { .. } => ControlError::new(
                Fault::State,
                format!("{problem}, which begins or ends; try again"),
            ),
            problem => ControlError::failure(&problem),
        }
    }
}

impl From<crate::JobError> for ControlError {
    fn from(problem: crate::JobError) -> ControlError {
        let fault = match &problem {
            crate::JobError::Io { .. } => Fault::Failure,
            crate::JobError::NotEmpty { .. } => Fault::Request,
            _ => Fault::State,
        };
        ControlError::new(fault, with_remedy(&problem))
    }
}
