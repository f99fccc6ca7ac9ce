//! The inputs for configuring an instance of a plugin, with the SURT prefixes that the seeds imply.

use std::sync::Arc;

use opilio_profile::{Diagnostic, Diagnostics};
use opilio_sandbox::{Component, ConfigureError, Limits, Plugin, PluginConfig, Tables};
use serde_json::Value;

use crate::chain;

/// The plugin setting that receives the SURT prefixes implied by the seeds.
const SEED_PREFIXES: &str = "seed-prefixes";
/// The setting with which a profile declines these prefixes.
const FROM_SEEDS: &str = "from-seeds";

/// The inputs for configuring an instance.
pub(super) struct InstanceInputs {
    pub(super) name: Arc<str>,
    pub(super) component: Component,
    /// Its plugin's name within the component.
    pub(super) plugin: String,
    pub(super) schema: Value,
    pub(super) limits: Limits,
    pub(super) tables: Tables,
    pub(super) seed_prefixes: Arc<[String]>,
}

impl InstanceInputs {
    fn config(&self, mut settings: Value) -> PluginConfig {
        if wants_seeds(&self.schema, &settings) {
            put_seeds(&mut settings, &self.seed_prefixes);
        }
        PluginConfig {
            plugin: Some(self.plugin.clone()),
            instance: Some(self.name.to_string()),
            settings,
            limits: self.limits.clone(),
            tables: self.tables.clone(),
        }
    }

    /// Returns the plugin, configured once, with complete settings.
    pub(super) fn configured(&self, settings: Value) -> Result<Plugin, ConfigureError> {
        self.component.configure(self.config(settings))
    }

    /// Returns the plugin, configured once now and again for every call.
    pub(super) fn configured_each_call(&self, settings: Value) -> Result<Plugin, ConfigureError> {
        self.component.configure_each_call(self.config(settings))
    }

    pub(super) fn each_call(&self, settings: Value) -> Result<Plugin, String> {
        let made = self.configured_each_call(settings);
        made.map_err(|problem| chain(&problem))
    }

    pub(super) fn snapshot(&self, settings: Value) -> Result<Plugin, String> {
        let made = self
            .component
            .configure_with_snapshot(self.config(settings));
        made.map_err(|problem| chain(&problem))
    }

    /// Adds the plugin's own name and version to errors of its settings. The profile may use another name, and the line that is
    /// shown need not contain the name at all.
    pub(super) fn with_plugin_name(&self, faults: Diagnostics) -> Diagnostics {
        let mut plugins = self.component.plugins().iter();
        let version = plugins
            .find(|plugin| plugin.name == self.plugin)
            .map_or("", |plugin| plugin.version.as_str());
        let with_plugin_name = |fault: Diagnostic| Diagnostic {
            problem: format!("{} {version}: {}", self.plugin, fault.problem),
            ..fault
        };
        faults.into_iter().map(with_plugin_name).collect()
    }
}

/// Returns `true` if a plugin receives the prefixes of the seeds: it declares `seed-prefixes` among its settings, and the profile
/// neither sets `from-seeds = false` nor names prefixes itself. Any plugin may declare it.
pub(super) fn wants_seeds(schema: &Value, settings: &Value) -> bool {
    let declared = schema
        .get("properties")
        .is_some_and(|properties| properties.get(SEED_PREFIXES).is_some());
    let declined = settings.get(FROM_SEEDS) == Some(&Value::Bool(false));
    let given = settings
        .get(SEED_PREFIXES)
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    declared && !declined && !given
}

fn put_seeds(settings: &mut Value, seed_prefixes: &[String]) {
    if let Some(settings) = settings.as_object_mut() {
        let prefixes = seed_prefixes.iter().cloned().map(Value::String).collect();
        settings.insert(SEED_PREFIXES.to_owned(), Value::Array(prefixes));
    }
}
