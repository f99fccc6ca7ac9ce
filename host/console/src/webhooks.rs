//! Events for the daemon's webhooks and streams: changes of the states of all jobs and of the alerts of running jobs. The daemon
//! finds them when it examines the jobs.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use opilio_crawl::crawl_events::{AlertChange, CrawlEvent, Events, Occurrence};
use opilio_crawl::{Alert, JobState};

use crate::daemon::Daemon;
use crate::overview::Jobs;

/// State of a job that has been removed.
const DELETED: &str = "deleted";

/// State and alerts of each job at the last examination.
#[derive(Default)]
struct LastStates {
    states: HashMap<String, JobState>,
    /// Active alerts. Those of a job that is not running are kept until its next process.
    alerts: HashMap<String, Vec<Alert>>,
}

/// Sends events until the daemon ends.
pub(crate) async fn send_events(daemon: Arc<Daemon>, events: Events) {
    if events.is_empty() {
        return;
    }
    let (mut jobs, mut closing) = (daemon.jobs.subscribe(), daemon.closing.subscribe());
    let mut seen = None;
    loop {
        let is_closing = tokio::select! {
            changed = jobs.changed() => changed.is_err(),
            _ = closing.wait_for(|closing| *closing) => true,
        };
        let now = jobs.borrow_and_update().clone();
        // The first examination sends no events, because there is nothing to compare it with.
        let is_first = seen.is_none();
        let changes = seen
            .get_or_insert_with(LastStates::default)
            .changes_to(&now);
        if !is_first {
            for event in changes {
                events.send(&event);
            }
        }
        if is_closing {
            break;
        }
    }
    for (receiver, lost) in events.finish().await {
        tracing::warn!("{receiver} has lost {lost} events");
    }
}

impl LastStates {
    /// Compares the jobs with their states at the last examination. Returns the events.
    fn changes_to(&mut self, jobs: &Jobs) -> Vec<CrawlEvent> {
        let at = Timestamp::now();
        let event = |job: &str, what| CrawlEvent {
            at,
            job: job.to_owned(),
            profile: jobs.get(job).and_then(|job| job.overview.profile.clone()),
            what,
        };
        let mut events = Vec::new();
        for (name, job) in jobs {
            let state = job.overview.state;
            if self.states.insert(name.clone(), state) != Some(state) {
                let what = Occurrence::Job {
                    state: state.name().to_owned(),
                    reason: job.overview.ended_why.clone(),
                };
                events.push(event(name, what));
            }
            if let Some(status) = &job.status {
                let before = self.alerts.insert(name.clone(), status.alerts.clone());
                let changed = alert_changes(&before.unwrap_or_default(), &status.alerts, at);
                events.extend(
                    changed
                        .into_iter()
                        .map(|(change, alert)| event(name, Occurrence::Alert { change, alert })),
                );
            }
        }
        let gone: Vec<String> = self
            .states
            .keys()
            .filter(|name| !jobs.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            self.states.remove(&name);
            self.alerts.remove(&name);
            let (state, reason) = (DELETED.to_owned(), None);
            events.push(event(&name, Occurrence::Job { state, reason }));
        }
        events
    }
}

/// Returns the alerts that were raised or have become worse, and those that were cleared.
fn alert_changes(before: &[Alert], now: &[Alert], at: Timestamp) -> Vec<(AlertChange, Alert)> {
    let same = |one: &Alert, other: &Alert| one.kind == other.kind && one.subject == other.subject;
    let raised = now.iter().filter(|alert| {
        let mut known = before.iter();
        !known.any(|known| same(known, alert) && known.severity >= alert.severity)
    });
    let over = before
        .iter()
        .filter(|known| !now.iter().any(|alert| same(known, alert)));
    let raised = raised.map(|alert| (AlertChange::Raised, alert.clone()));
    let over = over.map(|alert| {
        let until = Some(at);
        (
            AlertChange::Cleared,
            Alert {
                until,
                ..alert.clone()
            },
        )
    });
    raised.chain(over).collect()
}

#[cfg(test)]
mod tests {
    use opilio_crawl::{AlertKind, Severity};

    use super::*;

    #[test]
    fn alerts_are_sent_when_they_are_raised_worsen_and_are_cleared() {
        let alert = |kind, severity| Alert {
            kind,
            subject: String::new(),
            severity,
            message: String::new(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            acknowledged: None,
        };
        let warning = alert(AlertKind::DiskLow, Severity::Warning);
        let critical = alert(AlertKind::DiskLow, Severity::Critical);
        let stalled = alert(AlertKind::Stalled, Severity::Warning);
        let events_of = |before: &[&Alert], now: &[&Alert]| {
            let owned =
                |alerts: &[&Alert]| alerts.iter().map(|it| (*it).clone()).collect::<Vec<_>>();
            let changed = alert_changes(&owned(before), &owned(now), Timestamp::UNIX_EPOCH);
            let words = changed.iter().map(|(change, alert)| (*change, alert.kind));
            words.collect::<Vec<_>>()
        };
        let (raised, cleared) = (AlertChange::Raised, AlertChange::Cleared);
        assert_eq!(events_of(&[], &[&warning]), [(raised, AlertKind::DiskLow)]);
        assert_eq!(events_of(&[&warning], &[&warning]), []);
        assert_eq!(
            events_of(&[&warning], &[&critical]),
            [(raised, AlertKind::DiskLow)]
        );
        assert_eq!(events_of(&[&critical], &[&warning]), []);
        assert_eq!(
            events_of(&[&warning], &[&stalled]),
            [(raised, AlertKind::Stalled), (cleared, AlertKind::DiskLow)]
        );
    }
}
