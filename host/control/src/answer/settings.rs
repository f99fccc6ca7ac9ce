//! Answers about settings, overrides, and changes of them.

use jiff::Timestamp;
use opilio_crawl::settings::Effect;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Setting of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingInForce {
    /// Name with its tables, such as `politeness.min-delay`.
    pub key: String,
    /// Value that applies except where an override sets another.
    pub value: Value,
    /// The value as TOML.
    pub toml: String,
    /// File that sets the value, as named in errors; `plugins.json` if a plugin was replaced with it; not set if the setting has its
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Stage at which the setting is needed, which limits the conditions of overrides: `job`, `queue`, `uri`, `response`.
    pub stage: String,
    /// Severity of an invalid value: `info`, `warning` or `error`.
    pub level: String,
    /// `true` if the setting is rarely changed.
    pub expert: bool,
    /// Time at which a change takes effect.
    pub effect: Effect,
    /// Description of the setting; empty for settings of plugins.
    pub description: String,
}

/// Changed setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingChanged {
    /// Name with its tables.
    pub key: String,
    /// Previous value as TOML; not set if there was none, or if the change applies only to some URIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// New value as TOML; not set if an override no longer sets a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Time at which the change takes effect.
    pub effect: Effect,
}

/// Error in a change, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FaultFound {
    /// `info`, `warning` or `error`.
    pub level: String,
    /// File, as named in errors; `set` for the submitted change, `seeds` for seeds that are not in the profile.
    pub file: String,
    /// Line in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// JSON Pointer to the setting.
    pub setting: String,
    /// Description of the error.
    pub problem: String,
    /// Suggested correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<&opilio_profile::Diagnostic> for FaultFound {
    fn from(fault: &opilio_profile::Diagnostic) -> FaultFound {
        FaultFound {
            level: fault.level.as_str().to_owned(),
            file: fault.file.clone(),
            line: fault.place.as_ref().map(|place| place.line),
            column: fault.place.as_ref().map(|place| place.column),
            setting: fault.pointer.clone(),
            problem: fault.problem.clone(),
            suggestion: fault.suggestion.clone(),
        }
    }
}

/// Result of a change of settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChangedSettings {
    /// Number of the change in the job's history; not set if the change was only checked.
    pub number: Option<u64>,
    /// Settings that change, with the time at which each takes effect.
    pub changed: Vec<SettingChanged>,
    /// Warnings about the accepted change.
    pub notices: Vec<FaultFound>,
    /// Number of the override that was made or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_id: Option<u64>,
    /// URIs that the change of an override touches. A saved change examines fewer of them than a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<TouchedUris>,
}

/// Override of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedOverride {
    /// Number of a live override; not set for an override of the profile, which cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// File that has the override, as named in errors.
    pub file: String,
    /// Line in that file.
    pub line: usize,
    /// Conditions, by the names that a profile gives them.
    #[schema(value_type = Object)]
    pub matching: Map<String, Value>,
    /// Settings, by name.
    pub settings: Vec<OverrideSetting>,
    /// User who made a live override or last changed its settings or conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Time of that change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Reason that the user gave for that change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Setting of an override.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OverrideSetting {
    /// Name with its tables, such as `politeness.min-delay`.
    pub key: String,
    /// Value as TOML.
    pub toml: String,
    /// Time at which a change takes effect.
    pub effect: Effect,
}

/// URIs that a change of an override touches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TouchedUris {
    /// Number of known URIs examined, in SURT order. If the conditions name sites, only URIs of these sites are examined.
    pub examined: u64,
    /// `true` if the examination stopped at its limit, before the last URI.
    pub stopped: bool,
    /// Number of URIs that match the override.
    pub matched: u64,
    /// Of these, URIs in a queue.
    pub queued: u64,
    /// Of these, URIs whose settings change. For others, later overrides set the same settings, or the values are the same.
    pub changed: u64,
    /// Time for which the settings were compared: now, or the next time at which the override applies.
    pub at: Timestamp,
    /// Some of the URIs, with their changes. URIs whose settings change come first.
    pub examples: Vec<TouchedUri>,
}

/// URI that a change of an override touches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TouchedUri {
    /// The URI.
    pub uri: String,
    /// `true` if the URI is in a queue.
    pub is_queued: bool,
    /// Settings of the URI that change.
    pub changes: Vec<TouchedValue>,
}

/// Setting of a URI that would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TouchedValue {
    /// Name with its tables.
    pub key: String,
    /// Present value as TOML; not set if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change as TOML; not set if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
