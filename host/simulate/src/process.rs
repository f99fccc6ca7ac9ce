//! The times at which a page changes. Every page has a stream of random numbers of its own, made from the simulation's seed and the
//! page's site and number. A page therefore changes at the same times, whichever crawl visits it.

use jiff::Timestamp;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1, Gamma, LogNormal, Open01};
use rand_pcg::Pcg64Mcg;

/// Milliseconds of a day.
pub(crate) const DAY: f64 = 86_400_000.0;

/// Most changes of a page in a day, one a second. Times are whole milliseconds, and more changes than visits make no difference.
pub(crate) const RATE_MAX: f64 = 86_400.0;

/// Working hours of a rhythm: Monday to Friday, from 8 to 20.
const BUSY_HOURS: f64 = 60.0;
const WEEK_HOURS: f64 = 168.0;

/// The process by which a page changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// The page never changes.
    Never,
    /// Changes at random, at a constant rate.
    Poisson(Rates),
    /// Changes at equal intervals, starting at random.
    Periodic(Rates),
    /// Changes at random, with a share `quiet` of them outside of working hours.
    Rhythm {
        /// Rates over the whole week.
        rates: Rates,
        /// Share outside of working hours, 0 to 1.
        quiet: f64,
    },
    /// Changes at random, and much more often at times that the pages of a site share.
    Bursts {
        /// Rates between bursts.
        rates: Rates,
        /// Days from one burst to the next, on average.
        every: f64,
        /// Days that one burst lasts.
        length: f64,
        /// Factor of the rate during bursts.
        factor: f64,
    },
}

/// The distribution of changes a day over pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rates {
    /// Equal rates.
    Fixed(f64),
    /// Rates with a normal logarithm.
    Lognormal {
        /// Median: half of the pages change less often.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Gamma-distributed rates.
    Gamma {
        /// The mean.
        mean: f64,
        /// The shape: the smaller, the more the rates differ.
        shape: f64,
    },
}

/// Returns a stream of random numbers for these parts, such as the seed, the site and the page. Equal parts give equal streams.
pub(crate) fn stream(parts: &[u64]) -> Pcg64Mcg {
    let mut state = 0;
    for part in parts {
        state = Pcg64Mcg::seed_from_u64(state ^ part).next_u64();
    }
    Pcg64Mcg::seed_from_u64(state)
}

/// Returns a number between 0 and 1, both excluded.
pub(crate) fn uniform(random: &mut Pcg64Mcg) -> f64 {
    Open01.sample(random)
}

impl Rates {
    /// Returns a page's rate, [`RATE_MAX`] at most.
    pub(crate) fn draw(self, random: &mut Pcg64Mcg) -> f64 {
        let rate = match self {
            Self::Fixed(rate) => rate,
            Self::Lognormal { median, sigma } => {
                LogNormal::new(median.ln(), sigma).map_or(median, |rates| rates.sample(random))
            }
            Self::Gamma { mean, shape } => {
                Gamma::new(shape, mean / shape).map_or(mean, |rates| rates.sample(random))
            }
        };
        rate.min(RATE_MAX)
    }

    /// Returns the mean rate of pages, or a little more.
    fn mean(self) -> f64 {
        match self {
            Self::Fixed(rate) => rate,
            // By quadrature: if rates differ by orders of magnitude, the mean without the maximum would be dominated by a few
            // pages that are cut to it.
            Self::Lognormal { median, sigma } => {
                let normal = (-80..=80).map(|tenths| f64::from(tenths) / 10.0);
                let weighted = normal.map(|z| {
                    let weight = (-0.5 * z * z).exp();
                    (weight, weight * (median * (sigma * z).exp()).min(RATE_MAX))
                });
                let (weights, rates): (Vec<f64>, Vec<f64>) = weighted.unzip();
                rates.iter().sum::<f64>() / weights.iter().sum::<f64>()
            }
            Self::Gamma { mean, .. } => mean,
        }
    }
}

impl Process {
    /// Returns the computing cost of a page in a day: the times that are drawn, including rejected ones.
    pub(crate) fn draws_a_day(&self) -> f64 {
        let draws = match self {
            Self::Never => 0.0,
            Self::Poisson(rates) | Self::Periodic(rates) => rates.mean(),
            Self::Rhythm { rates, .. } => rates.mean() * WEEK_HOURS / BUSY_HOURS,
            Self::Bursts { rates, factor, .. } => rates.mean() * factor,
        };
        draws.min(RATE_MAX * WEEK_HOURS / BUSY_HOURS)
    }
}

/// The changes of one page.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    random: Pcg64Mcg,
    pattern: ChangePattern,
    /// Changes a day on average over a long time.
    pub(crate) rate: f64,
}

/// The process that makes a page change, with its state.
#[derive(Clone, Debug)]
enum ChangePattern {
    Never,
    /// Changes at these times, in milliseconds, from `next` on.
    Given {
        times: Vec<i64>,
        next: usize,
    },
    Poisson,
    Periodic,
    Rhythm {
        quiet: f64,
        since_monday: f64,
    },
    Bursts {
        base: f64,
        every: f64,
        length: f64,
        factor: f64,
        site: u64,
    },
}

/// The context on which a page's changes depend.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChangeContext {
    /// Seed that the pages of a site share.
    pub(crate) site: u64,
    /// Days from the beginning of a Monday to that of the simulation.
    pub(crate) since_monday: f64,
}

/// Returns the days since the last Monday began (UTC), 0 to 7.
pub(crate) fn since_monday(start: Timestamp) -> f64 {
    // 1970-01-05.
    const MONDAY: f64 = 4.0;
    (start.as_millisecond() as f64 / DAY - MONDAY).rem_euclid(7.0)
}

impl Changes {
    /// Creates the changes of a page with this stream.
    pub(crate) fn new(process: &Process, mut random: Pcg64Mcg, context: ChangeContext) -> Self {
        let ChangeContext { site, since_monday } = context;
        let (pattern, rate) = match process {
            Process::Never => (ChangePattern::Never, 0.0),
            Process::Poisson(rates) => (ChangePattern::Poisson, rates.draw(&mut random)),
            Process::Periodic(rates) => (ChangePattern::Periodic, rates.draw(&mut random)),
            Process::Rhythm { rates, quiet } => {
                let quiet = *quiet;
                let pattern = ChangePattern::Rhythm {
                    quiet,
                    since_monday,
                };
                (pattern, rates.draw(&mut random))
            }
            Process::Bursts {
                rates,
                every,
                length,
                factor,
            } => {
                let (every, factor) = (*every, *factor);
                let base = rates.draw(&mut random).min(RATE_MAX / factor);
                let length = length.min(every);
                let pattern = ChangePattern::Bursts {
                    base,
                    every,
                    length,
                    factor,
                    site,
                };
                (pattern, base * (1.0 + (factor - 1.0) * length / every))
            }
        };
        Self {
            random,
            pattern,
            rate,
        }
    }

    /// Creates changes at given times, in milliseconds and in order.
    pub(crate) fn at(times: Vec<i64>, rate: f64) -> Self {
        Self {
            random: stream(&[]),
            pattern: ChangePattern::Given { times, next: 0 },
            rate,
        }
    }

    /// Returns the first change after a time, in days since the simulation began; infinite if there is none. At the first call,
    /// `is_first` lets a periodic process begin anywhere.
    pub(crate) fn after(&mut self, time: f64, is_first: bool) -> f64 {
        if let ChangePattern::Given { times, next } = &mut self.pattern {
            let at = times.get(*next).copied();
            *next += 1;
            return at.map_or(f64::INFINITY, |at| at as f64 / DAY);
        }
        match self.pattern {
            ChangePattern::Never | ChangePattern::Given { .. } => f64::INFINITY,
            _ if self.rate <= 0.0 => f64::INFINITY,
            ChangePattern::Poisson => time + self.wait(self.rate),
            ChangePattern::Periodic => {
                let part = if is_first {
                    uniform(&mut self.random)
                } else {
                    1.0
                };
                time + part / self.rate
            }
            ChangePattern::Rhythm {
                quiet,
                since_monday,
            } => {
                let busy = self.rate * (1.0 - quiet) * WEEK_HOURS / BUSY_HOURS;
                let rest = self.rate * quiet * WEEK_HOURS / (WEEK_HOURS - BUSY_HOURS);
                self.thinned(time, busy.max(rest), |time| {
                    if is_busy(since_monday + time) {
                        busy
                    } else {
                        rest
                    }
                })
            }
            ChangePattern::Bursts {
                base,
                every,
                length,
                factor,
                site,
            } => self.thinned(time, base * factor, |time| {
                if is_burst(time, every, length, site) {
                    base * factor
                } else {
                    base
                }
            }),
        }
    }

    fn wait(&mut self, rate: f64) -> f64 {
        let wait: f64 = Exp1.sample(&mut self.random);
        wait / rate
    }

    /// Draws from a Poisson process whose rate depends on the time. Times are proposed at the highest rate and accepted in
    /// proportion to the rate at their time (Lewis and Shedler 1979).
    fn thinned(&mut self, mut time: f64, highest: f64, rate: impl Fn(f64) -> f64) -> f64 {
        loop {
            time += self.wait(highest);
            if uniform(&mut self.random) * highest <= rate(time) {
                return time;
            }
        }
    }
}

/// Returns `true` if the time, in days after the beginning of a Monday, is in working hours.
pub(crate) fn is_busy(time: f64) -> bool {
    let hour = time.fract() * 24.0;
    time.rem_euclid(7.0) < 5.0 && (8.0..20.0).contains(&hour)
}

/// Returns `true` if the time is in a burst. Each stretch of `every` days has one burst, at a random position.
pub(crate) fn is_burst(time: f64, every: f64, length: f64, site: u64) -> bool {
    let number = (time / every).floor();
    let mut random = stream(&[site, number as u64]);
    let begins = (number * every) + uniform(&mut random) * (every - length);
    (begins..begins + length).contains(&time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changes in this many days.
    fn times(process: &Process, days: f64) -> Vec<f64> {
        let context = ChangeContext {
            site: 5,
            ..ChangeContext::default()
        };
        let mut changes = Changes::new(process, stream(&[7, 1]), context);
        let mut times = Vec::new();
        let mut time = changes.after(0.0, true);
        while time < days {
            times.push(time);
            time = changes.after(time, false);
        }
        times
    }

    #[test]
    fn every_process_keeps_its_rate() {
        let rates = Rates::Fixed(2.0);
        let bursts = Process::Bursts {
            rates: Rates::Fixed(0.5),
            every: 10.0,
            length: 2.0,
            factor: 16.0,
        };
        for (process, name) in [
            (Process::Poisson(rates), "poisson"),
            (Process::Periodic(rates), "periodic"),
            (Process::Rhythm { rates, quiet: 0.1 }, "rhythm"),
            (bursts, "bursts"),
        ] {
            let count = times(&process, 5_000.0).len() as f64;
            // Four standard deviations of a Poisson count of 10,000; bursts have the same mean.
            assert!((count - 10_000.0).abs() < 400.0, "{name}: {count}");
        }
        assert!(times(&Process::Never, 1e6).is_empty());
    }

    #[test]
    fn no_page_changes_more_than_once_a_second() {
        for (median, sigma) in [(0.1, 1.5), (0.1, 6.0), (10_000.0, 4.0)] {
            let rates = Rates::Lognormal { median, sigma };
            let mut random = stream(&[7]);
            let drawn: Vec<f64> = (0..200_000).map(|_| rates.draw(&mut random)).collect();
            assert!(drawn.iter().all(|rate| *rate <= RATE_MAX));
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let expected = rates.mean();
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
        }
        let bursts = Process::Bursts {
            rates: Rates::Lognormal {
                median: 1.0,
                sigma: 9.0,
            },
            every: 10.0,
            length: 10.0,
            factor: 100.0,
        };
        for page in 0..1000 {
            let changes = Changes::new(&bursts, stream(&[page]), ChangeContext::default());
            let rate = changes.rate;
            assert!(rate <= RATE_MAX * 1.000_001, "{rate}");
        }
    }

    #[test]
    fn a_rhythm_is_quiet_at_night_and_bursts_are_shared() {
        let rates = Rates::Fixed(2.0);
        let all = times(&Process::Rhythm { rates, quiet: 0.1 }, 5_000.0);
        let quiet = all.iter().filter(|time| !is_busy(**time)).count() as f64;
        let share = quiet / all.len() as f64;
        assert!((share - 0.1).abs() < 0.015, "{share}");
        let burst_days = |site: u64| {
            let days = (0..1000).filter(|day| is_burst(f64::from(*day), 50.0, 5.0, site));
            days.collect::<Vec<_>>()
        };
        assert_eq!(burst_days(1).len(), 100);
        assert_ne!(burst_days(1), burst_days(2));
    }

    /// A rhythm follows the calendar, whenever the simulation begins.
    #[test]
    fn working_hours_are_those_of_the_calendar() {
        let saturday: Timestamp = "2026-01-10T12:00:00Z".parse().unwrap();
        assert_eq!(since_monday("2026-01-05T00:00:00Z".parse().unwrap()), 0.0);
        let since_monday = since_monday(saturday);
        assert_eq!(since_monday, 5.5);
        let rhythm = Process::Rhythm {
            rates: Rates::Fixed(5.0),
            quiet: 0.0,
        };
        let context = ChangeContext {
            site: 0,
            since_monday,
        };
        let mut changes = Changes::new(&rhythm, stream(&[7]), context);
        let mut time = changes.after(0.0, true);
        let mut count = 0;
        while time < 200.0 {
            let at = saturday.as_millisecond() + (time * DAY) as i64;
            let at = Timestamp::from_millisecond(at)
                .unwrap()
                .to_zoned(jiff::tz::TimeZone::UTC);
            assert!((8..20).contains(&at.hour()), "{at}");
            assert!(at.weekday().to_monday_zero_offset() < 5, "{at}");
            count += 1;
            time = changes.after(time, false);
        }
        assert!(count > 800, "{count}");
    }

    #[test]
    fn periodic_changes_are_apart_by_their_period() {
        let times = times(&Process::Periodic(Rates::Fixed(0.25)), 100.0);
        for pair in times.windows(2) {
            assert!((pair[1] - pair[0] - 4.0).abs() < 1e-9, "{pair:?}");
        }
    }
}
