//! Progress of a job: status, time series, breakdown, alerts, reports, metrics.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use opilio_control::{Command, CommandResponse, Figures, ReportKind, metrics};
use opilio_crawl::{Alert, AlertKind, Breakdown, Sample};
use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::job_status::{JobStatus, status_of};
use super::{Done, Shared};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::{Body, Params, PathParams};
use crate::metrics::{DaemonFigures, MEDIA_TYPE, NodeFigures};
use crate::node::ListedNode;
use crate::problem::Problem;

/// Time limit for the list of nodes in the metrics. It is short, because collectors do not wait long.
const NODES_TIME_MAX: Duration = Duration::from_secs(3);

/// Period of a time series.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Since {
    /// Time of the first sample; not set: the oldest stored sample.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Maximum number of samples.
    #[param(minimum = 2, maximum = 5000)]
    points: Option<u64>,
}

/// Time series of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimeSeries {
    /// Samples, oldest first. Their values are counters: the activity between two samples is the difference of the values.
    samples: Vec<Sample>,
}

/// Alerts of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alerts {
    /// Active alerts, most severe first, then past alerts, latest first.
    alerts: Vec<Alert>,
}

/// Kinds of reports.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reports {
    /// Names of the kinds.
    reports: Vec<&'static str>,
}

/// A report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Report {
    /// Single values by name.
    facts: Value,
    /// Rows, with values by column name.
    rows: Vec<Value>,
}

/// Format of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AsReport {
    /// `json`, or `text` as in the job's folder `reports`.
    #[serde(default)]
    #[param(inline)]
    format: ReportForm,
}

impl AsReport {
    /// The text form, as in the job's folder.
    pub(crate) fn text() -> AsReport {
        AsReport {
            format: ReportForm::Text,
        }
    }
}

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum ReportForm {
    #[default]
    Json,
    Text,
}

/// Shows the latest known status of a job. A job that is not running is not opened.
#[utoipa::path(get, path = "/jobs/{job}/status", operation_id = "show_status", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = JobStatus)))]
pub(crate) async fn status(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<JobStatus>, Problem> {
    Ok(Json(status_of(&daemon.known(&job).await?)))
}

/// Returns the statistics of the crawl.
#[utoipa::path(get, path = "/jobs/{job}/statistics", operation_id = "show_statistics", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Statistics)))]
pub(crate) async fn statistics(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Statistics>, Problem> {
    let found = daemon.one(&job, &caller, Command::Statistics, |answer| match answer {
        CommandResponse::Statistics { statistics } => Some(*statistics),
        _ => None,
    });
    Ok(Json(found.await?))
}

/// Returns the time series of a job, for charts.
#[utoipa::path(get, path = "/jobs/{job}/series", operation_id = "show_series", tag = "watch", params(("job" = String, Path, description = "Name of the job"), Since), responses((status = 200, body = TimeSeries)))]
pub(crate) async fn series(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(Since { since, points }): Params<Since>,
) -> Result<Json<TimeSeries>, Problem> {
    if points.is_some_and(|points| !(2..=5_000).contains(&points)) {
        return Err(Problem::unusable("invalid points; give 2 to 5000"));
    }
    let command = Command::Series { since, points };
    let samples = daemon.one(&job, &caller, command, |answer| match answer {
        CommandResponse::Series { samples } => Some(samples),
        _ => None,
    });
    let samples = samples.await?;
    Ok(Json(TimeSeries { samples }))
}

/// Returns counts and bytes by status, media type and host.
#[utoipa::path(get, path = "/jobs/{job}/breakdown", operation_id = "show_breakdown", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Breakdown)))]
pub(crate) async fn breakdown(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Breakdown>, Problem> {
    let found = daemon.one(&job, &caller, Command::Breakdown, |answer| match answer {
        CommandResponse::Breakdown(breakdown) => Some(*breakdown),
        _ => None,
    });
    Ok(Json(found.await?))
}

/// Lists active alerts and recent past ones.
#[utoipa::path(get, path = "/jobs/{job}/alerts", operation_id = "list_alerts", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Alerts)))]
pub(crate) async fn alerts(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Alerts>, Problem> {
    let found = daemon.one(&job, &caller, Command::Alerts, |answer| match answer {
        CommandResponse::Alerts { alerts } => Some(alerts),
        _ => None,
    });
    let alerts = found.await?;
    Ok(Json(Alerts { alerts }))
}

/// Alert to acknowledge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownAlert {
    /// Kind of the alert.
    kind: AlertKind,
    /// Subject of the alert; not set: all alerts of this kind.
    #[serde(default)]
    subject: Option<String>,
}

/// Acknowledges an alert: it stays active but no longer counts as open.
#[utoipa::path(post, path = "/jobs/{job}/alerts/acknowledge", operation_id = "acknowledge_alert", tag = "watch", params(("job" = String, Path, description = "Name of the job")), request_body = KnownAlert, responses((status = 200, body = Done)))]
pub(crate) async fn acknowledge(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(KnownAlert { kind, subject }): Body<KnownAlert>,
) -> Result<Json<Done>, Problem> {
    let command = Command::Acknowledge { kind, subject };
    daemon.have_done(&job, &caller, command).await
}

/// Lists the kinds of reports.
#[utoipa::path(get, path = "/jobs/{job}/reports", operation_id = "list_reports", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Reports)))]
pub(crate) async fn reports(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<Reports>, Problem> {
    daemon.directory(&job)?;
    let reports = ReportKind::ALL.iter().map(|kind| kind.name()).collect();
    Ok(Json(Reports { reports }))
}

/// Makes a report of the current state.
#[utoipa::path(get, path = "/jobs/{job}/reports/{kind}", operation_id = "show_report", tag = "watch", params(("job" = String, Path, description = "Name of the job"), ("kind" = String, Path, description = "Kind of the report"), AsReport), responses((status = 200, description = "The report", content((Report = "application/json"), (String = "text/plain")))))]
pub(crate) async fn report(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, kind)): PathParams<(String, String)>,
    Params(AsReport { format }): Params<AsReport>,
) -> Result<Response, Problem> {
    daemon.directory(&job)?;
    let unknown = || {
        let all: Vec<&str> = ReportKind::ALL.iter().map(|kind| kind.name()).collect();
        Problem::not_found(format!(
            "unknown report {kind:?}; available: {}",
            all.join(", ")
        ))
    };
    let report = ReportKind::named(&kind).ok_or_else(unknown)?;
    let is_text = format == ReportForm::Text;
    let command = Command::Report {
        report,
        text: is_text,
    };
    let answers = daemon.send(&job, &caller, command).await?;
    let mut whole = Report {
        facts: Value::Object(Default::default()),
        rows: Vec::new(),
    };
    let mut collected = String::new();
    for answer in answers {
        match answer {
            CommandResponse::Facts { facts } => whole.facts = facts,
            CommandResponse::Row { row } => whole.rows.push(row),
            CommandResponse::Text { text } => collected.push_str(&text),
            _ => {}
        }
    }
    Ok(match is_text {
        true => plain(collected),
        false => Json(whole).into_response(),
    })
}

pub(super) fn plain(text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (kind, text).into_response()
}

/// The metrics of all running jobs, for Prometheus. Those of other jobs do not change.
pub(crate) async fn all_metrics(
    State(daemon): Shared,
    caller: Caller,
) -> Result<Response, Problem> {
    let jobs = daemon.jobs.borrow().clone();
    let states = jobs.values().map(|known| known.overview.state).collect();
    let node = node_figures(&daemon).await;
    let running: Vec<_> = jobs
        .iter()
        .filter(|(_, known)| known.status.is_some())
        .map(|(name, known)| (name.clone(), known.directory.clone()))
        .collect();
    let text = super::jobs::blocking(move || {
        let by = opilio_control::Author {
            user: caller.user,
            pid: std::process::id(),
        };
        let mut figures: Vec<(String, Figures)> = Vec::new();
        for (name, directory) in running {
            match Figures::query(&directory, &by) {
                Ok(found) => figures.push((name, found)),
                // The usual cause is that the job has just ended.
                Err(problem) => tracing::warn!(job = name, "no metrics: {problem}"),
            }
        }
        let of_jobs = metrics(figures.iter().map(|(name, it)| (name.as_str(), it)));
        let of_daemon = DaemonFigures {
            jobs: states,
            limits: daemon.config.limits.clone(),
            node,
        };
        Ok(of_daemon.metrics() + &of_jobs)
    });
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text.await?).into_response())
}

/// Figures of the membership in a cluster.
async fn node_figures(daemon: &Daemon) -> Option<NodeFigures> {
    let node = daemon.node.as_ref()?;
    let listed = tokio::time::timeout(NODES_TIME_MAX, ListedNode::all(node.cluster())).await;
    let nodes = listed.ok().and_then(Result::ok).unwrap_or_default();
    Some(NodeFigures {
        status: node.status(),
        nodes: nodes.into_iter().map(|node| node.state).collect(),
    })
}
