//! Commands that NATS had stored and then lost, for instance in a power failure. NATS reuses their numbers. So the place of a
//! directory in the log also has the time of its last command. It is set back if the log no longer has that command (decision 73).
//! Effects of the lost commands stay.

use std::sync::atomic::Ordering;

use opilio_cluster::{ClusterError, ClusterJob, MessagePlace};
use opilio_job::alerts::{AlertKind, Severity};
use opilio_job::overrides;

use super::JobCommands;
use super::state::CommandState;
use crate::{ControlError, Running};

/// Subject of the alert about lost commands.
pub(super) const LOST_COMMANDS: &str = "lost-commands";

impl JobCommands {
    /// Returns the place of this directory in the log. If NATS has lost commands, sets it back first. The caller holds the lock for
    /// commands.
    pub(super) fn place(&self, running: Option<&Running>) -> Result<CommandState, ControlError> {
        let known = self.state()?;
        let found = self.wait(find_place(&self.job, known))?;
        if found == known {
            return Ok(known);
        }
        self.set_back(&found)?;
        if let Err(problem) = self.wait(self.job.note_lost(found.carried_out)) {
            tracing::warn!("{problem}");
        }
        let words = format!(
            "NATS has lost commands behind command {} of the job that this node has carried out; other nodes may lack them: compare `opilio job history` of all nodes, and give those again that are missing; set sync_interval: always in nats.conf",
            found.carried_out
        );
        match running {
            Some(running) => {
                let context = &running.context;
                context.raise(AlertKind::Nats, LOST_COMMANDS, Severity::Warning, &words);
            }
            None => tracing::warn!("{words}"),
        }
        Ok(found)
    }

    /// Sets the place back. From then on, overrides of lost commands belong to this directory alone, because later commands get the
    /// same numbers.
    fn set_back(&self, found: &CommandState) -> Result<(), ControlError> {
        let through = found.carried_out;
        let failed = |problem| ControlError::file(&self.directory, &problem);
        let mut live = overrides::read(&self.directory).map_err(failed)?;
        let mut is_changed = false;
        for one in &mut live {
            if one.command.is_some_and(|command| command > through) {
                one.command = None;
                is_changed = true;
            }
        }
        if is_changed {
            overrides::write(&self.directory, &live).map_err(failed)?;
        }
        // A command that gets one of the lost numbers was given after the process began.
        self.given_before.fetch_min(through, Ordering::AcqRel);
        self.unfinished.store(0, Ordering::Release);
        self.write(found)
    }
}

/// Returns the place in the log for a directory whose stored place is `known`: the same one, or an earlier one if NATS has lost
/// commands.
async fn find_place(job: &ClusterJob, known: CommandState) -> Result<CommandState, ClusterError> {
    let place = |sequence, stored_ns| MessagePlace {
        sequence,
        stored_ns,
    };
    let noted = place(known.carried_out, known.carried_out_ns);
    let carried_out = job.command_place(noted).await?;
    let ahead = match known.ahead > known.carried_out {
        true => {
            job.command_place(place(known.ahead, known.ahead_ns))
                .await?
        }
        false if known.ahead > carried_out.sequence => carried_out,
        false => place(known.ahead, known.ahead_ns),
    };
    Ok(CommandState {
        carried_out: carried_out.sequence,
        carried_out_ns: carried_out.stored_ns,
        ahead: ahead.sequence,
        ahead_ns: ahead.stored_ns,
        ..known
    })
}

#[cfg(test)]
mod tests {
    use opilio_profile::MatchFile;
    use opilio_test_nats::NatsServer;

    use super::super::tests::{OnlyPart, set};
    use super::*;
    use crate::Command;

    fn override_of(host: &str) -> Command {
        let hosts = MatchFile {
            host: vec![host.to_owned()],
            ..MatchFile::default()
        };
        set("politeness.min-delay=\"4s\"", Some(hosts))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_command_with_the_number_of_a_lost_one_is_carried_out() {
        let Some(mut server) = NatsServer::start() else {
            return;
        };
        let part = OnlyPart::new();
        let commands = part.commands(&server).await;
        let perform = |command| {
            let answers = part.perform(&commands, command);
            assert!(!answers.contains("Refused"), "{answers}");
        };
        perform(override_of("a.localhost"));
        let before = CommandState::read(part.directory()).unwrap();
        server.save_store();
        until_answered(&commands).await;
        perform(override_of("b.localhost"));
        perform(Command::Pause);
        let lost = CommandState::read(part.directory()).unwrap();
        assert_eq!((lost.carried_out, lost.is_paused), (3, true));

        // The place does not change while nothing is lost.
        assert_eq!(commands.place(None).unwrap(), lost);
        server.restore_store();
        until_answered(&commands).await;
        let expected = CommandState {
            is_paused: true,
            ..before
        };
        assert_eq!(commands.place(None).unwrap(), expected);
        assert_eq!(commands.place(None).unwrap(), expected);
        let applied = commands.job.applied_command("a").await.unwrap();
        assert!(applied <= before.carried_out, "{applied}");

        // The number of the lost override now belongs to another one.
        perform(override_of("c.localhost"));
        let live = overrides::read(part.directory()).unwrap();
        let of_commands: Vec<_> = live.iter().map(|one| one.command).collect();
        assert_eq!(of_commands, [Some(1), None, Some(2)], "{live:?}");
        perform(Command::Resume);
        let state = CommandState::read(part.directory()).unwrap();
        assert_eq!((state.carried_out, state.is_paused), (3, false));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lost_commands_are_found_even_if_the_log_has_the_same_length() {
        let Some(mut server) = NatsServer::start() else {
            return;
        };
        let part = OnlyPart::new();
        let commands = part.commands(&server).await;
        part.perform(&commands, set("workers=3", None));
        server.save_store();
        until_answered(&commands).await;
        part.perform(&commands, Command::Pause);
        server.restore_store();
        until_answered(&commands).await;
        // A command of another node, which this one does not follow.
        commands.job.send_command(b"{}").await.unwrap();
        assert_eq!(commands.place(None).unwrap().carried_out, 1);
    }

    /// Waits until NATS answers after a restart.
    async fn until_answered(commands: &JobCommands) {
        while let Err(problem) = commands.job.last_command().await {
            assert!(problem.is_temporary(), "{problem}");
        }
    }
}
