//! Information on the daemon itself.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use crate::node::availability_name;

/// The daemon.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    /// Version of the daemon.
    version: &'static str,
    /// Time at which the daemon started.
    began: Timestamp,
    /// Process id.
    pid: u32,
    /// Folder of jobs.
    jobs: String,
    /// Number of jobs in the folder.
    job_count: usize,
    /// Maximum number of jobs that crawl at once.
    jobs_at_once: usize,
    /// Maximum bytes per second that all jobs receive; not set: no limit.
    bandwidth: Option<u64>,
    /// Maximum number of open connections of all jobs; not set: no limit besides their workers.
    connections: Option<usize>,
    /// Free bytes on the disk with the folder of jobs, if the system reports them.
    disk_free: Option<u64>,
    /// `true` if requests need a token.
    authentication: bool,
    /// Next jobs of the calendar.
    calendar: Vec<Coming>,
    /// Membership in a cluster; not set: the daemon is in none.
    node: Option<Membership>,
}

/// Membership of the daemon in its cluster.
#[derive(Debug, Serialize, ToSchema)]
struct Membership {
    /// Name of the node.
    name: String,
    /// State of the connection to NATS: `outside` (not in the cluster), `working`, `slow`, `riding` (no answer at present),
    /// `paused` (no answer for so long that the session may have ended), or `full` (JetStream has no free space).
    state: &'static str,
    /// `true` if an operator drains the node: the daemon starts no crawls.
    is_drained: bool,
    /// `true` if the node leads the cluster.
    is_leader: bool,
}

/// Next job of a calendar entry.
#[derive(Debug, Serialize, ToSchema)]
struct Coming {
    /// Name of the calendar entry.
    name: String,
    /// Profile of its jobs.
    profile: String,
    /// Start of its next job; not set: the entry makes no more jobs.
    next: Option<Timestamp>,
    /// Reason why the last attempt to make the job failed. The daemon retries for a day.
    problem: Option<String>,
}

/// Shows the daemon, its limits and its calendar.
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
        node: daemon.node.as_ref().map(|node| {
            let status = node.status();
            Membership {
                name: node.name().to_owned(),
                state: availability_name(status.availability),
                is_drained: status.is_drained,
                is_leader: status.is_leading,
            }
        }),
    })
}
