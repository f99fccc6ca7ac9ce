//! Values that plugins keep from visit to visit, with a URI or with a site. Plugins decide on their meaning, the sandbox on their
//! limits; the frontier stores them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value that a plugin keeps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptValue {
    /// Version of the value's form, as the plugin declared it when it kept the value.
    pub version: u32,
    /// The value.
    pub value: String,
}

/// Kept values, by plugin and name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptValues(BTreeMap<String, BTreeMap<String, KeptValue>>);

/// A change of a kept value: a new value, or its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptChange {
    /// The plugin's name in the profile.
    pub plugin: String,
    /// The value's name.
    pub name: String,
    /// The new value; `None` removes it.
    pub value: Option<KeptValue>,
}

impl KeptValues {
    /// The values of one plugin, by name.
    #[must_use]
    pub fn of_plugin(plugin: &str, values: BTreeMap<String, KeptValue>) -> Self {
        let mut all = BTreeMap::new();
        if !values.is_empty() {
            all.insert(plugin.to_owned(), values);
        }
        Self(all)
    }

    /// Returns `true` if nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A plugin's value of this name.
    #[must_use]
    pub fn get(&self, plugin: &str, name: &str) -> Option<&KeptValue> {
        self.0.get(plugin)?.get(name)
    }

    /// A plugin's values, by name; `None` if it keeps nothing.
    #[must_use]
    pub fn plugin(&self, plugin: &str) -> Option<&BTreeMap<String, KeptValue>> {
        self.0.get(plugin)
    }

    /// All values, sorted: plugin, name, value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &KeptValue)> {
        self.0.iter().flat_map(|(plugin, values)| {
            let values = values.iter();
            values.map(move |(name, value)| (plugin.as_str(), name.as_str(), value))
        })
    }

    /// Makes the change.
    pub fn apply(&mut self, change: KeptChange) {
        let KeptChange {
            plugin,
            name,
            value,
        } = change;
        match value {
            Some(value) => {
                self.0.entry(plugin).or_default().insert(name, value);
            }
            None => {
                if let Some(values) = self.0.get_mut(&plugin) {
                    values.remove(&name);
                    if values.is_empty() {
                        self.0.remove(&plugin);
                    }
                }
            }
        }
    }
}
