//! The summary at the end of a crawl.

use std::io::{self, Write as _};

use indicatif::{HumanBytes, HumanDuration};
use opilio_crawl::{End, Repaired, Summary, plugin_table};
use serde_json::json;

use crate::live::NAME_WIDTH;
use crate::{DisplayArgs, figures, live};

/// The continuation after a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// The same command resumes it.
    Resume,
    /// The crawl cannot be resumed: the web that it crawled is gone.
    None,
}

/// Prints the summary to standard output. The crawl is complete even if the output is closed: its terminal may be gone.
pub(crate) fn print(summary: &Summary, sequel: Sequel, display: DisplayArgs) {
    let words = match display {
        DisplayArgs { json: true, .. } => format!("{}\n", as_json(summary)),
        DisplayArgs { quiet: true, .. } => return,
        _ => text(summary, sequel),
    };
    let mut out = io::stdout().lock();
    let printed = out.write_all(words.as_bytes()).and_then(|()| out.flush());
    if let Err(problem) = printed {
        tracing::debug!("cannot print the summary: {problem}");
    }
}

fn text(summary: &Summary, sequel: Sequel) -> String {
    let progress = &summary.progress;
    let statistics = &progress.statistics;
    let end = match (&summary.end, sequel) {
        (End::TimeLimit, Sequel::None) => "stopped: time limit reached".to_owned(),
        (End::Stopped | End::Terminated, Sequel::None) => "stopped".to_owned(),
        (End::Finished, Sequel::Resume) if progress.uris == 0 => {
            "nothing is left to fetch: the job was finished before; for a new crawl, pass another directory with --job"
                .to_owned()
        }
        (end, _) => end.to_string(),
    };
    let mut lines = vec![
        ("crawl", end),
        ("time", HumanDuration(progress.elapsed).to_string()),
        ("URIs", figures::uris(statistics)),
        ("finished", figures::outcomes(statistics)),
    ];
    if statistics.revisits != Default::default() {
        lines.push(("revisits", figures::revisits(statistics)));
    }
    lines.push(("received", HumanBytes(progress.bytes).to_string()));
    lines.push(("job", summary.job.display().to_string()));
    lines.push(("logs", summary.logs.display().to_string()));
    // Complete paths, for pasting into a command.
    lines.extend(
        summary
            .warcs
            .iter()
            .map(|warc| ("WARC", warc.display().to_string())),
    );
    let text = lines
        .iter()
        .map(|(name, value)| format!("{name:>NAME_WIDTH$}  {value}\n"));
    text.chain(plugins(summary)).collect()
}

/// Returns a table of the plugins that were called, aligned with the values above it.
fn plugins(summary: &Summary) -> Vec<String> {
    let table = plugin_table(&summary.plugins);
    let lines = table.lines().enumerate();
    lines
        .map(|(place, line)| {
            let name = if place == 0 { "plugins" } else { "" };
            format!("{name:>NAME_WIDTH$}  {line}\n")
        })
        .collect()
}

fn as_json(summary: &Summary) -> serde_json::Value {
    json!({
        "end": summary.end.to_string(),
        "progress": live::as_json(&summary.progress),
        "warcs": summary.warcs,
        "job": summary.job,
        "plugins": summary.plugins,
    })
}

/// Returns the result of repairing a WARC file that a killed process had left open.
pub(crate) fn repaired(repaired: &Repaired) -> String {
    let found = repaired.found.display();
    match &repaired.file {
        Some(file) => format!(
            "{found} was left open by a killed process; kept {} whole records as {}",
            repaired.records,
            file.display()
        ),
        None => {
            format!("{found} was left open by a killed process without a whole record; removed it")
        }
    }
}
