//! Values that plugins keep from visit to visit: with a URI, in its record, or with a site (`site.rs`). The frontier only stores
//! them. The caller decides on their meaning and their limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, Success};

/// Longest name of a plugin, of a value or of a group of documents, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A value that a plugin keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptValue {
    /// Version of the value's form, as the plugin declared it when it kept the value.
    pub version: u32,
    /// The value.
    pub value: String,
}

/// Kept values, by plugin and name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptValues(BTreeMap<String, BTreeMap<String, KeptValue>>);

/// A value that a plugin keeps from now on, or removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptChange {
    /// The plugin's name in the profile.
    pub plugin: String,
    /// The value's name.
    pub name: String,
    /// The new value; `None` removes it.
    pub value: Option<KeptValue>,
}

/// A change evaluator's fingerprint of the last archived version, to compare the next one with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The bytes that the evaluator gave.
    pub bytes: Vec<u8>,
    /// Hash of the evaluator and its settings. An evaluator cannot use the fingerprint of another.
    pub evaluator: u64,
}

impl KeptValues {
    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A plugin's value of this name.
    #[must_use]
    pub fn get(&self, plugin: &str, name: &str) -> Option<&KeptValue> {
        self.0.get(plugin)?.get(name)
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

/// Checks that keys can be made of the names under which a visit keeps values.
pub(crate) fn check_names(success: &Success) -> Result<(), Error> {
    let changes = success.visit.kept.iter().chain(&success.kept_for_site);
    let names = changes.flat_map(|change| [&change.plugin, &change.name]);
    for name in names.chain(success.site_figures.keys()) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return Err(Error::Name { bytes: name.len() });
        }
    }
    Ok(())
}
