//! Estimates a document's rate of change from a summary of its visits and the rates usual in its neighbourhood. Pure
//! mathematics; times are days, rates are changes a day.
//!
//! A visit that finds a change shows only that there was at least one since the last visit. For visits at irregular times the
//! most likely rate solves Σ τ/(e^(Δτ) − 1) over those = Σ τ over the others. A document that changed at every visit would get
//! an infinite rate. Half an additional unchanged visit keeps it finite. For regular visits this turns the equation into the
//! corrected estimate −ln((n − X + ½)/(n + ½))/τ (Cho and Garcia-Molina 2003). The neighbourhood enters as if it had been seen:
//! so many changes in so much time.

use crate::index::{RATES, RATES_A_DAY, found};

/// Number of classes for intervals with a change, grouped by length. Each class is twice as long as the one before; the
/// shortest is up to a minute.
const CLASSES: usize = 24;

const DAYS_MIN: f64 = 1.0 / 1440.0;

/// Probability that a restless document is unchanged at a visit.
const RESTLESS_SAME: f64 = 0.02;

/// Results of visits. Older ones count less and less.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Evidence {
    /// Number of visits, faded by age.
    pub(crate) visits: f64,
    /// Sum of their intervals without a change.
    pub(crate) quiet: f64,
    /// Intervals with a change: number and sum, by class.
    changed: [(f64, f64); CLASSES],
    /// Intervals that ended with a reported change: number and sum.
    told: (f64, f64),
}

/// The form in which a plugin keeps it: whole numbers, thousandths of visits and seconds.
impl Evidence {
    pub(crate) fn written(&self) -> String {
        let mut text = format!("{} {}", thousandths(self.visits), seconds(self.quiet));
        for (class, (count, sum)) in self.changed.iter().enumerate() {
            if *count > 1e-3 {
                text += &format!(" {class} {} {}", thousandths(*count), seconds(*sum));
            }
        }
        let (count, sum) = self.told;
        if count > 1e-3 {
            text += &format!(" {CLASSES} {} {}", thousandths(count), seconds(sum));
        }
        text
    }

    /// Parses it; none if invalid.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let mut evidence = Evidence {
            visits: numbers.next()?? as f64 / 1000.0,
            quiet: numbers.next()?? as f64 / 86_400.0,
            ..Evidence::default()
        };
        while let Some(class) = numbers.next() {
            let class = usize::try_from(class?).ok()?;
            let count = numbers.next()?? as f64 / 1000.0;
            let sum = numbers.next()?? as f64 / 86_400.0;
            match class {
                CLASSES => evidence.told = (count, sum),
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

/// Usual rate of the neighbourhood: its changes in so many days of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usual {
    pub(crate) changes: f64,
    pub(crate) days: f64,
}

impl Evidence {
    /// Adds a visit after this interval. `memory` is the number of visits after which one counts for a third.
    pub(crate) fn add(&mut self, days: f64, has_changed: bool, memory: f64) {
        self.fade(memory);
        let days = days.max(DAYS_MIN);
        if has_changed {
            let class = (days / DAYS_MIN).log2() as usize;
            let (count, sum) = &mut self.changed[class.min(CLASSES - 1)];
            *count += 1.0;
            *sum += days;
        } else {
            self.quiet += days;
        }
    }

    /// Adds a visit right after a reported change: the change was at the end of the interval.
    pub(crate) fn add_told(&mut self, days: f64, memory: f64) {
        self.fade(memory);
        self.told.0 += 1.0;
        self.told.1 += days.max(DAYS_MIN);
    }

    /// Fades earlier visits by one visit.
    fn fade(&mut self, memory: f64) {
        let kept = 1.0 - 1.0 / memory.max(1.0);
        self.visits = self.visits * kept + 1.0;
        self.quiet *= kept;
        for (count, sum) in self.changed.iter_mut().chain([&mut self.told]) {
            *count *= kept;
            *sum *= kept;
        }
    }

    /// Sum of all intervals.
    pub(crate) fn days(&self) -> f64 {
        let changed = self.changed.iter().chain([&self.told]);
        self.quiet + changed.map(|(_, sum)| sum).sum::<f64>()
    }

    /// The most likely rate, with the neighbourhood as if it had been seen. `half` is the part of an unchanged visit that
    /// corrects the estimate. It is a half if nothing else corrects it, or zero if the neighbourhood has enough weight.
    pub(crate) fn rate(&self, usual: Usual, half: f64) -> f64 {
        let half = match self.visits > 0.0 {
            true => half * self.days() / self.visits,
            false => 0.0,
        };
        let quiet = self.quiet + half + usual.days + self.told.1;
        // The slope falls as the rate grows; its zero is the rate.
        let (mut low, mut high) = (1e-9_f64, 1e6_f64);
        for _ in 0..50 {
            let rate = (low * high).sqrt();
            if self.slope(rate, quiet, usual) > 0.0 {
                low = rate;
            } else {
                high = rate;
            }
        }
        (low * high).sqrt()
    }

    /// Log-likelihood, by rate, of the times of reported changes. None without reported changes.
    pub(crate) fn told_likelihood(&self) -> Option<[f64; RATES]> {
        let (count, days) = self.told;
        (count > 0.0).then(|| RATES_A_DAY.map(|rate| count * rate.ln() - rate * days))
    }

    /// Log-likelihood, by rate, of the visits without reports.
    pub(crate) fn looked_likelihood(&self) -> [f64; RATES] {
        let mut likelihood = RATES_A_DAY.map(|rate| -rate * self.quiet);
        for (count, days) in self.classes() {
            for (likelihood, found) in likelihood.iter_mut().zip(found(days)) {
                *likelihood += count * found.ln();
            }
        }
        likelihood
    }

    /// Log-likelihood of the visits for a restless document, such as a page with random boxes.
    pub(crate) fn restless_likelihood(&self) -> f64 {
        let changed: f64 = self.changed.iter().map(|(count, _)| count).sum();
        (self.visits - self.told.0 - changed).max(0.0) * RESTLESS_SAME.ln()
    }

    /// Slope of the log-likelihood by the logarithm of the rate.
    fn slope(&self, rate: f64, quiet: f64, usual: Usual) -> f64 {
        let changed: f64 = self
            .classes()
            .map(|(count, days)| count * one_or_more(rate * days))
            .sum();
        usual.changes + changed + self.told.0 - rate * quiet
    }

    /// Number and mean length of intervals with a change, by class.
    fn classes(&self) -> impl Iterator<Item = (f64, f64)> {
        let some = self.changed.iter().filter(|(count, _)| *count > 1e-3);
        some.map(|&(count, sum)| (count, sum / count))
    }
}

/// x/(e^x − 1).
fn one_or_more(x: f64) -> f64 {
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

    /// Memory of a plugin that forgets nothing.
    const FOR_EVER: f64 = f64::INFINITY;

    const NOTHING_USUAL: Usual = Usual {
        changes: 0.0,
        days: 0.0,
    };

    fn seen(visits: &[(f64, bool)]) -> Evidence {
        let mut evidence = Evidence::default();
        for &(days, has_changed) in visits {
            evidence.add(days, has_changed, FOR_EVER);
        }
        evidence
    }

    /// −ln((n − X + ½)/(n + ½))/τ.
    #[test]
    fn of_regular_visits_the_estimate_is_the_corrected_one() {
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
            let mean = seen(&visits).rate(NOTHING_USUAL, 0.5);
            assert!(
                (mean - formula).abs() <= 1e-6 + 1e-6 * formula,
                "{all} {changed}: {mean} {formula}"
            );
        }
    }

    /// Changed after 1 and after 2 days, not after 3: 1/(e^x − 1) + 2/(e^2x − 1) = 3 has x = 0.45861.
    #[test]
    fn of_irregular_visits_it_is_the_most_likely_one() {
        let evidence = seen(&[(1.0, true), (2.0, true), (3.0, false)]);
        let rate = evidence.rate(NOTHING_USUAL, 0.0);
        let left = 1.0 / rate.exp_m1() + 2.0 / (2.0 * rate).exp_m1();
        assert!((left - 3.0).abs() < 1e-6, "{rate}: {left}");
    }

    #[test]
    fn without_visits_what_is_usual_is_believed_and_visits_outweigh_it() {
        let usual = Usual {
            changes: 0.5,
            days: 5.0,
        };
        let mean = |visits: &[(f64, bool)]| seen(visits).rate(usual, 0.0);
        assert!((mean(&[]) - 0.1).abs() < 1e-6);
        assert!(mean(&[(30.0, false)]) < 0.02);
        assert!(mean(&[(0.1, true); 5]) > 0.8);
    }

    /// Three days without a change and two changes after a day each: −3Δ + 2·ln(1 − e^(−Δ)).
    #[test]
    fn what_has_been_seen_is_as_likely_as_by_the_formula() {
        let likelihood = seen(&[(3.0, false), (1.0, true), (1.0, true)]).looked_likelihood();
        for (likelihood, rate) in likelihood.into_iter().zip(RATES_A_DAY) {
            let formula = -3.0 * rate + 2.0 * (-(-rate).exp_m1()).ln();
            assert!(
                (likelihood - formula).abs() < 1e-6 * formula.abs(),
                "{rate}"
            );
        }
    }

    #[test]
    fn old_visits_are_forgotten() {
        let mut evidence = Evidence::default();
        for _ in 0..200 {
            evidence.add(1.0, false, 20.0);
        }
        for _ in 0..60 {
            evidence.add(1.0, true, 20.0);
        }
        let rate = evidence.rate(NOTHING_USUAL, 0.5);
        assert!(rate > 1.5, "{rate}");
        assert!((evidence.visits - 20.0).abs() < 0.1, "{}", evidence.visits);
    }

    #[test]
    fn evidence_is_read_as_it_was_written() {
        let evidence = seen(&[(1.0, true), (0.01, true), (40.0, true), (3.0, false)]);
        let text = evidence.written();
        assert_eq!(Evidence::read(&text).unwrap().written(), text);
        let (one, other) = (
            evidence.rate(NOTHING_USUAL, 0.5),
            Evidence::read(&text).unwrap().rate(NOTHING_USUAL, 0.5),
        );
        assert!((one - other).abs() < 1e-4 * one);
        assert!(evidence.written().len() < 200);
        for text in ["", "1", "1 2 99 1 1", "1 2 3", "a b", "1 2 3 4 x"] {
            assert_eq!(Evidence::read(text), None, "{text}");
        }
    }
}
