//! Snapshots of a part of a shared crawl in the job's archive store, from which another node can take the part over.
//!
//! A snapshot is a checkpoint. It is valid once the cluster names it, which is the last of these steps:
//!
//! 1. The frontier is copied, with the number of the last inbox message that it includes.
//! 2. All archive files are closed and stored. So every capture in the snapshot is in the store.
//! 3. The files of the checkpoint and a manifest are stored.
//! 4. The cluster records the manifest, if this directory still has the part.
//! 5. Messages that the snapshot includes are removed from the inbox, and the previous snapshot is removed from the store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_cluster::{ClusterError, MessagePlace, PublishedSnapshot};
use opilio_crawl::{CrawlError, JobMembership, PublishedState};
use opilio_job::handover::{FileStore, FileStoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Checkpoint, ControlError, Running};
use opilio_job::alerts::{AlertKind, Severity};

/// Version of the manifest's format.
const VERSION: u32 = 1;

/// Name of the manifest in a snapshot's folder.
const MANIFEST: &str = "manifest.json";

/// Interval at which the publisher checks whether a snapshot is due.
const LOOK: Duration = Duration::from_millis(250);

/// Interval of snapshots if `checkpoint.publish-every` was removed after the job was created.
const EVERY_DEFAULT: Duration = Duration::from_secs(600);

/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// Shortest pause between two snapshots of a part that has nothing left to do. It is short because the other parts wait for its
/// last snapshot.
const REST_PAUSE: Duration = Duration::from_millis(500);

/// Pause before an early snapshot, as a multiple of the time that the last snapshot took.
const PAUSE_FACTOR: u32 = 4;

/// Maximum files of a snapshot that are stored, read or removed at the same time.
const FILES_AT_ONCE: usize = 8;

/// Maximum inbox messages since the last snapshot. With more, the next snapshot is made early.
const INBOX_MAX: u64 = 10_000;

/// Subject of the alert about snapshots.
const SUBJECT: &str = "snapshot";

/// Manifest of a snapshot: the list of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotManifest {
    version: u32,
    job: String,
    part: String,
    epoch: u64,
    number: u64,
    /// Time of the saved state.
    pub(super) made: Timestamp,
    /// Number of the last message of the part's inbox that the snapshot includes.
    covered: u64,
    /// Known URIs.
    uris: u64,
    files: Vec<SnapshotFile>,
}

/// File of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SnapshotFile {
    /// Path in the checkpoint, and below the folder of the manifest in the store.
    path: String,
    size: u64,
    sha256: String,
}

/// The reason why a snapshot was not published, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The cluster failed, or another directory has the part.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The archive or the frontier failed.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// The checkpoint failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] FileStoreError),
    /// A file of the snapshot cannot be read or written.
    #[error("cannot use {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The store lacks archive files.
    #[error("{0} archive files are not in the store: `opilio job handover JOB` stores them")]
    NotStored(usize),
    /// This process does not have its part at present.
    #[error("this process does not have its part of the job now")]
    NoPart,
    /// The crawl has ended.
    #[error("the crawl has ended")]
    Ended,
    /// The manifest is invalid or of another version.
    #[error("invalid manifest of a snapshot {url}: {problem}")]
    Manifest {
        /// URL of the manifest.
        url: String,
        /// Description of the error.
        problem: String,
    },
}

/// Publishes the snapshots of a running crawl.
pub(crate) struct Publisher {
    running: Running,
    membership: Arc<JobMembership>,
    store: Arc<FileStore>,
    /// Folder of the job's files in the store.
    folder: String,
    /// End of the last attempt.
    last: Instant,
    /// Duration of the last attempt, without the wait for archive files.
    took: Duration,
    waited: Duration,
    is_failing: bool,
    /// Number of messages that were delivered to the frontier before the last attempt.
    delivered: u64,
    /// Number of the last inbox message that can be removed.
    acknowledged: Option<MessagePlace>,
    /// Manifests of replaced snapshots that this process has removed from the store since it last published one.
    removed: Vec<String>,
}

impl Publisher {
    /// Returns the publisher of a crawl whose part can be taken over; `None` for other crawls.
    pub(crate) fn of(running: &Running) -> Option<Result<Publisher, SnapshotError>> {
        let membership = running.context.membership.clone()?;
        let folder = membership.part().store_folder()?;
        let profile = &running.context.profile;
        let open = || -> Result<FileStore, SnapshotError> {
            let settings = profile.archive.store.as_ref().ok_or(CrawlError::NoStore)?;
            Ok(FileStore::open_as(settings, &running.job, &folder)?)
        };
        Some(open().map(|store| Publisher {
            running: running.clone(),
            membership,
            store: Arc::new(store),
            folder: folder.clone(),
            last: Instant::now(),
            took: Duration::ZERO,
            waited: Duration::ZERO,
            is_failing: false,
            delivered: 0,
            acknowledged: None,
            removed: Vec::new(),
        }))
    }

    /// Publishes snapshots until the crawl ends.
    pub(crate) async fn keep(mut self, mut ended: watch::Receiver<()>) -> Publisher {
        while tokio::time::timeout(LOOK, ended.changed()).await.is_err() {
            if !self.membership.has_part() {
                continue;
            }
            self.acknowledge().await;
            if self.is_due() {
                let going_on = ended.clone();
                self.attempt(Some(&going_on)).await;
            }
        }
        self
    }

    /// Publishes the last snapshot of a crawl that has ended, if anything has changed. All archive files are closed and handed
    /// over.
    pub(crate) async fn finish(&mut self) {
        if self.membership.has_part() && !self.is_published() {
            self.attempt(None).await;
        }
        self.acknowledge().await;
    }

    fn is_published(&self) -> bool {
        let changes = self.running.context.frontier.lock().changes();
        self.membership.is_published(changes)
    }

    fn is_due(&self) -> bool {
        if self.is_published() {
            return false;
        }
        let since = self.last.elapsed();
        if self.is_failing {
            return since >= RETRY;
        }
        let early = self.took * PAUSE_FACTOR;
        let every = self.running.context.current().checkpoint.publish_every;
        let inbox = self.membership.delivered() - self.delivered;
        since >= every.unwrap_or(EVERY_DEFAULT).max(early)
            || inbox > INBOX_MAX && since >= early
            || self.membership.is_at_rest() && since >= early.max(REST_PAUSE)
    }

    /// Publishes a snapshot, and logs the result. A failure raises an alert. `None` for `ended` means that the crawl has ended.
    async fn attempt(&mut self, ended: Option<&watch::Receiver<()>>) {
        let began = Instant::now();
        self.waited = Duration::ZERO;
        self.delivered = self.membership.delivered();
        let published = self.publish(ended).await;
        self.last = Instant::now();
        self.took = began.elapsed().saturating_sub(self.waited);
        self.is_failing = published.is_err();
        let context = &self.running.context;
        match published {
            Ok(snapshot) => {
                context.clear(AlertKind::Checkpoint, SUBJECT);
                let words = format!("{} with {} URIs", snapshot.manifest, snapshot.uris);
                self.running.log.crawl("snapshot", &words);
            }
            // The last snapshot is made after the end of the crawl.
            Err(SnapshotError::Ended) => {}
            Err(problem) => {
                let why = opilio_stacks::chain(&problem);
                let why = format!("no snapshot of the part was published: {why}");
                self.running.log.crawl("snapshot", &why);
                context.raise(AlertKind::Checkpoint, SUBJECT, Severity::Warning, &why);
            }
        }
    }

    async fn publish(
        &mut self,
        ended: Option<&watch::Receiver<()>>,
    ) -> Result<PublishedSnapshot, SnapshotError> {
        let (job, own) = (self.membership.job(), self.membership.part().own());
        job.check_part(own).await?;
        let record = job.part(own.name).await?;
        let before = record.and_then(|record| record.snapshot);
        let number = before.map_or(0, |before| before.number) + 1;
        // Read before the frontier is copied.
        let covered = self.membership.taken();
        let directory = self.running.job.join("scratch").join("snapshot");
        let (checkpoint, changes) = self.copy_frontier(directory.clone()).await?;
        let began = Instant::now();
        let stored = self.store_archive(ended).await;
        self.waited = began.elapsed();
        stored?;
        let folder = Path::new(&self.folder)
            .join("snapshots")
            .join(number.to_string());
        let manifest = SnapshotManifest {
            version: VERSION,
            job: self.membership.part().job.clone(),
            part: own.name.to_owned(),
            epoch: own.epoch,
            number,
            made: checkpoint.made,
            covered: covered.sequence,
            uris: checkpoint.uris,
            files: self.store_files(&directory, &folder).await?,
        };
        let file = directory.join(MANIFEST);
        let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        fs::write(&file, text).map_err(|problem| SnapshotError::File(file.clone(), problem))?;
        let path = folder.join(MANIFEST);
        let sums = self.store.put_object(&file, &path).await?;
        let snapshot = PublishedSnapshot {
            number,
            manifest: path.display().to_string(),
            bytes: sums.size,
            sha256: sums.sha256,
            covered: covered.sequence,
            uris: checkpoint.uris,
            made_ms: checkpoint.made.as_millisecond(),
        };
        let published = job.publish_snapshot(own, snapshot.clone(), &self.removed);
        let replaced = published.await?;
        self.removed.clear();
        self.membership.set_published(PublishedState {
            changes,
            covered,
            number,
        });
        self.acknowledged = Some(covered).filter(|covered| covered.sequence > 0);
        let removed = fs::remove_dir_all(&directory);
        removed.map_err(|problem| SnapshotError::File(directory, problem))?;
        for manifest in replaced {
            match self.remove(&manifest).await {
                Ok(()) => self.removed.push(manifest),
                // The next snapshot tries again.
                Err(problem) => {
                    let problem = opilio_stacks::chain(&problem);
                    tracing::warn!("cannot remove snapshot {manifest} yet: {problem}");
                }
            }
        }
        Ok(snapshot)
    }

    /// Writes a checkpoint. Returns it with the number of changes that it includes.
    async fn copy_frontier(&self, directory: PathBuf) -> Result<(Checkpoint, u64), SnapshotError> {
        let running = self.running.clone();
        blocking(move || {
            let failed = |problem| SnapshotError::File(directory.clone(), problem);
            match fs::remove_dir_all(&directory) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(problem));
                }
                _ => fs::create_dir_all(&directory).map_err(failed)?,
            }
            running.context.finish_left_files()?;
            let profile = running.context.current();
            let admin = running.admin(&profile);
            let state = admin.copied_state()?;
            let changes = state.frontier.changes();
            let job = running.job.clone();
            let made = Timestamp::now();
            let written = admin.write_checkpoint(&directory, job, made, true, state)?;
            Ok((written, changes))
        })
        .await
    }

    /// Closes all archive files, and waits until the store has them.
    async fn store_archive(
        &self,
        ended: Option<&watch::Receiver<()>>,
    ) -> Result<(), SnapshotError> {
        let context = self.running.context.clone();
        blocking(move || Ok(context.close_archive_files()?)).await?;
        loop {
            let context = self.running.context.clone();
            let left = blocking(move || Ok(context.files_not_stored()?)).await?;
            let Some(ended) = ended.filter(|_| left > 0) else {
                return match left {
                    0 => Ok(()),
                    left => Err(SnapshotError::NotStored(left)),
                };
            };
            if ended.has_changed().is_err() {
                return Err(SnapshotError::Ended);
            }
            must_have_part(&self.membership)?;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn store_files(
        &self,
        directory: &Path,
        folder: &Path,
    ) -> Result<Vec<SnapshotFile>, SnapshotError> {
        let mut files = Vec::new();
        let walked = |problem| SnapshotError::File(directory.to_owned(), problem);
        walk(directory, Path::new(""), &mut files).map_err(walked)?;
        let put = files.into_iter().map(|path| {
            let (store, membership) = (self.store.clone(), self.membership.clone());
            let (file, to) = (directory.join(&path), folder.join(&path));
            async move {
                must_have_part(&membership)?;
                let sums = store.put_object(&file, &to).await?;
                Ok(SnapshotFile {
                    path: path.display().to_string(),
                    size: sums.size,
                    sha256: sums.sha256,
                })
            }
        });
        let mut stored = run_concurrently(put).await?;
        stored.sort_by(|one, other| one.path.cmp(&other.path));
        must_have_part(&self.membership)?;
        Ok(stored)
    }

    /// Removes inbox messages that the newest snapshot includes.
    async fn acknowledge(&mut self) {
        let Some(covered) = self.acknowledged else {
            return;
        };
        let (job, inbox) = (self.membership.job(), self.membership.inbox());
        match job.acknowledge_links(inbox, covered).await {
            Ok(()) => self.acknowledged = None,
            Err(problem) => tracing::debug!("the inbox was not emptied: {problem}"),
        }
    }

    /// Removes a replaced snapshot. Its manifest is removed last, so that an interrupted removal can be completed.
    async fn remove(&self, manifest: &str) -> Result<(), SnapshotError> {
        let path = Path::new(manifest);
        if !self.store.has_object(path).await? {
            return Ok(());
        }
        let through = self.running.job.join("scratch").join("replaced.json");
        let manifest = SnapshotManifest::read(&self.store, path, None, &through).await?;
        let folder = path.parent().unwrap_or(path);
        let removed = manifest.files.into_iter().map(|file| {
            let (store, membership) = (self.store.clone(), self.membership.clone());
            let path = folder.join(file.path);
            async move {
                must_have_part(&membership)?;
                Ok(store.remove_object(&path).await?)
            }
        });
        run_concurrently(removed).await?;
        must_have_part(&self.membership)?;
        Ok(self.store.remove_object(path).await?)
    }
}

fn must_have_part(membership: &JobMembership) -> Result<(), SnapshotError> {
    match membership.has_part() {
        true => Ok(()),
        false => Err(SnapshotError::NoPart),
    }
}

impl SnapshotManifest {
    /// Reads and checks a manifest, through a file.
    async fn read(
        store: &FileStore,
        path: &Path,
        sha256: Option<&str>,
        through: &Path,
    ) -> Result<SnapshotManifest, SnapshotError> {
        store.get_object(path, through, sha256).await?;
        let text = fs::read_to_string(through);
        let text = text.map_err(|problem| SnapshotError::File(through.to_owned(), problem))?;
        SnapshotManifest::parse(&text).map_err(|problem| SnapshotError::Manifest {
            url: store.object_url(path),
            problem,
        })
    }

    /// Parses a manifest. Paths that lead out of its folder are errors.
    fn parse(text: &str) -> Result<SnapshotManifest, String> {
        let manifest: SnapshotManifest =
            serde_json::from_str(text).map_err(|problem| problem.to_string())?;
        if manifest.version != VERSION {
            let found = manifest.version;
            return Err(format!("version {found} is not supported, only {VERSION}"));
        }
        let is_inside = |file: &&SnapshotFile| {
            let mut steps = Path::new(&file.path).components();
            !file.path.is_empty() && steps.all(|it| matches!(it, std::path::Component::Normal(_)))
        };
        match manifest.files.iter().find(|file| !is_inside(file)) {
            None => Ok(manifest),
            Some(outside) => Err(format!("invalid path {:?}", outside.path)),
        }
    }

    /// Downloads a snapshot from the store into a new folder, as a checkpoint. Verifies the SHA-256 of each file.
    pub(super) async fn download(
        store: &Arc<FileStore>,
        snapshot: &PublishedSnapshot,
        to: &Path,
    ) -> Result<SnapshotManifest, SnapshotError> {
        let path = Path::new(&snapshot.manifest);
        let sha256 = Some(&*snapshot.sha256);
        let manifest = SnapshotManifest::read(store, path, sha256, &to.join(MANIFEST)).await?;
        let folder = path.parent().unwrap_or(path);
        let files = manifest.files.clone().into_iter().map(|file| {
            let (store, to) = (store.clone(), to.join(&file.path));
            let from = folder.join(&file.path);
            async move {
                let parent = to.parent().unwrap_or(&to);
                fs::create_dir_all(parent)
                    .map_err(|problem| SnapshotError::File(parent.to_owned(), problem))?;
                Ok(store.get_object(&from, &to, Some(&file.sha256)).await?)
            }
        });
        run_concurrently(files).await?;
        Ok(manifest)
    }
}

/// Runs these tasks, at most [`FILES_AT_ONCE`] at the same time. Returns the results in any order, or the first error.
async fn run_concurrently<T: Send + 'static>(
    mut work: impl Iterator<Item = impl Future<Output = Result<T, SnapshotError>> + Send + 'static>,
) -> Result<Vec<T>, SnapshotError> {
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    loop {
        while running.len() < FILES_AT_ONCE
            && let Some(next) = work.next()
        {
            running.spawn(next);
        }
        match running.join_next().await {
            None => return Ok(done),
            Some(Ok(result)) => done.push(result?),
            Some(Err(panic)) => return Err(ControlError::failure(&panic).into()),
        }
    }
}

/// Adds the paths of all files in a folder, relative to it. Lock files are left out.
fn walk(folder: &Path, inside: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            walk(folder, &path, files)?;
        } else if entry.file_name() != "lock" {
            files.push(path);
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, SnapshotError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(ControlError::failure(&panic).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str) -> SnapshotManifest {
        SnapshotManifest {
            version: VERSION,
            job: "news".to_owned(),
            part: "a".to_owned(),
            epoch: 1,
            number: 3,
            made: Timestamp::UNIX_EPOCH,
            covered: 17,
            uris: 5,
            files: vec![SnapshotFile {
                path: path.to_owned(),
                size: 1,
                sha256: "00".to_owned(),
            }],
        }
    }

    fn parsed(manifest: &SnapshotManifest) -> Result<SnapshotManifest, String> {
        SnapshotManifest::parse(&serde_json::to_string(manifest).unwrap())
    }

    #[test]
    fn paths_out_of_the_folder_of_a_manifest_are_refused() {
        let whole = manifest("state/store/1");
        assert_eq!(parsed(&whole), Ok(whole));
        for outside in ["../x", "/etc/passwd", "state/../../x", "."] {
            let problem = parsed(&manifest(outside)).unwrap_err();
            assert_eq!(problem, format!("invalid path {outside:?}"));
        }
        assert!(parsed(&manifest("")).is_err());
        let later = SnapshotManifest {
            version: 2,
            ..manifest("x")
        };
        assert_eq!(
            parsed(&later).unwrap_err(),
            "version 2 is not supported, only 1"
        );
        assert!(SnapshotManifest::parse("{}").is_err());
    }

    #[test]
    fn snapshots_have_no_lock_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("state/store")).unwrap();
        for file in [
            "state/lock",
            "state/format",
            "state/store/1",
            "job.json.copy",
        ] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let mut files = Vec::new();
        walk(folder.path(), Path::new(""), &mut files).unwrap();
        files.sort();
        let files: Vec<_> = files.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(files, ["job.json.copy", "state/format", "state/store/1"]);
    }
}
