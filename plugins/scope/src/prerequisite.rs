//! `prerequisite`: URIs that must be fetched before a URI of the crawl.

use opilio_plugin::prelude::*;

/// Accepts URIs found by a prerequisite hop.
pub struct Prerequisite;

impl Plugin for Prerequisite {
    const NAME: &'static str = "prerequisite";
    const SUMMARY: &'static str =
        "Accepts URIs that must be fetched before another URI: DNS, robots.txt, a login.";
    type Settings = NoSettings;

    fn new(_: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }
}

impl Filter for Prerequisite {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        if candidate.hop_path().ends_with('P') {
            Ruling::accept("prerequisite")
        } else {
            Ruling::pass()
        }
    }
}
