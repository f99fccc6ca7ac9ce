//! The cost of one run of a program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;

use super::measured::Measured;

/// One run of a program.
#[derive(Clone, Serialize)]
pub(super) struct Cost {
    /// HTTP exchanges, including images, robots.txt and 404s.
    pub(super) pages: u64,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) peak_rss_bytes: u64,
    /// Bytes of the archive files.
    pub(super) archive_bytes: u64,
    /// Processor seconds by thread name, if they were requested.
    pub(super) threads: BTreeMap<String, f64>,
    /// The program's own report, if it has one.
    #[serde(skip)]
    pub(super) report: Value,
}

impl Cost {
    pub(super) fn of(measured: &Measured, pages: u64, archive_bytes: u64) -> Cost {
        Cost {
            pages,
            seconds: measured.time.as_secs_f64(),
            cpu_seconds: (measured.user + measured.system).as_secs_f64(),
            peak_rss_bytes: measured.peak_rss_bytes,
            archive_bytes,
            threads: measured
                .threads
                .iter()
                .map(|(name, time)| (name.clone(), time.as_secs_f64()))
                .collect(),
            report: Value::Null,
        }
    }

    pub(super) fn cpu_ms_per_page(&self) -> f64 {
        1e3 * self.cpu_seconds / self.pages as f64
    }

    pub(super) fn pages_per_second(&self) -> f64 {
        self.pages as f64 / self.seconds
    }
}

/// Creates the folder, or empties it.
pub(super) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Total bytes of the files in a folder with this suffix.
pub(super) fn bytes_of(folder: &Path, ending: &str) -> Result<u64> {
    let mut bytes = 0;
    for file in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = file?;
        if file.file_name().to_string_lossy().ends_with(ending) {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// The run with the median processor time. Its times and memory are replaced by their own medians.
pub(super) fn median(costs: &[Cost]) -> Cost {
    let middle = |of: &dyn Fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let cpu_seconds = middle(&|cost| cost.cpu_seconds);
    let median = costs.iter().find(|cost| cost.cpu_seconds == cpu_seconds);
    Cost {
        cpu_seconds,
        seconds: middle(&|cost| cost.seconds),
        peak_rss_bytes: middle(&|cost| cost.peak_rss_bytes as f64) as u64,
        ..median.unwrap_or(&costs[0]).clone()
    }
}
