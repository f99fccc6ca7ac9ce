//! The process of a part of a shared job carries out commands of other nodes: earlier ones when it begins, and later ones as they
//! arrive.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use opilio_cluster::{ClusterError, CommandReader, JobCommand};
use opilio_job::End;
use opilio_job::alerts::{AlertKind, Severity};
use tokio::sync::watch;
use tokio::time::Instant;

use super::carry_out::described;
use super::command_log::{JobCommands, NotNow};
use super::lost::LOST_COMMANDS;
use super::state::CommandState;
use crate::{Author, Command, ControlError, ErrorKind, Running};

/// Pause after a failure of NATS, or of a command, for instance because the disk is full.
const RETRY: Duration = Duration::from_secs(10);

/// A command that has failed and delays the commands after it.
struct HeldUp {
    sequence: u64,
    /// Description of the command.
    command: String,
    why: ControlError,
    /// Time of the next attempt.
    retry: Instant,
}

impl HeldUp {
    /// Message for the operator.
    fn words(&self) -> String {
        let HeldUp { command, why, .. } = self;
        format!(
            "{command} fails on this node, and those behind it wait: {why}; remove the cause, it is tried again every {} seconds; pauses, resumptions and stops act at once",
            RETRY.as_secs()
        )
    }
}

impl JobCommands {
    /// Carries out the commands that were given while no process ran the job here, before anything is fetched. A stop among them
    /// takes effect if the last process of this directory died, because that process would have stopped.
    fn begin(&self, running: &Running) -> Result<(), NotNow> {
        let _lock = self.command_lock();
        let mut state = self.state()?;
        let has_died = std::mem::replace(&mut state.is_running, true);
        let is_stopped = std::mem::take(&mut state.is_stopped);
        // This is set for commands that NATS delivers only later.
        self.has_died.store(has_died, Ordering::Release);
        // This comes before the place is written, which fails if the disk is full.
        if state.is_paused {
            running.live.pause_everywhere(true);
            let words =
                "paused on all nodes; `opilio job resume JOB` on any of them resumes the crawl";
            running.log.crawl("cluster", words);
        }
        if is_stopped {
            running.stop.stop();
            let words =
                "stopping on all nodes: the stop was given after the process before had died";
            running.log.crawl("cluster", words);
        }
        self.write(&state)?;
        if is_stopped {
            return Err(NotNow::Ending);
        }
        running.context.clear(AlertKind::Nats, LOST_COMMANDS);
        let mut state = self.place(Some(running))?;
        let last = self.wait(self.job.last_command())?;
        if state.carried_out >= last {
            return Ok(());
        }
        let mut reader = self.wait(CommandReader::open(&self.job, state.carried_out))?;
        let profile = running.context.current();
        let admin = running.admin(&profile);
        while state.carried_out < last {
            let next = self.wait(reader.next())?;
            match self.carry_out(&admin, &next, &mut state, &mut |_| true) {
                Err(NotNow::Failed(why)) => {
                    self.carry_out_ahead_through(&admin, last, &why, &mut |_| true)?;
                    return Err(NotNow::Failed(why));
                }
                carried_out => carried_out?,
            }
        }
        Ok(self.wait(self.job.note_applied(last))?)
    }

    /// Carries out commands of other nodes as they arrive, until NATS fails.
    async fn follow(
        self: &Arc<Self>,
        running: &Running,
        ended: &mut watch::Receiver<()>,
    ) -> Result<(), NotNow> {
        let connection = self.job.cluster().connection();
        let mut interruptions = connection.interruptions();
        let mut reader = self.read_log(running).await?;
        let mut held_up: Option<HeldUp> = None;
        loop {
            let next = tokio::select! {
                biased;
                // Resolves when the sender is dropped.
                _ = ended.changed() => return Ok(()),
                () = connection.reconnected(interruptions) => {
                    // Commands may have been lost.
                    interruptions = connection.interruptions();
                    reader = self.read_log(running).await?;
                    continue;
                }
                () = until_retry(held_up.as_ref()) => {
                    let state = self.state()?;
                    reader = CommandReader::open(&self.job, state.carried_out).await?;
                    let last = self.job.last_command().await?;
                    let failed = held_up.take();
                    // An operator's later command may have carried it out, or NATS may have lost it.
                    let is_over = |it: HeldUp| state.carried_out >= it.sequence || last < it.sequence;
                    if failed.is_some_and(is_over) {
                        running.context.clear(AlertKind::Commands, "");
                    }
                    continue;
                }
                next = reader.next() => next?,
            };
            let (sequence, command) = (next.sequence, described(&next));
            let why = held_up.as_ref().map(|failed| copy_of(&failed.why));
            let (commands, process) = (self.clone(), running.clone());
            let carried_out = tokio::task::spawn_blocking(move || {
                commands.carry_out_next(&process, &next, why.as_ref())
            });
            let carried_out = carried_out.await.unwrap_or_else(|panic| {
                let why = format!("a command panicked: {panic}");
                Err(ControlError::new(ErrorKind::Failure, why).into())
            });
            match carried_out {
                Ok(()) if held_up.is_none() => {
                    running.context.clear(AlertKind::Commands, "");
                    self.job.note_applied(sequence).await?;
                }
                Ok(()) => {}
                Err(NotNow::Ending) => return Err(NotNow::Ending),
                Err(NotNow::Failed(why)) if held_up.is_none() => {
                    let failed = HeldUp {
                        sequence,
                        command,
                        why,
                        retry: Instant::now() + RETRY,
                    };
                    let words = failed.words();
                    running
                        .context
                        .raise(AlertKind::Commands, "", Severity::Warning, &words);
                    held_up = Some(failed);
                }
                Err(NotNow::Failed(why)) => {
                    tracing::warn!("{command}: {why}");
                }
            }
        }
    }

    /// Opens the log behind the place of this directory. The place is set back first if NATS has lost commands.
    async fn read_log(self: &Arc<Self>, running: &Running) -> Result<CommandReader, NotNow> {
        let (commands, process) = (self.clone(), running.clone());
        let place = tokio::task::spawn_blocking(move || {
            let _lock = commands.command_lock();
            commands.place(Some(&process))
        });
        let state = place
            .await
            .unwrap_or_else(|panic| Err(ControlError::failure(&panic)))?;
        self.note_place(&state).await?;
        Ok(CommandReader::open(&self.job, state.carried_out).await?)
    }

    /// Reports the place in the log to the cluster, for operators who wait for it. The report after the last command may be
    /// missing, because the previous process died or NATS was not available.
    pub(super) async fn note_place(&self, state: &CommandState) -> Result<(), ClusterError> {
        match state.carried_out {
            0 => Ok(()),
            place => self.job.note_applied(place).await,
        }
    }

    /// Carries out the next command of the log, unless another thread has done so. With `why`, a command before it has failed for
    /// this reason.
    fn carry_out_next(
        &self,
        running: &Running,
        next: &JobCommand,
        why: Option<&ControlError>,
    ) -> Result<(), NotNow> {
        let _lock = self.command_lock();
        let mut state = self.state()?;
        if state.carried_out >= next.sequence {
            return Ok(());
        }
        let profile = running.context.current();
        let admin = running.admin(&profile);
        match why {
            None => self.carry_out(&admin, next, &mut state, &mut |_| true),
            Some(why) => self.carry_out_ahead(&admin, next, &mut state, why, &mut |_| true),
        }
    }
}

/// Waits until the next attempt of a failed command; forever if there is none.
async fn until_retry(failed: Option<&HeldUp>) {
    match failed {
        Some(failed) => tokio::time::sleep_until(failed.retry).await,
        None => std::future::pending::<()>().await,
    }
}

fn copy_of(problem: &ControlError) -> ControlError {
    ControlError::new(problem.kind, problem.message.clone())
}

/// Carries out the commands that were given while no process ran the job, before the crawl begins.
pub(crate) async fn begin(running: &Running) {
    let Some(commands) = running.commands.clone() else {
        return;
    };
    let beginning = running.clone();
    let begun = tokio::task::spawn_blocking(move || commands.begin(&beginning)).await;
    match begun {
        Ok(Ok(())) => running.context.clear(AlertKind::Commands, ""),
        // One of the commands has stopped the crawl.
        Ok(Err(NotNow::Ending)) => {}
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

/// Stops the other nodes if the crawl has ended here because of its time limit.
pub(crate) async fn stop_others_at_time_limit(running: &Running, end: &End) {
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
    let written = tokio::task::spawn_blocking(move || {
        // A process that was suspended for long may have lost its part, and reach its time limit before it learns this.
        commands.must_have_part()?;
        commands.log(by, Command::Stop, None)
    });
    if let Ok(Err(problem)) = written.await {
        tracing::warn!("the other nodes do not know that the time of the crawl is over: {problem}");
    }
}

/// Records the orderly end of the process.
pub(crate) fn end(running: &Running) {
    if let Some(commands) = &running.commands {
        let _lock = commands.command_lock();
        let ended = commands.state().and_then(|state| {
            let state = CommandState {
                is_running: false,
                ..state
            };
            commands.write(&state)
        });
        if let Err(problem) = ended {
            tracing::warn!("{problem}");
        }
    }
}
