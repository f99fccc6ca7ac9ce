//! Upper bounds for a crawl that knows how often each page changes: the best result of visits at regular intervals within the
//! same budget, and the closed forms for visits at random times. docs/SIMULATION.md has the formulas and their sources.

/// A page's facts, as an oracle knows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OraclePage {
    /// Changes a day.
    pub rate: f64,
    /// The importance of the page.
    pub weight: f64,
    /// Share of the time in which the page exists, 0 to 1. Only then is it visited and has value.
    pub share: f64,
    /// The host whose visits are limited, as an index into the limits.
    pub host: usize,
}

/// The quantity to maximise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The share of time in which copies match their pages.
    Freshness,
    /// The number of versions with a copy.
    Captures,
}

/// The best plan.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimalSchedule {
    /// Visits a day of each page, while it exists.
    pub visits: Vec<f64>,
    /// The gain of one more visit a day.
    pub price: f64,
    /// Reached share of the goal, by weight, 0 to 1.
    pub value: f64,
}

/// Bisections of an interval of prices: as many as floats can resolve.
const HALVINGS: usize = 60;

/// Largest logarithm of a price that is tried: floats end a little later.
const LOG_PRICE_MAX: f64 = 660.0;

/// Steps of Newton's method; from these starting points five are enough.
const NEWTON_STEPS: usize = 30;

/// Returns `1 − (1 + x)e^(−x)`: the gain of the last visit if x changes are expected between two visits.
pub fn gain(x: f64) -> f64 {
    if x < 1e-4 {
        // The first terms of the series; the difference of two numbers near 1 has no digits left.
        return x * x * (0.5 - x / 3.0);
    }
    1.0 - (1.0 + x) * (-x).exp()
}

/// Returns the x at which [`gain`] is `y`; infinite from 1 on.
pub fn gain_inverse(y: f64) -> f64 {
    if y >= 1.0 {
        return f64::INFINITY;
    }
    if y <= 0.0 {
        return 0.0;
    }
    // Near 0 the gain is x²/2, far from it the inverse is ln((1 + x)/(1 − y)).
    let mut x = if y < 0.5 {
        (2.0 * y).sqrt()
    } else {
        let far = -(1.0 - y).ln();
        far + (1.0 + far).ln()
    };
    for _ in 0..NEWTON_STEPS {
        let step = (gain(x) - y) / (x * (-x).exp());
        let next = (x - step).clamp(0.5 * x, 2.0 * x);
        if (next - x).abs() <= 1e-12 * x {
            return next;
        }
        x = next;
    }
    x
}

/// Returns the share of time in which a page is fresh, visited at regular intervals (Cho & Garcia-Molina 2000).
pub fn freshness(rate: f64, visits: f64) -> f64 {
    if rate <= 0.0 {
        return 1.0;
    }
    if visits <= 0.0 {
        return 0.0;
    }
    let x = rate / visits;
    -(-x).exp_m1() / x
}

/// Returns the versions a day that regular visits find.
pub fn captures(rate: f64, visits: f64) -> f64 {
    if rate <= 0.0 || visits <= 0.0 {
        return 0.0;
    }
    -visits * (-rate / visits).exp_m1()
}

impl Goal {
    /// Returns the visits a day of a page, at this price.
    fn visits(self, page: OraclePage, price: f64) -> f64 {
        if page.rate <= 0.0 || page.weight <= 0.0 {
            return 0.0;
        }
        let worth = match self {
            Self::Freshness => price * page.rate / page.weight,
            Self::Captures => price / page.weight,
        };
        page.rate / gain_inverse(worth)
    }

    fn value(self, pages: &[OraclePage], visits: &[f64]) -> f64 {
        let mut total = 0.0;
        let mut reached = 0.0;
        for (page, visits) in pages.iter().zip(visits) {
            match self {
                Self::Freshness => {
                    total += page.share * page.weight;
                    reached += page.share * page.weight * freshness(page.rate, *visits);
                }
                Self::Captures => {
                    total += page.share * page.weight * page.rate;
                    reached += page.share * page.weight * captures(page.rate, *visits);
                }
            }
        }
        if total > 0.0 { reached / total } else { 1.0 }
    }
}

/// Returns the best regular visits within `budget` visits a day. `limits` are the most visits a day of each host. If a limit
/// binds, the host's pages have a price of their own above the common one (the constraint of Kolobov et al., SIGIR 2019, for
/// visits at regular intervals).
pub fn periodic(goal: Goal, pages: &[OraclePage], budget: f64, limits: &[f64]) -> OptimalSchedule {
    let hosts = limits.len();
    let mut of_host: Vec<Vec<usize>> = vec![Vec::new(); hosts];
    for (index, page) in pages.iter().enumerate() {
        of_host[page.host].push(index);
    }
    let demand = |host: usize, price: f64| -> f64 {
        let pages = of_host[host].iter().map(|index| pages[*index]);
        pages
            .map(|page| page.share * goal.visits(page, price))
            .sum()
    };
    let spent = |price: f64| -> f64 {
        (0..hosts)
            .map(|host| demand(host, price).min(limits[host]))
            .sum()
    };
    let prices = Prices::of(budget, spent);
    let of_host_at = |host: usize, price: f64| -> Prices {
        if demand(host, price) > limits[host] {
            Prices::of(limits[host], |price| demand(host, price))
        } else {
            Prices::sole(price)
        }
    };
    let mut visits = vec![0.0; pages.len()];
    for (host, indices) in of_host.iter().enumerate() {
        let (high, low) = (of_host_at(host, prices.high), of_host_at(host, prices.low));
        for index in indices {
            let at = |price| goal.visits(pages[*index], price);
            visits[*index] = prices.between(high.visits(at), low.visits(at));
        }
    }
    OptimalSchedule {
        value: goal.value(pages, &visits),
        price: prices.high,
        visits,
    }
}

/// Two prices, as close to each other as floats allow. At the high one no more than the budget is spent, at the low one no less.
///
/// Spending can drop by a step between the two. Visits that are much rarer than changes have nearly equal gains, so `gain` is 1
/// for floats. A price between the value of 37 changes and that of infinitely many cannot be represented. Along such a step every
/// visit has the same value, so the rest of the budget may be divided evenly among the step's pages.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prices {
    high: f64,
    low: f64,
    /// Fraction of the way from spending at the high price to spending at the low one that the budget reaches, 0 to 1.
    part: f64,
}

impl Prices {
    /// Returns the prices at which this much is spent. Spending falls with the price, to 0 at an infinite one.
    fn of(budget: f64, spent: impl Fn(f64) -> f64) -> Self {
        let (mut low, mut high) = (-60.0_f64, 20.0_f64);
        while spent(high.exp()) > budget && high < LOG_PRICE_MAX {
            (low, high) = (high, high + 40.0);
        }
        while spent(low.exp()) <= budget {
            if low < -LOG_PRICE_MAX {
                return Self::sole(low.exp());
            }
            (low, high) = (low - 40.0, low);
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if spent(middle.exp()) > budget {
                low = middle;
            } else {
                high = middle;
            }
        }
        let (low, high) = (low.exp(), high.exp());
        let (least, most) = (spent(high), spent(low));
        let part = (budget - least) / (most - least);
        Self {
            high,
            low,
            part: if part.is_finite() {
                part.clamp(0.0, 1.0)
            } else {
                0.0
            },
        }
    }

    /// Returns a single price, for cases without a budget to meet.
    fn sole(price: f64) -> Self {
        Self {
            high: price,
            low: price,
            part: 0.0,
        }
    }

    /// Returns a page's visits, from its visits at a price.
    fn visits(self, at: impl Fn(f64) -> f64) -> f64 {
        self.between(at(self.high), at(self.low))
    }

    fn between(self, high: f64, low: f64) -> f64 {
        if self.part > 0.0 {
            high + self.part * (low - high)
        } else {
            high
        }
    }
}

/// Returns the best freshness of visits at random times (Azar et al. 2018): `f = max(0, √(μΔ/λ) − Δ)`, its share by weight.
pub fn memoryless_freshness(pages: &[OraclePage], budget: f64) -> f64 {
    let visits = |page: OraclePage, price: f64| {
        ((page.weight * page.rate / price).sqrt() - page.rate).max(0.0)
    };
    random_visits(pages, budget, visits)
}

/// Returns the freshness at the maximum of harmonic freshness (Kolobov et al. 2019): `f = (−Δ + √(Δ² + 4μΔ/λ))/2`. No page is
/// given up there.
pub fn harmonic_freshness(pages: &[OraclePage], budget: f64) -> f64 {
    let visits = |page: OraclePage, price: f64| {
        // Equal to the formula above, without the difference of two numbers that are nearly equal at high prices.
        let (rate, worth) = (page.rate, page.weight * page.rate / price);
        let root = (rate * rate + 4.0 * worth).sqrt();
        if worth > 0.0 {
            2.0 * worth / (root + rate)
        } else {
            0.0
        }
    };
    random_visits(pages, budget, visits)
}

/// Returns the freshness `f/(f + Δ)` of visits at random times, by weight.
fn random_visits(
    pages: &[OraclePage],
    budget: f64,
    visits: impl Fn(OraclePage, f64) -> f64,
) -> f64 {
    let prices = Prices::of(budget, |price| {
        pages
            .iter()
            .map(|page| page.share * visits(*page, price))
            .sum()
    });
    let weight: f64 = pages.iter().map(|page| page.share * page.weight).sum();
    let fresh: f64 = pages
        .iter()
        .map(|page| {
            let weight = page.share * page.weight;
            if page.rate <= 0.0 {
                return weight;
            }
            let visits = prices.visits(|price| visits(*page, price));
            weight * visits / (visits + page.rate)
        })
        .sum();
    if weight > 0.0 { fresh / weight } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(list: &[(f64, f64)]) -> Vec<OraclePage> {
        let pages = list.iter().map(|&(rate, weight)| OraclePage {
            rate,
            weight,
            share: 1.0,
            host: 0,
        });
        pages.collect()
    }

    const UNLIMITED: [f64; 1] = [f64::INFINITY];

    #[test]
    fn the_inverse_undoes_the_gain() {
        for x in [1e-6, 1e-3, 0.1, 0.9, 1.6, 1.7, 3.0, 20.0] {
            let back = gain_inverse(gain(x));
            assert!((back / x - 1.0).abs() < 1e-5, "{x} {back}");
        }
        assert_eq!(gain_inverse(1.0), f64::INFINITY);
        assert_eq!(gain_inverse(0.0), 0.0);
    }

    /// Tries every division of the budget over three pages, in steps of a hundredth.
    #[test]
    fn no_division_of_the_budget_is_better() {
        let pages = pages(&[(0.1, 1.0), (1.0, 2.0), (9.0, 1.0)]);
        let budget = 3.0;
        for goal in [Goal::Freshness, Goal::Captures] {
            let plan = periodic(goal, &pages, budget, &UNLIMITED);
            let spent: f64 = plan.visits.iter().sum();
            assert!((spent - budget).abs() < 1e-6, "{goal:?} {spent}");
            let mut best = 0.0_f64;
            for first in 0..=300 {
                for second in 0..=300 - first {
                    let (first, second) = (f64::from(first) / 100.0, f64::from(second) / 100.0);
                    best = best.max(goal.value(&pages, &[first, second, budget - first - second]));
                }
            }
            assert!(plan.value >= best - 1e-9, "{goal:?} {} {best}", plan.value);
            assert!(plan.value <= best + 1e-3, "{goal:?} {} {best}", plan.value);
        }
    }

    /// As in the previous test, for pages that exist only part of the time. A daily visit costs only the days on which the page
    /// exists.
    #[test]
    fn pages_that_exist_for_a_while_cost_and_gain_in_proportion() {
        let mut pages = pages(&[(0.5, 1.0), (0.5, 1.0), (2.0, 1.0)]);
        (pages[1].share, pages[2].share) = (0.1, 0.5);
        let budget = 2.0;
        for goal in [Goal::Freshness, Goal::Captures] {
            let plan = periodic(goal, &pages, budget, &UNLIMITED);
            assert!((plan.visits[0] - plan.visits[1]).abs() < 1e-9, "{plan:?}");
            let spent = pages.iter().zip(&plan.visits);
            let spent: f64 = spent.map(|(page, visits)| page.share * visits).sum();
            assert!((spent - budget).abs() < 1e-6, "{goal:?} {spent}");
            let mut best = 0.0_f64;
            for first in 0..=400 {
                let first = f64::from(first) / 200.0;
                let third = (budget - 1.1 * first) / 0.5;
                best = best.max(goal.value(&pages, &[first, first, third]));
            }
            assert!(plan.value >= best - 1e-9, "{goal:?} {} {best}", plan.value);
            assert!(plan.value <= best + 1e-3, "{goal:?} {} {best}", plan.value);
        }
    }

    #[test]
    fn visits_beyond_the_limit_of_a_host_go_to_other_hosts() {
        let mut pages = pages(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
        pages[2].host = 1;
        let plan = periodic(Goal::Freshness, &pages, 3.0, &[1.0, f64::INFINITY]);
        assert!((plan.visits[0] - 0.5).abs() < 1e-6, "{plan:?}");
        assert!((plan.visits[1] - 0.5).abs() < 1e-6, "{plan:?}");
        assert!((plan.visits[2] - 2.0).abs() < 1e-6, "{plan:?}");
    }

    /// Azar et al. have `1/√λ = (B + ΣΔ)/Σ√(μΔ)` while all pages are visited; harmonic visits of equal pages are equal.
    #[test]
    fn closed_forms_of_random_visits() {
        let pages = pages(&[(1.0, 1.0), (4.0, 1.0)]);
        let budget = 7.0;
        // √(μΔ) are 1 and 2: 1/√λ = (7 + 5)/3 = 4, visits 4·1 − 1 = 3 and 4·2 − 4 = 4.
        let expected = (3.0 / 4.0 + 4.0 / 8.0) / 2.0;
        let value = memoryless_freshness(&pages, budget);
        assert!((value - expected).abs() < 1e-9, "{value}");
        let equal = [pages[0]; 4];
        let value = harmonic_freshness(&equal, 4.0);
        assert!((value - 0.5).abs() < 1e-9, "{value}");
        assert!(harmonic_freshness(&pages, budget) <= memoryless_freshness(&pages, budget));
    }

    /// 40 pages change 50 times a day, and one visit a day is made in total. Each page is fresh for one 50th of a day after a
    /// visit. The best freshness is therefore 1/2000 for any division of the budget, and so is the best share of versions.
    #[test]
    fn the_budget_is_spent_if_visits_are_much_rarer_than_changes() {
        let equal = pages(&[(50.0, 1.0); 40]);
        for budget in [1e-6, 1.0, 40.0, 53.0, 60.0] {
            for goal in [Goal::Freshness, Goal::Captures] {
                let plan = periodic(goal, &equal, budget, &UNLIMITED);
                let spent: f64 = plan.visits.iter().sum();
                let expected = budget / 2000.0;
                assert!((spent / budget - 1.0).abs() < 1e-9, "{goal:?} {spent}");
                assert!((plan.value / expected - 1.0).abs() < 1e-9, "{plan:?}");
            }
        }
        // A host with a lower limit keeps it, and the rest goes to the other host.
        let mut two_hosts = equal;
        (two_hosts[20..].iter_mut()).for_each(|page| page.host = 1);
        let plan = periodic(Goal::Freshness, &two_hosts, 1.0, &[0.25, f64::INFINITY]);
        let first: f64 = plan.visits[..20].iter().sum();
        let all: f64 = plan.visits.iter().sum();
        assert!(first <= 0.25 + 1e-9 && (all - 1.0).abs() < 1e-9, "{plan:?}");
    }

    /// Weights are relative: multiplying or dividing all of them by a million million changes nothing.
    #[test]
    fn only_ratios_of_weights_matter() {
        let rates = [(0.1, 1.0), (1.0, 2.0), (9.0, 1.0)];
        let limits = [0.5, f64::INFINITY];
        let values = |scale: f64| {
            let mut pages = pages(&rates.map(|(rate, weight)| (rate, scale * weight)));
            pages[1].host = 1;
            [
                periodic(Goal::Freshness, &pages, 2.0, &limits).value,
                periodic(Goal::Captures, &pages, 2.0, &limits).value,
                memoryless_freshness(&pages, 2.0),
                harmonic_freshness(&pages, 2.0),
            ]
        };
        let expected = values(1.0);
        for scale in [1e-100, 1e-30, 1e-12, 1e10, 1e12, 1e30, 1e100] {
            for (value, expected) in values(scale).into_iter().zip(expected) {
                assert!(
                    (value - expected).abs() < 1e-9,
                    "{scale}: {value} {expected}"
                );
            }
        }
    }

    #[test]
    fn regular_visits_equal_values_computed_by_hand() {
        assert!((freshness(1.0, 1.0) - (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
        assert!((captures(2.0, 1.0) - (1.0 - (-2.0_f64).exp())).abs() < 1e-12);
        assert_eq!(freshness(0.0, 0.0), 1.0);
        assert_eq!(freshness(1.0, 0.0), 0.0);
    }
}
