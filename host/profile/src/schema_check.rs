//! Shape checks: the keys of a document and the kinds of their values against a JSON Schema, with all errors at once.
//!
//! Profiles are checked against the schema of their own types, plugin settings against the schema in the plugin's description.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::check::{nearest, quote};
use crate::diagnostic::{Diagnostic, Diagnostics, FAULTS_MAX, Level};
use crate::document::{Document, KeyOrValue, child, dotted, parent};

/// Most known keys that are listed if none is near the written one.
const KNOWN_KEYS_MAX: usize = 32;

/// Deepest nesting at which defaults are filled in and examples are searched; a schema may refer to itself.
const DEPTH_MAX: usize = 32;

/// Most schemas that the check of settings may pass, for each value in them. Plugins bring their own schemas. The steps for a
/// schema that refers to itself twice double with each level of the settings. Usual schemas take a few dozen.
const STEPS_PER_VALUE: u64 = 1_000;

/// Most bytes of one compiled regular expression of a schema.
const PATTERN_COMPILED_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of required keys that are inserted if one is missing.
const NEUTRAL_DEPTH_MAX: usize = 4;

/// Keyword in a plugin's schema for a setting that overrides may change.
const OVERRIDABLE: &str = "x-opilio-overridable";

/// Definitions whose patterns and bounds are for editors. The reader of units gives better errors.
const UNIT_DEFINITIONS: [(&str, &str); 3] = [
    ("/$defs/Duration/", "a duration"),
    ("/$defs/Size/", "a size"),
    ("/$defs/Count/", "a whole number or \"none\""),
];

/// A JSON Schema, ready for checks.
pub(crate) struct Shape<'s> {
    schema: &'s Value,
    validator: Validator,
}

impl<'s> Shape<'s> {
    /// Makes a shape. Fails with a sentence if the value is not a JSON Schema. Nothing is loaded from elsewhere.
    pub(crate) fn new(schema: &'s Value) -> Result<Self, String> {
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_COMPILED_BYTES_MAX))
            .build(schema)
            .map_err(|problem| problem.to_string())?;
        Ok(Self { schema, validator })
    }

    /// All errors in `value`, which is at the pointer `at` of the document. Then `value` is made to fit, so that the rest can be
    /// checked further. Invalid parts are removed, or replaced by something neutral if they are required.
    pub(crate) fn check(&self, document: &Document, at: &str, value: &mut Value) -> Diagnostics {
        let mut faults = Diagnostics::default();
        let mut repairs = Vec::new();
        for error in self.validator.iter_errors(value).take(FAULTS_MAX) {
            self.explain(document, at, &error, &mut faults, &mut repairs);
        }
        for repair in repairs {
            repair.apply(value);
        }
        // Required parts that were invalid.
        let mut missing = Vec::new();
        for error in self.validator.iter_errors(value).take(FAULTS_MAX) {
            if matches!(error.kind(), ValidationErrorKind::Required { .. }) {
                self.explain(
                    document,
                    at,
                    &error,
                    &mut Diagnostics::default(),
                    &mut missing,
                );
            }
        }
        for repair in missing {
            repair.apply(value);
        }
        faults
    }

    fn explain(
        &self,
        document: &Document,
        at: &str,
        error: &ValidationError<'_>,
        faults: &mut Diagnostics,
        repairs: &mut Vec<Repair>,
    ) {
        let pointer = error.instance_path().as_str().to_owned();
        let node = self.node(error);
        let found: &Value = error.instance();
        let mut add =
            |pointer: &str, part: KeyOrValue, problem: String, suggestion: Option<String>| {
                let mut fault =
                    document.fault(&format!("{at}{pointer}"), part, Level::Error, problem);
                fault.suggestion = suggestion;
                faults.push(fault);
            };
        match error.kind() {
            // The kind is right: the reader of units reports the error.
            _ if unit(error).is_some_and(|unit| unit.is_of_its_kind) => {}
            // Mostly an optional value: reported is the error in the first alternative of its kind.
            ValidationErrorKind::AnyOf { context }
                if node.is_none_or(|node| self.options(node).is_empty()) =>
            {
                let is_of_its_kind = |errors: &&Vec<ValidationError<'_>>| {
                    errors.iter().all(|inner| {
                        let is_of_a_part = inner.instance_path() != error.instance_path();
                        is_of_a_part || !matches!(inner.kind(), ValidationErrorKind::Type { .. })
                    })
                };
                let branch = context.iter().find(is_of_its_kind).or(context.first());
                for inner in branch.into_iter().flatten() {
                    self.explain(document, at, inner, faults, repairs);
                }
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for key in unexpected.iter().take(FAULTS_MAX) {
                    let pointer = child(&pointer, key);
                    let name = document.written_name(&format!("{at}{pointer}"));
                    add(
                        &pointer,
                        KeyOrValue::Key,
                        format!("unknown key {}", quote(&name)),
                        Some(self.known_keys(
                            node,
                            key,
                            name.strip_suffix(key.as_str()).unwrap_or_default(),
                        )),
                    );
                    repairs.push(Repair::Remove(pointer));
                }
            }
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let wanted = node
                    .and_then(|node| node.get("properties"))
                    .and_then(|keys| keys.get(key));
                let example = wanted.and_then(|node| self.example(node));
                let pointer = child(&pointer, key);
                let whole = format!("{at}{pointer}");
                let name = document.written_name(&whole);
                let equals = if document.is_in_change(&whole) {
                    "="
                } else {
                    " = "
                };
                let suggestion = example.map(|example| format!("write {name}{equals}{example}"));
                add(
                    &pointer,
                    KeyOrValue::Key,
                    format!("missing key {}", quote(&name)),
                    suggestion,
                );
                repairs.push(Repair::Replace(pointer, self.neutral(wanted)));
            }
            ValidationErrorKind::Type { kind } => {
                let expected = unit(error).map_or_else(|| kinds(kind), |unit| unit.name.to_owned());
                let problem = format!("expected {expected}, found {}", describe(found));
                let suggestion = node.and_then(|node| match (first_type(node), found) {
                    (Some("array"), Value::String(_)) => {
                        Some(format!("write [{}]", toml_text(found)))
                    }
                    (Some("object"), _) => {
                        let whole = format!("{at}{pointer}");
                        Some(match document.is_in_change(&whole) {
                            true => format!("write {}.KEY=VALUE", document.written_name(&whole)),
                            false => format!("write [{}] above its keys", dotted(&whole)),
                        })
                    }
                    _ => self.example(node).map(|example| format!("as in {example}")),
                });
                add(&pointer, KeyOrValue::Value, problem, suggestion);
                repairs.push(Repair::fit(pointer, self.neutral(node)));
            }
            kind => {
                let options = node.map(|node| self.options(node)).unwrap_or_default();
                let bound = |how: &str, limit: &dyn std::fmt::Display| {
                    format!("must be {how} {limit}: {}", describe(found))
                };
                let range = |how: &str, limit: &Value| {
                    let other = other_bound(node, kind);
                    let other = other.map_or_else(String::new, |other| format!(" and {other}"));
                    format!("must be {how} {limit}{other}: {}", describe(found))
                };
                let problem = match kind {
                    _ if !options.is_empty() => {
                        format!("not one of {}: {}", options.join(", "), describe(found))
                    }
                    ValidationErrorKind::Minimum { limit } => range("at least", limit),
                    ValidationErrorKind::Maximum { limit } => range("at most", limit),
                    ValidationErrorKind::ExclusiveMinimum { limit } => range("more than", limit),
                    ValidationErrorKind::ExclusiveMaximum { limit } => range("less than", limit),
                    ValidationErrorKind::MinLength { limit } => {
                        bound("of a length of at least", limit)
                    }
                    ValidationErrorKind::MaxLength { limit } => {
                        bound("of a length of at most", limit)
                    }
                    ValidationErrorKind::MinItems { limit } => {
                        format!("must have at least {limit} items")
                    }
                    ValidationErrorKind::MaxItems { limit } => {
                        format!("must have at most {limit} items")
                    }
                    ValidationErrorKind::UniqueItems => "must not contain an item twice".to_owned(),
                    ValidationErrorKind::Pattern { pattern } => {
                        format!(
                            "does not match the pattern {}: {}",
                            quote(pattern),
                            describe(found)
                        )
                    }
                    _ => format!("{}: {}", error.masked(), describe(found)),
                };
                let suggestion = found
                    .as_str()
                    .filter(|_| !options.is_empty())
                    .and_then(|found| {
                        let near =
                            nearest(found, options.iter().map(|option| option.trim_matches('"')))?;
                        Some(format!("did you mean {}?", quote(near)))
                    });
                let suggestion = suggestion.or_else(|| {
                    let node = node.filter(|_| options.is_empty())?;
                    node.get("examples")?;
                    Some(format!("as in {}", self.example(node)?))
                });
                let neutral = match options.first() {
                    Some(first) => Value::String(first.trim_matches('"').to_owned()),
                    None => self.neutral(node),
                };
                add(&pointer, KeyOrValue::Value, problem, suggestion);
                repairs.push(Repair::fit(pointer, neutral));
            }
        }
    }

    /// The schema of an error: the one with the keyword that failed.
    fn node(&self, error: &ValidationError<'_>) -> Option<&'s Value> {
        let (above, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(above)
    }

    fn resolve(&self, node: &'s Value) -> &'s Value {
        let target = node
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix('#'));
        target
            .and_then(|target| self.schema.pointer(target))
            .unwrap_or(node)
    }

    /// A suggestion for an unknown key. `table` comes before the names of the keys beside it: the table and a dot, or nothing.
    fn known_keys(&self, node: Option<&'s Value>, key: &str, table: &str) -> String {
        let known: Vec<&str> = keys(node).collect();
        if let Some(near) = nearest(key, known.iter().copied()) {
            return format!("did you mean {}?", quote(&format!("{table}{near}")));
        }
        // A key of another table: written before the table's header, or after the wrong one.
        let elsewhere: Vec<String> = keys(Some(self.schema))
            .filter(|table| {
                let properties = self
                    .schema
                    .get("properties")
                    .and_then(|tables| tables.get(*table));
                keys(properties.map(|table| self.resolve(table))).any(|known| known == key)
            })
            .map(|table| format!("{table}.{key}"))
            .collect();
        if !elsewhere.is_empty() {
            return format!("its full name is {}", elsewhere.join(" or "));
        }
        if keys(Some(self.schema)).any(|known| known == key) {
            return format!("its full name is {key}, without a table");
        }
        let more = if known.len() > KNOWN_KEYS_MAX {
            ", …"
        } else {
            ""
        };
        let listed = known.iter().take(KNOWN_KEYS_MAX);
        let listed: Vec<String> = listed.map(|known| format!("{table}{known}")).collect();
        match known.len() {
            0 => "no keys are known here".to_owned(),
            _ => format!("known here: {}{more}", listed.join(", ")),
        }
    }

    /// The texts that a schema allows, in quotation marks; empty if it allows more.
    fn options(&self, node: &'s Value) -> Vec<String> {
        let node = self.resolve(node);
        let own_options = |node: &Value| -> Vec<String> {
            let listed = node
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            listed
                .chain(node.get("const"))
                .filter_map(Value::as_str)
                .map(quote)
                .collect()
        };
        let own = own_options(node);
        if !own.is_empty() {
            return own;
        }
        let branches = ["oneOf", "anyOf"]
            .iter()
            .find_map(|key| node.get(*key))
            .and_then(Value::as_array);
        let branches = branches.into_iter().flatten();
        branches.flat_map(|branch| self.options(branch)).collect()
    }

    /// An example of a valid value, in TOML.
    fn example(&self, node: &'s Value) -> Option<String> {
        self.example_at(node, 0)
    }

    fn example_at(&self, node: &'s Value, depth: usize) -> Option<String> {
        let target = self.resolve(node);
        let examples = |node: &'s Value| node.get("examples").and_then(|examples| examples.get(0));
        let is_example =
            |default: &&'s Value| !default.is_null() && **default != Value::Array(Vec::new());
        let default = |node: &'s Value| node.get("default").filter(is_example);
        let found = examples(node)
            .or_else(|| default(node))
            .or_else(|| examples(target))
            .or_else(|| default(target));
        if let Some(found) = found {
            return Some(toml_text(found));
        }
        if let Some(first) = self.options(target).into_iter().next() {
            return Some(first);
        }
        let example = match first_type(target)? {
            "string" => "\"text\"",
            "integer" => "25",
            "number" => "2.5",
            "boolean" => "true",
            "array" => return Some(self.list_example(target, depth)),
            "object" => "{ key = \"value\" }",
            _ => return None,
        };
        Some(example.to_owned())
    }

    fn list_example(&self, node: &'s Value, depth: usize) -> String {
        let items = node.get("items").filter(|_| depth < DEPTH_MAX);
        match items.and_then(|items| self.example_at(items, depth + 1)) {
            Some(item) => format!("[{item}]"),
            None => "[\"text\"]".to_owned(),
        }
    }

    /// A neutral value of the right kind.
    fn neutral(&self, node: Option<&'s Value>) -> Value {
        self.neutral_at(node, 0)
    }

    /// A neutral value, up to a depth: required keys of required keys may have no end.
    fn neutral_at(&self, node: Option<&'s Value>, depth: usize) -> Value {
        let Some(node) = node.map(|node| self.resolve(node)) else {
            return Value::Null;
        };
        if let Some(minimum) = node.get("minimum") {
            return minimum.clone();
        }
        if let Some(first) = self.options(node).first() {
            return Value::String(first.trim_matches('"').to_owned());
        }
        match first_type(node) {
            Some("string") => Value::String(String::new()),
            Some("integer" | "number") => Value::from(0),
            Some("boolean") => Value::Bool(false),
            Some("array") => Value::Array(Vec::new()),
            Some("object") if depth < NEUTRAL_DEPTH_MAX => {
                let required = node
                    .get("required")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                let properties = node.get("properties");
                let entry = |key: &str| {
                    (
                        key.to_owned(),
                        self.neutral_at(properties.and_then(|keys| keys.get(key)), depth + 1),
                    )
                };
                Value::Object(required.filter_map(Value::as_str).map(entry).collect())
            }
            _ => Value::Null,
        }
    }

    /// All errors in a value outside of a document, in words.
    pub(crate) fn problems(&self, value: &Value) -> Vec<String> {
        let errors = self.validator.iter_errors(value).take(FAULTS_MAX);
        let words = errors.map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            pointer => format!("{pointer}: {error}"),
        });
        words.collect()
    }

    /// Keys of `written` that the schema does not allow to be overridden, as pointers, each with the keys that it does allow. A
    /// key's mark applies to everything below it.
    pub(crate) fn fixed(&self, written: &Value) -> Vec<(String, Vec<&'s str>)> {
        let mut fixed = Vec::new();
        self.fixed_below(self.schema, written, "", &mut fixed);
        fixed
    }

    fn fixed_below(
        &self,
        node: &'s Value,
        written: &Value,
        pointer: &str,
        fixed: &mut Vec<(String, Vec<&'s str>)>,
    ) {
        let node = self.resolve(node);
        let properties = node.get("properties").and_then(Value::as_object);
        let (Some(properties), Some(written)) = (properties, written.as_object()) else {
            return;
        };
        let is_marked = |node: &Value| node.get(OVERRIDABLE) == Some(&Value::Bool(true));
        for (key, written) in written {
            // An unknown key is a separate error.
            let Some(node) = properties.get(key) else {
                continue;
            };
            let target = self.resolve(node);
            if is_marked(node) || is_marked(target) {
                continue;
            }
            let pointer = child(pointer, key);
            if target.get("properties").is_some() && written.is_object() {
                self.fixed_below(target, written, &pointer, fixed);
                continue;
            }
            let others = properties
                .iter()
                .filter(|(_, node)| is_marked(node) || is_marked(self.resolve(node)));
            fixed.push((pointer, others.map(|(key, _)| key.as_str()).collect()));
        }
    }

    /// Inserts the schema's defaults for missing values.
    ///
    /// # Errors
    /// A sentence if that, or the check of the result, would take too long.
    pub(crate) fn fill_in(&self, value: &mut Value) -> Result<(), String> {
        let mut left = steps_for(value);
        self.fill_in_from(self.schema, value, 0, &mut left);
        if left > 0 {
            left = steps_for(value);
            self.count_steps(self.schema, value, &mut left);
        }
        match left {
            0 => Err(format!(
                "checking these settings by it takes more than {STEPS_PER_VALUE} steps for each of their values"
            )),
            _ => Ok(()),
        }
    }

    /// Subtracts from `left` the number of schemas that the check of `value` passes, or more; stops at 0.
    fn count_steps(&self, node: &'s Value, value: &Value, left: &mut u64) {
        *left = left.saturating_sub(1);
        let Some(keywords) = node.as_object().filter(|_| *left > 0) else {
            return;
        };
        let items = value.as_array().into_iter().flatten();
        let entries = value.as_object().into_iter().flatten();
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    let target = target
                        .strip_prefix('#')
                        .and_then(|at| self.schema.pointer(at));
                    if let Some(target) = target {
                        self.count_steps(target, value, left);
                    }
                }
                ("not" | "if" | "then" | "else", one) => self.count_steps(one, value, left),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    all.iter()
                        .for_each(|one| self.count_steps(one, value, left));
                }
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    all.values()
                        .for_each(|one| self.count_steps(one, value, left));
                }
                ("properties", Value::Object(all)) => {
                    let known = entries
                        .clone()
                        .filter_map(|(key, value)| Some((all.get(key)?, value)));
                    known.for_each(|(one, value)| self.count_steps(one, value, left));
                }
                ("patternProperties", Value::Object(all)) => {
                    for (_, value) in entries.clone() {
                        all.values()
                            .for_each(|one| self.count_steps(one, value, left));
                    }
                }
                ("additionalProperties" | "unevaluatedProperties" | "propertyNames", one) => {
                    entries
                        .clone()
                        .for_each(|(_, value)| self.count_steps(one, value, left));
                }
                ("items" | "prefixItems", Value::Array(all)) => {
                    let pairs = all.iter().zip(items.clone());
                    pairs.for_each(|(one, value)| self.count_steps(one, value, left));
                }
                ("items" | "contains" | "additionalItems" | "unevaluatedItems", one) => {
                    items
                        .clone()
                        .for_each(|value| self.count_steps(one, value, left));
                }
                _ => {}
            }
        }
    }

    fn fill_in_from(&self, node: &'s Value, value: &mut Value, depth: usize, left: &mut u64) {
        *left = left.saturating_sub(1);
        if depth > DEPTH_MAX || *left == 0 {
            return;
        }
        let node = self.resolve(node);
        for branch in node
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.fill_in_from(branch, value, depth + 1, left);
        }
        match value {
            Value::Object(object) => {
                let properties = node.get("properties").and_then(Value::as_object);
                for (key, node) in properties.into_iter().flatten() {
                    let default = node
                        .get("default")
                        .or_else(|| self.resolve(node).get("default"));
                    if let (false, Some(default)) = (object.contains_key(key), default) {
                        object.insert(key.clone(), default.clone());
                    }
                    if let Some(value) = object.get_mut(key) {
                        self.fill_in_from(node, value, depth + 1, left);
                    }
                }
                if let Some(rest) = node
                    .get("additionalProperties")
                    .filter(|rest| rest.is_object())
                {
                    let known = |key: &str| {
                        properties.is_some_and(|properties| properties.contains_key(key))
                    };
                    for (_, value) in object.iter_mut().filter(|(key, _)| !known(key)) {
                        self.fill_in_from(rest, value, depth + 1, left);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = node.get("items") {
                    for item in items {
                        self.fill_in_from(node, item, depth + 1, left);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Most steps for the check of settings.
fn steps_for(value: &Value) -> u64 {
    fn values(value: &Value) -> u64 {
        1 + match value {
            Value::Array(items) => items.iter().map(values).sum(),
            Value::Object(object) => object.values().map(values).sum::<u64>(),
            _ => 0,
        }
    }
    // A few more: settings may be empty, and their defaults many.
    (values(value) + 16).saturating_mul(STEPS_PER_VALUE)
}

/// A change that makes a value fit.
enum Repair {
    Remove(String),
    Replace(String, Value),
}

impl Repair {
    /// Chooses the repair. Items of arrays keep their places, and tables stay tables, so that references to them stay valid.
    fn fit(pointer: String, neutral: Value) -> Self {
        let item = parent(&pointer).is_some_and(|(_, key)| key.parse::<usize>().is_ok());
        if item || neutral.is_object() {
            Self::Replace(pointer, neutral)
        } else {
            Self::Remove(pointer)
        }
    }

    fn apply(self, value: &mut Value) {
        match self {
            Self::Remove(pointer) => {
                let Some((above, key)) = parent(&pointer) else {
                    return;
                };
                if let Some(Value::Object(object)) = value.pointer_mut(above) {
                    object.remove(&key);
                }
            }
            Self::Replace(pointer, neutral) => {
                if let Some(place) = value.pointer_mut(&pointer) {
                    *place = neutral;
                } else if let Some((above, key)) = parent(&pointer)
                    && let Some(Value::Object(object)) = value.pointer_mut(above)
                {
                    object.insert(key, neutral);
                }
            }
        }
    }
}

/// A value with a unit that has an error.
struct Unit {
    name: &'static str,
    /// `true` if its kind is right, such as a text for a text.
    is_of_its_kind: bool,
}

/// The value with a unit that the error is about.
fn unit(error: &ValidationError<'_>) -> Option<Unit> {
    let path = error.schema_path().as_str();
    let mut definitions = UNIT_DEFINITIONS.iter();
    let (_, name) = definitions.find(|(definition, _)| path.contains(definition))?;
    Some(Unit {
        name,
        is_of_its_kind: !matches!(error.kind(), ValidationErrorKind::Type { .. }),
    })
}

/// Returns the bound on the side of a number's range that was kept, in words. The error is about the other side.
fn other_bound(node: Option<&Value>, error: &ValidationErrorKind) -> Option<String> {
    let is_too_large = matches!(
        error,
        ValidationErrorKind::Maximum { .. } | ValidationErrorKind::ExclusiveMaximum { .. }
    );
    let others = match is_too_large {
        true => [("minimum", "at least"), ("exclusiveMinimum", "more than")],
        false => [("maximum", "at most"), ("exclusiveMaximum", "less than")],
    };
    let node = node?;
    others
        .iter()
        .find_map(|(keyword, how)| Some(format!("{how} {}", node.get(*keyword)?)))
}

fn keys(node: Option<&Value>) -> impl Iterator<Item = &str> {
    let properties = node
        .and_then(|node| node.get("properties"))
        .and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}

fn first_type(node: &Value) -> Option<&str> {
    match node.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.first()?.as_str(),
        _ => None,
    }
}

/// The kinds that would be valid, without null, which TOML does not have.
fn kinds(kind: &TypeKind) -> String {
    let name = |kind: String| match kind.as_str() {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        _ => "nothing",
    };
    match kind {
        TypeKind::Single(kind) => name(kind.to_string()).to_owned(),
        TypeKind::Multiple(kinds) => {
            let names: Vec<&str> = kinds
                .iter()
                .map(|kind| kind.to_string())
                .filter(|kind| kind != "null")
                .map(name)
                .collect();
            names.join(" or ")
        }
    }
}

/// A short description of the written value.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => quote(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}

/// Formats a JSON value as TOML on one line.
pub(crate) fn toml_text(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(toml_text).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(object) if object.is_empty() => "{}".to_owned(),
        Value::Object(object) => {
            let entry = |(key, value): (&String, &Value)| {
                let bare = !key.is_empty()
                    && key
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
                let key = if bare {
                    key.clone()
                } else {
                    format!("{key:?}")
                };
                format!("{key} = {}", toml_text(value))
            };
            format!(
                "{{ {} }}",
                object.iter().map(entry).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

/// An error at the component of an instance with an invalid description.
pub(crate) fn broken_schema(
    document: &Document,
    pointer: &str,
    name: &str,
    problem: &str,
) -> Diagnostic {
    let problem = format!(
        "plugin {} describes its settings by a schema that cannot be used: {problem}",
        quote(name)
    );
    document.fault(pointer, KeyOrValue::Value, Level::Error, problem)
}
