//! Takeover of a part of a shared crawl: a new job directory continues from the newest snapshot of the part, under the part's name.
//!
//! The order of the steps matters. The process first joins the job under the name of the part. It can do so only after the session
//! of the previous owner has ended. From then on, no other process works on the part. It claims the part after it has downloaded
//! the whole snapshot, so an earlier failure changes nothing. A daemon passes the part on to the process of the new job. If the
//! machine is lost before that process joins, the part counts as one whose process has died.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_cluster::{ClusterConfig, ClusterError, PartRecord};
use opilio_crawl::{
    CrawlError, FetchedProfile, JobMembership, JobPart, Order, Plan, ProfileSource, is_job, plan,
};
use opilio_frontier::Frontier;
use opilio_job::changes;
use opilio_job::directory::{self, FrozenProfile};
use opilio_job::fetched_files::FETCHED_FOLDER;
use opilio_job::handover::FileStore;
use opilio_job::profile::frozen_profile;
use opilio_stacks::components::JobPlugins;
use opilio_visit::policy;

use super::ControlError;
use super::checkpoint::copy_folder;
use super::job_commands::CommandState;
use super::part_snapshots::{SnapshotError, SnapshotManifest};
use super::restore::{described, put_together};

/// Takes over a part of a shared job into a new job directory, with the given profile or the one fetched from the cluster. The
/// directory gets the newest snapshot of the part. Without a snapshot, the part begins with its seeds and with all links that were
/// ever sent to it.
///
/// # Errors
/// The node that has the part is alive, the directory is a job already, the snapshot cannot be read, or the cluster or the store
/// fails.
pub async fn take_over(
    planned: Plan,
    order: &Order,
    config: ClusterConfig,
    part: JobPart,
) -> Result<Plan, SnapshotError> {
    must_have_snapshots(&planned, &part)?;
    let files = planned.shared_files(&part)?;
    let joined = JobMembership::take_over(config, part, planned.profile(), &files).await?;
    let (mut membership, record) = joined;
    let is_loaded = load(&mut membership, record, &planned).await?;
    Ok(match is_loaded {
        // The new job has its own profile, which includes changes that were made while the job ran.
        true => plan(order)?.with_membership(membership),
        false => planned.with_membership(membership),
    })
}

/// Part of a shared job that a daemon takes over.
#[derive(Clone, Debug)]
pub struct PartToTake {
    /// Name of the job in the cluster.
    pub job: String,
    /// Name of the part.
    pub part: String,
    /// Epoch of the part when it was chosen; 0 if no directory had it.
    pub epoch: u64,
    /// The new job directory.
    pub directory: PathBuf,
    /// The daemon's configuration, an absolute path.
    pub config: PathBuf,
    /// Directory of another part of the job on this machine. If set, relative paths of files with secrets start at the same folder
    /// as in its profile; otherwise at the folder of `config`.
    pub beside: Option<PathBuf>,
    /// Folder for compiled components.
    pub component_cache: Option<PathBuf>,
}

/// Takes over a part of a shared job into a new directory; another process resumes it there. Fetches profile, seeds and components
/// from the cluster.
///
/// # Errors
/// As [`take_over`]; or another directory has got the part since it was chosen, the cluster lacks a file, or this machine lacks
/// something that the profile needs.
pub async fn take_over_fetched(
    config: ClusterConfig,
    take: PartToTake,
) -> Result<(), SnapshotError> {
    let beside = take.beside.as_deref().map(FrozenProfile::read);
    let base = match beside.transpose().map_err(ControlError::from)? {
        Some(frozen) => frozen.base,
        None => take.config.parent().unwrap_or(Path::new("")).to_owned(),
    };
    let epoch = take.epoch;
    let fetched = FetchedProfile::fetch(&config, &take.job, &base, &take.directory).await?;
    let part = JobPart {
        job: take.job,
        parts: fetched.parts().to_vec(),
        part: take.part,
        partitions: config.partitions,
        config: take.config,
        epoch: 0,
    };
    // Keeps the fetched files until the job is created.
    let order = Order {
        profile: ProfileSource::Fetched(Arc::new(fetched)),
        seeds: Vec::new(),
        contact_url: None,
        job: Some(take.directory),
        component_cache: take.component_cache,
    };
    let planning = order.clone();
    let planned = tokio::task::spawn_blocking(move || {
        let planned = plan(&planning)?;
        planned.check_machine()?;
        Ok::<Plan, CrawlError>(planned)
    });
    let planned = planned.await;
    let planned = planned.map_err(|panic| ControlError::failure(&panic))??;
    must_have_snapshots(&planned, &part)?;
    let files = planned.shared_files(&part)?;
    let joined = JobMembership::take_over(config, part, planned.profile(), &files).await?;
    let (mut membership, record) = joined;
    if let Err(taken) = is_as_chosen(&membership.part().part, epoch, record.as_ref()) {
        // Leave at once, because the process of the other directory is about to join.
        membership.withdraw().await;
        return Err(taken.into());
    }
    if !load(&mut membership, record, &planned).await? {
        let job = planned.make()?;
        let written = membership.part().write(job.directory());
        written.map_err(|problem| SnapshotError::File(job.directory().to_owned(), problem))?;
    }
    membership.hand_over().await;
    Ok(())
}

/// Checks that no other directory has claimed the part while this machine fetched its files. The name of the part does not protect
/// it: another daemon that was faster leaves the job before its process joins, and the name is free in between.
fn is_as_chosen(part: &str, epoch: u64, record: Option<&PartRecord>) -> Result<(), ClusterError> {
    match record {
        Some(record) if record.epoch != epoch => Err(ClusterError::Config(format!(
            "node {:?} has taken over part {part:?} in the meantime",
            record.node
        ))),
        _ => Ok(()),
    }
}

fn must_have_snapshots(planned: &Plan, part: &JobPart) -> Result<(), ClusterError> {
    match planned.profile().checkpoint.publish_every {
        Some(_) => Ok(()),
        None => Err(ClusterError::Config(format!(
            "the parts of job {:?} cannot be taken over: its profile has no checkpoint.publish-every, so there are no snapshots",
            part.job
        ))),
    }
}

/// Claims a part for a new directory, and creates its job from the newest snapshot. Without a snapshot, creates nothing and returns
/// `false`.
async fn load(
    membership: &mut JobMembership,
    record: Option<PartRecord>,
    planned: &Plan,
) -> Result<bool, SnapshotError> {
    let (profile, directory) = (planned.profile(), planned.directory());
    if is_job(directory) {
        let part = JobPart::read(directory).ok().flatten();
        return Err(CrawlError::OtherNodes {
            job: directory.to_owned(),
            nodes: part.map_or("none".to_owned(), |part| part.parts.join(", ")),
        }
        .into());
    }
    let snapshot = record.as_ref().and_then(|record| record.snapshot.as_ref());
    let Some(snapshot) = snapshot else {
        membership.claim(record.as_ref()).await?;
        return Ok(false);
    };
    // The folder is on the same disk as the job, so that files can be renamed.
    let beside = match directory.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let failed = |problem| SnapshotError::File(beside.to_owned(), problem);
    fs::create_dir_all(beside).map_err(failed)?;
    let downloaded = tempfile::Builder::new()
        .prefix(".snapshot-")
        .tempdir_in(beside)
        .map_err(failed)?;
    let settings = profile.archive.store.as_ref();
    let store = FileStore::open(settings.ok_or(CrawlError::NoStore)?, directory)?;
    let store = Arc::new(store);
    let manifest = SnapshotManifest::download(&store, snapshot, downloaded.path()).await?;
    membership.claim(record.as_ref()).await?;
    restore(downloaded.path(), planned, membership)?;
    let part = &membership.part().part;
    tracing::info!(
        "part {part} continues from its snapshot of {:.0}",
        manifest.made
    );
    Ok(true)
}

/// Creates the job of a part from a checkpoint. Each queue first waits for a whole politeness delay, because the last fetches of
/// the previous node are unknown.
fn restore(
    checkpoint: &Path,
    planned: &Plan,
    membership: &JobMembership,
) -> Result<(), ControlError> {
    described(checkpoint)?;
    directory::make_restored(planned.directory(), |growing| {
        put_together(checkpoint, growing)?;
        set_files(growing, planned)?;
        if membership.replaces_dead() {
            CommandState::note_death(growing)?;
        }
        let written = membership.part().write(growing);
        written.map_err(|problem| ControlError::file(growing, &problem))?;
        let config = policy::frontier_config(&frozen_profile(growing)?.into(), Timestamp::now);
        let mut frontier = Frontier::open(&growing.join("state"), config)?;
        frontier.wait_everywhere(Timestamp::now())?;
        Ok(frontier.persist()?)
    })
}

/// Sets the folders and copies of files of this machine in a job from another machine. Its plugins keep their components.
fn set_files(growing: &Path, planned: &Plan) -> Result<(), ControlError> {
    directory::set_base(growing, planned.base())?;
    let renamed = JobPlugins::read(growing).and_then(|mut plugins| {
        plugins.rename(planned.job_plugins());
        plugins.write(growing, &[])
    });
    renamed.map_err(|problem| ControlError::failure(&problem))?;
    let layers = changes::keep_layers(growing, planned.profile().extended());
    let written = layers.and_then(|()| planned.fetched_files().write(growing));
    written.map_err(|problem| ControlError::file(growing, &problem))?;
    let (fetched, copies) = (
        planned.directory().join(FETCHED_FOLDER),
        growing.join(FETCHED_FOLDER),
    );
    match fs::remove_dir_all(&copies) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
            return Err(ControlError::file(&copies, &problem));
        }
        _ => {}
    }
    match fetched.exists() {
        true => copy_folder(&fetched, &copies)
            .map_err(|(path, problem)| ControlError::file(&path, &problem)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_another_daemon_has_claimed_is_not_taken_over() {
        let record = PartRecord {
            epoch: 2,
            node: "b".to_owned(),
            claimed_ms: 0,
            snapshot: None,
            replaced: Vec::new(),
        };
        let check = |epoch, record| {
            let checked = is_as_chosen("a", epoch, record);
            checked.map_err(|taken| taken.to_string())
        };
        assert_eq!(check(0, None), Ok(()));
        assert_eq!(check(2, Some(&record)), Ok(()));
        let taken = Err("node \"b\" has taken over part \"a\" in the meantime".to_owned());
        assert_eq!(check(1, Some(&record)), taken);
        assert_eq!(check(0, Some(&record)), taken);
    }
}
