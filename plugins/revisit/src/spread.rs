//! Distribution of the change rates of a site's documents, learned from all of them and kept with the site. A document's first
//! three visits tell little about its rate. The distribution of its site is known much sooner: few daily changes among many
//! static documents, or only monthly ones. It helps to interpret the three visits (empirical Bayes).
//!
//! Restless documents differ at every visit, however soon. Their visits tell nothing about the real changes in them, so they
//! get the rate of the site's typical document. The share of restless documents on a site is learned too. Without it, a few
//! visits would mistake a document that changes often for a restless one.
//!
//! Each visit adds the belief about its document's rate. Its weight is the time since the previous visit, in usual intervals of
//! the site; otherwise the most visited documents would count most. This is the stepwise form of expectation maximisation over
//! a mixture of given rates.

use std::ops::Range;

use opilio_plugin::prelude::*;

use crate::experience::Surroundings;
use crate::index::{Belief, RATES, RATES_A_DAY, STEP, STEPS, place};
use crate::numbers;
use crate::rate::Evidence;

/// Name under which it is kept with the site.
pub(crate) const SPREAD: &str = "spread";

/// Version of its form.
pub(crate) const SPREAD_VERSION: u32 = 1;

/// Standard deviation before anything is learned. The logarithm of the rate is then normal around the usual rate of the site.
/// The deviation is wide, because sites have documents of all kinds.
const SIGMA: f64 = 2.0;

/// Number of documents that this prior counts for.
const SUPPOSED: f64 = 10.0;

/// Share of restless documents before anything is learned.
const RESTLESS: f64 = 0.000_3;

/// Prior factor for documents that change more often than they are ever visited, before one is seen.
const TOO_FAST: f64 = 0.000_1;

/// Range of the probability in which it is uncertain whether a document is restless.
const UNCERTAIN: Range<f64> = 0.1..0.95;

/// Probability that a test visit finds a change in a document that is not restless.
const TELLING: f64 = 0.4;

/// Largest such probability. Above it, no test visit is informative.
const TELLING_MAX: f64 = 0.75;

/// Longest wait for a test visit, in days.
const LONGEST: f64 = 365.0;

/// Number of documents that are remembered. Past it the older ones fade, so that a site may change, and early beliefs are
/// forgotten.
const LEARNED_MAX: f64 = 300.0;

/// Most usual intervals that one visit counts for.
const TURNS_MAX: f64 = 10.0;

/// Documents by rate, faded by age.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    documents: [f64; RATES],
    /// Restless documents.
    restless: f64,
}

/// Belief about a document after its visits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    /// Belief about its rate, in total.
    pub(crate) belief: Belief,
    /// The same if it is not restless.
    calm: Belief,
    /// Probability that it is restless.
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
            let places = documents.iter_mut().chain([&mut restless]);
            for (place, number) in places.zip(numbers::read(&kept.value)) {
                *place = f64::from(number) / 1000.0;
            }
        }
        Self {
            documents,
            restless,
        }
    }

    pub(crate) fn written(&self) -> String {
        let numbers = self.documents.iter().chain([&self.restless]);
        numbers::written(numbers.map(|number| (number * 1000.0).round() as u32))
    }

    /// Prior of a document before its own visits, in documents. A rate above one change in the shortest wait (in days) can
    /// hardly be told from restlessness, which is far less rare.
    pub(crate) fn before(&self, around: Surroundings, shortest: f64) -> [f64; RATES] {
        let middle = place(around.site) - SIGMA * SIGMA / 2.0 / STEP;
        let mut before = [0.0; RATES];
        let mut all = 0.0;
        for (at, before) in before.iter_mut().enumerate() {
            let off = (at as f64 - middle) * STEP / SIGMA;
            *before = (-off * off / 2.0).exp();
            all += *before;
        }
        for (before, documents) in before.iter_mut().zip(self.documents) {
            *before = *before / all * SUPPOSED + documents;
        }
        let mut before = moved(&before, around.steps());
        for (before, rate) in before.iter_mut().zip(RATES_A_DAY) {
            if rate * shortest > 1.0 {
                *before *= TOO_FAST;
            }
        }
        before
    }

    /// The belief after the evidence of a document's visits, from the belief before.
    pub(crate) fn judge(&self, before: &[f64; RATES], evidence: &Evidence) -> Judged {
        let mut looked = evidence.looked_likelihood();
        // Lists report changes of either kind.
        let (mut calm, likelihood) = Belief::weighed(before, &looked);
        if let Some(told) = evidence.told_likelihood() {
            looked
                .iter_mut()
                .zip(told)
                .for_each(|(all, told)| *all += told);
            calm = Belief::of(before, &looked);
        }
        let documents: f64 = self.documents.iter().sum();
        let supposed =
            (RESTLESS * SUPPOSED + self.restless) / (SUPPOSED + documents + self.restless);
        let odds = supposed / (1.0 - supposed).max(1e-9)
            * (evidence.restless_likelihood() - likelihood)
                .clamp(-50.0, 50.0)
                .exp();
        let restless = odds / (1.0 + odds);
        // Visits never show how often a restless document really changes. It gets the typical rate of the site, by the mean of
        // the rates' logarithms. A mean over all rates of the site would be dominated by the few highest, and have it visited
        // all the time.
        let all: f64 = before.iter().sum();
        let places = before.iter().enumerate();
        let typical: f64 = places.map(|(at, before)| at as f64 * before / all).sum();
        let mut belief = calm.clone();
        for share in &mut belief.shares {
            *share *= 1.0 - restless;
        }
        belief.shares[typical.round() as usize] += restless;
        Judged {
            belief,
            calm,
            restless,
        }
    }

    /// Learns the belief about a document after so many days.
    pub(crate) fn learn(&mut self, judged: &Judged, days: f64, around: Surroundings) {
        let turns = days / around.interval.unwrap_or(days).max(1e-3);
        let turns = turns.clamp(0.0, TURNS_MAX);
        let shares = moved(&judged.calm.shares, -around.steps());
        self.restless += turns * judged.restless;
        let mut all = self.restless;
        for (documents, share) in self.documents.iter_mut().zip(shares) {
            *documents += turns * (1.0 - judged.restless) * share;
            all += *documents;
        }
        if all > LEARNED_MAX {
            let kept = LEARNED_MAX / all;
            let all = self.documents.iter_mut().chain([&mut self.restless]);
            all.for_each(|one| *one *= kept);
        }
    }
}

impl Judged {
    /// Whether it is more likely restless than not.
    pub(crate) fn is_restless(&self) -> bool {
        self.restless > 0.5
    }

    /// Days from the last visit to a test visit that would show whether the document is restless, if that is uncertain. So
    /// soon, only restless documents are likely to differ. Also none if it would be sooner than `shortest`.
    pub(crate) fn telling(&self, shortest: f64) -> Option<f64> {
        let is_uncertain = UNCERTAIN.contains(&self.restless);
        if !is_uncertain || self.calm.change(shortest) > TELLING_MAX {
            return None;
        }
        let (mut low, mut high) = (shortest, LONGEST);
        for _ in 0..STEPS {
            let middle = (low * high).sqrt();
            if self.calm.change(middle) < TELLING {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl Surroundings {
    /// Number of rates by which the document's neighbourhood is faster than the site.
    fn steps(self) -> f64 {
        (self.here / self.site).ln() / STEP
    }
}

/// Shares moved by so many steps to faster rates. Shares past an end of the scale stay at that end.
fn moved(shares: &[f64; RATES], steps: f64) -> [f64; RATES] {
    let mut moved = [0.0; RATES];
    for (at, share) in shares.iter().enumerate() {
        let to = (at as f64 + steps).clamp(0.0, (RATES - 1) as f64);
        let low = to as usize;
        let high = (low + 1).min(RATES - 1);
        let part = to - low as f64;
        moved[low] += share * (1.0 - part);
        moved[high] += share * part;
    }
    moved
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{VisitFacts, visit};

    /// Half an hour.
    const SHORTEST: f64 = 1.0 / 48.0;

    const AROUND: Surroundings = Surroundings {
        site: 0.1,
        here: 0.1,
        interval: Some(1.0),
    };

    /// Nine of ten documents never change and one changes twice a day; each has been visited for twenty days.
    fn learned() -> Spread {
        let mut spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = vec![Evidence::default(); 40];
        for _ in 0..20 {
            for (document, evidence) in evidence.iter_mut().enumerate() {
                evidence.add(1.0, document % 10 == 0, 50.0);
                let judged = spread.judge(&spread.before(AROUND, SHORTEST), evidence);
                spread.learn(&judged, 1.0, AROUND);
            }
        }
        spread
    }

    fn mean_after(spread: &Spread, visits: &[(f64, bool)], around: Surroundings) -> f64 {
        let mut evidence = Evidence::default();
        for &(days, has_changed) in visits {
            evidence.add(days, has_changed, 50.0);
        }
        spread
            .judge(&spread.before(around, SHORTEST), &evidence)
            .belief
            .mean()
    }

    /// One in ten documents changes daily and is visited daily; one other differs every hour.
    #[test]
    fn what_differs_however_soon_it_is_looked_at_is_not_taken_for_what_changes_often() {
        let spread = learned();
        let often = vec![(1.0 / 24.0, true); 30];
        let mut sometimes = vec![(1.0 / 24.0, true); 24];
        sometimes.extend([(1.0 / 24.0, false); 6]);
        // Far less than for a document that is sometimes unchanged, and really changes so often.
        let (often, sometimes) = (
            mean_after(&spread, &often, AROUND),
            mean_after(&spread, &sometimes, AROUND),
        );
        assert!(
            sometimes > 24.0 && often < 0.5 * sometimes,
            "{often} {sometimes}"
        );
    }

    /// Most documents of the site hardly ever change, and so, as far as can be known, does this one.
    #[test]
    fn what_is_restless_is_visited_as_the_typical_document_is() {
        let spread = learned();
        let mut evidence = Evidence::default();
        for _ in 0..30 {
            evidence.add(1.0 / 24.0, true, 50.0);
        }
        let judged = spread.judge(&spread.before(AROUND, SHORTEST), &evidence);
        assert!(judged.is_restless());
        let besides = crate::index::Besides::default();
        let days = judged
            .belief
            .days_until(0.003, 0.0, besides, (SHORTEST, 365.0));
        assert!(days > 5.0, "{days}");
    }

    /// A document that differs daily, perhaps by itself. A visit within hours tells; after a few, nothing is left to learn.
    #[test]
    fn a_visit_soon_after_the_last_tells_whether_a_document_is_restless() {
        let spread = learned();
        let judged = |visits: &[(f64, bool)]| {
            let mut evidence = Evidence::default();
            for &(days, has_changed) in visits {
                evidence.add(days, has_changed, 50.0);
            }
            spread.judge(&spread.before(AROUND, SHORTEST), &evidence)
        };
        let mut visits = vec![(0.5, true); 12];
        let telling = judged(&visits).telling(SHORTEST).unwrap();
        assert!((0.05..0.5).contains(&telling), "{telling}");
        // Unchanged at that visit: it is not restless.
        visits.push((telling, false));
        assert_eq!(judged(&visits).telling(SHORTEST), None);
        assert!(judged(&visits).restless < 0.1);
        // Different at every visit: sooner each time, until it is known to be restless.
        visits.pop();
        let mut last = 1.0;
        while let Some(telling) = judged(&visits).telling(SHORTEST) {
            assert!(telling <= last && visits.len() < 60, "{telling} {last}");
            visits.push((telling, true));
            last = telling;
        }
        assert!(judged(&visits).restless > 0.9);
    }

    /// Reported changes give no information on whether a document differs by itself.
    #[test]
    fn changes_that_were_told_of_make_no_document_restless() {
        let spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = Evidence::default();
        for _ in 0..20 {
            evidence.add_told(2.0, 50.0);
        }
        let judged = spread.judge(&spread.before(AROUND, SHORTEST), &evidence);
        assert!(judged.restless < 0.001, "{}", judged.restless);
        assert!((0.4..0.6).contains(&judged.calm.mean()));
    }

    /// On a site with many random boxes, three differences are not a surprise.
    #[test]
    fn how_many_documents_of_a_site_are_restless_is_learned() {
        let mut spread = Spread::of(&visit(VisitFacts::default()));
        let mut evidence = vec![Evidence::default(); 40];
        let judged = |spread: &Spread| {
            let mut evidence = Evidence::default();
            for _ in 0..3 {
                evidence.add(0.5, true, 50.0);
            }
            spread
                .judge(&spread.before(AROUND, SHORTEST), &evidence)
                .restless
        };
        let first = judged(&spread);
        for _ in 0..20 {
            for (document, evidence) in evidence.iter_mut().enumerate() {
                evidence.add(0.2, document % 2 == 0, 50.0);
                let judged = spread.judge(&spread.before(AROUND, SHORTEST), evidence);
                spread.learn(&judged, 0.2, AROUND);
            }
        }
        let later = judged(&spread);
        assert!(first < 0.1 && later > 0.5, "{first} {later}");
    }

    #[test]
    fn two_visits_to_a_new_document_say_which_of_its_kinds_it_is_of() {
        let (nothing, spread) = (Spread::of(&visit(VisitFacts::default())), learned());
        let quiet = [(1.0, false), (1.0, false)];
        let (before, after) = (
            mean_after(&nothing, &quiet, AROUND),
            mean_after(&spread, &quiet, AROUND),
        );
        assert!(after < before / 2.0, "{before} {after}");
        let lively = [(1.0, true), (1.0, true)];
        let (before, after) = (
            mean_after(&nothing, &lively, AROUND),
            mean_after(&spread, &lively, AROUND),
        );
        assert!(after > before * 1.2, "{before} {after}");
    }

    #[test]
    fn where_documents_change_more_often_more_is_supposed() {
        let nothing = Spread::of(&visit(VisitFacts::default()));
        let there = Surroundings {
            here: 0.4,
            ..AROUND
        };
        let (site, there) = (
            mean_after(&nothing, &[], AROUND),
            mean_after(&nothing, &[], there),
        );
        assert!((3.0..=4.01).contains(&(there / site)), "{site} {there}");
        assert!((0.05..0.2).contains(&site), "{site}");
    }

    #[test]
    fn what_is_moved_is_neither_more_nor_less() {
        for steps in [-100.0, -1.3, 0.0, 2.5, 100.0] {
            let all: f64 = moved(&[0.5; RATES], steps).iter().sum();
            assert!((all - 0.5 * RATES as f64).abs() < 1e-9, "{steps}: {all}");
        }
        let mut one = [0.0; RATES];
        one[10] = 1.0;
        assert_eq!(moved(&one, 3.0)[13], 1.0);
    }

    #[test]
    fn no_more_is_remembered_than_that() {
        let spread = learned();
        let all: f64 = spread.documents.iter().sum();
        assert!(all <= LEARNED_MAX + 1e-6, "{all}");
        assert!(spread.written().len() < 400, "{}", spread.written());
    }
}
