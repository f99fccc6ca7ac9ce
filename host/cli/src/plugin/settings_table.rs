//! The settings of a plugin from its JSON Schema, for people: one row a setting.

use serde_json::{Map, Value, json};

use super::table;
use crate::terminal;

/// Deepest nesting of settings that are listed; a schema may refer to itself.
const DEPTH_MAX: usize = 4;
/// Most settings that are listed. Without a limit, a schema that refers to itself would fill the screen and the memory.
const SETTINGS_MAX: usize = 1_000;
/// Longest default that is shown in a row, in characters.
const DEFAULT_CHARS_MAX: usize = 41;

/// A setting.
#[derive(Debug, PartialEq)]
pub(super) struct Setting {
    /// Its name, after the names of the objects that contain it.
    pub(super) name: String,
    /// The accepted values, in words.
    pub(super) takes: String,
    pub(super) default: Option<Value>,
    pub(super) required: bool,
    /// Severity of an invalid value: `info`, `warning`, `error`.
    pub(super) level: Option<String>,
    pub(super) expert: bool,
    pub(super) overridable: bool,
    pub(super) description: String,
}

/// Returns every setting of a schema, in its order.
pub(super) fn settings(schema: &Value) -> Vec<Setting> {
    let mut found = Vec::new();
    collect(schema, schema, "", 0, &mut found);
    found
}

/// Returns rows under a heading, or a line that there are no settings.
pub(super) fn as_text(schema: &str) -> String {
    let Ok(schema) = serde_json::from_str(schema) else {
        return "  the settings schema is not JSON\n".to_owned();
    };
    let settings = settings(&schema);
    if settings.is_empty() {
        return "  no settings\n".to_owned();
    }
    let heading = ["setting", "takes", "default", "", "what it does"].map(str::to_owned);
    let mut rows = vec![heading.to_vec()];
    for setting in settings {
        let default = match (&setting.default, setting.required) {
            (Some(value), _) => terminal::clip(&value.to_string(), DEFAULT_CHARS_MAX),
            (None, true) => "(required)".to_owned(),
            (None, false) => "-".to_owned(),
        };
        let marks = [
            setting.level.clone(),
            setting.expert.then(|| "expert".to_owned()),
            setting.overridable.then(|| "overridable".to_owned()),
        ];
        let marks = marks.into_iter().flatten().collect::<Vec<_>>().join(" ");
        rows.push(vec![
            setting.name,
            setting.takes,
            default,
            marks,
            setting.description.replace('\n', " "),
        ]);
    }
    table(&rows, 2)
}

/// Returns the settings as JSON.
pub(super) fn as_json(schema: &str) -> Value {
    let Ok(schema) = serde_json::from_str(schema) else {
        return Value::Null;
    };
    let settings = settings(&schema).into_iter();
    settings
        .map(|one| {
            json!({
                "name": one.name, "takes": one.takes, "default": one.default, "required": one.required,
                "level": one.level, "expert": one.expert, "overridable": one.overridable,
                "description": one.description,
            })
        })
        .collect()
}

fn collect(schema: &Value, node: &Value, within: &str, depth: usize, found: &mut Vec<Setting>) {
    let target = resolved(schema, node);
    let Some(properties) = target.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = target.get("required").and_then(Value::as_array);
    for (name, node) in properties {
        let target = resolved(schema, node);
        // Keys next to a reference override those of its target.
        let get = |key: &str| node.get(key).or_else(|| target.get(key));
        let flag = |key: &str| get(key).and_then(Value::as_bool).unwrap_or(false);
        let text = |key: &str| get(key).and_then(Value::as_str).map(str::to_owned);
        let full = match within {
            "" => name.clone(),
            within => format!("{within}.{name}"),
        };
        found.push(Setting {
            takes: takes(schema, node, DEPTH_MAX),
            default: get("default").cloned(),
            required: required
                .is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name))),
            level: text("x-opilio-level"),
            expert: flag("x-opilio-expert"),
            overridable: flag("x-opilio-overridable"),
            description: text("description").unwrap_or_default(),
            name: full.clone(),
        });
        if found.len() >= SETTINGS_MAX {
            return;
        }
        if depth < DEPTH_MAX {
            collect(schema, node, &full, depth + 1, found);
        }
    }
}

/// Returns the target of a reference within the schema.
fn resolved<'s>(schema: &'s Value, node: &'s Value) -> &'s Value {
    let mut node = node;
    for _ in 0..DEPTH_MAX {
        let target = node.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| schema.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) => node = target,
            None => break,
        }
    }
    node
}

/// Returns the accepted values of a node, in words. `depth` is the number of nested lists and choices that are described.
fn takes(schema: &Value, node: &Value, depth: usize) -> String {
    let target = resolved(schema, node);
    let Some(within) = depth.checked_sub(1) else {
        return "…".to_owned();
    };
    if let Some(options) = target.get("enum").and_then(Value::as_array) {
        return words(options.iter().map(Value::to_string));
    }
    if let Some(only) = target.get("const") {
        return only.to_string();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = target.get(key).and_then(Value::as_array) {
            return words(options.iter().map(|option| takes(schema, option, within)));
        }
    }
    let of_type = |name: &str| match name {
        "array" => match target.get("items") {
            Some(items) => format!("list of {}", takes(schema, items, within)),
            None => "list".to_owned(),
        },
        "integer" | "number" => format!("{}{}", number(name), bounds(target)),
        "boolean" => "true or false".to_owned(),
        "string" => match target.get("format").and_then(Value::as_str) {
            Some(format) => format!("text ({format})"),
            None => "text".to_owned(),
        },
        "null" => "nothing".to_owned(),
        other => other.to_owned(),
    };
    match target.get("type") {
        Some(Value::String(name)) => of_type(name),
        Some(Value::Array(names)) => words(names.iter().filter_map(Value::as_str).map(of_type)),
        _ => "anything".to_owned(),
    }
}

fn number(name: &str) -> &str {
    match name {
        "integer" => "whole number",
        _ => "number",
    }
}

fn bounds(node: &Value) -> String {
    let bound = |key: &str| node.get(key).map(|bound| whole(bound).to_string());
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(" {min} to {max}"),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" to {max}"),
        (None, None) => String::new(),
    }
}

/// Returns `0.0` as `0`.
fn whole(bound: &Value) -> Value {
    match bound.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => json!(number as i64),
        _ => bound.clone(),
    }
}

fn words(options: impl Iterator<Item = String>) -> String {
    let mut options: Vec<String> = options.collect();
    options.dedup();
    options.join(" | ")
}

/// Returns the objects of a schema that accept unknown keys, among the root and every object in it with properties.
pub(super) fn open_objects(schema: &Value) -> Vec<String> {
    let mut open = Vec::new();
    let mut check = |name: &str, node: &Map<String, Value>| {
        if node.get("additionalProperties") != Some(&Value::Bool(false)) {
            open.push(name.to_owned());
        }
    };
    if let Some(root) = schema.as_object() {
        check("the settings", root);
    }
    let definitions = schema.get("$defs").and_then(Value::as_object);
    for (name, node) in definitions.into_iter().flatten() {
        if let Some(node) = node
            .as_object()
            .filter(|node| node.contains_key("properties"))
        {
            check(name, node);
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_listed_with_their_accepted_values() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "Who."},
                "mode": {"$ref": "#/$defs/Mode", "default": "soft", "x-opilio-overridable": true},
                "deep": {"$ref": "#/$defs/Deep"},
                "many": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0.0}},
            },
            "$defs": {
                "Mode": {"enum": ["soft", "hard"], "description": "How."},
                "Deep": {"type": "object", "properties": {"x": {"type": "number", "maximum": 1.5, "x-opilio-expert": true}}},
            },
        });
        let listed: Vec<String> = settings(&schema)
            .iter()
            .map(|one| {
                format!(
                    "{}: {} ({:?}, {}{}{}) {}",
                    one.name,
                    one.takes,
                    one.default.as_ref().map(Value::to_string),
                    if one.required { "r" } else { "" },
                    if one.expert { "e" } else { "" },
                    if one.overridable { "o" } else { "" },
                    one.description
                )
            })
            .collect();
        let mut expected = vec![
            "name: text (None, r) Who.",
            "mode: \"soft\" | \"hard\" (Some(\"\\\"soft\\\"\"), o) How.",
            "deep: object (None, ) ",
            "deep.x: number to 1.5 (None, e) ",
            "many: list of whole number from 0 | nothing (None, ) ",
        ];
        // Another crate may enable the feature of the JSON library that keeps the order of keys.
        let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        expected.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, expected);
        assert_eq!(open_objects(&schema), ["Deep"]);
    }
}
