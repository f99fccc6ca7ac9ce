//! Logs of a job.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use opilio_control::Command;
use opilio_crawl::logs::filter::LogConditions;
use opilio_crawl::logs::read::{self, LogFile, LogPage, LogQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::job_folders::places;
use super::jobs::blocking;
use super::{Done, Shared};
use crate::access::Caller;
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Maximum lines of a page.
const LINES_MAX: usize = 10_000;

/// Logs of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Logs {
    /// Log files by name, including rotated ones.
    logs: Vec<LogFile>,
}

/// Selection of lines of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lines {
    /// Number of last lines. If `limit` is given, too, the smaller number applies.
    #[param(minimum = 1, maximum = 10000)]
    tail: Option<usize>,
    /// Maximum number of lines, from the first selected one.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<usize>,
    /// Regular expression that lines must contain a match of.
    #[param(format = "regex")]
    grep: Option<String>,
    /// Position to start at: the `end` of an earlier page.
    #[param(minimum = 0, maximum = 9007199254740991_usize)]
    after: Option<u64>,
    /// Position to end at: the `start` of an earlier page.
    #[param(minimum = 0, maximum = 9007199254740991_usize)]
    before: Option<u64>,
    /// Time of the first line.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
}

async fn folder(daemon: &crate::daemon::Daemon, job: &str) -> Result<PathBuf, Problem> {
    let directory = daemon.directory(job)?;
    blocking(move || Ok(places(&directory)?.logs)).await
}

fn unreadable(problem: &std::io::Error) -> Problem {
    Problem::failure(format!("cannot read the log: {problem}"))
}

/// Lists the logs of a job.
#[utoipa::path(get, path = "/jobs/{job}/logs", operation_id = "list_logs", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Logs)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<Logs>, Problem> {
    let folder = folder(&daemon, &job).await?;
    let logs = blocking(move || read::files(&folder).map_err(|problem| unreadable(&problem)));
    let logs = logs.await?;
    Ok(Json(Logs { logs }))
}

/// Returns lines of a log. Only the selected part of the file is read.
#[utoipa::path(get, path = "/jobs/{job}/logs/{file}", operation_id = "read_log", tag = "watch", params(("job" = String, Path, description = "Name of the job"), ("file" = String, Path, description = "Name of the log"), Lines), responses((status = 200, body = LogPage)))]
pub(crate) async fn page(
    State(daemon): Shared,
    PathParams((job, file)): PathParams<(String, String)>,
    Params(lines): Params<Lines>,
) -> Result<Json<LogPage>, Problem> {
    let folder = folder(&daemon, &job).await?;
    let wanted = lines.into_query()?;
    let page = blocking(move || {
        let files = read::files(&folder).map_err(|problem| unreadable(&problem))?;
        // The name is looked up in the list, so it cannot lead to another folder.
        if !files.iter().any(|known| known.name == file) {
            return Err(Problem::not_found(format!("log {file:?} not found")));
        }
        read::page(&folder.join(file), &wanted).map_err(|problem| unreadable(&problem))
    });
    Ok(Json(page.await?))
}

impl Lines {
    fn into_query(self) -> Result<LogQuery, Problem> {
        let counts = [self.tail, self.limit];
        let counts = counts.into_iter().flatten();
        if counts
            .clone()
            .any(|count| !(1..=LINES_MAX).contains(&count))
        {
            let problem = format!("invalid tail or limit; give 1 to {LINES_MAX}");
            return Err(Problem::unusable(problem));
        }
        let conditions = LogConditions {
            text: self.grep,
            ..LogConditions::default()
        };
        let filter = conditions.parse();
        Ok(LogQuery {
            tail: self.tail.is_some(),
            after: self.after,
            before: self.before,
            since: self.since,
            filter: filter.map_err(|problem| Problem::unusable(problem.to_string()))?,
            lines: counts.min(),
            ..LogQuery::default()
        })
    }
}

/// Rotates all logs: each continues in a new file.
#[utoipa::path(post, path = "/jobs/{job}/logs/rotate", operation_id = "rotate_logs", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Done)))]
pub(crate) async fn rotate(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    daemon.have_done(&job, &caller, Command::RotateLogs).await
}
