//! `hops`: how far from a seed the crawl goes.

use opilio_plugin::prelude::*;

/// Rejects what is too many hops away from its seed.
pub struct Hops {
    settings: Settings,
}

/// Settings of `hops`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most hops from the seed, of every type; a URI with more is rejected.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max: 20 }
    }
}

impl Plugin for Hops {
    const NAME: &'static str = "hops";
    const SUMMARY: &'static str = "Rejects URIs that are too many hops away from their seed.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Filter for Hops {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        if hop_count(candidate.hop_path()) > u64::from(self.settings.max) {
            Ruling::reject(format!("more than {} hops", self.settings.max))
        } else {
            Ruling::pass()
        }
    }
}

/// Hops in a hop path. A long one reads `N+` and its last 50 letters, N being the number left out.
fn hop_count(path: &str) -> u64 {
    match path.split_once('+') {
        Some((left_out, rest)) => left_out
            .parse()
            .unwrap_or(0_u64)
            .saturating_add(rest.len() as u64),
        None => path.len() as u64,
    }
}
