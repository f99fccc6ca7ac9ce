//! Search of `crawl.log` by its columns, over the rotated files too.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use opilio_crawl::logs::CRAWL;
use opilio_crawl::logs::filter::{LogConditions, LoggedVisit};
use opilio_crawl::logs::search::{LogCursor, LogSearch, search};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::job_folders::places;
use super::jobs::blocking;
use super::{Shared, checked_limit, page};
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Selection of visits.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct VisitsWanted {
    /// Fetch statuses, separated by commas: `404`, `5xx`, `500-599`, `-2`.
    #[param(format = "statuses")]
    status: Option<String>,
    /// Media type, such as `text/html` or `image/*`; `no-type` selects visits without one.
    #[param(format = "media-type")]
    media_type: Option<String>,
    /// Host of the URI, without its subdomains; `dns:` selects look-ups.
    #[param(format = "host")]
    host: Option<String>,
    /// Name of a plugin that an annotation contains.
    plugin: Option<String>,
    /// Regular expression that lines must contain a match of.
    #[param(format = "regex")]
    grep: Option<String>,
    /// Time of the first visit.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Time before which visits ended.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Order of the visits.
    #[serde(default)]
    #[param(inline)]
    order: LogOrder,
    /// Position to start at: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of visits.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Order of visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogOrder {
    /// The latest visit first.
    #[default]
    NewestFirst,
    /// The earliest visit first.
    OldestFirst,
}

/// Visits found in `crawl.log`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundVisits {
    /// Visits of this page.
    #[schema(value_type = Vec<FoundVisit>)]
    visits: Vec<serde_json::Value>,
    /// Start of the next page; not set when everything was searched. A page may have fewer visits than its limit, or none, if it
    /// took long to find them.
    after: Option<String>,
    /// Bytes of the log that were searched for this page.
    examined: u64,
    /// Bytes of all files of the log within the requested times.
    size: u64,
}

/// Visit, as a line of `crawl.log`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundVisit<'l> {
    /// The columns.
    #[serde(flatten)]
    visit: LoggedVisit<'l>,
    /// The whole line.
    line: &'l str,
}

/// Searches the visits of a job: `crawl.log` with its rotated files. Each request reads a limited part of them.
#[utoipa::path(get, path = "/jobs/{job}/crawl-log", operation_id = "search_crawl_log", tag = "watch", params(("job" = String, Path, description = "Name of the job"), VisitsWanted), responses((status = 200, body = FoundVisits)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Params(wanted): Params<VisitsWanted>,
) -> Result<Json<FoundVisits>, Problem> {
    let directory = daemon.directory(&job)?;
    let limit = usize::try_from(checked_limit(wanted.limit)?).unwrap_or(usize::MAX);
    let conditions = LogConditions {
        text: wanted.grep,
        status: wanted.status,
        media_type: wanted.media_type,
        host: wanted.host,
        plugin: wanted.plugin,
    };
    let filter = conditions
        .parse()
        .map_err(|problem| Problem::unusable(problem.to_string()))?;
    let after = wanted.after.map(|after| after.parse::<LogCursor>());
    let wanted = LogSearch {
        filter,
        since: wanted.since,
        until: wanted.until,
        oldest_first: wanted.order == LogOrder::OldestFirst,
        after: after.transpose().map_err(Problem::not_found)?,
        limit,
    };
    let found = blocking(move || {
        let file = places(&directory)?.logs.join(CRAWL);
        search(&file, &wanted)
            .map_err(|problem| Problem::failure(format!("cannot read the log: {problem}")))
    });
    let found = found.await?;
    Ok(Json(FoundVisits {
        visits: found.lines.iter().filter_map(|line| visit(line)).collect(),
        after: found.after.map(|after| after.to_string()),
        examined: found.examined,
        size: found.size,
    }))
}

/// A line by its columns; `None` if it is not a line of `crawl.log`.
fn visit(line: &str) -> Option<serde_json::Value> {
    let visit = LoggedVisit::parse(line)?;
    serde_json::to_value(FoundVisit { visit, line }).ok()
}
