//! The JSON Schema of profiles for editors. It includes the settings of the plugins that a profile has chosen, and hides expert
//! settings from suggestions.

use serde_json::{Map, Value, json};

use crate::file::ProfileFile;

/// Makes the schema, with that of each plugin's settings under the instance's name. Expert settings are valid, but editors do not
/// suggest them unless `expert` is `true`.
pub fn editor_schema(plugins: &[(String, Value)], expert: bool) -> Value {
    let mut schema = ProfileFile::schema();
    stacks_may_be_edited(&mut schema);
    for (name, settings) in plugins {
        add_plugin(&mut schema, name, settings);
    }
    if !expert {
        hide_experts(&mut schema);
    }
    schema
}

/// Allows edits of stacks: a stack is a list, or an edit of the extended profile's stack, as in overrides.
fn stacks_may_be_edited(schema: &mut Value) {
    let edits = schema
        .pointer("/$defs/Override/properties/stacks/properties")
        .cloned();
    let (Some(Value::Object(edits)), Some(Value::Object(stages))) =
        (edits, schema.pointer_mut("/$defs/StacksFile/properties"))
    else {
        return;
    };
    for (stage, edit) in edits {
        let (Some(Value::Object(node)), Value::Object(edit)) = (stages.get_mut(&stage), edit)
        else {
            continue;
        };
        for key in ["type", "properties", "additionalProperties"] {
            if let Some(value) = edit.get(key) {
                node.insert(key.to_owned(), value.clone());
            }
        }
    }
}

/// Adds a plugin's schema under its instance's name. Its definitions get separate names.
fn add_plugin(schema: &mut Value, name: &str, settings: &Value) {
    let mut settings = settings.clone();
    let own = settings
        .as_object_mut()
        .and_then(|settings| settings.remove("$defs"));
    if let Some(settings) = settings.as_object_mut() {
        settings.remove("$schema");
    }
    rename_references(&mut settings, name);
    if let (Some(Value::Object(own)), Some(Value::Object(definitions))) =
        (own, schema.get_mut("$defs"))
    {
        for (key, mut definition) in own {
            rename_references(&mut definition, name);
            definitions.insert(format!("{name}.{key}"), definition);
        }
    }
    let Some(Value::Object(plugins)) = schema.pointer_mut("/properties/plugins") else {
        return;
    };
    let any = plugins
        .get("additionalProperties")
        .cloned()
        .unwrap_or(Value::Bool(true));
    let named = plugins
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(named) = named.as_object_mut() {
        named.insert(
            name.to_owned(),
            json!({ "allOf": [any, { "properties": { "settings": settings } }] }),
        );
    }
}

fn rename_references(node: &mut Value, name: &str) {
    match node {
        Value::Object(table) => {
            for (key, value) in table {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(definition) = target.strip_prefix("#/$defs/") {
                            *target = format!("#/$defs/{name}.{definition}");
                        }
                    }
                    inner => rename_references(inner, name),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                rename_references(item, name);
            }
        }
        _ => {}
    }
}

/// Hides expert settings. TOML editors know `x-taplo`, JSON editors `doNotSuggest`.
fn hide_experts(node: &mut Value) {
    match node {
        Value::Object(table) => {
            if table.get("x-opilio-expert") == Some(&Value::Bool(true)) {
                table.insert("x-taplo".to_owned(), json!({ "hidden": true }));
                table.insert("doNotSuggest".to_owned(), Value::Bool(true));
            }
            table.values_mut().for_each(hide_experts);
        }
        Value::Array(items) => items.iter_mut().for_each(hide_experts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_settings_and_stack_edits_are_checked_against_it() {
        let plugin = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "mode": { "$ref": "#/$defs/Mode" },
                "deep": { "type": "integer", "x-opilio-expert": true },
            },
            "additionalProperties": false,
            "$defs": { "Mode": { "enum": ["strict", "lenient"] } },
        });
        let plugins = [("pages".to_owned(), plugin)];
        let schema = editor_schema(&plugins, false);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let fits = |profile: Value| validator.is_valid(&profile);
        let pages = |settings: Value| json!({ "plugins": { "pages": { "component": "builtin:html", "settings": settings } } });
        assert!(fits(pages(json!({ "mode": "strict", "deep": 3 }))));
        assert!(!fits(pages(json!({ "mode": "loose" }))));
        assert!(!fits(pages(json!({ "made": "strict" }))));
        assert!(fits(json!({ "stacks": { "scope": { "after": ["x"] } } })));
        assert!(!fits(json!({ "stacks": { "scope": { "behind": ["x"] } } })));
        assert!(fits(json!({ "extends": ["snapshot", "house.toml"] })));
        assert!(!fits(json!({ "extends": 3 })));
        assert!(!fits(json!({ "worker": 3 })));

        let hidden = |schema: &Value| schema.to_string().matches("\"hidden\":true").count();
        assert!(hidden(&schema) > 20, "{}", hidden(&schema));
        assert_eq!(hidden(&editor_schema(&plugins, true)), 0);
    }
}
