//! The summary at the end of a crawl.

use std::io::{self, Write as _};

use indicatif::{HumanBytes, HumanCount, HumanDuration};
use opilio_crawl::{End, RepairedFile, Summary};
use serde_json::json;

use crate::live::{self, DisplayArgs, NAME_WIDTH};
use crate::{figures, terminal};

/// Most archive files that are listed. Of more, only the number and the folder are shown.
const WARCS_LISTED_MAX: usize = 5;

/// Most plugins with errors that are listed.
const FAULTY_PLUGINS_MAX: usize = 5;

/// Possibility to resume a crawl that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// The same command resumes it.
    Possible,
    /// The crawl cannot be resumed: the web that it crawled is gone.
    Impossible,
}

/// Prints the summary to standard output. Errors are ignored: the output may be closed, and the crawl is
/// complete.
pub(crate) fn print(summary: &Summary, resumption: Resumption, display: DisplayArgs) {
    let words = match display {
        DisplayArgs { json: true, .. } => format!("{}\n", as_json(summary)),
        DisplayArgs { quiet: true, .. } => return,
        _ => text(summary, resumption),
    };
    let mut out = io::stdout().lock();
    let printed = out.write_all(words.as_bytes()).and_then(|()| out.flush());
    if let Err(problem) = printed {
        tracing::debug!("cannot print the summary: {problem}");
    }
}

fn text(summary: &Summary, resumption: Resumption) -> String {
    let progress = &summary.progress;
    let statistics = &progress.statistics;
    let end = match (&summary.end, resumption) {
        (End::TimeLimit, Resumption::Impossible) => "stopped: time limit reached".to_owned(),
        (End::Stopped | End::Terminated, Resumption::Impossible) => "stopped".to_owned(),
        (End::Finished, Resumption::Possible) if progress.uris == 0 => {
            "nothing is left to fetch: the job was finished before; for a new crawl, pass another directory with --job"
                .to_owned()
        }
        // The reasons are listed below.
        (End::NoSeedFetched(_), _) => "finished without a result: no seed could be fetched".to_owned(),
        (end, _) => end.to_string(),
    };
    let mut lines = vec![("crawl", end)];
    lines.extend(seeds(summary));
    lines.push(("visits", figures::visits(&progress.visits)));
    if statistics.revisits != Default::default() {
        lines.push(("revisits", figures::revisits(statistics)));
    }
    lines.push(("URIs", figures::uris(statistics)));
    let received = HumanBytes(progress.bytes);
    lines.push((
        "received",
        format!("{received} in {}", HumanDuration(progress.elapsed)),
    ));
    let job = summary.job.display();
    let faulty = summary
        .plugins
        .iter()
        .filter(|plugin| plugin.faults_all() > 0);
    for plugin in faulty.take(FAULTY_PLUGINS_MAX) {
        let errors = figures::numbered(plugin.faults_all(), "error");
        lines.push((
            "plugin",
            format!("{}: {errors}; see runtime-errors.log", plugin.name),
        ));
    }
    lines.push(("job", job.to_string()));
    lines.push(("logs", summary.logs.display().to_string()));
    match summary.warcs.len() {
        // Full paths can be pasted into a command.
        ..=WARCS_LISTED_MAX => {
            let warcs = summary.warcs.iter();
            lines.extend(warcs.map(|warc| ("WARC", warc.display().to_string())));
        }
        count => {
            let files = figures::numbered(count as u64, "file");
            let folder = summary.warc_directory.display();
            lines.push(("WARC", format!("{files} in {folder}")));
        }
    }
    for total in &summary.handovers {
        lines.push(("handover", figures::handover(total)));
        if total.left > 0 {
            lines.push(("hand over", format!("opilio job handover {job}")));
        }
    }
    let is_resumable = match &summary.end {
        End::Finished | End::NoSeedFetched(_) | End::Halted(_) => false,
        _ => resumption == Resumption::Possible,
    };
    if is_resumable {
        lines.push(("resume", format!("opilio crawl {job}")));
    }
    lines.push((
        "more",
        format!("opilio job report {job}; opilio job plugins {job}"),
    ));
    let text = lines
        .iter()
        .map(|(name, value)| format!("{name:>NAME_WIDTH$}  {}\n", terminal::line(value)));
    text.collect()
}

/// Returns the number of seeds that were fetched, and a line for each one that was not; empty if they were not counted.
fn seeds(summary: &Summary) -> Vec<(&'static str, String)> {
    let Some(seeds) = &summary.seeds else {
        return Vec::new();
    };
    let mut fetched = format!(
        "{} of {} fetched",
        HumanCount(seeds.fetched as u64),
        HumanCount(seeds.all as u64)
    );
    if seeds.unvisited > 0 {
        let unvisited = HumanCount(seeds.unvisited as u64);
        fetched.push_str(&format!(", {unvisited} not visited yet"));
    }
    let mut lines = vec![("seeds", fetched)];
    let failed = seeds.failed.iter();
    lines.extend(failed.map(|failure| ("", format!("{}  {failure}", failure.uri))));
    let others = seeds.failures() - seeds.failed.len();
    if others > 0 {
        let others = figures::numbered(others as u64, "other");
        let job = summary.job.display();
        lines.push(("", format!("{others}: opilio job seeds {job}")));
    }
    lines
}

fn as_json(summary: &Summary) -> serde_json::Value {
    let seeds = summary.seeds.as_ref().map(|outcomes| {
        let mut seeds = json!(outcomes);
        let failed = seeds["failed"].as_array_mut().into_iter().flatten();
        for (object, failure) in failed.zip(&outcomes.failed) {
            object["why"] = failure.to_string().into();
        }
        seeds
    });
    json!({
        "end": summary.end.to_string(),
        "seeds": seeds,
        "progress": live::as_json(&summary.progress),
        "warcs": summary.warcs,
        "job": summary.job,
        "plugins": summary.plugins,
        "handovers": summary.handovers,
    })
}

/// Returns the result of repairing a WARC file that a killed process had left open.
pub(crate) fn repaired(repaired: &RepairedFile) -> String {
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
