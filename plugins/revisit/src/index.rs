//! The index by which visits are shared out: what a document is worth at a time since its last visit, and the time at which
//! it is worth a price. Plain mathematics; times are days, rates are changes a day.
//!
//! For a document of importance μ that changes at rate Δ, as in a Poisson process, the index of the optimal schedule is
//! μ·Δ^(−θ)·g(Δτ), g(x) = 1 − (1 + x)·e^(−x): θ = 1 where the share of time counts in which the copy is fresh (Cho and
//! Garcia-Molina), θ = 0 where versions captured count (after Olston and Pandey). The rate is never known, so what is
//! used is the index's mean under what is believed of the rate: a gamma distribution, for which it has a closed form.

/// What is believed of a rate: the gamma distribution of this shape and with this rate parameter (days).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Belief {
    pub(crate) shape: f64,
    pub(crate) days: f64,
}

/// Steps of the search for a time; each halves the interval, on a scale of logarithms.
const STEPS: u32 = 40;

impl Belief {
    /// Changes a day.
    pub(crate) fn mean(self) -> f64 {
        self.shape / self.days
    }

    /// The mean of Δ^(−θ)·g(Δτ): grows with τ, from 0.
    pub(crate) fn index(self, days: f64, theta: f64) -> f64 {
        let Belief { shape: a, days: b } = self;
        // E[Δ^(−θ)] of the distribution, taken out as a factor: what is left is a gamma of shape a − θ. Where that is not
        // above nought the mean has no bound, though the index has: shapes are kept above by half.
        let a = a.max(theta + 0.5);
        let b = b * (a / self.shape);
        let rest = a - theta;
        let scale = (theta * b.ln() + ln_gamma(rest) - ln_gamma(a)).exp();
        let share = b / (b + days);
        // E[e^(−Δτ)] and E[Δτ·e^(−Δτ)] under the gamma of shape `rest`.
        let silent = share.powf(rest);
        let once = rest * days / (b + days) * silent;
        scale * (1.0 - silent - once).max(0.0)
    }

    /// The time at which the index reaches a price, within these limits.
    pub(crate) fn days_until(self, price: f64, theta: f64, (min, max): (f64, f64)) -> f64 {
        if self.index(max, theta) <= price {
            return max;
        }
        let (mut low, mut high) = (min, max);
        for _ in 0..STEPS {
            let middle = (low * high).sqrt();
            if self.index(middle, theta) < price {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Logarithm of the gamma function for arguments above 0: Stirling's series, after moving the argument above 8.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut moved) = (x, 1.0);
    while x < 8.0 {
        moved *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / x;
    (x - 0.5) * x.ln() - x + 0.918_938_533_204_672_8 + series - moved.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 − (1 + x)·e^(−x).
    fn g(x: f64) -> f64 {
        1.0 - (1.0 + x) * (-x).exp()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-3 * other.abs()
    }

    #[test]
    fn of_a_rate_that_is_known_the_index_is_that_of_the_formula() {
        for rate in [0.01, 1.0, 30.0] {
            let belief = Belief {
                shape: 1e6,
                days: 1e6 / rate,
            };
            for theta in [0.0, 0.5, 1.0] {
                for days in [0.1, 1.0, 20.0] {
                    let (index, formula) = (
                        belief.index(days, theta),
                        rate.powf(-theta) * g(rate * days),
                    );
                    assert!(
                        near(index, formula),
                        "{rate} {theta} {days}: {index} {formula}"
                    );
                }
            }
        }
    }

    /// By adding up over the density.
    #[test]
    fn of_a_belief_the_index_is_the_mean() {
        for (shape, days) in [(0.7, 7.0), (2.0, 3.0), (9.0, 100.0)] {
            let belief = Belief { shape, days };
            for (theta, after) in [(0.0, 2.0), (0.0, 40.0), (0.2, 5.0)] {
                let steps = (0..200_000).map(|step| (f64::from(step) / 5_000.0 - 30.0).exp());
                let density = |rate: f64| rate.powf(shape) * (-days * rate).exp();
                let (sum, all) = steps.fold((0.0, 0.0), |(sum, all), rate: f64| {
                    let weight = density(rate);
                    (
                        sum + weight * rate.powf(-theta) * g(rate * after),
                        all + weight,
                    )
                });
                let index = belief.index(after, theta);
                assert!(
                    near(index, sum / all),
                    "{shape} {theta}: {index} {}",
                    sum / all
                );
            }
        }
    }

    #[test]
    fn the_time_is_that_at_which_the_price_is_reached_within_the_limits() {
        let belief = Belief {
            shape: 2.0,
            days: 4.0,
        };
        for theta in [0.0, 1.0] {
            let days = belief.days_until(0.3, theta, (0.01, 100.0));
            assert!(near(belief.index(days, theta), 0.3), "{theta}: {days}");
        }
        assert_eq!(belief.days_until(1.5, 0.0, (0.01, 100.0)), 100.0);
        let least = belief.days_until(1e-12, 0.0, (0.5, 100.0));
        assert!((0.5..0.5001).contains(&least), "{least}");
    }
}
