//! Operators' commands on a job that several nodes share. A command goes into the job's log of commands in NATS, and the directory of
//! each part carries it out once, in the order of the log; a part that starts later, or on another node, begins where its directory
//! has stopped.
//!
//! - The node where a command is given checks it first, and the log gets only commands that this node can carry out.
//! - `cluster-commands.json` has the place in the log. It is written after the effects of a command are on disk. A process that dies in
//!   between carries the command out again, which changes nothing (`LiveOverride::command`).
//! - The place has the time of its command: NATS may lose commands and give their numbers again (`lost.rs`).
//! - A command that fails holds up those behind it, except pauses, resumptions and stops (`carry_out.rs`).
//! - Overrides have numbers of their own in each directory. In the log they have the place of the command that made them.
//! - Components travel through the job's object store.

mod carry_out;
mod lost;
mod process;
mod questions;
mod state;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opilio_cluster::{
    Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, MemberScope, StoredFile,
};
use opilio_crawl::{JobMembership, JobPart};
use opilio_job::overrides::{self, LiveOverride};
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Handle, Runtime};

pub(crate) use process::{begin, end, keep, tell_end};
pub(super) use questions::other_part;
pub(crate) use state::CommandState;

use super::admin::CommandOrigin;
use super::delivery::profile;
use super::perform::{Respond, done, read_uri};
use super::{
    Author, ClusterFile, Command, CommandRequest, CommandResponse, ControlError, ErrorKind,
    JobAdmin, OverrideChange,
};

/// Longest wait for one answer of NATS. A component of some megabytes takes a second.
const NATS_TIME_MAX: Duration = Duration::from_secs(30);

/// The commands of a shared job, as the directory of a part sees them.
pub(crate) struct JobCommands {
    job: ClusterJob,
    part: JobPart,
    directory: PathBuf,
    handle: Handle,
    /// Runtime of the connection, if no process runs the job.
    runtime: Option<Runtime>,
    /// Held while commands are carried out, so that each is carried out once.
    command_lock: Mutex<()>,
    /// Place of the last command that was given before the process of the part began; 0 for none.
    given_before: AtomicU64,
    /// `true` if the process before has not ended in good order.
    has_died: AtomicBool,
    /// The command that has begun and is not noted as carried out; 0 for none.
    unfinished: AtomicU64,
    /// The place in the log that a full disk has not taken.
    unwritten: Mutex<Option<CommandState>>,
}

/// A command in the log.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LoggedCommand {
    by: Author,
    /// The part where it was given.
    part: String,
    command: Command,
    /// The component that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<StoredFile>,
}

/// The reason why a command stays in the log, and is carried out later.
enum NotNow {
    /// The process of the part is ending.
    Ending,
    Failed(ControlError),
}

impl JobCommands {
    /// The commands of a job that this process runs.
    pub(crate) fn of(membership: &JobMembership, directory: &Path) -> JobCommands {
        let (job, part) = (membership.job().clone(), membership.part().clone());
        let mut commands = JobCommands::new(job, part, directory, Handle::current());
        commands.given_before = AtomicU64::new(membership.commands_before());
        commands
    }

    fn new(job: ClusterJob, part: JobPart, directory: &Path, handle: Handle) -> JobCommands {
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

    /// The commands of a job that no process runs; `None` if the command does not concern other nodes.
    ///
    /// # Errors
    /// The cluster has no such job, or NATS fails.
    pub(crate) fn at_rest(
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
    ) -> Result<Option<JobCommands>, ControlError> {
        let directory = admin.job;
        let part = JobPart::read(directory);
        let part = part.map_err(|problem| ControlError::file(directory, &problem))?;
        let concerns_others = |part: &JobPart| {
            let command = &request.command;
            command.is_for_all_nodes() || other_part(admin, part, command).is_some()
        };
        let Some(part) = part.filter(|part| !request.only_here && concerns_others(part)) else {
            return Ok(None);
        };
        let config = ClusterFile::read(&part.config).and_then(|file| file.settings());
        let config = ClusterConfig {
            node: part.part.clone(),
            ..config.map_err(|problem| not_given(&problem))?
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|problem| ControlError::failure(&problem))?;
        let handle = runtime.handle().clone();
        let name = part.job.clone();
        let job = wait(&handle, async move {
            let connection = ClusterConnection::open(config).await?;
            let scope = MemberScope::FixedJob(name.clone());
            let unknown = || ClusterError::UnknownJob { job: name.clone() };
            let members = Cluster::find(connection, &scope).await?;
            ClusterJob::open(&members.ok_or_else(unknown)?, &name).await
        });
        match job {
            Ok(job) => {
                let mut commands = JobCommands::new(job, part, directory, handle);
                commands.runtime = Some(runtime);
                Ok(Some(commands))
            }
            Err(problem) => {
                runtime.shutdown_background();
                Err(problem)
            }
        }
    }

    /// The part of this directory.
    pub(super) fn part(&self) -> &JobPart {
        &self.part
    }

    /// Gives a command to all nodes, and carries it out here. The last answer is [`CommandResponse::End`] or
    /// [`CommandResponse::Refused`].
    pub(super) fn give(
        &self,
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
        respond: Respond<'_>,
    ) {
        // The task that follows the log would keep no answers.
        let _lock = self.command_lock();
        let live = overrides::read(&self.directory).unwrap_or_default();
        if let Command::ChangeOverride { id, .. } = &request.command
            && live
                .iter()
                .any(|one| one.id == *id && one.command.is_none())
        {
            // Made by a command that acted on this directory alone: the other nodes do not have it.
            return admin.perform_here(request, respond);
        }
        let problem = match self.send(admin, request, &live, respond) {
            Ok(sequence) => match self.carry_out_given(admin, request, sequence, respond) {
                Ok(()) => return,
                Err(NotNow::Ending) => {
                    let result = format!(
                        "command {sequence} of the job is given to all nodes; here it is carried out at the next start, because the crawl is ending"
                    );
                    done(&result, respond);
                    respond(CommandResponse::End);
                    return;
                }
                Err(NotNow::Failed(problem)) => ControlError::new(
                    problem.fault,
                    format!(
                        "command {sequence} of the job is given to all nodes, but not carried out here yet: {problem}"
                    ),
                ),
            },
            Err(problem) => problem,
        };
        let refused = Err(problem);
        let logged = admin.log_action(None, &request.by, &request.command, &refused);
        if let Some(ControlError { fault, message }) = refused.err().or(logged.err()) {
            respond(CommandResponse::Refused { fault, message });
        }
    }

    /// Carries out a command that this node has put into the log, and those before it. If one of these fails, a pause, a resumption or
    /// a stop does not wait for it.
    fn carry_out_given(
        &self,
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
        sequence: u64,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        if request.command == Command::Resume {
            // Also the pause of this node ends, for instance one of an alert. It holds until the log has the command.
            drop(admin.pause(false, &mut |_| true));
        }
        match self.carry_out_through(admin, sequence, respond) {
            Err(NotNow::Failed(problem)) if request.command.needs_no_turn() => {
                self.carry_out_ahead_through(admin, sequence, &problem, respond)
            }
            carried_out => carried_out,
        }
    }

    /// Checks a command, and puts it into the log. Returns its place there.
    fn send(
        &self,
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
        live: &[LiveOverride],
        respond: Respond<'_>,
    ) -> Result<u64, ControlError> {
        self.must_have_part()?;
        let profile = current_profile(admin)?;
        let trial = admin.with(&profile, CommandOrigin::Trial);
        let (by, mut command) = (&request.by, request.command.clone());
        let mut component = None;
        match &mut command {
            Command::Set { .. } | Command::AddSeeds { .. } => {
                check(&trial, by, &request.command, respond)?;
            }
            Command::ChangeOverride { id, change, .. } => {
                check(&trial, by, &request.command, respond)?;
                let shared = |id: u64| {
                    let known = live.iter().find(|one| one.id == id);
                    known.and_then(|one| one.command).ok_or_else(|| {
                        ControlError::new(
                            ErrorKind::State,
                            format!("override {id} exists on this node only: name another one"),
                        )
                    })
                };
                *id = shared(*id)?;
                if let OverrideChange::Move {
                    before: Some(before),
                } = change
                {
                    *before = shared(*before)?;
                }
            }
            Command::ReplacePlugin {
                plugin,
                component: reference,
                sha256,
                settings,
            } => {
                let request = JobAdmin::replacement_request(
                    plugin,
                    reference,
                    sha256.as_deref(),
                    settings.as_ref(),
                )?;
                let obtained = trial.obtain_component(&request)?;
                *sha256 = Some(obtained.sha256().to_string());
                component = Some(self.wait(self.job.store_file(obtained.bytes()))?);
            }
            Command::RemoveSeed { uri } => trial.must_be_seed(&read_uri(uri)?)?,
            _ => {}
        }
        self.log(by.clone(), command, component)
    }

    /// Fails if another directory has got the part: it gives no commands to the others.
    fn must_have_part(&self) -> Result<(), ControlError> {
        match self.part.can_move() {
            true => self.wait(self.job.check_part(self.part.own())),
            false => Ok(()),
        }
    }

    /// Puts a command into the log. Returns its place there.
    fn log(
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

    fn state(&self) -> Result<CommandState, ControlError> {
        match *self.unwritten() {
            Some(state) => Ok(state),
            None => CommandState::read(&self.directory),
        }
    }

    /// Writes the place in the log.
    fn write(&self, state: &CommandState) -> Result<(), ControlError> {
        state.write(&self.directory)?;
        *self.unwritten() = None;
        Ok(())
    }

    /// Writes the place after a pause, a resumption or a stop. If a full disk does not take it, a process remembers it, so that the
    /// command does not take effect again after later ones. A process that dies meanwhile carries them all out again, which ends in the
    /// same state.
    fn keep_place(&self, is_process: bool, state: &CommandState) -> Result<(), ControlError> {
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

    fn command_lock(&self) -> MutexGuard<'_, ()> {
        self.command_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T: Send>(
        &self,
        question: impl Future<Output = Result<T, ClusterError>> + Send,
    ) -> Result<T, ControlError> {
        wait(&self.handle, question)
    }
}

impl Drop for JobCommands {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The caller may be a thread of another runtime, which must not wait.
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

/// The author of a command, as other parts see it.
fn of_other_node(by: &Author, part: &str) -> Author {
    Author {
        user: format!("{}@{part}", by.user),
        pid: 0,
    }
}

/// The profile with all changes so far.
fn current_profile(admin: &JobAdmin<'_>) -> Result<Arc<Profile>, ControlError> {
    match admin.running {
        Some(running) => Ok(running.context.current()),
        None => Ok(Arc::new(profile(admin.job)?)),
    }
}

/// Fails if a command would be refused. Faults go to `respond`.
fn check(
    trial: &JobAdmin<'_>,
    by: &Author,
    command: &Command,
    respond: Respond<'_>,
) -> Result<(), ControlError> {
    let mut faults = Vec::new();
    let checked = trial.carry_out(by, command, &mut |answer| {
        faults.push(answer);
        true
    });
    if checked.is_err() {
        let is_fault = |answer: &CommandResponse| matches!(answer, CommandResponse::Faults { .. });
        faults.into_iter().filter(is_fault).for_each(|fault| {
            respond(fault);
        });
    }
    checked.map(drop)
}

/// Waits for an answer of NATS. The caller may be a thread of any runtime.
fn wait<T: Send>(
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

fn not_given(problem: &ClusterError) -> ControlError {
    let fault = match problem.is_temporary() {
        true => ErrorKind::Failure,
        false => ErrorKind::State,
    };
    ControlError::new(fault, opilio_stacks::chain(problem))
}
