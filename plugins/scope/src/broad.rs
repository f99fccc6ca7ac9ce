//! `broad`: the scope of a broad crawl.

use opilio_plugin::prelude::*;

use crate::parts::SurtServer;

/// Accepts every URI that names a server.
pub struct Broad;

impl Plugin for Broad {
    const NAME: &'static str = "broad";
    const SUMMARY: &'static str =
        "Accepts every URI that names a server, on any host; filters such as `hops` set limits.";
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
