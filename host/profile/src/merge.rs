//! Merging of overrides into the settings below them.

use serde_json::Value;

use crate::stack_edit;

/// Merges key by key; lists are replaced whole.
pub(crate) fn merge(value: &mut Value, overrides: &Value) {
    let (Value::Object(table), Value::Object(overrides)) = (value, overrides) else {
        return;
    };
    for (key, override_value) in overrides {
        match table.get_mut(key) {
            Some(inner @ Value::Object(_)) if override_value.is_object() => {
                merge(inner, override_value)
            }
            _ => {
                table.insert(key.clone(), override_value.clone());
            }
        }
    }
}

/// Merges a whole profile: as [`merge`], with stacks by their edits.
pub(crate) fn merge_profile(value: &mut Value, overrides: &Value) {
    let (Value::Object(table), Value::Object(overrides)) = (value, overrides) else {
        return;
    };
    for (key, override_value) in overrides {
        match table.get_mut(key) {
            Some(stacks) if key == "stacks" => stack_edit::merge(stacks, override_value),
            Some(inner @ Value::Object(_)) if override_value.is_object() => {
                merge(inner, override_value)
            }
            _ => {
                table.insert(key.clone(), override_value.clone());
            }
        }
    }
}
