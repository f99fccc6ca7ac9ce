//! Parts of a crawl that several nodes share.

use axum::Json;
use axum::extract::State;
use opilio_control::{ListedPart, listed_parts, total_figures};
use opilio_crawl::{JobPart, PartFigures};
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use super::jobs::blocking;
use crate::input::PathParams;
use crate::problem::Problem;

/// Parts of a crawl that several nodes share.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartList {
    /// Name of the crawl in the cluster.
    crawl: String,
    /// Name of this job's part.
    own: String,
    /// Sum of the figures of all parts.
    total: PartFigures,
    /// All parts, in the order of their numbers.
    parts: Vec<ListedPart>,
}

/// Lists the parts of the crawl that a job shares with other nodes, and sums up their figures.
#[utoipa::path(get, path = "/jobs/{job}/parts", operation_id = "list_parts", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = PartList)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<PartList>, Problem> {
    let directory = daemon.directory(&job)?;
    let part = blocking(move || {
        JobPart::read(&directory).map_err(|problem| Problem::conflict(problem.to_string()))
    });
    let part = part.await?.ok_or_else(|| {
        Problem::conflict("the job runs on this machine alone: it has no parts on other nodes")
    })?;
    let parts = listed_parts(daemon.cluster()?.connection(), &part.job).await?;
    Ok(Json(PartList {
        total: total_figures(&parts),
        crawl: part.job,
        own: part.part,
        parts,
    }))
}
