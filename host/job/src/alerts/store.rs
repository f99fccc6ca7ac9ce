//! Active and cleared alerts, stored in the job's directory. A resumed crawl does not send alerts that its operator has received
//! already.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Alert, AlertKind, Severity};
use crate::text_file::write_text;

/// Name of the file with a job's alerts.
const FILE: &str = "alerts.json";

/// Maximum number of cleared alerts that are still shown.
const OVER_MAX: usize = 200;

/// Maximum number of active alerts. There is one for each kind, plugin, disk, and part of a shared crawl without a process; a
/// hundred is a sign of a defect.
const ACTIVE_MAX: usize = 100;

/// Time for which a single event, such as a plugin that is left out, is shown after its last occurrence.
const EVENT_SHOWN: Duration = Duration::from_secs(15 * 60);

/// Alerts of a job.
pub struct AlertBoard {
    alerts: Mutex<Alerts>,
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Alerts {
    active: Vec<Active>,
    over: VecDeque<Alert>,
}

#[derive(Serialize, Deserialize)]
struct Active {
    alert: Alert,
    /// Time at which a single event is no longer shown; `None` for other alerts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

/// Returns the active and the cleared alerts of a job's last crawl.
///
/// # Errors
/// The file cannot be read.
pub fn kept_alerts(job: &Path) -> io::Result<Vec<Alert>> {
    Ok(Alerts::read(&job.join(FILE))?.all())
}

impl AlertBoard {
    /// Opens the job's kept alerts. If they cannot be read, the list starts empty: `alerts.log` has all alerts.
    pub fn open(job: &Path) -> AlertBoard {
        let file = job.join(FILE);
        let alerts = Alerts::read(&file).unwrap_or_else(|problem| {
            tracing::warn!("{} is created again: {problem}", file.display());
            Alerts::default()
        });
        AlertBoard {
            alerts: Mutex::new(alerts),
            file,
        }
    }

    /// Raises an alert. Returns it if it is to be reported: it was not active before, or became more severe.
    pub fn raise(
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
            // Every occurrence of a single event is reported.
            let is_news = severity > known.alert.severity || kind.is_event();
            known.alert.severity = severity;
            known.alert.message = message.to_owned();
            known.expires = expires;
            if !is_news {
                return None;
            }
            known.alert.acknowledged = None;
            if kind.is_event() {
                known.alert.since = now;
            }
            let news = known.alert.clone();
            self.write_file(&board);
            return Some(news);
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
            acknowledged: None,
        };
        board.active.push(Active {
            alert: alert.clone(),
            expires,
        });
        self.write_file(&board);
        Some(alert)
    }

    /// Clears an alert. Returns it if it was active.
    pub fn clear(&self, kind: AlertKind, subject: &str, now: Timestamp) -> Option<Alert> {
        let mut board = self.lock();
        let is_it = |active: &Active| active.alert.kind == kind && active.alert.subject == subject;
        let place = board.active.iter().position(is_it)?;
        let over = board.clear(place, now);
        self.write_file(&board);
        Some(over)
    }

    /// Acknowledges an active alert, or all alerts of that kind if no subject is given. Returns the acknowledged alerts.
    pub fn acknowledge(
        &self,
        kind: AlertKind,
        subject: Option<&str>,
        by: &Acknowledged,
    ) -> Vec<Alert> {
        let mut board = self.lock();
        let mut known = Vec::new();
        for Active { alert, .. } in &mut board.active {
            if alert.kind == kind && subject.is_none_or(|subject| alert.subject == subject) {
                alert.acknowledged = Some(by.clone());
                known.push(alert.clone());
            }
        }
        self.write_file(&board);
        known
    }

    /// Clears events that have been shown long enough, and returns them.
    pub fn expire(&self, now: Timestamp) -> Vec<Alert> {
        let mut board = self.lock();
        let mut over = Vec::new();
        let is_due = |active: &Active| active.expires.is_some_and(|expires| expires <= now);
        while let Some(place) = board.active.iter().position(is_due) {
            over.push(board.clear(place, now));
        }
        if !over.is_empty() {
            self.write_file(&board);
        }
        over
    }

    /// Returns the active alerts, the most severe and then the oldest first; then the cleared alerts, the latest first.
    pub fn all(&self) -> Vec<Alert> {
        self.lock().all()
    }

    /// Returns the active alerts.
    pub fn active(&self) -> Vec<Alert> {
        let mut all = self.all();
        all.retain(|alert| alert.until.is_none());
        all
    }

    /// Writes the alerts in their present state, including messages that have changed since the alert was reported.
    pub fn write(&self) {
        self.write_file(&self.lock());
    }

    fn write_file(&self, alerts: &Alerts) {
        let text = serde_json::to_string_pretty(alerts).map_err(io::Error::other);
        let kept = text.and_then(|text| write_text(&self.file, text + "\n"));
        if let Err(problem) = kept {
            tracing::error!("cannot write {}: {problem}", self.file.display());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alerts> {
        let alerts = self.alerts.lock();
        alerts.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alerts {
    fn read(file: &Path) -> io::Result<Alerts> {
        match fs::read(file) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Alerts::default()),
            Err(problem) => Err(problem),
        }
    }

    fn all(&self) -> Vec<Alert> {
        let mut all: Vec<Alert> = self.active.iter().map(|it| it.alert.clone()).collect();
        all.sort_by_key(|alert| (std::cmp::Reverse(alert.severity), alert.since));
        all.extend(self.over.iter().rev().cloned());
        all
    }

    fn find(&mut self, kind: AlertKind, subject: &str) -> Option<&mut Active> {
        let mut active = self.active.iter_mut();
        active.find(|it| it.alert.kind == kind && it.alert.subject == subject)
    }

    fn clear(&mut self, place: usize, now: Timestamp) -> Alert {
        let mut alert = self.active.remove(place).alert;
        alert.until = Some(now);
        if self.over.len() == OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back(alert.clone());
        alert
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn an_alert_is_reported_when_it_begins_and_when_it_becomes_worse() {
        let job = tempfile::tempdir().unwrap();
        let board = AlertBoard::open(job.path());
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
    fn single_events_are_reported_each_time_and_shown_for_a_while() {
        let job = tempfile::tempdir().unwrap();
        let board = AlertBoard::open(job.path());
        let fails = |now| board.raise(AlertKind::Plugin, "html", Severity::Warning, "fails", now);
        assert!(fails(NOW).is_some());
        let later = NOW + Duration::from_secs(60);
        assert!(fails(later).is_some());
        assert_eq!(board.expire(NOW + EVENT_SHOWN), []);
        assert_eq!(board.expire(later + EVENT_SHOWN).len(), 1);
        assert_eq!(board.active(), []);
    }

    #[test]
    fn a_resumed_crawl_keeps_alerts_and_acknowledgements() {
        let job = tempfile::tempdir().unwrap();
        let board = AlertBoard::open(job.path());
        let low = |board: &AlertBoard, severity, message| {
            board.raise(AlertKind::DiskLow, "/a", severity, message, NOW)
        };
        assert!(low(&board, Severity::Warning, "3 GiB left").is_some());
        board.raise(AlertKind::Stalled, "", Severity::Warning, "stands", NOW);
        board.clear(AlertKind::Stalled, "", NOW);
        let by = Acknowledged {
            by: "ann".to_owned(),
            at: NOW,
        };
        assert_eq!(board.acknowledge(AlertKind::BotWalls, None, &by), []);
        let known = board.acknowledge(AlertKind::DiskLow, None, &by);
        assert_eq!(known[0].acknowledged, Some(by.clone()));
        drop(board);

        let board = AlertBoard::open(job.path());
        assert_eq!(board.active(), known);
        assert_eq!(board.all().len(), 2);
        assert_eq!(board.all(), kept_alerts(job.path()).unwrap());
        // An unchanged severity is not reported. A higher one is, even after an acknowledgement.
        assert_eq!(low(&board, Severity::Warning, "3 GiB left"), None);
        assert_eq!(board.active()[0].acknowledged, Some(by));
        let worse = low(&board, Severity::Critical, "1 GiB left").unwrap();
        assert_eq!(worse.acknowledged, None);

        fs::write(job.path().join(FILE), "{ torn").unwrap();
        assert!(kept_alerts(job.path()).is_err());
        assert_eq!(AlertBoard::open(job.path()).all(), []);
    }
}
