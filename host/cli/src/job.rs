//! `opilio job`: the state of a job, and its control.

mod answers;
mod checkpoints;
mod compare;
mod handover;
mod hosts;
mod lifecycle;
mod log_table;
mod logs;
mod replay;
mod report;
pub(crate) mod send;
mod set;
pub(crate) mod show;
mod show_results;
pub(crate) mod target;
pub(crate) mod verify;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use opilio_control::Command;

pub(crate) use self::set::FoundArgs;

use self::send::send;
use self::target::JobTarget;
use crate::exit;
use crate::job_directory::existing_job;

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    /// List the jobs of a folder and their states.
    List(lifecycle::ListArgs),
    /// Create a job from a profile. With --start, also start it.
    New(lifecycle::NewArgs),
    /// Start or resume a job in the background.
    ///
    /// If a daemon (opilio serve) manages the folder, the daemon starts the job as soon as a place among the concurrent crawls
    /// is free, and restarts it if its process dies.
    Start(lifecycle::StartArgs),
    /// Create a job with the profile, seeds and plugins of another job, but without its crawl data.
    Clone(lifecycle::CloneArgs),
    /// Delete a job that is not running. Its archive, logs and reports are kept unless --archive is given.
    Delete(lifecycle::DeleteArgs),
    /// Show the state, counts, alerts and current fetches of a job.
    Status(JobTarget),
    /// Pause a job: start no new fetches. Current fetches finish.
    Pause(JobTarget),
    /// Resume a paused job.
    Resume(JobTarget),
    /// Stop a job, as the first Ctrl-C does. A job that waits to be started is not started.
    Stop(lifecycle::StopArgs),
    /// Save a copy of the job's state for `opilio job restore`. A running crawl continues.
    Checkpoint(CheckpointArgs),
    /// List the checkpoints of a job, newest first.
    Checkpoints(JobTarget),
    /// Compare the visits of two jobs, or of a job and a checkpoint: counts, URIs of one only, changed content.
    #[command(after_help = "\
A and B are jobs or directories of checkpoints; opilio job checkpoints lists the latter. The last visits of each URI are
compared. Running jobs can be compared, too.

Examples:
  opilio job compare jobs/2025 jobs/2026
  opilio job compare jobs/news/checkpoints/20261120123456 jobs/news --list changed")]
    Compare(compare::CompareArgs),
    /// Create a new job from a checkpoint, or return the job itself to it; `opilio crawl` then resumes the crawl.
    Restore(checkpoints::RestoreArgs),
    /// Print a report: summary of the crawl, seeds, hosts, media types, statuses, queues …
    Report(report::ReportArgs),
    /// Show counts and bytes by status, media type and host.
    Breakdown(JobTarget),
    /// List hosts with documents, bytes, errors and freshness, in any order.
    Hosts(hosts::HostsArgs),
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

Examples:
  opilio job set JOB politeness.min-delay=4s
  opilio job set JOB --host www.example.org politeness.min-delay=10s --reason \"asked by mail\" --dry-run
  opilio job set JOB --override 3 politeness.min-delay=20s

Exit codes: 0 done, 2 invalid settings, nothing was changed.")]
    Set(set::SetArgs),
    /// Remove a live override, or settings from it.
    #[command(after_help = "\
opilio job overrides lists the live overrides with their numbers.

Examples:
  opilio job unset JOB --override 3 --reason \"the site is fast again\"
  opilio job unset JOB --override 3 politeness.min-delay

Exit codes: 0 done, 1 override not found, 2 nothing was changed.")]
    Unset(set::UnsetArgs),
    /// List the overrides of a job in the order in which they apply, or move one.
    #[command(after_help = "\
Overrides of the profile come first. They cannot change. Live overrides have a number; opilio job set with a condition adds them.
If several overrides match, the last one wins, for each setting separately.

Examples:
  opilio job overrides JOB
  opilio job overrides JOB --move 5 --before 3

Exit codes: 0 done, 1 override not found, 2 nothing was changed.")]
    Overrides(set::OverridesArgs),
    /// List the changes made to a job since it was created, with user and time.
    History(set::HistoryArgs),
    /// List the seeds with their status, or add seeds, also while the job runs.
    Seeds(set::SeedsArgs),
    /// Explain how a job handles a URI: its settings, the answer of every filter, and the wait after its next visit.
    Explain(set::ExplainArgs),
    /// Replay the captures of a job in a browser, with pywb.
    Replay(replay::ReplayArgs),
    /// Compare archive, indexes, log and frontier of a job with one another; with --repair, repair discrepancies.
    Verify(verify::VerifyArgs),
    /// Hand over closed files that are not in the job's store yet, or list the files with their state.
    Handover(handover::HandoverArgs),
    /// Print the log of a job: commands of operators, and the times at which the crawl started, paused and ended.
    Log(LogArgs),
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
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
}

/// Runs the command.
pub(crate) async fn run(args: JobArgs) -> Result<u8> {
    match args.command {
        JobCommand::List(args) => lifecycle::list(&args).await,
        JobCommand::New(args) => lifecycle::new(args),
        JobCommand::Start(args) => lifecycle::start(&args),
        JobCommand::Clone(args) => lifecycle::copy(&args),
        JobCommand::Delete(args) => lifecycle::delete(&args),
        JobCommand::Status(target) => lifecycle::status(&target).await,
        JobCommand::Pause(target) => lifecycle::pause(&target),
        JobCommand::Resume(target) => lifecycle::resume(&target),
        JobCommand::Stop(args) => lifecycle::stop(&args),
        JobCommand::Checkpoint(args) => {
            let to = args.to.as_deref().map(std::path::absolute).transpose()?;
            send(&args.target, Command::Checkpoint { to })
        }
        JobCommand::Report(args) => report::report(&args),
        JobCommand::Breakdown(target) => send(&target, Command::Breakdown),
        JobCommand::Hosts(args) => hosts::run(args),
        JobCommand::Alerts(args) => send(&args.target, args.command()),
        JobCommand::Metrics(target) => report::figures(&target),
        JobCommand::Logs(args) => logs::run(args),
        JobCommand::Plugins(target) => send(&target, Command::Plugins),
        JobCommand::Observe(args) => {
            let observer = args.observer;
            send(&args.target, Command::Observe { observer })
        }
        JobCommand::Tables(args) => {
            let reload = args.reload;
            send(&args.target, Command::Tables { reload })
        }
        JobCommand::Settings(args) => set::settings(args),
        JobCommand::Set(args) => set::set(args),
        JobCommand::Unset(args) => set::unset(args),
        JobCommand::Overrides(args) => set::overrides(args),
        JobCommand::History(args) => set::history(args),
        JobCommand::Seeds(args) => set::seeds(args),
        JobCommand::Explain(args) => set::explain(args),
        JobCommand::Checkpoints(target) => checkpoints::list(&target),
        JobCommand::Compare(args) => compare::run(&args),
        JobCommand::Restore(args) => checkpoints::restore(&args),
        JobCommand::Replay(args) => replay::run(&args),
        JobCommand::Verify(args) => verify::run(&args),
        JobCommand::Handover(args) => handover::run(&args).await,
        JobCommand::Log(args) => log(&args),
    }
}

fn log(args: &LogArgs) -> Result<u8> {
    let file = match opilio_control::log_file(&args.job) {
        Ok(file) => file,
        Err(problem) => return Ok(send::refused(&problem)),
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
        // The reader has closed the output.
        Err(problem) if problem.kind() == std::io::ErrorKind::BrokenPipe => Ok(exit::OK),
        other => other
            .map(|()| exit::OK)
            .context("cannot write standard output"),
    }
}
