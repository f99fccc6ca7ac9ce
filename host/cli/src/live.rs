//! The live view of a crawl: a few lines on a terminal, plain lines elsewhere, JSON on request.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use indicatif::{
    HumanBytes, HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget,
    ProgressStyle,
};
use jiff::Timestamp;
use opilio_control::status_words;
use opilio_crawl::{Alert, AlertKind, CrawlView, Job, JobState, Progress};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::figures::{self, numbered};
use crate::terminal;

/// Interval between two updates on a terminal.
const REFRESH: Duration = Duration::from_millis(250);
/// Interval between two lines without a terminal, as in Heritrix's progress log.
const LINE_INTERVAL: Duration = Duration::from_secs(20);
/// Updates over which the current rate is measured; together they take three seconds.
const RECENT: usize = 12;
/// Busiest queues shown.
const QUEUES_SHOWN: usize = 4;
/// Alerts shown, the worst first.
const ALERTS_SHOWN: usize = 3;
/// Width of a queue's name.
const QUEUE_WIDTH: usize = 44;
/// Width of the names before the totals, as in the first lines of the summary.
pub(crate) const NAME_WIDTH: usize = 10;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DisplayArgs {
    /// Print errors and warnings only.
    #[arg(long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print progress, notes and summary as JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// Starts the live view of a crawl.
pub(crate) fn start(view: CrawlView, job: &Job, display: DisplayArgs) -> Live {
    let (end, ended) = oneshot::channel();
    let verb = match job.resumed() {
        true => "resuming",
        false => "crawling",
    };
    let title = format!("{verb} {}", job.directory().display());
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

async fn picture(view: CrawlView, title: String, mut ended: oneshot::Receiver<()>) {
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
        let state = state_of(&now).map_or_else(String::new, |state| format!("  {state}"));
        head.set_message(format!("{title}  {}{state}", HumanDuration(now.elapsed)));
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

/// Returns a state other than running, such as `paused`.
fn state_of(now: &Progress) -> Option<&'static str> {
    (now.state != JobState::Running).then(|| now.state.name())
}

/// Describes the queues that back off after failures, with the error of one of them and the time of the next attempt.
fn failing(now: &Progress) -> Option<String> {
    let others = match now.failing {
        0 => return None,
        1 => "1 queue backs off".to_owned(),
        count => format!("{} queues back off", HumanCount(count)),
    };
    let is_idle = now.statistics.in_process == 0;
    let next = now.waits_until.filter(|at| is_idle && *at < Timestamp::MAX);
    let next = next.map_or_else(String::new, |at| {
        format!("; next attempt at {}", at.strftime("%H:%M:%S UTC"))
    });
    let queue = now.failing_queue.as_ref();
    let queue = queue.map_or_else(String::new, |(queue, tally)| {
        format!(": {queue} {}", tally.last_attempt())
    });
    Some(terminal::line(&format!("{others}{queue}{next}")))
}

/// Returns the active alerts, a line each.
fn alerts_of(now: &Progress) -> impl Iterator<Item = String> + '_ {
    now.alerts.iter().map(alert_line)
}

fn alert_line(alert: &Alert) -> String {
    let words = [alert.kind.name(), &alert.subject, &alert.message];
    let words = words.into_iter().filter(|word| !word.is_empty());
    terminal::line(&words.collect::<Vec<_>>().join(" "))
}

/// Number of the lines of totals.
const TOTALS: usize = 6;

fn totals_of(now: &Progress, recent: f64) -> [String; TOTALS] {
    let statistics = &now.statistics;
    let line = |name: &str, value: String| format!("{name:>NAME_WIDTH$}  {value}");
    [
        line("URIs", figures::uris(statistics)),
        line(
            "visits",
            format!(
                "{}; {} retries",
                figures::visits(&now.visits),
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
        line("plugins", format!("{} errors", HumanCount(now.faults))),
        failing(now).map_or_else(String::new, |text| line("failing", text)),
    ]
}

/// Returns a line of column names, then the busiest queues; empty lines if there are fewer.
fn queues_of(now: &Progress) -> impl Iterator<Item = String> + '_ {
    let names = format!(
        "{:<QUEUE_WIDTH$} {:>8} {:>11}  {}",
        "busiest queues", "visits", "received", "last visit"
    );
    let queues = now.busiest.iter().map(|(queue, tally)| {
        let name = terminal::clip(queue, QUEUE_WIDTH);
        let received = HumanBytes(tally.bytes).to_string();
        format!(
            "{name:<QUEUE_WIDTH$} {:>8} {received:>11}  {}",
            tally.uris,
            status_words(tally.last_status)
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

async fn lines(view: CrawlView, mut ended: oneshot::Receiver<()>, line: fn(&Progress) -> String) {
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
    let (statistics, visits) = (&progress.statistics, &progress.visits);
    let state = state_of(progress).map_or_else(String::new, |state| format!("{state}, "));
    let mut parts = vec![
        format!("{state}{}", numbered(visits.all(), "visit")),
        figures::uris(statistics),
        format!("{:.1} URIs/s", rate(progress)),
        HumanBytes(progress.bytes).to_string(),
    ];
    parts.extend(figures::failed(visits));
    if progress.faults > 0 {
        parts.push(numbered(progress.faults, "plugin error"));
    }
    parts.extend(failing(progress));
    // The failing queues are shown already.
    let alerts = progress.alerts.iter();
    let alerts = alerts.filter(|alert| alert.kind != AlertKind::HostsFailing);
    let alerts: Vec<String> = alerts.map(alert_line).collect();
    if !alerts.is_empty() {
        let count = numbered(alerts.len() as u64, "alert");
        parts.push(format!("{count}: {}", alerts.join("; ")));
    }
    format!("{} s: {}", progress.elapsed.as_secs(), parts.join(", "))
}

/// Returns the progress as JSON. Sizes are in bytes, times in seconds.
pub(crate) fn as_json(progress: &Progress) -> serde_json::Value {
    json!({
        "elapsed_s": progress.elapsed.as_secs_f64(),
        "state": progress.state,
        "visits": progress.visits,
        "failing_queues": progress.failing,
        "uris": progress.uris,
        "bytes": progress.bytes,
        "faults": progress.faults,
        "out_of_scope": progress.out_of_scope,
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
        // A line end before the words separates them from `^C` on a terminal.
        false if !io::stderr().is_terminal() => say(words.trim_start_matches('\n')),
        false => say(words),
    }
}

/// Writes a line to standard error; results go to standard output. Errors are ignored, because the terminal may be closed.
fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

#[cfg(test)]
mod tests {
    use opilio_crawl::{QueueTally, VisitCounts};

    use super::*;

    fn progress() -> Progress {
        Progress {
            elapsed: Duration::from_secs(20),
            state: JobState::Running,
            statistics: Default::default(),
            visits: VisitCounts::default(),
            uris: 0,
            bytes: 0,
            faults: 0,
            out_of_scope: 0,
            alerts: Vec::new(),
            busiest: Vec::new(),
            failing: 0,
            failing_queue: None,
            waits_until: None,
        }
    }

    #[track_caller]
    fn check(progress: Progress, expected: &str) {
        assert_eq!(one_line(&progress), expected);
    }

    #[test]
    fn a_line_shows_that_the_crawl_is_paused() {
        let paused = Progress {
            state: JobState::Paused,
            ..progress()
        };
        check(
            paused,
            "20 s: paused, 0 visits, 0 discovered, 0 queued, 0 in process, 0.0 URIs/s, 0 B",
        );
    }

    #[test]
    fn a_line_counts_visits_of_known_pages_too() {
        let visits = VisitCounts {
            documents: 1200,
            error_responses: 1,
            no_response: 2,
            ..VisitCounts::default()
        };
        let again = Progress {
            visits,
            faults: 2,
            ..progress()
        };
        check(
            again,
            "20 s: 1,203 visits, 0 discovered, 0 queued, 0 in process, 0.0 URIs/s, 0 B, 3 failed (1 error response), 2 plugin errors",
        );
    }

    #[test]
    fn a_line_shows_a_server_that_is_down_and_the_time_of_the_next_attempt() {
        let tally = QueueTally {
            uris: 1,
            bytes: 0,
            last_status: -2,
            last_error: "cannot connect to 127.0.0.1 port 9".to_owned(),
        };
        let down = Progress {
            failing: 1,
            failing_queue: Some(("org,example,".to_owned(), tally)),
            waits_until: Some(Timestamp::UNIX_EPOCH),
            ..progress()
        };
        check(
            down,
            "20 s: 0 visits, 0 discovered, 0 queued, 0 in process, 0.0 URIs/s, 0 B, 1 queue backs off: org,example, cannot connect to 127.0.0.1 port 9; next attempt at 00:00:00 UTC",
        );
    }
}
