//! Figures of each plugin: calls, errors, times, memory, answers.
//!
//! The same figures are in `JOB/reports/plugins.txt`, `plugins.json` and `plugins.prom`, in the output of `opilio job plugins`, and
//! in the summary at the end of a crawl. The crawl writes the files while it runs and when it ends. The figures cover the whole
//! job: a process continues from those that the last process wrote. A crash loses only the figures since the last write.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use opilio_sandbox::{DurationHistogram, FaultKind, Plugin, PluginStatistics};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::symlinks::stays_inside;
use crate::text_file::write_text;
use opilio_stacks::breaker::BreakerState;

mod metrics;

pub use metrics::expose;

/// Maximum of rows kept from earlier processes. Each row is a plugin or a variant; those with the most calls are kept.
const ROWS_MAX: usize = 1000;

/// Statistics of a plugin over all processes of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PluginReport {
    /// Name in the profile.
    pub name: String,
    /// Beginning of the hash of the settings that an override gives the plugin; not set for the plugin's own settings.
    pub variant: Option<String>,
    /// Version of the plugin.
    pub version: String,
    /// SHA-256 of the component.
    pub component: String,
    /// Number of calls, including those that ended in an error.
    pub calls: u64,
    /// Plugin errors by kind; kinds that did not occur are left out.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub faults: BTreeMap<FaultKind, u64>,
    /// Durations of calls.
    pub times: CallTimes,
    /// Maximum linear memory of a call, in bytes.
    pub memory_max: u64,
    /// Answers by kind: `links`, `accept`, `pass` …
    pub outputs: BTreeMap<String, u64>,
    /// Answered waits that were corrected, by reason: `zero`, `too-short` and `too-long` were moved to the profile's limits,
    /// `oscillating` to the middle between the answer and the last wait.
    pub odd_waits: BTreeMap<String, u64>,
    /// The plugin's own counters.
    pub counters: BTreeMap<String, u64>,
    /// Bytes of log messages that exceeded the limit and were dropped.
    pub log_bytes_dropped: u64,
    /// Number of kept values that were dropped because they exceeded a limit or were not declared.
    pub kept_dropped: u64,
    /// Remaining seconds for which the plugin is left out after too many errors.
    pub left_out_s: Option<f64>,
    /// Number of times the plugin has failed too often.
    pub trips: u64,
    /// Number of events that an observer has lost because of errors.
    pub lost_events: u64,
}

/// Durations of calls, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CallTimes {
    /// Total duration.
    pub total_s: f64,
    /// Median.
    pub median_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Maximum.
    pub max_s: f64,
}

/// Figures of a plugin in the form of `plugins.json`, to which later figures can be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginFigures {
    #[serde(flatten)]
    /// Figures for reports.
    pub report: PluginReport,
    /// Durations of calls, from which the report's times are computed.
    pub durations: DurationHistogram,
}

impl PluginFigures {
    /// Returns the figures of one process.
    pub fn new(
        name: &str,
        variant: Option<String>,
        plugin: &Plugin,
        statistics: PluginStatistics,
        breaker: BreakerState,
    ) -> PluginFigures {
        let named = |counts: BTreeMap<&'static str, u64>| {
            let counts = counts.into_iter();
            counts
                .map(|(what, count)| (what.to_owned(), count))
                .collect()
        };
        let report = PluginReport {
            name: name.to_owned(),
            variant,
            version: plugin.version().to_owned(),
            component: plugin.component_sha256().to_owned(),
            calls: statistics.calls,
            times: CallTimes::of(&statistics.times),
            faults: statistics.faults,
            memory_max: statistics.memory_max,
            outputs: named(statistics.outputs),
            odd_waits: named(statistics.odd_waits),
            counters: statistics.counters,
            log_bytes_dropped: statistics.log_bytes_dropped,
            kept_dropped: statistics.kept_dropped,
            left_out_s: breaker.open_for.as_ref().map(Duration::as_secs_f64),
            trips: breaker.trips,
            lost_events: 0,
        };
        PluginFigures {
            report,
            durations: statistics.times,
        }
    }

    /// Adds the figures of earlier processes. Version, component and breaker state are those of this process.
    fn add(&mut self, before: &PluginFigures) {
        self.durations.add_all(&before.durations);
        let (own, before) = (&mut self.report, &before.report);
        own.times = CallTimes::of(&self.durations);
        own.calls = own.calls.saturating_add(before.calls);
        own.memory_max = own.memory_max.max(before.memory_max);
        for (kind, count) in &before.faults {
            *own.faults.entry(*kind).or_default() += count;
        }
        for (own, before) in [
            (&mut own.outputs, &before.outputs),
            (&mut own.odd_waits, &before.odd_waits),
            (&mut own.counters, &before.counters),
        ] {
            for (what, count) in before {
                let sum = own.entry(what.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        own.log_bytes_dropped += before.log_bytes_dropped;
        own.kept_dropped += before.kept_dropped;
        own.trips += before.trips;
        own.lost_events += before.lost_events;
    }
}

/// Figures of a job's plugins from earlier processes.
pub struct EarlierPluginFigures(Vec<PluginFigures>);

impl EarlierPluginFigures {
    /// Reads the figures that the last process wrote. If they cannot be read, they start from zero: figures must not stop a
    /// crawl.
    pub fn open(job: &Path) -> EarlierPluginFigures {
        let mut seen = written::<PluginFigures>(job).unwrap_or_else(|(file, problem)| {
            tracing::warn!("{}: {problem}; its counts start again", file.display());
            None
        });
        let rows = seen.get_or_insert_default();
        // Every change of a plugin's settings leaves a row for its variant.
        rows.sort_by_key(|row| std::cmp::Reverse(row.report.calls));
        rows.truncate(ROWS_MAX);
        for row in rows.iter_mut() {
            row.report.left_out_s = None;
        }
        EarlierPluginFigures(seen.unwrap_or_default())
    }

    /// Adds the figures of this process. Returns all rows in the order of names, each plugin before its variants. Plugins that are
    /// no longer in a stack keep their last figures.
    pub fn with(&self, now: impl IntoIterator<Item = PluginFigures>) -> Vec<PluginFigures> {
        let key = |row: &PluginFigures| (row.report.name.clone(), row.report.variant.clone());
        let mut all: BTreeMap<_, _> = now.into_iter().map(|row| (key(&row), row)).collect();
        for before in &self.0 {
            match all.entry(key(before)) {
                Entry::Occupied(mut now) => now.get_mut().add(before),
                Entry::Vacant(gone) => {
                    gone.insert(before.clone());
                }
            }
        }
        all.into_values().collect()
    }
}

impl CallTimes {
    fn of(times: &DurationHistogram) -> CallTimes {
        CallTimes {
            total_s: times.total().as_secs_f64(),
            median_s: times.quantile(0.5).as_secs_f64(),
            p90_s: times.quantile(0.9).as_secs_f64(),
            p99_s: times.quantile(0.99).as_secs_f64(),
            max_s: times.max().as_secs_f64(),
        }
    }
}

impl PluginReport {
    /// Returns the number of errors of all kinds.
    pub fn faults_all(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Returns the name in the profile, with the variant if there is one.
    fn title(&self) -> String {
        match &self.variant {
            None => self.name.clone(),
            Some(variant) => format!("{} ({variant})", self.name),
        }
    }

    /// Returns the answers by kind, and the waits that the host corrected; `-` without any. A corrected wait is not an error:
    /// the limits are those of the profile.
    fn answers(&self) -> String {
        let answers = self.outputs.iter();
        let answers = answers.map(|(what, count)| format!("{count} {what}"));
        let corrected = self.odd_waits.iter().map(|(why, count)| {
            let waits = counted(*count, "wait");
            match why.as_str() {
                "too-long" => format!("{waits} cut to the longest"),
                "too-short" => format!("{waits} raised to the shortest"),
                "zero" => format!("{waits} of zero"),
                other => format!("{waits} {other}"),
            }
        });
        let answers: Vec<String> = answers.chain(corrected).collect();
        match answers.is_empty() {
            true => "-".to_owned(),
            false => answers.join(", "),
        }
    }

    /// Returns remarks on errors, the breaker and lost events; `-` without any.
    fn remarks(&self) -> String {
        let mut remarks: Vec<String> = self
            .faults
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        if let Some(left) = self.left_out_s {
            remarks.push(format!("left out for {} s", left.ceil()));
        } else if self.trips > 0 {
            remarks.push(format!("failed too often, {}", counted(self.trips, "time")));
        }
        if self.lost_events > 0 {
            remarks.push(format!("{} lost", counted(self.lost_events, "event")));
        }
        if remarks.is_empty() {
            remarks.push("-".to_owned());
        }
        remarks.join(", ")
    }
}

/// Formats a table of the plugins that were called; empty if no plugin was called.
pub fn plugin_table(plugins: &[PluginReport]) -> String {
    let called: Vec<_> = plugins.iter().filter(|plugin| plugin.calls > 0).collect();
    if called.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        [
            "plugin", "calls", "median", "99 %", "longest", "memory", "answers", "errors",
        ]
        .map(str::to_owned),
    ];
    rows.extend(called.into_iter().map(|plugin| {
        [
            plugin.title(),
            plugin.calls.to_string(),
            call_time(plugin.times.median_s),
            call_time(plugin.times.p99_s),
            call_time(plugin.times.max_s),
            format!("{:.1} MiB", plugin.memory_max as f64 / f64::from(1 << 20)),
            plugin.answers(),
            plugin.remarks(),
        ]
    }));
    aligned(&rows)
}

/// Aligns columns: the name left, numbers right, answers left, remarks unpadded.
fn aligned(rows: &[[String; 8]]) -> String {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], width(0));
        for (column, cell) in row.iter().enumerate().take(6).skip(1) {
            line.push_str(&format!("  {cell:>0$}", width(column)));
        }
        line.push_str(&format!("  {:<1$}  {2}", row[6], width(6), row[7]));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a number with its noun, in singular or plural.
fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Formats the duration of a call in a suitable unit.
fn call_time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

/// Writes all three files into the job's `reports/`.
pub fn write(job: &Path, seen: &[PluginFigures]) -> io::Result<()> {
    let folder = job.join("reports");
    std::fs::create_dir_all(&folder)?;
    let plugins: Vec<_> = seen.iter().map(|seen| seen.report.clone()).collect();
    write_text(
        &folder.join("plugins.txt"),
        plugin_table(&plugins).as_bytes(),
    )?;
    let json = serde_json::to_string_pretty(seen)?;
    write_text(&folder.join("plugins.json"), format!("{json}\n").as_bytes())?;
    write_text(&folder.join("plugins.prom"), metrics::text(&plugins))
}

/// Reads the reports that were last written to `reports/plugins.json`; `None` if the file does not exist.
pub fn read(job: &Path) -> Result<Option<Vec<PluginReport>>, (PathBuf, io::Error)> {
    let file = job.join("reports/plugins.json");
    // An error message quotes a part of the file, so the file must be inside the job.
    stays_inside(job, &file).map_err(|problem| (file, problem))?;
    written(job)
}

fn written<T: DeserializeOwned>(job: &Path) -> Result<Option<Vec<T>>, (PathBuf, io::Error)> {
    let file = job.join("reports/plugins.json");
    let text = match std::fs::read(&file) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|problem| (file.clone(), problem))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|problem| (file, problem.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, calls: u64) -> PluginReport {
        PluginReport {
            name: name.to_owned(),
            variant: None,
            version: "1.0.0".to_owned(),
            component: String::new(),
            calls,
            faults: BTreeMap::new(),
            times: CallTimes {
                total_s: 1.0,
                median_s: 12e-6,
                p90_s: 1e-3,
                p99_s: 0.0345,
                max_s: 2.0,
            },
            memory_max: 3 << 19,
            outputs: BTreeMap::new(),
            odd_waits: BTreeMap::new(),
            counters: BTreeMap::new(),
            log_bytes_dropped: 0,
            kept_dropped: 0,
            left_out_s: None,
            trips: 0,
            lost_events: 0,
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_plugin_that_was_called() {
        let html = PluginReport {
            outputs: BTreeMap::from([("fragments".to_owned(), 4), ("links".to_owned(), 1234)]),
            ..report("html", 100)
        };
        let bad = PluginReport {
            variant: Some("1a2b3c4d".to_owned()),
            faults: BTreeMap::from([(FaultKind::Trap, 3), (FaultKind::Timeout, 1)]),
            odd_waits: BTreeMap::from([("too-short".to_owned(), 6), ("zero".to_owned(), 1)]),
            left_out_s: Some(12.5),
            trips: 1,
            ..report("bad", 4)
        };
        let once = PluginReport {
            trips: 1,
            lost_events: 2,
            ..report("once", 1)
        };
        assert_eq!(
            plugin_table(&[html, report("idle", 0), bad, once]),
            "\
plugin          calls  median     99 %  longest   memory  answers                                         errors
html              100   12 µs  34.5 ms    2.0 s  1.5 MiB  4 fragments, 1234 links                         -
bad (1a2b3c4d)      4   12 µs  34.5 ms    2.0 s  1.5 MiB  6 waits raised to the shortest, 1 wait of zero  3 trap, 1 timeout, left out for 13 s
once                1   12 µs  34.5 ms    2.0 s  1.5 MiB  -                                               failed too often, 1 time, 2 events lost
"
        );
        assert_eq!(plugin_table(&[report("idle", 0)]), "");
    }

    /// Figures of a plugin from one process.
    fn figures_of(name: &str, calls: u64, times: &str) -> PluginFigures {
        PluginFigures {
            report: report(name, calls),
            durations: serde_json::from_str(times).unwrap(),
        }
    }

    #[test]
    fn a_process_adds_to_the_figures_of_earlier_processes() {
        let job = tempfile::tempdir().unwrap();
        let first = EarlierPluginFigures::open(job.path());
        let mut html = figures_of(
            "html",
            3,
            r#"{"buckets": [[80, 3]], "total_ns": 3000000, "max_ns": 1000000}"#,
        );
        html.report.faults = BTreeMap::from([(FaultKind::Trap, 2)]);
        html.report.outputs = BTreeMap::from([("links".to_owned(), 7)]);
        html.report.left_out_s = Some(600.0);
        html.report.trips = 1;
        let mut gone = figures_of("gone", 5, "{}");
        gone.report.variant = Some("1a2b3c4d".to_owned());
        gone.report.left_out_s = Some(600.0);
        let kept = first.with([html, gone]);
        write(job.path(), &kept).unwrap();
        assert_eq!(read(job.path()).unwrap().unwrap(), reports(&kept));

        let second = EarlierPluginFigures::open(job.path());
        let mut html = figures_of(
            "html",
            1,
            r#"{"buckets": [[160, 1]], "total_ns": 1000000000, "max_ns": 1000000000}"#,
        );
        html.report.version = "2.0.0".to_owned();
        html.report.outputs = BTreeMap::from([("links".to_owned(), 1), ("pass".to_owned(), 1)]);
        let all = reports(&second.with([html, figures_of("new", 4, "{}")]));
        let rows: Vec<_> = all.iter().map(|row| (row.title(), row.calls)).collect();
        let expected = [("gone (1a2b3c4d)", 5), ("html", 4), ("new", 4)];
        assert_eq!(rows, expected.map(|(name, calls)| (name.to_owned(), calls)));
        let html = &all[1];
        assert_eq!(html.version, "2.0.0");
        assert_eq!((html.faults_all(), html.trips), (2, 1));
        assert_eq!((html.outputs["links"], html.outputs["pass"]), (8, 1));
        assert!(
            (html.times.total_s - 1.003).abs() < 1e-9,
            "{:?}",
            html.times
        );
        assert!(html.times.median_s < html.times.p99_s, "{:?}", html.times);
        // The state of a breaker is not kept for the next process.
        assert_eq!((html.left_out_s, all[0].left_out_s), (None, None));
        // A third process counts nothing twice.
        write(job.path(), &second.with([])).unwrap();
        let third = EarlierPluginFigures::open(job.path()).with([]);
        assert_eq!(reports(&third)[1].calls, 3);
    }

    #[test]
    fn unreadable_figures_start_from_zero() {
        let job = tempfile::tempdir().unwrap();
        std::fs::create_dir(job.path().join("reports")).unwrap();
        std::fs::write(job.path().join("reports/plugins.json"), "[{").unwrap();
        assert!(EarlierPluginFigures::open(job.path()).with([]).is_empty());
    }

    fn reports(seen: &[PluginFigures]) -> Vec<PluginReport> {
        seen.iter().map(|seen| seen.report.clone()).collect()
    }
}
