//! Settings and seeds of a job, and the history of their changes.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use opilio_control::{
    self, Answer, Change, Command, FaultFound, SeedReport, SettingChanged, SettingInForce,
};
use opilio_profile::{MatchFile, Profile};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{Array, Object, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use super::jobs::blocking;
use super::statistics::plain;
use super::{
    Done, Page, Shared, checked_limit, more, own_files, page, profiles, seed_lines, texts,
};
use crate::access::Caller;
use crate::input::{Body, Params, Place};
use crate::problem::Problem;

/// Settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Settings {
    /// In the order of their names.
    settings: Vec<SettingInForce>,
}

/// The schema of `set`: settings in a notation that JSON schemas cannot describe.
fn setting_lines() -> Array {
    texts(
        "setting",
        "`key = value` each, as a profile has it: `politeness.min-delay = \"10s\"`.",
    )
}

/// The schema of `matching`, from that of profiles.
fn conditions() -> RefOr<Schema> {
    let mut profile = Profile::schema();
    serde_json::from_value(profile["$defs"]["MatchFile"].take())
        .unwrap_or_else(|_| Object::new().into())
}

/// A change of settings.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changing {
    #[schema(schema_with = setting_lines)]
    set: Vec<String>,
    /// None: wherever no override says otherwise.
    #[schema(schema_with = conditions)]
    matching: Option<MatchFile>,
    /// Only say what would come of it.
    #[serde(default)]
    only_check: bool,
}

/// What a change came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedSettings {
    /// The change's number in the job's history; none where it was only checked.
    number: Option<u64>,
    /// What has another value now, and from when on.
    changed: Vec<SettingChanged>,
    /// What is accepted, and said nevertheless.
    notices: Vec<FaultFound>,
}

/// What was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    /// The oldest first.
    changes: Vec<Change>,
    /// Where the next page begins; none: this is the last.
    after: Option<u64>,
}

/// A page of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryPage {
    /// Behind the change of this number.
    #[serde(default)]
    #[param(minimum = 0, maximum = 9007199254740991_usize)]
    after: u64,
    /// So many at most.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Seeds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Seeds {
    /// A page of them, with what became of each.
    seeds: Vec<SeedReport>,
    /// Where the next page begins; none: this is the last.
    after: Option<String>,
}

/// New seeds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSeeds {
    #[schema(schema_with = seed_lines)]
    seeds: Vec<String>,
}

/// What became of new seeds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedSeeds {
    /// The change's number in the job's history; none where there was nothing new.
    number: Option<u64>,
    /// Seeds that were none before.
    added: u64,
    /// SURT prefixes that are in the scope now and were not written before.
    prefixes: u64,
    /// Seeds that were known.
    known: u64,
    /// What is accepted, and said nevertheless.
    notices: Vec<FaultFound>,
}

/// A seed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneSeed {
    /// The seed.
    #[schema(format = "uri")]
    uri: String,
}

/// Every setting of a job: its value, where that comes from, and when a change of it takes effect.
#[utoipa::path(get, path = "/jobs/{job}/settings", operation_id = "list_settings", tag = "change", params(("job" = String, Path, description = "Its name")), responses((status = 200, body = Settings)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
) -> Result<Json<Settings>, Problem> {
    let found = daemon.one(&job, &caller, Command::Settings, |answer| match answer {
        Answer::Settings { settings } => Some(settings),
        _ => None,
    });
    let settings = found.await?;
    Ok(Json(Settings { settings }))
}

/// Changes settings, or only checks a change. All or nothing: where one is faulty, all faults are told and nothing is changed.
#[utoipa::path(patch, path = "/jobs/{job}/settings", operation_id = "change_settings", tag = "change", params(("job" = String, Path, description = "Its name")), request_body = Changing, responses((status = 200, body = ChangedSettings)))]
pub(crate) async fn change(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Body(changing): Body<Changing>,
) -> Result<Json<ChangedSettings>, Problem> {
    daemon.directory(&job)?;
    let change = opilio_control::changing(&changing.set, changing.matching.as_ref());
    profiles::keeps_to_itself(&change, &caller)?;
    let command = Command::Set {
        set: changing.set,
        matching: changing.matching,
        only_check: changing.only_check,
    };
    let changed = daemon.one(&job, &caller, command, |answer| match answer {
        Answer::Set {
            number,
            changed,
            notices,
        } => Some(ChangedSettings {
            number,
            changed,
            notices,
        }),
        _ => None,
    });
    Ok(Json(changed.await?))
}

/// What was changed since the job was made, by whom and when.
#[utoipa::path(get, path = "/jobs/{job}/history", operation_id = "list_changes", tag = "change", params(("job" = String, Path, description = "Its name"), HistoryPage), responses((status = 200, body = History)))]
pub(crate) async fn history(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Params(HistoryPage { after, limit }): Params<HistoryPage>,
) -> Result<Json<History>, Problem> {
    let limit = checked_limit(limit)?;
    let command = Command::History { after, limit };
    let mut answers = daemon.ask(&job, &caller, command).await?;
    let next = more(&mut answers);
    let changes: Vec<Change> = answers
        .into_iter()
        .filter_map(|answer| match answer {
            Answer::Change(change) => Some(*change),
            _ => None,
        })
        .collect();
    let after = next.and_then(|_| changes.last().map(|last| last.number));
    Ok(Json(History { changes, after }))
}

/// The seeds of a job, and what became of each.
#[utoipa::path(get, path = "/jobs/{job}/seeds", operation_id = "list_seeds", tag = "change", params(("job" = String, Path, description = "Its name"), Page), responses((status = 200, body = Seeds)))]
pub(crate) async fn seeds(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Params(Page { after, limit }): Params<Page>,
) -> Result<Json<Seeds>, Problem> {
    let limit = checked_limit(limit)?;
    let command = Command::Seeds { after, limit };
    let mut answers = daemon.ask(&job, &caller, command).await?;
    let after = more(&mut answers);
    let seeds = answers.into_iter().filter_map(|answer| match answer {
        Answer::Seed(seed) => Some(*seed),
        _ => None,
    });
    Ok(Json(Seeds {
        seeds: seeds.collect(),
        after,
    }))
}

/// Adds seeds. What they imply belongs to the scope at once.
#[utoipa::path(post, path = "/jobs/{job}/seeds", operation_id = "add_seeds", tag = "change", params(("job" = String, Path, description = "Its name")), request_body = NewSeeds, responses((status = 200, body = AddedSeeds)))]
pub(crate) async fn add_seeds(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Body(NewSeeds { seeds }): Body<NewSeeds>,
) -> Result<Json<AddedSeeds>, Problem> {
    let command = Command::AddSeeds { seeds };
    let added = daemon.one(&job, &caller, command, |answer| match answer {
        Answer::SeedsAdded {
            number,
            added,
            prefixes,
            known,
            notices,
        } => Some(AddedSeeds {
            number,
            added,
            prefixes,
            known,
            notices,
        }),
        _ => None,
    });
    Ok(Json(added.await?))
}

/// Removes a seed, its prefix from the scope, and what waits that it alone brought in.
#[utoipa::path(post, path = "/jobs/{job}/seeds/remove", operation_id = "remove_seed", tag = "change", params(("job" = String, Path, description = "Its name")), request_body = OneSeed, responses((status = 200, body = Done)))]
pub(crate) async fn remove_seed(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Body(OneSeed { uri }): Body<OneSeed>,
) -> Result<Json<Done>, Problem> {
    let command = Command::RemoveSeed { uri };
    daemon.have_done(&job, &caller, command).await
}

/// The profile that a job was made with, as it was written.
#[utoipa::path(get, path = "/jobs/{job}/profile", operation_id = "show_job_profile", tag = "change", params(("job" = String, Path, description = "Its name")), responses((status = 200, description = "The profile, in TOML", content_type = "text/plain", body = String)))]
pub(crate) async fn profile(
    State(daemon): Shared,
    Place(job): Place<String>,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let text = blocking(move || {
        own_files(&directory)?;
        std::fs::read_to_string(directory.join("profile.toml"))
            .map_err(|problem| Problem::failure(format!("profile.toml cannot be read: {problem}")))
    });
    Ok(plain(text.await?))
}
