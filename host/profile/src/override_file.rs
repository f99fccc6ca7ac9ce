//! `[[override]]` as an operator writes it. [`crate::overrides::checking`] checks it and makes it ready for matching.

use std::borrow::Cow;
use std::collections::BTreeMap;

use opilio_model::Strategy;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::browser::BrowserFile;
use crate::canonicalization::CanonicalizationFile;
use crate::cookies::CookiesFile;
use crate::document::child;
use crate::fetch::FetchFile;
use crate::matching::MatchFile;
use crate::plugin_settings::{PluginOverrideFile, PluginsOverride};
use crate::politeness::PolitenessFile;
use crate::queue::QueueFile;
use crate::quotas::QuotasFile;
use crate::retry::RetryFile;
use crate::revisit::RevisitFile;
use crate::robots::RobotsFile;
use crate::setting_stages::is_overridable;
use crate::stack_edit::StacksOverrideFile;
use crate::uri::UriFile;

/// Settings for matching URIs, queues or times: `match = { … }`, and any of the tables above that has a setting which can be
/// overridden.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OverrideFile {
    /// `match` and the settings.
    pub says: Map<String, Value>,
}

impl OverrideFile {
    /// A table of it as its type; missing keys have their defaults.
    pub(crate) fn table<T: serde::de::DeserializeOwned + Default>(&self, key: &str) -> T {
        let value = self.says.get(key).cloned();
        // Its shape has been checked.
        value
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default()
    }

    /// Its tables of plugins.
    pub(crate) fn plugins(&self) -> BTreeMap<String, PluginOverrideFile> {
        self.table("plugins")
    }

    /// Its settings one by one. The descent into tables stops at the first key, for quotas at the second.
    pub(crate) fn leaves(&self) -> Vec<(String, &Value)> {
        fn descend<'v>(pointer: String, value: &'v Value, leaves: &mut Vec<(String, &'v Value)>) {
            let is_stack = pointer.starts_with("/stacks/");
            match value {
                Value::Object(table) if !is_stack => {
                    for (key, value) in table {
                        descend(child(&pointer, key), value, leaves);
                    }
                }
                value => leaves.push((pointer, value)),
            }
        }
        let mut leaves = Vec::new();
        for (key, value) in self.says.iter().filter(|(key, _)| *key != "match") {
            descend(child("", key), value, &mut leaves);
        }
        leaves
    }
}

impl JsonSchema for OverrideFile {
    fn schema_name() -> Cow<'static, str> {
        "Override".into()
    }

    /// The tables of the profile with settings that can be overridden, without defaults.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let tables: [(&str, Schema); 11] = [
            ("politeness", PolitenessFile::json_schema(generator)),
            ("robots", RobotsFile::json_schema(generator)),
            ("fetch", FetchFile::json_schema(generator)),
            ("cookies", CookiesFile::json_schema(generator)),
            ("browser", BrowserFile::json_schema(generator)),
            ("retry", RetryFile::json_schema(generator)),
            ("revisit", RevisitFile::json_schema(generator)),
            (
                "canonicalization",
                CanonicalizationFile::json_schema(generator),
            ),
            ("queue", QueueFile::json_schema(generator)),
            ("uri", UriFile::json_schema(generator)),
            ("quotas", QuotasFile::json_schema(generator)),
        ];
        let mut properties = Map::new();
        properties.insert(
            "match".to_owned(),
            generator.subschema_for::<MatchFile>().to_value(),
        );
        properties.insert(
            "strategy".to_owned(),
            generator.subschema_for::<Strategy>().to_value(),
        );
        properties.insert(
            "stacks".to_owned(),
            StacksOverrideFile::json_schema(generator).to_value(),
        );
        properties.insert(
            "plugins".to_owned(),
            PluginsOverride::json_schema(generator).to_value(),
        );
        for (name, schema) in tables {
            let mut schema = schema.to_value();
            if let Some(keys) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                keys.retain(|key, _| is_overridable(&format!("/{name}/{key}")));
                for node in keys.values_mut().filter_map(Value::as_object_mut) {
                    node.remove("default");
                }
            }
            properties.insert(name.to_owned(), schema);
        }
        // The example that is shown if `match` is missing.
        if let Some(node) = properties.get_mut("match").and_then(Value::as_object_mut) {
            node.insert(
                "examples".to_owned(),
                json!([{ "domain": ["example.org"] }]),
            );
        }
        json_schema!({
            "description": "Settings for matching URIs, queues or times. The last override that matches wins, key by key.",
            "type": "object",
            "properties": properties,
            "required": ["match"],
            "additionalProperties": false,
        })
    }
}
