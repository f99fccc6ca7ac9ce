//! Execution of logged commands in the directory of a part.
//!
//! Commands are carried out in the order of the log. A command that fails is retried, and the commands after it wait. Pauses,
//! resumptions and stops do not wait: they are carried out before the earlier commands, in their own order, because an operator
//! needs them most when something fails. They do not depend on settings, plugins and seeds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use opilio_cluster::{CommandReader, JobCommand};
use opilio_job::alerts::AlertKind;
use opilio_job::overrides;
use opilio_job::profile::frozen_profile;
use opilio_profile::Profile;

use super::command_log::{JobCommands, LoggedCommand, NotNow, of_other_node};
use super::state::CommandState;
use crate::admin::CommandOrigin;
use crate::answer::{Respond, done};
use crate::{
    Author, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, JobAdmin,
    OverrideChange,
};

impl LoggedCommand {
    fn read(next: &JobCommand) -> Result<LoggedCommand, ControlError> {
        serde_json::from_slice(&next.command).map_err(|_| {
            ControlError::new(
                ErrorKind::Failure,
                format!(
                    "command {} of the job is of another version: run the same version of Opilio on all nodes",
                    next.sequence
                ),
            )
        })
    }
}

/// Describes a command of the log for operators: its place, its line for `job.log`, and its author.
pub(super) fn described(next: &JobCommand) -> String {
    let sequence = next.sequence;
    let logged = LoggedCommand::read(next).ok();
    let line = logged.and_then(|logged| {
        let line = logged.command.log_line()?;
        Some(format!(
            "{line}, by {} on {}",
            logged.by.name(),
            logged.part
        ))
    });
    match line {
        Some(line) => format!("command {sequence} of the job ({line})"),
        None => format!("command {sequence} of the job"),
    }
}

impl JobCommands {
    /// Carries out all commands up to this one. Its answers go to `respond`.
    pub(super) fn carry_out_through(
        &self,
        admin: &JobAdmin<'_>,
        through: u64,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        let mut state = self.place(admin.running)?;
        let mut reader = self.wait(CommandReader::open(&self.job, state.carried_out))?;
        while state.carried_out < through {
            let next = self.wait(reader.next())?;
            match next.sequence == through {
                true => self.carry_out(admin, &next, &mut state, respond)?,
                false => self.carry_out(admin, &next, &mut state, &mut |_| true)?,
            }
        }
        if let Err(problem) = self.wait(self.job.note_applied(state.carried_out)) {
            tracing::warn!("{problem}");
        }
        Ok(())
    }

    /// Carries out pauses, resumptions and stops, up to the command `through`, before an earlier command that fails with `why`.
    /// The answers of `through` go to `respond`.
    pub(super) fn carry_out_ahead_through(
        &self,
        admin: &JobAdmin<'_>,
        through: u64,
        why: &ControlError,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        let mut state = self.state()?;
        let mut at = state.carried_out.max(state.ahead);
        let mut reader = self.wait(CommandReader::open(&self.job, at))?;
        while at < through {
            let next = self.wait(reader.next())?;
            at = next.sequence;
            match at == through {
                true => self.carry_out_ahead(admin, &next, &mut state, why, respond)?,
                false => self.carry_out_ahead(admin, &next, &mut state, why, &mut |_| true)?,
            }
        }
        Ok(())
    }

    /// Carries out the next command of the log.
    pub(super) fn carry_out(
        &self,
        admin: &JobAdmin<'_>,
        next: &JobCommand,
        state: &mut CommandState,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        let sequence = next.sequence;
        let logged = LoggedCommand::read(next)?;
        must_not_end(admin)?;
        if logged.command.is_independent_of_order() {
            let is_done = sequence <= state.ahead || self.is_past(sequence, &logged.command);
            let words = (!is_done).then(|| take_effect(admin, &logged.command, state));
            advance(admin, next, state);
            self.keep_place(admin.running.is_some(), state)?;
            clear_alert(admin);
            if let Some(words) = words {
                finish(
                    admin,
                    &self.author(&logged),
                    &logged.command,
                    words,
                    respond,
                );
            }
            return Ok(());
        }
        if logged.command.is_for_all_nodes() {
            let is_again = self.unfinished.load(Ordering::Acquire) == sequence;
            self.unfinished.store(sequence, Ordering::Release);
            let last = self.change(admin, sequence, logged, is_again, respond)?;
            // Changes by the command are on disk before its place.
            let persisted = admin.frontier().persist();
            persisted.map_err(ControlError::from)?;
            self.store_place(admin, next, state)?;
            respond(last);
        } else {
            tracing::warn!("command {sequence} of the job is not one for all nodes; it is skipped");
            self.store_place(admin, next, state)?;
        }
        self.unfinished.store(0, Ordering::Release);
        Ok(())
    }

    /// Carries out a pause, a resumption or a stop before an earlier command that fails. Other commands keep their order.
    pub(super) fn carry_out_ahead(
        &self,
        admin: &JobAdmin<'_>,
        next: &JobCommand,
        state: &mut CommandState,
        why: &ControlError,
        respond: Respond<'_>,
    ) -> Result<(), NotNow> {
        let sequence = next.sequence;
        // A command of another version is not carried out before earlier commands.
        let logged = LoggedCommand::read(next).ok();
        let Some(logged) = logged.filter(|logged| logged.command.is_independent_of_order()) else {
            return Ok(());
        };
        if sequence <= state.carried_out.max(state.ahead) {
            return Ok(());
        }
        must_not_end(admin)?;
        let is_past = self.is_past(sequence, &logged.command);
        let words = (!is_past).then(|| take_effect(admin, &logged.command, state));
        let waits = state.carried_out + 1;
        state.ahead = sequence;
        state.ahead_ns = next.stored_ns;
        state.is_running |= admin.running.is_some();
        self.keep_place(admin.running.is_some(), state)?;
        if let Some(words) = words {
            let words = format!("{words}; command {waits} of the job still waits here: {why}");
            finish(
                admin,
                &self.author(&logged),
                &logged.command,
                &words,
                respond,
            );
        }
        Ok(())
    }

    /// Changes the job's settings, plugins or seeds. Returns the last answer, which the caller gives when the command is noted.
    fn change(
        &self,
        admin: &JobAdmin<'_>,
        sequence: u64,
        logged: LoggedCommand,
        is_again: bool,
        respond: Respond<'_>,
    ) -> Result<CommandResponse, NotNow> {
        let by = self.author(&logged);
        let guard = match logged.command.queues_uris() {
            true => admin
                .running
                .map(|running| running.live.begin_queue_command()),
            false => None,
        };
        if matches!(guard, Some(None)) {
            return Err(NotNow::Ending);
        }
        let component = logged.component.map(|stored| {
            let file = format!("component of command {sequence}");
            self.wait(self.job.read_stored(&file, &stored))
        });
        let component = component.transpose()?;
        let origin = CommandOrigin::Log {
            sequence,
            component: component.as_deref(),
            is_again,
        };
        let profile: Arc<Profile> = match is_again {
            // The previous attempt may have stored its change without applying it.
            true => Arc::new(frozen_profile(admin.job).map_err(ControlError::from)?),
            false => admin.current_profile()?,
        };
        let request = CommandRequest {
            by,
            command: self.with_own_numbers(logged.command)?,
            only_here: true,
        };
        let mut last = CommandResponse::End;
        let changing = admin.with(&profile, origin);
        changing.perform_here(&request, &mut |answer| match answer {
            CommandResponse::End | CommandResponse::Refused { .. } => {
                last = answer;
                true
            }
            answer => {
                // The other nodes carry out the command even if the client has disconnected.
                respond(answer);
                true
            }
        });
        if let CommandResponse::Refused {
            kind: kind @ ErrorKind::Failure,
            message,
        } = last
        {
            return Err(NotNow::Failed(ControlError::new(kind, message)));
        }
        if is_again {
            // A change that the previous attempt has stored is refused because it exists already.
            changing.put_kept_in_force()?;
        }
        Ok(last)
    }

    /// Stores the place of a command that was carried out, and clears the alert about it.
    fn store_place(
        &self,
        admin: &JobAdmin<'_>,
        next: &JobCommand,
        state: &mut CommandState,
    ) -> Result<(), ControlError> {
        advance(admin, next, state);
        self.write(state)?;
        clear_alert(admin);
        Ok(())
    }

    /// Returns `true` for a stop that has no effect on this process: it was given before the process began, and the previous
    /// process had an orderly end.
    pub(super) fn is_past(&self, sequence: u64, command: &Command) -> bool {
        *command == Command::Stop
            && sequence <= self.given_before.load(Ordering::Acquire)
            && !self.has_died.load(Ordering::Acquire)
    }

    /// Returns the author of a command, as this part logs it.
    fn author(&self, logged: &LoggedCommand) -> Author {
        match logged.part == self.part.part {
            true => logged.by.clone(),
            false => of_other_node(&logged.by, &logged.part),
        }
    }

    /// Replaces the numbers of overrides in a logged command by their numbers in this directory. An unknown override gets an unused
    /// number, so that the command is refused.
    fn with_own_numbers(&self, mut command: Command) -> Result<Command, ControlError> {
        let Command::ChangeOverride { id, change, .. } = &mut command else {
            return Ok(command);
        };
        let live = overrides::read(&self.directory)
            .map_err(|problem| ControlError::file(&self.directory, &problem))?;
        let own = |shared: u64| {
            let known = live.iter().find(|one| one.command == Some(shared));
            known.map_or(0, |one| one.id)
        };
        *id = own(*id);
        if let OverrideChange::Move {
            before: Some(before),
        } = change
        {
            *before = own(*before);
        }
        Ok(command)
    }
}

/// Moves the place behind a command.
fn advance(admin: &JobAdmin<'_>, next: &JobCommand, state: &mut CommandState) {
    state.carried_out = next.sequence;
    state.carried_out_ns = next.stored_ns;
    // This is also correct if the disk was full when the process began.
    state.is_running |= admin.running.is_some();
}

/// Clears the alert about the first waiting command after it was carried out. If the next one fails, it raises the alert again.
fn clear_alert(admin: &JobAdmin<'_>) {
    if let Some(running) = admin.running {
        running.context.clear(AlertKind::Commands, "");
    }
}

/// Fails if the process of the part is ending. Its next process carries out the command.
fn must_not_end(admin: &JobAdmin<'_>) -> Result<(), NotNow> {
    match admin
        .running
        .is_some_and(|running| running.stop.is_requested())
    {
        true => Err(NotNow::Ending),
        false => Ok(()),
    }
}

/// Pauses, resumes or stops. Returns the result in a sentence. The caller writes the state.
fn take_effect(admin: &JobAdmin<'_>, command: &Command, state: &mut CommandState) -> &'static str {
    if *command == Command::Stop {
        return match admin.running {
            Some(running) => {
                running.stop.stop();
                "stopping on all nodes; current fetches finish; `opilio crawl JOB` on each node resumes the job"
            }
            // The process has died, or its daemon has ended. It would have stopped, and a daemon may be about to start the next
            // process.
            None if state.is_running => {
                state.is_stopped = true;
                "stopping on all nodes; no process runs the job here, and the next one stops at once"
            }
            None => "stopping on all nodes; no process runs the job here",
        };
    }
    state.is_paused = *command == Command::Pause;
    if let Some(running) = admin.running {
        running.live.pause_everywhere(state.is_paused);
    }
    match state.is_paused {
        true => "pausing on all nodes; no new fetches start, current fetches finish",
        false => "resumed on all nodes",
    }
}

/// Logs a command that was carried out, and answers it. An error of the log (a full disk) does not delay a pause or a stop.
fn finish(admin: &JobAdmin<'_>, by: &Author, command: &Command, words: &str, respond: Respond<'_>) {
    match admin.log_action(None, by, command, &Ok(words.to_owned())) {
        Ok(()) => {
            done(words, respond);
            respond(CommandResponse::End);
        }
        Err(ControlError { kind, message }) => {
            // The message has the result.
            tracing::warn!("{message}");
            respond(CommandResponse::Refused { kind, message });
        }
    }
}
