//! `budgeted`: shares a limited number of visits among documents. A document is due when the value of a visit reaches its
//! price: the sum of the crawl's price and that of the document's host. Opilio moves these prices until the requested visits
//! match the budget. The value of a visit is an index (`index.rs`). Its goal θ is fresh copies or many versions.

use std::time::Duration;

use opilio_plugin::prelude::*;

use crate::experience::{self, DAY, EVIDENCE, EVIDENCE_VERSION};
use crate::finds::{FINDS, FINDS_VERSION, Finds};
use crate::index::{Belief, ExtraValue, RATES};
use crate::list_reliability::{ListReliability, RELIABILITY, RELIABILITY_VERSION};
use crate::media_types;
use crate::poisson::{check_limits, check_range, days, holidays, until};
use crate::promise::{self, PROMISE, PROMISE_VERSION};
use crate::rhythm::{RHYTHM, RHYTHM_VERSION, Rhythm};
use crate::spread::{SPREAD, SPREAD_VERSION, Spread};

/// Waits until the value of a visit reaches its price.
pub struct Budgeted {
    settings: Settings,
    holidays: Vec<u64>,
}

/// Settings of `budgeted`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// The goal: 0 captures as many versions as possible, 1 keeps copies fresh for as much of the time as possible. Values
    /// between combine both.
    #[schemars(range(min = 0, max = 1), extend("x-opilio-overridable" = true))]
    pub theta: f64,
    /// Price of a visit if Opilio gives no price, relative to the value of a document. 0.01 is low.
    #[schemars(range(min = 0.000001, max = 1000), extend("x-opilio-overridable" = true), extend("x-opilio-expert" = true))]
    pub price: f64,
    /// Value of a document relative to one of the next better precedence.
    #[schemars(range(min = 0.01, max = 1), extend("x-opilio-overridable" = true))]
    pub precedence_factor: f64,
    /// Weight of links: a document's value grows by this, times the logarithm of its number of links. Links lead to new
    /// documents.
    #[schemars(range(min = 0, max = 10), extend("x-opilio-overridable" = true))]
    pub link_weight: f64,
    /// Size in bytes at which a visit costs twice as much as that of an empty document. 0: the size does not change the price.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub costly_size: u64,
    /// Shortest wait.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub min_wait: Period,
    /// Longest wait. It guarantees a later visit of every document.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_wait: Period,
    /// Longer waits are reconsidered without a visit, after half of this time at the earliest and all of it at the latest.
    /// Prices and the neighbourhood change. The range keeps documents found together from being reconsidered all at once.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub reconsider: Period,
    /// Number of visits after which a visit counts for a third, because documents may change their behaviour.
    #[schemars(range(min = 2, max = 10_000), extend("x-opilio-overridable" = true))]
    pub memory: f64,
    /// Whether to learn the hours and days in which a site's documents change.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub rhythm: bool,
    /// Days that count as Sundays, such as `2026-12-25`.
    pub holidays: Vec<String>,
    /// Whether to learn how reliable feeds and sitemaps are. Reported changes then need no visits of their own, and lists that
    /// are often wrong are not followed. Otherwise every document that they name is visited.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub signals: bool,
    /// Media types that this evaluator answers for, such as `text/*`. The next one in the stack gets the others. Empty: all.
    pub media_types: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theta: 0.0,
            price: 0.1,
            precedence_factor: 0.9,
            link_weight: 0.0,
            costly_size: 0,
            min_wait: Period::seconds(60 * 60),
            max_wait: Period::seconds(26 * 7 * 24 * 60 * 60),
            reconsider: Period::seconds(7 * 24 * 60 * 60),
            memory: 50.0,
            rhythm: true,
            holidays: Vec::new(),
            signals: true,
            media_types: Vec::new(),
        }
    }
}

impl Plugin for Budgeted {
    const NAME: &'static str = "budgeted";
    const SUMMARY: &'static str =
        "Shares a limited number of visits among documents, for freshness, versions, or both.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        check_range(&mut faults, "/theta", settings.theta, 0.0..=1.0);
        check_range(&mut faults, "/price", settings.price, 0.000_001..=1000.0);
        check_range(
            &mut faults,
            "/precedence-factor",
            settings.precedence_factor,
            0.01..=1.0,
        );
        check_range(
            &mut faults,
            "/link-weight",
            settings.link_weight,
            0.0..=10.0,
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
            Keep::with_uri(PROMISE, PROMISE_VERSION),
            Keep::with_site(RHYTHM, RHYTHM_VERSION),
            Keep::with_site(SPREAD, SPREAD_VERSION),
            Keep::with_site(RELIABILITY, RELIABILITY_VERSION),
            Keep::with_site(FINDS, FINDS_VERSION),
        ]
    }
}

impl WaitEvaluator for Budgeted {
    fn evaluate(&self, visit: &Visit) -> Option<Wait> {
        let settings = &self.settings;
        if !media_types::is_among(&settings.media_types, &visit.media_type()) {
            return None;
        }
        let mut evidence = experience::evidence(visit, settings.memory);
        let rates = experience::neighbourhood_rates(visit);
        let mut spread = Spread::of(visit);
        let (min, max) = (
            settings.min_wait.milliseconds(),
            settings.max_wait.milliseconds(),
        );
        let prior = spread.prior(rates, min as f64 / DAY);
        let mut rhythm = settings.rhythm.then(|| Rhythm::of(visit, &self.holidays));
        let mut lists = settings.signals.then(|| ListReliability::of(visit));
        let is_visit = experience::is_visit(visit);
        let was_named = !visit.signals().is_empty();
        let interval = experience::interval(visit).filter(|_| is_visit);
        if let Some(interval) = interval {
            let days = days(rhythm.as_ref(), interval.from, interval.to);
            let expected = || spread.judge(&prior, &evidence).belief.mean();
            if let Some(rhythm) = &mut rhythm
                && rhythm.learn(interval.from, interval.to, interval.has_changed, expected)
            {
                visit.set_site_value(RHYTHM, &rhythm.encode());
            }
            if visit.attribute(PROMISE).is_some() {
                visit.set_attribute(PROMISE, "");
            }
            let is_trusted = lists.as_ref().is_none_or(|lists| lists.doubt() < 0.5);
            if was_named && interval.has_changed && is_trusted {
                evidence.add_reported(days, settings.memory);
            } else {
                evidence.add(days, interval.has_changed, settings.memory);
            }
            visit.set_attribute(EVIDENCE, &evidence.encode());
        }
        let judged = spread.judge(&prior, &evidence);
        if let Some(interval) = interval {
            spread.learn(&judged, experience::days(interval.from, interval.to), rates);
            visit.set_site_value(SPREAD, &spread.encode());
            // A restless document gives no information on the reliability of lists.
            if let Some(lists) = &mut lists
                && !judged.is_restless()
            {
                lists.learn(was_named, interval.has_changed);
                visit.set_site_value(RELIABILITY, &lists.encode());
            }
        }
        let belief = &judged.belief;
        // Changes that lists will report need no visits. Waits are longer in proportion.
        let unreported = lists.map_or(1.0, |lists| lists.unreported_share());
        let limits = (min as f64 / DAY * unreported, max as f64 / DAY * unreported);
        let (cost, worth) = (self.price(visit), self.worth(visit));
        let price = cost / worth;
        let mut finds = Finds::of(visit);
        if finds.learn(visit) {
            visit.set_site_value(FINDS, &finds.encode());
        }
        let found = finds.rate(visit);
        let finds = if found > 0.0 {
            // Documents found through this one are expected to change like its neighbourhood. They have no precedence yet.
            let typical = Belief::of(&prior, &[0.0; RATES]);
            0.5 * found * typical.surplus(cost, settings.theta) / worth
        } else {
            0.0
        };
        let extra = |reported_changes: f64| ExtraValue {
            reported_changes,
            finds,
        };
        let is_named = was_named && !is_visit;
        let days = match (is_named, lists) {
            // Without learned reliability, every document that lists name is visited.
            (true, None) => 0.0,
            (true, Some(lists)) => belief.days_until(
                price,
                settings.theta,
                extra(lists.expected_changes()),
                limits,
            ),
            (false, _) => belief.days_until(price, settings.theta, extra(0.0), limits),
        };
        // Before a document is visited far more often than the site's others, a test visit shows whether it is restless.
        let is_costly = rates.interval.is_some_and(|usual| days < 0.5 * usual);
        let days = match judged.test_wait(limits.0) {
            Some(test) if is_costly && !is_named => days.min(test),
            _ => days,
        };
        let days = days / unreported;
        let last = experience::last_visit(visit);
        let due = last + until(rhythm.as_ref(), last, days).clamp(min, max);
        let reconsider = settings.reconsider.milliseconds();
        let is_compared = evidence.visits > 0.0;
        let due = match is_compared || reconsider == 0 {
            true => due,
            false => due.min(promise::latest_due(visit, due)),
        };
        let wait = due.saturating_sub(visit.now());
        // Short waits also need `ask_again`: without it, a wait is not reconsidered after a signal.
        Some(Wait {
            ask_again: (reconsider > 0)
                .then(|| experience::reconsideration_delay(last, reconsider).min(wait)),
            ..Wait::after(Duration::from_millis(wait))
        })
    }
}

impl Budgeted {
    /// Price of a visit: the crawl's price plus the host's, or else the setting `price`. It grows with the document's size.
    fn price(&self, visit: &Visit) -> f64 {
        let price = match visit.measure("budget-price") {
            Some(price) => price + visit.measure("host-budget-price").unwrap_or(0.0),
            None => self.settings.price,
        };
        let costly = self.settings.costly_size;
        let size = match visit.size() {
            Some(size) if costly > 0 => size as f64 / costly as f64,
            _ => 0.0,
        };
        (price * (1.0 + size)).clamp(1e-12, 1e12)
    }

    /// Value of the document, from its precedence and its number of links.
    fn worth(&self, visit: &Visit) -> f64 {
        let settings = &self.settings;
        let precedence = visit.measure("precedence").unwrap_or(1.0).clamp(0.0, 255.0);
        let worth = settings.precedence_factor.powi(precedence as i32 - 1);
        let links = visit.outlinks().saturating_add(visit.inlinks());
        (worth * (1.0 + settings.link_weight * (1.0 + links as f64).ln())).max(1e-9)
    }
}
