//! Queues of a job.

use axum::Json;
use axum::extract::State;
use opilio_control::{Answer, Command, QueueSort, QueueState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{Done, Page, PrecedenceNumber, Shared, checked_limit, more, page};
use crate::access::Caller;
use crate::input::{Body, Params, Place};
use crate::problem::Problem;

/// Which queues, and in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// In this state.
    #[param(inline)]
    state: Option<QueueState>,
    /// In this order; only by name there are further pages.
    #[serde(default)]
    #[param(inline)]
    sort: QueueSort,
    /// Behind this one, which the page before ended with.
    after: Option<String>,
    /// So many at most.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Queues.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queues {
    /// A page of them.
    #[schema(value_type = Vec<Object>)]
    queues: Vec<Value>,
    /// Where the next page begins; none: this is the last.
    after: Option<String>,
}

/// URIs of a queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuedUris {
    /// In the order in which they would go.
    uris: Vec<QueuedUri>,
    /// Where the next page begins; none: this is the last.
    after: Option<String>,
}

/// A URI of a queue.
#[derive(Debug, Serialize, ToSchema)]
struct QueuedUri {
    /// What is known of it.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    uri: Value,
    /// It is among those that are ready.
    is_ready: Option<bool>,
    /// It is being fetched.
    in_process: Option<bool>,
}

/// What is done with a queue.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueueAction {
    /// It gives no URI any more, but takes them.
    Retire,
    /// It gives URIs again.
    Unretire,
    /// It gives no URI for a while.
    Freeze,
    /// It gives URIs again.
    Thaw,
    /// Its rest or back-off ends.
    Wake,
}

/// A precedence.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Precedence {
    /// 0 first; none: what its settings say.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 255)]
    precedence: Option<PrecedenceNumber>,
}

/// A floor.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floor {
    /// Queues of this precedence or a higher number give no URI while this process runs; none: all give.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 255)]
    floor: Option<PrecedenceNumber>,
}

/// Queues, with the names of `docs/TRANSFER.md`.
#[utoipa::path(get, path = "/jobs/{job}/queues", operation_id = "list_queues", tag = "frontier", params(("job" = String, Path, description = "Its name"), Wanted), responses((status = 200, body = Queues)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Queues>, Problem> {
    let command = Command::Queues {
        state: wanted.state,
        sort: wanted.sort,
        after: wanted.after,
        limit: checked_limit(wanted.limit)?,
    };
    let mut answers = daemon.ask(&job, &caller, command).await?;
    let after = more(&mut answers);
    let queues = answers.into_iter().filter_map(as_queue).collect();
    Ok(Json(Queues { queues, after }))
}

fn as_queue(answer: Answer) -> Option<Value> {
    match answer {
        Answer::Queue { queue } => Some(queue),
        _ => None,
    }
}

/// A queue.
#[utoipa::path(get, path = "/jobs/{job}/queues/{queue}", operation_id = "show_queue", tag = "frontier", params(("job" = String, Path, description = "Its name"), ("queue" = String, Path, description = "The queue's name")), responses((status = 200, description = "The queue", body = Object)))]
pub(crate) async fn show(
    State(daemon): Shared,
    caller: Caller,
    Place((job, queue)): Place<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let command = Command::Queue { queue };
    Ok(Json(daemon.one(&job, &caller, command, as_queue).await?))
}

/// The URIs of a queue.
#[utoipa::path(get, path = "/jobs/{job}/queues/{queue}/uris", operation_id = "list_queue_uris", tag = "frontier", params(("job" = String, Path, description = "Its name"), ("queue" = String, Path, description = "The queue's name"), Page), responses((status = 200, body = QueuedUris)))]
pub(crate) async fn uris(
    State(daemon): Shared,
    caller: Caller,
    Place((job, queue)): Place<(String, String)>,
    Params(Page { after, limit }): Params<Page>,
) -> Result<Json<QueuedUris>, Problem> {
    let command = Command::Uris {
        queue,
        after,
        limit: checked_limit(limit)?,
    };
    let mut answers = daemon.ask(&job, &caller, command).await?;
    let after = more(&mut answers);
    let uris = answers.into_iter().filter_map(|answer| match answer {
        Answer::Uri {
            uri,
            is_ready,
            in_process,
        } => Some(QueuedUri {
            uri,
            is_ready,
            in_process,
        }),
        _ => None,
    });
    Ok(Json(QueuedUris {
        uris: uris.collect(),
        after,
    }))
}

/// Does something with a queue.
#[utoipa::path(post, path = "/jobs/{job}/queues/{queue}/{action}", operation_id = "act_on_queue", tag = "frontier", params(("job" = String, Path, description = "Its name"), ("queue" = String, Path, description = "The queue's name"), ("action" = inline(QueueAction), Path, description = "What is done")), responses((status = 200, body = Done)))]
pub(crate) async fn act(
    State(daemon): Shared,
    caller: Caller,
    Place((job, queue, action)): Place<(String, String, QueueAction)>,
) -> Result<Json<Done>, Problem> {
    let command = match action {
        QueueAction::Retire => Command::Retire { queue },
        QueueAction::Unretire => Command::Unretire { queue },
        QueueAction::Freeze => Command::Freeze { queue },
        QueueAction::Thaw => Command::Thaw { queue },
        QueueAction::Wake => Command::Wake { queue },
    };
    daemon.have_done(&job, &caller, command).await
}

/// Changes the precedence of a queue.
#[utoipa::path(post, path = "/jobs/{job}/queues/{queue}/precedence", operation_id = "set_queue_precedence", tag = "frontier", params(("job" = String, Path, description = "Its name"), ("queue" = String, Path, description = "The queue's name")), request_body = Precedence, responses((status = 200, body = Done)))]
pub(crate) async fn precedence(
    State(daemon): Shared,
    caller: Caller,
    Place((job, queue)): Place<(String, String)>,
    Body(Precedence { precedence }): Body<Precedence>,
) -> Result<Json<Done>, Problem> {
    let precedence = precedence.map(|PrecedenceNumber(number)| number);
    let command = Command::QueuePrecedence { queue, precedence };
    daemon.have_done(&job, &caller, command).await
}

/// Lets only queues of low precedence numbers give URIs.
#[utoipa::path(post, path = "/jobs/{job}/floor", operation_id = "set_precedence_floor", tag = "frontier", params(("job" = String, Path, description = "Its name")), request_body = Floor, responses((status = 200, body = Done)))]
pub(crate) async fn floor(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Body(Floor { floor }): Body<Floor>,
) -> Result<Json<Done>, Problem> {
    let floor = floor.map(|PrecedenceNumber(number)| number);
    let command = Command::Floor { floor };
    daemon.have_done(&job, &caller, command).await
}

/// Ends the rests of queues that are longer than politeness and back-off could have them, as after a clock that was ahead.
#[utoipa::path(post, path = "/jobs/{job}/wake", operation_id = "wake_queues", tag = "frontier", params(("job" = String, Path, description = "Its name")), responses((status = 200, body = Done)))]
pub(crate) async fn wake(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
) -> Result<Json<Done>, Problem> {
    daemon.have_done(&job, &caller, Command::WakeOverlong).await
}
