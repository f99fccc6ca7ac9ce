//! Settings and seeds of a job, and the history of their changes.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use opilio_control::{
    self, AddedSeeds, Change, ChangedSettings, Command, CommandResponse, SeedReport, SettingInForce,
};
use opilio_profile::{MatchFile, Profile};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{Array, Object, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use super::jobs::blocking;
use super::statistics::plain;
use super::{
    Done, Page, Shared, checked_limit, own_files, page, seed_lines, take_next_page, texts,
};
use crate::access::Caller;
use crate::input::{Body, Params, PathParams};
use crate::problem::Problem;
use crate::reach;

/// Settings of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Settings {
    /// Settings by name.
    settings: Vec<SettingInForce>,
}

/// The schema of `set`: settings as texts, because JSON Schema cannot describe their notation.
pub(super) fn setting_lines() -> Array {
    texts(
        "setting",
        "Settings as `key = value`, as in a profile: `politeness.min-delay = \"10s\"`.",
    )
}

/// The schema of `matching`, from that of profiles.
pub(super) fn conditions() -> RefOr<Schema> {
    let mut profile = Profile::schema();
    serde_json::from_value(profile["$defs"]["MatchFile"].take())
        .unwrap_or_else(|_| Object::new().into())
}

/// Change of settings.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changing {
    #[schema(schema_with = setting_lines)]
    set: Vec<String>,
    /// Conditions; not set: the values apply everywhere except where an override sets them.
    #[schema(schema_with = conditions)]
    matching: Option<MatchFile>,
    /// `true` to only show the effect of the change.
    #[serde(default)]
    only_check: bool,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// History of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    /// Changes, oldest first.
    changes: Vec<Change>,
    /// Start of the next page; not set on the last page.
    after: Option<u64>,
}

/// Page of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryPage {
    /// Start after the change with this number.
    #[serde(default)]
    #[param(minimum = 0, maximum = 9007199254740991_usize)]
    after: u64,
    /// Maximum number of changes.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Seeds of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Seeds {
    /// Seeds of this page, with the status of each.
    seeds: Vec<SeedReport>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// Seeds to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSeeds {
    #[schema(schema_with = seed_lines)]
    seeds: Vec<String>,
}

/// Seed to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneSeed {
    /// URI of the seed.
    #[schema(format = "uri")]
    uri: String,
}

/// Lists the settings of a job: value, source of the value, and time at which a change takes effect.
#[utoipa::path(get, path = "/jobs/{job}/settings", operation_id = "list_settings", tag = "change", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Settings)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Settings>, Problem> {
    let found = daemon.one(&job, &caller, Command::Settings, |answer| match answer {
        CommandResponse::Settings { settings } => Some(settings),
        _ => None,
    });
    let settings = found.await?;
    Ok(Json(Settings { settings }))
}

/// Changes settings, or only checks a change. If one setting has an error, the response lists all errors, and nothing is
/// changed.
#[utoipa::path(patch, path = "/jobs/{job}/settings", operation_id = "change_settings", tag = "change", params(("job" = String, Path, description = "Name of the job")), request_body = Changing, responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn change(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(changing): Body<Changing>,
) -> Result<Json<ChangedSettings>, Problem> {
    daemon.directory(&job)?;
    let change = opilio_control::changing(&changing.set, changing.matching.as_ref());
    reach::check(&change, None, &caller)?;
    let command = Command::Set {
        set: changing.set,
        matching: changing.matching,
        only_check: changing.only_check,
        reason: changing.reason,
    };
    let changed = daemon.one(&job, &caller, command, |answer| match answer {
        CommandResponse::Set(changed) => Some(*changed),
        _ => None,
    });
    Ok(Json(changed.await?))
}

/// Lists the changes made to a job since it was created, with user and time.
#[utoipa::path(get, path = "/jobs/{job}/history", operation_id = "list_changes", tag = "change", params(("job" = String, Path, description = "Name of the job"), HistoryPage), responses((status = 200, body = History)))]
pub(crate) async fn history(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(HistoryPage { after, limit }): Params<HistoryPage>,
) -> Result<Json<History>, Problem> {
    let limit = checked_limit(limit)?;
    let command = Command::History { after, limit };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let next = take_next_page(&mut answers);
    let changes: Vec<Change> = answers
        .into_iter()
        .filter_map(|answer| match answer {
            CommandResponse::Change(change) => Some(*change),
            _ => None,
        })
        .collect();
    let after = next.and_then(|_| changes.last().map(|last| last.number));
    Ok(Json(History { changes, after }))
}

/// Lists the seeds of a job with their status.
#[utoipa::path(get, path = "/jobs/{job}/seeds", operation_id = "list_seeds", tag = "change", params(("job" = String, Path, description = "Name of the job"), Page), responses((status = 200, body = Seeds)))]
pub(crate) async fn seeds(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(Page { after, limit }): Params<Page>,
) -> Result<Json<Seeds>, Problem> {
    let limit = checked_limit(limit)?;
    let command = Command::Seeds { after, limit };
    let mut answers = daemon.send(&job, &caller, command).await?;
    let after = take_next_page(&mut answers);
    let seeds = answers.into_iter().filter_map(|answer| match answer {
        CommandResponse::Seed(seed) => Some(*seed),
        _ => None,
    });
    Ok(Json(Seeds {
        seeds: seeds.collect(),
        after,
    }))
}

/// Adds seeds. The scope includes their implied prefixes at once.
#[utoipa::path(post, path = "/jobs/{job}/seeds", operation_id = "add_seeds", tag = "change", params(("job" = String, Path, description = "Name of the job")), request_body = NewSeeds, responses((status = 200, body = AddedSeeds)))]
pub(crate) async fn add_seeds(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(NewSeeds { seeds }): Body<NewSeeds>,
) -> Result<Json<AddedSeeds>, Problem> {
    let command = Command::AddSeeds { seeds };
    let added = daemon.one(&job, &caller, command, |answer| match answer {
        CommandResponse::SeedsAdded(added) => Some(added),
        _ => None,
    });
    Ok(Json(added.await?))
}

/// Removes a seed, its prefix from the scope, and the queued URIs found only through it.
#[utoipa::path(post, path = "/jobs/{job}/seeds/remove", operation_id = "remove_seed", tag = "change", params(("job" = String, Path, description = "Name of the job")), request_body = OneSeed, responses((status = 200, body = Done)))]
pub(crate) async fn remove_seed(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(OneSeed { uri }): Body<OneSeed>,
) -> Result<Json<Done>, Problem> {
    let command = Command::RemoveSeed { uri };
    daemon.have_done(&job, &caller, command).await
}

/// Returns the profile of a job, as written when the job was created.
#[utoipa::path(get, path = "/jobs/{job}/profile", operation_id = "show_job_profile", tag = "change", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, description = "The profile, in TOML", content_type = "text/plain", body = String)))]
pub(crate) async fn profile(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let text = blocking(move || {
        own_files(&directory)?;
        std::fs::read_to_string(directory.join("profile.toml"))
            .map_err(|problem| Problem::failure(format!("cannot read profile.toml: {problem}")))
    });
    Ok(plain(text.await?))
}
