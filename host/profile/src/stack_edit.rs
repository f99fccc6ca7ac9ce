//! Stack edits: changes of a stack by an override. A list replaces it; `before`, `after` and `without` edit it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::check::{Check, Part, quote};
use crate::diagnostic::Level;
use crate::document::{KeyOrValue, child, in_override};
use crate::plugins::Instances;
use crate::setting_stages::is_overridable;
use crate::stacks::StacksFile;
use crate::stage::Stage;

/// The key besides the stages: extractors of `extract` that are skipped.
pub(crate) const LAST_RESORT: &str = "last-resort";

/// Changes of an override to the stacks, by stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StacksOverrideFile {
    stages: BTreeMap<String, StackWritten>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum StackWritten {
    /// The new stack.
    List(Vec<String>),
    /// Changes to the existing stack.
    Edit(StackEdit),
}

/// An edit of a stack: `without` first, then `before`, then `after`. A plugin that is already in the stack is moved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct StackEdit {
    before: Additions,
    after: Additions,
    without: Vec<String>,
}

/// The plugins that an edit adds on one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Additions {
    /// Before, or after, all others.
    Ends(Vec<String>),
    /// Before, or after, the plugin of this name. If it is not in the stack: before, or after, all others.
    At(BTreeMap<String, Vec<String>>),
}

impl Default for Additions {
    fn default() -> Self {
        Self::Ends(Vec::new())
    }
}

impl Additions {
    /// The names that are added, each with the name next to which they go.
    fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Vec<String>)> {
        let (ends, at) = match self {
            Self::Ends(names) => (Some((None, names)), None),
            Self::At(by_anchor) => (None, Some(by_anchor)),
        };
        let at = at
            .into_iter()
            .flatten()
            .map(|(anchor, names)| (Some(anchor.as_str()), names));
        ends.into_iter().chain(at)
    }
}

impl StackWritten {
    fn apply(&self, stack: &mut Vec<String>) {
        match self {
            Self::List(names) => stack.clone_from(names),
            Self::Edit(edit) => edit.apply(stack),
        }
    }
}

impl StackEdit {
    fn apply(&self, stack: &mut Vec<String>) {
        stack.retain(|name| !self.without.contains(name));
        for (anchor, names) in self.before.iter() {
            stack.retain(|name| !names.contains(name));
            let at = position(stack, anchor).unwrap_or(0);
            stack.splice(at..at, names.iter().cloned());
        }
        for (anchor, names) in self.after.iter() {
            stack.retain(|name| !names.contains(name));
            let at = position(stack, anchor).map_or(stack.len(), |at| at + 1);
            stack.splice(at..at, names.iter().cloned());
        }
    }

    /// Names next to which plugins go, and names that are removed, with their pointers within the edit.
    fn anchors(&self) -> Vec<(String, String)> {
        let mut anchors: Vec<(String, String)> = (0..)
            .zip(&self.without)
            .map(|(index, name)| (name.clone(), format!("without/{index}")))
            .collect();
        for (key, additions) in [("before", &self.before), ("after", &self.after)] {
            let beside = additions.iter().filter_map(|(anchor, _)| anchor);
            anchors.extend(beside.map(|anchor| (anchor.to_owned(), child(key, anchor))));
        }
        anchors
    }
}

fn position(stack: &[String], anchor: Option<&str>) -> Option<usize> {
    stack.iter().position(|name| Some(name.as_str()) == anchor)
}

/// Applies the stacks of an override to the existing stacks.
pub(crate) fn merge(stacks: &mut Value, edit: &Value) {
    let Value::Object(stacks) = stacks else {
        return;
    };
    let Ok(edit) = StacksOverrideFile::deserialize(edit) else {
        return;
    };
    for (stage, written) in &edit.stages {
        let mut stack: Vec<String> = stacks
            .get(stage)
            .and_then(|stack| Vec::deserialize(stack).ok())
            .unwrap_or_default();
        written.apply(&mut stack);
        stacks.insert(stage.clone(), Value::from(stack));
    }
}

/// The default stack of a stage, as a list of names.
pub(crate) fn default_stack(stage: &str) -> Value {
    let names = StacksFile::default();
    Value::from(names.named(stage).unwrap_or_default().to_vec())
}

/// A stack with an edit applied.
pub(crate) fn edited(stack: &Value, edit: &Value) -> Result<Value, serde_json::Error> {
    let mut stack: Vec<String> = Vec::deserialize(stack).unwrap_or_default();
    StackEdit::deserialize(edit)?.apply(&mut stack);
    Ok(Value::from(stack))
}

/// Names in an edit that the stack does not have, with their pointers within the edit.
pub(crate) fn missing_anchors(stack: &Value, edit: &Value) -> Vec<(String, String)> {
    let stack: Vec<String> = Vec::deserialize(stack).unwrap_or_default();
    let mut anchors = StackEdit::deserialize(edit).map_or_else(|_| Vec::new(), |it| it.anchors());
    anchors.retain(|(name, _)| !stack.contains(name));
    anchors
}

impl StacksOverrideFile {
    /// Checks that every plugin that it adds exists. Returns these plugins, with the pointers.
    pub(crate) fn check(
        &self,
        mut part: Part<'_, '_>,
        instances: &mut Instances<'_>,
    ) -> Vec<(String, String)> {
        let mut named = Vec::new();
        for (stage, written) in &self.stages {
            match written {
                StackWritten::List(names) => {
                    check_names(&mut part.part(stage), names, instances, &mut named)
                }
                StackWritten::Edit(edit) => {
                    let mut part = part.part(stage);
                    check_names(
                        &mut part.part("without"),
                        &edit.without,
                        instances,
                        &mut Vec::new(),
                    );
                    for (key, additions) in [("before", &edit.before), ("after", &edit.after)] {
                        let mut part = part.part(key);
                        for (anchor, names) in additions.iter() {
                            match anchor {
                                Some(anchor) => check_names(
                                    &mut part.part(anchor),
                                    names,
                                    instances,
                                    &mut named,
                                ),
                                None => check_names(&mut part, names, instances, &mut named),
                            }
                        }
                    }
                }
            }
        }
        named
    }

    /// Names next to which the edits of a stage put plugins, and names that they remove, with their pointers within the stage.
    fn anchors(&self, stage: &str) -> Vec<(String, String)> {
        match self.stages.get(stage) {
            Some(StackWritten::Edit(edit)) => edit.anchors(),
            _ => Vec::new(),
        }
    }

    /// The stages at which it adds plugins, and their names.
    pub(crate) fn additions(&self) -> impl Iterator<Item = (&str, &String)> {
        self.stages.iter().flat_map(|(stage, written)| {
            let (list, edit) = match written {
                StackWritten::List(names) => (Some(names), None),
                StackWritten::Edit(edit) => (None, Some(edit)),
            };
            let edited = edit
                .into_iter()
                .flat_map(|edit| edit.before.iter().chain(edit.after.iter()));
            let names = list.into_iter().chain(edited.map(|(_, names)| names));
            names.flatten().map(|name| (stage.as_str(), name))
        })
    }
}

/// Checks that all names to which an edit refers are in the stack: that of the profile, or that of some override.
pub(crate) fn check_anchors(all: &[StacksOverrideFile], base: &StacksFile, check: &mut Check<'_>) {
    let added: HashSet<(&str, &String)> =
        all.iter().flat_map(StacksOverrideFile::additions).collect();
    for (number, file) in (0..).zip(all) {
        for stage in file.stages.keys() {
            for (name, within) in file.anchors(stage) {
                let is_known = base.named(stage).is_some_and(|names| names.contains(&name))
                    || added.contains(&(stage.as_str(), &name));
                if !is_known {
                    let pointer = in_override(number, &format!("/stacks/{stage}/{within}"));
                    let problem = format!("{} is not in {stage}", quote(&name));
                    // A removed name is a value, an anchor is a key.
                    check.report(&pointer, KeyOrValue::Key, Level::Error, problem, None);
                }
            }
        }
    }
}

fn check_names(
    part: &mut Part<'_, '_>,
    names: &[String],
    instances: &mut Instances<'_>,
    named: &mut Vec<(String, String)>,
) {
    for (index, name) in names.iter().enumerate() {
        let key = index.to_string();
        if names[..index].contains(name) {
            part.refuse(
                &key,
                format!("{} is listed twice", quote(name)),
                "remove one",
            );
            continue;
        }
        instances.check_name(part, &key, name);
        named.push((name.clone(), part.pointer(&key)));
    }
}

impl JsonSchema for StacksOverrideFile {
    fn schema_name() -> Cow<'static, str> {
        "StacksOverride".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = json!({ "type": "array", "items": { "type": "string" } });
        let additions = |beside: &str| {
            json!({
                "description": format!("Plugins that are called {beside} all others; or, by the name of a plugin, those that are called {beside} it."),
                "type": ["array", "object"],
                "items": { "type": "string" },
                "additionalProperties": names,
            })
        };
        let stack = json!({
            "description": "A list replaces the stack; before, after and without edit it.",
            "type": ["array", "object"],
            "items": { "type": "string" },
            "properties": { "before": additions("before"), "after": additions("after"), "without": names },
            "additionalProperties": false,
        });
        let keys = Stage::ALL.into_iter().map(Stage::key).chain([LAST_RESORT]);
        let keys = keys.filter(|key| is_overridable(&format!("/stacks/{key}")));
        let properties: Map<String, Value> =
            keys.map(|key| (key.to_owned(), stack.clone())).collect();
        json_schema!({
            "description": "Stacks, or edits of stacks, by stage.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(edit: Value, expected: &str) {
        let written: StackWritten = serde_json::from_value(edit).unwrap();
        let mut stack: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        written.apply(&mut stack);
        assert_eq!(stack.join(" "), expected);
    }

    #[test]
    fn a_stack_is_replaced_or_edited() {
        check(json!(["x"]), "x");
        check(json!([]), "");
        check(json!({"before": ["x", "y"]}), "x y a b c");
        check(json!({"after": ["x", "y"]}), "a b c x y");
        check(json!({"without": ["b", "q"]}), "a c");
        check(json!({"before": {"b": ["x", "y"]}}), "a x y b c");
        check(json!({"after": {"b": ["x", "y"]}}), "a b x y c");
        check(json!({"before": {"q": ["x"]}}), "x a b c");
        check(json!({"after": {"q": ["x"]}}), "a b c x");
        check(json!({"after": ["a"]}), "b c a");
        check(json!({"before": {"a": ["c"]}}), "c a b");
        check(json!({"after": {"a": ["a", "x"]}}), "b c a x");
        check(
            json!({"before": ["x"], "after": ["y"], "without": ["a", "c"]}),
            "x b y",
        );
    }
}
