//! `[override.plugins.NAME.settings]`: settings of plugins that differ from site to site. A plugin's schema decides which
//! settings are valid. This module has the settings in overrides, and applies them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::merge::merge;
use crate::plugins::PluginFile;
use crate::schema_check::Shape;
use crate::setting_stages::{SettingStage, setting_stage};
use crate::stacks::StacksFile;
use crate::stage::Stage;

/// Settings of plugins in matching overrides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PluginSettings {
    by_instance: BTreeMap<String, Value>,
}

/// Settings of a plugin in one override.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PluginOverrideFile {
    pub(crate) settings: Map<String, Value>,
}

impl PluginSettings {
    /// Makes the settings from the `plugins` table of an override: `{"NAME": {"settings": {…}}}`.
    pub(crate) fn of(plugins: Option<&Value>) -> Self {
        let tables = plugins.and_then(Value::as_object).into_iter().flatten();
        let by_instance = tables.filter_map(|(name, table)| {
            let settings = table.get("settings")?;
            Some((name.clone(), settings.clone()))
        });
        Self {
            by_instance: by_instance.collect(),
        }
    }

    /// Returns `true` if there are no settings of any plugin.
    pub fn is_empty(&self) -> bool {
        self.by_instance.is_empty()
    }

    /// Names of the plugins with settings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_instance.keys().map(String::as_str)
    }

    /// Returns a plugin's settings with these applied: key by key, lists as a whole. `None` if no override has settings for the plugin.
    pub fn applied_to(&self, instance: &str, settings: &Value) -> Option<Value> {
        let by_instance = self.by_instance.get(instance)?;
        let mut settings = settings.clone();
        merge(&mut settings, by_instance);
        Some(settings)
    }
}

/// Checks the settings of a plugin against its schema, and fills in the schema's defaults. It is for settings that come from no
/// profile, or from several of its tables.
///
/// # Errors
/// The errors in the settings, a fragment each, or an error in the schema.
pub fn complete_settings(schema: &Value, mut settings: Value) -> Result<Value, Vec<String>> {
    let shape = Shape::new(schema).map_err(|problem| vec![problem])?;
    shape
        .fill_in(&mut settings)
        .map_err(|problem| vec![problem])?;
    let problems = shape.problems(&settings);
    if problems.is_empty() {
        Ok(settings)
    } else {
        Err(problems)
    }
}

/// The earliest stage at which each plugin needs its settings, by the stacks and guards that name it.
pub(crate) fn earliest<'n>(
    base: &'n StacksFile,
    added: impl Iterator<Item = (&'n str, &'n String)>,
    plugins: &'n BTreeMap<String, PluginFile>,
) -> HashMap<&'n str, SettingStage> {
    let mut earliest: HashMap<&str, SettingStage> = HashMap::new();
    let mut at = |name: &'n str, stage: SettingStage| {
        let known = earliest.entry(name).or_insert(stage);
        *known = stage.min(*known);
    };
    let of_stage = |stage: &str| setting_stage(&format!("/stacks/{stage}"));
    for stage in Stage::ALL {
        for name in base.named(stage.key()).into_iter().flatten() {
            at(name, of_stage(stage.key()));
        }
    }
    for (stage, name) in added {
        at(name, of_stage(stage));
    }
    // Filters have no filters themselves, so one step is enough.
    let wards: Vec<(&str, SettingStage)> = plugins
        .iter()
        .filter_map(|(name, file)| Some((file, *earliest.get(name.as_str())?)))
        .flat_map(|(file, stage)| {
            file.filters
                .iter()
                .map(move |filter| (filter.as_str(), stage))
        })
        .collect();
    for (filter, stage) in wards {
        let known = earliest.entry(filter).or_insert(stage);
        *known = stage.min(*known);
    }
    earliest
}

/// The schema of `[override.plugins]`.
pub(crate) struct PluginsOverride;

impl JsonSchema for PluginsOverride {
    fn schema_name() -> Cow<'static, str> {
        "PluginsOverride".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Settings of plugins, by their names. A plugin decides which of its settings can be overridden.",
            "type": "object",
            "additionalProperties": json!({
                "type": "object",
                "properties": { "settings": {
                    "description": "Settings that replace the plugin's own, key by key. Lists are replaced whole.",
                    "type": "object",
                } },
                "additionalProperties": false,
            }),
        })
    }
}
