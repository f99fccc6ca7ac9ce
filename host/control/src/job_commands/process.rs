//! The process of a part of a shared job carries out the commands of other nodes: those that were given before it began, and later ones
//! as they come.

use std::sync::Arc;
use std::time::Duration;

use opilio_cluster::CommandReader;
use opilio_job::End;
use tokio::sync::watch;

use super::state::CommandState;
use super::{JobCommands, LoggedCommand, NotNow};
use crate::{Author, Command, ControlError, ErrorKind, Running};

/// Pause after a failure of NATS, or of a command, for instance because the disk is full.
const RETRY: Duration = Duration::from_secs(10);

impl JobCommands {
    /// Carries out the commands that were given while no process ran the job here, before it fetches anything. A stop counts if the
    /// last process of this directory died: it would have stopped.
    fn begin(&self, running: &Running) -> Result<(), NotNow> {
        let _turn = self.turn();
        let mut state = self.state()?;
        let has_died = std::mem::replace(&mut state.is_running, true);
        state.write(&self.directory)?;
        if state.is_paused {
            running.live.pause_everywhere(true);
            let words =
                "paused on all nodes; `opilio job resume JOB` on any of them resumes the crawl";
            running.log.crawl("cluster", words);
        }
        let last = self.wait(self.job.last_command())?;
        if state.carried_out >= last {
            return Ok(());
        }
        let mut reader = self.wait(CommandReader::open(&self.job, state.carried_out))?;
        let profile = running.context.current();
        let admin = running.admin(&profile);
        while state.carried_out < last {
            let next = self.wait(reader.next())?;
            let is_stop = serde_json::from_slice::<LoggedCommand>(&next.command)
                .is_ok_and(|logged| logged.command == Command::Stop);
            if is_stop && !has_died {
                state.carried_out = next.sequence;
                state.write(&self.directory)?;
                continue;
            }
            self.carry_out(&admin, &next, &mut state, &mut |_| true)?;
        }
        Ok(self.wait(self.job.note_applied(last))?)
    }

    /// Carries out commands of other nodes as they come, until NATS fails.
    async fn follow(
        self: &Arc<Self>,
        running: &Running,
        ended: &mut watch::Receiver<()>,
    ) -> Result<(), NotNow> {
        let state = self.state()?;
        let mut reader = CommandReader::open(&self.job, state.carried_out).await?;
        loop {
            let next = tokio::select! {
                biased;
                // Resolves when the sender is dropped.
                _ = ended.changed() => return Ok(()),
                next = reader.next() => next?,
            };
            let (commands, running, sequence) = (self.clone(), running.clone(), next.sequence);
            let carried_out = tokio::task::spawn_blocking(move || {
                let _turn = commands.turn();
                let mut state = commands.state()?;
                if state.carried_out >= next.sequence {
                    return Ok(());
                }
                let profile = running.context.current();
                let admin = running.admin(&profile);
                commands.carry_out(&admin, &next, &mut state, &mut |_| true)
            });
            match carried_out.await {
                Ok(carried_out) => carried_out?,
                Err(panic) => {
                    let why = format!("a command panicked: {panic}");
                    return Err(ControlError::new(ErrorKind::Failure, why).into());
                }
            }
            self.job.note_applied(sequence).await?;
        }
    }
}

/// Carries out the commands that were given while no process ran the job, before the crawl begins.
pub(crate) async fn begin(running: &Running) {
    let Some(commands) = running.commands.clone() else {
        return;
    };
    let beginning = running.clone();
    let begun = tokio::task::spawn_blocking(move || commands.begin(&beginning)).await;
    match begun {
        // Stopped by one of them.
        Ok(Ok(()) | Err(NotNow::Ending)) => {}
        Ok(Err(NotNow::Failed(problem))) => {
            let words = format!("commands of other nodes are not carried out yet: {problem}");
            tracing::warn!("{words}");
            running.log.crawl("cluster", &words);
        }
        Err(panic) => tracing::error!("{panic}"),
    }
}

/// Carries out commands of other nodes, and answers their questions, until the crawl ends.
pub(crate) async fn keep(running: Running, ended: watch::Receiver<()>) {
    let Some(commands) = running.commands.clone() else {
        return;
    };
    tokio::join!(
        follow(&commands, &running, ended.clone()),
        commands.answer(&running, ended)
    );
}

async fn follow(commands: &Arc<JobCommands>, running: &Running, mut ended: watch::Receiver<()>) {
    let mut known: Option<String> = None;
    while ended.has_changed().is_ok() {
        match commands.follow(running, &mut ended).await {
            Ok(()) | Err(NotNow::Ending) => return,
            Err(NotNow::Failed(problem)) => {
                let words = problem.to_string();
                if known.as_ref() != Some(&words) {
                    tracing::warn!("commands of other nodes are not carried out: {words}");
                }
                known = Some(words);
            }
        }
        // Resolves when the sender is dropped.
        let _ = tokio::time::timeout(RETRY, ended.changed()).await;
    }
}

/// Stops the other nodes if the crawl has ended here because its time is over.
pub(crate) async fn tell_end(running: &Running, end: &End) {
    if !matches!(end, End::TimeLimit | End::Quota("run-time")) {
        return;
    }
    let Some(commands) = running.commands.clone() else {
        return;
    };
    let by = Author {
        user: "time-limit".to_owned(),
        pid: 0,
    };
    let told = tokio::task::spawn_blocking(move || commands.log(by, Command::Stop, None));
    if let Ok(Err(problem)) = told.await {
        tracing::warn!("the other nodes do not know that the time of the crawl is over: {problem}");
    }
}

/// Notes that the process has ended in good order.
pub(crate) fn end(running: &Running) {
    if let Some(commands) = &running.commands {
        let _turn = commands.turn();
        let ended = commands.state().and_then(|state| {
            let state = CommandState {
                is_running: false,
                ..state
            };
            state.write(&commands.directory)
        });
        if let Err(problem) = ended {
            tracing::warn!("{problem}");
        }
    }
}
