//! The index by which visits are shared: the value of a visit at a time since the last one, and the time at which it reaches a
//! price. Pure mathematics; times are days, rates are changes a day.
//!
//! For a document of importance μ that changes at rate Δ, as in a Poisson process, the index of the optimal schedule is
//! μ·Δ^(−θ)·g(Δτ), g(x) = 1 − (1 + x)·e^(−x). θ = 1 optimises the share of time in which the copy is fresh (Cho and
//! Garcia-Molina). θ = 0 optimises captured versions (after Olston and Pandey).
//!
//! The rate is never known, so the index is averaged over a belief: a share for each of a series of rates, which a few visits
//! cannot tell apart. Rates grow by √2 from one to the next, so e^(−Δτ) of the next but one is the square.

/// Number of rates in a belief.
pub(crate) const RATES: usize = 41;

/// The slowest rate: a change in 27 years. A crawl cannot tell it from no change.
const SLOWEST: f64 = 1e-4;

/// Logarithm of the factor from one rate to the next.
pub(crate) const STEP: f64 = std::f64::consts::LN_2 / 2.0;

/// Belief about a document's rate: a share for each rate; all sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Belief {
    pub(crate) shares: [f64; RATES],
}

/// Steps of the search for a time. Each halves the interval on a logarithmic scale. Between an hour and a year, the result is
/// precise to five seconds in a week.
pub(crate) const STEPS: u32 = 20;

/// Changes a day, slowest first.
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

/// Fractional position of a rate in the series.
pub(crate) fn place(rate: f64) -> f64 {
    ((rate / SLOWEST).ln() / STEP).clamp(0.0, (RATES - 1) as f64)
}

/// Probability of a change in so many days, by rate: 1 − e^(−Δτ).
pub(crate) fn found(days: f64) -> [f64; RATES] {
    let mut found = [0.0; RATES];
    found[0] = -(-SLOWEST * days).exp_m1();
    found[1] = -(-SLOWEST * STEP.exp() * days).exp_m1();
    for at in 2..RATES {
        found[at] = found[at - 2] * (2.0 - found[at - 2]);
    }
    found
}

/// Value of a visit besides the document's own changes over time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Besides {
    pub(crate) news: f64,
    pub(crate) finds: f64,
}

impl Belief {
    /// Belief from a prior, on any scale, and the log-likelihood of the evidence.
    pub(crate) fn of(before: &[f64; RATES], likelihood: &[f64; RATES]) -> Self {
        Self::weighed(before, likelihood).0
    }

    /// The same, with the log-probability of the evidence under the prior.
    pub(crate) fn weighed(before: &[f64; RATES], likelihood: &[f64; RATES]) -> (Self, f64) {
        let most = likelihood.iter().copied().fold(f64::MIN, f64::max);
        let mut shares = [0.0; RATES];
        let (mut all, mut all_before) = (0.0, 0.0);
        for (at, share) in shares.iter_mut().enumerate() {
            *share = before[at] * (likelihood[at] - most).exp();
            all += *share;
            all_before += before[at];
        }
        shares.iter_mut().for_each(|share| *share /= all);
        (Self { shares }, most + (all / all_before).ln())
    }

    /// Mean rate, in changes a day.
    pub(crate) fn mean(&self) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts.map(|(share, rate)| share * rate).sum()
    }

    /// Probability of a change within so many days.
    pub(crate) fn change(&self, days: f64) -> f64 {
        let parts = self.shares.iter().zip(found(days));
        parts.map(|(share, found)| share * found).sum()
    }

    /// Value per day of knowing such a document, after the cost of its visits: the mean of Δ^(1−θ)·e^(−x), with g(x) = λΔ^θ.
    /// For θ = 1 this is its freshness less the cost; zero for a document that would be given up.
    pub(crate) fn surplus(&self, price: f64, theta: f64) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts
            .map(|(share, rate)| share * rate.powf(1.0 - theta) * rest(price * rate.powf(theta)))
            .sum()
    }

    /// The time at which the mean of Δ^(−θ)·g(Δτ + news) + finds·τ² reaches a price, within these limits. `news` are the
    /// changes to expect besides those over time. `finds` is half of the daily value of documents to be found; a wait of τ
    /// loses τ²/2 of it.
    pub(crate) fn days_until(
        &self,
        price: f64,
        theta: f64,
        Besides { news, finds }: Besides,
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
        let no_news = (-news).exp();
        let index = |days: f64| -> f64 {
            let found = found(days);
            let mut index = 0.0;
            for at in 0..RATES {
                let same = (1.0 - found[at]) * no_news;
                index += worth[at] * (1.0 - (1.0 + RATES_A_DAY[at] * days + news) * same);
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

/// e^(−x) for the x with g(x) = y; 0 from y = 1 on.
fn rest(y: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    if y >= 1.0 {
        return 0.0;
    }
    for _ in 0..STEPS {
        let middle: f64 = 0.5 * (low + high);
        // g in terms of e^(−x).
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

    /// A belief with shares derived from the positions of the rates.
    fn belief() -> Belief {
        let mut likelihood = [0.0; RATES];
        for (at, likelihood) in likelihood.iter_mut().enumerate() {
            *likelihood = (1.0 + at as f64).ln();
        }
        Belief::of(&[1.0; RATES], &likelihood)
    }

    #[test]
    fn shares_are_of_one_and_as_likely_as_was_said() {
        let belief = belief();
        assert!(near(belief.shares.iter().sum(), 1.0));
        assert!(near(belief.shares[9], 10.0 * belief.shares[0]));
    }

    #[test]
    fn a_change_is_as_likely_as_by_the_formula() {
        for days in [1e-3, 1.0, 400.0] {
            for (found, rate) in found(days).into_iter().zip(RATES_A_DAY) {
                let formula = -(-rate * days).exp_m1();
                assert!(near(found, formula), "{rate} {days}: {found} {formula}");
            }
        }
    }

    #[test]
    fn rates_have_their_places() {
        for (at, rate) in RATES_A_DAY.into_iter().enumerate() {
            assert!((place(rate) - at as f64).abs() < 1e-9);
        }
        assert_eq!((place(0.0), place(1e9)), (0.0, (RATES - 1) as f64));
    }

    /// At that time, the sum over the rates equals the price.
    #[test]
    fn the_time_is_that_at_which_the_price_is_reached_within_the_limits() {
        let belief = belief();
        for (theta, news) in [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (1.0, 0.0)] {
            let besides = Besides { news, finds: 0.0 };
            let days = belief.days_until(0.3, theta, besides, (0.001, 100.0));
            let parts = belief.shares.iter().zip(RATES_A_DAY);
            let index: f64 = parts
                .map(|(share, rate)| share * rate.powf(-theta) * g(rate * days + news))
                .sum();
            assert!((index - 0.3).abs() < 1e-4, "{theta} {news}: {days} {index}");
        }
        let none = Besides::default();
        assert_eq!(belief.days_until(1.5, 0.0, none, (0.01, 100.0)), 100.0);
        assert_eq!(belief.days_until(1e-12, 0.0, none, (0.5, 100.0)), 0.5);
    }

    /// A document that changes too often to be kept fresh is given up, unless it leads to others. With two found a day, worth a
    /// half each, a wait of τ loses τ²/2.
    #[test]
    fn what_leads_to_others_is_visited_for_their_sake() {
        let mut likelihood = [-100.0; RATES];
        likelihood[RATES - 1] = 0.0;
        let fast = Belief::of(&[1.0; RATES], &likelihood);
        let days =
            |finds: f64| fast.days_until(2.0, 1.0, Besides { news: 0.0, finds }, (0.01, 400.0));
        assert_eq!(days(0.0), 400.0);
        assert!((days(0.5) - 2.0).abs() < 0.01, "{}", days(0.5));
    }

    /// A document that changes daily, at a price of half a day: 1 − (1 + x)e^(−x) is a half at x = 1.6783.
    #[test]
    fn a_surplus_as_worked_out_by_hand() {
        let mut likelihood = [-1000.0; RATES];
        let daily = place(1.0).round() as usize;
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
