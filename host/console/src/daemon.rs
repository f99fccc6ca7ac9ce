//! The state of the daemon that its parts share.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use opilio_crawl::{ProfileSource, stays_inside};
use opilio_profile::Profile;
use tokio::sync::{Notify, Semaphore, watch};

use crate::access::Access;
use crate::api::events::STREAMS_MAX;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::command_sender::CommandSender;
use crate::config::Config;
use crate::folder::Folder;
use crate::heritrix::Door;
use crate::orders::Orders;
use crate::overview::Jobs;
use crate::problem::Problem;

/// State shared by all parts.
pub(crate) struct Daemon {
    pub config: Config,
    pub folder: Folder,
    pub commands: CommandSender,
    pub access: Access,
    pub audit: Audit,
    /// All jobs at the last look.
    pub jobs: watch::Sender<Arc<Jobs>>,
    /// The error of the last look; `None` if it succeeded.
    pub jobs_problem: watch::Sender<Option<String>>,
    /// Notified when the supervisor must act at once.
    pub nudge: Notify,
    /// Whether the daemon is ending.
    pub closing: watch::Sender<bool>,
    /// The binary that crawls.
    pub program: PathBuf,
    pub began: Timestamp,
    /// Authentication for `/engine`; `None` if the path does not exist.
    pub heritrix: Option<Door>,
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
        config: Config,
        folder: Folder,
        program: PathBuf,
        heritrix: Option<Door>,
        access: Access,
        audit: Audit,
    ) -> Daemon {
        Daemon {
            access,
            audit,
            config,
            folder,
            commands: CommandSender::new(),
            jobs: watch::Sender::new(Arc::default()),
            jobs_problem: watch::Sender::new(Some(
                "the daemon has not read the jobs yet".to_owned(),
            )),
            nudge: Notify::new(),
            closing: watch::Sender::new(false),
            program,
            began: Timestamp::now(),
            heritrix,
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
        let said = |problem| format!("cannot write orders.json of job {name:?}: {problem}");
        match written {
            Ok(()) => Ok(changed),
            Err(problem) => Err(Problem::failure(said(problem))),
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
        let _held_by_all = Orders::hold(&job);
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
        self.nudge.notify_one();
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

    /// A profile by its name: one of the operator's own, or a shipped one.
    pub(crate) fn profile(&self, name: &str) -> Result<ProfileSource, Problem> {
        if let Some(file) = self.own_profile(name)? {
            return Ok(ProfileSource::File(file));
        }
        if Profile::builtin_names().any(|ships| ships == name) {
            return Ok(ProfileSource::Builtin(name.to_owned()));
        }
        Err(Problem::not_found(match &self.config.profiles {
            Some(folder) => format!(
                "profile {name:?} not found; put {name}.toml into {}",
                folder.display()
            ),
            None => format!(
                "profile {name:?} not found: no shipped profile has this name, and opilio.toml sets no folder of profiles"
            ),
        }))
    }

    /// The names of the operator's own profiles, sorted.
    pub(crate) fn own_profiles(&self) -> Vec<String> {
        let entries = self.config.profiles.as_deref().map(Path::read_dir);
        let Some(Ok(entries)) = entries else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let name = name.strip_suffix(".toml").map(str::to_owned);
                name.filter(|_| !entry.path().is_dir())
            })
            .collect();
        names.sort();
        names
    }

    /// The file of one of the operator's own profiles. A link that leads out of their folder is refused: viewers of profiles
    /// would see its target.
    fn own_profile(&self, name: &str) -> Result<Option<PathBuf>, Problem> {
        // Looked up in the list: no name can lead elsewhere.
        let is_own = self.own_profiles().iter().any(|own| own == name);
        let Some(folder) = self.config.profiles.as_ref().filter(|_| is_own) else {
            return Ok(None);
        };
        let file = folder.join(format!("{name}.toml"));
        match stays_inside(folder, &file) {
            Ok(()) => Ok(Some(file)),
            Err(_) => Err(Problem::conflict(format!(
                "{} is a link out of {}, which is not followed; put the file itself there, or set profiles in opilio.toml to its folder",
                file.display(),
                folder.display()
            ))),
        }
    }
}
