//! Takeover of a part of a shared crawl: a new job directory goes on from the newest snapshot of the part, under the part's name.
//!
//! The order of the steps matters. The process first joins the job under the name of the part, which it can only when the session of
//! the node before has ended. Nobody works on the part from then on. It claims the part when it has the whole snapshot, so that a
//! failure before leaves everything as it was.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_cluster::{ClusterConfig, ClusterError, PartRecord};
use opilio_crawl::{CrawlError, JobMembership, JobPart, Order, Plan, copy_job, is_job, plan};
use opilio_frontier::Frontier;
use opilio_job::directory::{self, FrozenProfile};
use opilio_job::handover::FileStore;
use opilio_profile::Profile;
use opilio_visit::policy;

use super::ControlError;
use super::delivery::profile;
use super::job_commands::CommandState;
use super::part_snapshots::{SnapshotError, SnapshotManifest};
use super::restore::{described, put_together};

/// Takes a part of a shared job over, with the arguments of the command that started the job. The job's directory, which is new, gets
/// the newest snapshot of the part. If there is none, the part begins with its seeds and with all links that it was ever sent.
///
/// # Errors
/// The node that has the part is alive, the directory is a job already, the snapshot cannot be read, or the cluster or the store fails.
pub async fn take_over(
    planned: Plan,
    order: &Order,
    config: ClusterConfig,
    part: JobPart,
) -> Result<Plan, SnapshotError> {
    let (profile, directory) = (planned.profile(), planned.directory());
    if profile.checkpoint.publish_every.is_none() {
        return Err(ClusterError::Config(format!(
            "the parts of job {:?} cannot be taken over: its profile has no checkpoint.publish-every, so there are no snapshots",
            part.job
        ))
        .into());
    }
    let seeds = planned.seed_lines();
    let joined = JobMembership::take_over(config, part, profile, Some(&seeds)).await?;
    let (mut membership, record) = joined;
    let base = planned.base();
    let is_loaded = load(&mut membership, record, profile, base, directory).await?;
    Ok(match is_loaded {
        // The job has a profile of its own now, with changes that were made while it ran.
        true => plan(order)?.with_membership(membership),
        false => planned.with_membership(membership),
    })
}

/// Takes a part of a shared job over into a new directory, in which another process is to resume it. The profile is that of another
/// directory of this machine, which has a part of the same job.
///
/// # Errors
/// As [`take_over`], or the other directory has no part that can be taken over.
pub async fn take_over_beside(
    other: &Path,
    directory: &Path,
    config: ClusterConfig,
    part: &str,
) -> Result<(), SnapshotError> {
    let known = JobPart::read(other)
        .map_err(|problem| SnapshotError::File(other.join(directory::SHARED), problem))?;
    let known = known
        .filter(JobPart::can_move)
        .ok_or(SnapshotError::NoPart)?;
    let part = JobPart {
        part: part.to_owned(),
        epoch: 0,
        ..known
    };
    let profile = profile(other)?;
    let base = FrozenProfile::read(other).map_err(ControlError::from)?.base;
    let joined = JobMembership::take_over(config, part, &profile, None).await?;
    let (mut membership, record) = joined;
    let is_loaded = load(&mut membership, record, &profile, &base, directory).await?;
    if !is_loaded {
        let _job = copy_job(other, directory).map_err(ControlError::from)?;
        let written = membership.part().write(directory);
        written.map_err(|problem| SnapshotError::File(directory.to_owned(), problem))?;
    }
    membership.leave().await;
    Ok(())
}

/// Claims a part for a new directory, and makes its job from the newest snapshot. Returns `false`, and makes nothing, if there is no
/// snapshot.
async fn load(
    membership: &mut JobMembership,
    record: Option<PartRecord>,
    profile: &Profile,
    base: &Path,
    directory: &Path,
) -> Result<bool, SnapshotError> {
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
    // On the same disk as the job.
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
    restore(downloaded.path(), directory, base, membership)?;
    let part = &membership.part().part;
    tracing::info!(
        "part {part} continues from its snapshot of {:.0}",
        manifest.made
    );
    Ok(true)
}

/// Makes the job of a part from a checkpoint. Its first fetch of each server waits for a whole politeness delay, because the last
/// fetches of the node before are unknown.
fn restore(
    checkpoint: &Path,
    job: &Path,
    base: &Path,
    membership: &JobMembership,
) -> Result<(), ControlError> {
    described(checkpoint)?;
    directory::make_restored(job, |growing| {
        put_together(checkpoint, growing)?;
        directory::set_base(growing, base)?;
        if membership.replaces_dead() {
            CommandState::note_death(growing)?;
        }
        let written = membership.part().write(growing);
        written.map_err(|problem| ControlError::file(growing, &problem))?;
        let config = policy::frontier_config(&profile(growing)?.into(), Timestamp::now);
        let mut frontier = Frontier::open(&growing.join("state"), config)?;
        frontier.wait_everywhere(Timestamp::now())?;
        Ok(frontier.persist()?)
    })
}
