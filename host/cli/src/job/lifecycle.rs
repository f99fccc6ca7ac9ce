//! `opilio job list|new|start|status|pause|resume|stop|clone|delete`: the jobs of a folder. The commands work with or without a
//! daemon for the folder. If there is a daemon, it starts the jobs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::Timestamp;
use opilio_console::{
    Folder, JobOverview, JobsFolderError, NewJob, Orders, PROCESS_LOG, begin, is_awaited,
    is_starting, is_supervised, job_overviews, last_output,
};
use opilio_control::{Command, CommandResponse};
use opilio_crawl::{CrawlError, JobPart, JobState, ProcessEndKind, ProcessRecord};
use serde_json::json;

use super::send::{send, send_choosing, send_only_here, user};
use super::target::JobTarget;
use crate::crawl::{component_cache, profile_source_of, refused};
use crate::job_directory::{JOBS, existing_job, known_job, new_job};
use crate::usage_error::UsageError;
use crate::{exit, figures, terminal};

/// Interval between checks of a started process until it has its job.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Longest wait for a started process to lock its job. A job with many plugins loads them first.
const START_WAIT_MAX: Duration = Duration::from_secs(60);

/// The command line of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Folder of jobs; or a job, to list only that one.
    #[arg(value_name = "DIR", default_value = JOBS)]
    jobs: PathBuf,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Directory of the new job, whose name is the name of the job; or only the name, for a job in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = new_job())]
    job: PathBuf,
    /// Profile: TOML file, or name of a saved or shipped profile.
    #[arg(long, value_name = "PROFILE")]
    profile: String,
    /// Additional seed; may be repeated.
    #[arg(long, value_name = "URL")]
    seed: Vec<String>,
    /// Page that says who crawls and why; replaces operator.contact-url of the profile.
    #[arg(long, value_name = "URL")]
    contact_url: Option<String>,
    /// Start the job at once.
    #[arg(long)]
    start: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    target: JobTarget,
    /// If several nodes share the job, stop it on this node only.
    #[arg(long)]
    this_node: bool,
}

/// The command line of `clone`.
#[derive(Debug, Args)]
pub(crate) struct CloneArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Name of the new job, which is created in the same folder.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// The command line of `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Delete archive, logs and reports, too.
    #[arg(long)]
    archive: bool,
    /// Delete without confirmation.
    #[arg(long)]
    yes: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Lists the jobs of a folder.
pub(crate) async fn list(args: &ListArgs) -> Result<u8> {
    let (folder, only) = match known_job(&args.jobs) {
        Some(job) => existing(&job).map(|(folder, name)| (folder, Some(name)))?,
        None if args.jobs.is_dir() => (Folder::open(&args.jobs, None)?, None),
        None => {
            let problem = format!(
                "folder {} not found; pass the folder that contains the jobs",
                args.jobs.display()
            );
            return Err(UsageError::new(problem).into());
        }
    };
    let mut jobs = job_overviews(&folder).await;
    jobs.retain(|job| only.as_ref().is_none_or(|only| *only == job.name));
    let width = jobs.iter().map(|job| job.name.len()).max().unwrap_or(0);
    for job in &jobs {
        match args.json {
            true => terminal::outln!("{}", serde_json::to_string(job)?),
            false => terminal::outln!("{}", line(job, width)),
        }
    }
    Ok(exit::OK)
}

fn line(job: &JobOverview, width: usize) -> String {
    let state = job.state.name();
    let why = terminal::line(job.ended_why.as_deref().unwrap_or_default());
    let alerts = match job.alerts {
        0 => String::new(),
        count => figures::numbered(count, "alert"),
    };
    let line = format!(
        "{:width$}  {state:<8}  {:>10} URIs  {:>10} queued  {alerts:<9}  {why}",
        job.name, job.uris, job.queued
    );
    line.trim_end().to_owned()
}

/// Shows the state of a job. For a job without a process it shows what the job waits for, or how it ended.
pub(crate) async fn status(target: &JobTarget) -> Result<u8> {
    if opilio_control::is_reachable(&target.job) {
        return send(target, Command::Status);
    }
    // Also for a job that cannot be opened because its profile now has an error.
    let found = match existing(&target.job) {
        Ok((folder, name)) => {
            let mut jobs = job_overviews(&folder).await.into_iter();
            jobs.find(|job| job.name == name)
        }
        Err(_) => None,
    };
    // A process that was refused has written the reason only to its log.
    let known = found.as_ref().map(|job| job.ended.or(job.started));
    let state = found.as_ref().map(|job| job.state);
    if let Some(job) = found.filter(|_| !target.json) {
        let words = job.state.with_reason(job.ended_why.as_deref());
        terminal::outln!("{:>14}  {}", "state", terminal::line(&words));
    }
    // The folder of jobs knows whether the job waits for its start. The job alone knows only how its last process ended.
    let code = send_choosing(target, Command::Status, |mut answer| {
        if let (CommandResponse::Status(status), Some(state)) = (&mut answer, state)
            && status.pid.is_none()
        {
            status.state = state;
        }
        Ok(answer)
    })?;
    if target.json {
        return Ok(code);
    }
    if let Some(output) = known.and_then(|known| output_since(&target.job, known)) {
        let output = terminal::lines(&output).replace('\n', "\n                ");
        terminal::outln!("{:>14}  {output}", "process log");
    }
    Ok(code)
}

/// Returns the end of the last process's log since this time; none if it logged nothing since then.
fn output_since(job: &Path, known: Option<Timestamp>) -> Option<String> {
    let log = fs::metadata(job.join(PROCESS_LOG)).ok()?;
    let written = Timestamp::try_from(log.modified().ok()?).ok()?;
    let is_new = known.is_none_or(|known| written > known);
    is_new
        .then(|| last_output(job))
        .filter(|output| !output.is_empty())
}

/// Pauses a job until an operator resumes it, even in another process of the job. If a crawl window had already paused the job,
/// the pause is now the operator's, and the window no longer resumes it.
pub(crate) fn pause(target: &JobTarget) -> Result<u8> {
    if is_shared(target) {
        // The directories of all nodes keep the pause.
        return send(target, Command::Pause);
    }
    if change_pending_orders(&target.job, |orders| orders.paused = true)? {
        return print_done(target, "pause", "the job will start paused");
    }
    let code = send(target, Command::Pause)?;
    let _held = Orders::lock(&target.job);
    if let Some(mut orders) = wanted(&target.job).filter(|_| code == exit::OK) {
        (orders.paused, orders.window_closed) = (true, false);
        order(&orders, &target.job)?;
    }
    Ok(code)
}

/// Resumes a job after a pause, but not after the pause of a crawl window.
pub(crate) fn resume(target: &JobTarget) -> Result<u8> {
    if change_pending_orders(&target.job, |orders| orders.paused = false)? && !is_shared(target) {
        return print_done(
            target,
            "resume",
            "the job will start as soon as a place among the concurrent crawls is free",
        );
    }
    let job = std::path::absolute(&target.job)?;
    let is_closed = wanted(&job).is_some_and(|orders| orders.window_closed);
    if is_closed && job.parent().is_some_and(is_supervised) {
        bail!("the crawl window of the job is closed; the job resumes when the window opens");
    }
    let code = send(target, Command::Resume)?;
    let _held = Orders::lock(&job);
    if let Some(mut orders) = wanted(&job).filter(|it| it.paused && code == exit::OK) {
        orders.paused = false;
        order(&orders, &job)?;
    }
    Ok(code)
}

/// Returns the orders for a job; `None` if it never had any.
fn wanted(job: &Path) -> Option<Orders> {
    Orders::read(job).ok().flatten()
}

/// Changes the orders of a job that waits for a process. Returns `false` if the job does not wait for one. Waits for a process
/// that is starting, since the orders that it was started with would apply before these.
fn change_pending_orders(job: &Path, change: impl FnOnce(&mut Orders)) -> Result<bool> {
    let until = Instant::now() + START_WAIT_MAX;
    loop {
        let held = Orders::lock(job);
        let Some(mut orders) = wanted(job).filter(|orders| orders.crawl) else {
            return Ok(false);
        };
        if is_awaited(job, &orders) {
            change(&mut orders);
            order(&orders, job)?;
            return Ok(true);
        }
        let is_coming = is_starting(job, &orders) || opilio_crawl::is_held(job)?;
        if opilio_control::is_reachable(job) || !is_coming || Instant::now() > until {
            return Ok(false);
        }
        drop(held);
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Ends a job politely. A job that is waiting to start does not start. A stop that the daemon has not carried out yet is not
/// repeated.
pub(crate) fn stop(args: &StopArgs) -> Result<u8> {
    let target = &args.target;
    let job = std::path::absolute(&target.job)?;
    let is_pending = wanted(&job).is_some_and(|orders| orders.stop_pending);
    let has_daemon = job.parent().is_some_and(is_supervised);
    if is_pending && has_daemon && !opilio_control::is_reachable(&job) {
        let result = "the job stops as soon as its process accepts commands";
        return print_done(target, "stop", result);
    }
    let is_awaited =
        change_pending_orders(&target.job, |orders| *orders = Orders::new(false, &user()))?;
    match is_awaited {
        true if args.this_node || !is_shared(target) => {
            print_done(target, "stop", "the job will not start")
        }
        _ if args.this_node => send_only_here(target, Command::Stop),
        _ => send(target, Command::Stop),
    }
}

/// Returns `true` if several nodes share a job.
fn is_shared(target: &JobTarget) -> bool {
    matches!(JobPart::read(&target.job), Ok(Some(_)))
}

/// Reports the result of a command that did not need a process of the job.
#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn print_done(target: &JobTarget, command: &str, result: &str) -> Result<u8> {
    let done = CommandResponse::Done {
        result: result.to_owned(),
    };
    match target.json {
        true => terminal::outln!("{}", serde_json::to_string(&done)?),
        false => terminal::outln!("{result}"),
    }
    // The command is done, even if the profile no longer shows where the log is.
    if let Err(problem) = opilio_control::note(&target.job, &user(), command, result) {
        eprintln!("opilio: {problem}");
    }
    Ok(exit::OK)
}

/// Makes a job.
#[expect(
    clippy::print_stderr,
    reason = "notes are for the person at the terminal"
)]
pub(crate) fn new(args: NewArgs) -> Result<u8> {
    let (folder, name) = split(&args.job)?;
    let made = folder.make(NewJob {
        name: name.clone(),
        profile: profile_source_of(&args.profile, folder.path()),
        seeds: args.seed,
        contact_url: args.contact_url,
    });
    match made {
        Ok(notes) => {
            if !notes.is_empty() {
                eprintln!("{notes}");
            }
            print_created(&folder.path().join(&name), args.json);
        }
        Err(JobsFolderError::Crawl(CrawlError::Profile(faults))) => return Ok(refused(&faults)),
        Err(other) => return Err(other.into()),
    }
    match args.start {
        true => start_named(&folder, &name, args.json),
        false => Ok(exit::OK),
    }
}

fn print_created(job: &Path, as_json: bool) {
    let place = job.display();
    let words = format!("created job {place}; opilio job start {place} starts it");
    let object = json!({ "answer": "created", "job": place.to_string() });
    terminal::print_result(as_json, &object, &words);
}

/// Starts a job.
pub(crate) fn start(args: &StartArgs) -> Result<u8> {
    let (folder, name) = existing(&args.job)?;
    start_named(&folder, &name, args.json)
}

/// Starts a job, and waits until its process has the job or has ended.
#[expect(
    clippy::print_stderr,
    reason = "the output of the process is for the person at the terminal"
)]
fn start_named(folder: &Folder, name: &str, as_json: bool) -> Result<u8> {
    let job = folder.job(name)?;
    if opilio_crawl::is_held(&job)? {
        bail!("job {} is already running", job.display());
    }
    let print = |state: JobState, pid: Option<u32>, words: &str| {
        let job = job.display().to_string();
        let object = json!({ "answer": "started", "job": job, "state": state, "pid": pid });
        terminal::print_result(as_json, &object, words);
    };
    if is_finished(&job) {
        eprintln!(
            "the job is finished: nothing is left to fetch; opilio job clone {} NAME makes a new job with its profile and seeds",
            job.display()
        );
    }
    if is_supervised(folder.path()) {
        let _held = Orders::lock(&job);
        order(&Orders::new(true, &user()), &job)?;
        let words = "the daemon starts the job as soon as a place among the concurrent crawls is free and its crawl window, if any, is open";
        print(JobState::Waiting, None, words);
        return Ok(exit::OK);
    }
    withdraw_pending_stop(&job)?;
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let mut process = begin(&program, &job).context("cannot start a process for the job")?;
    // The process may have to compile its plugins first.
    let spinner = terminal::spinner("the process of the job loads its plugins");
    let ended = loop {
        if let Some(ended) = process
            .try_wait()
            .context("cannot check the process of the job")?
        {
            spinner.finish_and_clear();
            break ended;
        }
        // From here on the process has the job and reports its own state.
        if opilio_control::is_reachable(&job) {
            spinner.finish_and_clear();
            let (pid, place) = (process.id(), job.display());
            let words =
                format!("started as process {pid}; opilio job status {place} shows its progress");
            print(JobState::Running, Some(pid), &words);
            return Ok(exit::OK);
        }
        std::thread::sleep(CHECK_INTERVAL);
    };
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    match code {
        Some(code @ (exit::OK | exit::LIMIT | exit::NO_SEED | exit::NOT_HANDED_OVER)) => {
            let record = ProcessRecord::read(&job).ok().flatten();
            let state = JobState::without_process(record.as_ref());
            let ended = record.and_then(|record| record.ended);
            let why = ended.map_or_else(String::new, |ended| format!(" ({})", ended.why));
            let words = format!(
                "started, and already ended{}; opilio job status {} shows the result",
                terminal::line(&why),
                job.display()
            );
            print(state, None, &words);
            Ok(code)
        }
        _ => {
            eprintln!("{}", terminal::lines(&last_output(&job)));
            eprintln!(
                "opilio: job {} did not start: its process ended with {ended}",
                job.display()
            );
            Ok(code.unwrap_or(exit::FAILED))
        }
    }
}

/// Withdraws a stop that no daemon has carried out, so that the next daemon does not stop a process that is started now.
fn withdraw_pending_stop(job: &Path) -> Result<()> {
    let _held = Orders::lock(job);
    match wanted(job).filter(|orders| orders.stop_pending) {
        Some(mut orders) => {
            orders.stop_pending = false;
            order(&orders, job)
        }
        None => Ok(()),
    }
}

/// Returns `true` if the last process of the job has left nothing to fetch.
fn is_finished(job: &Path) -> bool {
    let last = ProcessRecord::read(job).ok().flatten();
    last.is_some_and(|last| {
        let how = last.ended.map(|ended| ended.how);
        how == Some(ProcessEndKind::Finished) && last.statistics.queued == 0
    })
}

fn order(orders: &Orders, job: &Path) -> Result<()> {
    let written = orders.write(job);
    written.with_context(|| format!("cannot write {}", job.join("orders.json").display()))
}

/// Makes a job like another.
pub(crate) fn copy(args: &CloneArgs) -> Result<u8> {
    let (folder, name) = existing(&args.job)?;
    let new = args.name.file_name().and_then(|new| new.to_str());
    let beside = args.name.parent().filter(|folder| *folder != Path::new(""));
    let is_elsewhere = match beside {
        Some(beside) => std::path::absolute(beside)? != folder.path(),
        None => false,
    };
    let Some(new) = new.filter(|_| !is_elsewhere) else {
        let problem = format!(
            "the copy of a job is created in the folder of the job, {}; pass only its name",
            folder.path().display()
        );
        return Err(UsageError::new(problem).into());
    };
    print_created(&folder.copy(&name, new)?, args.json);
    Ok(exit::OK)
}

/// Deletes a job.
pub(crate) fn delete(args: &DeleteArgs) -> Result<u8> {
    let (folder, name) = existing(&args.job)?;
    folder.job(&name)?;
    if !args.yes {
        let question = match args.archive {
            true => format!("Delete the state, archive, logs and reports of job {name}?"),
            false => {
                format!("Delete the state of job {name}, and keep its archive, logs and reports?")
            }
        };
        if !terminal::confirm(&question)? {
            return Ok(exit::FAILED);
        }
    }
    folder.delete(&name, args.archive)?;
    let words = match args.archive {
        true => format!("deleted job {name} with its archive, logs and reports"),
        false => format!(
            "deleted the state of job {name}; its archive, logs and reports are in {}",
            args.job.display()
        ),
    };
    let job = args.job.display().to_string();
    let object = json!({ "answer": "deleted", "job": job, "with_archive": args.archive });
    terminal::print_result(args.json, &object, &words);
    Ok(exit::OK)
}

/// Returns the folder of an existing job, and its name.
pub(super) fn existing(job: &Path) -> Result<(Folder, String)> {
    let folder = std::path::absolute(job)?;
    match folder.parent().filter(|folder| folder.is_dir()) {
        Some(_) => split(job),
        None => Err(JobsFolderError::Unknown(job.display().to_string()).into()),
    }
}

/// Returns the folder of a job, and its name in it. A missing folder is created.
fn split(job: &Path) -> Result<(Folder, String)> {
    let job = std::path::absolute(job)?;
    let name = job.file_name().and_then(|name| name.to_str());
    let (Some(name), Some(folder)) = (name, job.parent()) else {
        let problem = format!("{} is not a job directory", job.display());
        return Err(UsageError::new(problem).into());
    };
    Ok((Folder::open(folder, component_cache())?, name.to_owned()))
}
