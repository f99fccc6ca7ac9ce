//! Durations of calls in buckets: enough for quantiles of months in two kilobytes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets per doubling. The ends of a bucket differ by about a tenth.
const PER_DOUBLING: u32 = 8;
/// Times up to 2^10 ns share the first bucket, those from 2^37 ns (137 s) on the last.
const FIRST_DOUBLING: u32 = 10;
const LAST_DOUBLING: u32 = 37;
const BUCKETS: usize = ((LAST_DOUBLING - FIRST_DOUBLING) * PER_DOUBLING) as usize + 2;

/// Durations, counted by size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SerialisedTimes", into = "SerialisedTimes")]
pub struct DurationHistogram {
    buckets: [u64; BUCKETS],
    count: u64,
    total: Duration,
    max: Duration,
}

/// The serialised form, without empty buckets.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SerialisedTimes {
    buckets: Vec<(usize, u64)>,
    total_ns: u64,
    max_ns: u64,
}

impl From<DurationHistogram> for SerialisedTimes {
    fn from(times: DurationHistogram) -> SerialisedTimes {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let buckets = times.buckets.iter().copied().enumerate();
        SerialisedTimes {
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
            total_ns: nanoseconds(times.total),
            max_ns: nanoseconds(times.max),
        }
    }
}

impl From<SerialisedTimes> for DurationHistogram {
    fn from(written: SerialisedTimes) -> DurationHistogram {
        let mut times = DurationHistogram {
            total: Duration::from_nanos(written.total_ns),
            max: Duration::from_nanos(written.max_ns),
            ..DurationHistogram::default()
        };
        for (bucket, count) in written.buckets {
            // A bucket past the last one counts as the last.
            let bucket = &mut times.buckets[bucket.min(BUCKETS - 1)];
            *bucket = bucket.saturating_add(count);
            times.count = times.count.saturating_add(count);
        }
        times
    }
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            count: 0,
            total: Duration::ZERO,
            max: Duration::ZERO,
        }
    }
}

impl DurationHistogram {
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all durations.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The longest duration.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The duration that this part of them, from 0 to 1, did not exceed: 0.5 gives the median. It is at most a tenth too high,
    /// and never too low. It is zero without durations.
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = (part.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return end_of(bucket).map_or(self.max, |end| end.min(self.max));
            }
        }
        Duration::ZERO
    }

    /// Adds the durations of another histogram.
    pub fn add_all(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.buckets[bucket_of(time)] += 1;
        self.count += 1;
        self.total = self.total.saturating_add(time);
        self.max = self.max.max(time);
    }
}

fn bucket_of(time: Duration) -> usize {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let Some(doubling) = nanoseconds
        .checked_ilog2()
        .filter(|doubling| *doubling >= FIRST_DOUBLING)
    else {
        return 0;
    };
    if doubling >= LAST_DOUBLING {
        return BUCKETS - 1;
    }
    let index = (nanoseconds >> (doubling - PER_DOUBLING.ilog2())) as u32 - PER_DOUBLING;
    ((doubling - FIRST_DOUBLING) * PER_DOUBLING + index) as usize + 1
}

/// The exclusive upper end of a bucket; `None` for the last.
fn end_of(bucket: usize) -> Option<Duration> {
    if bucket + 1 >= BUCKETS {
        return None;
    }
    let bucket = bucket as u32;
    let (doubling, within) = (bucket / PER_DOUBLING, bucket % PER_DOUBLING);
    let start = 1_u64 << (FIRST_DOUBLING + doubling);
    Some(Duration::from_nanos(
        start + u64::from(within) * (start / u64::from(PER_DOUBLING)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_ends_exceed_their_times_by_a_tenth_at_most() {
        let mut nanoseconds = 1_u64;
        while nanoseconds < 1 << LAST_DOUBLING {
            for near in [nanoseconds - 1, nanoseconds, nanoseconds + 1] {
                let time = Duration::from_nanos(near);
                let bucket = bucket_of(time);
                if let Some(end) = end_of(bucket) {
                    assert!(
                        time < end,
                        "{near} in bucket {bucket}, which ends at {end:?}"
                    );
                    let tenth = time.mul_f64(1.126).max(Duration::from_nanos(1024));
                    assert!(end <= tenth, "{near} in bucket {bucket}, ends at {end:?}");
                }
            }
            nanoseconds += nanoseconds / 13 + 1;
        }
        assert_eq!(bucket_of(Duration::MAX), BUCKETS - 1);
        assert_eq!(bucket_of(Duration::from_secs(138)), BUCKETS - 1);
        assert_eq!(end_of(BUCKETS - 1), None);
    }

    #[test]
    fn quantiles_are_accurate_and_at_most_the_maximum() {
        let mut times = DurationHistogram::default();
        assert_eq!(times.quantile(0.5), Duration::ZERO);
        for milliseconds in 1..=1000 {
            times.add(Duration::from_millis(milliseconds));
        }
        for (part, exact) in [(0.5, 500), (0.9, 900), (0.99, 990)] {
            let (quantile, exact) = (times.quantile(part), Duration::from_millis(exact));
            assert!(
                exact <= quantile && quantile <= exact.mul_f64(1.13),
                "{part}: {quantile:?}"
            );
        }
        assert_eq!(times.quantile(1.0), Duration::from_secs(1));
        assert_eq!(times.max(), Duration::from_secs(1));
        assert_eq!(times.count(), 1000);
        times.add(Duration::from_secs(1000));
        assert_eq!(times.quantile(1.0), Duration::from_secs(1000));
    }

    #[test]
    fn serialised_times_can_be_read_and_added() {
        let mut times = DurationHistogram::default();
        for milliseconds in [1, 1, 200, 300_000] {
            times.add(Duration::from_millis(milliseconds));
        }
        let written = serde_json::to_string(&times).unwrap();
        let mut read: DurationHistogram = serde_json::from_str(&written).unwrap();
        assert_eq!(read, times);
        read.add_all(&times);
        assert_eq!((read.count(), read.total()), (8, times.total() * 2));
        assert_eq!(read.quantile(0.5), times.quantile(0.5));
        let damaged = serde_json::from_str::<DurationHistogram>(r#"{"buckets": [[100000, 2]]}"#);
        assert_eq!(damaged.unwrap().count(), 2);
    }
}
