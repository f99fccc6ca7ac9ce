//! `fixed`: the same wait after every visit. It suits types or parts of a site whose change rate is known. It also suits
//! measurements of change rates: these need visits at times that do not depend on the results.

use std::time::Duration;

use opilio_plugin::prelude::*;

use crate::media_types;

/// Returns the same wait after every visit.
pub struct Fixed {
    settings: Settings,
}

/// Settings of `fixed`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// The wait after each visit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
    /// Media types that this evaluator answers for, such as `image/*`. The next one in the stack gets the others. Empty: all.
    pub media_types: Vec<String>,
}

impl Default for Settings {
    /// The default of `revisit.fixed-wait` in the profile.
    fn default() -> Self {
        Self {
            wait: Period::seconds(24 * 60 * 60),
            media_types: Vec::new(),
        }
    }
}

impl Plugin for Fixed {
    const NAME: &'static str = "fixed";
    const SUMMARY: &'static str = "Waits equally long after every visit.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults: Vec<_> =
            media_types::faults("/media-types", &settings.media_types).collect();
        if settings.wait.milliseconds() == 0 {
            let problem = "a wait of 0 would visit without a pause; write a time such as `1d`";
            faults.push(SettingsFault::new("/wait", problem));
        }
        none_or(faults, Self { settings })
    }
}

impl WaitEvaluator for Fixed {
    fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        media_types::is_among(&self.settings.media_types, &visit.media_type())
            .then(|| Wait::after(Duration::from_millis(self.settings.wait.milliseconds())))
    }
}
