//! `broad`: a crawl of the web at large.

use opilio_plugin::prelude::*;

use crate::parts::SurtServer;

/// Accepts whatever lies on a server.
pub struct Broad;

impl Plugin for Broad {
    const NAME: &'static str = "broad";
    const SUMMARY: &'static str =
        "Accepts every URI that names a server, wherever it lies; `hops` and others set bounds.";
    type Settings = NoSettings;

    fn new(_: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }
}

impl Filter for Broad {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        match SurtServer::of(candidate.surt()) {
            Some(_) => Ruling::accept("anywhere"),
            None => Ruling::pass(),
        }
    }
}
