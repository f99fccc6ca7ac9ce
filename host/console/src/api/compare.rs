//! Comparison of a job with another job or a checkpoint.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use opilio_control::{Author, CrawlComparison, DifferentUri, UriDifference, is_reachable};
use opilio_crawl::stays_inside;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::{IntoParams, ToSchema};

use super::jobs::blocking;
use super::{Shared, checked_limit, own_files, page};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// The other side of a comparison, and the URIs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComparedWith {
    /// Name of the other job; not set: the same job, which then needs a checkpoint on one side.
    with: Option<String>,
    /// Name of a checkpoint of the job; not set: its present state.
    checkpoint: Option<String>,
    /// Name of a checkpoint of the other job; not set: its present state.
    with_checkpoint: Option<String>,
    /// Kind of the differing URIs to list.
    #[serde(default)]
    #[param(inline)]
    list: UriDifference,
    /// Start the list after this URI: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of URIs to list.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Comparison of two crawls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ComparedJobs {
    /// The counts. `a` is the job in the path, `b` the other one.
    #[serde(flatten)]
    comparison: CrawlComparison,
    /// URIs of the requested kind, in SURT order.
    uris: Vec<DifferentUri>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Compares the last visits of a job's URIs with those of another job or of a checkpoint. Reads all URIs of both, which takes
/// some seconds for a million URIs.
#[utoipa::path(get, path = "/jobs/{job}/compare", operation_id = "compare_jobs", tag = "watch", params(("job" = String, Path, description = "Name of the job"), ComparedWith), responses((status = 200, body = ComparedJobs)))]
pub(crate) async fn compare(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(wanted): Params<ComparedWith>,
) -> Result<Json<ComparedJobs>, Problem> {
    let limit = usize::try_from(checked_limit(wanted.limit)?).unwrap_or(usize::MAX);
    let key = |uri: &str| Uri::parse(uri).map(|uri| uri.key());
    let after = wanted.after.as_deref().map(key).transpose();
    let after = after
        .map_err(|_| Problem::not_found("invalid cursor; pass the `after` of an earlier page"))?;
    let other = wanted.with.as_ref().unwrap_or(&job);
    let a = daemon.compared(&job, wanted.checkpoint).await?;
    let b = daemon.compared(other, wanted.with_checkpoint).await?;
    if a == b {
        return Err(Problem::conflict(
            "the job is compared with itself; pass another job in `with`, or a checkpoint",
        ));
    }
    let permit = daemon.commands.permit().await?;
    let job_locks = daemon.job_locks(&a, &b).await?;
    let by = Author {
        user: caller.user,
        pid: std::process::id(),
    };
    let list = wanted.list;
    let compared = blocking(move || {
        // The comparison continues after the client has disconnected, so it keeps the locks.
        let _held = (permit, job_locks);
        let mut uris = Vec::new();
        let comparison = opilio_control::compare(&a, &b, &by, |kind, uri| {
            let is_behind = || {
                let key = key(&uri.uri).ok();
                after.is_none() || key > after
            };
            if kind == list && uris.len() <= limit && is_behind() {
                uris.push(uri.clone());
            }
        });
        let has_more = uris.len() > limit;
        uris.truncate(limit);
        let last = uris.last().map(|last| last.uri.clone());
        Ok(ComparedJobs {
            comparison: comparison?,
            after: last.filter(|_| has_more),
            uris,
        })
    });
    Ok(Json(compared.await?))
}

impl Daemon {
    /// The directory of a job or of one of its checkpoints.
    async fn compared(&self, job: &str, checkpoint: Option<String>) -> Result<PathBuf, Problem> {
        let directory = self.directory(job)?;
        blocking(move || {
            own_files(&directory)?;
            let Some(name) = checkpoint.filter(|name| !name.is_empty()) else {
                return Ok(directory);
            };
            let checkpoint = opilio_control::checkpoint_named(&directory, &name)?;
            stays_inside(&directory, &checkpoint)
                .map_err(|problem| Problem::conflict(problem.to_string()))?;
            Ok(checkpoint)
        })
        .await
    }

    /// Locks two jobs, except running ones. The order of locking is the same for all requests.
    async fn job_locks(
        &self,
        a: &std::path::Path,
        b: &std::path::Path,
    ) -> Result<Vec<OwnedSemaphorePermit>, Problem> {
        let mut directories = [a, b];
        directories.sort_unstable();
        let mut job_locks = Vec::new();
        for directory in directories {
            if !is_reachable(directory) {
                job_locks.push(self.commands.lock_job(directory).await?);
            }
        }
        Ok(job_locks)
    }
}
