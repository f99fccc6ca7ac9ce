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

    /// The same when only a share of the changes counts: those that no signal tells of.
    pub(crate) fn thinned(self, share: f64) -> Belief {
        Belief {
            shape: self.shape,
            days: self.days / share.max(1e-3),
        }
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

/// 1 − (1 + x)·e^(−x): the chance of two events or more, which is what waiting a little longer has to gain.
#[cfg(test)]
pub(crate) fn g(x: f64) -> f64 {
    if x < 1e-4 {
        // The difference of two numbers near 1 has no digits left.
        x * x / 2.0 - x * x * x / 3.0
    } else {
        1.0 - (1.0 + x) * (-x).exp()
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
