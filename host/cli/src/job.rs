//! `opilio job`: the state of a job, and its control.

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
use opilio_control::Command;

pub(crate) use self::set::FoundArgs;

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
    /// List the jobs of a folder and their states.
    List(life::ListArgs),
    /// Create a job from a profile. With --start, also start it.
    New(life::NewArgs),
    /// Start or resume a job in the background.
    ///
    /// If a daemon (opilio serve) manages the folder, the daemon starts the job as soon as a place among the concurrent crawls
    /// is free, and restarts it if its process dies.
    Start(life::StartArgs),
    /// Create a job with the profile, seeds and plugins of another job, but without its crawl data.
    Clone(life::CloneArgs),
    /// Delete a job that is not running. Its archive, logs and reports are kept unless --archive is given.
    Delete(life::DeleteArgs),
    /// Show the state, counts, alerts and current fetches of a job.
    Status(JobTarget),
    /// Pause a job: start no new fetches. Current fetches finish.
    Pause(JobTarget),
    /// Resume a paused job.
    Resume(JobTarget),
    /// Stop a job, as the first Ctrl-C does. A job that waits to be started is not started.
    Stop(JobTarget),
    /// Save a copy of the job's state for `opilio job restore`. A running crawl continues.
    Checkpoint(CheckpointArgs),
    /// List the checkpoints of a job, newest first.
    Checkpoints(JobTarget),
    /// Create a new job from a checkpoint, or return the job itself to it; `opilio crawl` then resumes the crawl.
    Restore(checkpoints::RestoreArgs),
    /// Print a report: summary of the crawl, seeds, hosts, media types, statuses, queues …
    Report(report::ReportArgs),
    /// Show counts and bytes by status, media type and host.
    Breakdown(JobTarget),
    /// Show active and past alerts, or acknowledge an alert.
    Alerts(report::AlertsArgs),
    /// Print the metrics of a job in the text format of Prometheus.
    Metrics(JobTarget),
    /// List the logs of a job, or print lines of a log: last lines, lines since a time, matching lines, new lines.
    Logs(logs::LogsArgs),
    /// Show statistics of each plugin: calls, errors, times, answers.
    Plugins(JobTarget),
    /// Print the reports of observers about the crawl so far.
    Observe(ObserveArgs),
    /// Show the look-up tables of plugins: rows, file, time of the last read.
    Tables(TablesArgs),
    /// Show the settings of a job, the line each comes from, and when a change takes effect.
    Settings(set::SettingsArgs),
    /// Change settings of a job, also while it runs.
    #[command(after_help = "\
Without a condition such as --domain, the value replaces the value of the job's profile, except where an override sets it.
With a condition, the command adds an override after the existing ones. If several overrides match, the last one wins,
for each setting separately. The file profile.toml does not change.

Exit codes: 0 done, 2 invalid settings, nothing was changed.")]
    Set(set::SetArgs),
    /// List the changes made to a job since it was created, with user and time.
    History(set::HistoryArgs),
    /// List the seeds with their status, or add seeds, also while the job runs.
    Seeds(set::SeedsArgs),
    /// Explain how a job handles a URI: its settings, the answer of every filter, and the wait after its next visit.
    Explain(set::ExplainArgs),
    /// Compare archive, indexes, log and frontier of a job with one another; with --repair, repair discrepancies.
    Verify(verify::VerifyArgs),
    /// Print the log of a job: commands of operators, and the times at which the crawl started, paused and ended.
    Log(LogArgs),
}

/// A job, and how it answers.
#[derive(Debug, Args)]
pub(crate) struct JobTarget {
    /// Directory of the job.
    #[arg(value_name = "JOB")]
    pub job: PathBuf,
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
struct CheckpointArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Directory of the checkpoint [default: checkpoints/TIME in the job].
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ObserveArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Name of an observer in the profile [default: all observers].
    #[arg(value_name = "NAME")]
    observer: Option<String>,
}

#[derive(Debug, Args)]
struct TablesArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Read the files of all tables again first, even if they have not changed.
    #[arg(long)]
    reload: bool,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// Directory of the job.
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
        JobCommand::Status(target) => life::status(&target).await,
        JobCommand::Pause(target) => life::pause(&target),
        JobCommand::Resume(target) => life::resume(&target),
        JobCommand::Stop(target) => life::stop(&target),
        JobCommand::Checkpoint(args) => {
            let to = args.to.as_deref().map(std::path::absolute).transpose()?;
            ask(&args.target, Command::Checkpoint { to })
        }
        JobCommand::Report(args) => report::report(&args),
        JobCommand::Breakdown(target) => ask(&target, Command::Breakdown),
        JobCommand::Alerts(args) => ask(&args.target, args.command()),
        JobCommand::Metrics(target) => report::figures(&target),
        JobCommand::Logs(args) => logs::run(args),
        JobCommand::Plugins(target) => ask(&target, Command::Plugins),
        JobCommand::Observe(args) => {
            let observer = args.observer;
            ask(&args.target, Command::Observe { observer })
        }
        JobCommand::Tables(args) => {
            let reload = args.reload;
            ask(&args.target, Command::Tables { reload })
        }
        JobCommand::Settings(args) => set::settings(args),
        JobCommand::Set(args) => set::set(args),
        JobCommand::History(args) => set::history(args),
        JobCommand::Seeds(args) => set::seeds(args),
        JobCommand::Explain(args) => set::explain(args),
        JobCommand::Checkpoints(target) => checkpoints::list(&target),
        JobCommand::Restore(args) => checkpoints::restore(&args),
        JobCommand::Verify(args) => verify::run(&args),
        JobCommand::Log(args) => log(&args),
    }
}

fn log(args: &LogArgs) -> Result<u8> {
    let file = match opilio_control::log_file(&args.job) {
        Ok(file) => file,
        Err(problem) => return Ok(ask::refused(&problem)),
    };
    let read = std::fs::File::open(&file);
    let mut log = match read {
        Ok(log) => log,
        // No operator command has been logged yet.
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(exit::OK),
        Err(problem) => {
            return Err(problem).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    let mut out = std::io::stdout().lock();
    match std::io::copy(&mut log, &mut out).and_then(|_| out.flush()) {
        // The reader of the output has closed it.
        Err(problem) if problem.kind() == std::io::ErrorKind::BrokenPipe => Ok(exit::OK),
        other => other
            .map(|()| exit::OK)
            .context("cannot write standard output"),
    }
}
