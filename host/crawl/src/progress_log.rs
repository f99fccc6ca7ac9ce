//! `progress-statistics.log`: the state of the crawl at regular intervals, in the columns of Heritrix, which operators' scripts
//! read.
//!
//! Each rate is the rate since the previous line, followed in brackets by the rate since the process began.
//!
//! - `dl-failures`: URIs whose last visit failed.
//! - `busy-thread`: URIs in process.
//! - `mem-use-KB`, `heap-size-KB`: the memory of the process, and its maximum so far.
//! - `congestion`: the factor by which more workers would speed the crawl up: queues that are ready, inactive or in process,
//!   divided by queues that are in process or snoozed.
//! - `max-depth`, `avg-depth`: the depths of queues.

use std::time::Instant;

use crate::context::CrawlContext;
use opilio_job::census::QueueCensus;
use opilio_job::crawl_log::iso_milliseconds;
use opilio_job::series::Sample;

/// Name and end of each column. Numbers are aligned to the right.
// Names, widths and order are those of Heritrix, whose scripts read them; `figures` has other names and no widths.
// The counts are those of `Sample`, which the charts show too.
const COLUMNS: [(&str, usize); 13] = [
    ("timestamp", 24),
    ("discovered", 36),
    ("queued", 48),
    ("downloaded", 61),
    ("doc/s(avg)", 78),
    ("KB/s(avg)", 93),
    ("dl-failures", 107),
    ("busy-thread", 121),
    ("mem-use-KB", 134),
    ("heap-size-KB", 148),
    ("congestion", 161),
    ("max-depth", 173),
    ("avg-depth", 185),
];

/// Times and samples from which rates are computed.
pub(crate) struct ProgressLog {
    began: Instant,
    first: Option<Sample>,
    last: Option<(Instant, Sample)>,
}

/// Returns the line with the names of the columns.
pub(crate) fn names() -> String {
    aligned(&COLUMNS.map(|(name, _)| name.to_owned()))
}

impl ProgressLog {
    pub(crate) fn new(began: Instant) -> ProgressLog {
        ProgressLog {
            began,
            first: None,
            last: None,
        }
    }

    /// Returns the line for the crawl as it is now.
    pub(crate) fn line(&mut self, sample: &Sample, context: &CrawlContext) -> String {
        let queues = context.figures.census.get().queues;
        self.line_of(sample, queues.as_ref(), memory(), Instant::now())
    }

    fn line_of(
        &mut self,
        sample: &Sample,
        queues: Option<&QueueCensus>,
        memory: (u64, u64),
        now: Instant,
    ) -> String {
        let first = self.first.get_or_insert_with(|| sample.clone()).clone();
        let before = self.last.replace((now, sample.clone()));
        let (last_at, last) = before.unwrap_or((self.began, first.clone()));
        let rate = |from: u64, to: u64, since: Instant| {
            let seconds = now.saturating_duration_since(since).as_secs_f64();
            to.saturating_sub(from) as f64 / seconds.max(0.001)
        };
        let documents = rate(last.uris, sample.uris, last_at);
        let documents_all = rate(first.uris, sample.uris, self.began);
        let bytes = rate(last.bytes, sample.bytes, last_at) / 1024.0;
        let bytes_all = rate(first.bytes, sample.bytes, self.began) / 1024.0;
        let (congestion, deepest, average) = queues.map_or((0.0, 0, 0.0), depths);
        aligned(&[
            iso_milliseconds(sample.at),
            sample.discovered.to_string(),
            sample.queued.to_string(),
            sample.succeeded.to_string(),
            format!("{documents:.2}({documents_all:.2})"),
            format!("{bytes:.0}({bytes_all:.0})"),
            sample.failed.to_string(),
            sample.in_process.to_string(),
            memory.0.to_string(),
            memory.1.to_string(),
            format!("{congestion:.2}"),
            deepest.to_string(),
            format!("{average:.2}"),
        ])
    }
}

/// Returns the congestion, the length of the longest queue, and the mean length of queues that hold URIs.
fn depths(queues: &QueueCensus) -> (f64, u64, f64) {
    let states = &queues.states;
    let eligible = states.ready + states.inactive + states.in_process;
    let going = states.in_process + states.snoozed;
    let average = queues.uris as f64 / states.nonempty().max(1) as f64;
    (
        eligible as f64 / going.max(1) as f64,
        queues.deepest,
        average,
    )
}

fn aligned(cells: &[String; COLUMNS.len()]) -> String {
    let mut line = String::new();
    for (cell, (_, end)) in cells.iter().zip(COLUMNS) {
        // A cell that is too wide moves the next cells to the right; a blank stays between two cells.
        let blank = usize::from(!line.is_empty());
        let width = end.saturating_sub(line.len()).max(cell.len() + blank);
        line.push_str(&format!("{cell:>width$}"));
    }
    line
}

/// Returns the memory of this process and its peak, in KiB; zero if the system does not report it.
pub(crate) fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let read = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    (
        read("VmRSS:").unwrap_or_default(),
        read("VmHWM:").unwrap_or_default(),
    )
}
