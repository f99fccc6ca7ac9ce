//! The last words of a crawl.

use std::fmt::Write;

use indicatif::{HumanBytes, HumanDuration};
use opilio_crawl::{Repaired, Summary};
use serde_json::json;

use crate::{DisplayArgs, live};

/// Prints the summary to standard output.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn print(summary: &Summary, display: DisplayArgs) {
    if display.json {
        println!("{}", as_json(summary));
    } else if !display.quiet {
        print!("{}", text(summary));
    }
}

fn text(summary: &Summary) -> String {
    let progress = &summary.progress;
    let statistics = &progress.statistics;
    let revisits = &statistics.revisits;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{name:>12}  {value}");
    };
    line("crawl", summary.end.to_string());
    line("time", HumanDuration(progress.elapsed).to_string());
    line(
        "URIs",
        format!(
            "{} succeeded, {} failed, {} disregarded, {} still queued, {} discovered",
            statistics.succeeded, statistics.failed, statistics.disregarded, statistics.queued, statistics.discovered
        ),
    );
    if revisits.changed + revisits.unchanged + revisits.not_modified + revisits.unknown > 0 {
        line(
            "revisits",
            format!(
                "{} changed, {} unchanged, {} not modified, {} unknown",
                revisits.changed, revisits.unchanged, revisits.not_modified, revisits.unknown
            ),
        );
    }
    line("received", HumanBytes(progress.bytes).to_string());
    for plugin in &summary.plugins {
        let statistics = &plugin.statistics;
        let per_call = statistics.time.checked_div(u32::try_from(statistics.calls).unwrap_or(u32::MAX)).unwrap_or_default();
        let mut words = format!("{} calls, {:.0} µs each", statistics.calls, per_call.as_secs_f64() * 1e6);
        if statistics.faults_all() > 0 {
            let faults: Vec<String> = statistics.faults.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
            let _ = write!(words, "; FAULTS: {}", faults.join(", "));
        }
        if statistics.calls > 0 {
            line(&plugin.name, words);
        }
    }
    for warc in &summary.warcs {
        line("WARC", warc.display().to_string());
    }
    line("logs", summary.logs.display().to_string());
    text
}

fn as_json(summary: &Summary) -> serde_json::Value {
    let plugins: Vec<_> = summary
        .plugins
        .iter()
        .map(|plugin| {
            json!({
                "name": plugin.name,
                "version": plugin.version,
                "calls": plugin.statistics.calls,
                "seconds": plugin.statistics.time.as_secs_f64(),
                "faults": plugin.statistics.faults,
            })
        })
        .collect();
    json!({
        "end": summary.end.to_string(),
        "progress": live::as_json(&summary.progress),
        "warcs": summary.warcs,
        "job": summary.job,
        "plugins": plugins,
    })
}

/// What became of a WARC file that a killed process had left open.
pub(crate) fn repaired(repaired: &Repaired) -> String {
    let found = repaired.found.display();
    match &repaired.file {
        Some(file) => format!("{found} had been left open: {} whole records kept as {}", repaired.records, file.display()),
        None => format!("{found} had been left open without a whole record; removed"),
    }
}
