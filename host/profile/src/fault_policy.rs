//! Policies for plugin errors: the effect of a single one, and of many in a row.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;
use crate::stage::Stage;

/// Effect on a URI or document when its plugin fails: the plugin traps, takes too long, or gives an invalid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// Processing continues as if the plugin had not answered: an extractor finds nothing, and a filter passes. A document
    /// whose stripper failed counts as unknown.
    Skip,
    /// A filter rejects it.
    Reject,
    /// A filter accepts it.
    Accept,
    /// The same as without this setting, and in addition the crawl pauses until an operator resumes it.
    Pause,
}

/// Breaker: the action on a plugin that fails too often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct BreakerFile {
    /// Number of plugin errors among its last calls that is too many; `"none"` for never. Default `25`: a few odd pages do not
    /// trip the breaker, and a broken plugin trips it within a minute.
    pub faults: CountWritten,

    /// Number of last calls that are counted. Default `100`: a plugin that fails on every fourth page is broken.
    #[schemars(range(min = 1, max = 100_000))]
    pub calls: u32,

    /// Action on such a plugin, with a line in job.log. No default: `"halt"` for a filter of the scope, because its missing
    /// decisions cannot be made up later; `"skip"` for any other plugin, because pages can be archived without it.
    pub then: Option<BreakerAction>,

    /// For `"skip"`: time for which the plugin is left out before it is tried again. Default `"10m"`: rare enough that retries
    /// cost nothing.
    pub skip_for: DurationWritten,
}

/// Action on a plugin that fails too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerAction {
    /// The plugin is left out for a while, as if it had failed, at no cost.
    Skip,
    /// The crawl pauses until an operator resumes it.
    Pause,
    /// The crawl ends. The same command resumes it once the plugin is fixed.
    Halt,
}

/// Breaker: the number of plugin errors that is too many, and the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Number of errors among the last [`BreakerSettings::calls`] that is too many; `None`: never. At least 1, at most `calls`.
    pub faults: Option<u32>,
    /// Number of last calls that are counted; at least 1.
    pub calls: u32,
    /// The action as written; [`BreakerSettings::action_at`] gives the effective one.
    pub then: Option<BreakerAction>,
    /// Time for which it is left out; longer than zero.
    pub skip_for: Duration,
}

impl OnFault {
    /// The policy at a stage if none is written. Filters of the scope and before the fetch reject, because a URI may have to be
    /// excluded. At other stages a failed plugin is skipped.
    pub fn default_at(stage: Stage) -> Self {
        match stage {
            Stage::Scope | Stage::PreFetch => Self::Reject,
            _ => Self::Skip,
        }
    }
}

impl BreakerSettings {
    /// The action at a stage.
    pub fn action_at(&self, stage: Stage) -> BreakerAction {
        self.then.unwrap_or(match stage {
            Stage::Scope => BreakerAction::Halt,
            _ => BreakerAction::Skip,
        })
    }
}

impl Default for BreakerFile {
    fn default() -> Self {
        Self {
            faults: 25.into(),
            calls: 100,
            then: None,
            skip_for: "10m".into(),
        }
    }
}

impl BreakerFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> BreakerSettings {
        let faults = part
            .count_limit("faults", &self.faults)
            .map(|faults| u32::try_from(faults).unwrap_or(u32::MAX));
        if faults.is_some_and(|faults| faults > self.calls) {
            let problem = format!(
                "{} faults cannot be among {} calls",
                faults.unwrap_or_default(),
                self.calls
            );
            part.refuse("faults", problem, "raise calls, or write fewer faults");
        }
        BreakerSettings {
            faults,
            calls: self.calls,
            then: self.then,
            skip_for: part.positive_duration("skip-for", &self.skip_for),
        }
    }
}
