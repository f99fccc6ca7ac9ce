//! The shipped plugins with their purpose, stages and settings, for lists of plugins.

use std::collections::BTreeMap;

use opilio_profile::Stage;
use opilio_sandbox::{Description, Engine, LoadError};
use serde_json::Value;

use crate::staged::kind_of;

/// A shipped plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct ShippedPlugin {
    /// Its name, as in `builtin:NAME`.
    pub name: String,
    /// Its purpose, in a sentence.
    pub summary: String,
    /// The stages whose stacks may have it.
    pub stages: Vec<Stage>,
    /// JSON Schema of its settings.
    pub schema: Value,
}

/// Returns the built-in plugins, by the names that profiles have for them.
pub fn builtin_plugins() -> Vec<String> {
    opilio_builtin::all()
        .map(|builtin| builtin.plugin.to_owned())
        .collect()
}

/// Returns all shipped plugins, sorted by name. Takes seconds if their components are not in the engine's cache.
///
/// # Errors
/// A shipped component cannot be loaded.
pub fn shipped_plugins(engine: &Engine) -> Result<Vec<ShippedPlugin>, LoadError> {
    let mut components = BTreeMap::new();
    for builtin in opilio_builtin::all() {
        components.entry(builtin.name).or_insert(builtin.component);
    }
    let mut plugins = Vec::new();
    for (name, bytes) in components {
        let component = engine.load(bytes, &format!("builtin:{name}"))?;
        let shipped = |it: &&Description| opilio_builtin::find(&it.name).is_some();
        plugins.extend(
            component
                .plugins()
                .iter()
                .filter(shipped)
                .map(shipped_plugin),
        );
    }
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(plugins)
}

fn shipped_plugin(description: &Description) -> ShippedPlugin {
    let fits = |stage: &Stage| description.kinds.contains(&kind_of(*stage).0);
    ShippedPlugin {
        name: description.name.clone(),
        summary: description.summary.clone(),
        stages: Stage::ALL.into_iter().filter(fits).collect(),
        // The sandbox has checked that it is JSON.
        schema: serde_json::from_str(&description.settings_schema).unwrap_or_default(),
    }
}
