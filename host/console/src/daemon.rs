//! The daemon as all its parts see it.

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
use crate::asking::Desk;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::config::Config;
use crate::folder::Folder;
use crate::heritrix::Door;
use crate::orders::Orders;
use crate::overview::Jobs;
use crate::problem::Problem;

/// What all parts share.
pub(crate) struct Daemon {
    pub config: Config,
    pub folder: Folder,
    pub desk: Desk,
    pub access: Access,
    pub audit: Audit,
    /// As last looked at.
    pub jobs: watch::Sender<Arc<Jobs>>,
    /// Why they could not be looked at; none where they could.
    pub jobs_problem: watch::Sender<Option<String>>,
    /// There is something to see to at once.
    pub nudge: Notify,
    /// It is to end.
    pub closing: watch::Sender<bool>,
    /// The binary that crawls.
    pub program: PathBuf,
    pub began: Timestamp,
    /// Who is let in to `/engine`; none: there is no such path.
    pub heritrix: Option<Door>,
    /// Places for streams of events.
    pub streams: Arc<Semaphore>,
    orders: Mutex<()>,
    /// What is wrong with entries of the calendar, by their names.
    calendar_problems: Mutex<BTreeMap<String, String>>,
    /// Calendar and windows go by it.
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
            desk: Desk::new(),
            jobs: watch::Sender::new(Arc::default()),
            jobs_problem: watch::Sender::new(Some("no job has been looked at yet".to_owned())),
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

    /// Changes what is wanted of a job, for somebody who is told where it cannot be written.
    pub(crate) fn order_for<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Orders) -> T,
    ) -> Result<T, Problem> {
        let (changed, written) = self.change(name, change);
        let said = |problem| format!("orders.json of job {name:?} cannot be written: {problem}");
        match written {
            Ok(()) => Ok(changed),
            Err(problem) => Err(Problem::failure(said(problem))),
        }
    }

    /// Changes what is wanted of a job.
    pub(crate) fn order<T>(&self, name: &str, change: impl FnOnce(&mut Orders) -> T) -> T {
        let (changed, written) = self.change(name, change);
        if let Err(problem) = written {
            tracing::error!(job = name, "orders.json cannot be written: {problem}");
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
                    "orders.json is damaged, and begun anew: {problem}"
                );
                Orders::new(false, "")
            }
        };
        let changed = change(&mut orders);
        let written = orders.write(&job);
        self.nudge.notify_one();
        (changed, written)
    }

    /// What is wrong with an entry of the calendar from now on; none: nothing.
    pub(crate) fn calendar_problem(&self, entry: &str, problem: Option<String>) {
        let problems = self.calendar_problems.lock();
        let mut problems = problems.unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => problems.insert(entry.to_owned(), problem),
            None => problems.remove(entry),
        };
    }

    /// What is wrong with entries of the calendar, by their names.
    pub(crate) fn calendar_problems(&self) -> BTreeMap<String, String> {
        let problems = self.calendar_problems.lock();
        problems.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A profile by its name: one of the operator's own, or one that ships.
    pub(crate) fn profile(&self, name: &str) -> Result<ProfileSource, Problem> {
        if let Some(file) = self.own_profile(name)? {
            return Ok(ProfileSource::File(file));
        }
        if Profile::builtin_names().any(|ships| ships == name) {
            return Ok(ProfileSource::Builtin(name.to_owned()));
        }
        Err(Problem::not_found(match &self.config.profiles {
            Some(folder) => format!(
                "there is no profile {name:?}: put {name}.toml into {}",
                folder.display()
            ),
            None => format!(
                "there is no profile {name:?}: none of that name ships, and opilio.toml names no folder of profiles"
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

    /// The file of one of the operator's own profiles. A link that leads out of their folder is refused: whoever may look at
    /// profiles would read what it leads to.
    fn own_profile(&self, name: &str) -> Result<Option<PathBuf>, Problem> {
        // Looked up in the list: no name leads anywhere else.
        let is_own = self.own_profiles().iter().any(|own| own == name);
        let Some(folder) = self.config.profiles.as_ref().filter(|_| is_own) else {
            return Ok(None);
        };
        let file = folder.join(format!("{name}.toml"));
        match stays_inside(folder, &file) {
            Ok(()) => Ok(Some(file)),
            Err(_) => Err(Problem::conflict(format!(
                "{} leads out of {} by a link, which is not followed; put the file itself there, or have profiles in opilio.toml name the folder that it is in",
                file.display(),
                folder.display()
            ))),
        }
    }
}
