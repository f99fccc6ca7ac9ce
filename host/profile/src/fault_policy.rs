//! What becomes of a crawl when a plugin fails, once or again and again.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;
use crate::stacks::Stage;

/// What becomes of what a plugin was asked about when it fails: traps, takes too long, or answers nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// It goes on as if the plugin had no opinion: an extractor finds nothing, a filter passes, what a stripper was to
    /// make comparable counts as unknown.
    Skip,
    /// A filter rejects it.
    Reject,
    /// A filter accepts it.
    Accept,
    /// As without this setting, and the crawl pauses until an operator resumes it.
    Pause,
}

/// What becomes of a plugin that fails again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct BreakerFile {
    /// So many faults among its last calls are too many; `"none"` for never. Default `25`: one odd page is none of it, a
    /// plugin that is broken is found within a minute.
    pub faults: CountWritten,

    /// The number of last calls that is looked at. Default `100`: a plugin that fails on every fourth page is broken.
    #[schemars(range(min = 1, max = 100_000))]
    pub calls: u32,

    /// What is done then, with a line in job.log. No default: `"halt"` for a filter of the scope, since what it would have
    /// let in is not known later; `"skip"` for any other plugin, since the pages can be archived without it.
    pub then: Option<BreakerAction>,

    /// For `"skip"`: how long the plugin is left out before it is tried again. Default `"10m"`: rarely enough to cost
    /// nothing.
    pub rest: DurationWritten,
}

/// What is done about a plugin that fails again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerAction {
    /// It is left out for a while, as if it had failed, at no cost.
    Skip,
    /// The crawl pauses until an operator resumes it.
    Pause,
    /// The crawl ends; the same command goes on with it once the plugin is mended.
    Halt,
}

/// When a plugin has failed too often, and what then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// So many faults among the last [`Breaker::calls`] are too many; none: never. At least 1, at most `calls`.
    pub faults: Option<u32>,
    /// The number of last calls that is looked at; at least 1.
    pub calls: u32,
    /// As written; [`Breaker::action_at`] knows what holds.
    pub then: Option<BreakerAction>,
    /// How long it is left out; longer than zero.
    pub rest: Duration,
}

impl OnFault {
    /// What holds at a stage where nothing is written: what a filter may not have wanted crawled or asked for is not;
    /// elsewhere a plugin that fails has no say.
    pub fn default_at(stage: Stage) -> Self {
        match stage {
            Stage::Scope | Stage::PreFetch => Self::Reject,
            _ => Self::Skip,
        }
    }
}

impl Breaker {
    /// What is done at a stage.
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
            rest: "10m".into(),
        }
    }
}

impl BreakerFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Breaker {
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
        Breaker {
            faults,
            calls: self.calls,
            then: self.then,
            rest: part.positive_duration("rest", &self.rest),
        }
    }
}
