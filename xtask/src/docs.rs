//! `cargo xtask docs`: writes what can be written from the code, so that it stays true: the tables of keys in
//! `docs/PROFILE.md` and of request bodies in `docs/API.md`, between two marks each, and the contract's page,
//! `docs/CONTRACT.md`.

mod contract;
mod requests;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use opilio_profile::Profile;
use serde_json::Value;

/// The file, from the workspace's root.
const FILE: &str = "docs/PROFILE.md";
/// The page of the API, and the description that its tables are written from.
const API: &str = "docs/API.md";
const DESCRIPTION: &str = "docs/openapi.json";
/// The page of the plugin contract.
const CONTRACT: &str = "docs/CONTRACT.md";
/// Begin of the generated part.
const BEGIN: &str = "<!-- written by `cargo xtask docs` from here on -->\n";
/// Its end.
const END: &str = "<!-- written by `cargo xtask docs` up to here -->\n";

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail where the file is not what would be written, and write nothing.
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
            bail!("{file} is older than what it is written from; run `cargo xtask docs`");
        }
        fs::write(&path, wanted).with_context(|| format!("writing {file}"))?;
    }
    Ok(())
}

/// The text with what stands between the marks replaced.
fn with_reference(file: &str, text: &str, reference: &str) -> Result<String> {
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{file} lacks the line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{file} lacks the line {END}"))?;
    Ok(format!("{before}{BEGIN}{reference}{END}{after}"))
}

/// Every table of the profile and its keys, by name.
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
    // Writing into a string does not fail.
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

/// The cells behind the key. Descriptions name the default and its reason: ``Default `25`: why``.
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
    // Said by the column.
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

/// The values that a key takes where they are few, each with what it means.
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

/// The text with a small first letter, unless it begins with an abbreviation.
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
    fn the_reference_is_what_the_types_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let found = fs::read_to_string(root.join(FILE)).unwrap();
        let wanted = with_reference(FILE, &found, &reference(&Profile::schema())).unwrap();
        assert!(
            found == wanted,
            "{FILE} is older than the profile's types; run `cargo xtask docs`"
        );
    }

    #[test]
    fn a_default_stands_in_its_own_column() {
        assert_eq!(
            row(&Value::Null, "How many. Default `25`: enough for one."),
            "| `25` | How many. *Enough for one.* |"
        );
        assert_eq!(
            row(&Value::Null, "A page. No default: it has to be said."),
            "| none | A page. *It has to be said.* |"
        );
    }
}
