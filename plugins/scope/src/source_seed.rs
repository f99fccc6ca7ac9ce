//! `source-seed`: decides by the seed that a URI descends from.

use std::collections::BTreeSet;

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};

/// Decides on URIs that descend from one of its seeds.
pub struct SourceSeed {
    seeds: BTreeSet<String>,
    decisions: Decisions,
}

/// Settings of `source-seed`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Seeds, as in the source column of `crawl.log`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub seeds: Vec<String>,
    /// The decision on URIs that descend from these seeds.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on URIs that descend from other seeds. URIs of unknown source get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for SourceSeed {
    const NAME: &'static str = "source-seed";
    const SUMMARY: &'static str = "Accepts or rejects URIs that descend from listed seeds.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            seeds: settings.seeds.into_iter().collect(),
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for SourceSeed {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let finding = match candidate.source() {
            Some(source) if !self.seeds.is_empty() => Finding::from_match(
                self.seeds.get(source).map(|seed| ["from ", seed].concat()),
                "from none of the seeds",
            ),
            _ => Finding::Unknown,
        };
        self.decisions.rule(finding)
    }
}
