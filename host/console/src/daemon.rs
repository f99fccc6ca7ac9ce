//! The state of the daemon that its parts share.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use opilio_crawl::ProfileSource;
use opilio_profile::Profile;
use tokio::sync::{Notify, Semaphore, watch};

use crate::access::Access;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::command_sender::CommandSender;
use crate::config::DaemonConfig;
use crate::file_tasks::FileTasks;
use crate::folder::Folder;
use crate::heritrix_account::HeritrixAccount;
use crate::node::ClusterNode;
use crate::orders::Orders;
use crate::overview::Jobs;
use crate::problem::Problem;
use crate::profile_store::{ProfileStore, ProfileStoreError};

/// Maximum event streams at the same time. Enough connections are left for other requests.
pub(crate) const STREAMS_MAX: usize = 500;

/// State shared by all parts.
pub(crate) struct Daemon {
    pub config: DaemonConfig,
    pub folder: Folder,
    pub profiles: ProfileStore,
    pub commands: CommandSender,
    pub file_tasks: FileTasks,
    pub access: Access,
    pub audit: Audit,
    /// All jobs at the last examination.
    pub jobs: watch::Sender<Arc<Jobs>>,
    /// Error of the last examination; `None` if it succeeded.
    pub jobs_problem: watch::Sender<Option<String>>,
    /// Notified when the supervisor must examine the jobs at once.
    pub supervisor_wake: Notify,
    /// `true` if the daemon is ending.
    pub closing: watch::Sender<bool>,
    /// The program that crawls.
    pub program: PathBuf,
    pub began: Timestamp,
    /// Authentication for `/engine`; `None` if the path does not exist.
    pub heritrix: Option<HeritrixAccount>,
    /// The membership in a cluster; `None` without one.
    pub node: Option<ClusterNode>,
    /// Permits for event streams.
    pub streams: Arc<Semaphore>,
    orders: Mutex<()>,
    /// Errors of calendar entries, by name.
    calendar_problems: Mutex<BTreeMap<String, String>>,
    /// The clock of calendar and windows.
    pub clock: Clock,
}

impl Daemon {
    pub(crate) fn new(
        config: DaemonConfig,
        folder: Folder,
        program: PathBuf,
        heritrix: Option<HeritrixAccount>,
        access: Access,
        audit: Audit,
    ) -> Daemon {
        Daemon {
            access,
            audit,
            profiles: config.profile_store(),
            config,
            folder,
            commands: CommandSender::new(),
            file_tasks: FileTasks::default(),
            jobs: watch::Sender::new(Arc::default()),
            jobs_problem: watch::Sender::new(Some(
                "the daemon has not read the jobs yet".to_owned(),
            )),
            supervisor_wake: Notify::new(),
            closing: watch::Sender::new(false),
            program,
            began: Timestamp::now(),
            heritrix,
            node: None,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            orders: Mutex::new(()),
            calendar_problems: Mutex::default(),
            clock: Clock::default(),
        }
    }

    /// Changes the orders of a job for a client, and returns an error if they cannot be written.
    pub(crate) fn order_for<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Orders) -> T,
    ) -> Result<T, Problem> {
        let (changed, written) = self.change(name, change);
        let describe = |problem| format!("cannot write orders.json of job {name:?}: {problem}");
        match written {
            Ok(()) => Ok(changed),
            Err(problem) => Err(Problem::failure(describe(problem))),
        }
    }

    /// Changes the orders of a job; a write error is only logged.
    pub(crate) fn order<T>(&self, name: &str, change: impl FnOnce(&mut Orders) -> T) -> T {
        let (changed, written) = self.change(name, change);
        if let Err(problem) = written {
            tracing::error!(job = name, "cannot write orders.json: {problem}");
        }
        changed
    }

    fn change<T>(&self, name: &str, change: impl FnOnce(&mut Orders) -> T) -> (T, io::Result<()>) {
        let _held = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let job = self.folder.path().join(name);
        let _held_by_all = Orders::lock(&job);
        let mut orders = match Orders::read(&job) {
            Ok(orders) => orders.unwrap_or_else(|| Orders::new(false, "")),
            Err(problem) => {
                tracing::error!(
                    job = name,
                    "orders.json is damaged and is created again: {problem}"
                );
                Orders::new(false, "")
            }
        };
        let changed = change(&mut orders);
        let written = orders.write(&job);
        self.supervisor_wake.notify_one();
        (changed, written)
    }

    /// Sets or removes the error of a calendar entry.
    pub(crate) fn calendar_problem(&self, entry: &str, problem: Option<String>) {
        let problems = self.calendar_problems.lock();
        let mut problems = problems.unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => problems.insert(entry.to_owned(), problem),
            None => problems.remove(entry),
        };
    }

    /// Errors of calendar entries, by name.
    pub(crate) fn calendar_problems(&self) -> BTreeMap<String, String> {
        let problems = self.calendar_problems.lock();
        problems.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A profile by its name, for a job: one of the store, or a shipped one.
    pub(crate) fn profile(&self, name: &str) -> Result<ProfileSource, Problem> {
        match self.profiles.get_for_job(name) {
            Ok(found) => Ok(ProfileSource::Named(found.named())),
            Err(ProfileStoreError::Unknown { .. })
                if Profile::builtin_names().any(|ships| ships == name) =>
            {
                Ok(ProfileSource::Builtin(name.to_owned()))
            }
            Err(problem) => Err(problem.into()),
        }
    }
}
