//! The log of commands of a shared job in NATS, and the place that the directory of a part has in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opilio_cluster::{ClusterError, ClusterJob, StoredFile};
use opilio_crawl::{JobMembership, JobPart};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Handle, Runtime};

use super::state::CommandState;
use crate::{Author, Command, ControlError, ErrorKind};

/// Longest wait for one answer of NATS. A component of some megabytes takes a second.
const NATS_TIME_MAX: Duration = Duration::from_secs(30);

/// The commands of a shared job, as the directory of a part sees them.
pub(crate) struct JobCommands {
    pub(super) job: ClusterJob,
    pub(super) part: JobPart,
    pub(super) directory: PathBuf,
    pub(super) handle: Handle,
    /// Runtime of the connection, if no process runs the job.
    pub(super) runtime: Option<Runtime>,
    /// Lock while commands are carried out, so that each is carried out once.
    command_lock: Mutex<()>,
    /// Number of the last command that was given before the process of the part began; 0 for none.
    pub(super) given_before: AtomicU64,
    /// `true` if the previous process died.
    pub(super) has_died: AtomicBool,
    /// Number of the command that was begun and is not recorded as carried out; 0 for none.
    pub(super) unfinished: AtomicU64,
    /// The place in the log that could not be written, because the disk was full.
    unwritten: Mutex<Option<CommandState>>,
}

/// A command in the log.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoggedCommand {
    pub(super) by: Author,
    /// The part where the command was given.
    pub(super) part: String,
    pub(super) command: Command,
    /// The component that the command names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) component: Option<StoredFile>,
}

/// Reason why a command stays in the log and is carried out later.
pub(super) enum NotNow {
    /// The process of the part is ending.
    Ending,
    Failed(ControlError),
}

impl JobCommands {
    /// Returns the commands of a job that this process runs.
    pub(crate) fn of(membership: &JobMembership, directory: &Path) -> JobCommands {
        let (job, part) = (membership.job().clone(), membership.part().clone());
        let mut commands = JobCommands::new(job, part, directory, Handle::current());
        commands.given_before = AtomicU64::new(membership.commands_before());
        commands
    }

    pub(super) fn new(
        job: ClusterJob,
        part: JobPart,
        directory: &Path,
        handle: Handle,
    ) -> JobCommands {
        JobCommands {
            job,
            part,
            directory: directory.to_owned(),
            handle,
            runtime: None,
            command_lock: Mutex::default(),
            given_before: AtomicU64::new(0),
            has_died: AtomicBool::new(false),
            unfinished: AtomicU64::new(0),
            unwritten: Mutex::default(),
        }
    }

    /// Fails if another directory has got the part, because this one must not send commands to others then.
    pub(super) fn must_have_part(&self) -> Result<(), ControlError> {
        match self.part.can_move() {
            true => self.wait(self.job.check_part(self.part.own())),
            false => Ok(()),
        }
    }

    /// Appends a command to the log. Returns its number.
    pub(super) fn log(
        &self,
        by: Author,
        command: Command,
        component: Option<StoredFile>,
    ) -> Result<u64, ControlError> {
        let part = self.part.part.clone();
        let logged = LoggedCommand {
            by,
            part,
            command,
            component,
        };
        let json = serde_json::to_vec(&logged);
        let json = json.map_err(|problem| ControlError::failure(&problem))?;
        self.wait(self.job.send_command(&json))
    }

    pub(super) fn state(&self) -> Result<CommandState, ControlError> {
        match *self.unwritten() {
            Some(state) => Ok(state),
            None => CommandState::read(&self.directory),
        }
    }

    /// Writes the place in the log.
    pub(super) fn write(&self, state: &CommandState) -> Result<(), ControlError> {
        state.write(&self.directory)?;
        *self.unwritten() = None;
        Ok(())
    }

    /// Writes the place after a pause, a resumption or a stop. If the disk is full, a process keeps the place in memory, so that
    /// the command does not take effect again after later ones. If that process dies, the next one carries out all of them again,
    /// which ends in the same state.
    pub(super) fn keep_place(
        &self,
        is_process: bool,
        state: &CommandState,
    ) -> Result<(), ControlError> {
        match self.write(state) {
            Err(problem) if is_process => {
                tracing::warn!("{problem}; it is written with the next command");
                *self.unwritten() = Some(*state);
                Ok(())
            }
            written => written,
        }
    }

    fn unwritten(&self) -> MutexGuard<'_, Option<CommandState>> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn command_lock(&self) -> MutexGuard<'_, ()> {
        self.command_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<T: Send>(
        &self,
        question: impl Future<Output = Result<T, ClusterError>> + Send,
    ) -> Result<T, ControlError> {
        wait(&self.handle, question)
    }
}

impl Drop for JobCommands {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The caller may be a thread of another runtime, which must not block.
            runtime.shutdown_background();
        }
    }
}

impl From<ControlError> for NotNow {
    fn from(problem: ControlError) -> NotNow {
        NotNow::Failed(problem)
    }
}

impl From<ClusterError> for NotNow {
    fn from(problem: ClusterError) -> NotNow {
        NotNow::Failed(ControlError::failure(&problem))
    }
}

/// Returns the author of a command with the name of its part, as other parts log it.
pub(super) fn of_other_node(by: &Author, part: &str) -> Author {
    Author {
        user: format!("{}@{part}", by.user),
        pid: 0,
    }
}

/// Waits for an answer of NATS. The caller may be a thread of any runtime.
pub(super) fn wait<T: Send>(
    handle: &Handle,
    question: impl Future<Output = Result<T, ClusterError>> + Send,
) -> Result<T, ControlError> {
    let limited = async { tokio::time::timeout(NATS_TIME_MAX, question).await };
    let answer = std::thread::scope(|scope| scope.spawn(|| handle.block_on(limited)).join());
    match answer {
        Ok(Ok(answer)) => answer.map_err(|problem| not_given(&problem)),
        Ok(Err(_)) => Err(ControlError::new(
            ErrorKind::Failure,
            "NATS does not answer: check nats-server and its log, then try again",
        )),
        Err(_) => Err(ControlError::new(
            ErrorKind::Failure,
            "a question to NATS panicked",
        )),
    }
}

pub(super) fn not_given(problem: &ClusterError) -> ControlError {
    let kind = match problem.is_temporary() {
        true => ErrorKind::Failure,
        false => ErrorKind::State,
    };
    ControlError::new(kind, opilio_stacks::chain(problem))
}
