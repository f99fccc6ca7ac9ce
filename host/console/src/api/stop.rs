//! The stop of a job in any state. The orders of the job change first, then the stop is sent to its process. A process that is starting
//! accepts no commands yet, so the supervisor stops it later.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use opilio_control::{Author, Command, is_reachable, stop_other_nodes};

use super::jobs::{blocking, is_shared};
use super::{Done, Shared};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::PathParams;
use crate::orders::Orders;
use crate::problem::Problem;
use crate::process::{self, StopTarget};

/// The answer to a stop of a job whose process has ended by itself.
const ENDED: &str = "the job has ended and will not be restarted";

/// The answer to a stop of a job whose process is starting.
const STOPS: &str = "the job stops as soon as its process accepts commands";

/// The same for a job that several nodes share.
const STOPS_ON_ALL: &str =
    "stopping on all nodes; this one stops as soon as its process accepts commands";

/// The effect of a stop on the orders of a job.
struct StopOrder {
    target: StopTarget,
    /// The orders that the stop has withdrawn.
    withdrawn: Option<Orders>,
    /// `true` if another stop was waiting for the job's process.
    was_pending: bool,
    /// `true` if the orders have the stop. Otherwise it must first be sent to the other nodes of the job.
    is_given: bool,
}

/// Stops a job; current fetches finish. A job that waits to be started is not started, and a job whose process is starting stops
/// as soon as the process accepts commands. A job that several nodes share stops on all of them.
#[utoipa::path(post, path = "/jobs/{job}/stop", operation_id = "stop_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Done)))]
pub(crate) async fn stop(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    // A task of its own: if the client disconnects, the job must not be left with its order withdrawn but not stopped.
    let stopped = tokio::spawn(async move { daemon.stop(&job, &caller).await });
    let stopped = stopped.await;
    stopped.unwrap_or_else(|panic| Err(Problem::failure(format!("the request panicked: {panic}"))))
}

impl Daemon {
    /// Stops a job in any state. The withdrawn order to crawl is restored only if the job's process, or the other nodes of a shared
    /// job, refuse the stop.
    async fn stop(&self, job: &str, caller: &Caller) -> Result<Json<Done>, Problem> {
        let directory = self.directory(job)?;
        let is_shared = is_shared(&directory);
        let mut order = StopOrder::default();
        if self.has_orders(job)? {
            // The order is withdrawn first, so that the job is neither started nor restarted if it dies while it stops.
            order = self.order_for(job, |orders| StopOrder::give(&directory, orders, is_shared))?;
        }
        let is_sent_first = !order.is_given;
        if is_sent_first {
            // The process has locked the directory, so the stop is sent to the other nodes without it. If NATS does not accept the stop,
            // nothing has changed.
            self.send_stop(&directory, caller).await?;
            order = self.order_for(job, |orders| StopOrder::give(&directory, orders, false))?;
        }
        let must_reach_others = is_shared && !is_sent_first;
        let result = match order.target {
            StopTarget::Starting if is_sent_first => Some(STOPS_ON_ALL),
            StopTarget::Starting => Some(STOPS),
            _ if must_reach_others => None,
            StopTarget::Waiting => Some("the job will not start"),
            StopTarget::Ended => Some(ENDED),
            StopTarget::Running => None,
        };
        if let Some(result) = result {
            // The stop is written to the job's log here, because no process does it.
            if let Err(problem) = opilio_control::note(&directory, &caller.user, "stop", result) {
                tracing::warn!(job, "cannot log the stop of the job: {problem}");
            }
            let result = result.to_owned();
            return Ok(Json(Done { result }));
        }
        let stopped = self.have_done(job, caller, Command::Stop).await;
        if order.was_pending && stopped.is_ok() {
            self.order(job, |orders| orders.stop_pending = false);
        }
        if order.withdrawn.is_none() || stopped.is_ok() {
            return stopped;
        }
        if !must_reach_others && !is_reachable(&directory) {
            let result = ENDED.to_owned();
            return Ok(Json(Done { result }));
        }
        self.order(job, |orders| orders.give_back(order.withdrawn.as_ref()));
        stopped
    }

    /// Sends a stop to the other nodes of a shared job.
    async fn send_stop(&self, directory: &Path, caller: &Caller) -> Result<(), Problem> {
        let permit = self.commands.permit().await?;
        let by = Author {
            user: caller.user.clone(),
            pid: std::process::id(),
        };
        let directory = directory.to_owned();
        blocking(move || {
            let _held = permit;
            stop_other_nodes(&directory, by).map_err(Problem::from)
        })
        .await
    }
}

impl Default for StopOrder {
    /// A job that never had orders.
    fn default() -> StopOrder {
        StopOrder {
            target: StopTarget::Running,
            withdrawn: None,
            was_pending: false,
            is_given: true,
        }
    }
}

impl StopOrder {
    /// Orders a stop. The orders of a job whose process is starting stay as they are if `has_others` share the job: see
    /// [`StopOrder::is_given`].
    fn give(job: &Path, orders: &mut Orders, has_others: bool) -> StopOrder {
        let mut order = StopOrder::default();
        if orders.crawl {
            order.target = process::stop_target(job, orders);
            let is_starting = order.target == StopTarget::Starting;
            order.is_given = !(is_starting && has_others);
            if order.is_given {
                orders.stop_pending = is_starting;
                order.withdrawn = orders.withdraw();
            }
            return order;
        }
        // The job may have been stopped while its process was starting.
        order.was_pending = orders.stop_pending;
        if order.was_pending && !is_reachable(job) {
            order.target = StopTarget::Starting;
        }
        order
    }
}
