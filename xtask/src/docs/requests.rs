//! The fields of request bodies in `docs/API.md`, generated from the API's description.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{one_line, resolve};

/// One row for each field of each request body.
pub(super) fn reference(description: &str) -> Result<String> {
    let description: Value = serde_json::from_str(description)?;
    let paths = description["paths"].as_object();
    let mut text = String::from("\n| request | field | type | content |\n|---|---|---|---|\n");
    for (path, item) in paths.context("the description has no paths")? {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if body.is_object() {
                let path = path.trim_start_matches("/api/v1/");
                let request = format!("`{} {path}`", method.to_uppercase());
                rows(&request, &description, body, &mut text);
            }
        }
    }
    Ok(text)
}

fn rows(request: &str, description: &Value, body: &Value, text: &mut String) {
    let schema = resolve(description, body);
    // Constraints between fields are in further parts of the schema.
    let schema = schema.pointer("/allOf/0").unwrap_or(schema);
    let required = schema["required"].as_array();
    for (field, node) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|it| it.iter().any(|name| name == field));
        let about = node["description"].as_str();
        let about = about.or_else(|| resolve(description, node)["description"].as_str());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {request} | `{field}`{} | {} | {} |",
            if is_required { "" } else { " (optional)" },
            kind(description, node),
            one_line(about.unwrap_or_default()).replace('|', "\\|"),
        );
    }
}

/// The type of a field in a few words.
fn kind(description: &Value, node: &Value) -> String {
    let node = resolve(description, node);
    let node = match &node["oneOf"] {
        Value::Array(parts) => {
            let mut parts = parts.iter().filter(|part| part["type"] != "null");
            parts.next().map_or(node, |part| resolve(description, part))
        }
        _ => node,
    };
    if let Some(words) = node["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let types = &node["type"];
    let types = types.as_str().or_else(|| {
        let mut types = types.as_array()?.iter().filter_map(Value::as_str);
        types.find(|it| *it != "null")
    });
    match (types, node["format"].as_str()) {
        (Some("array"), _) => format!("array of {}", kind(description, &node["items"])),
        (Some("string"), Some(format)) => format!("string ({format})"),
        (kind, _) => kind.unwrap_or("any").to_owned(),
    }
}
