//! `seed` and `redirected-seed`: the seeds, and the targets of their redirects.
//!
//! The target of a redirect from a seed counts as a seed, and so on, as far as the crawl follows redirects. The hop path
//! distinguishes the two: that of a seed is empty.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};

/// Settings of `seed` and of `redirected-seed`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// The decision on matching URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on any other URI.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl From<Settings> for Decisions {
    fn from(settings: Settings) -> Self {
        Self {
            then: settings.then,
            otherwise: settings.otherwise,
        }
    }
}

/// Decides on the seeds themselves.
pub struct Seed(Decisions);

impl Plugin for Seed {
    const NAME: &'static str = "seed";
    const SUMMARY: &'static str = "Accepts or rejects the seeds themselves.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self(settings.into()))
    }
}

impl Filter for Seed {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let is_match = candidate.seed() && candidate.hop_path().is_empty();
        self.0.rule(match is_match {
            true => Finding::matching("a seed"),
            false => Finding::not_matching("not a seed"),
        })
    }
}

/// Decides on redirect targets of seeds.
pub struct RedirectedSeed(Decisions);

impl Plugin for RedirectedSeed {
    const NAME: &'static str = "redirected-seed";
    const SUMMARY: &'static str = "Accepts or rejects redirect targets of seeds, on any host.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self(settings.into()))
    }
}

impl Filter for RedirectedSeed {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let is_match = candidate.seed() && !candidate.hop_path().is_empty();
        self.0.rule(match is_match {
            true => Finding::matching("a seed redirects there"),
            false => Finding::not_matching("no seed redirects there"),
        })
    }
}
