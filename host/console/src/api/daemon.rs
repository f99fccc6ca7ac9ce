//! Information on the daemon itself.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;

/// The daemon.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    /// Its version.
    version: &'static str,
    /// When it began.
    began: Timestamp,
    /// Its process.
    pid: u32,
    /// The folder of jobs.
    jobs: String,
    /// Jobs there.
    job_count: usize,
    /// Jobs that may crawl at once.
    jobs_at_once: usize,
    /// Bytes that all jobs receive in a second; none: as many as come.
    bandwidth: Option<u64>,
    /// Connections that all jobs have open; none: as many as their workers make.
    connections: Option<usize>,
    /// Bytes free where the jobs are, as far as the system says.
    disk_free: Option<u64>,
    /// Whether a token is needed.
    authentication: bool,
    /// What the calendar will begin next.
    calendar: Vec<Coming>,
}

/// What the calendar will begin.
#[derive(Debug, Serialize, ToSchema)]
struct Coming {
    /// The entry of the calendar.
    name: String,
    /// The profile of its jobs.
    profile: String,
    /// When its next job begins; none: never again.
    next: Option<Timestamp>,
    /// Why its job could not be made; it is tried again for a day.
    problem: Option<String>,
}

/// What the daemon is and may do.
#[utoipa::path(get, path = "/daemon", operation_id = "show_daemon", tag = "daemon", responses((status = 200, body = About)))]
pub(crate) async fn about(State(daemon): Shared) -> Json<About> {
    let (config, now) = (&daemon.config, Timestamp::now());
    let mut problems = daemon.calendar_problems();
    let coming = config.calendar.iter().map(|entry| Coming {
        name: entry.name.clone(),
        profile: entry.profile.clone(),
        next: entry.next(now),
        problem: problems.remove(&entry.name),
    });
    Json(About {
        version: env!("CARGO_PKG_VERSION"),
        began: daemon.began,
        pid: std::process::id(),
        jobs: daemon.folder.path().display().to_string(),
        job_count: daemon.jobs.borrow().len(),
        jobs_at_once: config.limits.jobs,
        bandwidth: config.limits.bandwidth,
        connections: config.limits.connections,
        disk_free: opilio_crawl::free_space(daemon.folder.path()),
        authentication: config.authentication,
        calendar: coming.collect(),
    })
}
