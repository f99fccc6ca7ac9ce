//! Politeness delays and back-off, computed from numbers. This module keeps no state.

use std::time::Duration;

use crate::{Error, Frontier, Politeness, QueueSettings, change, instant::Millis};

/// Longest bandwidth debt that is plausible: it would be 8 GB at 100 kB a second. A longer debt comes from a clock that was
/// ahead.
pub(crate) const OWED_MAX: Duration = Duration::from_secs(24 * 3600);

impl Frontier {
    /// Shortest time between two requests to the server of a queue if a request takes this long; `None` if the queue does not
    /// exist.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn pace(&self, queue: &str, took: Duration) -> Result<Option<Duration>, Error> {
        let of_store;
        let record = match self.memory.queues.get(queue) {
            Some(record) => record,
            None => match change::read_queue(&self.store, queue)? {
                Some(record) => {
                    of_store = record;
                    &of_store
                }
                None => return Ok(None),
            },
        };
        let settings = record.settings(&self.config);
        let rest = rest(&settings.politeness, record.crawl_delay, took);
        let slots = u32::from(settings.valence.max(1));
        Ok(Some(rest.saturating_add(took) / slots))
    }
}

/// The politeness delay after a request that took `fetch_duration`.
pub(crate) fn rest(
    politeness: &Politeness,
    crawl_delay: Option<Duration>,
    fetch_duration: Duration,
) -> Duration {
    let seconds = fetch_duration.as_secs_f64() * politeness.delay_factor;
    let adaptive = if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        Duration::ZERO
    };
    adaptive
        .min(politeness.max_delay)
        .max(at_least(politeness, crawl_delay))
}

/// The longest politeness delay. It applies after a request of unknown duration.
pub(crate) fn longest_rest(politeness: &Politeness, crawl_delay: Option<Duration>) -> Duration {
    politeness.max_delay.max(at_least(politeness, crawl_delay))
}

fn at_least(politeness: &Politeness, crawl_delay: Option<Duration>) -> Duration {
    politeness.min_delay.max(
        crawl_delay
            .unwrap_or_default()
            .min(politeness.crawl_delay_max),
    )
}

/// The back-off after the last of `failures` retries in a row, counted from 1.
pub(crate) fn back_off(settings: &QueueSettings, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1);
    let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
    settings
        .retry_delay
        .saturating_mul(factor)
        .min(settings.retry_delay_max)
}

/// Time that `bytes` take at `rate` bytes a second; the longest time if the rate is 0.
pub(crate) fn time_for(bytes: u64, rate: u64) -> Millis {
    let millis = u128::from(bytes) * 1000;
    let millis = millis.checked_div(rate.into()).unwrap_or(u128::MAX);
    Millis::try_from(millis).unwrap_or(Millis::MAX)
}

/// Whether a fetch asks no web server, and so costs a queue no politeness delay.
pub(crate) fn is_free(uri: &str) -> bool {
    uri.starts_with("dns:")
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
        let rest = rest(
            &POLITENESS,
            crawl_delay.map(Duration::from_secs),
            Duration::from_millis(fetch_millis),
        );
        assert_eq!(rest, Duration::from_millis(expected_millis));
    }

    #[test]
    fn a_slow_fetch_brings_a_long_rest_within_the_limits() {
        check(0, None, 2_000);
        check(100, None, 2_000);
        check(1_000, None, 5_000);
        check(60_000, None, 30_000);
        check(u64::MAX, None, 30_000);
    }

    #[test]
    fn a_crawl_delay_is_respected_up_to_its_cap() {
        check(100, Some(1), 2_000);
        check(100, Some(10), 10_000);
        check(100, Some(40), 40_000);
        check(100, Some(4_000), 60_000);
        check(60_000, Some(10), 30_000);
    }

    #[test]
    fn nonsense_factors_never_go_below_the_minimum() {
        for delay_factor in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            let politeness = Politeness {
                delay_factor,
                ..POLITENESS
            };
            assert_eq!(
                rest(&politeness, None, Duration::from_secs(1)),
                POLITENESS.min_delay
            );
        }
        let politeness = Politeness {
            delay_factor: f64::INFINITY,
            ..POLITENESS
        };
        assert_eq!(
            rest(&politeness, None, Duration::from_secs(1)),
            POLITENESS.max_delay
        );
    }

    #[test]
    fn back_off_doubles_up_to_its_end() {
        let settings = QueueSettings {
            retry_delay: Duration::from_secs(30),
            retry_delay_max: Duration::from_secs(3600),
            ..QueueSettings::default()
        };
        for (failures, seconds) in [
            (1, 30),
            (2, 60),
            (3, 120),
            (7, 1920),
            (8, 3600),
            (40, 3600),
            (u32::MAX, 3600),
        ] {
            assert_eq!(
                back_off(&settings, failures),
                Duration::from_secs(seconds),
                "{failures}"
            );
        }
    }
}
