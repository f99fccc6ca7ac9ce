//! Opilio in the benchmarks: profiles with the default plugins, crawls, and the crawl's own figures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::cost::{Cost, bytes_of};
use super::measured;
use crate::repository;

/// Time after which a crawl is considered stalled. It is ended, and the benchmark fails.
const TIME_MAX: Duration = Duration::from_secs(900);

/// Crawls with the program of `command`, a profile, and an empty folder for the job.
pub(super) fn crawl(command: Command, folder: &Path, profile: &str) -> Result<Cost> {
    crawl_with(command, folder, profile, &[])
}

/// Like [`crawl`], with further arguments.
pub(super) fn crawl_with(
    mut command: Command,
    folder: &Path,
    profile: &str,
    arguments: &[&str],
) -> Result<Cost> {
    let file = folder.join("profile.toml");
    fs::write(&file, profile)?;
    let job = folder.join("job");
    command.arg("crawl").arg(&file).args(["--json", "--job"]);
    command.arg(&job).args(arguments);
    // The benchmark has its own cache of compiled components, so that the operator's is not changed.
    command.env(
        "XDG_CACHE_HOME",
        repository::root().join("target/bench/cache"),
    );
    let measured = measured::run_with_threads(&mut command)?;
    ensure!(
        measured.time < TIME_MAX,
        "the crawl did not end within {TIME_MAX:?}; see {}",
        folder.display()
    );
    let pages = urls(folder)?.len() as u64;
    let summary = measured.stdout.lines().last().unwrap_or_default();
    Ok(Cost {
        report: serde_json::from_str(summary).context("the crawl's summary")?,
        ..Cost::of(&measured, pages, bytes_of(&job.join("warcs"), ".warc.gz")?)
    })
}

/// The HTTP URLs in the crawl log of this folder.
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

/// Compares the crawl logs of two folders without times and threads: URIs, hop paths, digests and decisions.
pub(super) fn differences(first: &Path, second: &Path) -> Result<String> {
    let lines = |folder: &Path| -> Result<BTreeSet<String>> {
        let log = fs::read_to_string(folder.join("job/logs/crawl.log"))?;
        // Time of the line, thread, and time of the fetch.
        let is_compared = |column: usize| ![0, 7, 8].contains(&column);
        let compared = |line: &str| {
            let columns = line.split_whitespace().enumerate();
            let columns = columns.filter(|(column, _)| is_compared(*column));
            columns.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        // Addresses are resolved again in each crawl, and the answers contain dates.
        let lines = log.lines().filter(|line| !line.contains(" dns:"));
        Ok(lines.map(compared).collect())
    };
    let (first, second) = (lines(first)?, lines(second)?);
    let mut text = format!(
        "crawl logs: {} lines are equal\n",
        first.intersection(&second).count()
    );
    for (sign, line) in first
        .difference(&second)
        .map(|line| ('-', line))
        .chain(second.difference(&first).map(|line| ('+', line)))
    {
        text.push_str(&format!("{sign} {line}\n"));
    }
    Ok(text)
}

/// A profile that crawls the seeds once and without delays. `more` is appended.
pub(super) fn profile(seeds: &[String], more: &str) -> String {
    format!(
        r#"name = "bench"
seeds = {seeds:?}
politeness.delay-factor = 0.0
politeness.min-delay = "0s"
politeness.max-delay = "0s"
fetch.allow-addresses = ["loopback"]
dns.hosts = {{ "*.localhost" = "127.0.0.1" }}
limits.time = "{}s"
{more}
"#,
        TIME_MAX.as_secs()
    )
}

/// Formats the time in plugin calls and of each kind of thread, with its share of all processor time.
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
    text.push_str(&format!(
        "\n{:<18} {:>20} {:>7}\n",
        "thread", "seconds", "share"
    ));
    for (name, seconds) in &cost.threads {
        let share = 100.0 * seconds / cost.cpu_seconds;
        text.push_str(&format!("{name:<18} {seconds:>20.2} {share:>6.1}%\n"));
    }
    text
}
