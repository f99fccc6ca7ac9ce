//! The check of a profile's text, and the JSON Schema of profiles.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use opilio_control::FaultFound;
use opilio_crawl::{CrawlError, Diagnostics};
use opilio_profile::{Level, Profile, ProfileContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Shared;
use super::jobs::blocking;
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::Body;
use crate::problem::Problem;
use crate::reach;

/// Profile to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checking {
    /// TOML text of the profile.
    toml: String,
    /// Name of the profile, if this is a new text of an existing one. Its settings that name programs or files of this machine may
    /// stay.
    profile: Option<String>,
}

/// Errors in a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checked {
    /// Errors with their places; empty if the profile is valid.
    faults: Vec<FaultFound>,
}

/// Checks a profile and the settings of its plugins. Changes nothing. Settings that name programs or files of this machine are
/// errors, unless the named profile has them.
#[utoipa::path(post, path = "/profiles/check", operation_id = "check_profile", tag = "profiles", request_body = Checking, responses((status = 200, body = Checked)))]
pub(crate) async fn check(
    State(daemon): Shared,
    caller: Caller,
    Body(Checking { toml, profile }): Body<Checking>,
) -> Result<Json<Checked>, Problem> {
    let faults = blocking(move || {
        let kept = stored_text(&daemon, profile.as_deref())?;
        let faults = reach::faults("profile.toml", &toml, kept.as_deref(), &caller);
        // The check of other settings is skipped, because it would read the named files.
        if !faults.is_empty() {
            return Ok(faults);
        }
        let folder = daemon.profiles.folder();
        let faults = match checked(&daemon, &folder.join("profile.toml"), &toml)? {
            Ok(profile) => profile.notices,
            Err(faults) => faults,
        };
        Ok(found(&faults))
    });
    let faults = faults.await?;
    Ok(Json(Checked { faults }))
}

/// Returns the newest text of a profile of the store, whose settings a client may keep; `None` for other profiles. Blocks.
pub(crate) fn stored_text(daemon: &Daemon, name: Option<&str>) -> Result<Option<String>, Problem> {
    let found = name.map(|name| daemon.profiles.find(name)).transpose()?;
    Ok(found.flatten().map(|stored| stored.text))
}

/// Reads a profile and checks the settings of its plugins. Relative paths start at the file's folder. Blocks, as components may
/// have to be compiled.
pub(crate) fn checked(
    daemon: &Daemon,
    file: &Path,
    toml: &str,
) -> Result<Result<Profile, Diagnostics>, Problem> {
    let given = ProfileContext {
        builtins: opilio_crawl::builtin_plugins(),
        seeds_elsewhere: true,
        base: file.parent().map(Path::to_owned),
        ..ProfileContext::default()
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let profile = match Profile::parse(&name, toml, &given) {
        Ok(profile) => profile,
        Err(faults) => return Ok(Err(faults)),
    };
    match opilio_crawl::check_plugins(&profile, daemon.folder.component_cache()) {
        Ok(()) => Ok(Ok(profile)),
        Err(CrawlError::Profile(faults)) => Ok(Err(faults)),
        Err(other) => Err(Problem::failure(other.to_string())),
    }
}

/// Returns the JSON Schema of profiles.
#[utoipa::path(get, path = "/profile-schema", operation_id = "show_profile_schema", tag = "profiles", responses((status = 200, description = "A JSON Schema of draft 2020-12", body = Object)))]
pub(crate) async fn schema() -> Json<Value> {
    Json(Profile::schema())
}

/// Returns the problem document of an invalid profile, with all its errors.
pub(crate) fn faulty(faults: &Diagnostics) -> Problem {
    let count = faults
        .iter()
        .filter(|fault| fault.level != Level::Info)
        .count();
    let detail = match count {
        1 => "the profile has an error".to_owned(),
        _ => format!("the profile has {count} errors"),
    };
    Problem::unusable(detail).with_faults(found(faults))
}

fn found(faults: &Diagnostics) -> Vec<FaultFound> {
    faults.iter().map(FaultFound::from).collect()
}
