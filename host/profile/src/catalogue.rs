//! The catalogue of settings. Each setting of a profile has its value, its purpose, whether it is for experts, and the level of
//! errors in it.

use std::sync::OnceLock;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Level};
use crate::document::{Document, KeyOrValue, dotted};
use crate::explain::{Origin, leaves, origin};
use crate::file::ProfileFile;
use crate::profile::Profile;
use crate::schema_check::toml_text;
use crate::setting_marks::{is_expert, level, resolved};
use crate::setting_stages::{SettingStage, setting_stage};

/// A setting of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingEntry {
    /// Its JSON Pointer.
    pub pointer: String,
    /// Its name with its tables, such as `politeness.min-delay`.
    pub key: String,
    /// Its value, unless an override changes it.
    pub value: Value,
    /// The origin of the value.
    pub place: Origin,
    /// The stage at which it is needed: `job`, `queue`, `uri` or `response`. The stage decides by what overrides of it may match.
    pub stage: &'static str,
    /// The level of an error in its value.
    pub level: Level,
    /// `true` if few operators change it.
    pub expert: bool,
    /// Its purpose; empty for settings of plugins.
    pub description: String,
}

impl SettingEntry {
    /// The settings in a value that is not part of a profile, such as the settings of a plugin that was replaced. `pointer` is the place
    /// that the value would have in a profile. The caller knows the origin: each setting has that of a default.
    pub fn of_value(pointer: &str, value: &Value) -> Vec<SettingEntry> {
        let mut entries = Vec::new();
        leaves(value, pointer, &mut |pointer, value| {
            entries.push(SettingEntry::new(pointer, value, Origin::Default));
        });
        entries
    }

    fn new(pointer: &str, value: &Value, place: Origin) -> SettingEntry {
        SettingEntry {
            pointer: pointer.to_owned(),
            key: dotted(pointer),
            value: value.clone(),
            place,
            stage: stage(pointer),
            level: level(pointer),
            expert: is_expert(pointer),
            description: description(pointer),
        }
    }

    /// The value as TOML writes it on one line.
    pub fn toml(&self) -> String {
        toml_text(&self.value)
    }
}

/// A setting in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingInText {
    /// JSON Pointer to it in the text.
    pub at: String,
    /// JSON Pointer to the setting. For an override it is the pointer that the setting has outside of overrides.
    pub pointer: String,
    /// Its name with its tables.
    pub key: String,
    /// The value as TOML writes it on one line.
    pub toml: String,
    /// `true` if it is in an override.
    pub in_override: bool,
}

/// All settings in a text, in the order of their names, and an empty list of overrides. Parts that are not TOML are left out.
pub fn settings_in_text(text: &str) -> Vec<SettingInText> {
    let (document, _) = Document::parse("", text);
    let mut found = Vec::new();
    leaves(&document.value, "", &mut |at, value| {
        found.push(of_text(at, at, value, false));
    });
    let overrides = document.value.get("override").and_then(Value::as_array);
    if let Some(none) = overrides.filter(|overrides| overrides.is_empty()) {
        let none = Value::from(none.clone());
        found.push(of_text("/override", "/override", &none, false));
    }
    for (number, one) in overrides.into_iter().flatten().enumerate() {
        let mut one = one.clone();
        if let Some(table) = one.as_object_mut() {
            table.remove("match");
        }
        leaves(&one, "", &mut |pointer, value| {
            let at = format!("/override/{number}{pointer}");
            found.push(of_text(&at, pointer, value, true));
        });
    }
    found
}

/// An error at the value that a pointer names in a text, or at its nearest existing parent. `file` is the text's name in the
/// error.
pub fn fault_in(
    file: &str,
    text: &str,
    pointer: &str,
    problem: String,
    suggestion: Option<String>,
) -> Diagnostic {
    let (document, _) = Document::parse(file, text);
    Diagnostic {
        suggestion,
        ..document.fault(pointer, KeyOrValue::Key, Level::Error, problem)
    }
}

pub(crate) fn of_text(at: &str, pointer: &str, value: &Value, in_override: bool) -> SettingInText {
    SettingInText {
        at: at.to_owned(),
        pointer: pointer.to_owned(),
        key: dotted(pointer),
        toml: toml_text(value),
        in_override,
    }
}

/// Turns a `key = value` typed at a prompt into TOML. A value that is not valid TOML becomes a text.
pub fn assignment(written: &str) -> String {
    let Some((key, value)) = written.split_once('=') else {
        return written.to_owned();
    };
    let (key, value) = (key.trim(), value.trim());
    let (_, faults) = Document::parse("", &format!("value = {value}"));
    let is_toml = faults.is_empty() && !value.is_empty();
    match is_toml {
        true => format!("{key} = {value}"),
        false => format!("{key} = {}", toml_text(&Value::from(value))),
    }
}

impl Profile {
    /// All settings of the profile with their values without overrides, in the order of their names. A setting without a value is
    /// left out.
    pub fn catalogue(&self) -> Vec<SettingEntry> {
        let value = self.written_with(&[], &[]);
        let mut entries = Vec::new();
        leaves(&value, "", &mut |pointer, value| {
            if value.is_null() {
                return;
            }
            let place = origin(self.document(), pointer, &[]);
            entries.push(SettingEntry::new(pointer, value, place));
        });
        entries
    }
}

fn stage(pointer: &str) -> &'static str {
    match setting_stage(pointer) {
        SettingStage::Job => "job",
        SettingStage::Queue => "queue",
        SettingStage::Uri => "uri",
        SettingStage::Response => "response",
    }
}

fn description(pointer: &str) -> String {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(ProfileFile::schema);
    let mut node = schema;
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        let node_here = resolved(schema, node);
        let property = node_here
            .get("properties")
            .and_then(Value::as_object)
            .and_then(|properties| properties.get(&key));
        match property.or_else(|| node_here.get("additionalProperties")) {
            Some(inner) => node = inner,
            None => return String::new(),
        }
    }
    let description = |node: &Value| Some(node.get("description")?.as_str()?.to_owned());
    description(node)
        .or_else(|| description(resolved(schema, node)))
        .unwrap_or_default()
        .replace('\n', " ")
}
