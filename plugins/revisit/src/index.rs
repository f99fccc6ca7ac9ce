//! The index by which visits are shared out: what a document is worth at a time since its last visit, and the time at which
//! it is worth a price. Plain mathematics; times are days, rates are changes a day.
//!
//! For a document of importance μ that changes at rate Δ, as in a Poisson process, the index of the optimal schedule is
//! μ·Δ^(−θ)·g(Δτ), g(x) = 1 − (1 + x)·e^(−x): θ = 1 where the share of time counts in which the copy is fresh (Cho and
//! Garcia-Molina), θ = 0 where versions captured count (after Olston and Pandey). The rate is never known, so what is
//! used is the index's mean under what is believed of the rate: a share for each of some rates, between which a handful of
//! visits cannot tell. Rates grow by √2 from one to the next, so that e^(−Δτ) of the next but one is the square.

/// Rates that are told apart.
pub(crate) const RATES: usize = 41;

/// The slowest: a change in 27 years, which no crawl tells from none.
const SLOWEST: f64 = 1e-4;

/// Logarithm of the factor from one rate to the next.
pub(crate) const STEP: f64 = std::f64::consts::LN_2 / 2.0;

/// What is believed of a document's rate: a share for each, 1 in all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Belief {
    pub(crate) shares: [f64; RATES],
}

/// Steps of the search for a time; each halves the interval, on a scale of logarithms: between an hour and a year to within
/// five seconds in a week.
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

/// The place of a rate among them, a broken number.
pub(crate) fn place(rate: f64) -> f64 {
    ((rate / SLOWEST).ln() / STEP).clamp(0.0, (RATES - 1) as f64)
}

/// How likely a change in so many days is, by rate: 1 − e^(−Δτ).
pub(crate) fn found(days: f64) -> [f64; RATES] {
    let mut found = [0.0; RATES];
    found[0] = -(-SLOWEST * days).exp_m1();
    found[1] = -(-SLOWEST * STEP.exp() * days).exp_m1();
    for at in 2..RATES {
        found[at] = found[at - 2] * (2.0 - found[at - 2]);
    }
    found
}

/// What a visit may bring besides what time alone changes in the document.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Besides {
    pub(crate) news: f64,
    pub(crate) finds: f64,
}

impl Belief {
    /// From what was believed before, in any measure, and the logarithms of how likely what has been seen is.
    pub(crate) fn of(before: &[f64; RATES], likelihood: &[f64; RATES]) -> Self {
        Self::weighed(before, likelihood).0
    }

    /// The same, and the logarithm of how likely that is by what was believed before.
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

    /// Changes a day.
    pub(crate) fn mean(&self) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts.map(|(share, rate)| share * rate).sum()
    }

    /// How likely it changes within so many days.
    pub(crate) fn change(&self, days: f64) -> f64 {
        let parts = self.shares.iter().zip(found(days));
        parts.map(|(share, found)| share * found).sum()
    }

    /// What it is worth a day to know of a document of which this is believed, its visits paid: the mean of Δ^(1−θ)·e^(−x), where
    /// g(x) = λΔ^θ. For θ = 1 that is its freshness less what that costs; nothing, where it would be given up.
    pub(crate) fn surplus(&self, price: f64, theta: f64) -> f64 {
        let parts = self.shares.iter().zip(RATES_A_DAY);
        parts
            .map(|(share, rate)| share * rate.powf(1.0 - theta) * rest(price * rate.powf(theta)))
            .sum()
    }

    /// The time at which the mean of Δ^(−θ)·g(Δτ + news) + finds·τ² reaches a price, within these limits. `news` are changes that
    /// are to be expected besides those that time brings; `finds` is half of what documents that are found are worth each day, of
    /// which a wait of τ loses τ²/2.
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

/// e^(−x), where g(x) is y; 0 from 1 on.
fn rest(y: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    if y >= 1.0 {
        return 0.0;
    }
    for _ in 0..STEPS {
        let middle: f64 = 0.5 * (low + high);
        // g, by e^(−x).
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

    /// Of rates that are as likely as their place says.
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

    /// At that time the price is what the sum over the rates comes to.
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

    /// What changes too often to be kept fresh is given up, unless it leads to others: of two found a day that are worth a
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
