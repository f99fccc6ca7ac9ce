//! Alert of a job that its supervisor gives up. No process runs the job to raise it, and its operator must still be informed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::notify::Way;
use super::{AlertBoard, AlertKind, Event, Notice, Severity};
use crate::directory;
use crate::logs::JobLogs;
use crate::profile::{ProfileError, frozen_profile};

/// Raises the alert of a crawl that cannot continue, and sends it where the job's profile says. The alert is over when the job
/// starts again.
///
/// # Errors
/// The job's profile cannot be read, or another process holds the job.
pub async fn give_up(job: PathBuf, why: String) -> Result<(), ProfileError> {
    let told = tokio::task::spawn_blocking(move || raise(&job, &why)).await;
    let told = told.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    if let Some((way, notice)) = told {
        way.send(&notice).await;
    }
    Ok(())
}

fn raise(job: &Path, why: &str) -> Result<Option<(Way, Notice)>, ProfileError> {
    let profile = frozen_profile(job)?;
    let _held = directory::hold(job)?;
    let at = Timestamp::now();
    let message = format!("the daemon does not restart the job: {why}");
    let board = AlertBoard::open(job);
    let raised = board.raise(AlertKind::Halted, "", Severity::Critical, &message, at);
    let Some(alert) = raised else {
        return Ok(None);
    };
    let line = format!("{at:.3} {} {alert}", Event::Raised.name());
    let folder = job.join(&profile.logs.directory);
    let logged = JobLogs::open(&folder, &profile.logs, Arc::default());
    if let Err(problem) = logged.and_then(|logs| logs.alert(&line)) {
        tracing::error!("cannot write alerts.log: {problem}");
    }
    let notice = Notice::new(job, &profile, Event::Raised, alert);
    Ok(Way::of(&profile.alerts, job).map(|way| (way, notice)))
}
