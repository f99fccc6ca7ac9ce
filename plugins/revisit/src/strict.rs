//! `strict`: counts every difference as a new version, as Opilio does if no evaluator answers. In a stack, later evaluators
//! are not called. An override can use it instead of `similar` for important sites.

use opilio_plugin::prelude::*;

/// Counts every difference as a change.
pub struct Strict;

impl Plugin for Strict {
    const NAME: &'static str = "strict";
    const SUMMARY: &'static str = "Counts every difference that strippers leave as a new version.";
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
