//! Distribution of the change rates of a site's documents, learned from all of them and kept with the site. The first three
//! visits of a document give little information on its rate. The distribution of its site is known much sooner: for example, a
//! few documents that change daily and many that never change. The distribution is the prior of each document (empirical
//! Bayes).
//!
//! Restless documents differ at every visit, however soon. Their visits give no information on their real changes, so they get
//! the rate of the site's typical document. The plugin also learns the share of restless documents on a site. Otherwise it
//! could take a document that changes often for a restless one after a few visits.
//!
//! Each visit adds the belief about its document's rate to the distribution. The weight is the time since the previous visit,
//! in mean intervals of the site; otherwise the most visited documents would count most. This is the stepwise form of
//! expectation maximisation for a mixture of given rates.

use std::ops::Range;

use opilio_plugin::prelude::*;

use crate::experience::NeighbourhoodRates;
use crate::index::{Belief, RATES, RATES_A_DAY, STEP, STEPS, position};
use crate::numbers;
use crate::rate::Evidence;

/// Name of the value that is kept with the site.
pub(crate) const SPREAD: &str = "spread";

/// Version of the value's format.
pub(crate) const SPREAD_VERSION: u32 = 1;

/// Standard deviation of the logarithm of the rate in the distribution before the first visit: a log-normal distribution around
/// the site's rate. It is wide, because sites have documents of all kinds.
const PRIOR_DEVIATION: f64 = 2.0;

/// Weight of the distribution before the first visit, as a number of documents.
const PRIOR_DOCUMENTS: f64 = 10.0;

/// Share of restless documents before the first visit.
const PRIOR_RESTLESS: f64 = 0.000_3;

/// Factor for the prior of rates above one change in the shortest wait.
const TOO_FAST_FACTOR: f64 = 0.000_1;

/// Probabilities of restlessness with which a document is tested.
const UNCERTAIN: Range<f64> = 0.1..0.95;

/// Probability that a test visit finds a change in a document that is not restless. It determines the time of the visit.
const TEST_CHANGE: f64 = 0.4;

/// Largest such probability at which a test visit gives information.
const TEST_CHANGE_MAX: f64 = 0.75;

/// Longest wait for a test visit, in days.
const TEST_WAIT_MAX: f64 = 365.0;

/// Largest total weight of learned documents. Above it, all weights are reduced, so that old beliefs fade and a site may
/// change.
const DOCUMENTS_MAX: f64 = 300.0;

/// Largest weight of one visit, in mean intervals of the site.
const INTERVALS_MAX: f64 = 10.0;

/// Number of documents by rate. Older visits count less.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    documents: [f64; RATES],
    /// Number of restless documents.
    restless: f64,
}

/// Belief about a document and its restlessness, after its visits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    /// Belief about the document's rate.
    pub(crate) belief: Belief,
    /// Belief about the rate if the document is not restless.
    steady: Belief,
    /// Probability that the document is restless.
    restless: f64,
}

impl Spread {
    /// The distribution kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(SPREAD);
        let kept = kept.filter(|kept| kept.version == SPREAD_VERSION);
        let mut documents = [0.0; RATES];
        let mut restless = 0.0;
        if let Some(kept) = kept {
            let counts = documents.iter_mut().chain([&mut restless]);
            for (count, number) in counts.zip(numbers::parse(&kept.value)) {
                *count = f64::from(number) / 1000.0;
            }
        }
        Self {
            documents,
            restless,
        }
    }

    pub(crate) fn encode(&self) -> String {
        let numbers = self.documents.iter().chain([&self.restless]);
        numbers::join(numbers.map(|number| (number * 1000.0).round() as u32))
    }

    /// Prior of a document before its own visits, as a number of documents for each rate. `shortest` is the shortest wait in
    /// days. A rate above one change in that wait looks like restlessness, which is far more common, and gets a low prior.
    pub(crate) fn prior(&self, rates: NeighbourhoodRates, shortest: f64) -> [f64; RATES] {
        let middle = position(rates.site) - PRIOR_DEVIATION * PRIOR_DEVIATION / 2.0 / STEP;
        let mut prior = [0.0; RATES];
        let mut all = 0.0;
        for (at, prior) in prior.iter_mut().enumerate() {
            let off = (at as f64 - middle) * STEP / PRIOR_DEVIATION;
            *prior = (-off * off / 2.0).exp();
            all += *prior;
        }
        for (prior, documents) in prior.iter_mut().zip(self.documents) {
            *prior = *prior / all * PRIOR_DOCUMENTS + documents;
        }
        let mut prior = shift(&prior, rates.steps());
        for (prior, rate) in prior.iter_mut().zip(RATES_A_DAY) {
            if rate * shortest > 1.0 {
                *prior *= TOO_FAST_FACTOR;
            }
        }
        prior
    }

    /// Belief about a document after its visits, from its prior and the evidence of the visits.
    pub(crate) fn judge(&self, prior: &[f64; RATES], evidence: &Evidence) -> Judgement {
        let mut visits = evidence.visit_likelihood();
        // Restlessness is judged without reported changes: lists report changes of restless and of other documents.
        let (mut steady, likelihood) = Belief::with_log_evidence(prior, &visits);
        if let Some(reported) = evidence.reported_likelihood() {
            visits
                .iter_mut()
                .zip(reported)
                .for_each(|(all, reported)| *all += reported);
            steady = Belief::of(prior, &visits);
        }
        let documents: f64 = self.documents.iter().sum();
        let restless_share = (PRIOR_RESTLESS * PRIOR_DOCUMENTS + self.restless)
            / (PRIOR_DOCUMENTS + documents + self.restless);
        let odds = restless_share / (1.0 - restless_share).max(1e-9)
            * (evidence.restless_likelihood() - likelihood)
                .clamp(-50.0, 50.0)
                .exp();
        let restless = odds / (1.0 + odds);
        // Visits never show how often a restless document really changes. It gets the typical rate of the site: the mean of the
        // logarithms of the rates. The few highest rates would dominate the mean of the rates themselves, and the document
        // would be visited all the time.
        let all: f64 = prior.iter().sum();
        let priors = prior.iter().enumerate();
        let typical: f64 = priors.map(|(at, prior)| at as f64 * prior / all).sum();
        let mut belief = steady.clone();
        for share in &mut belief.shares {
            *share *= 1.0 - restless;
        }
        belief.shares[typical.round() as usize] += restless;
        Judgement {
            belief,
            steady,
            restless,
        }
    }

    /// Learns the belief about a document. `days` is the time since its previous visit.
    pub(crate) fn learn(&mut self, judged: &Judgement, days: f64, rates: NeighbourhoodRates) {
        let intervals = days / rates.interval.unwrap_or(days).max(1e-3);
        let intervals = intervals.clamp(0.0, INTERVALS_MAX);
        let shares = shift(&judged.steady.shares, -rates.steps());
        self.restless += intervals * judged.restless;
        let mut all = self.restless;
        for (documents, share) in self.documents.iter_mut().zip(shares) {
            *documents += intervals * (1.0 - judged.restless) * share;
            all += *documents;
        }
        if all > DOCUMENTS_MAX {
            let kept = DOCUMENTS_MAX / all;
            let all = self.documents.iter_mut().chain([&mut self.restless]);
            all.for_each(|one| *one *= kept);
        }
    }
}

impl Judgement {
    /// Returns `true` if the document is more likely restless than not.
    pub(crate) fn is_restless(&self) -> bool {
        self.restless > 0.5
    }

    /// Days from the last visit to a test visit, so soon that only a restless document is likely to differ. `None` if the
    /// document is almost certainly restless or not, or if the test visit would have to come sooner than `shortest`.
    pub(crate) fn test_wait(&self, shortest: f64) -> Option<f64> {
        let is_uncertain = UNCERTAIN.contains(&self.restless);
        if !is_uncertain || self.steady.change_probability(shortest) > TEST_CHANGE_MAX {
            return None;
        }
        let (mut low, mut high) = (shortest, TEST_WAIT_MAX);
        for _ in 0..STEPS {
            let middle = (low * high).sqrt();
            if self.steady.change_probability(middle) < TEST_CHANGE {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl NeighbourhoodRates {
    /// Number of rates in [`RATES_A_DAY`] by which the neighbourhood's rate is above the site's.
    fn steps(self) -> f64 {
        (self.neighbourhood / self.site).ln() / STEP
    }
}

/// Moves shares by `steps` to higher rates. Shares beyond an end of the scale stay at that end.
fn shift(shares: &[f64; RATES], steps: f64) -> [f64; RATES] {
    let mut shifted = [0.0; RATES];
    for (at, share) in shares.iter().enumerate() {
        let to = (at as f64 + steps).clamp(0.0, (RATES - 1) as f64);
        let low = to as usize;
        let high = (low + 1).min(RATES - 1);
        let part = to - low as f64;
        shifted[low] += share * (1.0 - part);
        shifted[high] += share * part;
    }
    shifted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{VisitFacts, visit};

    /// Half an hour.
    const SHORTEST: f64 = 1.0 / 48.0;

    const RATES_OF_SITE: NeighbourhoodRates = NeighbourhoodRates {
        site: 0.1,
        neighbourhood: 0.1,
        interval: Some(1.0),
    };

    /// Nine of ten documents never change and one changes twice a day; each has been visited for twenty days.
    fn learned() -> Spread {
        let mut spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = vec![Evidence::default(); 40];
        for _ in 0..20 {
            for (document, evidence) in evidence.iter_mut().enumerate() {
                evidence.add(1.0, document % 10 == 0, 50.0);
                let judged = spread.judge(&spread.prior(RATES_OF_SITE, SHORTEST), evidence);
                spread.learn(&judged, 1.0, RATES_OF_SITE);
            }
        }
        spread
    }

    fn mean_after(spread: &Spread, visits: &[(f64, bool)], rates: NeighbourhoodRates) -> f64 {
        let mut evidence = Evidence::default();
        for &(days, has_changed) in visits {
            evidence.add(days, has_changed, 50.0);
        }
        spread
            .judge(&spread.prior(rates, SHORTEST), &evidence)
            .belief
            .mean()
    }

    /// A document that differs at 30 hourly visits, and one that is unchanged at 6 of 30.
    #[test]
    fn a_document_that_always_differs_gets_a_lower_rate_than_one_that_changes_often() {
        let spread = learned();
        let often = vec![(1.0 / 24.0, true); 30];
        let mut sometimes = vec![(1.0 / 24.0, true); 24];
        sometimes.extend([(1.0 / 24.0, false); 6]);
        let (often, sometimes) = (
            mean_after(&spread, &often, RATES_OF_SITE),
            mean_after(&spread, &sometimes, RATES_OF_SITE),
        );
        assert!(
            sometimes > 24.0 && often < 0.5 * sometimes,
            "{often} {sometimes}"
        );
    }

    /// Most documents of the site hardly ever change. The restless document gets their rate.
    #[test]
    fn a_restless_document_is_visited_like_the_typical_document() {
        let spread = learned();
        let mut evidence = Evidence::default();
        for _ in 0..30 {
            evidence.add(1.0 / 24.0, true, 50.0);
        }
        let judged = spread.judge(&spread.prior(RATES_OF_SITE, SHORTEST), &evidence);
        assert!(judged.is_restless());
        let extra = crate::index::ExtraValue::default();
        let days = judged
            .belief
            .days_until(0.003, 0.0, extra, (SHORTEST, 365.0));
        assert!(days > 5.0, "{days}");
    }

    /// A document that differed at all visits, twice a day. A test visit within hours shows whether it is restless.
    #[test]
    fn test_visits_show_whether_a_document_is_restless() {
        let spread = learned();
        let judged = |visits: &[(f64, bool)]| {
            let mut evidence = Evidence::default();
            for &(days, has_changed) in visits {
                evidence.add(days, has_changed, 50.0);
            }
            spread.judge(&spread.prior(RATES_OF_SITE, SHORTEST), &evidence)
        };
        let mut visits = vec![(0.5, true); 12];
        let wait = judged(&visits).test_wait(SHORTEST).unwrap();
        assert!((0.05..0.5).contains(&wait), "{wait}");
        // Unchanged at that visit: it is not restless.
        visits.push((wait, false));
        assert_eq!(judged(&visits).test_wait(SHORTEST), None);
        assert!(judged(&visits).restless < 0.1);
        // Different at every test visit: these come sooner each time, until the document is known to be restless.
        visits.pop();
        let mut last = 1.0;
        while let Some(wait) = judged(&visits).test_wait(SHORTEST) {
            assert!(wait <= last && visits.len() < 60, "{wait} {last}");
            visits.push((wait, true));
            last = wait;
        }
        assert!(judged(&visits).restless > 0.9);
    }

    /// Reported changes give no information on restlessness.
    #[test]
    fn reported_changes_are_not_evidence_of_restlessness() {
        let spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = Evidence::default();
        for _ in 0..20 {
            evidence.add_reported(2.0, 50.0);
        }
        let judged = spread.judge(&spread.prior(RATES_OF_SITE, SHORTEST), &evidence);
        assert!(judged.restless < 0.001, "{}", judged.restless);
        assert!((0.4..0.6).contains(&judged.steady.mean()));
    }

    /// On a site where half of the documents are restless, three differences are enough evidence.
    #[test]
    fn the_share_of_restless_documents_is_learned() {
        let mut spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = vec![Evidence::default(); 40];
        let judged = |spread: &Spread| {
            let mut evidence = Evidence::default();
            for _ in 0..3 {
                evidence.add(0.5, true, 50.0);
            }
            spread
                .judge(&spread.prior(RATES_OF_SITE, SHORTEST), &evidence)
                .restless
        };
        let first = judged(&spread);
        for _ in 0..20 {
            for (document, evidence) in evidence.iter_mut().enumerate() {
                evidence.add(0.2, document % 2 == 0, 50.0);
                let judged = spread.judge(&spread.prior(RATES_OF_SITE, SHORTEST), evidence);
                spread.learn(&judged, 0.2, RATES_OF_SITE);
            }
        }
        let later = judged(&spread);
        assert!(first < 0.1 && later > 0.5, "{first} {later}");
    }

    #[test]
    fn two_visits_place_a_new_document_in_the_distribution() {
        let (nothing, spread) = (Spread::of(&visit(VisitFacts::default())), learned());
        let quiet = [(1.0, false), (1.0, false)];
        let (before, after) = (
            mean_after(&nothing, &quiet, RATES_OF_SITE),
            mean_after(&spread, &quiet, RATES_OF_SITE),
        );
        assert!(after < before / 2.0, "{before} {after}");
        let lively = [(1.0, true), (1.0, true)];
        let (before, after) = (
            mean_after(&nothing, &lively, RATES_OF_SITE),
            mean_after(&spread, &lively, RATES_OF_SITE),
        );
        assert!(after > before * 1.2, "{before} {after}");
    }

    #[test]
    fn a_faster_neighbourhood_gives_a_higher_prior_rate() {
        let nothing = Spread::of(&visit(VisitFacts::default()));
        let there = NeighbourhoodRates {
            neighbourhood: 0.4,
            ..RATES_OF_SITE
        };
        let (site, there) = (
            mean_after(&nothing, &[], RATES_OF_SITE),
            mean_after(&nothing, &[], there),
        );
        assert!((3.0..=4.01).contains(&(there / site)), "{site} {there}");
        assert!((0.05..0.2).contains(&site), "{site}");
    }

    #[test]
    fn shifting_keeps_the_sum() {
        for steps in [-100.0, -1.3, 0.0, 2.5, 100.0] {
            let all: f64 = shift(&[0.5; RATES], steps).iter().sum();
            assert!((all - 0.5 * RATES as f64).abs() < 1e-9, "{steps}: {all}");
        }
        let mut one = [0.0; RATES];
        one[10] = 1.0;
        assert_eq!(shift(&one, 3.0)[13], 1.0);
    }

    #[test]
    fn the_learned_weight_is_limited() {
        let spread = learned();
        let all: f64 = spread.documents.iter().sum();
        assert!(all <= DOCUMENTS_MAX + 1e-6, "{all}");
        assert!(spread.encode().len() < 400, "{}", spread.encode());
    }
}
