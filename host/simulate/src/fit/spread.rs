//! The distribution of rates of change over pages, estimated from visits at irregular intervals.

/// The time between two visits, and whether the page changed in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) days: f64,
    pub(super) is_changed: bool,
}

/// A distribution: a share of pages that never change, and lognormal rates of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// Share of pages that never change, 0 to 1.
    pub(super) never: f64,
    /// Changes a day: half of the changing pages change less often.
    pub(super) median: f64,
    /// Standard deviation of the logarithm of the rates.
    pub(super) sigma: f64,
}

/// The prior, with the weight of [`PRIOR_PAGES`]: pages change every ten days, and rates differ by a factor of 4.5 in either
/// direction. It dominates if there are few pages, and keeps the distribution from collapsing.
const PRIOR: Spread = Spread {
    never: 0.1,
    median: 0.1,
    sigma: 1.5,
};
const PRIOR_PAGES: f64 = 2.0;

/// The grid of rates, from one change in thirty years to one in a quarter of an hour, ten to a decade.
const LOWEST: f64 = 1e-4;
const RATES: usize = 61;
const PER_DECADE: f64 = 10.0;

/// Most pages of a kind that are examined, evenly sampled: more do not change the result.
const PAGES_MAX: usize = 20_000;

/// Rounds; the estimate has converged by then.
const ROUNDS: usize = 200;

/// Smallest width of the distribution: the grid could not resolve a smaller one.
const SIGMA_MIN: f64 = 0.15;

impl Spread {
    /// Returns the most probable distribution for these histories.
    pub(super) fn fit(histories: &[&[Interval]]) -> Self {
        let step = histories.len().div_ceil(PAGES_MAX).max(1);
        let pages: Vec<Likelihood> = histories
            .iter()
            .step_by(step)
            .map(|history| Likelihood::of(history))
            .collect();
        let mut spread = PRIOR;
        for _ in 0..ROUNDS {
            spread = spread.better(&pages);
        }
        spread
    }

    /// Returns the distribution after one round of expectation and maximisation.
    fn better(self, pages: &[Likelihood]) -> Self {
        let weights = self.weights();
        let mut never = PRIOR_PAGES * PRIOR.never;
        let mut moving = PRIOR_PAGES * (1.0 - PRIOR.never);
        let mut sum = moving * PRIOR.median.ln();
        let mut squares = moving * (PRIOR.median.ln().powi(2) + PRIOR.sigma.powi(2));
        for page in pages {
            let unchanging = self.never * page.never;
            let moves: Vec<f64> = weights
                .iter()
                .zip(&page.rates)
                .map(|(weight, likelihood)| (1.0 - self.never) * weight * likelihood)
                .collect();
            let total = unchanging + moves.iter().sum::<f64>();
            if total <= 0.0 {
                continue;
            }
            never += unchanging / total;
            for (index, moves) in moves.iter().enumerate() {
                let (share, log) = (moves / total, rate(index).ln());
                moving += share;
                sum += share * log;
                squares += share * log * log;
            }
        }
        let mean = sum / moving;
        Self {
            never: never / (never + moving),
            median: mean.exp(),
            sigma: (squares / moving - mean * mean)
                .max(0.0)
                .sqrt()
                .max(SIGMA_MIN),
        }
    }

    /// Returns the probability of each rate of the grid for a page that changes.
    fn weights(self) -> Vec<f64> {
        let weight = |index: usize| {
            let off = (rate(index).ln() - self.median.ln()) / self.sigma;
            (-0.5 * off * off).exp()
        };
        let weights: Vec<f64> = (0..RATES).map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }
}

/// The likelihood of a page's history at each rate of the grid, relative to the highest.
struct Likelihood {
    rates: Vec<f64>,
    never: f64,
}

impl Likelihood {
    fn of(history: &[Interval]) -> Self {
        let of_rate = |rate: f64| -> f64 {
            let logs = history.iter().map(|interval| {
                let changes = rate * interval.days;
                if interval.is_changed {
                    (-(-changes).exp_m1()).ln()
                } else {
                    -changes
                }
            });
            logs.sum()
        };
        let logs: Vec<f64> = (0..RATES).map(|index| of_rate(rate(index))).collect();
        let has_changed = history.iter().any(|interval| interval.is_changed);
        // For a page without changes, never changing is the most likely case.
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let highest = if has_changed { highest } else { 0.0 };
        Self {
            rates: logs.iter().map(|log| (log - highest).exp()).collect(),
            never: f64::from(u8::from(!has_changed)),
        }
    }
}

/// Returns the changes a day at an index of the grid.
fn rate(index: usize) -> f64 {
    LOWEST * 10_f64.powf(index as f64 / PER_DECADE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{ChangeContext, Changes, Process, Rates, stream, uniform};

    /// Returns histories of pages with known rates, visited at irregular intervals of a tenth to twenty days.
    fn histories(pages: u64, never: f64, rates: Rates, visits: usize) -> Vec<Vec<Interval>> {
        let page = |number: u64| {
            let mut random = stream(&[4, number]);
            let process = if uniform(&mut random) < never {
                Process::Never
            } else {
                Process::Poisson(rates)
            };
            let mut changes =
                Changes::new(&process, stream(&[5, number]), ChangeContext::default());
            let mut time = 0.0;
            let mut next = changes.after(0.0, true);
            let interval = |_| {
                let days = 0.1 * 200_f64.powf(uniform(&mut random));
                time += days;
                let is_changed = next <= time;
                while next <= time {
                    next = changes.after(next, false);
                }
                Interval { days, is_changed }
            };
            (0..visits).map(interval).collect()
        };
        (0..pages).map(page).collect()
    }

    #[track_caller]
    fn check(never: f64, median: f64, sigma: f64) {
        let rates = Rates::Lognormal { median, sigma };
        let histories = histories(1500, never, rates, 30);
        let histories: Vec<&[Interval]> = histories.iter().map(Vec::as_slice).collect();
        let found = Spread::fit(&histories);
        assert!((found.never - never).abs() < 0.05, "{found:?}");
        assert!((found.median / median).ln().abs() < 0.15, "{found:?}");
        assert!((found.sigma - sigma).abs() < 0.15, "{found:?}");
    }

    #[test]
    fn a_known_distribution_is_recovered() {
        check(0.0, 0.1, 1.5);
        check(0.4, 0.2, 1.0);
        check(0.2, 1.0, 0.5);
    }

    #[test]
    fn without_visits_the_prior_stays() {
        let found = Spread::fit(&[]);
        assert!((found.never - PRIOR.never).abs() < 1e-6, "{found:?}");
        assert!(
            (found.median / PRIOR.median - 1.0).abs() < 1e-6,
            "{found:?}"
        );
        assert!((found.sigma - PRIOR.sigma).abs() < 1e-6, "{found:?}");
    }
}
