//! Decides which alerts are active, from the figures of the last minutes. It reads no clock and no disk: the caller passes all
//! figures.
//!
//! An alert is cleared at a lower figure than it was raised, so that a figure near the limit raises it once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_profile::{Alerts, ByteSize};

use super::rendered_pages::{RenderedPages, RenderedWindow};
use super::shared_crawl::SharedCrawlWatch;
use super::units::{duration_text, size_text};
use super::{Alert, AlertAction, AlertKind, CLEARED_AT, Severity};
use crate::census::QueueCensus;
use crate::part_status::PartStatus;
use crate::queue_tally::QueueTally;
use crate::series::Sample;

/// Minimum number of non-empty queues. With fewer queues, a share of failing queues is not significant, unless all of them fail.
const HOSTS_MIN: u64 = 10;

/// Minimum wait that counts. The frontier repeatedly returns shorter waits if a queue depends on a fetch that hangs.
pub const WAIT_MIN: Duration = Duration::from_secs(5);

/// Observed figures of the crawl.
pub struct Measurements<'s> {
    /// Time by the machine's clock.
    pub at: Timestamp,
    /// Time by a monotonic clock.
    pub instant: Instant,
    /// Free space of each disk, with a folder on it.
    pub rooms: Vec<(PathBuf, u64)>,
    /// Present sample of the crawl.
    pub now: &'s Sample,
    /// Sample at the start of the window, or of the crawl.
    pub then: &'s Sample,
    /// Last count of the queues.
    pub queues: Option<&'s QueueCensus>,
    /// Queue that backs off after failures, with its tally.
    pub failing: Option<(String, QueueTally)>,
    /// Pages that were to be rendered since the process began.
    pub rendered: RenderedPages,
    /// The part of a shared crawl that the process has; `None` on one machine, or before the first request to NATS.
    pub part: Option<&'s PartStatus>,
    /// `true` if the crawl issues no URIs, because it is paused or ending.
    pub holds: bool,
    /// `true` if an operator has paused a shared crawl on all nodes, or the crawl is ending.
    pub holds_everywhere: bool,
    /// Time before which no URI is due.
    pub waits_until: Option<Timestamp>,
    /// `true` if that time results from overlong delays, which no request can cause.
    pub is_overlong: bool,
}

/// State between two observations.
pub struct Watch {
    settings: Alerts,
    clocks: Option<(Timestamp, Instant)>,
    /// Number of finished URIs, and the time since which more URIs are due. The time is in the future while no URI is due.
    finished: Option<(u64, Timestamp)>,
    holding: Vec<AlertKind>,
    low_folders: BTreeSet<String>,
    is_paused: bool,
    rendered: RenderedWindow,
    shared_crawl: SharedCrawlWatch,
}

impl Watch {
    /// Creates the watch of a crawl in which the alerts `held` are active already.
    pub fn new(settings: Alerts, held: &[Alert]) -> Watch {
        let low = held.iter().filter(|alert| alert.kind == AlertKind::DiskLow);
        Watch {
            settings,
            clocks: None,
            finished: None,
            holding: held.iter().map(|alert| alert.kind).collect(),
            low_folders: low.map(|alert| alert.subject.clone()).collect(),
            is_paused: false,
            rendered: RenderedWindow::default(),
            shared_crawl: SharedCrawlWatch::new(held),
        }
    }

    /// Replaces the limits of the alerts.
    pub fn set_limits(&mut self, settings: Alerts) {
        self.settings = settings;
    }

    /// Returns the actions that follow from the figures.
    pub fn evaluate(&mut self, seen: &Measurements<'_>) -> Vec<AlertAction> {
        let mut actions = Vec::new();
        self.clock(seen, &mut actions);
        self.disks(seen, &mut actions);
        self.shares(seen, &mut actions);
        self.rendering(seen, &mut actions);
        self.hosts(seen, &mut actions);
        self.stall(seen, &mut actions);
        if let Some(part) = seen.part {
            let (settings, now) = (&self.settings, seen.instant);
            self.shared_crawl
                .look(settings, part, seen.holds_everywhere, now, &mut actions);
        }
        actions
    }

    fn clock(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let before = self.clocks.replace((seen.at, seen.instant));
        let (Some((at, instant)), Some(limit)) = (before, self.settings.clock_jump) else {
            return;
        };
        let passed = seen.instant.saturating_duration_since(instant);
        let by_clock = seen.at.as_millisecond() - at.as_millisecond();
        let by = by_clock - i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        if by.unsigned_abs() > limit.as_millis().try_into().unwrap_or(u64::MAX) {
            let length = duration_text(Duration::from_millis(by.unsigned_abs()));
            // After the clock was set back, the ends of politeness delays are far in the future.
            let message = match by < 0 {
                true => format!(
                    "the clock of the machine went back by {length}; dates of captures depend on it, and politeness delays last that much longer; `opilio frontier wake JOB --all` shortens them"
                ),
                false => format!(
                    "the clock of the machine went forward by {length}, or the machine slept; due times and dates of captures depend on it"
                ),
            };
            actions.push(AlertAction::Raise(
                AlertKind::ClockJump,
                String::new(),
                Severity::Warning,
                message,
            ));
        }
    }

    /// Raises one alert for each disk. The crawl pauses for the first full disk, until no disk is full.
    fn disks(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let settings = &self.settings;
        let is_below =
            |room: u64, limit: Option<ByteSize>| limit.is_some_and(|limit| room < limit.bytes());
        let is_full = |room: u64| is_below(room, settings.disk_pause);
        let is_low = |room: u64| is_below(room, settings.disk_warn) || is_full(room);
        let cleared_at = settings
            .disk_warn
            .or(settings.disk_pause)
            .map(|limit| limit.bytes() as f64 / CLEARED_AT.max(0.9));
        let is_roomy =
            |room: u64| !is_low(room) && cleared_at.is_none_or(|limit| room as f64 > limit);
        let full = seen.rooms.iter().find(|(_, room)| is_full(*room));
        if let Some((folder, room)) = full.filter(|_| !self.is_paused) {
            self.is_paused = true;
            let why = format!("{} has {} left", folder.display(), size_text(*room));
            actions.push(AlertAction::Pause(why));
        }
        for (folder, room) in &seen.rooms {
            let folder = folder.display().to_string();
            if is_low(*room) {
                // A crawl that was paused stays paused until the disk is not low either.
                let pauses = self.is_paused && (is_full(*room) || full.is_none());
                let (severity, message) =
                    low(&size_text(*room), pauses.then_some(settings.disk_resume));
                self.low_folders.insert(folder.clone());
                actions.push(AlertAction::Raise(
                    AlertKind::DiskLow,
                    folder,
                    severity,
                    message,
                ));
            } else if is_roomy(*room) && self.low_folders.remove(&folder) {
                actions.push(AlertAction::Clear(AlertKind::DiskLow, folder));
            }
        }
        // A folder that is no longer observed is not low, for instance after a restart with other folders.
        let is_looked_at = |low: &String| {
            let mut folders = seen.rooms.iter().map(|(folder, _)| folder);
            folders.any(|folder| folder.display().to_string() == *low)
        };
        if !seen.rooms.is_empty() {
            for gone in self.low_folders.extract_if(.., |low| !is_looked_at(low)) {
                actions.push(AlertAction::Clear(AlertKind::DiskLow, gone));
            }
        }
        if self.low_folders.is_empty()
            && std::mem::take(&mut self.is_paused)
            && settings.disk_resume
        {
            actions.push(AlertAction::Resume);
        }
    }

    fn shares(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let since =
            |counter: fn(&Sample) -> u64| counter(seen.now).saturating_sub(counter(seen.then));
        let finished_uris = since(|sample| sample.uris);
        let minutes = self.settings.window.as_secs_f64() / 60.0;
        // A resumed crawl has too few figures yet to clear alerts from before.
        let seen_for = Duration::try_from(seen.now.at - seen.then.at).unwrap_or_default();
        let is_telling =
            finished_uris >= self.settings.window_uris || seen_for >= self.settings.window;
        let shares = [
            (
                AlertKind::FaultRate,
                since(|sample| sample.faults),
                self.settings.faults_percent,
                "plugin errors",
                "see runtime-errors.log",
            ),
            (
                AlertKind::FailureRate,
                since(|sample| sample.failures),
                self.settings.failures_percent,
                "failed fetches",
                "see the statuses in crawl.log, and check the network and the name servers first",
            ),
            (
                AlertKind::BotWalls,
                since(|sample| sample.walls),
                self.settings.walls_percent,
                "bot walls",
                "see the annotations botblock: in crawl.log; slow down, or contact the sites",
            ),
        ];
        for (kind, count, limit, what, remedy) in shares {
            let percent = count as f64 * 100.0 / (finished_uris.max(1)) as f64;
            let is_over = limit > 0
                && percent >= f64::from(limit)
                && finished_uris >= self.settings.window_uris;
            let is_well = limit == 0 || is_telling && percent < f64::from(limit) * CLEARED_AT;
            let message = format!(
                "{count} {what} in {finished_uris} finished URIs in the last {minutes} minutes; {remedy}"
            );
            self.update_alert(kind, is_over, is_well, message, actions);
        }
    }

    fn rendering(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let (limit, window) = (self.settings.rendering_percent, self.settings.window);
        let (pages, is_whole) = self.rendered.look(seen.rendered, seen.instant, window);
        let (percent, is_enough) = pages.cut_percent();
        let is_over = limit > 0 && is_enough && percent >= f64::from(limit);
        let is_telling = is_enough || is_whole;
        let is_well = limit == 0 || is_telling && percent < f64::from(limit) * CLEARED_AT;
        let message = format!(
            "{} of {} rendered pages in the last {} minutes reached a limit of time or memory, or crashed; see the annotations rendered: and notRendered: in crawl.log, and raise browser.load-time or browser.memory, or lower browser.processes",
            pages.cut,
            pages.all,
            window.as_secs_f64() / 60.0
        );
        self.update_alert(AlertKind::Rendering, is_over, is_well, message, actions);
    }

    fn hosts(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let limit = self.settings.failing_hosts_percent;
        let Some(queues) = seen.queues else {
            return;
        };
        let hosts = queues.states.nonempty();
        let percent = queues.failing as f64 * 100.0 / hosts.max(1) as f64;
        // If all queues fail, the crawl makes no progress, even if there are only a few queues.
        let are_all = hosts > 0 && queues.failing == hosts;
        let is_enough = hosts >= HOSTS_MIN || are_all;
        let is_over = limit > 0 && percent >= f64::from(limit) && is_enough;
        let is_well = limit == 0 || percent < f64::from(limit) * CLEARED_AT || !is_enough;
        let last = seen.failing.as_ref();
        let last = last.map(|(_, tally)| format!("; last error: {}", tally.last_attempt()));
        let message = format!(
            "{} of {hosts} queues back off after failures: {}{}",
            queues.failing,
            queues.failing_named.join(" "),
            last.unwrap_or_default()
        );
        self.update_alert(AlertKind::HostsFailing, is_over, is_well, message, actions);
    }

    fn stall(&mut self, seen: &Measurements<'_>, actions: &mut Vec<AlertAction>) {
        let Some(limit) = self.settings.stalled_after else {
            return self.update_alert(AlertKind::Stalled, false, true, String::new(), actions);
        };
        let due = seen
            .waits_until
            .filter(|until| *until > seen.at + WAIT_MIN && !seen.is_overlong);
        let before = self.finished;
        let is_moving = before.is_some_and(|(uris, _)| uris != seen.now.uris);
        // The crawl has begun, the clock was set, or the next URI is due sooner.
        let is_same = |at| seen.waits_until == Some(at) && !seen.is_overlong;
        let is_new = before.is_none_or(|(_, at)| at > seen.at && !is_same(at));
        let is_well = is_moving || seen.holds || due.is_some();
        if is_new || is_well {
            self.finished = Some((seen.now.uris, due.unwrap_or(seen.at)));
        }
        let since = self.finished.map_or(seen.at, |(_, at)| at);
        let stood = Duration::try_from(seen.at - since).unwrap_or_default();
        let is_over = stood >= limit;
        let span = match stood.as_secs() {
            seconds @ 0..120 => format!("{seconds} seconds"),
            seconds => format!("{} minutes", seconds / 60),
        };
        let message = match seen.waits_until.filter(|_| seen.is_overlong) {
            Some(until) => format!(
                "no URI has been finished for {span}, and politeness delays last until {until:.0}, longer than any request can cause, perhaps because the clock was ahead before; `opilio frontier wake JOB --all` shortens them"
            ),
            None => format!(
                "no URI has been finished for {span} although URIs are due; `opilio job status JOB` shows current fetches"
            ),
        };
        self.update_alert(AlertKind::Stalled, is_over, is_well, message, actions);
    }

    /// Raises an alert if the figure is over its limit, and clears the alert if the figure is well below. In between, nothing
    /// changes.
    fn update_alert(
        &mut self,
        kind: AlertKind,
        is_over: bool,
        is_well: bool,
        message: String,
        actions: &mut Vec<AlertAction>,
    ) {
        let holds = self.holding.contains(&kind);
        if is_over {
            if !holds {
                self.holding.push(kind);
            }
            let act = AlertAction::Raise(kind, String::new(), Severity::Warning, message);
            actions.push(act);
        } else if holds && is_well {
            self.holding.retain(|it| *it != kind);
            actions.push(AlertAction::Clear(kind, String::new()));
        }
    }
}

/// Returns the severity and message for the space left on a disk. `pauses` is set if the crawl pauses; it is `true` if the crawl
/// resumes by itself.
fn low(left: &str, pauses: Option<bool>) -> (Severity, String) {
    match pauses {
        None => (Severity::Warning, format!("{left} left")),
        Some(false) => (
            Severity::Critical,
            format!("{left} left; the crawl pauses: make room, then `opilio job resume JOB`"),
        ),
        Some(true) => (
            Severity::Critical,
            format!("{left} left; the crawl pauses until there is more than alerts.disk-warn"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::settings;
    use super::*;
    use crate::census::QueueStates;
    use crate::ledger::Totals;
    use crate::part_status::{OtherPart, PartState};

    fn sample() -> Sample {
        let statistics = opilio_frontier::Statistics::default();
        Sample::new(
            &statistics,
            &Totals::default(),
            0,
            None,
            Timestamp::UNIX_EPOCH,
        )
    }

    /// Watch and a crawl that it observes second by second.
    struct Trial {
        watch: Watch,
        began: Instant,
        second: u64,
        clock: i64,
        room: Option<u64>,
        /// Free space of a second disk.
        other_room: Option<u64>,
        now: Sample,
        queues: Option<QueueCensus>,
        rendered: RenderedPages,
        part: Option<PartStatus>,
        holds: bool,
        waits_s: Option<u64>,
        is_overlong: bool,
    }

    impl Trial {
        fn new(toml: &str) -> Trial {
            Trial {
                watch: Watch::new(settings(toml), &[]),
                began: Instant::now(),
                second: 0,
                clock: 0,
                room: None,
                other_room: None,
                now: sample(),
                queues: None,
                rendered: RenderedPages::default(),
                part: None,
                holds: false,
                waits_s: None,
                is_overlong: false,
            }
        }

        /// Observes after this many seconds, and returns a short text for each action.
        fn after(&mut self, seconds: u64) -> Vec<String> {
            self.second += seconds;
            let at = |second: u64| {
                let milliseconds = (second as i64 + self.clock) * 1000;
                Timestamp::from_millisecond(milliseconds).unwrap()
            };
            let then = sample();
            let disks = [("/job", self.room), ("/other", self.other_room)];
            let rooms = disks.map(|(folder, room)| Some((folder.into(), room?)));
            let seen = Measurements {
                at: at(self.second),
                instant: self.began + Duration::from_secs(self.second),
                rooms: rooms.into_iter().flatten().collect(),
                now: &self.now,
                then: &then,
                queues: self.queues.as_ref(),
                failing: None,
                rendered: self.rendered,
                part: self.part.as_ref(),
                holds: self.holds,
                holds_everywhere: false,
                waits_until: self.waits_s.map(at),
                is_overlong: self.is_overlong,
            };
            let actions = self.watch.evaluate(&seen).into_iter();
            let texts = actions.map(|act| match act {
                AlertAction::Raise(kind, _, severity, _) => {
                    format!("{} {}", kind.name(), severity.name())
                }
                AlertAction::Clear(kind, _) => format!("{} over", kind.name()),
                AlertAction::Pause(_) => "pause".to_owned(),
                AlertAction::Resume => "resume".to_owned(),
            });
            texts.collect()
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn disk_alerts_are_cleared_at_a_higher_figure_than_they_are_raised() {
        let mut trial =
            Trial::new("disk-warn = '100MiB'\ndisk-pause = '50MiB'\ndisk-resume = true");
        for (room, expected) in [
            (200, &[][..]),
            (99, &["disk-low warning"]),
            (105, &[]),
            (49, &["pause", "disk-low critical"]),
            (60, &["disk-low critical"]),
            (105, &[]),
            (120, &["disk-low over", "resume"]),
            (200, &[]),
        ] {
            trial.room = Some(room * MIB);
            assert_eq!(trial.after(1), expected, "{room}");
        }
    }

    #[test]
    fn each_disk_has_its_alert_and_the_crawl_resumes_when_no_disk_is_low() {
        let mut trial =
            Trial::new("disk-warn = '100MiB'\ndisk-pause = '50MiB'\ndisk-resume = true");
        for ((room, other), expected) in [
            ((90, 80), &["disk-low warning", "disk-low warning"][..]),
            ((70, 80), &["disk-low warning", "disk-low warning"]),
            (
                (70, 40),
                &["pause", "disk-low warning", "disk-low critical"],
            ),
            ((40, 40), &["disk-low critical", "disk-low critical"]),
            ((40, 200), &["disk-low critical", "disk-low over"]),
            ((70, 200), &["disk-low critical"]),
            ((200, 200), &["disk-low over", "resume"]),
        ] {
            (trial.room, trial.other_room) = (Some(room * MIB), Some(other * MIB));
            assert_eq!(trial.after(1), expected, "{room} {other}");
        }
    }

    #[test]
    fn a_crawl_that_an_operator_resumes_is_not_paused_again() {
        let mut trial = Trial::new("disk-warn = '100MiB'\ndisk-pause = '50MiB'");
        trial.room = Some(10 * MIB);
        assert_eq!(trial.after(1), ["pause", "disk-low critical"]);
        assert_eq!(trial.after(1), ["disk-low critical"]);
        trial.room = Some(500 * MIB);
        assert_eq!(trial.after(1), ["disk-low over"]);
    }

    #[test]
    fn shares_need_enough_uris_and_are_cleared_at_a_lower_figure() {
        let mut trial = Trial::new("window-uris = 100\nstalled-after = 'none'");
        for (uris, failures, expected) in [
            (99, 99, &[][..]),
            (100, 49, &[]),
            (100, 50, &["failure-rate warning"]),
            (100, 41, &[]),
            (100, 39, &["failure-rate over"]),
            (100, 41, &[]),
        ] {
            (trial.now.uris, trial.now.failures) = (uris, failures);
            assert_eq!(trial.after(1), expected, "{failures} of {uris}");
        }
        (trial.now.failures, trial.now.faults) = (0, 5);
        assert_eq!(trial.after(1), ["fault-rate warning"]);
        (trial.now.faults, trial.now.walls) = (0, 20);
        assert_eq!(trial.after(1), ["fault-rate over", "bot-walls warning"]);
    }

    #[test]
    fn many_rendered_pages_that_are_cut_raise_an_alert() {
        let mut trial = Trial::new("window = '60s'\nstalled-after = 'none'");
        assert_eq!(trial.after(1), [""; 0]);
        for (seconds, (all, cut), expected) in [
            (1, (4, 4), &[][..]),
            (1, (10, 5), &["rendering warning"]),
            (1, (11, 5), &[]),
            (1, (20, 5), &["rendering over"]),
            (70, (30, 15), &["rendering warning"]),
            // No page was rendered since.
            (70, (30, 15), &["rendering over"]),
        ] {
            trial.rendered = RenderedPages { all, cut };
            assert_eq!(trial.after(seconds), expected, "{cut} of {all}");
        }
    }

    #[test]
    fn a_resumed_crawl_clears_earlier_alerts_after_its_own_observation() {
        let held = |kind: AlertKind, subject: &str| Alert {
            kind,
            subject: subject.to_owned(),
            severity: Severity::Warning,
            message: String::new(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            acknowledged: None,
        };
        let held = [
            held(AlertKind::FailureRate, ""),
            held(AlertKind::Stalled, ""),
            held(AlertKind::DiskLow, "/elsewhere"),
        ];
        let mut trial = Trial::new("");
        trial.watch = Watch::new(settings("window-uris = 100"), &held);
        assert_eq!(trial.after(1), [""; 0]);
        (trial.now.uris, trial.room) = (10, Some(500 << 30));
        assert_eq!(trial.after(1), ["disk-low over", "stalled over"]);
        trial.now.uris = 100;
        assert_eq!(trial.after(1), ["failure-rate over"]);
        // An alert whose limit was removed is cleared.
        trial.watch = Watch::new(settings("failures-percent = 0"), &held[..1]);
        assert_eq!(trial.after(1), ["failure-rate over"]);
    }

    #[test]
    fn many_failing_hosts_or_all_of_a_few_raise_an_alert() {
        let mut trial = Trial::new("");
        let census = |failing, snoozed| QueueCensus {
            at: Timestamp::UNIX_EPOCH,
            states: QueueStates {
                snoozed,
                exhausted: 1000,
                ..QueueStates::default()
            },
            failing,
            failing_named: vec!["org,a,".to_owned()],
            deepest: 0,
            deepest_queue: String::new(),
            uris: 0,
        };
        for (failing, all, expected) in [
            (1, 2, &[][..]),
            (5, 10, &["hosts-failing warning"]),
            (3, 10, &["hosts-failing over"]),
            (1, 1, &["hosts-failing warning"]),
            (0, 1, &["hosts-failing over"]),
            (0, 0, &[]),
        ] {
            trial.queues = Some(census(failing, all));
            assert_eq!(trial.after(1), expected, "{failing} of {all}");
        }
    }

    #[test]
    fn a_crawl_stalls_when_uris_are_due_and_none_is_finished() {
        let mut trial = Trial::new("stalled-after = '10m'");
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(599), [""; 0]);
        assert_eq!(trial.after(1), ["stalled warning"]);
        trial.now.uris += 1;
        assert_eq!(trial.after(1), ["stalled over"]);
        // Nothing is due for an hour; then a URI is due.
        trial.waits_s = Some(trial.second + 3601);
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(3599), [""; 0]);
        assert_eq!(trial.after(600), [""; 0]);
        assert_eq!(trial.after(1), ["stalled warning"]);
        // Nothing is due for a day; then the operator forces a URI.
        trial.waits_s = Some(trial.second + 86_400);
        assert_eq!(trial.after(1), ["stalled over"]);
        trial.waits_s = None;
        assert_eq!(trial.after(3600), [""; 0]);
        assert_eq!(trial.after(600), ["stalled warning"]);
        trial.holds = true;
        assert_eq!(trial.after(1), ["stalled over"]);
        assert_eq!(trial.after(10_000), [""; 0]);
    }

    #[test]
    fn a_crawl_with_overlong_or_repeatedly_prolonged_waits_is_stalled() {
        let mut trial = Trial::new("stalled-after = '10m'");
        trial.waits_s = Some(400 * 86_400);
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(
            trial.after(86_400),
            [""; 0],
            "a long wait alone does not count as a stall"
        );
        // The clock was ahead before, and the queues wait until that time.
        trial.is_overlong = true;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(600), ["stalled warning"]);
        trial.is_overlong = false;
        assert_eq!(trial.after(1), ["stalled over"]);
        // The wait is prolonged by a second repeatedly.
        for _ in 0..600 {
            trial.waits_s = Some(trial.second + 2);
            assert_eq!(trial.after(1), [""; 0]);
        }
        trial.waits_s = Some(trial.second + 2);
        assert_eq!(trial.after(1), ["stalled warning"]);
    }

    #[test]
    fn a_pause_of_this_node_alone_does_not_hide_the_alert_about_a_lost_part() {
        let mut trial = Trial::new("part-gone-after = '2m'");
        trial.part = Some(PartStatus {
            nats_answers: true,
            others: Some(vec![OtherPart {
                name: "b".to_owned(),
                state: PartState::Gone,
                node: None,
                is_done: false,
                takeover: None,
                failed_takeover: None,
            }]),
            ..PartStatus::default()
        });
        trial.holds = true;
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(120), ["part-gone warning"]);
    }

    #[test]
    fn a_clock_change_raises_an_alert_and_a_late_observation_does_not() {
        let mut trial = Trial::new("clock-jump = '30s'\nstalled-after = 'none'");
        assert_eq!(trial.after(1), [""; 0]);
        assert_eq!(trial.after(300), [""; 0]);
        trial.clock = 31;
        assert_eq!(trial.after(1), ["clock-jump warning"]);
        assert_eq!(trial.after(1), [""; 0]);
        trial.clock = -31;
        assert_eq!(trial.after(1), ["clock-jump warning"]);
        trial.clock = -60;
        assert_eq!(trial.after(1), [""; 0]);
    }
}
