//! Estimates a document's rate of change from a summary of its visits and the usual rates of its neighbourhood. Pure
//! mathematics; times are days, rates are changes a day.
//!
//! A visit that finds a change shows only that there was at least one change since the last visit. Let τ be the interval before
//! a visit. For visits at irregular times, the most likely rate Δ solves
//!
//! Σ τ/(e^(Δτ) − 1) over visits that found a change = Σ τ over the other visits.
//!
//! A document that changed at every visit would get an infinite rate. Half an additional unchanged visit keeps the rate finite.
//! For n regular visits of which X found a change, this is the corrected estimate −ln((n − X + ½)/(n + ½))/τ (Cho and
//! Garcia-Molina 2003). The usual rate counts as if some changes had been observed in some days.

use crate::index::{RATES, RATES_A_DAY, change_probabilities};

/// Number of classes for intervals with a change, grouped by length. The first class begins at a minute. Each class begins at
/// twice the length of the one before it.
const CLASSES: usize = 24;

/// Shortest interval: a minute. Shorter ones are counted as a minute.
const DAYS_MIN: f64 = 1.0 / 1440.0;

/// Probability that a restless document is unchanged at a visit.
const RESTLESS_SAME: f64 = 0.02;

/// Summary of a document's visits. The weight of a visit falls with each later visit.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Evidence {
    /// Number of visits, faded by age.
    pub(crate) visits: f64,
    /// Sum of the intervals without a change, in days.
    pub(crate) unchanged: f64,
    /// Intervals with a change: number and sum in days, by class.
    changed: [(f64, f64); CLASSES],
    /// Intervals that ended with a reported change: number and sum in days.
    reported: (f64, f64),
}

/// The format of the kept value: whole numbers, in thousandths of visits and in seconds.
impl Evidence {
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("{} {}", thousandths(self.visits), seconds(self.unchanged));
        for (class, (count, sum)) in self.changed.iter().enumerate() {
            if *count > 1e-3 {
                text += &format!(" {class} {} {}", thousandths(*count), seconds(*sum));
            }
        }
        let (count, sum) = self.reported;
        if count > 1e-3 {
            text += &format!(" {CLASSES} {} {}", thousandths(count), seconds(sum));
        }
        text
    }

    /// Parses a kept value. Returns `None` if it is invalid.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let mut evidence = Evidence {
            visits: numbers.next()?? as f64 / 1000.0,
            unchanged: numbers.next()?? as f64 / 86_400.0,
            ..Evidence::default()
        };
        while let Some(class) = numbers.next() {
            let class = usize::try_from(class?).ok()?;
            let count = numbers.next()?? as f64 / 1000.0;
            let sum = numbers.next()?? as f64 / 86_400.0;
            match class {
                CLASSES => evidence.reported = (count, sum),
                class => *evidence.changed.get_mut(class)? = (count, sum),
            }
        }
        Some(evidence)
    }
}

fn thousandths(number: f64) -> u64 {
    (number * 1000.0).round() as u64
}

fn seconds(days: f64) -> u64 {
    (days * 86_400.0).round() as u64
}

/// Usual rate of the neighbourhood: a number of changes of one document in a number of days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UsualRate {
    pub(crate) changes: f64,
    pub(crate) days: f64,
}

impl Evidence {
    /// Adds a visit and the interval before it. `memory` is the number of visits after which a visit counts for a third.
    pub(crate) fn add(&mut self, days: f64, has_changed: bool, memory: f64) {
        self.fade(memory);
        let days = days.max(DAYS_MIN);
        if has_changed {
            let class = (days / DAYS_MIN).log2() as usize;
            let (count, sum) = &mut self.changed[class.min(CLASSES - 1)];
            *count += 1.0;
            *sum += days;
        } else {
            self.unchanged += days;
        }
    }

    /// Adds a visit that followed a reported change. The change counts as one at the end of the interval.
    pub(crate) fn add_reported(&mut self, days: f64, memory: f64) {
        self.fade(memory);
        self.reported.0 += 1.0;
        self.reported.1 += days.max(DAYS_MIN);
    }

    /// Reduces the weight of the earlier visits, and counts a new one.
    fn fade(&mut self, memory: f64) {
        let kept = 1.0 - 1.0 / memory.max(1.0);
        self.visits = self.visits * kept + 1.0;
        self.unchanged *= kept;
        for (count, sum) in self.changed.iter_mut().chain([&mut self.reported]) {
            *count *= kept;
            *sum *= kept;
        }
    }

    /// Sum of all intervals, in days.
    pub(crate) fn days(&self) -> f64 {
        let changed = self.changed.iter().chain([&self.reported]);
        self.unchanged + changed.map(|(_, sum)| sum).sum::<f64>()
    }

    /// The most likely rate. `usual` counts like observed changes. `half` is the part of an unchanged visit that is added: 0.5,
    /// or 0 if the neighbourhood has enough weight to keep the rate finite.
    pub(crate) fn rate(&self, usual: UsualRate, half: f64) -> f64 {
        let half = match self.visits > 0.0 {
            true => half * self.days() / self.visits,
            false => 0.0,
        };
        let unchanged = self.unchanged + half + usual.days + self.reported.1;
        // The slope falls as the rate grows. The most likely rate is at its zero.
        let (mut low, mut high) = (1e-9_f64, 1e6_f64);
        for _ in 0..50 {
            let rate = (low * high).sqrt();
            if self.slope(rate, unchanged, usual) > 0.0 {
                low = rate;
            } else {
                high = rate;
            }
        }
        (low * high).sqrt()
    }

    /// Log-likelihood, by rate, of the intervals that ended with a reported change. `None` if there are no such intervals.
    pub(crate) fn reported_likelihood(&self) -> Option<[f64; RATES]> {
        let (count, days) = self.reported;
        (count > 0.0).then(|| RATES_A_DAY.map(|rate| count * rate.ln() - rate * days))
    }

    /// Log-likelihood, by rate, of the other visits.
    pub(crate) fn visit_likelihood(&self) -> [f64; RATES] {
        let mut likelihood = RATES_A_DAY.map(|rate| -rate * self.unchanged);
        for (count, days) in self.classes() {
            for (likelihood, changed) in likelihood.iter_mut().zip(change_probabilities(days)) {
                *likelihood += count * changed.ln();
            }
        }
        likelihood
    }

    /// Log-likelihood of the visits for a restless document, such as a page with random boxes.
    pub(crate) fn restless_likelihood(&self) -> f64 {
        let changed: f64 = self.changed.iter().map(|(count, _)| count).sum();
        (self.visits - self.reported.0 - changed).max(0.0) * RESTLESS_SAME.ln()
    }

    /// Derivative of the log-likelihood by the logarithm of the rate. `unchanged` is the time without a change, in days.
    fn slope(&self, rate: f64, unchanged: f64, usual: UsualRate) -> f64 {
        let changed: f64 = self
            .classes()
            .map(|(count, days)| count * change_term(rate * days))
            .sum();
        usual.changes + changed + self.reported.0 - rate * unchanged
    }

    /// Number and mean length of intervals with a change, by class.
    fn classes(&self) -> impl Iterator<Item = (f64, f64)> {
        let used = self.changed.iter().filter(|(count, _)| *count > 1e-3);
        used.map(|&(count, sum)| (count, sum / count))
    }
}

/// x/(e^x − 1): the term of an interval with a change in the slope, with x = Δτ.
fn change_term(x: f64) -> f64 {
    if x < 1e-6 {
        1.0 - x / 2.0
    } else {
        x / x.exp_m1()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// The `memory` with which all visits keep their full weight.
    const NO_FADING: f64 = f64::INFINITY;

    const NO_PRIOR: UsualRate = UsualRate {
        changes: 0.0,
        days: 0.0,
    };

    fn evidence_of(visits: &[(f64, bool)]) -> Evidence {
        let mut evidence = Evidence::default();
        for &(days, has_changed) in visits {
            evidence.add(days, has_changed, NO_FADING);
        }
        evidence
    }

    /// −ln((n − X + ½)/(n + ½))/τ.
    #[test]
    fn regular_visits_give_the_corrected_estimate() {
        for (all, changed, days) in [
            (10, 0, 1.0),
            (10, 4, 1.0),
            (10, 10, 2.0),
            (7, 6, 0.25),
            (1, 1, 3.0),
        ] {
            let visits: Vec<_> = (0..all).map(|at| (days, at < changed)).collect();
            let (n, x) = (f64::from(all), f64::from(changed));
            let formula = -((n - x + 0.5) / (n + 0.5)).ln() / days;
            let mean = evidence_of(&visits).rate(NO_PRIOR, 0.5);
            assert!(
                (mean - formula).abs() <= 1e-6 + 1e-6 * formula,
                "{all} {changed}: {mean} {formula}"
            );
        }
    }

    /// Changed after 1 and after 2 days, not after 3: 1/(e^x − 1) + 2/(e^2x − 1) = 3 has x = 0.45861.
    #[test]
    fn irregular_visits_give_the_most_likely_rate() {
        let evidence = evidence_of(&[(1.0, true), (2.0, true), (3.0, false)]);
        let rate = evidence.rate(NO_PRIOR, 0.0);
        let left = 1.0 / rate.exp_m1() + 2.0 / (2.0 * rate).exp_m1();
        assert!((left - 3.0).abs() < 1e-6, "{rate}: {left}");
    }

    #[test]
    fn the_usual_rate_applies_until_visits_outweigh_it() {
        let usual = UsualRate {
            changes: 0.5,
            days: 5.0,
        };
        let mean = |visits: &[(f64, bool)]| evidence_of(visits).rate(usual, 0.0);
        assert!((mean(&[]) - 0.1).abs() < 1e-6);
        assert!(mean(&[(30.0, false)]) < 0.02);
        assert!(mean(&[(0.1, true); 5]) > 0.8);
    }

    /// Three days without a change and two changes after a day each: −3Δ + 2·ln(1 − e^(−Δ)).
    #[test]
    fn likelihood_of_visits_follows_the_formula() {
        let likelihood = evidence_of(&[(3.0, false), (1.0, true), (1.0, true)]).visit_likelihood();
        for (likelihood, rate) in likelihood.into_iter().zip(RATES_A_DAY) {
            let formula = -3.0 * rate + 2.0 * (-(-rate).exp_m1()).ln();
            assert!(
                (likelihood - formula).abs() < 1e-6 * formula.abs(),
                "{rate}"
            );
        }
    }

    #[test]
    fn old_visits_lose_weight() {
        let mut evidence = Evidence::default();
        for _ in 0..200 {
            evidence.add(1.0, false, 20.0);
        }
        for _ in 0..60 {
            evidence.add(1.0, true, 20.0);
        }
        let rate = evidence.rate(NO_PRIOR, 0.5);
        assert!(rate > 1.5, "{rate}");
        assert!((evidence.visits - 20.0).abs() < 0.1, "{}", evidence.visits);
    }

    #[test]
    fn decoding_reverses_encoding() {
        let evidence = evidence_of(&[(1.0, true), (0.01, true), (40.0, true), (3.0, false)]);
        let text = evidence.encode();
        assert_eq!(Evidence::decode(&text).unwrap().encode(), text);
        let (one, other) = (
            evidence.rate(NO_PRIOR, 0.5),
            Evidence::decode(&text).unwrap().rate(NO_PRIOR, 0.5),
        );
        assert!((one - other).abs() < 1e-4 * one);
        assert!(evidence.encode().len() < 200);
        for text in ["", "1", "1 2 99 1 1", "1 2 3", "a b", "1 2 3 4 x"] {
            assert_eq!(Evidence::decode(text), None, "{text}");
        }
    }
}
