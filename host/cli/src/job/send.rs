//! Sending of a command to a job, and output of its answers.

use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use indicatif::{HumanCount, ProgressBar};
use opilio_control::{
    Author, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, carry_out,
};

use super::answers::Show;
use super::target::JobTarget;
use crate::{exit, terminal};

/// Sends a command to a job, and prints its answers on standard output.
pub(crate) fn send(target: &JobTarget, command: Command) -> Result<u8> {
    let mut out = io::stdout().lock();
    send_to(target, command, &mut out)
}

/// Sends a command to a job, and prints its answers. If several nodes share the job, the command acts on this one alone.
pub(crate) fn send_only_here(target: &JobTarget, command: Command) -> Result<u8> {
    let show = Show::new(&command, target.json);
    let mut sent = SentCommand::new(target, command);
    sent.request.only_here = true;
    write_answers(sent, show, Ok, &mut io::stdout().lock())
}

/// Sends a command to a job, and prints the answers that `choose` leaves. If `choose` refuses, its sentence is a usage error.
pub(crate) fn send_choosing(
    target: &JobTarget,
    command: Command,
    choose: impl FnMut(CommandResponse) -> std::result::Result<CommandResponse, String>,
) -> Result<u8> {
    let mut out = io::stdout().lock();
    send_and_write(target, command, choose, &mut out)
}

/// Sends a command to a job, and writes its answers. Returns the exit code.
pub(crate) fn send_to(target: &JobTarget, command: Command, out: &mut dyn Write) -> Result<u8> {
    send_and_write(target, command, Ok, out)
}

fn send_and_write(
    target: &JobTarget,
    command: Command,
    choose: impl FnMut(CommandResponse) -> std::result::Result<CommandResponse, String>,
    out: &mut dyn Write,
) -> Result<u8> {
    let show = Show::new(&command, target.json);
    write_answers(SentCommand::new(target, command), show, choose, out)
}

fn write_answers(
    mut sent: SentCommand<'_>,
    mut show: Show,
    mut choose: impl FnMut(CommandResponse) -> std::result::Result<CommandResponse, String>,
    out: &mut dyn Write,
) -> Result<u8> {
    let mut not_chosen = None;
    sent.each(|answer| match choose(answer) {
        Ok(answer) => show.answer(answer, out),
        Err(problem) => {
            not_chosen = Some(problem);
            Ok(())
        }
    })?;
    if let Some(message) = not_chosen {
        let kind = ErrorKind::Request;
        return Ok(refused(&ControlError { kind, message }));
    }
    let is_whole = sent.code == exit::OK;
    let written = show.finish(is_whole, out).and_then(|()| out.flush());
    match written {
        Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
            Err(problem).context("cannot write the answer")
        }
        _ => Ok(sent.code),
    }
}

/// Returns the number of URIs that a sweep matches, and how many of these are in process. If they cannot be counted, returns the
/// exit code.
pub(crate) fn count(
    target: &JobTarget,
    command: Command,
) -> Result<std::result::Result<(u64, u64), u8>> {
    let mut counts = (0, 0);
    let mut sent = SentCommand::new(target, command);
    sent.each(|answer| {
        if let CommandResponse::Swept(swept) = answer {
            counts = (swept.meant, swept.in_process);
        }
        Ok(())
    })?;
    Ok(match sent.code {
        exit::OK => Ok(counts),
        code => Err(code),
    })
}

/// A command and its result so far.
struct SentCommand<'a> {
    target: &'a JobTarget,
    request: CommandRequest,
    progress: Option<ProgressBar>,
    code: u8,
}

impl<'a> SentCommand<'a> {
    fn new(target: &'a JobTarget, command: Command) -> SentCommand<'a> {
        let by = Author {
            user: user(),
            pid: std::process::id(),
        };
        SentCommand {
            target,
            request: CommandRequest {
                by,
                command,
                only_here: false,
            },
            progress: None,
            code: exit::OK,
        }
    }

    /// Passes each answer to `receive`, except those that report progress or completion.
    fn each(&mut self, mut receive: impl FnMut(CommandResponse) -> io::Result<()>) -> Result<()> {
        let mut failed = None;
        let work = work_without_progress(&self.request.command);
        self.progress = work.map(terminal::spinner);
        let (progress, code) = (&mut self.progress, &mut self.code);
        let mut say = |answer: CommandResponse| match answer {
            CommandResponse::Progress { examined, meant } => {
                show_progress(progress, examined, meant);
                true
            }
            CommandResponse::End => true,
            // The output has failed, so later refusals are not shown.
            CommandResponse::Refused { .. } if failed.is_some() => true,
            CommandResponse::Refused { kind, message } => {
                if let Some(progress) = progress.take() {
                    progress.finish_and_clear();
                }
                *code = refused(&ControlError { kind, message });
                true
            }
            other => {
                if let CommandResponse::Checked(found) = &other
                    && found.problems > found.repaired
                {
                    *code = exit::FAILED;
                }
                let result = match progress.take() {
                    // The check of a store continues after a problem.
                    Some(spinner) if work.is_some() => {
                        let result = spinner.suspend(|| receive(other));
                        *progress = Some(spinner);
                        result
                    }
                    Some(bar) => {
                        bar.finish_and_clear();
                        receive(other)
                    }
                    None => receive(other),
                };
                let is_ok = result.is_ok();
                failed = result.err();
                is_ok
            }
        };
        let reached = carry_out(&self.target.job, &self.request, &mut say);
        if let Some(progress) = self.progress.take() {
            progress.finish_and_clear();
        }
        if let Err(problem) = reached
            && failed.is_none()
        {
            self.code = refused(&problem);
        }
        match failed {
            // The reader of the answers has closed the output.
            Some(problem) if problem.kind() == io::ErrorKind::BrokenPipe => {
                self.code = exit::OK;
                Ok(())
            }
            Some(problem) => Err(problem).context("cannot write the answer"),
            None => Ok(()),
        }
    }
}

/// Returns the user of this process; empty if unknown.
pub(crate) fn user() -> String {
    ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()))
        .or_else(by_number)
        .unwrap_or_default()
}

/// Returns the user of this process by its number, as a running crawl does for clients without a name.
fn by_number() -> Option<String> {
    let process = std::fs::metadata("/proc/self").ok()?;
    Some(opilio_control::user_name(process.uid()))
}

/// Describes a command that takes long and does not report its progress.
fn work_without_progress(command: &Command) -> Option<&'static str> {
    match command {
        Command::Check { repair: false } => Some("checking the store"),
        Command::Check { repair: true } => Some("checking and repairing the store"),
        Command::Checkpoint { .. } => Some("copying the state of the job"),
        _ => None,
    }
}

fn show_progress(progress: &mut Option<ProgressBar>, examined: u64, meant: u64) {
    if !io::stderr().is_terminal() {
        return;
    }
    let bar = progress.get_or_insert_with(|| {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    });
    bar.set_message(format!(
        "{} examined, {} matched",
        HumanCount(examined),
        HumanCount(meant)
    ));
}

/// Prints the reason that a command was not carried out. Returns the exit code.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
pub(crate) fn refused(problem: &ControlError) -> u8 {
    eprintln!("opilio: {problem}");
    match problem.kind {
        ErrorKind::Request => exit::USAGE,
        ErrorKind::Unknown | ErrorKind::State | ErrorKind::Failure => exit::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_on_the_whole_store_show_that_they_work() {
        for command in [
            Command::Check { repair: false },
            Command::Check { repair: true },
            Command::Checkpoint { to: None },
        ] {
            assert!(work_without_progress(&command).is_some(), "{command:?}");
        }
        // Such answers come at once, and a spinner would only flicker.
        assert_eq!(work_without_progress(&Command::Status), None);
    }
}
