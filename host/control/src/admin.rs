//! Access of commands to a job.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use opilio_frontier::{Frontier, SharedFrontier};
use opilio_profile::Profile;

use super::{ControlError, ErrorKind, JobCommands};
use opilio_crawl::Stop;
use opilio_crawl::context::CrawlContext;
use opilio_crawl::crawl::{Crawl, CrawlView};
use opilio_crawl::live::Live;
use opilio_job::job_log::JobLog;
use opilio_job::profile::frozen_profile;

/// Maximum number of rows that are read while the frontier is locked.
pub(super) const PART: usize = 500;

/// Pause between two parts, so that waiting workers get the frontier first.
pub(super) const PART_PAUSE: Duration = Duration::from_millis(1);

/// Job as commands see it.
pub(crate) struct JobAdmin<'a> {
    pub(super) job: &'a Path,
    pub(super) profile: &'a Arc<Profile>,
    pub(super) log: &'a JobLog,
    /// Running crawl. None: no process runs the job, and this process has opened it for the command.
    pub(super) running: Option<&'a Running>,
    /// Commands that act on all nodes. None: the job runs on one machine, or the command acts on this directory alone.
    pub(super) commands: Option<&'a JobCommands>,
    pub(super) origin: CommandOrigin<'a>,
    frontier: &'a SharedFrontier,
}

/// Origin of a command to a job.
#[derive(Clone, Copy, Default)]
pub(super) enum CommandOrigin<'a> {
    /// An operator has given the command to this directory.
    #[default]
    Here,
    /// The command is only checked, before all nodes of a shared job get it.
    Trial,
    /// The command is from the log of commands that the nodes share.
    Log {
        /// Number of the command in the log.
        sequence: u64,
        /// The component that the command names.
        component: Option<&'a [u8]>,
        /// `true` if this process has tried to carry out the command before.
        is_again: bool,
    },
}

impl CommandOrigin<'_> {
    pub(super) fn is_trial(self) -> bool {
        matches!(self, CommandOrigin::Trial)
    }

    /// Returns the number of the command in the log of commands that the nodes share.
    pub(super) fn sequence(self) -> Option<u64> {
        match self {
            CommandOrigin::Log { sequence, .. } => Some(sequence),
            CommandOrigin::Here | CommandOrigin::Trial => None,
        }
    }

    /// Returns `true` if this process has tried to carry out the command before.
    pub(super) fn is_again(self) -> bool {
        matches!(self, CommandOrigin::Log { is_again: true, .. })
    }
}

/// Running crawl as commands see it.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) context: Arc<CrawlContext>,
    pub(crate) live: Arc<Live>,
    pub(crate) stop: Stop,
    pub(crate) view: CrawlView,
    pub(crate) job: PathBuf,
    pub(crate) log: Arc<JobLog>,
    /// Commands of a job that several nodes share.
    pub(crate) commands: Option<Arc<JobCommands>>,
}

impl Running {
    /// Returns a crawl as commands see it.
    pub(super) fn of(crawl: &Crawl) -> Running {
        let context = crawl.context().clone();
        let commands = context.membership.as_ref();
        let commands =
            commands.map(|membership| Arc::new(JobCommands::of(membership, &context.job)));
        Running {
            commands,
            live: context.live.clone(),
            stop: crawl.stop(),
            view: crawl.view(),
            job: context.job.clone(),
            log: context.job_log.clone(),
            context,
        }
    }

    /// Returns the access for commands. `profile` includes all changes so far: [`CrawlContext::current`].
    pub(crate) fn admin<'d>(&'d self, profile: &'d Arc<Profile>) -> JobAdmin<'d> {
        JobAdmin {
            job: &self.job,
            profile,
            log: &self.log,
            running: Some(self),
            commands: self.commands.as_deref(),
            origin: CommandOrigin::Here,
            frontier: &self.context.frontier,
        }
    }
}

impl<'a> JobAdmin<'a> {
    /// Creates the access to a job that only this process has opened.
    pub(crate) fn new(
        job: &'a Path,
        profile: &'a Arc<Profile>,
        frontier: &'a SharedFrontier,
        log: &'a JobLog,
    ) -> JobAdmin<'a> {
        JobAdmin {
            job,
            profile,
            log,
            running: None,
            commands: None,
            origin: CommandOrigin::Here,
            frontier,
        }
    }

    /// Adds the commands that act on all nodes of a shared job.
    pub(super) fn sharing(self, commands: Option<&'a JobCommands>) -> JobAdmin<'a> {
        JobAdmin { commands, ..self }
    }

    /// Returns the same access for a command of another origin, with the current profile.
    pub(super) fn with<'b>(
        &'b self,
        profile: &'b Arc<Profile>,
        origin: CommandOrigin<'b>,
    ) -> JobAdmin<'b> {
        JobAdmin {
            job: self.job,
            profile,
            log: self.log,
            running: self.running,
            commands: None,
            origin,
            frontier: self.frontier,
        }
    }

    /// Locks the frontier for one bounded part of a command. It is never locked while an answer is being sent.
    pub(super) fn frontier(&self) -> MutexGuard<'a, Frontier> {
        self.frontier.lock()
    }

    /// Returns the frontier for callers that lock it in parts of their own.
    pub(super) fn store(&self) -> &'a SharedFrontier {
        self.frontier
    }

    /// Returns the running crawl, or an error if no process runs the job.
    pub(super) fn running(&self, what: &str) -> Result<&'a Running, ControlError> {
        self.running.ok_or_else(|| {
            ControlError::new(
                ErrorKind::State,
                format!("no process runs job {}: {what}", self.job.display()),
            )
        })
    }

    /// Returns the profile with all changes so far.
    pub(super) fn current_profile(&self) -> Result<Arc<Profile>, ControlError> {
        match self.running {
            Some(running) => Ok(running.context.current()),
            None => Ok(Arc::new(frozen_profile(self.job)?)),
        }
    }

    /// Wakes the dispatcher, because other URIs may be issued now.
    pub(super) fn wake_dispatcher(&self) {
        if let Some(running) = self.running {
            running.live.wake_dispatcher();
        }
    }
}
