//! Probes: the wait of a URI that could not be fetched, if the time at which it can be is unknown. It is the shortest wait first,
//! and twice as long after each further failure in a row. A URI that has been visited begins one doubling later, since the archive
//! has a version of it. It does not begin later than after its usual wait. The doubling stops once at that usual wait.
//!
//! The record has the number of failures in a row. The next visit resets it.

use std::time::Duration;

use crate::{UriRecord, WaitLimits};

/// Counts a failure, and returns the wait after it.
pub(crate) fn wait(record: &mut UriRecord, limits: WaitLimits) -> Duration {
    record.failures = record.failures.saturating_add(1);
    let is_known = record.visits > 0;
    after(
        record.failures,
        is_known,
        record.wait.filter(|_| is_known),
        limits,
    )
}

/// The wait after the last of `failures` in a row, counted from 1. `usual` is the wait that followed the last visit.
fn after(failures: u32, is_known: bool, usual: Option<Duration>, limits: WaitLimits) -> Duration {
    // Without the minimum a wait of zero would be doubled for ever.
    let mut wait = limits.min.max(Duration::from_millis(1));
    let is_later = is_known && usual.is_none_or(|usual| usual > wait);
    for _ in 1..failures.saturating_add(is_later.into()) {
        if wait >= limits.max {
            break;
        }
        let doubled = wait.saturating_mul(2);
        wait = match usual {
            Some(usual) if wait < usual => doubled.min(usual),
            _ => doubled,
        };
    }
    wait.min(limits.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the waits, in hours.
    #[track_caller]
    fn check(is_known: bool, usual: Option<u64>, limits: (u64, u64), expected: &[u64]) {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let limits = WaitLimits {
            min: hours(limits.0),
            max: hours(limits.1),
        };
        let waits: Vec<_> = (1..)
            .zip(expected)
            .map(|(failures, _)| after(failures, is_known, usual.map(hours), limits).as_secs())
            .map(|seconds| seconds / 3600)
            .collect();
        assert_eq!(waits, expected, "{is_known} {usual:?}");
    }

    #[test]
    fn an_unvisited_page_is_probed_soon_and_then_less_and_less_often() {
        check(
            false,
            None,
            (1, 672),
            &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 672, 672],
        );
        check(false, None, (5, 5), &[5, 5]);
        // The minimum exceeds the maximum here. The maximum applies: no wait is longer.
        check(false, None, (5, 3), &[3, 3]);
    }

    #[test]
    fn a_visited_page_is_probed_later_and_once_at_its_usual_wait() {
        check(
            true,
            Some(24),
            (1, 672),
            &[2, 4, 8, 16, 24, 48, 96, 192, 384, 672, 672],
        );
        check(true, Some(3), (1, 672), &[2, 3, 6, 12]);
        // Its usual wait is short: it is probed no later than that.
        check(true, Some(2), (1, 672), &[2, 4, 8]);
        check(true, Some(1), (1, 672), &[1, 2, 4]);
        check(true, Some(0), (1, 672), &[1, 2, 4]);
        check(true, None, (1, 672), &[2, 4, 8]);
        check(true, Some(900), (300, 672), &[600, 672, 672]);
    }

    #[test]
    fn no_wait_is_zero_or_exceeds_the_longest_wait() {
        let max = Duration::from_secs(1000);
        for min in [Duration::ZERO, Duration::from_secs(1)] {
            let limits = WaitLimits { min, max };
            assert_eq!(after(u32::MAX, true, Some(Duration::ZERO), limits), max);
            assert_eq!(after(u32::MAX, false, None, limits), max);
            assert!(after(1, false, None, limits) > Duration::ZERO);
        }
        let limits = WaitLimits {
            min: Duration::from_secs(1),
            max: Duration::MAX,
        };
        assert_eq!(after(u32::MAX, false, None, limits), Duration::MAX);
    }
}
