//! The status of a job, as the daemon knows it.

use std::path::Path;

use opilio_control::Status;
use opilio_crawl::Alert;
use serde::Serialize;
use utoipa::ToSchema;

use crate::overview::{JobOverview, KnownJob};

/// Status of a job.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobStatus {
    /// Overview of the job.
    pub overview: JobOverview,
    /// Process, fetches and statistics of the job.
    #[serde(flatten)]
    pub status: Status,
}

/// Returns the alerts that were active when a job was last crawled. If they cannot be read, returns none; the request for alerts
/// reports the error.
fn last_active_alerts(job: &Path) -> Vec<Alert> {
    let mut alerts = opilio_crawl::kept_alerts(job).unwrap_or_default();
    alerts.retain(|alert| alert.until.is_none());
    alerts
}

/// Returns the status of a job without asking its process.
pub(crate) fn status_of(known: &KnownJob) -> JobStatus {
    let resting = || Status {
        job: known.directory.clone(),
        state: known.overview.state,
        last_end: known
            .process_record
            .as_ref()
            .and_then(|process_record| process_record.ended.clone()),
        pid: None,
        elapsed_s: None,
        uris: 0,
        bytes: 0,
        statistics: known
            .process_record
            .as_ref()
            .map(|process_record| process_record.statistics)
            .unwrap_or_default(),
        visits: None,
        in_flight: Vec::new(),
        browsers: None,
        part: None,
        alerts: last_active_alerts(&known.directory),
        census: Default::default(),
        share: Default::default(),
        taken: Default::default(),
    };
    let status = known.status.as_ref();
    JobStatus {
        overview: known.overview.clone(),
        status: status.map_or_else(resting, |status| Status::clone(status)),
    }
}
