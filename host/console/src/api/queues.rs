//! Queues of a job.

use axum::Json;
use axum::extract::State;
use opilio_control::{Command, CommandResponse, ListedUri, QueueAction, QueueSort, QueueState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{Done, Page, PrecedenceNumber, Shared, checked_limit, page, take_next_page};
use crate::access::Caller;
use crate::input::{Body, Params, PathParams};
use crate::problem::Problem;

/// Selection and order of queues.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueSelector {
    /// Select queues in this state.
    #[param(inline)]
    state: Option<QueueState>,
    /// Order of the queues. Only the order by name has further pages.
    #[serde(default)]
    #[param(inline)]
    sort: QueueSort,
    /// Start after this queue: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of queues.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// List of queues.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queues {
    /// Queues of this page.
    #[schema(value_type = Vec<Object>)]
    queues: Vec<Value>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// URIs of a queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuedUris {
    /// URIs in the order in which they would be issued.
    uris: Vec<ListedUri>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Precedence of a queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Precedence {
    /// Precedence, 0 first; not set: the precedence in the queue's settings.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 255)]
    precedence: Option<PrecedenceNumber>,
}

/// Floor of the crawl.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floor {
    /// Queues of this precedence or a higher number issue nothing while this process runs; not set: all queues issue URIs.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 255)]
    floor: Option<PrecedenceNumber>,
}

/// Lists queues, with the field names of `docs/TRANSFER.md`.
#[utoipa::path(get, path = "/jobs/{job}/queues", operation_id = "list_queues", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), QueueSelector), responses((status = 200, body = Queues)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(selector): Params<QueueSelector>,
) -> Result<Json<Queues>, Problem> {
    let command = Command::Queues {
        state: selector.state,
        sort: selector.sort,
        after: selector.after,
        limit: checked_limit(selector.limit)?,
    };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let after = take_next_page(&mut answers);
    let queues = answers.into_iter().filter_map(as_queue).collect();
    Ok(Json(Queues { queues, after }))
}

fn as_queue(answer: CommandResponse) -> Option<Value> {
    match answer {
        CommandResponse::Queue { queue } => Some(queue),
        _ => None,
    }
}

/// Shows a queue.
#[utoipa::path(get, path = "/jobs/{job}/queues/{queue}", operation_id = "show_queue", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("queue" = String, Path, description = "Name of the queue")), responses((status = 200, description = "The queue", body = Object)))]
pub(crate) async fn show(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, queue)): PathParams<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let command = Command::Queue { queue };
    Ok(Json(daemon.one(&job, &caller, command, as_queue).await?))
}

/// Lists the URIs of a queue.
#[utoipa::path(get, path = "/jobs/{job}/queues/{queue}/uris", operation_id = "list_queue_uris", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("queue" = String, Path, description = "Name of the queue"), Page), responses((status = 200, body = QueuedUris)))]
pub(crate) async fn uris(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, queue)): PathParams<(String, String)>,
    Params(Page { after, limit }): Params<Page>,
) -> Result<Json<QueuedUris>, Problem> {
    let command = Command::Uris {
        queue,
        after,
        limit: checked_limit(limit)?,
    };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let after = take_next_page(&mut answers);
    let uris = answers.into_iter().filter_map(|answer| match answer {
        CommandResponse::Uri(uri) => Some(uri),
        _ => None,
    });
    Ok(Json(QueuedUris {
        uris: uris.collect(),
        after,
    }))
}

/// Carries out an action on a queue.
#[utoipa::path(post, path = "/jobs/{job}/queues/{queue}/{action}", operation_id = "act_on_queue", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("queue" = String, Path, description = "Name of the queue"), ("action" = inline(QueueAction), Path, description = "Action")), responses((status = 200, body = Done)))]
pub(crate) async fn act(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, queue, action)): PathParams<(String, String, QueueAction)>,
) -> Result<Json<Done>, Problem> {
    let command = Command::ChangeQueue { queue, action };
    daemon.have_done(&job, &caller, command).await
}

/// Sets the precedence of a queue.
#[utoipa::path(post, path = "/jobs/{job}/queues/{queue}/precedence", operation_id = "set_queue_precedence", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("queue" = String, Path, description = "Name of the queue")), request_body = Precedence, responses((status = 200, body = Done)))]
pub(crate) async fn precedence(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, queue)): PathParams<(String, String)>,
    Body(Precedence { precedence }): Body<Precedence>,
) -> Result<Json<Done>, Problem> {
    let precedence = precedence.map(|PrecedenceNumber(number)| number);
    let command = Command::QueuePrecedence { queue, precedence };
    daemon.have_done(&job, &caller, command).await
}

/// Sets the floor: only queues with a lower precedence number issue URIs.
#[utoipa::path(post, path = "/jobs/{job}/floor", operation_id = "set_precedence_floor", tag = "frontier", params(("job" = String, Path, description = "Name of the job")), request_body = Floor, responses((status = 200, body = Done)))]
pub(crate) async fn floor(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(Floor { floor }): Body<Floor>,
) -> Result<Json<Done>, Problem> {
    let floor = floor.map(|PrecedenceNumber(number)| number);
    let command = Command::Floor { floor };
    daemon.have_done(&job, &caller, command).await
}

/// Shortens all delays of queues that are longer than politeness and back-off allow, as after a clock was ahead.
#[utoipa::path(post, path = "/jobs/{job}/wake", operation_id = "wake_queues", tag = "frontier", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Done)))]
pub(crate) async fn wake(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    daemon.have_done(&job, &caller, Command::WakeOverlong).await
}
