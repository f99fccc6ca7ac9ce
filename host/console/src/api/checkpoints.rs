//! Lists the checkpoints of a job, and restores one. [`super::jobs`] creates them.

use axum::Json;
use axum::extract::State;
use opilio_control::{Author, KeptCheckpoint};
use opilio_crawl::{ProcessRecord, stays_inside};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::jobs::blocking;
use super::{Done, Page, Shared, checked_limit, own_files};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::{Body, Params, PathParams};
use crate::overview::KnownJob;
use crate::problem::Problem;

/// Checkpoints of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckpointList {
    /// Checkpoints of this page.
    checkpoints: Vec<KeptCheckpoint>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Checkpoint to return to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoingBack {
    /// Name of a checkpoint in the job's folder `checkpoints`.
    checkpoint: String,
}

/// Lists the checkpoints in the job's folder `checkpoints`, by name in descending order. The default name of a checkpoint is
/// its time. The job is not opened.
#[utoipa::path(get, path = "/jobs/{job}/checkpoints", operation_id = "list_checkpoints", tag = "jobs", params(("job" = String, Path, description = "Name of the job"), Page), responses((status = 200, body = CheckpointList)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Params(page): Params<Page>,
) -> Result<Json<CheckpointList>, Problem> {
    let limit = usize::try_from(checked_limit(page.limit)?).unwrap_or(usize::MAX);
    let directory = daemon.directory(&job)?;
    let kept =
        blocking(move || opilio_control::checkpoints(&directory).map_err(Problem::from)).await?;
    let is_behind = |kept: &KeptCheckpoint| page.after.as_ref().is_none_or(|it| kept.name < *it);
    let mut checkpoints: Vec<_> = kept.into_iter().filter(is_behind).take(limit + 1).collect();
    let has_more = checkpoints.len() > limit;
    checkpoints.truncate(limit);
    let last = checkpoints.last().map(|kept| kept.name.clone());
    Ok(Json(CheckpointList {
        checkpoints,
        after: last.filter(|_| has_more),
    }))
}

/// Returns a job that is not running to one of its checkpoints: frontier, settings, seeds and plugins. Archive, logs and
/// history of changes are kept. The job crawls again what it has crawled since. It is not started.
#[utoipa::path(post, path = "/jobs/{job}/restore", operation_id = "restore_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), request_body = GoingBack, responses((status = 200, body = Done)))]
pub(crate) async fn restore(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(GoingBack { checkpoint }): Body<GoingBack>,
) -> Result<Json<Done>, Problem> {
    let made = daemon
        .reset_to_checkpoint(&job, &caller, &checkpoint)
        .await?;
    let result = format!(
        "restored to {:.0}, with {} URIs; start the job to resume it",
        made.made, made.uris
    );
    Ok(Json(Done { result }))
}

impl Daemon {
    /// Restores the checkpoint of this name, and waits until the daemon's information on the job includes the restore.
    pub(crate) async fn reset_to_checkpoint(
        &self,
        job: &str,
        caller: &Caller,
        checkpoint: &str,
    ) -> Result<opilio_control::Checkpoint, Problem> {
        let directory = self.directory(job)?;
        let job_lock = self.commands.lock_job(&directory).await?;
        let by = Author {
            user: caller.user.clone(),
            pid: std::process::id(),
        };
        let (folder, name) = (self.folder.clone(), checkpoint.to_owned());
        let of = job.to_owned();
        let made = blocking(move || {
            let _held = job_lock;
            own_files(&directory)?;
            let checkpoint = opilio_control::checkpoint_named(&directory, &name)?;
            stays_inside(&directory, &checkpoint)
                .map_err(|problem| Problem::conflict(problem.to_string()))?;
            folder
                .reset_to_checkpoint(&of, &checkpoint, &by)
                .map_err(Problem::from)
        })
        .await?;
        self.wait_for_process_record(job).await?;
        Ok(made)
    }

    /// Waits until the daemon's information on a job is as new as the job's `process.json`.
    async fn wait_for_process_record(&self, job: &str) -> Result<(), Problem> {
        let directory = self.directory(job)?;
        let Some(written) = ProcessRecord::read(&directory).ok().flatten() else {
            return Ok(());
        };
        let mut jobs = self.jobs.subscribe();
        loop {
            let process_record = |known: &KnownJob| {
                known
                    .process_record
                    .as_ref()
                    .map(|process_record| process_record.at)
            };
            let at = jobs.borrow_and_update().get(job).and_then(process_record);
            if at >= Some(written.at) {
                return Ok(());
            }
            self.supervisor_wake.notify_one();
            if jobs.changed().await.is_err() {
                return Err(Problem::failure("the daemon is ending"));
            }
            self.directory(job)?;
        }
    }
}
