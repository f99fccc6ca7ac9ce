//! Profiles for jobs: the operator's own, the shipped ones, and texts sent over the API.
//!
//! The administrator of the machine fills the folder of the operator's own profiles. Texts sent over the API are checked for
//! settings that reach beyond the crawl: a token for crawling must not run programs or read files. Components of registries
//! are only for admins: they are foreign code, and this machine would send requests to any named registry.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use opilio_control::FaultFound;
use opilio_crawl::{CrawlError, Faults, ProfileSource};
use opilio_profile::{Given, Level, Profile, toml_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Shared;
use super::jobs::blocking;
use crate::access::{Caller, Role};
use crate::input::{Body, Place};
use crate::problem::Problem;

/// Settings that name programs, files or secrets of this machine, or internal networks. `*` is any name.
const OUTSIDE: [&[&str]; 22] = [
    &["seeds-file"],
    &["archive", "directory"],
    &["archive", "more-directories"],
    &["archive", "dictionary"],
    &["archive", "on-close"],
    &["archive", "duplicates", "index"],
    &["archive", "duplicates", "history"],
    &["logs", "directory"],
    &["alerts", "command"],
    &["alerts", "webhook"],
    &["telemetry", "otlp"],
    &["cookies", "load"],
    &["cookies", "save"],
    &["fetch", "proxy"],
    &["fetch", "proxy-password"],
    &["fetch", "allow-addresses"],
    &["dns", "servers"],
    &["uri", "precedence-file"],
    &["tables", "*", "file"],
    &["credentials"],
    &["logins"],
    &["actions", "directory"],
];

/// List of profiles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Profiles {
    /// Profiles: the operator's first, then the shipped ones.
    profiles: Vec<ProfileName>,
}

/// A profile.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileName {
    /// Name of the profile.
    name: String,
    /// Whether the profile is shipped with Opilio.
    ships: bool,
}

/// Text of a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileText {
    /// Name of the profile.
    name: String,
    /// TOML text, as written.
    toml: String,
}

/// Profile to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checking {
    /// TOML text of the profile.
    toml: String,
}

/// Errors in a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Checked {
    /// Errors with their places; empty if the profile is valid.
    faults: Vec<FaultFound>,
}

/// Lists the profiles that jobs can use by name.
#[utoipa::path(get, path = "/profiles", operation_id = "list_profiles", tag = "profiles", responses((status = 200, body = Profiles)))]
pub(crate) async fn list(State(daemon): Shared) -> Json<Profiles> {
    let own = daemon.own_profiles();
    let shipped: Vec<ProfileName> = Profile::builtin_names()
        .filter(|name| !own.iter().any(|own| own == name))
        .map(|name| ProfileName {
            name: name.to_owned(),
            ships: true,
        })
        .collect();
    let own = own
        .into_iter()
        .map(|name| ProfileName { name, ships: false });
    Json(Profiles {
        profiles: own.chain(shipped).collect(),
    })
}

/// Returns the text of a profile.
#[utoipa::path(get, path = "/profiles/{profile}", operation_id = "show_profile", tag = "profiles", params(("profile" = String, Path, description = "Name of the profile")), responses((status = 200, body = ProfileText)))]
pub(crate) async fn show(
    State(daemon): Shared,
    Place(name): Place<String>,
) -> Result<Json<ProfileText>, Problem> {
    let unknown = || Problem::not_found(format!("profile {name:?} not found"));
    let toml = match daemon.profile(&name)? {
        ProfileSource::Builtin(name) => Profile::builtin_text(&name).map(str::to_owned),
        ProfileSource::File(file) => Some(text_of(&file)?),
        ProfileSource::Text { text, .. } => Some(text),
    };
    let toml = toml.ok_or_else(unknown)?;
    Ok(Json(ProfileText { name, toml }))
}

/// Reads the text of an operator's own file, and reports errors in it.
fn text_of(file: &Path) -> Result<String, Problem> {
    let bytes = std::fs::read(file).map_err(|problem| {
        let said = format!("cannot read {}: {problem}", file.display());
        Problem::conflict(format!("{said}; correct the file"))
    })?;
    String::from_utf8(bytes).map_err(|problem| {
        let until = problem.utf8_error().valid_up_to();
        let lines = problem.as_bytes()[..until]
            .iter()
            .filter(|it| **it == b'\n');
        let (file, line) = (file.display(), lines.count() + 1);
        Problem::unusable(format!("{file}:{line}: not UTF-8; save it as UTF-8"))
    })
}

/// Checks a profile and the settings of its plugins. Creates nothing.
#[utoipa::path(post, path = "/profiles/check", operation_id = "check_profile", tag = "profiles", request_body = Checking, responses((status = 200, body = Checked)))]
pub(crate) async fn check(
    State(daemon): Shared,
    caller: Caller,
    Body(Checking { toml }): Body<Checking>,
) -> Result<Json<Checked>, Problem> {
    keeps_to_itself(&toml, &caller)?;
    let cache = daemon.folder.component_cache();
    let faults = blocking(move || {
        let given = Given {
            builtins: opilio_crawl::builtin_plugins(),
            seeds_elsewhere: true,
            ..Given::default()
        };
        let profile = match Profile::parse("profile.toml", &toml, &given) {
            Ok(profile) => profile,
            Err(faults) => return Ok(found(&faults)),
        };
        match opilio_crawl::check_plugins(&profile, cache) {
            Ok(()) => Ok(found(&profile.notices)),
            Err(CrawlError::Profile(faults)) => Ok(found(&faults)),
            Err(other) => Err(Problem::failure(other.to_string())),
        }
    });
    let faults = faults.await?;
    Ok(Json(Checked { faults }))
}

/// Returns the JSON Schema of profiles.
#[utoipa::path(get, path = "/profile-schema", operation_id = "show_profile_schema", tag = "profiles", responses((status = 200, description = "A JSON Schema of draft 2020-12", body = Object)))]
pub(crate) async fn schema() -> Json<Value> {
    Json(Profile::schema())
}

/// The problem of a faulty profile, with all its errors.
pub(crate) fn faulty(faults: &Faults) -> Problem {
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

fn found(faults: &Faults) -> Vec<FaultFound> {
    faults.iter().map(FaultFound::from).collect()
}

/// Refuses settings that reach beyond the crawl, and components of registries unless the caller is an admin. No registry is
/// contacted for this check.
pub(crate) fn keeps_to_itself(text: &str, caller: &Caller) -> Result<(), Problem> {
    // The next parser of the text reports invalid TOML.
    let Some(Value::Object(profile)) = toml_value(text) else {
        return Ok(());
    };
    let overrides = profile.get("override").and_then(Value::as_array);
    let layers = overrides.into_iter().flatten();
    let tables: Vec<&Map<String, Value>> = std::iter::once(&profile)
        .chain(layers.filter_map(Value::as_object))
        .collect();
    let mut named: Vec<String> = tables
        .iter()
        .flat_map(|table| OUTSIDE.iter().filter(|path| has(table, path)))
        .map(|path| path.join("."))
        .collect();
    let plugins = profile.get("plugins").and_then(Value::as_object);
    let mut in_registries = Vec::new();
    for (name, plugin) in plugins.into_iter().flatten() {
        let Some(component) = plugin.get("component").and_then(Value::as_str) else {
            continue;
        };
        let setting = format!("plugins.{name}.component");
        match component.trim() {
            it if it.starts_with("builtin:") => {}
            it if it.starts_with("oci://") => in_registries.push(setting),
            _ => named.push(setting),
        }
    }
    let extended = match profile.get("extends") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let ships = |name: &str| Profile::builtin_names().any(|ships| ships == name);
    if extended.iter().any(|name| !ships(name)) {
        named.push("extends".to_owned());
    }
    if named.is_empty() {
        return match in_registries.is_empty() || caller.role >= Role::Admin {
            true => Ok(()),
            false => Err(Problem::forbidden(format!(
                "this requires the role admin, because it loads plugins from registries: {}; or ask an administrator to put the profile into the folder of profiles of the daemon, and use it by name",
                in_registries.join(", ")
            ))),
        };
    }
    named.sort();
    named.dedup();
    Err(Problem::forbidden(format!(
        "these settings name programs, files, secrets or networks of this machine, which the API does not allow: {}; put the profile into the folder of profiles of the daemon, and use it by name",
        named.join(", ")
    )))
}

fn has(table: &Map<String, Value>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    let within = |value: &Value| match rest.is_empty() {
        true => true,
        false => value.as_object().is_some_and(|table| has(table, rest)),
    };
    match *first {
        "*" => table.values().any(within),
        name => table.get(name).is_some_and(within),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn somebody(role: Role) -> Caller {
        Caller {
            user: "somebody".to_owned(),
            role,
        }
    }

    #[track_caller]
    fn refused(text: &str, named: &str) {
        let problem = keeps_to_itself(text, &somebody(Role::Admin)).unwrap_err();
        assert!(problem.detail().contains(named), "{}", problem.detail());
    }

    #[test]
    fn a_token_for_crawling_runs_no_program_and_reads_no_file() {
        refused(
            "[archive]\non-close = [\"sh\", \"-c\", \"id\"]\n",
            "archive.on-close",
        );
        refused("archive.on-close = [\"id\"]", "archive.on-close");
        refused("alerts = { command = [\"id\"] }", "alerts.command");
        refused(
            "[alerts]\nwebhook = \"http://192.168.0.1/\"",
            "alerts.webhook",
        );
        refused("fetch.proxy = \"http://192.168.0.1\"", "fetch.proxy");
        refused("seeds-file = \"/etc/passwd\"", "seeds-file");
        refused("extends = \"/etc/passwd\"", "extends");
        refused("extends = [\"default\", \"../a.toml\"]", "extends");
        refused(
            "[plugins.x]\ncomponent = \"/tmp/x.wasm\"",
            "plugins.x.component",
        );
        refused("[tables.x]\nfile = \"/etc/passwd\"", "tables.*.file");
        refused(
            "[[override]]\nmatch.host = [\"a.org\"]\nfetch.allow-addresses = [\"metadata\"]",
            "fetch.allow-addresses",
        );
        keeps_to_itself("extends = \"default\"\n[plugins.x]\ncomponent = \"builtin:html\"\n[plugins.x.settings]\nfile = \"a\"\n", &somebody(Role::Operator)).unwrap();
    }

    #[test]
    fn components_of_registries_are_for_admins() {
        for text in [
            "[plugins.x]\ncomponent = \"oci://127.0.0.1:5000/a/b:1\"",
            "plugins.x.component = \" oci://example.org/a/b:1\"",
            "plugins = { x = { component = \"oci://example.org/a/b:1\" } }",
        ] {
            let problem = keeps_to_itself(text, &somebody(Role::Operator)).unwrap_err();
            let said = problem.detail();
            assert!(
                said.contains("role admin") && said.contains("plugins.x.component"),
                "{said}"
            );
            keeps_to_itself(text, &somebody(Role::Admin)).unwrap();
        }
    }
}
