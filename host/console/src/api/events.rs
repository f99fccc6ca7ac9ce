//! Server-sent events. Each job is queried once for all clients.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use futures_core::Stream;
use serde::Serialize;
use tokio::sync::mpsc;

use super::Shared;
use super::job_status::status_of;
use crate::daemon::{Daemon, STREAMS_MAX};
use crate::input::PathParams;
use crate::overview::{JobOverview, Jobs};
use crate::problem::Problem;

/// Interval of keep-alive events: proxies close connections that are silent for long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Jobs that have changed since the last event.
#[derive(Serialize)]
struct Changed<'j> {
    jobs: Vec<&'j JobOverview>,
    /// Names of jobs that were removed.
    gone: Vec<&'j String>,
}

/// Streams all jobs: an event `jobs` with the jobs that have changed, at most one a second. The first event has all jobs.
#[utoipa::path(get, path = "/events", operation_id = "follow_jobs", tag = "jobs", responses((status = 200, description = "Endless stream of events `jobs`", content_type = "text/event-stream", body = String)))]
pub(crate) async fn all(State(daemon): Shared) -> Result<Sse<KeepAliveStream<Received>>, Problem> {
    let mut before = Arc::<Jobs>::default();
    let mut is_first = true;
    follow(&daemon, move |jobs| {
        let known = |name: &String| before.get(name).map(|known| &known.overview);
        let changed = Changed {
            jobs: jobs
                .iter()
                .filter(|(name, job)| known(name) != Some(&job.overview))
                .map(|(_, job)| &job.overview)
                .collect(),
            gone: before
                .keys()
                .filter(|name| !jobs.contains_key(*name))
                .collect(),
        };
        let is_event = is_first || !changed.jobs.is_empty() || !changed.gone.is_empty();
        let event = is_event.then(|| Event::default().event("jobs").json_data(&changed).ok());
        is_first = false;
        before = jobs.clone();
        Some(event.flatten())
    })
}

/// Streams a job: an event `status` about every second while the job crawls, and after each change.
#[utoipa::path(get, path = "/jobs/{job}/events", operation_id = "follow_job", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, description = "Stream of events `status` until the job is deleted", content_type = "text/event-stream", body = String)))]
pub(crate) async fn of_job(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Sse<KeepAliveStream<Received>>, Problem> {
    daemon.directory(&job)?;
    let mut before = None;
    follow(&daemon, move |jobs| {
        // A new job appears at the next examination. The removal of the job ends the stream.
        let Some(known) = jobs.get(&job) else {
            return before.is_none().then_some(None);
        };
        let overview = known.overview.clone();
        let is_event = known.status.is_some() || before.as_ref() != Some(&overview);
        before = Some(overview);
        let event = is_event.then(|| {
            let status = status_of(known);
            Event::default().event("status").json_data(&status).ok()
        });
        Some(event.flatten())
    })
}

/// Returns a stream of the events that `event_of` returns at each examination of all jobs. `None` ends the stream.
fn follow(
    daemon: &Daemon,
    mut event_of: impl FnMut(&Arc<Jobs>) -> Option<Option<Event>> + Send + 'static,
) -> Result<Sse<KeepAliveStream<Received>>, Problem> {
    let permit = daemon.streams.clone().try_acquire_owned().map_err(|_| {
        let problem = format!("{STREAMS_MAX} event streams are open, the maximum; close some");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, problem).retry_after(10)
    })?;
    let (sender, receiver) = mpsc::channel(4);
    let (mut jobs, mut closing) = (daemon.jobs.subscribe(), daemon.closing.subscribe());
    tokio::spawn(async move {
        let _permit = permit;
        loop {
            let seen = jobs.borrow_and_update().clone();
            match event_of(&seen) {
                None => return,
                Some(None) => {}
                Some(Some(event)) => {
                    if sender.send(Ok(event)).await.is_err() {
                        return;
                    }
                }
            }
            tokio::select! {
                changed = jobs.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
                _ = closing.wait_for(|closing| *closing) => return,
            }
        }
    });
    Ok(Sse::new(Received(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The output of a channel, as a stream.
pub(crate) struct Received(mpsc::Receiver<Result<Event, Infallible>>);

impl Stream for Received {
    type Item = Result<Event, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
