//! `hop-path`: decides by the hop path from the seed.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::patterns::Patterns;

/// Decides on hop paths that an expression matches.
pub struct HopPath {
    patterns: Patterns,
    decisions: Decisions,
}

/// Settings of `hop-path`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Regular expressions to find in the hop path: `^L?E*$` matches the seeds' pages and those they link to, with their
    /// embeds. The path of a seed is empty. A path of more than 50 hops reads `N+` and its last 50 letters.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// The decision on URIs with a matching hop path.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for HopPath {
    const NAME: &'static str = "hop-path";
    const SUMMARY: &'static str =
        "Accepts or rejects URIs whose hop path from the seed matches a regular expression.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            patterns: Patterns::new("patterns", &settings.patterns)?,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for HopPath {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        if self.patterns.is_empty() {
            return Ruling::pass();
        }
        let found = self.patterns.first_match(candidate.hop_path());
        self.decisions.rule(Finding::from_match(
            found.map(|pattern| ["hop path matches ", pattern].concat()),
            "hop path matches no pattern",
        ))
    }
}
