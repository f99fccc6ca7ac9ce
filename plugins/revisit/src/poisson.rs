//! `poisson`: estimates how often a document changes, and revisits it when a change has the wanted probability. It ignores
//! budgets; `budgeted` respects them.

use std::time::Duration;

use opilio_plugin::prelude::*;

use crate::experience::{self, DAY, EVIDENCE, EVIDENCE_VERSION};
use crate::media_types;
use crate::rhythm::{RHYTHM, RHYTHM_VERSION, Rhythm, day_of};

/// Waits until a change is likely.
pub struct Poisson {
    settings: Settings,
    holidays: Vec<u64>,
}

/// Settings of `poisson`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Share of visits that should find a change, between 0 and 1. With 0.5, a document that changes once a day is visited
    /// every 17 hours.
    #[schemars(range(min = 0.01, max = 0.99), extend("x-opilio-overridable" = true))]
    pub changed_share: f64,
    /// Shortest wait.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub min_wait: Period,
    /// Longest wait. It guarantees a later visit of every document.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_wait: Period,
    /// Weight of the neighbourhood, as a number of changes of the document itself.
    #[schemars(range(min = 0.01, max = 100), extend("x-opilio-overridable" = true))]
    pub prior_weight: f64,
    /// Number of visits after which a visit counts for a third, because documents may change their behaviour.
    #[schemars(range(min = 2, max = 10_000), extend("x-opilio-overridable" = true))]
    pub memory: f64,
    /// Whether to learn the hours and days in which a site's documents change.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub rhythm: bool,
    /// Days that count as Sundays, such as `2026-12-25`.
    pub holidays: Vec<String>,
    /// Media types that this evaluator answers for, such as `text/*`. The next one in the stack gets the others. Empty: all.
    pub media_types: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            changed_share: 0.5,
            min_wait: Period::seconds(60 * 60),
            max_wait: Period::seconds(12 * 7 * 24 * 60 * 60),
            prior_weight: 0.5,
            memory: 50.0,
            rhythm: true,
            holidays: Vec::new(),
            media_types: Vec::new(),
        }
    }
}

impl Plugin for Poisson {
    const NAME: &'static str = "poisson";
    const SUMMARY: &'static str =
        "Estimates how often a document changes, and revisits it when a change is likely.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        check_range(
            &mut faults,
            "/changed-share",
            settings.changed_share,
            0.01..=0.99,
        );
        check_range(
            &mut faults,
            "/prior-weight",
            settings.prior_weight,
            0.01..=100.0,
        );
        check_range(&mut faults, "/memory", settings.memory, 2.0..=10_000.0);
        check_limits(&mut faults, settings.min_wait, settings.max_wait);
        let holidays = holidays(&mut faults, &settings.holidays);
        faults.extend(media_types::faults("/media-types", &settings.media_types));
        none_or(faults, Self { settings, holidays })
    }

    fn keeps() -> Vec<Keep> {
        vec![
            Keep::with_uri(EVIDENCE, EVIDENCE_VERSION),
            Keep::with_site(RHYTHM, RHYTHM_VERSION),
        ]
    }
}

impl WaitEvaluator for Poisson {
    fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        let settings = &self.settings;
        if !media_types::is_among(&settings.media_types, &visit.media_type()) {
            return None;
        }
        let mut evidence = experience::evidence(visit, settings.memory);
        let usual = experience::usual_rate(visit, settings.prior_weight);
        let mut rhythm = settings.rhythm.then(|| Rhythm::of(visit, &self.holidays));
        let interval = experience::interval(visit).filter(|_| experience::is_visit(visit));
        if let Some(interval) = interval {
            let days = days(rhythm.as_ref(), interval.from, interval.to);
            let expected = || evidence.rate(usual, 0.5);
            if let Some(rhythm) = &mut rhythm
                && rhythm.learn(interval.from, interval.to, interval.has_changed, expected)
            {
                visit.set_site_value(RHYTHM, &rhythm.encode());
            }
            evidence.add(days, interval.has_changed, settings.memory);
            visit.set_attribute(EVIDENCE, &evidence.encode());
        }
        let rate = evidence.rate(usual, 0.5);
        let days = -(1.0 - settings.changed_share).ln() / rate;
        let wait = until(rhythm.as_ref(), visit.now(), days);
        let (min, max) = (
            settings.min_wait.milliseconds(),
            settings.max_wait.milliseconds(),
        );
        Some(Wait::after(Duration::from_millis(wait.clamp(min, max))))
    }
}

/// Days between two times, weighted by the rhythm of the site if it is learned.
pub(crate) fn days(rhythm: Option<&Rhythm>, from: u64, to: u64) -> f64 {
    match rhythm {
        Some(rhythm) => rhythm.days(from, to),
        None => experience::days(from, to),
    }
}

/// Milliseconds from a time until a number of such days have passed.
pub(crate) fn until(rhythm: Option<&Rhythm>, from: u64, days: f64) -> u64 {
    match rhythm {
        Some(rhythm) => rhythm.until(from, days),
        None => (days * DAY) as u64,
    }
}

pub(crate) fn check_range(
    faults: &mut Vec<SettingsFault>,
    pointer: &str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
) {
    // Also rejects NaN.
    if !range.contains(&value) {
        let (low, high) = range.into_inner();
        let problem = format!("{value} is not between {low} and {high}");
        faults.push(SettingsFault::new(pointer, problem));
    }
}

pub(crate) fn check_limits(faults: &mut Vec<SettingsFault>, min: Period, max: Period) {
    if min.milliseconds() == 0 {
        let problem = "a wait of 0 would visit without a pause; write a time such as `1h`";
        faults.push(SettingsFault::new("/min-wait", problem));
    }
    if min > max {
        let problem = format!("{min} is longer than max-wait, {max}");
        faults.push(SettingsFault::new("/min-wait", problem));
    }
}

pub(crate) fn holidays(faults: &mut Vec<SettingsFault>, dates: &[String]) -> Vec<u64> {
    let mut days = Vec::new();
    for (at, date) in dates.iter().enumerate() {
        match day_of(date) {
            Some(day) => days.push(day),
            None => {
                let problem = format!("`{date}` is not a date; write it like `2026-12-25`");
                faults.push(SettingsFault::new(format!("/holidays/{at}"), problem));
            }
        }
    }
    days
}
