//! The politeness delay, computed from numbers. Queues and their state are in the frontier.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings of a queue's politeness delay between the end of one fetch and the start of the next. The delay is `delay_factor` ×
/// the duration of the fetch, kept between `min_delay` and `max_delay`. It is never less than the crawl-delay of the queue's
/// robots.txt or the `Retry-After` of its last response, within their maxima.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Politeness {
    /// Factor of the duration of the last fetch. A negative factor, or one that is not a number, counts as 0.
    pub delay_factor: f64,
    /// Shortest delay.
    pub min_delay: Duration,
    /// Longest delay that the factor alone can cause. If it is below `min_delay`, `min_delay` applies.
    pub max_delay: Duration,
    /// A longer crawl-delay is cut to this.
    pub crawl_delay_max: Duration,
    /// A longer `Retry-After` is cut to this.
    pub retry_after_max: Duration,
}

/// For tests and tools that use a frontier without a profile. A crawl takes every value from its profile.
impl Default for Politeness {
    fn default() -> Self {
        Self {
            delay_factor: 5.0,
            min_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(5),
            crawl_delay_max: Duration::from_secs(300),
            retry_after_max: Duration::from_secs(3600),
        }
    }
}

impl Politeness {
    /// The delay after a fetch of this duration.
    #[must_use]
    pub fn delay_after(&self, fetch: Duration, crawl_delay: Option<Duration>) -> Duration {
        let seconds = fetch.as_secs_f64() * self.delay_factor;
        let adaptive = if seconds > 0.0 {
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        } else {
            Duration::ZERO
        };
        adaptive
            .min(self.max_delay)
            .max(self.shortest_delay(crawl_delay))
    }

    /// The longest delay. It applies after a fetch of unknown duration.
    #[must_use]
    pub fn longest_delay(&self, crawl_delay: Option<Duration>) -> Duration {
        self.max_delay.max(self.shortest_delay(crawl_delay))
    }

    fn shortest_delay(&self, crawl_delay: Option<Duration>) -> Duration {
        self.min_delay
            .max(crawl_delay.unwrap_or_default().min(self.crawl_delay_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLITENESS: Politeness = Politeness {
        delay_factor: 5.0,
        min_delay: Duration::from_secs(2),
        max_delay: Duration::from_secs(30),
        crawl_delay_max: Duration::from_secs(60),
        retry_after_max: Duration::from_secs(3600),
    };

    #[track_caller]
    fn check(fetch_millis: u64, crawl_delay: Option<u64>, expected_millis: u64) {
        let delay = POLITENESS.delay_after(
            Duration::from_millis(fetch_millis),
            crawl_delay.map(Duration::from_secs),
        );
        assert_eq!(delay, Duration::from_millis(expected_millis));
    }

    #[test]
    fn a_slow_fetch_causes_a_long_delay_within_the_limits() {
        check(0, None, 2_000);
        check(100, None, 2_000);
        check(1_000, None, 5_000);
        check(60_000, None, 30_000);
        check(u64::MAX, None, 30_000);
    }

    #[test]
    fn a_crawl_delay_is_respected_up_to_its_maximum() {
        check(100, Some(1), 2_000);
        check(100, Some(10), 10_000);
        check(100, Some(40), 40_000);
        check(100, Some(4_000), 60_000);
        check(60_000, Some(10), 30_000);
    }

    #[test]
    fn invalid_factors_give_the_minimum_delay() {
        let second = Duration::from_secs(1);
        let with = |delay_factor| Politeness {
            delay_factor,
            ..POLITENESS
        };
        for factor in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            let delay = with(factor).delay_after(second, None);
            assert_eq!(delay, POLITENESS.min_delay, "{factor}");
        }
        let delay = with(f64::INFINITY).delay_after(second, None);
        assert_eq!(delay, POLITENESS.max_delay);
    }
}
