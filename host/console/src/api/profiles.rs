//! Named profiles with their versions: those of the store, and the shipped ones.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use opilio_control::FaultFound;
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::jobs::blocking;
use super::profile_check::{checked, faulty};
use super::{BASE, Limit, Shared, checked_limit, own_files};
use crate::access::{Caller, Role};
use crate::daemon::Daemon;
use crate::input::{Body, Params, PathParams};
use crate::problem::Problem;
use crate::profile_store::{
    ChangeNote, ExpectedProfile, ProfileStoreError, ProfileSummary, ProfileVersion, StoredProfile,
    profile_difference,
};
use crate::reach;

/// List of profiles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Profiles {
    /// Profiles: those of the store first, then the shipped ones.
    profiles: Vec<ProfileSummary>,
}

/// Text of a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileText {
    /// Name of the profile.
    name: String,
    /// TOML text, as written.
    toml: String,
    /// `true` if the profile is shipped with Opilio.
    ships: bool,
    /// Number of the version; not set for shipped profiles.
    version: Option<u64>,
    /// Tag of the newest version, for `If-Match`; also in the header `ETag`. Not set for shipped profiles and earlier versions.
    tag: Option<String>,
}

/// New profile.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProfile {
    /// Name: letters, digits, `.`, `-` and `_`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length = 100)]
    name: String,
    /// TOML text of the profile.
    #[schema(format = "profile")]
    toml: String,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// New text of a profile.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewText {
    /// TOML text of the profile.
    #[schema(format = "profile")]
    toml: String,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Copy of a profile.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCopy {
    /// Name of the new profile: letters, digits, `.`, `-` and `_`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length = 100)]
    name: String,
    /// Version to copy; not set: the newest.
    #[schema(minimum = 1, maximum = 9007199254740991_u64)]
    version: Option<u64>,
    /// Reason for the change, for the history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Newest version of a profile that was saved.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedProfile {
    /// Name of the profile.
    name: String,
    /// Number of the newest version.
    version: u64,
    /// Tag of the newest version, for `If-Match`.
    tag: String,
    /// Notes about the saved text, such as settings without effect; empty for a copy.
    notices: Vec<FaultFound>,
}

/// Versions of a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileVersions {
    /// Versions, newest first.
    versions: Vec<ProfileVersion>,
}

/// Reason for a deletion.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deletion {
    /// Reason for the change, for the history.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Versions to compare.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparing {
    /// Version of the profile; not set: the newest.
    #[param(minimum = 1, maximum = 9007199254740991_u64)]
    version: Option<u64>,
    /// Name of the other profile; not set: the same profile.
    with: Option<String>,
    /// Version of the other profile; not set: the newest.
    #[param(minimum = 1, maximum = 9007199254740991_u64)]
    with_version: Option<u64>,
}

/// Difference of two versions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileComparison {
    /// First version, such as `news@2`.
    from: String,
    /// Second version.
    to: String,
    /// Unified diff; empty if the texts are equal.
    diff: String,
}

/// Named profile from which a job was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobProfileOrigin {
    /// Name of the profile; not set if the job was made from a file or a text.
    profile: Option<String>,
    /// Version with which the job was made; not set for shipped profiles.
    version: Option<u64>,
    /// Newest version; not set for shipped and deleted profiles.
    newest: Option<u64>,
    /// Unified diff from the job's profile to the newest version; empty if they are equal, not set if there is no such profile.
    diff: Option<String>,
}

/// A profile as it is found by its name.
enum Found {
    Stored(StoredProfile),
    Shipped(&'static str),
}

impl Found {
    fn text(&self) -> &str {
        match self {
            Found::Stored(stored) => &stored.text,
            Found::Shipped(text) => text,
        }
    }
}

/// Lists the profiles that jobs can use by name.
#[utoipa::path(get, path = "/profiles", operation_id = "list_profiles", tag = "profiles", responses((status = 200, body = Profiles)))]
pub(crate) async fn list(State(daemon): Shared) -> Result<Json<Profiles>, Problem> {
    let profiles = blocking(move || Ok(daemon.profiles.summaries())).await?;
    Ok(Json(Profiles { profiles }))
}

/// Returns the text of a profile.
#[utoipa::path(get, path = "/profiles/{profile}", operation_id = "show_profile", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile")), responses((status = 200, body = ProfileText)))]
pub(crate) async fn show(
    State(daemon): Shared,
    PathParams(name): PathParams<String>,
) -> Result<impl IntoResponse, Problem> {
    let found = blocking(move || {
        let found = find(&daemon, &name)?;
        Ok((name, found))
    });
    let (name, found) = found.await?;
    let tag = match &found {
        Found::Stored(stored) => Some(stored.tag()),
        Found::Shipped(_) => None,
    };
    let headers = tag.as_deref().map(etag).unwrap_or_default();
    let text = ProfileText {
        name,
        toml: found.text().to_owned(),
        ships: tag.is_none(),
        version: match &found {
            Found::Stored(stored) => Some(stored.version),
            Found::Shipped(_) => None,
        },
        tag,
    };
    Ok((headers, Json(text)))
}

/// Creates a profile. A text with errors is refused; the response lists them with line and column. The text must not name
/// programs or files of this machine. Only an admin's may name components in registries.
#[utoipa::path(post, path = "/profiles", operation_id = "make_profile", tag = "profiles", request_body = NewProfile, responses((status = 201, body = SavedProfile, headers(("location" = String, description = "The profile"), ("etag" = String, description = "Tag of the version")))))]
pub(crate) async fn make(
    State(daemon): Shared,
    caller: Caller,
    Body(new): Body<NewProfile>,
) -> Result<impl IntoResponse, Problem> {
    reach::check(&new.toml, None, &caller)?;
    let saved = blocking(move || {
        let notices = must_be_valid(&daemon, &new.name, &new.toml)?;
        let note = note(&caller, new.reason.as_deref());
        let saved = daemon
            .profiles
            .save(&new.name, &new.toml, ExpectedProfile::Missing, note);
        Ok((saved?, notices))
    });
    Ok(answer(StatusCode::CREATED, saved.await?))
}

/// Saves a new version of a profile. `If-Match` has the tag of the version that the client has read; if the profile has changed
/// since, nothing is saved (412). A text with errors is refused; the response lists them with line and column. Settings that
/// name programs or files of this machine may stay as they are, or be removed.
#[utoipa::path(put, path = "/profiles/{profile}", operation_id = "save_profile", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile"), ("if-match" = String, Header, description = "Tag of the version that was read, as in the header `ETag`; `*` for the newest version, whichever it is")), request_body = NewText, responses((status = 200, body = SavedProfile, headers(("etag" = String, description = "Tag of the version")))))]
pub(crate) async fn save(
    State(daemon): Shared,
    caller: Caller,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
    Body(new): Body<NewText>,
) -> Result<impl IntoResponse, Problem> {
    let saved = blocking(move || {
        let stored = changeable_profile(&daemon, &name)?;
        let expected = expected(&headers)?;
        // Settings of the replaced version may stay.
        daemon.profiles.must_be(Some(&stored), &name, expected)?;
        reach::check(&new.toml, Some(&stored.text), &caller)?;
        let notices = must_be_valid(&daemon, &name, &new.toml)?;
        let note = note(&caller, new.reason.as_deref());
        let saved = daemon.profiles.save(&name, &new.toml, expected, note)?;
        Ok((saved, notices))
    });
    Ok(answer(StatusCode::OK, saved.await?))
}

/// Makes a new profile from a version of another one.
#[utoipa::path(post, path = "/profiles/{profile}/copy", operation_id = "copy_profile", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile")), request_body = NewCopy, responses((status = 201, body = SavedProfile, headers(("location" = String, description = "The new profile"), ("etag" = String, description = "Tag of the version")))))]
pub(crate) async fn copy(
    State(daemon): Shared,
    caller: Caller,
    PathParams(name): PathParams<String>,
    Body(new): Body<NewCopy>,
) -> Result<impl IntoResponse, Problem> {
    let saved = blocking(move || {
        let (of, text) = version(&daemon, &name, new.version)?;
        let newest = find(&daemon, &name)?;
        // An earlier version may have settings that an administrator has removed since, so it is checked.
        reach::check(&text, Some(newest.text()), &caller)?;
        let note = note(&caller, new.reason.as_deref());
        let saved = daemon.profiles.copy(&new.name, &text, of, note)?;
        Ok((saved, Vec::new()))
    });
    Ok(answer(StatusCode::CREATED, saved.await?))
}

/// Deletes a profile. `If-Match` has the tag of the version that the client has read; if the profile has changed since, it stays
/// (412). Its versions stay. Jobs have their own copies. For admins.
#[utoipa::path(delete, path = "/profiles/{profile}", operation_id = "delete_profile", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile"), ("if-match" = String, Header, description = "Tag of the version that was read, as in the header `ETag`; `*` for the newest version, whichever it is"), Deletion), responses((status = 204, description = "The profile was deleted")))]
pub(crate) async fn delete(
    State(daemon): Shared,
    caller: Caller,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
    Params(Deletion { reason }): Params<Deletion>,
) -> Result<StatusCode, Problem> {
    caller.needs(Role::Admin)?;
    blocking(move || {
        changeable_profile(&daemon, &name)?;
        let expected = expected(&headers)?;
        let note = note(&caller, reason.as_deref());
        Ok(daemon.profiles.delete(&name, expected, note)?)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the versions of a profile, also of a deleted one: time, user and reason of each.
#[utoipa::path(get, path = "/profiles/{profile}/versions", operation_id = "list_profile_versions", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile"), Limit), responses((status = 200, body = ProfileVersions)))]
pub(crate) async fn versions(
    State(daemon): Shared,
    PathParams(name): PathParams<String>,
    Params(Limit { limit }): Params<Limit>,
) -> Result<Json<ProfileVersions>, Problem> {
    let limit = usize::try_from(checked_limit(limit)?).unwrap_or(usize::MAX);
    let versions = blocking(move || {
        let mut versions = match daemon.profiles.versions(&name) {
            Err(ProfileStoreError::Unknown { .. }) if Profile::builtin_text(&name).is_some() => {
                Vec::new()
            }
            versions => versions?,
        };
        versions.reverse();
        versions.truncate(limit);
        Ok(versions)
    });
    Ok(Json(ProfileVersions {
        versions: versions.await?,
    }))
}

/// Returns the text of a version of a profile.
#[utoipa::path(get, path = "/profiles/{profile}/versions/{version}", operation_id = "show_profile_version", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile"), ("version" = u64, Path, minimum = 1, maximum = 9007199254740991_u64, description = "Number of the version")), responses((status = 200, body = ProfileText)))]
pub(crate) async fn show_version(
    State(daemon): Shared,
    PathParams((name, version)): PathParams<(String, u64)>,
) -> Result<Json<ProfileText>, Problem> {
    let text = blocking(move || {
        let toml = daemon.profiles.text(&name, version)?;
        Ok(ProfileText {
            name,
            toml,
            ships: false,
            version: Some(version),
            tag: None,
        })
    });
    Ok(Json(text.await?))
}

/// Compares two versions of a profile, or two profiles.
#[utoipa::path(get, path = "/profiles/{profile}/compare", operation_id = "compare_profiles", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile"), Comparing), responses((status = 200, body = ProfileComparison)))]
pub(crate) async fn compare(
    State(daemon): Shared,
    PathParams(name): PathParams<String>,
    Params(Comparing {
        version: number,
        with,
        with_version,
    }): Params<Comparing>,
) -> Result<Json<ProfileComparison>, Problem> {
    let comparison = blocking(move || {
        let (from, before) = version(&daemon, &name, number)?;
        let with = with.unwrap_or(name);
        let (to, after) = version(&daemon, &with, with_version)?;
        let diff = profile_difference((&from, &before), (&to, &after));
        Ok(ProfileComparison { from, to, diff })
    });
    Ok(Json(comparison.await?))
}

/// Shows the named profile and the version with which a job was made, and what differs from the newest version.
#[utoipa::path(get, path = "/jobs/{job}/profile-origin", operation_id = "show_job_profile_origin", tag = "profiles", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = JobProfileOrigin)))]
pub(crate) async fn origin(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<JobProfileOrigin>, Problem> {
    let directory = daemon.directory(&job)?;
    let origin = blocking(move || {
        own_files(&directory)?;
        let made = opilio_crawl::origin_of_job(&directory);
        let made = made.map_err(|problem| Problem::conflict(problem.to_string()))?;
        let Some(named) = made.named else {
            return Ok(JobProfileOrigin {
                profile: None,
                version: None,
                newest: None,
                diff: None,
            });
        };
        let newest = match find(&daemon, &named.name) {
            Ok(newest) => Some(newest),
            Err(problem) if problem.is_not_found() => None,
            Err(problem) => return Err(problem),
        };
        let own = std::fs::read_to_string(directory.join("profile.toml"))
            .map_err(|problem| Problem::failure(format!("cannot read profile.toml: {problem}")))?;
        let number = match &newest {
            Some(Found::Stored(stored)) => Some(stored.version),
            _ => None,
        };
        let (from, to) = (format!("{job}/profile.toml"), label(&named.name, number));
        let diff = newest.map(|newest| profile_difference((&from, &own), (&to, newest.text())));
        Ok(JobProfileOrigin {
            profile: Some(named.name),
            version: named.version,
            newest: number,
            diff,
        })
    });
    Ok(Json(origin.await?))
}

/// A profile by its name: one of the store, or a shipped one. Blocks.
fn find(daemon: &Daemon, name: &str) -> Result<Found, Problem> {
    match daemon.profiles.get(name) {
        Ok(stored) => Ok(Found::Stored(stored)),
        Err(problem @ ProfileStoreError::Unknown { .. }) => Profile::builtin_text(name)
            .map(Found::Shipped)
            .ok_or_else(|| problem.into()),
        Err(problem) => Err(problem.into()),
    }
}

/// A profile that can be changed. Blocks.
fn changeable_profile(daemon: &Daemon, name: &str) -> Result<StoredProfile, Problem> {
    match find(daemon, name)? {
        Found::Stored(stored) => Ok(stored),
        Found::Shipped(_) => Err(Problem::conflict(format!(
            "profile {name:?} is shipped with Opilio and cannot be changed; make a copy"
        ))),
    }
}

/// A version, or the newest one, with its name in differences. Blocks.
fn version(daemon: &Daemon, name: &str, number: Option<u64>) -> Result<(String, String), Problem> {
    if let Some(number) = number {
        let text = daemon.profiles.text(name, number)?;
        return Ok((label(name, Some(number)), text));
    }
    Ok(match find(daemon, name)? {
        Found::Stored(stored) => (label(name, Some(stored.version)), stored.text),
        Found::Shipped(text) => (label(name, None), text.to_owned()),
    })
}

fn label(name: &str, version: Option<u64>) -> String {
    match version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    }
}

/// Refuses a text with errors. Returns notes about it.
fn must_be_valid(daemon: &Daemon, name: &str, toml: &str) -> Result<Vec<FaultFound>, Problem> {
    let file = daemon.profiles.folder().join(format!("{name}.toml"));
    match checked(daemon, &file, toml)? {
        Ok(profile) => Ok(profile.notices.iter().map(FaultFound::from).collect()),
        Err(faults) => Err(faulty(&faults)),
    }
}

fn note<'n>(caller: &'n Caller, reason: Option<&'n str>) -> ChangeNote<'n> {
    ChangeNote {
        by: &caller.user,
        reason,
    }
}

/// Returns the version that a client expects to change: the one with the tag in `If-Match`, or with `*` the newest (RFC 9110,
/// 13.1.1). Weak tags are accepted, because proxies that compress weaken tags.
fn expected(headers: &HeaderMap) -> Result<ExpectedProfile<'_>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Err(Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            "send the tag of the version that you have read, in the header If-Match",
        ));
    };
    Ok(match value.to_str().unwrap_or_default().trim() {
        "*" => ExpectedProfile::Any,
        tag => ExpectedProfile::Tag(tag.trim_start_matches("W/").trim_matches('"')),
    })
}

fn etag(tag: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("\"{tag}\"")).ok();
    value.map(|tag| (header::ETAG, tag)).into_iter().collect()
}

fn answer(
    status: StatusCode,
    (saved, notices): (StoredProfile, Vec<FaultFound>),
) -> impl IntoResponse {
    let tag = saved.tag();
    let mut headers = etag(&tag);
    if status == StatusCode::CREATED
        && let Ok(location) = HeaderValue::try_from(format!("{BASE}/profiles/{}", saved.name))
    {
        headers.insert(header::LOCATION, location);
    }
    let body = SavedProfile {
        name: saved.name,
        version: saved.version,
        tag,
        notices,
    };
    (status, headers, Json(body))
}
