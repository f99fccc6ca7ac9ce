//! Explanations: every value that applies to a URI, with its origin.

use std::fmt;

use opilio_uri::Uri;
use serde::Serialize;
use serde_json::Value;

use crate::diagnostic::Level;
use crate::document::{Document, KeyOrValue, child, dotted, in_override};
use crate::effective::UriContext;
use crate::profile::Profile;
use crate::schema_check::toml_text;
use crate::setting_marks::is_expert;
use crate::setting_stages::{SettingStage, setting_stage};

/// One setting as it applies to a URI.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingExplanation {
    /// Its name with its tables, such as `politeness.min-delay`.
    pub key: String,
    /// Its value. [`SettingExplanation::toml`] formats it as in a profile.
    pub value: Value,
    /// The origin of the value.
    pub place: Origin,
    /// `true` if few operators change it.
    pub expert: bool,
}

/// The origin of a value. Displays as `default` or `profile.toml:12`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// No profile sets the value.
    Default,
    /// The last line that sets it.
    Written {
        /// The file as the caller named it.
        file: String,
        /// Line, from 1.
        line: usize,
    },
}

impl SettingExplanation {
    /// The value as TOML writes it on one line.
    pub fn toml(&self) -> String {
        toml_text(&self.value)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Written { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

impl Profile {
    /// All values that apply to a URI, each with its file and line, in the order of their names. A setting without a value is
    /// left out. Settings of plugins that are not written have their defaults from the plugin.
    pub fn explain(&self, uri: &Uri) -> Vec<SettingExplanation> {
        self.explain_with(&UriContext::of(uri))
    }

    /// The same as [`Profile::explain`], for a URI with more facts.
    pub fn explain_with(&self, context: &UriContext<'_>) -> Vec<SettingExplanation> {
        let (of_uris, of_queues) = self.matching(context);
        let settings = self.effective_with(context);
        let value = self.written_with(&of_uris, &of_queues);
        let mut explained = Vec::new();
        leaves(&value, "", &mut |pointer, value| {
            let value = match (pointer, value) {
                // If it is not written, it follows the strategy.
                ("/frontier/embed-preference-hops", Value::Null) => {
                    Value::from(self.frontier.embed_preference(settings.strategy))
                }
                (_, Value::Null) => return,
                (_, value) => value.clone(),
            };
            let numbers = if setting_stage(pointer) == SettingStage::Queue {
                &of_queues
            } else {
                &of_uris
            };
            explained.push(SettingExplanation {
                key: dotted(pointer),
                expert: is_expert(pointer),
                value,
                place: origin(self.document(), pointer, numbers),
            });
        });
        explained
    }
}

pub(crate) fn origin(document: &Document, pointer: &str, overrides: &[u32]) -> Origin {
    let last = overrides
        .iter()
        .rev()
        .map(|number| in_override(*number, pointer))
        .find(|pointer| document.has(pointer));
    let pointer = last.unwrap_or_else(|| pointer.to_owned());
    if !document.has(&pointer) {
        return Origin::Default;
    }
    let fault = document.fault(&pointer, KeyOrValue::Key, Level::Info, String::new());
    Origin::Written {
        line: fault.place.map_or(1, |place| place.line),
        file: fault.file,
    }
}

/// Calls `found` with every setting; empty tables count as settings.
pub(crate) fn leaves(value: &Value, pointer: &str, found: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(table) if pointer.is_empty() || !table.is_empty() => {
            for (key, value) in table {
                let pointer = child(pointer, key);
                if pointer != "/override" {
                    leaves(value, &pointer, found);
                }
            }
        }
        value => found(pointer, value),
    }
}
