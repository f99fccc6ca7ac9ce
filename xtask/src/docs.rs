//! `cargo xtask docs`: generates documentation from the code: the tables of keys in `docs/PROFILE.md` and of request bodies in
//! `docs/API.md`, each between two marks, and the page of the contract, `docs/CONTRACT.md`.

mod contract;
mod requests;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use opilio_profile::Profile;
use serde_json::Value;

/// The file, relative to the root of the workspace.
const FILE: &str = "docs/PROFILE.md";
/// The page of the API, and the description from which its tables are generated.
const API: &str = "docs/API.md";
const DESCRIPTION: &str = "docs/openapi.json";
/// The page of the plugin contract.
const CONTRACT: &str = "docs/CONTRACT.md";
/// Mark at the start of the generated part.
const BEGIN: &str = "<!-- written by `cargo xtask docs` from here on -->\n";
/// Mark at its end.
const END: &str = "<!-- written by `cargo xtask docs` up to here -->\n";

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail if a file is outdated, and write nothing.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask is not in a workspace")?;
    let read =
        |file: &str| fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"));
    let requests = requests::reference(&read(DESCRIPTION)?)?;
    let pages = [
        (
            FILE,
            with_reference(FILE, &read(FILE)?, &reference(&Profile::schema()))?,
        ),
        (API, with_reference(API, &read(API)?, &requests)?),
        (CONTRACT, contract::page(root)?),
    ];
    for (file, wanted) in pages {
        let path = root.join(file);
        if fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if options.check {
            bail!("{file} is outdated; run `cargo xtask docs`");
        }
        fs::write(&path, wanted).with_context(|| format!("writing {file}"))?;
    }
    Ok(())
}

/// Replaces the text between the marks.
fn with_reference(file: &str, text: &str, reference: &str) -> Result<String> {
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{file} lacks the line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{file} lacks the line {END}"))?;
    Ok(format!("{before}{BEGIN}{reference}{END}{after}"))
}

/// All tables of the profile with their keys, by name.
fn reference(schema: &Value) -> String {
    let mut text = String::new();
    table(schema, schema, "", &mut text);
    text
}

fn table(schema: &Value, node: &Value, name: &str, text: &mut String) {
    let heading = if name.is_empty() {
        "Above the first table".to_owned()
    } else {
        format!("`[{name}]`")
    };
    let about = if name.is_empty() {
        ""
    } else {
        node["description"].as_str().unwrap_or_default()
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n### {heading}\n");
    if !about.is_empty() {
        let _ = writeln!(text, "{}\n", one_line(about));
    }
    let mut inner = Vec::new();
    let _ = writeln!(text, "| key | default | what it is |\n|---|---|---|");
    for (key, node) in node["properties"].as_object().into_iter().flatten() {
        let target = resolve(schema, node);
        if target["properties"].is_object() {
            inner.push((joined(name, key), target));
            continue;
        }
        if let Some(instances) = node
            .get("additionalProperties")
            .filter(|node| node.is_object() && name.is_empty())
        {
            inner.push((joined(key, "NAME"), resolve(schema, instances)));
            continue;
        }
        let _ = writeln!(
            text,
            "| `{key}` {}",
            row(target, node["description"].as_str().unwrap_or_default())
        );
    }
    for (name, target) in inner {
        table(schema, target, &name, text);
    }
}

/// The cells after the key. Descriptions name the default and its reason: ``Default `25`: why``.
fn row(target: &Value, description: &str) -> String {
    let description = one_line(description);
    let (about, rest) = match description
        .split_once("Default `")
        .map(|(about, rest)| (about, rest.split_once('`')))
    {
        Some((about, Some(rest))) => (about, Some(rest)),
        _ => (description.as_str(), None),
    };
    let default = rest.map_or_else(|| "none".to_owned(), |(default, _)| format!("`{default}`"));
    // The column already shows this.
    let about = about.split("No default:").next().unwrap_or_default();
    let reason = rest
        .or(description.split_once("No default"))
        .map_or("", |(_, reason)| reason.trim_start_matches(':').trim());
    let mut cell = about.trim().to_owned();
    let options = options(target);
    if !options.is_empty() {
        let _ = write!(cell, " One of {}.", options.join(", "));
    }
    if !reason.is_empty() {
        let _ = write!(cell, " *{}*", sentence(reason));
    }
    format!(
        "| {} | {} |",
        default.replace('|', "\\|"),
        cell.trim().replace('|', "\\|")
    )
}

/// The allowed values of a key with few of them, each with its meaning.
fn options(target: &Value) -> Vec<String> {
    let values = target
        .get("oneOf")
        .or_else(|| target.get("enum"))
        .and_then(Value::as_array);
    let of = |value: &Value| {
        let word = value.as_str().or_else(|| value["const"].as_str())?;
        let about = value["description"]
            .as_str()
            .map(|about| format!(" ({})", lower(one_line(about).trim_end_matches('.'))));
        Some(format!("`\"{word}\"`{}", about.unwrap_or_default()))
    };
    values.into_iter().flatten().filter_map(of).collect()
}

fn resolve<'s>(schema: &'s Value, node: &'s Value) -> &'s Value {
    let target = node["$ref"]
        .as_str()
        .and_then(|target| target.strip_prefix('#'));
    target
        .and_then(|target| schema.pointer(target))
        .unwrap_or(node)
}

fn joined(above: &str, key: &str) -> String {
    if above.is_empty() {
        key.to_owned()
    } else {
        format!("{above}.{key}")
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// The text with a lower-case first letter, unless it begins with an abbreviation.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    if letters.clone().next().is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    let first = first.into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_reference_is_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let found = fs::read_to_string(root.join(FILE)).unwrap();
        let wanted = with_reference(FILE, &found, &reference(&Profile::schema())).unwrap();
        assert!(
            found == wanted,
            "{FILE} is older than the profile's types; run `cargo xtask docs`"
        );
    }

    #[test]
    fn a_default_has_its_own_column() {
        assert_eq!(
            row(&Value::Null, "How many. Default `25`: enough for one."),
            "| `25` | How many. *Enough for one.* |"
        );
        assert_eq!(
            row(&Value::Null, "A page. No default: it must be set."),
            "| none | A page. *It must be set.* |"
        );
    }
}
