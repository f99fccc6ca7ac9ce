//! Opilio: a crawl with the default profile's plugins, without delays.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::{Cost, Run, bytes_of};
use crate::bench::measured;
use crate::repository;

/// A crawl that takes longer has stalled. It ends, and the benchmark fails.
const TIME_MAX: Duration = Duration::from_secs(300);

/// Crawls the seeds.
pub(super) fn run(binary: &Path, run: &Run<'_>) -> Result<Cost> {
    let profile = run.folder.join("profile.toml");
    fs::write(&profile, profile_text(run.seeds, &run.options.profile))?;
    let job = run.folder.join("job");
    let mut command = run.command(binary);
    command
        .arg("crawl")
        .arg(&profile)
        .arg("--json")
        .arg("--job")
        .arg(&job);
    // Compiled components of the benchmark: the operator's stay as they are.
    command.env(
        "XDG_CACHE_HOME",
        repository::root().join("target/bench/cache"),
    );
    let measured = measured::run(&mut command)?;
    ensure!(
        measured.time < TIME_MAX,
        "the crawl did not end within {TIME_MAX:?}; see {}",
        run.folder.display()
    );
    let pages = urls(run.folder)?.len() as u64;
    let summary = measured.stdout.lines().last().unwrap_or_default();
    Ok(Cost {
        report: serde_json::from_str(summary).context("the crawl's summary")?,
        ..Cost::of(&measured, pages, bytes_of(&job.join("warcs"), ".warc.gz")?)
    })
}

/// The HTTP URLs that the crawl in this folder logged.
pub(super) fn urls(folder: &Path) -> Result<Vec<String>> {
    let log = folder.join("job/logs/crawl.log");
    let text = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    let mut urls = Vec::new();
    for line in text.lines() {
        let mut columns = line.split_whitespace().skip(1);
        let (Some(status), Some(_size), Some(uri)) =
            (columns.next(), columns.next(), columns.next())
        else {
            bail!("not a line of a crawl log: {line}");
        };
        if uri.starts_with("http:") && !status.starts_with('-') {
            urls.push(uri.to_owned());
        }
    }
    ensure!(!urls.is_empty(), "the crawl fetched nothing");
    Ok(urls)
}

fn profile_text(seeds: &[String], more: &str) -> String {
    format!(
        r#"name = "bench"
strategy = "snapshot"
seeds = {seeds:?}
{more}

[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[fetch]
allow-addresses = ["loopback"]

[limits]
time = "{}s"
"#,
        TIME_MAX.as_secs()
    )
}

/// Formats the time within calls of plugins, and its share of all processor time.
pub(super) fn report(cost: &Cost) -> String {
    let mut text = format!(
        "{:<18} {:>9} {:>10} {:>9} {:>7}\n",
        "plugin", "calls", "µs a call", "seconds", "share"
    );
    let mut all = 0.0;
    let mut line = |name: &str, calls: u64, seconds: f64| {
        text.push_str(&format!(
            "{name:<18} {calls:>9} {:>10.0} {seconds:>9.2} {:>6.1}%\n",
            1e6 * seconds / calls as f64,
            100.0 * seconds / cost.cpu_seconds,
        ));
    };
    let plugins: &[Value] = cost.report["plugins"].as_array().map_or(&[], Vec::as_slice);
    let mut total_calls = 0;
    for plugin in plugins {
        let calls = plugin["calls"].as_u64().unwrap_or_default();
        let seconds = plugin["times"]["total_s"].as_f64().unwrap_or_default();
        if calls > 0 {
            line(plugin["name"].as_str().unwrap_or_default(), calls, seconds);
            total_calls += calls;
            all += seconds;
        }
    }
    line("all", total_calls.max(1), all);
    text
}
