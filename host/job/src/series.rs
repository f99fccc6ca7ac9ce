//! Time series of a crawl, for charts: its counters at moments since it began. Older samples are further apart.
//!
//! A sample has counters, not differences. The change between two moments is the difference of two samples, whichever samples in
//! between were left out. `JOB/reports/series.jsonl` keeps all tiers but the finest over restarts.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::census::QueueStates;
use crate::figures::first_visits;
use crate::ledger::Totals;
use crate::text_file::write_text;

/// Time between samples and number of samples kept, for each tier: five minutes, an hour, a day, a month.
const TIERS: [(Duration, usize); 4] = [
    (Duration::from_secs(1), 300),
    (Duration::from_secs(10), 360),
    (Duration::from_secs(60), 1440),
    (Duration::from_secs(600), 4320),
];

/// Tolerance for early timers: a sample that is early by no more than this is accepted.
const SLACK: Duration = Duration::from_millis(200);

/// Number of samples in an answer if the request has no number.
const POINTS: usize = 300;

/// Sample of a time series. Counters count over all processes of the job.
// The fields are the names in `series.jsonl` and in the API, so they are written out rather than read from `figures`. They copy
// counters; a figure that is computed comes from `figures`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// Time of the sample.
    pub at: Timestamp,
    /// Lines of `crawl.log`: finished visits.
    pub uris: u64,
    /// Bytes of content of these visits.
    pub bytes: u64,
    /// Known URIs.
    pub discovered: u64,
    /// Queued URIs.
    pub queued: u64,
    /// URIs in process.
    pub in_process: u64,
    /// URIs whose last visit succeeded: with a response other than an error response, without prerequisites.
    pub succeeded: u64,
    /// URIs whose last visit failed, error responses included.
    pub failed: u64,
    /// URIs whose last visit was disregarded.
    pub disregarded: u64,
    /// First visits.
    pub new: u64,
    /// Revisits that found a change.
    pub changed: u64,
    /// Revisits that found no change.
    pub unchanged: u64,
    /// Revisits that the server answered with 304.
    pub not_modified: u64,
    /// Revisits that could not be compared.
    pub unknown: u64,
    /// Retries.
    pub retries: u64,
    /// Visits that failed without a response.
    pub failures: u64,
    /// Responses that a filter identified as bot walls.
    pub walls: u64,
    /// Plugin errors.
    pub faults: u64,
    /// Revisits by delay: at most a second, a minute, ten minutes, an hour, six hours, a day, a week, four weeks, and more.
    pub overdue: Vec<u64>,
    /// Queues by state, at the latest count.
    pub queues: Option<QueueStates>,
}

/// Samples that are kept of a crawl, by tier.
#[derive(Default)]
pub struct Series(Mutex<[VecDeque<Sample>; TIERS.len()]>);

impl Sample {
    /// Creates the sample of this moment. `faults` counts plugin errors; `queues` is the last count of the queues.
    pub fn new(
        statistics: &Statistics,
        totals: &Totals,
        faults: u64,
        queues: Option<QueueStates>,
        at: Timestamp,
    ) -> Sample {
        let revisits = statistics.revisits;
        Sample {
            at,
            uris: totals.all.uris,
            bytes: totals.all.bytes,
            discovered: statistics.discovered,
            queued: statistics.queued,
            in_process: statistics.in_process,
            succeeded: statistics.succeeded,
            failed: statistics.failed,
            disregarded: statistics.disregarded,
            new: first_visits(statistics),
            changed: revisits.changed,
            unchanged: revisits.unchanged,
            not_modified: revisits.not_modified,
            unknown: revisits.unknown,
            retries: statistics.retries,
            failures: totals.no_response,
            walls: totals.walls,
            faults,
            overdue: statistics.overdue.counts.to_vec(),
            queues,
        }
    }
}

impl Series {
    /// Continues the series that an earlier process wrote. A series that cannot be read is left out: charts of the past must not
    /// stop a crawl.
    pub fn open(job: &Path) -> Series {
        let series = Series::default();
        for sample in written(job).unwrap_or_default() {
            series.push(sample);
        }
        series
    }

    /// Adds a sample of the crawl as it is now.
    pub fn push(&self, sample: Sample) {
        let mut tiers = self.lock();
        for (tier, (period, count)) in tiers.iter_mut().zip(TIERS) {
            let is_due = tier.back().is_none_or(|last| {
                let since = Duration::try_from(sample.at - last.at);
                // A clock that was set back must not stop the series.
                since.is_err() || since.is_ok_and(|since| since + SLACK >= period)
            });
            if is_due {
                if tier.len() == count {
                    tier.pop_front();
                }
                tier.push_back(sample.clone());
            }
        }
    }

    /// Returns up to `points` samples from the time `since` on, the oldest first.
    pub fn since(&self, since: Option<Timestamp>, points: Option<usize>) -> Vec<Sample> {
        thinned(self.all(0), since, points)
    }

    /// Returns the last sample that was taken at `at` or before.
    pub fn before(&self, at: Timestamp) -> Option<Sample> {
        let tiers = self.lock();
        let in_tier = |tier: &VecDeque<Sample>| {
            let place = tier.partition_point(|sample| sample.at <= at);
            place.checked_sub(1).map(|place| tier[place].clone())
        };
        tiers.iter().find_map(in_tier)
    }

    /// Writes the series for the next process.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        let folder = job.join("reports");
        std::fs::create_dir_all(&folder)?;
        let mut text = Vec::new();
        for sample in self.all(1) {
            serde_json::to_writer(&mut text, &sample)?;
            text.push(b'\n');
        }
        write_text(&folder.join("series.jsonl"), text)
    }

    /// Returns all samples of tier `finest` and coarser tiers. For each period, the samples come from the finest tier that still
    /// has it.
    fn all(&self, finest: usize) -> Vec<Sample> {
        let tiers = self.lock();
        let mut all: Vec<Sample> = Vec::new();
        for tier in tiers[finest..].iter().rev() {
            if let Some(first) = tier.front() {
                all.retain(|sample| sample.at < first.at);
                all.extend(tier.iter().cloned());
            }
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, [VecDeque<Sample>; TIERS.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the samples that a job's last process wrote, the oldest first; empty if there is no such file.
pub fn written(job: &Path) -> io::Result<Vec<Sample>> {
    let file = match File::open(job.join("reports/series.jsonl")) {
        Ok(file) => file,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(problem),
    };
    let lines = BufReader::new(file).lines();
    lines
        .map(|line| serde_json::from_str(&line?).map_err(io::Error::from))
        .collect()
}

/// Selects `points` of the samples since then, evenly spaced in time, with the first and the last.
pub fn thinned(
    mut samples: Vec<Sample>,
    since: Option<Timestamp>,
    points: Option<usize>,
) -> Vec<Sample> {
    if let Some(since) = since {
        samples.retain(|sample| sample.at >= since);
    }
    let points = points.unwrap_or(POINTS).max(2);
    if samples.len() <= points {
        return samples;
    }
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return samples;
    };
    // The points are evenly spaced in time, because a month of ten-minute samples and a minute of one-second samples are in one
    // series.
    let (from, span) = (
        first.at.as_millisecond(),
        last.at.as_millisecond() - first.at.as_millisecond(),
    );
    let slots = points as i64 - 1;
    let slot = |sample: &Sample| match span {
        0 => 0,
        span => (sample.at.as_millisecond() - from) * slots / span,
    };
    let mut kept: Vec<Sample> = Vec::with_capacity(points);
    for sample in samples {
        let is_new = kept.last().is_none_or(|last| slot(last) != slot(&sample));
        if is_new {
            kept.push(sample);
        } else if slot(&sample) == slots
            && let Some(last) = kept.last_mut()
        {
            *last = sample;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64) -> Sample {
        let totals = Totals {
            all: crate::ledger::Amount {
                uris: second,
                bytes: 0,
            },
            ..Totals::default()
        };
        let at = Timestamp::UNIX_EPOCH + Duration::from_secs(second);
        Sample::new(&Statistics::default(), &totals, 0, None, at)
    }

    fn seconds(samples: &[Sample]) -> Vec<u64> {
        samples.iter().map(|sample| sample.uris).collect()
    }

    #[test]
    fn older_samples_are_further_apart_and_bounded_in_number() {
        let series = Series::default();
        for second in 0..200_000 {
            series.push(sample(second));
        }
        let all = series.since(None, Some(usize::MAX));
        assert!(all.len() < 300 + 360 + 1440 + 4320, "{}", all.len());
        let all = seconds(&all);
        assert_eq!(all[0], 0);
        assert_eq!(all.last(), Some(&199_999));
        assert!(all.is_sorted());
        let apart = |from: usize, to: usize| all[to] - all[from];
        assert_eq!(apart(0, 1), 600);
        assert_eq!(apart(all.len() - 2, all.len() - 1), 1);
        let at = Timestamp::UNIX_EPOCH + Duration::from_secs(199_990);
        assert_eq!(seconds(&series.since(Some(at), None)).len(), 10);
        assert_eq!(series.before(at).unwrap().uris, 199_990);
    }

    #[test]
    fn thinned_samples_are_evenly_spaced_and_include_both_ends() {
        let series = Series::default();
        for second in 0..1000 {
            series.push(sample(second));
        }
        let few = seconds(&series.since(None, Some(11)));
        assert!((8..=11).contains(&few.len()), "{few:?}");
        assert_eq!((few[0], few[few.len() - 1]), (0, 999));
    }

    #[test]
    fn the_next_process_continues_the_series() {
        let home = tempfile::tempdir().unwrap();
        let series = Series::default();
        for second in 0..100 {
            series.push(sample(second));
        }
        series.write(home.path()).unwrap();
        let again = Series::open(home.path());
        let expected = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90];
        assert_eq!(seconds(&again.since(None, None)), expected);
    }
}
