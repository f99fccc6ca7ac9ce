//! The parts of an explanation, as commands and the API give it.

use opilio_stacks::StackedPlugin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Explanation of how a profile or a job handles a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedUri {
    /// The URI, normalised.
    pub uri: String,
    /// Canonical form of the URI.
    pub canonical: String,
    /// Queue of the URI.
    pub queue: String,
    /// Politeness delay of the queue after a fetch of one second, in seconds.
    pub rest_s: f64,
    /// Page on which the URI is assumed to be found: from the request, or from its record; not set for a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Hop path from the seed, from the request or from its record; empty for a seed.
    #[serde(default)]
    pub hops: String,
    /// `true` if the URI is in scope.
    pub in_scope: bool,
    /// Answers of the scope's filters, in the order of the calls.
    pub scope: Vec<FilterAnswer>,
    /// `true` if the URI would be fetched when it is issued.
    pub fetched: bool,
    /// Answers of the pre-fetch filters, in the order of the calls.
    pub pre_fetch: Vec<FilterAnswer>,
    /// Treatment of robots.txt, which is not fetched here; not set if it does not apply to such a URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<String>,
    /// Waits after the next visit, by its possible results; empty if the URI is not visited again.
    #[serde(default)]
    pub waits: Vec<ExplainedWait>,
    /// Plugins of the stages that the URI passes, in order; stages without plugins are left out.
    #[serde(default)]
    pub stacks: Vec<ExplainedStack>,
    /// Settings that apply to the URI.
    pub settings: Vec<ExplainedSetting>,
}

impl ExplainedUri {
    /// Removes expert settings, except those that a file sets.
    pub fn leave_out_expert(&mut self) {
        self.settings
            .retain(|one| !one.expert || one.file.is_some());
    }
}

/// Stack that a URI passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedStack {
    /// Stage, as in `[stacks]` of the profile.
    pub stage: String,
    /// Plugins, in order.
    pub plugins: Vec<StackedPlugin>,
}

/// Wait after a visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedWait {
    /// Result of the visit: `new`, `changed`, `unchanged`; `any` if the result makes no difference.
    pub found: String,
    /// Wait until the next visit, in seconds, within the profile's limits.
    pub wait_s: f64,
    /// Answers of the wait evaluators at present, in the order of the calls. They are called without a document, so notes of
    /// other plugins about it are missing.
    pub answers: Vec<WaitAnswer>,
}

/// Answer of a wait evaluator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitAnswer {
    /// Name in the profile.
    pub evaluator: String,
    /// `wait` or `pass`; `failed` if the call failed; `not-asked` if the evaluator does not handle such documents, its own
    /// filters reject this one, or an earlier one has answered.
    pub answer: String,
    /// Reason; may be empty.
    pub reason: String,
    /// Requested wait in seconds, before the profile's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Time after which the evaluator wants to be called again without a visit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_again_s: Option<f64>,
    /// `true` if this answer decides.
    pub decides: bool,
}

/// Answer of a filter about a URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FilterAnswer {
    /// Name in the profile.
    pub filter: String,
    /// `accept`, `reject` or `pass`; `failed` if the call failed; `not-asked` if the filter does not handle such URIs or its
    /// own filters reject this one.
    pub answer: String,
    /// Reason; may be empty.
    pub reason: String,
    /// `true` if this answer decides.
    pub decides: bool,
}

/// Setting that applies to a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedSetting {
    /// Name with its tables.
    pub key: String,
    /// Value of the setting.
    pub value: Value,
    /// The value as TOML.
    pub toml: String,
    /// File that sets the value; not set if the setting has its default.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<usize>,
    /// `true` if the setting is rarely changed.
    #[serde(default)]
    pub expert: bool,
}
