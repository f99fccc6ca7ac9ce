//! `opilio job`: what a job is doing, and the course of it.

pub(crate) mod ask;
mod checkpoints;
mod life;
mod logs;
pub(crate) mod report;
mod set;
pub(crate) mod show;
pub(crate) mod verify;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use opilio_crawl::control::{self, Command};

use self::ask::ask;
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    /// List the jobs of a folder, and what each is doing.
    List(life::ListArgs),
    /// Make a job of a profile. It begins when it is started.
    New(life::NewArgs),
    /// Begin a job, or go on with it, in the background.
    ///
    /// Where a daemon (opilio serve) sees to the folder, it begins the job as soon as there is a place, and again when it dies.
    Start(life::StartArgs),
    /// Make a job with the profile, seeds and plugins of another one, and nothing of what that found.
    Clone(life::CloneArgs),
    /// Delete a job that is not running. Its archive, logs and reports stay, unless they are to go, too.
    Delete(life::DeleteArgs),
    /// Show what the job is doing.
    Status(Asked),
    /// Begin nothing new; what is in flight finishes.
    Pause(Asked),
    /// Go on after a pause.
    Resume(Asked),
    /// End politely, as the first Ctrl-C does; what waits to begin does not begin.
    Stop(Asked),
    /// Keep a copy of the job's state, to which `opilio job restore` goes back. The crawl goes on meanwhile.
    Checkpoint(CheckpointArgs),
    /// List the checkpoints that a job keeps, the last first.
    Checkpoints(Asked),
    /// Make a new job of a checkpoint, or take the job itself back to it; `opilio crawl` goes on with it.
    Restore(checkpoints::RestoreArgs),
    /// Print a report: the crawl in a few lines, seeds, hosts, media types, statuses, queues …
    Report(report::ReportArgs),
    /// Show what the job has brought in, by status, media type and host.
    Breakdown(Asked),
    /// Show alerts: those that hold, and those that held before; or say that you know of one.
    Alerts(report::AlertsArgs),
    /// Print the job's figures as Prometheus reads them.
    Metrics(Asked),
    /// Show logs: their last lines, those of a time, those that match, those that come.
    Logs(logs::LogsArgs),
    /// Show what each plugin has done: calls, faults, times, answers.
    Plugins(Asked),
    /// Print what observers report on what has been crawled so far.
    Observe(ObserveArgs),
    /// Show the lists that plugins look things up in: rows, file, when it was read.
    Tables(TablesArgs),
    /// Show the settings of the job, with the line each comes from, and when a change of it takes effect.
    Settings(set::SettingsArgs),
    /// Change settings of the job, at once where that can be; while it runs, too.
    #[command(after_help = "\
What is set holds over the job's profile, which stays as it was, and where no override says otherwise; with --domain
and the like it is an override itself, behind those there are. Of several that match the last holds, key by key.

Exit codes: 0 done, 2 it has faults, and nothing was changed.")]
    Set(set::SetArgs),
    /// Show what was changed since the job was made, by whom and when.
    History(set::HistoryArgs),
    /// List the seeds with what became of each, or add some; while it runs, too.
    Seeds(set::SeedsArgs),
    /// Show what the job makes of a URI: its settings, what every filter answers, and what wait follows its next visit.
    Explain(set::ExplainArgs),
    /// Compare the job's archive, indexes, log and frontier with one another, and repair what can be.
    Verify(verify::VerifyArgs),
    /// Print the job's log: what operators did, and when the crawl began, paused and ended.
    Log(LogArgs),
}

/// A job, and how it answers.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// The job's directory.
    #[arg(value_name = "JOB")]
    pub job: PathBuf,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
struct CheckpointArgs {
    #[command(flatten)]
    asked: Asked,
    /// Where [default: checkpoints/TIME in the job].
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ObserveArgs {
    #[command(flatten)]
    asked: Asked,
    /// One observer, as the profile calls it [default: all].
    #[arg(value_name = "NAME")]
    observer: Option<String>,
}

#[derive(Debug, Args)]
struct TablesArgs {
    #[command(flatten)]
    asked: Asked,
    /// Read their files again first, changed or not.
    #[arg(long)]
    reload: bool,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// The job's directory.
    #[arg(value_name = "JOB")]
    job: PathBuf,
}

/// Runs the command.
pub(crate) async fn run(args: JobArgs) -> Result<u8> {
    match args.command {
        JobCommand::List(args) => life::list(&args).await,
        JobCommand::New(args) => life::new(args),
        JobCommand::Start(args) => life::start(&args),
        JobCommand::Clone(args) => life::copy(&args),
        JobCommand::Delete(args) => life::delete(&args),
        JobCommand::Status(asked) => life::status(&asked).await,
        JobCommand::Pause(asked) => life::pause(&asked),
        JobCommand::Resume(asked) => life::resume(&asked),
        JobCommand::Stop(asked) => life::stop(&asked),
        JobCommand::Checkpoint(args) => {
            let to = args.to.as_deref().map(std::path::absolute).transpose()?;
            ask(&args.asked, Command::Checkpoint { to })
        }
        JobCommand::Report(args) => report::report(&args),
        JobCommand::Breakdown(asked) => ask(&asked, Command::Breakdown),
        JobCommand::Alerts(args) => ask(&args.asked, args.command()),
        JobCommand::Metrics(asked) => report::figures(&asked),
        JobCommand::Logs(args) => logs::run(args),
        JobCommand::Plugins(asked) => ask(&asked, Command::Plugins),
        JobCommand::Observe(args) => {
            let observer = args.observer;
            ask(&args.asked, Command::Observe { observer })
        }
        JobCommand::Tables(args) => {
            let reload = args.reload;
            ask(&args.asked, Command::Tables { reload })
        }
        JobCommand::Settings(args) => set::settings(args),
        JobCommand::Set(args) => set::set(args),
        JobCommand::History(args) => set::history(args),
        JobCommand::Seeds(args) => set::seeds(args),
        JobCommand::Explain(args) => set::explain(args),
        JobCommand::Checkpoints(asked) => checkpoints::list(&asked),
        JobCommand::Restore(args) => checkpoints::restore(&args),
        JobCommand::Verify(args) => verify::run(&args),
        JobCommand::Log(args) => log(&args),
    }
}

fn log(args: &LogArgs) -> Result<u8> {
    let file = match control::log_file(&args.job) {
        Ok(file) => file,
        Err(problem) => return Ok(ask::refused(&problem)),
    };
    let read = std::fs::File::open(&file);
    let mut log = match read {
        Ok(log) => log,
        // Nothing has been done to it.
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(exit::OK),
        Err(problem) => {
            return Err(problem).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    let mut out = std::io::stdout().lock();
    match std::io::copy(&mut log, &mut out).and_then(|_| out.flush()) {
        // Whoever read it has seen enough.
        Err(problem) if problem.kind() == std::io::ErrorKind::BrokenPipe => Ok(exit::OK),
        other => other
            .map(|()| exit::OK)
            .context("cannot write standard output"),
    }
}
