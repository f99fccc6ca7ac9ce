//! Canonical settings: equal settings have equal text, with sorted keys and without blanks.

use std::collections::BTreeMap;

use serde_json::Value;

/// `value` as JSON text that does not depend on the order of its keys.
pub(crate) fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

// serde_json keeps keys sorted or in insertion order, depending on the features that crates of the build enable.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let by_key: BTreeMap<&String, &Value> = object.iter().collect();
            Value::Object(
                by_key
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        #[track_caller]
        fn check(written: &str, expected: &str) {
            assert_eq!(canonical(&serde_json::from_str(written).unwrap()), expected);
        }
        check(
            r#"{"b": 1, "a": {"d": [2, {"f": 1, "e": null}], "c": true}}"#,
            r#"{"a":{"c":true,"d":[2,{"e":null,"f":1}]},"b":1}"#,
        );
        check(
            r#"{"a": {"c": true, "d": [2, {"e": null, "f": 1}]}, "b": 1}"#,
            r#"{"a":{"c":true,"d":[2,{"e":null,"f":1}]},"b":1}"#,
        );
        check("{}", "{}");
    }
}
