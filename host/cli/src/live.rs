//! The live view of a crawl: a few calm lines on a terminal, plain lines elsewhere, JSON on request.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use opilio_crawl::{Job, Progress, View};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::DisplayArgs;

/// Between two pictures on a terminal.
const REFRESH: Duration = Duration::from_millis(250);
/// Between two lines where there is no terminal, as the predecessor's progress log has it.
const LINE_INTERVAL: Duration = Duration::from_secs(20);
/// Busiest queues shown.
const QUEUES_SHOWN: usize = 4;

/// The running view.
pub(crate) struct Live {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Live {
    /// Ends the view and clears what it drew.
    pub(crate) async fn finish(self) {
        let _ = self.end.send(());
        let _ = self.task.await;
    }
}

/// Starts showing a crawl.
pub(crate) fn start(view: View, job: &Job, display: DisplayArgs) -> Live {
    let (end, ended) = oneshot::channel();
    let title = format!("{} {}", if job.resumed() { "resuming" } else { "crawling" }, job.directory().display());
    let task = if display.quiet {
        tokio::spawn(async move {
            let _ = ended.await;
        })
    } else if display.json {
        tokio::spawn(lines(view, ended, |progress| as_json(progress).to_string()))
    } else if std::io::stderr().is_terminal() {
        tokio::spawn(picture(view, title, ended))
    } else {
        say(&title);
        tokio::spawn(lines(view, ended, |progress| one_line(progress)))
    };
    Live { end, task }
}

async fn picture(view: View, title: String, mut ended: oneshot::Receiver<()>) {
    let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let line = |template: &str| {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        screen.add(ProgressBar::new_spinner().with_style(style))
    };
    let head = line("{spinner:.green} {msg}");
    let totals: Vec<ProgressBar> = (0..3).map(|_| line("  {msg}")).collect();
    let queues: Vec<ProgressBar> = (0..QUEUES_SHOWN).map(|_| line("  {msg:.dim}")).collect();
    let mut ticks = tokio::time::interval(REFRESH);
    let mut before: Option<Progress> = None;
    loop {
        tokio::select! {
            _ = &mut ended => break,
            _ = ticks.tick() => {}
        }
        let now = view.progress();
        head.set_message(format!("{title}  {}", HumanDuration(now.elapsed)));
        head.tick();
        for (bar, text) in totals.iter().zip(totals_of(&now, before.as_ref())) {
            bar.set_message(text);
        }
        for (place, bar) in queues.iter().enumerate() {
            let text = now.busiest.get(place).map(|(queue, tally)| {
                format!("{:<44} {:>7} URIs {:>10}  last {}", clip(queue, 44), tally.uris, HumanBytes(tally.bytes).to_string(), tally.last_status)
            });
            bar.set_message(text.unwrap_or_default());
        }
        before = Some(now);
    }
    let _ = screen.clear();
}

fn totals_of(now: &Progress, before: Option<&Progress>) -> [String; 3] {
    let statistics = &now.statistics;
    let revisits = &statistics.revisits;
    let recent = before.map_or(0.0, |before| {
        let seconds = (now.elapsed - before.elapsed).as_secs_f64().max(0.001);
        (now.uris - before.uris) as f64 / seconds
    });
    [
        format!(
            "{} finished, {} queued, {} in process of {} discovered; {:.1} URIs/s (now {recent:.0}), {}",
            statistics.finished(),
            statistics.queued,
            statistics.in_process,
            statistics.discovered,
            rate(now),
            HumanBytes(now.bytes),
        ),
        format!(
            "{} succeeded, {} failed, {} disregarded, {} retries; {} plugin faults",
            statistics.succeeded, statistics.failed, statistics.disregarded, statistics.retries, now.faults
        ),
        format!(
            "revisits: {} changed, {} unchanged, {} not modified, {} unknown",
            revisits.changed, revisits.unchanged, revisits.not_modified, revisits.unknown
        ),
    ]
}

async fn lines(view: View, mut ended: oneshot::Receiver<()>, line: fn(&Progress) -> String) {
    let mut ticks = tokio::time::interval(LINE_INTERVAL);
    ticks.tick().await;
    loop {
        tokio::select! {
            _ = &mut ended => return,
            _ = ticks.tick() => say(&line(&view.progress())),
        }
    }
}

fn one_line(progress: &Progress) -> String {
    let statistics = &progress.statistics;
    format!(
        "{} s: {} finished, {} queued, {} in process, {} discovered, {:.1} URIs/s, {}, {} failed, {} plugin faults",
        progress.elapsed.as_secs(),
        statistics.finished(),
        statistics.queued,
        statistics.in_process,
        statistics.discovered,
        rate(progress),
        HumanBytes(progress.bytes),
        statistics.failed,
        progress.faults,
    )
}

/// Progress for machines. Sizes in bytes, times in seconds.
pub(crate) fn as_json(progress: &Progress) -> serde_json::Value {
    json!({
        "elapsed": progress.elapsed.as_secs_f64(),
        "uris": progress.uris,
        "bytes": progress.bytes,
        "faults": progress.faults,
        "out-of-scope": progress.out_of_scope,
        "statistics": progress.statistics,
    })
}

fn rate(progress: &Progress) -> f64 {
    progress.uris as f64 / progress.elapsed.as_secs_f64().max(0.001)
}

fn clip(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[expect(clippy::print_stderr, reason = "progress is for whoever watches, results go to standard output")]
fn say(line: &str) {
    eprintln!("{line}");
}
