//! `strict`: whatever differs is a new version. It is what holds where no evaluator answers; named, it ends a stack, so
//! that those behind it are not asked, or takes the place of `similar` for sites that matter.

use opilio_plugin::prelude::*;

/// Lets nothing pass for the same that is not.
pub struct Strict;

impl Plugin for Strict {
    const NAME: &'static str = "strict";
    const SUMMARY: &'static str = "Takes every difference that strippers leave for a new version.";
    type Settings = NoSettings;

    fn new(_: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }
}

impl ChangeEvaluator for Strict {
    fn compare(&self, _: &Document, _: &Visit, _: Option<&[u8]>) -> Comparison {
        Comparison {
            difference: Some(Difference::Changed),
            fingerprint: None,
            reason: String::new(),
        }
    }
}
