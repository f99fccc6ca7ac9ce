//! The parts of an explanation, as commands and the API give it.

use opilio_stacks::StackedPlugin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a profile or a job makes of a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedUri {
    /// The URI as normalised.
    pub uri: String,
    /// What it counts as.
    pub canonical: String,
    /// The queue that it stands in.
    pub queue: String,
    /// The rest of that queue after a fetch that took a second, in seconds.
    pub rest_s: f64,
    /// The page that it is judged as found on: as was asked, or as it was found; none for a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The hops from the seed, likewise; empty for a seed.
    #[serde(default)]
    pub hops: String,
    /// It belongs to the crawl.
    pub in_scope: bool,
    /// What the filters of the scope answer, in the order asked.
    pub scope: Vec<FilterAnswer>,
    /// It is fetched when its turn has come.
    pub fetched: bool,
    /// What the filters before a fetch answer, in the order asked.
    pub pre_fetch: Vec<FilterAnswer>,
    /// What of robots.txt, which is not asked here; none where no site has one for such a URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<String>,
    /// What would follow its next visit, by what that may find; none where it is not visited again.
    #[serde(default)]
    pub waits: Vec<ExplainedWait>,
    /// The plugins that stand in its way, by stages in the order of its way; those without plugins are left out.
    #[serde(default)]
    pub stacks: Vec<ExplainedStack>,
    /// Every setting that holds for it.
    pub settings: Vec<ExplainedSetting>,
}

impl ExplainedUri {
    /// Removes expert settings, except those that a file sets.
    pub fn leave_out_expert(&mut self) {
        self.settings
            .retain(|one| !one.expert || one.file.is_some());
    }
}

/// A stack that a URI goes through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedStack {
    /// The stage, as in the profile's `[stacks]`.
    pub stage: String,
    /// Its plugins, in order.
    pub plugins: Vec<StackedPlugin>,
}

/// The wait that would follow a visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedWait {
    /// What the visit finds: `new`, `changed`, `unchanged`; `any` where that makes no difference.
    pub found: String,
    /// The wait until the visit after it, in seconds, within the profile's limits.
    pub wait_s: f64,
    /// What wait evaluators would say, in the order asked, as things stand now. They are asked without a document: what other
    /// plugins would have noted on it is not there.
    pub answers: Vec<WaitAnswer>,
}

/// What a wait evaluator would say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitAnswer {
    /// Its name in the profile.
    pub evaluator: String,
    /// `wait`, `pass`; `failed` where it could not be asked, `not-asked` where it does not handle such documents, its own
    /// filters keep it from seeing this one, or one before it has answered.
    pub answer: String,
    /// Why; may be empty.
    pub reason: String,
    /// The wait it wants, in seconds, before the profile's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// When it wants to be asked again without a visit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_again_s: Option<f64>,
    /// Its answer is the one that holds.
    pub decides: bool,
}

/// What a filter answers about a URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FilterAnswer {
    /// Its name in the profile.
    pub filter: String,
    /// `accept`, `reject`, `pass`; `failed` where it could not be asked, `not-asked` where it does not handle such URIs or
    /// its own filters keep it from seeing this one.
    pub answer: String,
    /// Why; may be empty.
    pub reason: String,
    /// Its answer is the one that holds.
    pub decides: bool,
}

/// A setting that holds for a URI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedSetting {
    /// Its name with its tables.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The value as TOML writes it.
    pub toml: String,
    /// The file that says so; none: its default.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<usize>,
    /// Few ever change it.
    #[serde(default)]
    pub expert: bool,
}
