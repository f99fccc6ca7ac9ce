//! The index for sharing visits among documents. It is the value of a visit, which grows with the time since the last visit.
//! The module also computes the time at which the index reaches a price. Pure mathematics; times are days, rates are changes a
//! day.
//!
//! Let a document of importance μ change at rate Δ, as a Poisson process. At the time τ since its last visit, the index of the
//! optimal schedule is μ·Δ^(−θ)·g(Δτ), with g(x) = 1 − (1 + x)·e^(−x). θ = 1 maximises the share of time in which the copy is
//! fresh (Cho and Garcia-Molina). θ = 0 maximises the number of captured versions (after Olston and Pandey).
//!
//! The rate is never known, so the index is averaged over a belief: a probability for each of a series of rates. Each rate is
//! √2 times the one before it; a few visits cannot distinguish closer rates. Two steps double the rate, and so square e^(−Δτ).

/// Number of rates in a belief.
pub(crate) const RATES: usize = 41;

/// The lowest rate: a change in 27 years. A crawl cannot distinguish it from no change.
const SLOWEST: f64 = 1e-4;

/// Logarithm of the factor from one rate to the next.
pub(crate) const STEP: f64 = std::f64::consts::LN_2 / 2.0;

/// Belief about a document's rate: a probability for each rate. They sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Belief {
    pub(crate) shares: [f64; RATES],
}

/// Number of steps of a bisection. Each step halves the range on a logarithmic scale. If the range is from an hour to a year, a
/// result of a week is precise to five seconds.
pub(crate) const STEPS: u32 = 20;

/// The rates in changes a day, lowest first.
pub(crate) const RATES_A_DAY: [f64; RATES] = {
    let mut rates = [SLOWEST; RATES];
    rates[1] *= std::f64::consts::SQRT_2;
    let mut at = 2;
    while at < RATES {
        rates[at] = 2.0 * rates[at - 2];
        at += 1;
    }
    rates
};

/// Fractional index of a rate in [`RATES_A_DAY`].
pub(crate) fn position(rate: f64) -> f64 {
    ((rate / SLOWEST).ln() / STEP).clamp(0.0, (RATES - 1) as f64)
}

/// Probability of a change within `days`, by rate: 1 − e^(−Δτ).
pub(crate) fn change_probabilities(days: f64) -> [f64; RATES] {
    let mut found = [0.0; RATES];
    found[0] = -(-SLOWEST * days).exp_m1();
    found[1] = -(-SLOWEST * STEP.exp() * days).exp_m1();
    for at in 2..RATES {
        found[at] = found[at - 2] * (2.0 - found[at - 2]);
    }
    found
}

/// Value of a visit in addition to the document's own changes over time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ExtraValue {
    /// Number of changes to expect because lists have reported some.
    pub(crate) reported_changes: f64,
    /// Half of the daily value of the documents that are found through this one. A wait of τ loses τ²/2 times the daily value.
    pub(crate) finds: f64,
}

impl Belief {
    /// Belief from a prior and the log-likelihood of the evidence. The prior need not sum to 1.
    pub(crate) fn of(prior: &[f64; RATES], likelihood: &[f64; RATES]) -> Self {
        Self::with_log_evidence(prior, likelihood).0
    }

    /// Returns the belief, and the logarithm of the probability of the evidence under the prior.
    pub(crate) fn with_log_evidence(
        prior: &[f64; RATES],
        likelihood: &[f64; RATES],
    ) -> (Self, f64) {
        let most = likelihood.iter().copied().fold(f64::MIN, f64::max);
        let mut shares = [0.0; RATES];
        let (mut all, mut all_prior) = (0.0, 0.0);
        for (at, share) in shares.iter_mut().enumerate() {
            *share = prior[at] * (likelihood[at] - most).exp();
            all += *share;
            all_prior += prior[at];
        }
        shares.iter_mut().for_each(|share| *share /= all);
        (Self { shares }, most + (all / all_prior).ln())
    }

    /// Mean rate, in changes a day.
    pub(crate) fn mean(&self) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts.map(|(share, rate)| share * rate).sum()
    }

    /// Probability of a change within `days`.
    pub(crate) fn change_probability(&self, days: f64) -> f64 {
        let parts = self.shares.iter().zip(change_probabilities(days));
        parts.map(|(share, found)| share * found).sum()
    }

    /// Value per day of crawling such a document, minus the cost of its visits: the mean of Δ^(1−θ)·e^(−x), with g(x) = λΔ^θ
    /// for the price λ. For θ = 1 this is the freshness minus the cost. It is 0 if no visit of the document is worth the price.
    pub(crate) fn surplus(&self, price: f64, theta: f64) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts
            .map(|(share, rate)| {
                share * rate.powf(1.0 - theta) * surplus_share(price * rate.powf(theta))
            })
            .sum()
    }

    /// The time at which the mean of Δ^(−θ)·g(Δτ + `reported_changes`) + `finds`·τ² reaches a price, limited to the range from
    /// `min` to `max`.
    pub(crate) fn days_until(
        &self,
        price: f64,
        theta: f64,
        ExtraValue {
            reported_changes,
            finds,
        }: ExtraValue,
        (min, max): (f64, f64),
    ) -> f64 {
        // Δ^(−θ) falls by the same factor from one rate to the next.
        let mut goal = SLOWEST.powf(-theta);
        let to_next = (-theta * STEP).exp();
        let worth = self.shares.map(|share| {
            let worth = share * goal;
            goal *= to_next;
            worth
        });
        let no_reported_change = (-reported_changes).exp();
        let index = |days: f64| -> f64 {
            let found = change_probabilities(days);
            let mut index = 0.0;
            for at in 0..RATES {
                let same = (1.0 - found[at]) * no_reported_change;
                index +=
                    worth[at] * (1.0 - (1.0 + RATES_A_DAY[at] * days + reported_changes) * same);
            }
            index + finds * days * days
        };
        if index(max) <= price {
            return max;
        }
        if index(min) >= price {
            return min;
        }
        let (mut low, mut high) = (min, max);
        for _ in 0..STEPS {
            let middle = (low * high).sqrt();
            if index(middle) < price {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// e^(−x) for the x with g(x) = y. 0 if y is 1 or more.
fn surplus_share(y: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    if y >= 1.0 {
        return 0.0;
    }
    for _ in 0..STEPS {
        let middle: f64 = 0.5 * (low + high);
        // g(x), written with `middle` = e^(−x).
        if 1.0 - (1.0 - middle.ln()) * middle > y {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 − (1 + x)·e^(−x).
    fn g(x: f64) -> f64 {
        1.0 - (1.0 + x) * (-x).exp()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-6 * other.abs()
    }

    /// A belief in which the rate at index i has i + 1 times the probability of the first.
    fn belief() -> Belief {
        let mut likelihood = [0.0; RATES];
        for (at, likelihood) in likelihood.iter_mut().enumerate() {
            *likelihood = (1.0 + at as f64).ln();
        }
        Belief::of(&[1.0; RATES], &likelihood)
    }

    #[test]
    fn shares_sum_to_one_and_follow_the_likelihood() {
        let belief = belief();
        assert!(near(belief.shares.iter().sum(), 1.0));
        assert!(near(belief.shares[9], 10.0 * belief.shares[0]));
    }

    #[test]
    fn change_probabilities_follow_the_formula() {
        for days in [1e-3, 1.0, 400.0] {
            for (found, rate) in change_probabilities(days).into_iter().zip(RATES_A_DAY) {
                let formula = -(-rate * days).exp_m1();
                assert!(near(found, formula), "{rate} {days}: {found} {formula}");
            }
        }
    }

    #[test]
    fn position_finds_the_index_of_a_rate() {
        for (at, rate) in RATES_A_DAY.into_iter().enumerate() {
            assert!((position(rate) - at as f64).abs() < 1e-9);
        }
        assert_eq!((position(0.0), position(1e9)), (0.0, (RATES - 1) as f64));
    }

    /// At the returned time, the mean over the rates equals the price.
    #[test]
    fn days_until_returns_the_time_at_which_the_price_is_reached() {
        let belief = belief();
        for (theta, reported_changes) in [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (1.0, 0.0)] {
            let extra = ExtraValue {
                reported_changes,
                finds: 0.0,
            };
            let days = belief.days_until(0.3, theta, extra, (0.001, 100.0));
            let parts = belief.shares.iter().zip(RATES_A_DAY);
            let index: f64 = parts
                .map(|(share, rate)| share * rate.powf(-theta) * g(rate * days + reported_changes))
                .sum();
            assert!(
                (index - 0.3).abs() < 1e-4,
                "{theta} {reported_changes}: {days} {index}"
            );
        }
        let none = ExtraValue::default();
        assert_eq!(belief.days_until(1.5, 0.0, none, (0.01, 100.0)), 100.0);
        assert_eq!(belief.days_until(1e-12, 0.0, none, (0.5, 100.0)), 0.5);
    }

    /// A document that changes too often to be kept fresh gets the longest wait, unless other documents are found through it.
    /// If two are found a day, worth a half each, a wait of τ loses τ²/2.
    #[test]
    fn documents_that_lead_to_others_are_visited_for_their_links() {
        let mut likelihood = [-100.0; RATES];
        likelihood[RATES - 1] = 0.0;
        let fast = Belief::of(&[1.0; RATES], &likelihood);
        let days = |finds: f64| {
            fast.days_until(
                2.0,
                1.0,
                ExtraValue {
                    reported_changes: 0.0,
                    finds,
                },
                (0.01, 400.0),
            )
        };
        assert_eq!(days(0.0), 400.0);
        assert!((days(0.5) - 2.0).abs() < 0.01, "{}", days(0.5));
    }

    /// A document that changes daily, at a price of 0.5: 1 − (1 + x)·e^(−x) is 0.5 at x = 1.6783.
    #[test]
    fn surplus_matches_a_manual_calculation() {
        let mut likelihood = [-1000.0; RATES];
        let daily = position(1.0).round() as usize;
        likelihood[daily] = 0.0;
        let belief = Belief::of(&[1.0; RATES], &likelihood);
        let rate = RATES_A_DAY[daily];
        for theta in [0.0_f64, 1.0] {
            let surplus = belief.surplus(0.5 / rate.powf(theta), theta);
            let expected = rate.powf(1.0 - theta) * (-1.6783_f64).exp();
            assert!((surplus / expected - 1.0).abs() < 1e-3, "{theta} {surplus}");
            assert_eq!(belief.surplus(1.0 / rate.powf(theta), theta), 0.0);
        }
    }
}
