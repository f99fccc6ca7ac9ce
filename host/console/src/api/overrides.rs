//! Overrides of a job: those of its profile, and live ones, which operators add, change, move and remove.

use axum::Json;
use axum::extract::State;
use opilio_control::{
    ChangedSettings, Command, CommandResponse, EditedOverrideText, ListedOverride, OverrideChange,
    changing,
};
use opilio_profile::MatchFile;
use serde::{Deserialize, Serialize};
use utoipa::openapi::Array;
use utoipa::{IntoParams, ToSchema};

use super::jobs::blocking;
use super::settings::conditions;
use super::{Shared, own_files, texts};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::{Body, Params, PathParams};
use crate::problem::Problem;
use crate::reach;

/// Overrides of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overrides {
    /// Overrides in the order in which they apply: first those of the profile, then live ones. The last one that matches wins, for
    /// each setting separately.
    overrides: Vec<ListedOverride>,
}

/// The schema of the settings of an override, which exclude settings of the whole job.
fn overridable_settings() -> Array {
    texts(
        "overridable-setting",
        "Settings as `key = value`, as in an override of a profile: `politeness.min-delay = \"10s\"`.",
    )
}

/// The schema of the settings of a new override, with at least one entry.
fn some_overridable_settings() -> Array {
    let mut settings = overridable_settings();
    settings.min_items = Some(1);
    settings
}

/// New override.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOverride {
    #[schema(schema_with = some_overridable_settings)]
    set: Vec<String>,
    /// Conditions.
    #[schema(schema_with = conditions)]
    matching: MatchFile,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// `true` to only show the effect of the change.
    #[serde(default)]
    only_check: bool,
}

/// Edit of a live override.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditedOverride {
    #[serde(default)]
    #[schema(schema_with = overridable_settings, required = false)]
    set: Vec<String>,
    /// Names of settings and tables to remove from the override.
    #[serde(default)]
    unset: Vec<String>,
    /// Conditions in place of the present ones; not set: the present ones stay.
    #[schema(schema_with = conditions)]
    matching: Option<MatchFile>,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// `true` to only show the effect of the change.
    #[serde(default)]
    only_check: bool,
}

/// New place of a live override.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MovedOverride {
    /// Number of the live override before which it applies; not set: it applies last, and so wins over all others.
    #[schema(minimum = 1, maximum = 9007199254740991_u64)]
    before: Option<u64>,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// `true` to only show the effect of the change.
    #[serde(default)]
    only_check: bool,
}

/// Removal of a live override.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removal {
    /// Reason for the change, for the history.
    #[param(max_length = 1000)]
    reason: Option<String>,
    /// `true` to only show the effect of the change.
    #[serde(default)]
    only_check: bool,
}

/// Lists the overrides of a job.
#[utoipa::path(get, path = "/jobs/{job}/overrides", operation_id = "list_overrides", tag = "change", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Overrides)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Overrides>, Problem> {
    let answers = daemon.send(&job, &caller, Command::Overrides).await?;
    let overrides = answers.into_iter().filter_map(|answer| match answer {
        CommandResponse::Override(one) => Some(*one),
        _ => None,
    });
    Ok(Json(Overrides {
        overrides: overrides.collect(),
    }))
}

/// Adds an override after the existing ones. With `only_check`, the response shows the known URIs that it would touch.
#[utoipa::path(post, path = "/jobs/{job}/overrides", operation_id = "add_override", tag = "change", params(("job" = String, Path, description = "Name of the job")), request_body = NewOverride, responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn add(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(new): Body<NewOverride>,
) -> Result<Json<ChangedSettings>, Problem> {
    daemon.directory(&job)?;
    reach::check(&changing(&new.set, Some(&new.matching)), None, &caller)?;
    let command = Command::Set {
        set: new.set,
        matching: Some(new.matching),
        only_check: new.only_check,
        reason: new.reason,
    };
    changed(&daemon, &job, &caller, command).await
}

/// Changes settings or conditions of a live override. It keeps its place in the order.
#[utoipa::path(patch, path = "/jobs/{job}/overrides/{id}", operation_id = "change_override", tag = "change", params(("job" = String, Path, description = "Name of the job"), ("id" = u64, Path, minimum = 1, maximum = 9007199254740991_u64, description = "Number of the override")), request_body = EditedOverride, responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn edit(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, id)): PathParams<(String, u64)>,
    Body(edited): Body<EditedOverride>,
) -> Result<Json<ChangedSettings>, Problem> {
    let directory = daemon.directory(&job)?;
    let (edited, text) = blocking(move || {
        own_files(&directory)?;
        let EditedOverride {
            set,
            unset,
            matching,
            ..
        } = &edited;
        let text = EditedOverrideText::of(&directory, id, set, unset, matching.as_ref())?;
        Ok((edited, text))
    })
    .await?;
    // Settings that an administrator has set on the command line may stay in the override, but its conditions must not change then.
    reach::check(&text.after, Some(&text.before), &caller)?;
    let command = Command::ChangeOverride {
        id,
        change: OverrideChange::Edit {
            set: edited.set,
            unset: edited.unset,
            matching: edited.matching.map(Box::new),
        },
        reason: edited.reason,
        only_check: edited.only_check,
    };
    changed(&daemon, &job, &caller, command).await
}

/// Moves a live override to another place in the order.
#[utoipa::path(post, path = "/jobs/{job}/overrides/{id}/move", operation_id = "move_override", tag = "change", params(("job" = String, Path, description = "Name of the job"), ("id" = u64, Path, minimum = 1, maximum = 9007199254740991_u64, description = "Number of the override")), request_body = MovedOverride, responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn shift(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, id)): PathParams<(String, u64)>,
    Body(moved): Body<MovedOverride>,
) -> Result<Json<ChangedSettings>, Problem> {
    let command = Command::ChangeOverride {
        id,
        change: OverrideChange::Move {
            before: moved.before,
        },
        reason: moved.reason,
        only_check: moved.only_check,
    };
    changed(&daemon, &job, &caller, command).await
}

/// Removes a live override.
#[utoipa::path(delete, path = "/jobs/{job}/overrides/{id}", operation_id = "remove_override", tag = "change", params(("job" = String, Path, description = "Name of the job"), ("id" = u64, Path, minimum = 1, maximum = 9007199254740991_u64, description = "Number of the override"), Removal), responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn remove(
    State(daemon): Shared,
    caller: Caller,
    PathParams((job, id)): PathParams<(String, u64)>,
    Params(Removal { reason, only_check }): Params<Removal>,
) -> Result<Json<ChangedSettings>, Problem> {
    let command = Command::ChangeOverride {
        id,
        change: OverrideChange::Remove,
        reason,
        only_check,
    };
    changed(&daemon, &job, &caller, command).await
}

async fn changed(
    daemon: &Daemon,
    job: &str,
    caller: &Caller,
    command: Command,
) -> Result<Json<ChangedSettings>, Problem> {
    let changed = daemon.one(job, caller, command, |answer| match answer {
        CommandResponse::Set(changed) => Some(*changed),
        _ => None,
    });
    Ok(Json(changed.await?))
}
