//! The observers of a crawl, for workers and commands. `crawl::observe` runs them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opilio_sandbox::{Finished, Report};
use tokio::sync::{mpsc, oneshot};

use opilio_job::symlinks::stays_inside;

/// Maximum of events that wait for one observer.
const EVENTS_WAITING_MAX: usize = 4096;

/// The observers of a crawl, for the workers that finish URIs.
#[derive(Default)]
pub struct Observers(Mutex<BTreeMap<Arc<str>, Observer>>);

/// One observer.
struct Observer {
    /// `None` once the crawl ends.
    events: Option<mpsc::Sender<Message>>,
    /// Number of events that the observer has lost because of its errors.
    lost: Arc<AtomicU64>,
}

/// Message to an observer.
pub(crate) enum Message {
    /// A URI has finished.
    Finished(Arc<Finished>),
    /// Request for the observer's reports.
    Report(oneshot::Sender<Result<Vec<Report>, String>>),
}

impl Observers {
    /// Adds an observer. Returns the receiver of its messages, and the counter of events that it has lost, which the caller
    /// updates.
    pub(crate) fn add(&self, name: Arc<str>) -> (mpsc::Receiver<Message>, Arc<AtomicU64>) {
        let (events, messages) = mpsc::channel(EVENTS_WAITING_MAX);
        let lost = Arc::<AtomicU64>::default();
        let observer = Observer {
            events: Some(events),
            lost: lost.clone(),
        };
        self.all().insert(name, observer);
        (messages, lost)
    }

    /// Closes the channels of all observers, because no events follow.
    pub(crate) fn end(&self) {
        for observer in self.all().values_mut() {
            observer.events = None;
        }
    }

    /// Returns `true` if no observer takes events.
    pub(crate) fn is_empty(&self) -> bool {
        self.all()
            .values()
            .all(|observer| observer.events.is_none())
    }

    /// Sends an event to all observers. Waits if an observer has too many waiting events.
    pub(crate) async fn send(&self, event: Finished) {
        let event = Arc::new(event);
        for events in self.senders() {
            // An observer that has ended has received all its events.
            let _ = events.send(Message::Finished(event.clone())).await;
        }
    }

    /// Returns the number of events that an observer has lost because of its errors.
    pub(crate) fn lost(&self, name: &str) -> u64 {
        let lost = |observer: &Observer| observer.lost.load(Ordering::Relaxed);
        self.all().get(name).map_or(0, lost)
    }

    /// Returns an observer's reports on all URIs that have finished so far; `None` if there is no such observer. Blocks.
    pub fn report(&self, name: &str) -> Option<Result<Vec<Report>, String>> {
        let events = self.all().get(name)?.events.clone()?;
        let (answer, answered) = oneshot::channel();
        let ended = "the crawl is ending".to_owned();
        if events.blocking_send(Message::Report(answer)).is_err() {
            return Some(Err(ended));
        }
        Some(answered.blocking_recv().unwrap_or(Err(ended)))
    }

    fn senders(&self) -> Vec<mpsc::Sender<Message>> {
        let observers = self.all();
        let senders = observers.values().filter_map(|one| one.events.clone());
        senders.collect()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, Observer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the folder of an observer's reports.
pub(crate) fn reports_of(job: &Path, name: &str) -> PathBuf {
    job.join("reports").join(name)
}

/// Reads the reports in that folder, in the order of names. The result is empty if there is no report.
pub fn written(job: &Path, name: &str) -> Result<Vec<Report>, (PathBuf, io::Error)> {
    let folder = reports_of(job, name);
    stays_inside(job, &folder).map_err(|problem| (folder.clone(), problem))?;
    let entries = match fs::read_dir(&folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|problem| (folder.clone(), problem))?,
    };
    let mut reports = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|problem| (folder.clone(), problem))?;
        let path = entry.path();
        stays_inside(job, &path).map_err(|problem| (path.clone(), problem))?;
        reports.push(Report {
            file: entry.file_name().to_string_lossy().into_owned(),
            content: fs::read_to_string(&path).map_err(|problem| (path, problem))?,
        });
    }
    reports.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(reports)
}
