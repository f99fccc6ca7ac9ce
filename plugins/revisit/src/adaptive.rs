//! `adaptive`: the wait evaluator of adaptive revisiting. A changed document is visited sooner next time, an unchanged one
//! later, by constant factors and between two limits (Sigurðsson 2005, chapter 5 and section 6.3.2). README.md has the rule and
//! an example with different waits for media types.

use std::time::Duration;

use opilio_plugin::prelude::*;

use crate::media_types;

/// Multiplies the wait of unchanged documents and divides that of changed ones.
pub struct Adaptive {
    settings: Settings,
}

/// Settings of `adaptive`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Wait after the first visit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub initial_wait: Period,
    /// Shortest wait.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub min_wait: Period,
    /// Longest wait. It guarantees a later visit of every document.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_wait: Period,
    /// Factor by which an unchanged document's wait is multiplied; 1 or more.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub unchanged_factor: f64,
    /// Factor by which a changed document's wait is divided; 1 or more.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub changed_factor: f64,
    /// Rule that shortens a changed document's wait: `divide` divides it by `changed-factor`; `halfway` takes the middle
    /// between it and the shortest wait.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub changed_rule: ChangedRule,
    /// Wait if the content state is unknown.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub default_wait: Period,
    /// Whether to add the time by which the visit was overdue to the wait before a factor is applied. Waits then adapt to the
    /// crawler's capacity. A changed document that was visited much too late may get a longer wait than before.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub use_overdue_time: bool,
    /// Media types that this evaluator answers for, such as `text/*`. The next one in the stack gets the others. Empty: all.
    pub media_types: Vec<String>,
}

/// Rules that shorten waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedRule {
    /// Divides the wait by a factor.
    Divide,
    /// Takes the middle between the wait and the shortest one.
    Halfway,
}

impl Default for Settings {
    /// The values of adaptive revisiting in Heritrix.
    fn default() -> Self {
        Self {
            initial_wait: Period::seconds(24 * 60 * 60),
            min_wait: Period::seconds(60 * 60),
            max_wait: Period::seconds(4 * 7 * 24 * 60 * 60),
            unchanged_factor: 1.5,
            changed_factor: 1.5,
            changed_rule: ChangedRule::Divide,
            default_wait: Period::seconds(3 * 24 * 60 * 60),
            use_overdue_time: false,
            media_types: Vec::new(),
        }
    }
}

impl Plugin for Adaptive {
    const NAME: &'static str = "adaptive";
    const SUMMARY: &'static str =
        "Lengthens the wait of unchanged documents and shortens that of changed ones.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        for (pointer, factor) in [
            ("/unchanged-factor", settings.unchanged_factor),
            ("/changed-factor", settings.changed_factor),
        ] {
            // Also rejects NaN.
            if !(factor >= 1.0 && factor.is_finite()) {
                faults.push(SettingsFault::new(
                    pointer,
                    format!("{factor} is not a finite number of at least 1; a smaller factor would reverse the rule"),
                ));
            }
        }
        if settings.min_wait > settings.max_wait {
            let problem = format!(
                "{} is longer than max-wait, {}",
                settings.min_wait, settings.max_wait
            );
            faults.push(SettingsFault::new("/min-wait", problem));
        }
        faults.extend(media_types::faults("/media-types", &settings.media_types));
        none_or(faults, Self { settings })
    }
}

impl WaitEvaluator for Adaptive {
    fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        if !media_types::is_among(&self.settings.media_types, &visit.media_type()) {
            return None;
        }
        let settings = &self.settings;
        let wait = match (visit.state(), visit.last_wait()) {
            (ContentState::Unknown, _) => settings.default_wait.milliseconds(),
            // A changed or unchanged document without a wait was imported, or its history was lost.
            (ContentState::New, _) | (_, None) => settings.initial_wait.milliseconds(),
            (ContentState::Unchanged, Some(wait)) => {
                times(self.base(wait, visit), settings.unchanged_factor)
            }
            (ContentState::Changed, Some(wait)) => {
                let base = self.base(wait, visit);
                match settings.changed_rule {
                    ChangedRule::Divide => times(base, 1.0 / settings.changed_factor),
                    ChangedRule::Halfway => {
                        let min = settings.min_wait.milliseconds();
                        min.saturating_add(base.saturating_sub(min) / 2)
                    }
                }
            }
        };
        let (min, max) = (
            settings.min_wait.milliseconds(),
            settings.max_wait.milliseconds(),
        );
        Some(Wait::after(Duration::from_millis(wait.clamp(min, max))))
    }
}

impl Adaptive {
    /// The time that the factor is applied to: the wait that led to this visit, or the time that has passed.
    fn base(&self, wait: u64, visit: &Visit) -> u64 {
        if self.settings.use_overdue_time {
            wait.saturating_add(visit.overdue())
        } else {
            wait
        }
    }
}

/// Milliseconds times a factor, rounded to the nearest. Saturates, as casts from floats do.
fn times(milliseconds: u64, factor: f64) -> u64 {
    (milliseconds as f64 * factor).round() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{VisitFacts, visit};

    /// Expected waits in hours, calculated by hand, for content states and overdue times in hours.
    #[test]
    fn waits_match_a_manual_calculation() {
        use ContentState::{Changed, New, Unchanged, Unknown};
        let check = |settings: Settings, history: &[(ContentState, u64, u64)]| {
            let adaptive = Adaptive::new(settings).unwrap();
            let mut wait = None;
            for &(state, late, expected) in history {
                let facts = VisitFacts {
                    state,
                    last_wait: wait,
                    overdue: late * 3_600_000,
                    ..VisitFacts::default()
                };
                wait = adaptive.evaluate(&visit(facts)).map(|wait| wait.next_visit);
                assert_eq!(wait, Some(expected * 3_600_000), "{state:?} {late}");
            }
        };
        check(
            Settings::default(),
            &[
                (New, 0, 24),
                (Unchanged, 0, 36),
                (Unchanged, 40, 54),
                (Changed, 0, 36),
                (Unknown, 0, 72),
                (Unchanged, 0, 108),
                (Changed, 5, 72),
                (Changed, 0, 48),
                (Changed, 0, 32),
            ],
        );
        let text = Settings {
            initial_wait: Period::seconds(12 * 3600),
            use_overdue_time: true,
            ..Settings::default()
        };
        check(
            text,
            &[
                (New, 0, 12),
                (Unchanged, 4, 24),
                (Changed, 12, 24),
                (Changed, 0, 16),
                (Unchanged, 600, 672),
                (Changed, 600, 672),
            ],
        );
    }

    /// A page that is always unchanged gets the longest wait. Then it changes at every visit and gets the shortest.
    #[test]
    fn waits_stop_at_the_limits() {
        let adaptive = Adaptive::new(Settings::default()).unwrap();
        let mut wait = None;
        let mut wait_after = |state, visits: usize| {
            for _ in 0..visits {
                let facts = VisitFacts {
                    state,
                    last_wait: wait,
                    ..VisitFacts::default()
                };
                wait = adaptive.evaluate(&visit(facts)).map(|wait| wait.next_visit);
            }
            wait.unwrap()
        };
        let day = 86_400_000;
        assert_eq!(wait_after(ContentState::New, 1), day);
        // 1.5^8 days are 25.6. The ninth wait would be longer than four weeks.
        assert_eq!(wait_after(ContentState::Unchanged, 8), 2_214_337_500);
        assert_eq!(wait_after(ContentState::Unchanged, 1), 28 * day);
        // 28 days divided sixteen times by 1.5 are 1.02 hours.
        assert!(wait_after(ContentState::Changed, 16) > 3_600_000);
        assert_eq!(wait_after(ContentState::Changed, 1), 3_600_000);
    }
}
