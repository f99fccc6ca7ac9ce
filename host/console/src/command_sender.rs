//! Sends questions and commands to jobs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opilio_control::{
    Author, Command, CommandRequest, CommandResponse, ControlError, carry_out, is_reachable,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Maximum commands in progress; each has a thread.
const COMMANDS_MAX: usize = 64;

/// Sender of commands to all jobs.
pub(crate) struct CommandSender {
    commands: Arc<Semaphore>,
    /// Locks for jobs without a process. Such a job is opened for each command, by one command at a time.
    job_locks: Mutex<HashMap<PathBuf, Arc<Semaphore>>>,
}

/// Cancels a command when it is dropped, because the client has disconnected.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl CommandSender {
    pub(crate) fn new() -> CommandSender {
        CommandSender {
            commands: Arc::new(Semaphore::new(COMMANDS_MAX)),
            job_locks: Mutex::default(),
        }
    }

    /// Runs a command and returns its answers without the last one. If several nodes share the job, the command acts on all of
    /// them.
    pub(crate) async fn send(
        &self,
        job: PathBuf,
        user: &str,
        command: Command,
    ) -> Result<Vec<CommandResponse>, Problem> {
        self.deliver(job, user, command, false).await
    }

    /// Runs a command of the daemon, which acts on its own job alone.
    pub(crate) async fn send_here(
        &self,
        job: PathBuf,
        user: &str,
        command: Command,
    ) -> Result<Vec<CommandResponse>, Problem> {
        self.deliver(job, user, command, true).await
    }

    async fn deliver(
        &self,
        job: PathBuf,
        user: &str,
        command: Command,
        only_here: bool,
    ) -> Result<Vec<CommandResponse>, Problem> {
        let permit = self.permit().await?;
        let job_lock = match is_reachable(&job) {
            true => None,
            false => Some(self.lock_job(&job).await?),
        };
        let request = CommandRequest {
            by: Author {
                user: user.to_owned(),
                pid: std::process::id(),
            },
            command,
            only_here,
        };
        let gone = Arc::new(AtomicBool::new(false));
        let _gone = CancelOnDrop(gone.clone());
        let carried_out = tokio::task::spawn_blocking(move || {
            let _held = (permit, job_lock);
            let mut answers = Vec::new();
            let reached = carry_out(&job, &request, &mut |answer| {
                answers.push(answer);
                !gone.load(Ordering::Relaxed)
            });
            (reached, answers)
        });
        let (reached, mut answers) = carried_out
            .await
            .map_err(|panic| Problem::failure(format!("a command panicked: {panic}")))?;
        reached.map_err(Problem::from)?;
        match answers.pop() {
            Some(CommandResponse::Refused { kind, message }) => {
                let faults = answers.into_iter().find_map(|answer| match answer {
                    CommandResponse::Faults { faults } => Some(faults),
                    _ => None,
                });
                let problem = Problem::from(ControlError { kind, message });
                Err(problem.with_faults(faults.unwrap_or_default()))
            }
            _ => Ok(answers),
        }
    }

    /// Waits for a place among the commands that run at the same time. The place is free when the permit is dropped.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let commands = self.commands.clone();
        let permit = commands.acquire_owned().await;
        permit.map_err(|_| Problem::failure("the daemon is ending"))
    }

    /// Locks a job: no other task of the daemon opens it until the permit is dropped.
    pub(crate) async fn lock_job(&self, job: &Path) -> Result<OwnedSemaphorePermit, Problem> {
        let job_lock = {
            let mut job_locks = self
                .job_locks
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Locks that are not in use are removed, and created again when needed.
            job_locks
                .retain(|_, lock| Arc::strong_count(lock) > 1 || lock.available_permits() == 0);
            job_locks
                .entry(job.to_owned())
                .or_insert_with(|| Arc::new(Semaphore::new(1)))
                .clone()
        };
        job_lock
            .acquire_owned()
            .await
            .map_err(|_| Problem::failure("the daemon is ending"))
    }
}
