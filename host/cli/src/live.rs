//! The live view of a crawl: a few lines on a terminal, plain lines elsewhere, JSON on request.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{
    HumanBytes, HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget,
    ProgressStyle,
};
use opilio_crawl::{Job, Progress, View};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{DisplayArgs, figures, terminal};

/// Interval between two updates on a terminal.
const REFRESH: Duration = Duration::from_millis(250);
/// Interval between two lines without a terminal, as in Heritrix's progress log.
const LINE_INTERVAL: Duration = Duration::from_secs(20);
/// Updates over which the current rate is measured: three seconds.
const RECENT: usize = 12;
/// Busiest queues shown.
const QUEUES_SHOWN: usize = 4;
/// Alerts shown, the worst first.
const ALERTS_SHOWN: usize = 3;
/// Width of a queue's name.
const QUEUE_WIDTH: usize = 44;
/// Width of the names before the totals; those of the summary's first lines.
pub(crate) const NAME_WIDTH: usize = 10;

/// The live view that is being drawn, for other code that writes to the terminal.
static SCREEN: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Standard error for diagnostics. They appear above the live view.
pub(crate) struct Diagnostics;

impl Write for Diagnostics {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let drawn = screen().clone();
        match drawn {
            Some(drawn) => drawn.suspend(|| io::stderr().write(text)),
            None => io::stderr().write(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn screen() -> std::sync::MutexGuard<'static, Option<MultiProgress>> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The running view.
pub(crate) struct Live {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Live {
    /// Ends the view and clears its lines.
    pub(crate) async fn finish(self) {
        let _ = self.end.send(());
        let _ = self.task.await;
    }
}

/// Starts showing a crawl.
pub(crate) fn start(view: View, job: &Job, display: DisplayArgs) -> Live {
    let (end, ended) = oneshot::channel();
    let title = format!(
        "{} {}",
        if job.resumed() {
            "resuming"
        } else {
            "crawling"
        },
        job.directory().display()
    );
    let task = if display.quiet {
        tokio::spawn(async move {
            let _ = ended.await;
        })
    } else if display.json {
        tokio::spawn(lines(view, ended, |progress| as_json(progress).to_string()))
    } else if io::stderr().is_terminal() {
        tokio::spawn(picture(view, title, ended))
    } else {
        say(&title);
        tokio::spawn(lines(view, ended, one_line))
    };
    Live { end, task }
}

async fn picture(view: View, title: String, mut ended: oneshot::Receiver<()>) {
    let drawn = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    *screen() = Some(drawn.clone());
    let line = |template: &str| {
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        drawn.add(ProgressBar::new_spinner().with_style(style))
    };
    let head = line("{spinner:.green} {msg}");
    let totals: Vec<ProgressBar> = (0..TOTALS).map(|_| line("{msg}")).collect();
    let queues: Vec<ProgressBar> = (0..=QUEUES_SHOWN).map(|_| line("  {msg:.dim}")).collect();
    // Alerts come last, so that there is no gap without them.
    let alerts: Vec<ProgressBar> = (0..ALERTS_SHOWN).map(|_| line("{msg:.yellow}")).collect();
    let mut ticks = tokio::time::interval(REFRESH);
    let mut recent: VecDeque<(Duration, u64)> = VecDeque::with_capacity(RECENT + 1);
    loop {
        tokio::select! {
            _ = &mut ended => break,
            _ = ticks.tick() => {}
        }
        let now = view.progress();
        recent.push_back((now.elapsed, now.uris));
        if recent.len() > RECENT {
            recent.pop_front();
        }
        head.set_message(format!("{title}  {}", HumanDuration(now.elapsed)));
        head.tick();
        for (bar, text) in totals.iter().zip(totals_of(&now, rate_of(&recent))) {
            bar.set_message(text);
        }
        let shown = alerts_of(&now).map(|text| format!("{:>NAME_WIDTH$}  {text}", "alert"));
        for (bar, text) in alerts
            .iter()
            .zip(shown.chain(std::iter::repeat(String::new())))
        {
            bar.set_message(text);
        }
        for (bar, text) in queues.iter().zip(queues_of(&now)) {
            bar.set_message(text);
        }
    }
    *screen() = None;
    let _ = drawn.clear();
}

/// Returns the active alerts, a line each.
fn alerts_of(now: &Progress) -> impl Iterator<Item = String> + '_ {
    now.alerts.iter().map(|alert| {
        let words = [alert.kind.name(), &alert.subject, &alert.message];
        let words = words.into_iter().filter(|word| !word.is_empty());
        terminal::line(&words.collect::<Vec<_>>().join(" "))
    })
}

/// Number of the lines of totals.
const TOTALS: usize = 5;

fn totals_of(now: &Progress, recent: f64) -> [String; TOTALS] {
    let statistics = &now.statistics;
    let line = |name: &str, value: String| format!("{name:>NAME_WIDTH$}  {value}");
    [
        line(
            "URIs",
            format!(
                "{}; {} finished",
                figures::uris(statistics),
                HumanCount(statistics.finished())
            ),
        ),
        line(
            "finished",
            format!(
                "{}; {} retries",
                figures::outcomes(statistics),
                HumanCount(statistics.retries)
            ),
        ),
        line("revisits", figures::revisits(statistics)),
        line(
            "received",
            format!(
                "{}; {:.1} URIs/s, now {recent:.1}",
                HumanBytes(now.bytes),
                rate(now)
            ),
        ),
        line("plugins", format!("{} errors", now.faults)),
    ]
}

/// Returns a line of column names, then the busiest queues; empty lines if there are fewer.
fn queues_of(now: &Progress) -> impl Iterator<Item = String> + '_ {
    let names = format!(
        "{:<QUEUE_WIDTH$} {:>8} {:>11} {:>7}",
        "busiest queues", "visits", "received", "status"
    );
    let queues = now.busiest.iter().map(|(queue, tally)| {
        let name = terminal::clip(queue, QUEUE_WIDTH);
        let received = HumanBytes(tally.bytes).to_string();
        format!(
            "{name:<QUEUE_WIDTH$} {:>8} {received:>11} {:>7}",
            tally.uris, tally.last_status
        )
    });
    let header = (!now.busiest.is_empty()).then_some(names);
    header
        .into_iter()
        .chain(queues)
        .chain(std::iter::repeat(String::new()))
}

/// Returns the URIs per second between the first and the last of these moments.
fn rate_of(recent: &VecDeque<(Duration, u64)>) -> f64 {
    let (Some((from, before)), Some((to, after))) = (recent.front(), recent.back()) else {
        return 0.0;
    };
    (after - before) as f64 / (*to - *from).as_secs_f64().max(REFRESH.as_secs_f64())
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
        "{} s: {} finished, {} queued, {} in process, {} discovered, {:.1} URIs/s, {}, {} failed, {} plugin errors{}",
        progress.elapsed.as_secs(),
        statistics.finished(),
        statistics.queued,
        statistics.in_process,
        statistics.discovered,
        rate(progress),
        HumanBytes(progress.bytes),
        statistics.failed,
        progress.faults,
        match progress.alerts.len() {
            0 => String::new(),
            count => format!(
                ", {count} {}: {}",
                if count == 1 { "alert" } else { "alerts" },
                alerts_of(progress).collect::<Vec<_>>().join("; ")
            ),
        },
    )
}

/// Returns the progress as JSON. Sizes are in bytes, times in seconds.
pub(crate) fn as_json(progress: &Progress) -> serde_json::Value {
    json!({
        "elapsed": progress.elapsed.as_secs_f64(),
        "uris": progress.uris,
        "bytes": progress.bytes,
        "faults": progress.faults,
        "out-of-scope": progress.out_of_scope,
        "alerts": progress.alerts,
        "statistics": progress.statistics,
    })
}

fn rate(progress: &Progress) -> f64 {
    progress.uris as f64 / progress.elapsed.as_secs_f64().max(0.001)
}

/// Prints a note that is not progress. With `--json` it is a JSON object on a line of its own.
pub(crate) fn note(words: &str, display: DisplayArgs) {
    match display.json {
        true => words
            .lines()
            .filter(|line| !line.is_empty())
            .for_each(|line| say(&json!({ "note": line }).to_string())),
        false => say(words),
    }
}

/// Writes a line to standard error; results go to standard output. Errors are ignored: the terminal may be gone.
fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}
