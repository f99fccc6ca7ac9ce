//! Alerts of a job without a running crawl: a daemon gives the job up, or the job's files are handed over.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use opilio_profile::Profile;

use super::notify::Destinations;
use super::{Alert, AlertBoard, AlertKind, Event, Notice, Severity};
use crate::directory;
use crate::logs::JobLogs;
use crate::profile::{ProfileError, frozen_profile};

/// Raises the alert about a crawl that cannot continue, and sends it to the receivers in the job's profile. The alert is cleared
/// when the job starts again.
///
/// # Errors
/// The job's profile cannot be read, or another process holds the job.
pub async fn give_up(job: PathBuf, why: String) -> Result<(), ProfileError> {
    let notice = tokio::task::spawn_blocking(move || halted(&job, &why)).await;
    let notice = notice.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    if let Some((destinations, notice)) = notice {
        destinations.send(&notice).await;
    }
    Ok(())
}

fn halted(job: &Path, why: &str) -> Result<Option<(Destinations, Notice)>, ProfileError> {
    let profile = frozen_profile(job)?;
    let _held = directory::lock_job(job)?;
    let message = format!("the daemon does not restart the job: {why}");
    let board = AlertBoard::open(job);
    let at = Timestamp::now();
    let raised = board.raise(AlertKind::Halted, "", Severity::Critical, &message, at);
    let Some(alert) = raised else {
        return Ok(None);
    };
    log(job, &profile, Event::Raised, &alert);
    let notice = Notice::new(job, &profile, Event::Raised, alert);
    Ok(Destinations::of(&profile.alerts, job).map(|destinations| (destinations, notice)))
}

/// Raises the alert about files that were not handed over, or updates its message. The caller holds the job.
pub fn raise_handover(job: &Path, profile: &Profile, to: &str, message: &str) {
    let board = AlertBoard::open(job);
    let at = Timestamp::now();
    match board.raise(AlertKind::Handover, to, Severity::Warning, message, at) {
        Some(alert) => log(job, profile, Event::Raised, &alert),
        None => board.write(),
    }
}

/// Clears all alerts about files that were not handed over. The caller holds the job.
pub fn clear_handovers(job: &Path, profile: &Profile) {
    let board = AlertBoard::open(job);
    let mut active = board.active();
    active.retain(|alert| alert.kind == AlertKind::Handover);
    for alert in active {
        if let Some(over) = board.clear(alert.kind, &alert.subject, Timestamp::now()) {
            log(job, profile, Event::Cleared, &over);
        }
    }
}

fn log(job: &Path, profile: &Profile, event: Event, alert: &Alert) {
    let line = format!("{:.3} {} {alert}", Timestamp::now(), event.name());
    let folder = job.join(&profile.logs.directory);
    let logged = JobLogs::open(&folder, &profile.logs, Arc::default());
    if let Err(problem) = logged.and_then(|logs| logs.alert(&line)) {
        tracing::error!("cannot write alerts.log: {problem}");
    }
}
