//! Hand-over of the files of a job to its store and its command: the state of the files, and a hand-over of a job at rest.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use opilio_control::{Author, HandoverAtRest};
use opilio_crawl::HandoverState;
use serde::Serialize;
use utoipa::ToSchema;

use super::jobs::blocking;
use super::{Done, Shared, own_files};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::file_tasks::{FileTask, FileTaskKind};
use crate::input::PathParams;
use crate::orders::Orders;
use crate::problem::Problem;

/// State of the files that a job hands over.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobHandover {
    /// Receivers in the job's profile: the URL of `archive.store`, and `on-close` for the command `archive.on-close`. Empty: the
    /// job hands nothing over.
    receivers: Vec<String>,
    /// Number of files that were handed over and are in the job.
    done: u64,
    /// Number of files that were handed over and are no longer in the job.
    moved: u64,
    /// Number of files that were not handed over, or have changed since. A running crawl hands them over by itself.
    waiting: u64,
}

/// Last task of the daemon on the files of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastFileTask {
    /// The task; not set if there was none since the daemon began.
    task: Option<FileTask>,
}

/// Counts the files of a job by the state of their hand-over. `GET /jobs/{job}/files` has the place of each file's copy.
#[utoipa::path(get, path = "/jobs/{job}/handover", operation_id = "show_handover", tag = "files", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = JobHandover)))]
pub(crate) async fn show(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<JobHandover>, Problem> {
    let directory = daemon.directory(&job)?;
    let listed = blocking(move || {
        own_files(&directory)?;
        let listed = opilio_control::handover_list(&directory)?;
        let count = |state| {
            let files = listed.files.iter().filter(|file| file.state == state);
            files.count() as u64
        };
        Ok(JobHandover {
            done: count(HandoverState::Done),
            moved: count(HandoverState::Moved),
            waiting: count(HandoverState::Waiting),
            receivers: listed.receivers,
        })
    });
    Ok(Json(listed.await?))
}

/// Starts the hand-over of all files of a job that were not handed over yet, with one attempt each. Refused for a job that is
/// running or waits to be started, because a running crawl hands its files over by itself. `GET /jobs/{job}/file-task` has the
/// progress. A crawl that is ordered meanwhile starts afterwards.
#[utoipa::path(post, path = "/jobs/{job}/handover", operation_id = "hand_over_job", tag = "files", params(("job" = String, Path, description = "Name of the job")), responses((status = 202, body = Done)))]
pub(crate) async fn begin(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<(StatusCode, Json<Done>), Problem> {
    let directory = daemon.directory(&job)?;
    if let Some(task) = daemon.file_tasks.current(&job) {
        return Err(task.conflict());
    }
    // The lock keeps other requests from opening the job, which would count as a process.
    let _job_lock = daemon.commands.lock_job(&directory).await?;
    let by = Author {
        user: caller.user.clone(),
        pid: std::process::id(),
    };
    let handover = blocking(move || {
        own_files(&directory)?;
        let orders = Orders::read(&directory).ok().flatten();
        if orders.is_some_and(|orders| orders.crawl) {
            return Err(Problem::conflict(
                "the job is running or waits to be started; a running crawl hands its files over by itself",
            ));
        }
        Ok(HandoverAtRest::begin(&directory, &by)?)
    });
    let handover = handover.await?;
    daemon
        .file_tasks
        .begin(&job, FileTaskKind::Handover, None, &caller.user)?;
    tokio::spawn(async move {
        let runtime = tokio::runtime::Handle::current();
        let (tasks, name) = (daemon.clone(), job.clone());
        // Reading the state of the files blocks.
        let work = move || runtime.block_on(hand_over(&tasks, &name, handover));
        let ended = tokio::task::spawn_blocking(work).await;
        let ended = ended.unwrap_or_else(|panic| Err(panic.to_string()));
        if let Err(problem) = &ended {
            tracing::warn!(job, "hand-over: {problem}");
        }
        daemon.file_tasks.end(&job, ended.err());
        daemon.supervisor_wake.notify_one();
    });
    let result = "the hand-over has begun".to_owned();
    Ok((StatusCode::ACCEPTED, Json(Done { result })))
}

/// Carries out a hand-over, until the daemon ends.
async fn hand_over(daemon: &Daemon, job: &str, handover: HandoverAtRest) -> Result<(), String> {
    let mut closing = daemon.closing.subscribe();
    let mut say = |file: Result<_, String>| daemon.file_tasks.count(job, file.map(|_| ()));
    tokio::select! {
        ended = handover.run(&mut say) => match ended {
            Ok(_) => Ok(()),
            Err(problem) => Err(problem.message),
        },
        _ = closing.wait_for(|closing| *closing) => {
            Err("the daemon ended meanwhile; hand the files over again".to_owned())
        }
    }
}

/// Shows the last task on the files of a job, such as a hand-over, and its progress.
#[utoipa::path(get, path = "/jobs/{job}/file-task", operation_id = "show_file_task", tag = "files", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = LastFileTask)))]
pub(crate) async fn task(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<LastFileTask>, Problem> {
    daemon.directory(&job)?;
    Ok(Json(LastFileTask {
        task: daemon.file_tasks.last(&job),
    }))
}
