//! Hand-over of files to a store (S3 or a folder) and to a command of the operator. Fetching never waits for a hand-over.
//!
//! A failed hand-over is retried at growing intervals, and raises an alert, which is cleared by the next successful hand-over. The
//! job's `handed-over.jsonl` lists what was handed over. Files that it does not list are handed over at the next start, or by
//! `opilio job handover`.

mod at_rest;
mod on_close;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_archive::{archives, index_path, is_archive};
use opilio_profile::{ArchiveStore, Profile};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use opilio_job::directory::{SHARED, name_of};
use opilio_job::handover::{
    Checksums, FileStore, FileStoreError, HandedOver, HandoverRecord, Receiver, only_in_store,
};
use opilio_job::progress::HandoverTotals;

use self::on_close::OnClose;
use crate::archive::writer_config;
use crate::error::{CrawlError, io_error};
use crate::job_part::JobPart;
use crate::membership::JobMembership;

pub use self::at_rest::{HandoverFile, HandoverState, HandoverStep, hand_over_job, handover_files};

/// First pause after the command has failed. Each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(10);

/// Longest pause after the command has failed.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// Further attempts for a log or report that changes while it is sent.
const AGAIN_MAX: usize = 5;

/// Files that wait for one receiver.
pub(crate) struct Handover {
    to: Destination,
    /// The membership in a job whose parts can be taken over. Only the process that has the part writes to the store.
    right: Option<Arc<JobMembership>>,
    record: Arc<HandoverRecord>,
    waiting: Mutex<VecDeque<WaitingFile>>,
    /// Wakes the tasks that hand files over when files are added.
    added: Notify,
    /// Number of files that this process has handed over.
    count: AtomicU64,
    /// Number of logs, reports and packages that are still to be stored at the end.
    others_left: AtomicU64,
    /// Last failure.
    problem: Mutex<Option<String>>,
}

enum Destination {
    Command(OnClose),
    Store(Box<StoreQueue>),
}

/// A store, and the rules for its files.
struct StoreQueue {
    store: FileStore,
    settings: ArchiveStore,
    job: PathBuf,
    /// The crawl log. It is forced to disk before an archive file with its captures is deleted.
    crawl_log: PathBuf,
}

/// A file to be handed over.
struct WaitingFile {
    file: PathBuf,
    /// Number of failed attempts.
    failures: u32,
    due: Instant,
    /// `true` if it is being handed over.
    is_taken: bool,
}

/// Opens the hand-overs that the profile configures: one for the command, one for the store. Finished files that were not handed
/// over are queued. `membership` is set for a process that crawls a part of a shared job.
pub(crate) fn open(
    profile: &Profile,
    job: &Path,
    membership: Option<&Arc<JobMembership>>,
) -> Result<Vec<Arc<Handover>>, CrawlError> {
    let archive = &profile.archive;
    let mut receivers = Vec::new();
    if !archive.on_close.is_empty() {
        receivers.push(Destination::Command(OnClose {
            command: archive.on_close.clone(),
            timeout: archive.on_close_timeout,
            job: job.to_owned(),
        }));
    }
    if let Some(settings) = &archive.store {
        receivers.push(Destination::Store(Box::new(StoreQueue {
            store: open_store(profile, settings, job)?,
            settings: settings.clone(),
            job: job.to_owned(),
            crawl_log: job.join(&profile.logs.directory).join("crawl.log"),
        })));
    }
    if receivers.is_empty() {
        return Ok(Vec::new());
    }
    let finished = finished(profile, job)?;
    let record = HandoverRecord::open(job).map_err(|source| io_error(job, source))?;
    let record = Arc::new(record);
    let handovers = receivers.into_iter().map(|to| {
        let right = membership.filter(|it| it.part().can_move()).cloned();
        let handover = Handover {
            to,
            right,
            record: record.clone(),
            waiting: Mutex::default(),
            added: Notify::new(),
            count: AtomicU64::new(0),
            others_left: AtomicU64::new(0),
            problem: Mutex::default(),
        };
        handover.add_missing(&finished);
        Arc::new(handover)
    });
    Ok(handovers.collect())
}

/// Finished files in the archive of a job.
struct FinishedFiles {
    archives: Vec<PathBuf>,
    /// Indexes whose archive file was deleted after its hand-over.
    indexes: Vec<PathBuf>,
}

fn finished(profile: &Profile, job: &Path) -> Result<FinishedFiles, CrawlError> {
    let config = writer_config(profile, job)?;
    let mut files = FinishedFiles {
        archives: Vec::new(),
        indexes: Vec::new(),
    };
    // A job that has not run yet has no folders. If only some folders are missing, a disk may not be mounted, so that is an error.
    if !config.directories().any(|folder| folder.is_dir()) {
        return Ok(files);
    }
    files.archives = archives(&config)?
        .into_iter()
        .map(|(file, _)| file)
        .collect();
    let moved = only_in_store(job).map_err(|source| io_error(job, source))?;
    let indexes = moved.iter().map(|file| index_path(&file.path(job)));
    files.indexes = indexes.filter(|index| index.is_file()).collect();
    Ok(files)
}

/// Opens the store of a profile. A key that is missing is an error of the profile.
pub(crate) fn open_store(
    profile: &Profile,
    settings: &ArchiveStore,
    job: &Path,
) -> Result<FileStore, CrawlError> {
    let part = JobPart::read(job).map_err(|source| io_error(&job.join(SHARED), source))?;
    let folder = part.as_ref().and_then(JobPart::store_folder);
    let folder = folder.unwrap_or_else(|| name_of(job));
    FileStore::open_as(settings, job, &folder).map_err(|problem| {
        let problem = opilio_stacks::chain(&problem);
        CrawlError::Profile(profile.fault_at("/archive/store", problem).into())
    })
}

impl Handover {
    /// Name of the receiver in alerts and logs.
    pub(crate) fn name(&self) -> &str {
        match &self.to {
            Destination::Command(_) => "on-close",
            Destination::Store(queue) => queue.store.url(),
        }
    }

    /// Number of files that are handed over at the same time.
    pub(crate) fn lanes(&self) -> usize {
        match &self.to {
            Destination::Command(_) => 1,
            Destination::Store(queue) => queue.settings.uploads,
        }
    }

    /// Queues the finished files that the receiver does not have.
    fn add_missing(&self, finished: &FinishedFiles) {
        let indexes = match self.to {
            Destination::Command(_) => Vec::new(),
            Destination::Store(_) => finished.indexes.clone(),
        };
        let files = self.files_of(finished.archives.iter().cloned());
        self.queue(files.chain(indexes).filter(|file| !self.is_done(file)));
    }

    /// Queues files that were just finished.
    pub(crate) fn add(&self, finished: impl IntoIterator<Item = PathBuf>) {
        self.queue(self.files_of(finished));
    }

    fn queue(&self, files: impl IntoIterator<Item = PathBuf>) {
        let due = Instant::now();
        self.lock()
            .extend(files.into_iter().map(|file| WaitingFile {
                file,
                failures: 0,
                due,
                is_taken: false,
            }));
        self.added.notify_waiters();
    }

    /// Resolves when files are added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Returns the files to hand over when these archive files are finished. The store also gets their indexes.
    fn files_of(
        &self,
        finished: impl IntoIterator<Item = PathBuf>,
    ) -> impl Iterator<Item = PathBuf> {
        let with_index = matches!(self.to, Destination::Store(_));
        finished.into_iter().flat_map(move |file| {
            let index = Some(index_path(&file)).filter(|index| with_index && index.is_file());
            std::iter::once(file).chain(index)
        })
    }

    /// Returns `true` if a file needs no hand-over.
    fn is_done(&self, file: &Path) -> bool {
        match &self.to {
            Destination::Command(_) => self.record.has(Receiver::Command, file, None),
            Destination::Store(queue) => {
                let url = queue.store.url_of(file);
                self.record.has(Receiver::Store, file, Some(&url)) && !queue.deletes(file)
            }
        }
    }

    /// Returns `true` if this process may hand files over. Only the process that has the part writes to the store of a shared job.
    pub(crate) fn is_allowed(&self) -> bool {
        self.right.as_ref().is_none_or(|it| it.has_part())
    }

    /// Returns the number of closed archive files that the store does not have; `None` if this is not a store.
    pub(crate) fn not_stored(&self, profile: &Profile) -> Result<Option<usize>, CrawlError> {
        let Destination::Store(queue) = &self.to else {
            return Ok(None);
        };
        let files = finished(profile, &queue.job)?.archives;
        Ok(Some(
            files.iter().filter(|file| !self.is_done(file)).count(),
        ))
    }

    /// Takes the first due file from the queue; at the end of the crawl, the first file.
    pub(crate) fn take(&self, is_end: bool) -> Option<PathBuf> {
        if !is_end && !self.is_allowed() {
            return None;
        }
        let mut waiting = self.lock();
        let now = Instant::now();
        let mut free = waiting.iter_mut().filter(|one| !one.is_taken);
        let one = free.find(|one| is_end || one.due <= now)?;
        one.is_taken = true;
        Some(one.file.clone())
    }

    /// Hands over a file that was taken from the queue. After a failure, the file is put at the end of the queue for a later
    /// attempt.
    pub(crate) async fn hand_over(&self, file: &Path) -> Result<HandedOver, String> {
        let result = self.attempt(file).await;
        let mut waiting = self.lock();
        let at = waiting.iter().position(|one| one.file == file);
        let one = at.and_then(|at| waiting.remove(at));
        match result {
            Ok(done) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                Ok(done)
            }
            Err(why) => {
                let failures = one.map_or(0, |one| one.failures);
                waiting.push_back(WaitingFile {
                    file: file.to_owned(),
                    failures: failures + 1,
                    due: Instant::now() + self.pause(failures),
                    is_taken: false,
                });
                Err(self.failed(file, why))
            }
        }
    }

    /// Records a failure for the totals, and returns its message with the name of the file.
    fn failed(&self, file: &Path, why: String) -> String {
        let message = format!("{} was not handed over: {why}", file.display());
        *self.last_problem() = Some(why);
        message
    }

    /// Records that the time for files at the end is over.
    pub(crate) fn ran_out_of_time(&self) {
        let message = "archive.store.finish-within is over".to_owned();
        self.last_problem().get_or_insert(message);
    }

    fn last_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pause after a failure, with this many failures before it.
    fn pause(&self, failures: u32) -> Duration {
        let (first, longest) = match &self.to {
            Destination::Command(_) => (PAUSE_MIN, PAUSE_MAX),
            Destination::Store(queue) => (queue.settings.retry_min, queue.settings.retry_max),
        };
        first.saturating_mul(1 << failures.min(20)).min(longest)
    }

    async fn attempt(&self, file: &Path) -> Result<HandedOver, String> {
        if !self.is_allowed() {
            return Err("this process does not have its part of the job now".to_owned());
        }
        match &self.to {
            Destination::Command(command) => {
                let at = Timestamp::now();
                let path = file.to_owned();
                let sums = tokio::task::spawn_blocking(move || Checksums::of(&path)).await;
                let sums = match sums {
                    Ok(Ok(sums)) => sums,
                    Ok(Err(problem)) => return Err(format!("cannot read the file: {problem}")),
                    Err(panic) => return Err(panic.to_string()),
                };
                command.run(file, &sums).await?;
                let inside = file.strip_prefix(&command.job).unwrap_or(file);
                let done = HandedOver {
                    file: inside.to_string_lossy().into_owned(),
                    size: sums.size,
                    digest: format!("sha256:{}", sums.sha256),
                    url: None,
                    at,
                };
                let written = self.record.add(done.clone());
                written.map_err(|problem| format!("cannot write handed-over.jsonl: {problem}"))?;
                Ok(done)
            }
            Destination::Store(queue) => {
                let describe = |problem: FileStoreError| opilio_stacks::chain(&problem);
                let done = queue.store.put(file, &self.record, false).await;
                let done = done.map_err(describe)?;
                if queue.deletes(file) {
                    let deleted = queue.delete(file, &done);
                    deleted
                        .map_err(|problem| format!("stored, but cannot be deleted: {problem}"))?;
                }
                Ok(done)
            }
        }
    }

    /// Returns the numbers of files that this process has handed over, and of those that wait.
    pub(crate) fn totals(&self) -> HandoverTotals {
        let left = self.lock().len() as u64 + self.others_left.load(Ordering::Relaxed);
        HandoverTotals {
            to: self.name().to_owned(),
            files: self.count.load(Ordering::Relaxed),
            left,
            problem: self.last_problem().clone().filter(|_| left > 0),
        }
    }

    /// Returns the maximum time for the files that wait at the end; `None` if each file has its own time limit.
    pub(crate) fn finish_within(&self) -> Option<Duration> {
        match &self.to {
            Destination::Command(_) => None,
            Destination::Store(queue) => Some(queue.settings.finish_within),
        }
    }

    /// Returns the logs, reports and packages that the store does not have, if this is a store.
    fn missing_others(&self, profile: &Profile) -> Vec<PathBuf> {
        let Destination::Store(queue) = &self.to else {
            return Vec::new();
        };
        let mut files = other_files(profile, &queue.job);
        files.retain(|file| !self.is_done(file));
        files
    }

    /// Stores logs, reports and packages, if this is a store. `report` is called with each result, and returns whether to continue.
    pub(crate) async fn put_other_files(
        &self,
        profile: &Profile,
        mut report: impl FnMut(Result<HandedOver, String>) -> bool,
    ) {
        let Destination::Store(queue) = &self.to else {
            return;
        };
        let files = self.missing_others(profile);
        self.others_left
            .store(files.len() as u64, Ordering::Relaxed);
        for file in files {
            let stored = match self.is_allowed() {
                true => self.put_other(queue, &file).await,
                false => return,
            };
            if stored.is_ok() {
                self.count.fetch_add(1, Ordering::Relaxed);
                self.others_left.fetch_sub(1, Ordering::Relaxed);
            }
            let stored = stored.map_err(|problem| {
                let why = opilio_stacks::chain(&problem);
                self.failed(&file, why)
            });
            if !report(stored) {
                return;
            }
        }
    }

    /// Puts a file into the store. Repeats this if the file grows while it is sent.
    async fn put_other(
        &self,
        queue: &StoreQueue,
        file: &Path,
    ) -> Result<HandedOver, FileStoreError> {
        let mut stored = queue.store.put(file, &self.record, true).await;
        for _ in 0..AGAIN_MAX {
            if !matches!(stored, Err(FileStoreError::Changed(_))) {
                break;
            }
            stored = queue.store.put(file, &self.record, true).await;
        }
        stored
    }

    /// Returns `true` if no file in the queue has failed.
    pub(crate) fn is_well(&self) -> bool {
        self.lock().iter().all(|one| one.failures == 0)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<WaitingFile>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreQueue {
    /// Returns `true` if the local copy of a file is to be deleted. Indexes stay: look-ups need them.
    fn deletes(&self, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        self.settings.delete_local && is_archive(&name) && file.exists()
    }

    /// Deletes the local copy of a file that is in the store, unless the file has changed.
    fn delete(&self, file: &Path, stored: &HandedOver) -> io::Result<()> {
        let now = fs::metadata(file)?;
        if !stored.is_of(now.len(), now.modified()?) {
            return Err(io::Error::other("the file has changed"));
        }
        // After a power failure, missing lines of the log could not be recovered from a deleted file.
        match File::open(&self.crawl_log) {
            Ok(log) => log.sync_data()?,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            Err(problem) => return Err(problem),
        }
        fs::remove_file(file)
    }
}

impl Handover {
    /// Hands over each file that is queued now, with one attempt, and passes the results to `report`.
    pub(crate) async fn hand_over_each(
        self: &Arc<Self>,
        mut report: impl FnMut(&Path, Result<HandedOver, String>),
    ) {
        // A file that fails is queued again after these files.
        let left = Arc::new(AtomicU64::new(self.lock().len() as u64));
        let (results, mut done) = mpsc::channel(1);
        let mut lanes = JoinSet::new();
        for _ in 0..self.lanes() {
            let (handover, left, results) = (self.clone(), left.clone(), results.clone());
            lanes.spawn(async move {
                let next = |left: u64| left.checked_sub(1);
                let more = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
                while more().is_ok() {
                    let Some(file) = handover.take(true) else {
                        break;
                    };
                    let result = handover.hand_over(&file).await;
                    if results.send((file, result)).await.is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        while let Some((file, result)) = done.recv().await {
            report(&file, result);
        }
        lanes.join_all().await;
    }
}

/// Returns the logs, reports and packages (WACZ) of a job, by name. Packages are in its folder, or beside its archive files. Drafts
/// and hidden files are left out.
fn other_files(profile: &Profile, job: &Path) -> Vec<PathBuf> {
    let reports = job.join("reports");
    let mut folders = vec![job.join(&profile.logs.directory), reports.clone()];
    let observers = fs::read_dir(reports).into_iter().flatten().flatten();
    folders.extend(observers.map(|it| it.path()).filter(|it| it.is_dir()));
    let archive = &profile.archive;
    let archives = archive.more_directories.iter().chain([&archive.directory]);
    let archives = archives.map(|folder| job.join(folder));
    let mut files = Vec::new();
    for folder in folders {
        files.extend(plain_files(&folder, |name| !name.ends_with(".draft")));
    }
    for folder in archives.chain([job.to_owned()]) {
        files.extend(plain_files(&folder, |name| name.ends_with(".wacz")));
    }
    files.sort();
    files
}

/// Returns the files of a folder with such names. Hidden files and links are left out.
fn plain_files(folder: &Path, is_wanted: fn(&str) -> bool) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|it| it.path()).filter(move |file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_plain = !name.starts_with('.') && is_wanted(&name);
        is_plain && file.symlink_metadata().is_ok_and(|it| it.is_file())
    })
}
