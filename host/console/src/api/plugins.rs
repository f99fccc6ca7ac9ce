//! Plugins of a job, and their tables.

use axum::Json;
use axum::extract::State;
use opilio_control::{Command, CommandResponse};
use opilio_crawl::{PluginReport, TableReport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Done, Shared};
use crate::access::{Caller, Role};
use crate::input::{Body, PathParams};
use crate::problem::Problem;

/// Plugins of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Plugins {
    /// Plugins in the order of the stages.
    plugins: Vec<PluginReport>,
}

/// Tables of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tables {
    /// Tables by name.
    tables: Vec<TableReport>,
}

/// Reports of observers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Observed {
    /// Reports, in order.
    reports: Vec<ObserverReport>,
}

/// Report of an observer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ObserverReport {
    /// Name of the observer in the profile.
    observer: String,
    /// Name of the report.
    file: String,
    /// Text of the report.
    content: String,
}

/// Replacement of a plugin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replacing {
    /// Component, as in profiles. A path must be absolute.
    #[schema(format = "component")]
    component: String,
    /// Expected SHA-256 of the component's file, in hexadecimal.
    #[schema(pattern = "^[0-9A-Fa-f]{64}$")]
    sha256: Option<String>,
    /// Settings that replace those in effect.
    #[schema(value_type = Option<Object>)]
    settings: Option<serde_json::Value>,
}

/// Shows statistics of each plugin: calls, errors, times.
#[utoipa::path(get, path = "/jobs/{job}/plugins", operation_id = "list_plugins", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Plugins)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Plugins>, Problem> {
    let found = daemon.one(&job, &caller, Command::Plugins, |answer| match answer {
        CommandResponse::Plugins { plugins } => Some(plugins),
        _ => None,
    });
    let plugins = found.await?;
    Ok(Json(Plugins { plugins }))
}

/// Replaces a plugin between two documents. A component that fails its checks changes nothing. For admins, because the new code
/// takes part in all decisions, and a path may name any file of this machine.
#[utoipa::path(post, path = "/jobs/{job}/plugins/{plugin}/replace", operation_id = "replace_plugin", tag = "change", params(("job" = String, Path, description = "Name of the job"), ("plugin" = String, Path, description = "Name of the plugin in the profile")), request_body = Replacing, responses((status = 200, body = Done)))]
pub(crate) async fn replace(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, plugin)): PathParams<(String, String)>,
    Body(replacing): Body<Replacing>,
) -> Result<Json<Done>, Problem> {
    caller.needs(Role::Admin)?;
    let command = Command::ReplacePlugin {
        plugin,
        component: replacing.component,
        sha256: replacing.sha256,
        settings: replacing.settings,
    };
    daemon.have_done(&job, &caller, command).await
}

/// Lists the look-up tables of plugins.
#[utoipa::path(get, path = "/jobs/{job}/tables", operation_id = "list_tables", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Tables)))]
pub(crate) async fn tables(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Tables>, Problem> {
    tables_of(&daemon, &caller, &job, false).await
}

/// Reads the files of all look-up tables again.
#[utoipa::path(post, path = "/jobs/{job}/tables/reload", operation_id = "reload_tables", tag = "change", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Tables)))]
pub(crate) async fn reload_tables(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Tables>, Problem> {
    tables_of(&daemon, &caller, &job, true).await
}

async fn tables_of(
    daemon: &crate::daemon::Daemon,
    caller: &Caller,
    job: &str,
    reload: bool,
) -> Result<Json<Tables>, Problem> {
    let found = daemon.one(
        job,
        caller,
        Command::Tables { reload },
        |answer| match answer {
            CommandResponse::Tables { tables } => Some(tables),
            _ => None,
        },
    );
    let tables = found.await?;
    Ok(Json(Tables { tables }))
}

/// Returns the reports of observers about the crawl so far.
#[utoipa::path(get, path = "/jobs/{job}/observers", operation_id = "list_observer_reports", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Observed)))]
pub(crate) async fn observers(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Observed>, Problem> {
    let command = Command::Observe { observer: None };
    let answers = daemon.send(&job, &caller, command).await?;
    let reports = answers.into_iter().filter_map(|answer| match answer {
        CommandResponse::Report {
            observer,
            file,
            content,
        } => Some(ObserverReport {
            observer,
            file,
            content,
        }),
        _ => None,
    });
    Ok(Json(Observed {
        reports: reports.collect(),
    }))
}
