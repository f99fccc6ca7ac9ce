//! Bounds of a settings schema, checked before any code traverses it. A plugin supplies its own schema, and a short schema can take
//! an exponential number of steps to traverse. `describe.rs` calls this for every component that is loaded.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Longest settings schema, in bytes. The longest built-in one has 4 KiB.
const SCHEMA_BYTES_MAX: usize = 128 << 10;
/// Deepest nesting of schemas, including references.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Most schemas in a settings schema after each reference is replaced by its target. A reference back to an enclosing schema
/// counts as one.
const SCHEMA_STEPS_MAX: u64 = 10_000;
/// Most regular expressions of a settings schema.
const PATTERNS_MAX: usize = 100;
/// Longest regular expression of a settings schema, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// Keywords whose value is a schema for the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of schemas for the same value.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value names schemas for the same value.
const SAME_TABLES: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is a schema for a part of the value, or a list of such schemas.
const PARTS: [&str; 9] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "items",
    "prefixItems",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value names schemas for parts of the value.
const PART_TABLES: [&str; 2] = ["properties", "patternProperties"];
/// Keywords whose value refers to a schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Reads a settings schema.
///
/// # Errors
/// A sentence: the text is not a JSON object, or exceeds a bound, which is named.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!(
            "it has {} bytes; {SCHEMA_BYTES_MAX} are allowed",
            text.len()
        ));
    }
    let schema: Map<String, Value> = serde_json::from_str(text)
        .map_err(|problem| format!("it is not a JSON object: {problem}"))?;
    let schema = Value::Object(schema);
    let mut walk = Walk {
        root: &schema,
        known: HashMap::new(),
        same: HashMap::new(),
        patterns: 0,
    };
    let steps = walk.measure(&schema, 0)?.steps;
    if steps > SCHEMA_STEPS_MAX {
        return Err(format!(
            "with its references followed it holds {steps} schemas; {SCHEMA_STEPS_MAX} are allowed"
        ));
    }
    let nodes: Vec<&Value> = walk.known.values().map(|(node, _)| *node).collect();
    nodes
        .into_iter()
        .try_for_each(|node| walk.check_termination(node, 0))
}

/// The cost of traversing a schema.
#[derive(Clone, Copy)]
struct Measure {
    steps: u64,
    height: usize,
}

struct Walk<'s> {
    root: &'s Value,
    /// Measures by address; `None` while a measure is being taken.
    known: HashMap<*const Value, (&'s Value, Option<Measure>)>,
    /// `true` if traversing a schema for one value ends; `false` while it is being examined.
    same: HashMap<*const Value, bool>,
    patterns: usize,
}

impl<'s> Walk<'s> {
    fn measure(&mut self, node: &'s Value, depth: usize) -> Result<Measure, String> {
        let height = match self.known.get(&std::ptr::from_ref(node)) {
            Some((_, Some(measure))) => measure.height,
            // It refers to itself. The depth of the settings decides how often the reference is followed.
            Some((_, None)) => {
                return Ok(Measure {
                    steps: 1,
                    height: 1,
                });
            }
            None => 1,
        };
        if depth + height > SCHEMA_DEPTH_MAX {
            return Err(too_deep());
        }
        if let Some((_, Some(measure))) = self.known.get(&std::ptr::from_ref(node)) {
            return Ok(*measure);
        }
        self.known.insert(node, (node, None));
        self.count_patterns(node)?;
        let mut whole = Measure {
            steps: 1,
            height: 1,
        };
        let within = [same_value(self.root, node)?, parts(node)].concat();
        for inner in within {
            let inner = self.measure(inner, depth + 1)?;
            whole.steps = whole.steps.saturating_add(inner.steps);
            whole.height = whole.height.max(inner.height + 1);
        }
        self.known.insert(node, (node, Some(whole)));
        Ok(whole)
    }

    fn count_patterns(&mut self, node: &Value) -> Result<(), String> {
        let own = node.get("pattern").and_then(Value::as_str);
        let keys = node.get("patternProperties").and_then(Value::as_object);
        for pattern in own
            .into_iter()
            .chain(keys.into_iter().flat_map(Map::keys).map(String::as_str))
        {
            self.patterns += 1;
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(format!(
                    "a regular expression in it has {} bytes; {PATTERN_BYTES_MAX} are allowed",
                    pattern.len()
                ));
            }
        }
        match self.patterns > PATTERNS_MAX {
            true => Err(format!(
                "it has more than {PATTERNS_MAX} regular expressions"
            )),
            false => Ok(()),
        }
    }

    /// Fails if a schema leads back to itself for one and the same value.
    fn check_termination(&mut self, node: &'s Value, depth: usize) -> Result<(), String> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(too_deep());
        }
        match self.same.insert(node, false) {
            Some(true) => {
                self.same.insert(node, true);
                return Ok(());
            }
            Some(false) => {
                return Err(
                    "a schema in it refers to itself for the same value, which never ends"
                        .to_owned(),
                );
            }
            None => {}
        }
        for inner in same_value(self.root, node)? {
            self.check_termination(inner, depth + 1)?;
        }
        self.same.insert(node, true);
        Ok(())
    }
}

fn too_deep() -> String {
    format!("it nests deeper than {SCHEMA_DEPTH_MAX} schemas, references followed")
}

/// The schemas that a schema applies to its own value.
fn same_value<'s>(root: &'s Value, node: &'s Value) -> Result<Vec<&'s Value>, String> {
    let mut found: Vec<&Value> = SAME.iter().filter_map(|key| node.get(*key)).collect();
    for key in SAME_LISTS {
        found.extend(
            node.get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten(),
        );
    }
    for key in SAME_TABLES {
        let tables = node.get(key).and_then(Value::as_object);
        found.extend(tables.into_iter().flat_map(Map::values));
    }
    for key in REFERENCES {
        let Some(reference) = node.get(key).and_then(Value::as_str) else {
            continue;
        };
        let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
        found.push(target.ok_or_else(|| {
            format!(
                "`{}` refers to nothing in it; a reference is `#` and a JSON Pointer, such as `#/$defs/NAME`",
                crate::notes::one_line(crate::notes::clip(reference, 100))
            )
        })?);
    }
    Ok(found)
}

/// The schemas that a schema applies to parts of its value.
fn parts(node: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for key in PARTS {
        match node.get(key) {
            Some(Value::Array(list)) => found.extend(list),
            Some(one) => found.push(one),
            None => {}
        }
    }
    for key in PART_TABLES {
        let tables = node.get(key).and_then(Value::as_object);
        found.extend(tables.into_iter().flat_map(Map::values));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refused(schema: &Value, expected: &str) {
        let problem = check(&schema.to_string()).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn ordinary_schemas_are_accepted() {
        let condition = json!({
            "type": "object",
            "properties": {
                "rule": {"$ref": "#/$defs/Rule"},
                "default": {"type": "string", "default": {"$ref": "no reference, a value"}},
            },
            "$defs": {"Rule": {"anyOf": [
                {"type": "string", "pattern": "^[a-z]+$"},
                {"type": "object", "properties": {
                    "all": {"type": "array", "items": {"$ref": "#/$defs/Rule"}},
                    "not": {"$ref": "#/$defs/Rule"},
                }},
            ]}},
        });
        assert_eq!(check(&condition.to_string()), Ok(()));
        let itself = json!({"type": "object", "properties": {"a": {"$ref": "#", "default": {}}}});
        assert_eq!(check(&itself.to_string()), Ok(()));
    }

    #[test]
    fn a_schema_of_exponential_size_is_refused() {
        let doubling = |count: usize, twice: &dyn Fn(Value) -> Value| {
            let named = (0..count).map(|n| {
                let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
                (format!("a{n}"), twice(next))
            });
            let mut defs: Map<String, Value> = named.collect();
            defs.insert(format!("a{count}"), json!({"type": "object"}));
            json!({"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": defs})
        };
        let same = |next: Value| json!({"allOf": [next.clone(), next]});
        assert_eq!(check(&doubling(8, &same).to_string()), Ok(()));
        refused(&doubling(28, &same), "10000 are allowed");
        refused(&doubling(40, &same), "deeper than 64 schemas");
        let parts = |next: Value| json!({"properties": {"a": &next, "b": &next}});
        refused(&doubling(28, &parts), "10000 are allowed");
    }

    #[test]
    fn endless_and_dangling_references_are_refused() {
        refused(&json!({"allOf": [{"$ref": "#"}]}), "never ends");
        refused(
            &json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {
                "a": {"properties": {"c": {"$ref": "#/$defs/c"}}, "not": {"$ref": "#/$defs/b"}},
                "b": {"oneOf": [{"$ref": "#/$defs/c"}]},
                "c": {"if": {"$ref": "#/$defs/a"}},
            }}),
            "never ends",
        );
        refused(&json!({"$ref": "#/$defs/none"}), "refers to nothing");
        refused(
            &json!({"$ref": "http://example.org/x"}),
            "refers to nothing",
        );
    }

    #[test]
    fn size_depth_and_expressions_are_bounded() {
        let long = json!({"description": "x".repeat(SCHEMA_BYTES_MAX)});
        refused(&long, "131072 are allowed");
        let mut deep = json!({"type": "string"});
        for _ in 0..SCHEMA_DEPTH_MAX {
            deep = json!({"items": deep});
        }
        refused(&deep, "deeper than 64");
        refused(&json!({"pattern": "x".repeat(1_001)}), "1000 are allowed");
        let many: Map<String, Value> = (0..101)
            .map(|n| (format!("a{n}"), json!({"pattern": "x"})))
            .collect();
        refused(&json!({"properties": many}), "more than 100");
    }
}
