//! Settings that reach beyond the crawl. With a token for crawling it must not be possible to run programs, read files or contact
//! other servers. Components of registries are only for admins, because they are foreign code, and because this machine would send
//! requests to any registry.
//!
//! The administrator of the machine may put such settings into a profile of the store. Over the API they can then be kept or
//! removed, but not changed.

use opilio_control::FaultFound;
use opilio_profile::{Profile, fault_in, toml_parts};
use serde_json::{Map, Value, json};

use crate::access::{Caller, Role};
use crate::problem::Problem;

/// Settings that name programs, files or secrets of this machine, or internal networks. `*` is any name.
const OUTSIDE: [&[&str]; 27] = [
    &["seeds-file"],
    &["archive", "directory"],
    &["archive", "more-directories"],
    &["archive", "dictionary"],
    &["archive", "on-close"],
    &["archive", "store"],
    &["archive", "duplicates", "index"],
    &["archive", "duplicates", "history"],
    &["logs", "directory"],
    &["alerts", "command"],
    &["alerts", "webhook"],
    &["webhooks"],
    &["streams"],
    &["telemetry", "otlp"],
    &["browser", "executable"],
    &["browser", "sandbox"],
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

/// Keys of a plugin's table that decide which component is loaded.
const COMPONENT_KEYS: [&str; 4] = ["component", "sha256", "insecure", "watch"];

/// Remedy for settings that cannot be changed over the API.
const BY_FILE: &str = "ask an administrator of the machine to save the profile with `opilio profile save`, and use it by name";

/// Remedy for plugins of registries.
const BY_ADMIN: &str = "ask an administrator to save the profile, and use it by name";

/// A setting that reaches beyond the crawl.
#[derive(Debug, Clone, PartialEq)]
struct Reach {
    /// Its name, such as `archive.on-close`.
    setting: String,
    value: Value,
    /// The conditions of the override with the setting; null outside of overrides.
    matching: Value,
    is_of_registry: bool,
}

/// Refuses settings that reach beyond the crawl, except those of the profile `beside`: a text of the store that the new text
/// replaces or copies. No registry is contacted and no file is read.
pub(crate) fn check(text: &str, beside: Option<&str>, caller: &Caller) -> Result<(), Problem> {
    let refused = refused(text, beside, caller);
    let names = |of_registry: bool| {
        let of_kind = refused
            .iter()
            .filter(|(_, it)| it.is_of_registry == of_registry);
        let mut names: Vec<&str> = of_kind.map(|(_, it)| it.setting.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    };
    let (named, in_registries) = (names(false), names(true));
    match (named.is_empty(), in_registries.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Problem::forbidden(format!(
            "this requires the role admin, because it loads plugins from registries: {in_registries}; or {BY_ADMIN}"
        ))),
        (false, _) => Err(Problem::forbidden(format!(
            "these settings name programs, files, secrets or networks of this machine, which the API does not allow: {named}; {BY_FILE}"
        ))),
    }
}

/// Returns the refused settings as errors with their places. `file` is the name of the text in the errors.
pub(crate) fn faults(
    file: &str,
    text: &str,
    beside: Option<&str>,
    caller: &Caller,
) -> Vec<FaultFound> {
    let refused = refused(text, beside, caller);
    let fault = |(pointer, reach): &(String, Reach)| {
        let setting = &reach.setting;
        let (problem, remedy) = match reach.is_of_registry {
            true => (
                format!("{setting} loads a plugin from a registry, which requires the role admin"),
                BY_ADMIN,
            ),
            false => (
                format!(
                    "{setting} names a program, file, secret or network of this machine, which the API does not allow"
                ),
                BY_FILE,
            ),
        };
        FaultFound::from(&fault_in(
            file,
            text,
            pointer,
            problem,
            Some(remedy.to_owned()),
        ))
    };
    refused.iter().map(fault).collect()
}

/// The settings that are refused, with JSON Pointers to them.
fn refused(text: &str, beside: Option<&str>, caller: &Caller) -> Vec<(String, Reach)> {
    let mut found = reaches(text);
    let known: Vec<Reach> = match beside {
        Some(beside) if !found.is_empty() => {
            reaches(beside).into_iter().map(|(_, it)| it).collect()
        }
        _ => Vec::new(),
    };
    found.retain(|(_, reach)| {
        let is_allowed = reach.is_of_registry && caller.role >= Role::Admin;
        !is_allowed && !known.contains(reach)
    });
    found
}

/// Returns all settings of a text that reach beyond the crawl. After an error in the text, reading continues, as in the check of
/// profiles.
fn reaches(text: &str) -> Vec<(String, Reach)> {
    let profile = toml_parts(text);
    let mut found = Vec::new();
    outside(&profile, "", &Value::Null, &mut found);
    let overrides = profile.get("override").and_then(Value::as_array);
    for (number, one) in overrides.into_iter().flatten().enumerate() {
        let matching = one.get("match").cloned().unwrap_or(json!({}));
        outside(one, &format!("/override/{number}"), &matching, &mut found);
    }
    let plugins = profile.get("plugins").and_then(Value::as_object);
    for (name, plugin) in plugins.into_iter().flatten() {
        let Some(component) = plugin.get("component").and_then(Value::as_str) else {
            continue;
        };
        let component = component.trim();
        if component.starts_with("builtin:") {
            continue;
        }
        let keys = COMPONENT_KEYS.iter().filter_map(|key| {
            let value = plugin.get(*key)?;
            Some(((*key).to_owned(), value.clone()))
        });
        found.push((
            child(&child("/plugins", name), "component"),
            Reach {
                setting: format!("plugins.{name}.component"),
                value: Value::Object(keys.collect::<Map<_, _>>()),
                matching: Value::Null,
                is_of_registry: component.starts_with("oci://"),
            },
        ));
    }
    if let Some(extends) = profile.get("extends")
        && !extends_only_shipped(&profile)
    {
        found.push((
            "/extends".to_owned(),
            Reach {
                setting: "extends".to_owned(),
                value: extends.clone(),
                matching: Value::Null,
                is_of_registry: false,
            },
        ));
    }
    found
}

/// Returns `true` if all profiles that this one extends are shipped, so that no file is read for them.
pub(crate) fn extends_only_shipped(profile: &Value) -> bool {
    let names = match profile.get("extends") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let ships = |name: &&str| Profile::builtin_names().any(|ships| ships == *name);
    names.iter().all(ships)
}

/// Settings of [`OUTSIDE`] in a table: a profile or one of its overrides.
fn outside(table: &Value, at: &str, matching: &Value, found: &mut Vec<(String, Reach)>) {
    for path in OUTSIDE {
        each_at(table, path, at, "", &mut |pointer, setting, value| {
            found.push((
                pointer,
                Reach {
                    setting,
                    value: value.clone(),
                    matching: matching.clone(),
                    is_of_registry: false,
                },
            ));
        });
    }
}

/// Calls `found` with pointer, name and value of each setting at a path.
fn each_at(
    value: &Value,
    path: &[&str],
    at: &str,
    name: &str,
    found: &mut impl FnMut(String, String, &Value),
) {
    let Some((first, rest)) = path.split_first() else {
        return found(at.to_owned(), name.to_owned(), value);
    };
    let is_meant = |key: &str| *first == "*" || key == *first;
    let within = value.as_object().into_iter().flatten();
    for (key, value) in within.filter(|(key, _)| is_meant(key)) {
        let name = match name {
            "" => key.clone(),
            name => format!("{name}.{key}"),
        };
        each_at(value, rest, &child(at, key), &name, found);
    }
}

/// The JSON Pointer to a key of the value at `pointer`.
fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn caller(role: Role) -> Caller {
        Caller {
            user: "caller".to_owned(),
            role,
        }
    }

    #[track_caller]
    fn refused(text: &str, named: &str) {
        let problem = check(text, None, &caller(Role::Admin)).unwrap_err();
        assert!(problem.detail().contains(named), "{}", problem.detail());
        // The setting is allowed if the profile of the store has it already.
        check(text, Some(text), &caller(Role::Operator)).unwrap();
    }

    #[test]
    fn a_text_of_the_api_names_no_program_file_or_internal_network() {
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
        refused("browser.executable = \"/bin/sh\"", "browser.executable");
        refused("browser.sandbox = false", "browser.sandbox");
        refused("seeds-file = \"/etc/passwd\"", "seeds-file");
        // The check of profiles continues after an error, and would read the file.
        refused("seeds-file = \"/etc/passwd\"\nworkers =\n", "seeds-file");
        refused("extends = \"/etc/passwd\"", "extends");
        refused("extends = [\"default\", \"../a.toml\"]", "extends");
        refused(
            "[plugins.x]\ncomponent = \"/tmp/x.wasm\"",
            "plugins.x.component",
        );
        refused("[tables.x]\nfile = \"/etc/passwd\"", "tables.x.file");
        refused(
            "[[override]]\nmatch.host = [\"a.org\"]\nfetch.allow-addresses = [\"metadata\"]",
            "fetch.allow-addresses",
        );
        check("extends = \"default\"\n[plugins.x]\ncomponent = \"builtin:html\"\n[plugins.x.settings]\nfile = \"a\"\n", None, &caller(Role::Operator)).unwrap();
    }

    #[test]
    fn components_of_registries_are_for_admins() {
        for text in [
            "[plugins.x]\ncomponent = \"oci://127.0.0.1:5000/a/b:1\"",
            "plugins.x.component = \" oci://example.org/a/b:1\"",
            "plugins = { x = { component = \"oci://example.org/a/b:1\" } }",
        ] {
            let problem = check(text, None, &caller(Role::Operator)).unwrap_err();
            let detail = problem.detail();
            assert!(
                detail.contains("role admin") && detail.contains("plugins.x.component"),
                "{detail}"
            );
            check(text, None, &caller(Role::Admin)).unwrap();
        }
    }

    #[test]
    fn settings_of_a_stored_profile_can_be_kept_but_not_changed() {
        let stored = "workers = 2\n[archive]\non-close = [\"id\"]\n[plugins.x]\ncomponent = \"x.wasm\"\nsha256 = \"ab\"\n[[override]]\nmatch.host = [\"a.org\"]\nfetch.allow-addresses = [\"loopback\"]\n";
        let operator = caller(Role::Operator);
        for (from, to, named) in [
            ("workers = 2", "workers = 3", None),
            ("[archive]\non-close = [\"id\"]\n", "", None),
            ("\"id\"", "\"sh\"", Some("archive.on-close")),
            ("\"x.wasm\"", "\"y.wasm\"", Some("plugins.x.component")),
            ("sha256 = \"ab\"\n", "", Some("plugins.x.component")),
            ("\"a.org\"", "\"b.org\"", Some("fetch.allow-addresses")),
            (
                "match.host = [\"a.org\"]\n",
                "",
                Some("fetch.allow-addresses"),
            ),
            (
                "workers = 2",
                "seeds-file = \"/etc/passwd\"",
                Some("seeds-file"),
            ),
        ] {
            let text = stored.replace(from, to);
            assert_ne!(text, stored, "{from}");
            let faults = faults("a.toml", &text, Some(stored), &operator);
            match named {
                None => assert_eq!(faults, [], "{text}"),
                Some(named) => {
                    assert!(faults[0].problem.contains(named), "{text}: {faults:?}");
                    assert!(faults[0].line.is_some(), "{faults:?}");
                }
            }
        }
        // The error is at the line of the setting.
        let faults = faults("a.toml", stored, None, &operator);
        let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [Some(3), Some(9), Some(5)]);
    }
}
