//! URIs of a job: those that match a pattern, and single ones.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use opilio_control::{
    Command, CommandResponse, ExplainedUri, StateSelector, UriSelection, WhyAnswer, no_uri,
};
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{Done, PrecedenceNumber, Shared, checked_limit, page, take_next_page};
use crate::access::Caller;
use crate::input::{Body, Params, PathParams};
use crate::problem::Problem;

/// Selection of URIs. URIs must match all conditions; without conditions, all URIs are selected.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UriSelector {
    /// SURT prefix of the URIs, such as `http://(org,example,`.
    surt: Option<String>,
    /// Regular expression that URIs must contain a match of.
    #[param(format = "regex")]
    regex: Option<String>,
    /// Host of the URIs, without its subdomains.
    #[param(format = "host")]
    host: Option<String>,
    /// Fetch statuses of the last visit or attempt, separated by commas: `404`, `5xx`, `500-599`, `-2`.
    #[param(format = "statuses")]
    status: Option<String>,
    /// State of the URIs: their place, or the result of their last completed visit.
    #[param(inline)]
    state: Option<StateSelector>,
    /// Media type of the URIs, such as `text/html` or `image/*`; `no-type` selects URIs without a media type.
    #[param(format = "media-type")]
    media_type: Option<String>,
    /// Start after this URI: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of URIs.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// List of URIs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Uris {
    /// URIs of this page, in SURT order.
    #[schema(value_type = Vec<Object>)]
    uris: Vec<Value>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Result of an action on many URIs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Swept {
    /// Number of URIs examined.
    examined: u64,
    /// Number of URIs that matched, without those in process.
    meant: u64,
    /// Number of URIs that matched and are in process. The action leaves them out.
    in_process: u64,
}

/// Action on many URIs.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sweep {
    /// Remove the URIs from their queues and keep them known.
    Delete,
    /// Remove the records of the URIs, so that they may be found again.
    Forget,
}

/// Action on a URI.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UriAction {
    /// Fetch the URI now, even if it is known, done or out of scope.
    Force,
    /// Cancel the fetch of the URI.
    Cancel,
    /// Remove the URI from its queue and keep it known.
    Delete,
    /// Remove the record of the URI, so that it may be found again.
    Forget,
}

/// A URI.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneUri {
    /// The URI.
    #[schema(format = "uri")]
    uri: String,
}

/// New precedence of a URI.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UriPrecedence {
    /// The URI.
    #[schema(format = "uri")]
    uri: String,
    /// Precedence, 0 first.
    #[schema(value_type = u8, minimum = 0, maximum = 255)]
    precedence: PrecedenceNumber,
}

/// URI to look up.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UriQuery {
    /// The URI.
    #[param(format = "uri")]
    pub(super) uri: String,
}

/// URI to explain, and its assumed discovery.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainQuery {
    /// The URI.
    #[param(format = "uri")]
    uri: String,
    /// Page on which the URI was found.
    #[param(format = "uri")]
    via: Option<String>,
    /// Hop path from the seed, such as `LLE`.
    #[param(pattern = "^[LEXRIPSM]*$")]
    hops: Option<String>,
    /// Seed that the URI descends from.
    #[param(format = "uri")]
    source: Option<String>,
    /// Media type of the response.
    #[param(format = "media-type")]
    media_type: Option<String>,
    /// Time to evaluate settings for, such as `2026-07-01T23:00:00Z`; not set: now.
    #[param(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
}

/// Lists URIs, with the field names of `docs/TRANSFER.md`.
#[utoipa::path(get, path = "/jobs/{job}/uris", operation_id = "list_uris", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), UriSelector), responses((status = 200, body = Uris)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(selector): Params<UriSelector>,
) -> Result<Json<Uris>, Problem> {
    let command = Command::List {
        which: UriSelection {
            surt: selector.surt,
            regex: selector.regex,
            host: selector.host,
            status: selector.status,
            state: selector.state,
            media_type: selector.media_type,
        },
        after: selector.after,
        limit: checked_limit(selector.limit)?,
    };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let after = take_next_page(&mut answers);
    let uris = answers.into_iter().filter_map(|answer| match answer {
        CommandResponse::Uri(found) => Some(found.uri),
        _ => None,
    });
    Ok(Json(Uris {
        uris: uris.collect(),
        after,
    }))
}

/// Counts URIs.
#[utoipa::path(get, path = "/jobs/{job}/uris/count", operation_id = "count_uris", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), UriSelection), responses((status = 200, body = Swept)))]
pub(crate) async fn count(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(which): Params<UriSelection>,
) -> Result<Json<Swept>, Problem> {
    let command = Command::Count { which };
    Ok(Json(daemon.one(&job, &caller, command, as_swept).await?))
}

fn as_swept(answer: CommandResponse) -> Option<Swept> {
    match answer {
        CommandResponse::Swept(swept) => Some(Swept {
            examined: swept.examined,
            meant: swept.meant,
            in_process: swept.in_process,
        }),
        _ => None,
    }
}

/// Carries out an action on all selected URIs.
#[utoipa::path(post, path = "/jobs/{job}/uris/{action}", operation_id = "act_on_uris", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("action" = inline(Sweep), Path, description = "Action")), request_body = UriSelection, responses((status = 200, body = Swept)))]
pub(crate) async fn sweep(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, action)): PathParams<(String, Sweep)>,
    Body(which): Body<UriSelection>,
) -> Result<Json<Swept>, Problem> {
    if which.is_everything() {
        return Err(Problem::unusable(
            "this would select all URIs; give a condition, such as surt",
        ));
    }
    let command = match action {
        Sweep::Delete => Command::Delete { which },
        Sweep::Forget => Command::Forget { which },
    };
    Ok(Json(daemon.one(&job, &caller, command, as_swept).await?))
}

/// Explains why a URI was or was not fetched, and returns its record: visits, digests, waits, versions, plugins.
#[utoipa::path(get, path = "/jobs/{job}/why", operation_id = "describe_uri", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), UriQuery), responses((status = 200, body = WhyAnswer)))]
pub(crate) async fn why(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(UriQuery { uri }): Params<UriQuery>,
) -> Result<Json<WhyAnswer>, Problem> {
    let found = daemon.one(&job, &caller, Command::Why { uri }, |answer| match answer {
        CommandResponse::Why(why) => Some(*why),
        _ => None,
    });
    Ok(Json(found.await?))
}

/// Explains how a job handles a URI: its settings, the answer of every filter, its stacks, and the wait after its next visit.
#[utoipa::path(get, path = "/jobs/{job}/explain", operation_id = "explain_uri", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ExplainQuery), responses((status = 200, body = ExplainedUri)))]
pub(crate) async fn explain(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(asked): Params<ExplainQuery>,
) -> Result<Json<ExplainedUri>, Problem> {
    let command = Command::Explain {
        uri: asked.uri,
        via: asked.via,
        hops: asked.hops,
        source: asked.source,
        media_type: asked.media_type,
        at: asked.at,
    };
    let found = daemon.one(&job, &caller, command, |answer| match answer {
        CommandResponse::Explained(explained) => Some(*explained),
        _ => None,
    });
    Ok(Json(found.await?))
}

/// Carries out an action on a URI.
#[utoipa::path(post, path = "/jobs/{job}/uri/{action}", operation_id = "act_on_uri", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), ("action" = inline(UriAction), Path, description = "Action")), request_body = OneUri, responses((status = 200, body = Done)))]
pub(crate) async fn act(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, action)): PathParams<(String, UriAction)>,
    Body(OneUri { uri }): Body<OneUri>,
) -> Result<Json<Done>, Problem> {
    let (command, what) = match action {
        UriAction::Force => {
            let command = Command::Force { uri };
            return daemon.have_done(&job, &caller, command).await;
        }
        UriAction::Cancel => {
            let command = Command::Cancel { uri };
            return daemon.have_done(&job, &caller, command).await;
        }
        UriAction::Delete => {
            let which = exactly(&uri)?;
            (
                Command::Delete { which },
                "removed from its queue; it stays known",
            )
        }
        UriAction::Forget => {
            let which = exactly(&uri)?;
            (Command::Forget { which }, "removed; it may be found again")
        }
    };
    let swept = daemon.one(&job, &caller, command, as_swept).await?;
    match (swept.meant, swept.in_process) {
        (0, 0) => Err(Problem::not_found("the job does not know the URI")),
        (0, _) => Err(Problem::conflict(
            "the URI is being fetched; cancel the fetch first",
        )),
        _ => Ok(Json(Done {
            result: what.to_owned(),
        })),
    }
}

/// Parses a URI as an operator types it.
pub(super) fn seed(text: &str) -> Result<Uri, Problem> {
    Uri::parse_seed(text).map_err(|problem| Problem::unusable(no_uri(text, &problem)))
}

/// Returns a selection that matches exactly one URI.
fn exactly(uri: &str) -> Result<UriSelection, Problem> {
    let uri = seed(uri)?;
    Ok(UriSelection {
        surt: Some(uri.surt()),
        regex: Some(format!("^{}$", regex::escape(uri.as_str()))),
        ..UriSelection::default()
    })
}

/// Sets the precedence of a URI.
#[utoipa::path(post, path = "/jobs/{job}/uri/precedence", operation_id = "set_uri_precedence", tag = "frontier", params(("job" = String, Path, description = "Name of the job")), request_body = UriPrecedence, responses((status = 200, body = Done)))]
pub(crate) async fn precedence(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(UriPrecedence { uri, precedence }): Body<UriPrecedence>,
) -> Result<Json<Done>, Problem> {
    let PrecedenceNumber(precedence) = precedence;
    let command = Command::UriPrecedence { uri, precedence };
    daemon.have_done(&job, &caller, command).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_invalid_uris_have_the_uri_once() {
        for (text, expected) in [
            ("http://[", "invalid URI \"http://[\": invalid IPv6 address"),
            (
                "http://a..org/",
                "invalid URI \"http://a..org/\": host \"a..org\" cannot exist: an empty label",
            ),
        ] {
            let problem = exactly(text).unwrap_err();
            assert_eq!(problem.detail(), expected);
        }
    }
}
