//! Operators' commands on a job that several nodes share. A command is appended to the job's log of commands in NATS. The directory
//! of each part carries it out once, in the order of the log. A part that starts later, or on another node, continues behind the
//! last command that its directory has carried out.
//!
//! - The node that receives a command checks it first. The log gets only commands that this node can carry out.
//! - `cluster-commands.json` has the directory's place in the log: the number of the last command that it carried out. It is
//!   written after the effects of the command are on disk. After a crash in between, the command is carried out again, which
//!   changes nothing (`LiveOverride::command`).
//! - The place also has the time of its command, because NATS may lose commands and reuse their numbers (`lost.rs`).
//! - A command that fails delays the commands after it, except pauses, resumptions and stops (`carry_out.rs`).
//! - Overrides have different numbers in each directory. In the log, an override has the number of the command that made it.
//! - Components are passed on through the job's object store.

mod carry_out;
mod command_log;
mod lost;
mod process;
mod questions;
mod starting;
mod state;
#[cfg(test)]
mod tests;

use std::path::Path;

use opilio_cluster::{
    Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, MemberScope,
};
use opilio_crawl::JobPart;
use opilio_job::overrides::{self, LiveOverride};

pub(crate) use command_log::JobCommands;
pub(crate) use process::{begin, end, keep, stop_others_at_time_limit};
pub use starting::stop_other_nodes;
pub(crate) use state::CommandState;

use self::command_log::{NotNow, not_given, wait};
use self::questions::other_part;
use super::admin::CommandOrigin;
use super::answer::{Respond, done};
use super::command::read_uri;
use super::{
    Author, ClusterFile, Command, CommandRequest, CommandResponse, ControlError, ErrorKind,
    JobAdmin, OverrideChange,
};

impl JobAdmin<'_> {
    /// Carries out a command: on all nodes if it is for all nodes of a shared job, or on the node with the site of its URI or with
    /// its queue. The last answer is [`CommandResponse::End`] or [`CommandResponse::Refused`].
    pub(super) fn perform(&self, request: &CommandRequest, respond: Respond<'_>) {
        let Some(commands) = self.commands.filter(|_| !request.only_here) else {
            return self.perform_here(request, respond);
        };
        if request.command.is_for_all_nodes() {
            return commands.send_and_carry_out(self, request, respond);
        }
        match other_part(self, &commands.part, &request.command) {
            Some(place) => commands.forward(&place, request, respond),
            None => self.perform_here(request, respond),
        }
    }
}

impl JobCommands {
    /// Returns access to the log of commands for a job that no process runs; `None` if the command does not concern other nodes.
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
        JobCommands::open(directory, part).map(Some)
    }

    /// The commands of a job for a program that does not run it, over a connection of its own.
    fn open(directory: &Path, part: JobPart) -> Result<JobCommands, ControlError> {
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
            let scope = MemberScope::Job(name.clone());
            let unknown = || ClusterError::UnknownJob { job: name.clone() };
            let members = Cluster::find(connection, &scope).await?;
            ClusterJob::open(&members.ok_or_else(unknown)?, &name).await
        });
        match job {
            Ok(job) => {
                let mut commands = JobCommands::new(job, part, directory, handle);
                commands.runtime = Some(runtime);
                Ok(commands)
            }
            Err(problem) => {
                runtime.shutdown_background();
                Err(problem)
            }
        }
    }

    /// Sends a command to all nodes, and carries it out here. The last answer is [`CommandResponse::End`] or
    /// [`CommandResponse::Refused`].
    fn send_and_carry_out(
        &self,
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
        respond: Respond<'_>,
    ) {
        // The task that follows the log discards the answers.
        let _lock = self.command_lock();
        let live = overrides::read(&self.directory).unwrap_or_default();
        if let Command::ChangeOverride { id, .. } = &request.command
            && live
                .iter()
                .any(|one| one.id == *id && one.command.is_none())
        {
            // The override was made by a command for this directory alone, so the other nodes do not have it.
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
                    problem.kind,
                    format!(
                        "command {sequence} of the job is given to all nodes, but not carried out here yet: {problem}"
                    ),
                ),
            },
            Err(problem) => problem,
        };
        let refused = Err(problem);
        let logged = admin.log_action(None, &request.by, &request.command, &refused);
        if let Some(ControlError { kind, message }) = refused.err().or(logged.err()) {
            respond(CommandResponse::Refused { kind, message });
        }
    }

    /// Carries out a command that this node has put into the log, and the commands before it. If an earlier one fails, a pause, a
    /// resumption or a stop does not wait for it.
    fn carry_out_given(
        &self,
        admin: &JobAdmin<'_>,
        request: &CommandRequest,
        sequence: u64,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        if request.command == Command::Resume {
            // A pause of this node alone ends too, for instance one by an alert. It lasts until the log has the command.
            drop(admin.pause(false, &mut |_| true));
        }
        match self.carry_out_through(admin, sequence, respond) {
            Err(NotNow::Failed(problem)) if request.command.is_independent_of_order() => {
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
        let profile = admin.current_profile()?;
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
}

/// Fails if the command would be refused. Errors in settings are sent to `respond`.
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
