//! What the operator should know: raised when it begins, cleared when it is over, in `alerts.log`, in the job's status, and
//! sent wherever the profile wants it.
//!
//! ```text
//! watch.rs (figures of the last minutes) ─┐
//! plugins that fail too often, … ─────────┴► Board ─► alerts.log, job.log, diagnostics; notify.rs ─► webhook, command
//! ```

mod disk;
mod notify;
mod watch;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use disk::free_space;
pub(crate) use disk::room;
pub use notify::http_client;
pub(crate) use notify::{Notice, Notifier};
pub(crate) use watch::{Act, Seen, Watch};

/// Alerts that are over and still shown.
const OVER_MAX: usize = 200;

/// Alerts that hold at the same time. There is a kind for each, and a subject for each plugin; a hundred is a defect.
const ACTIVE_MAX: usize = 100;

/// What happens once, such as a plugin that is left out, is shown for so long after it last did.
const EVENT_SHOWN: Duration = Duration::from_secs(15 * 60);

/// Something that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// What it is about.
    pub kind: AlertKind,
    /// Which one: the plugin, the folder; may be empty.
    pub subject: String,
    /// How bad.
    pub severity: Severity,
    /// A sentence.
    pub message: String,
    /// When it began.
    pub since: Timestamp,
    /// When it was over; none while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What an alert is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// A disk that the job writes to is nearly full.
    DiskLow,
    /// Plugins fail on many pages.
    FaultRate,
    /// Many fetches fail.
    FailureRate,
    /// Many responses are walls against robots.
    BotWalls,
    /// Many hosts back off at the same time.
    HostsFailing,
    /// Nothing is finished although URIs are due.
    Stalled,
    /// The machine's clock was put.
    ClockJump,
    /// A plugin is left out, has the crawl pause, or has it end.
    Plugin,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Somebody should look at it.
    Warning,
    /// The crawl does not go on, or brings in nothing of use, until somebody has.
    Critical,
}

/// A change of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    /// It began, or became worse.
    Raised,
    /// It is over.
    Cleared,
}

/// The alerts of a running crawl.
#[derive(Default)]
pub(crate) struct Board(Mutex<Alerts>);

#[derive(Default)]
struct Alerts {
    active: Vec<Active>,
    over: VecDeque<Alert>,
}

struct Active {
    alert: Alert,
    /// Of what happens once: when it is no longer shown.
    expires: Option<Timestamp>,
}

impl AlertKind {
    /// All of them.
    pub const ALL: [AlertKind; 8] = [
        AlertKind::DiskLow,
        AlertKind::FaultRate,
        AlertKind::FailureRate,
        AlertKind::BotWalls,
        AlertKind::HostsFailing,
        AlertKind::Stalled,
        AlertKind::ClockJump,
        AlertKind::Plugin,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            AlertKind::DiskLow => "disk-low",
            AlertKind::FaultRate => "fault-rate",
            AlertKind::FailureRate => "failure-rate",
            AlertKind::BotWalls => "bot-walls",
            AlertKind::HostsFailing => "hosts-failing",
            AlertKind::Stalled => "stalled",
            AlertKind::ClockJump => "clock-jump",
            AlertKind::Plugin => "plugin",
        }
    }

    /// What happens once and is not over by itself.
    fn is_event(self) -> bool {
        matches!(self, AlertKind::ClockJump | AlertKind::Plugin)
    }
}

impl Severity {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

impl Event {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Event::Raised => "raised",
            Event::Cleared => "cleared",
        }
    }
}

impl Board {
    /// This holds now. True where it is news: it did not hold before, or is worse than it was.
    pub(crate) fn raise(
        &self,
        kind: AlertKind,
        subject: &str,
        severity: Severity,
        message: &str,
        now: Timestamp,
    ) -> Option<Alert> {
        let mut board = self.lock();
        let expires = kind.is_event().then(|| now + EVENT_SHOWN);
        if let Some(known) = board.find(kind, subject) {
            let is_worse = severity > known.alert.severity;
            known.alert.severity = severity;
            known.alert.message = message.to_owned();
            known.expires = expires;
            // Every occurrence of what happens once is news.
            return (is_worse || kind.is_event()).then(|| known.alert.clone());
        }
        if board.active.len() >= ACTIVE_MAX {
            return None;
        }
        let alert = Alert {
            kind,
            subject: subject.to_owned(),
            severity,
            message: message.to_owned(),
            since: now,
            until: None,
        };
        board.active.push(Active {
            alert: alert.clone(),
            expires,
        });
        Some(alert)
    }

    /// This holds no longer; the alert, where it held.
    pub(crate) fn clear(&self, kind: AlertKind, subject: &str, now: Timestamp) -> Option<Alert> {
        let mut board = self.lock();
        let is_it = |active: &Active| active.alert.kind == kind && active.alert.subject == subject;
        let place = board.active.iter().position(is_it)?;
        Some(board.end(place, now))
    }

    /// What happened once and has been shown long enough.
    pub(crate) fn expire(&self, now: Timestamp) -> Vec<Alert> {
        let mut board = self.lock();
        let mut over = Vec::new();
        let is_due = |active: &Active| active.expires.is_some_and(|expires| expires <= now);
        while let Some(place) = board.active.iter().position(is_due) {
            over.push(board.end(place, now));
        }
        over
    }

    /// Those that hold, the worst and then the oldest first, and those that are over, the latest first.
    pub(crate) fn all(&self) -> Vec<Alert> {
        let board = self.lock();
        let mut all: Vec<Alert> = board.active.iter().map(|it| it.alert.clone()).collect();
        all.sort_by_key(|alert| (std::cmp::Reverse(alert.severity), alert.since));
        all.extend(board.over.iter().rev().cloned());
        all
    }

    /// Those that hold.
    pub(crate) fn active(&self) -> Vec<Alert> {
        let mut all = self.all();
        all.retain(|alert| alert.until.is_none());
        all
    }

    fn lock(&self) -> MutexGuard<'_, Alerts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alerts {
    fn find(&mut self, kind: AlertKind, subject: &str) -> Option<&mut Active> {
        let mut active = self.active.iter_mut();
        active.find(|it| it.alert.kind == kind && it.alert.subject == subject)
    }

    fn end(&mut self, place: usize, now: Timestamp) -> Alert {
        let mut alert = self.active.remove(place).alert;
        alert.until = Some(now);
        if self.over.len() == OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back(alert.clone());
        alert
    }
}

/// As `alerts.log` has it behind the time and the event.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject.as_str() {
            "" => "-",
            subject => subject,
        };
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        write!(
            f,
            "{} {} {} {}",
            self.severity.name(),
            self.kind.name(),
            subject.replace(char::is_whitespace, "_"),
            line(&self.message)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn an_alert_is_news_when_it_begins_and_when_it_becomes_worse() {
        let board = Board::default();
        let low = |severity, now| board.raise(AlertKind::DiskLow, "/a", severity, "low", now);
        assert!(low(Severity::Warning, NOW).is_some());
        let later = NOW + Duration::from_secs(5);
        assert_eq!(low(Severity::Warning, later), None);
        assert_eq!(low(Severity::Critical, later).unwrap().since, NOW);
        assert_eq!(low(Severity::Warning, later), None);
        let over = board.clear(AlertKind::DiskLow, "/a", later).unwrap();
        assert_eq!(over.until, Some(later));
        assert_eq!(board.clear(AlertKind::DiskLow, "/a", later), None);
        assert_eq!(board.active(), []);
        assert_eq!(board.all(), [over]);
    }

    #[test]
    fn what_happens_once_is_news_each_time_and_shown_for_a_while() {
        let board = Board::default();
        let fails = |now| board.raise(AlertKind::Plugin, "html", Severity::Warning, "fails", now);
        assert!(fails(NOW).is_some());
        let later = NOW + Duration::from_secs(60);
        assert!(fails(later).is_some());
        assert_eq!(board.expire(NOW + EVENT_SHOWN), []);
        assert_eq!(board.expire(later + EVENT_SHOWN).len(), 1);
        assert_eq!(board.active(), []);
    }

    #[test]
    fn a_line_of_the_log_is_one_line() {
        let alert = Alert {
            kind: AlertKind::Plugin,
            subject: "a b".to_owned(),
            severity: Severity::Critical,
            message: "one\ntwo".to_owned(),
            since: NOW,
            until: None,
        };
        assert_eq!(alert.to_string(), "critical plugin a_b one two");
    }
}
