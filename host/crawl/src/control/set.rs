//! Settings while the job runs: what they are, and how they are changed.

use opilio_profile::Level;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::settings::Effect;

/// A setting of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingInForce {
    /// Its name with its tables, such as `politeness.min-delay`.
    pub key: String,
    /// Its value, where no override says otherwise.
    pub value: Value,
    /// The value as TOML writes it.
    pub toml: String,
    /// The file that says so, as faults call it; none: nobody says so, and it has its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// At which stage it is needed, and so what an override of it may match by: `job`, `queue`, `uri`, `response`.
    pub stage: String,
    /// What follows where its value is no good one: `info`, `warning` or `error`.
    pub level: String,
    /// Few ever change it.
    pub expert: bool,
    /// When a change of it takes effect.
    pub effect: Effect,
    /// What it is for; empty for settings of plugins.
    pub description: String,
}

/// A setting that was changed, or would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingChanged {
    /// Its name with its tables.
    pub key: String,
    /// What it was, as TOML; none where it was not set, or where the change is for some URIs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What it is, as TOML.
    pub after: String,
    /// From when on.
    pub effect: Effect,
}

/// Something that is wrong with a change, or worth a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FaultFound {
    /// `info`, `warning` or `error`.
    pub level: String,
    /// The file as faults call it; `set` for what was asked for.
    pub file: String,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// JSON Pointer to the setting.
    pub setting: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<&opilio_profile::Fault> for FaultFound {
    fn from(fault: &opilio_profile::Fault) -> FaultFound {
        FaultFound {
            level: level_name(fault.level).to_owned(),
            file: fault.file.clone(),
            line: fault.place.as_ref().map(|place| place.line),
            column: fault.place.as_ref().map(|place| place.column),
            setting: fault.pointer.clone(),
            problem: fault.problem.clone(),
            suggestion: fault.suggestion.clone(),
        }
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}
