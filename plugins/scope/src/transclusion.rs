//! `transclusion`: embeds that a page of the crawl needs, on any host.

use opilio_plugin::prelude::*;

use crate::hops::{Path, Trailing};

/// Accepts URIs a few hops other than links away, such as images, style sheets and scripts on other sites.
pub struct Transclusion {
    settings: Settings,
}

/// Settings of `transclusion`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Most hops since the last link, form or manifest hop. Redirects (R) do not count. URIs with at least one such hop or
    /// redirect, and no more hops than this, are accepted.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_trans_hops: u32,
    /// Most speculative hops (X) among these.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_speculative_hops: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_trans_hops: 2,
            max_speculative_hops: 1,
        }
    }
}

impl Plugin for Transclusion {
    const NAME: &'static str = "transclusion";
    const SUMMARY: &'static str =
        "Accepts URIs that pages of the crawl embed or redirect to, on any host.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }
}

impl Filter for Transclusion {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let Trailing {
            redirects,
            hops,
            speculative,
        } = Path::of(candidate.hop_path()).trailing();
        if hops + redirects > 0
            && hops <= u64::from(self.settings.max_trans_hops)
            && speculative <= u64::from(self.settings.max_speculative_hops)
        {
            Ruling::accept("transclusion")
        } else {
            Ruling::pass()
        }
    }
}
