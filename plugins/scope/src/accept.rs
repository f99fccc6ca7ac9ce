//! `accept`: accepts every URI. A scope stack can begin with it, so that later filters only reject.

use opilio_plugin::prelude::*;

/// Accepts everything.
pub struct Accept;

impl Plugin for Accept {
    const NAME: &'static str = "accept";
    const SUMMARY: &'static str =
        "Accepts every URI; later filters of the stack may still reject it.";
    type Settings = NoSettings;

    fn new(_: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }
}

impl Filter for Accept {
    fn judge_candidate(&self, _: &Stage, _: CandidateView<'_>) -> Ruling {
        Ruling::accept("")
    }
}
