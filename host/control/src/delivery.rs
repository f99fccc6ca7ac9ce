//! Delivery of a command to a job: through the socket of the process that runs it, or by opening the job.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_crawl::queues_of_job;
use opilio_frontier::{Frontier, FrontierConfig, Inconsistency, SharedFrontier};

use super::socket::Connection;
use super::{
    CheckedStore, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, JobAdmin,
    JobCommands, JobLog,
};
use opilio_job::directory::JobError;
use opilio_job::directory::{self, Copies, Job, is_job};
use opilio_job::fetched_files::FetchedFiles;
use opilio_job::profile::frozen_profile;
use opilio_visit::policy;

/// Delivers a command to the job in this directory, and its answers to `respond`, which returns `false` if the client has
/// disconnected. The last answer is [`CommandResponse::End`] or [`CommandResponse::Refused`].
///
/// Blocks until the command is carried out.
///
/// # Errors
/// [`ControlError`] if the job cannot be reached.
pub fn carry_out(
    job: &Path,
    request: &CommandRequest,
    respond: &mut dyn FnMut(CommandResponse) -> bool,
) -> Result<(), ControlError> {
    must_be_job(job)?;
    if let Some(connection) = Connection::open(job)? {
        return connection.send(request, respond);
    }
    let locked = LockedJob::open(job)?;
    if let Command::Check { repair } = request.command {
        return locked.check(repair, request, respond);
    }
    let opened = locked.open_frontier()?;
    let commands = JobCommands::at_rest(&opened.admin(), request)?;
    let admin = opened.admin().sharing(commands.as_ref());
    admin.perform(request, respond);
    opened.frontier().persist()?;
    Ok(())
}

/// Returns `true` if a process runs the job in this directory and accepts commands.
pub fn is_reachable(job: &Path) -> bool {
    matches!(Connection::open(job), Ok(Some(_)))
}

/// Writes a line with author, action and result into the job's log, for programs that start and stop the job's processes.
///
/// # Errors
/// The directory is not a job, or the log cannot be written.
pub fn note(job: &Path, by: &str, what: &str, result: &str) -> Result<(), ControlError> {
    let file = log_file(job)?;
    let logs = file.parent().unwrap_or(job);
    let log = JobLog::open(logs).map_err(|problem| ControlError::file(logs, &problem))?;
    let noted = log.lock().action(&by, &what, result);
    noted.map_err(|problem| ControlError::file(&file, &problem))
}

/// Returns the path of the log of actions on a job.
///
/// # Errors
/// [`ControlError`] if the directory is not a job, or its profile cannot be read.
pub fn log_file(job: &Path) -> Result<PathBuf, ControlError> {
    must_be_job(job)?;
    let profile = frozen_profile(job)?;
    Ok(job.join(&profile.logs.directory).join("job.log"))
}

/// Locks a job against other processes, and completes an interrupted restore. `then` is the operator's next step, for the error if
/// another process has locked the job.
pub(super) fn hold_at_rest(job: &Path, then: &str) -> Result<directory::JobLock, ControlError> {
    let in_use = |process: &str| {
        ControlError::new(
            ErrorKind::State,
            format!(
                "job {} is in use by process {process}; stop it first (`opilio job stop JOB`), and {then} when it has ended",
                directory::name_of(job)
            ),
        )
    };
    if is_reachable(job) {
        let process =
            directory::holder(job).map_or_else(|| "unknown".to_owned(), |it| it.to_string());
        return Err(in_use(&process));
    }
    let held = directory::lock_job(job).map_err(|problem| match problem {
        JobError::InUse { process, .. } => in_use(&process),
        other => other.into(),
    })?;
    directory::complete_restore(job)?;
    Ok(held)
}

pub(super) fn must_be_job(job: &Path) -> Result<(), ControlError> {
    if is_job(job) {
        return Ok(());
    }
    let exists = job.exists();
    let job = job.display();
    let problem = match exists {
        true => format!("{job} is not a job: it has no job.json"),
        false => format!("job {job} not found; opilio job list lists the jobs"),
    };
    Err(ControlError::new(ErrorKind::Request, problem))
}

/// Job that this process has locked for a command.
struct LockedJob {
    job: Job,
    profile: Arc<opilio_profile::Profile>,
    log: JobLog,
}

/// Locked job with its open frontier. Fields are dropped in order, so the frontier is closed before the job is unlocked.
struct Opened {
    frontier: SharedFrontier,
    locked: LockedJob,
}

impl LockedJob {
    fn open(directory: &Path) -> Result<LockedJob, ControlError> {
        // An existing job uses its own copies instead of these arguments.
        let nothing = Copies {
            profile: "",
            name: "",
            seeds: &[],
            base: Path::new(""),
            layers: &[],
            origin: None,
            files: &FetchedFiles::default(),
        };
        let job = Job::open(directory, &nothing, Timestamp::now()).map_err(|problem| {
            match problem {
                JobError::InUse { process, .. } => ControlError::new(
                    ErrorKind::State,
                    format!(
                        "job {} is in use by process {process}, which accepts no commands now: it is starting, ending, or busy with another command; try again",
                        directory.display()
                    ),
                ),
                other => other.into(),
            }
        })?;
        let profile = Arc::new(frozen_profile(directory)?);
        let logs = directory.join(&profile.logs.directory);
        let log = JobLog::open(&logs).map_err(|problem| ControlError::file(&logs, &problem))?;
        Ok(LockedJob { job, profile, log })
    }

    fn open_frontier(self) -> Result<Opened, ControlError> {
        let job = self.job.directory();
        let part = queues_of_job(job, &self.profile);
        let part =
            part.map_err(|problem| ControlError::file(&job.join("cluster.json"), &problem))?;
        let config = FrontierConfig {
            part,
            ..policy::frontier_config(&self.profile, Timestamp::now)
        };
        let frontier = Frontier::open(&self.job.state(), config)?;
        Ok(Opened {
            locked: self,
            frontier: SharedFrontier::new(frontier),
        })
    }

    /// Checks the store of a job that no process runs.
    fn check(
        &self,
        repair: bool,
        request: &CommandRequest,
        respond: &mut dyn FnMut(CommandResponse) -> bool,
    ) -> Result<(), ControlError> {
        let config = policy::frontier_config(&self.profile, Timestamp::now);
        let state = self.job.state();
        let mut report = |finding: Inconsistency| {
            let (fault, key) = (finding.fault, finding.key);
            let mut problem = format!("{key} {}", fault.description());
            if finding.is_repaired {
                problem.push_str(&format!("; repaired: {}", fault.remedy()));
            }
            respond(CommandResponse::Problem { problem });
        };
        let result = match repair {
            true => Frontier::repair(&state, &config, &mut report),
            false => Frontier::check(&state, &config, &mut report),
        };
        let words = match &result {
            Ok(found) => format!("{} problems, {} repaired", found.findings, found.repaired),
            Err(problem) => format!("refused: {}", opilio_stacks::chain(problem)),
        };
        if let Some(line) = request.command.log_line() {
            let logged = self.log.lock().action(&request.by, &line, &words);
            logged.map_err(|problem| ControlError::file(&self.job.logs(), &problem))?;
        }
        let found = result?;
        respond(CommandResponse::Checked(CheckedStore {
            uris: found.uris,
            queued: found.queued,
            queues: found.queues,
            problems: found.findings,
            repaired: found.repaired,
        }));
        respond(CommandResponse::End);
        Ok(())
    }
}

impl Opened {
    fn admin(&self) -> JobAdmin<'_> {
        let LockedJob { job, profile, log } = &self.locked;
        JobAdmin::new(job.directory(), profile, &self.frontier, log)
    }

    fn frontier(&self) -> std::sync::MutexGuard<'_, Frontier> {
        self.admin().frontier()
    }
}
