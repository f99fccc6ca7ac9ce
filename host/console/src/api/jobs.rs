//! Operations on jobs as a whole.

use std::cmp::Ordering;
use std::path::Path;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use opilio_control::{Checkpoint, Command, CommandResponse, FaultFound, JobState};
use opilio_crawl::{JobPart, NamedProfile, ProfileOrigin, ProfileSource};
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::job_status::{JobStatus, status_of};
use super::{BASE, Done, Shared, checked_limit, page, seed_lines};
use crate::access::{Caller, Role};
use crate::daemon::Daemon;
use crate::folder::NewJob;
use crate::input::{Body, Params, PathParams};
use crate::orders::Orders;
use crate::overview::JobOverview;
use crate::problem::Problem;
use crate::process;
use crate::reach;

/// The answer for a job that waits for its start.
const STARTS: &str = "the job will start as soon as a place among the concurrent crawls is free";

/// Selection and order of jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobSelector {
    /// Text to search for in the names of jobs and profiles, ignoring case.
    search: Option<String>,
    /// Select jobs in this state.
    #[param(inline)]
    state: Option<JobState>,
    /// Order; a leading `-` reverses it.
    #[serde(default)]
    #[param(inline)]
    sort: JobSort,
    /// Skip this number of jobs: the `after` of the previous page.
    #[param(minimum = 0, maximum = 4294967295_usize)]
    after: Option<u32>,
    /// Maximum number of jobs.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Order of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum JobSort {
    #[default]
    Name,
    #[serde(rename = "-name")]
    NameDown,
    State,
    #[serde(rename = "-state")]
    StateDown,
    Uris,
    #[serde(rename = "-uris")]
    UrisDown,
    Queued,
    #[serde(rename = "-queued")]
    QueuedDown,
    Bytes,
    #[serde(rename = "-bytes")]
    BytesDown,
    Started,
    #[serde(rename = "-started")]
    StartedDown,
}

/// List of jobs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    /// Jobs of this page.
    jobs: Vec<JobOverview>,
    /// Number of jobs on all pages.
    total: usize,
    /// Start of the next page; not set on the last page.
    after: Option<usize>,
}

/// Job to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Making {
    /// Name of the job: letters, digits, `.`, `-` and `_`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length = 100)]
    name: String,
    /// Name of a profile; give this, `profile_toml`, or both.
    #[schema(value_type = String, required = false)]
    profile: Option<String>,
    /// Text of a profile. Together with `profile`, it is a changed text of that profile for this job. Its settings that name
    /// programs or files of this machine may stay, and relative paths start at the folder of profiles.
    #[schema(value_type = String, required = false, format = "profile")]
    profile_toml: Option<String>,
    /// Seeds in addition to those of the profile.
    #[serde(default)]
    #[schema(schema_with = seed_lines)]
    seeds: Vec<String>,
    /// Page that explains who crawls and why; replaces the contact URL of the profile.
    #[schema(format = "contact-url", pattern = "^https?://")]
    contact_url: Option<String>,
    /// `true` to start the job at once.
    #[serde(default)]
    start: bool,
    /// Time at which to start the job, in place of `start`; a past time means at once.
    start_at: Option<Timestamp>,
}

/// Job that was created.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeJob {
    /// Name of the job.
    name: String,
    /// Notes about the profile, such as settings without effect; empty for a copy of a job.
    notices: Vec<FaultFound>,
}

/// Name of a new job.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewName {
    /// Name: letters, digits, `.`, `-` and `_`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length = 100)]
    name: String,
}

/// Scope of a deletion.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deleting {
    /// `true` to delete archive, logs and reports, too.
    #[serde(default)]
    archive: bool,
}

/// Lists all jobs, a page at a time.
#[utoipa::path(get, path = "/jobs", operation_id = "list_jobs", tag = "jobs", params(JobSelector), responses((status = 200, body = JobList)))]
pub(crate) async fn list(
    State(daemon): Shared,
    Params(selector): Params<JobSelector>,
) -> Result<Json<JobList>, Problem> {
    let limit = usize::try_from(checked_limit(selector.limit)?).unwrap_or(usize::MAX);
    let jobs = daemon.jobs.borrow().clone();
    let search = selector.search.unwrap_or_default().to_lowercase();
    let is_meant = |job: &JobOverview| {
        let found = |text: &str| text.to_lowercase().contains(&search);
        selector.state.is_none_or(|state| state == job.state)
            && (found(&job.name) || job.profile.as_deref().is_some_and(found))
    };
    let mut meant: Vec<&JobOverview> = jobs
        .values()
        .map(|known| &known.overview)
        .filter(|job| is_meant(job))
        .collect();
    meant.sort_by(|one, other| selector.sort.compare(one, other));
    let (total, after) = (meant.len(), selector.after.unwrap_or(0));
    let after = usize::try_from(after).unwrap_or(usize::MAX);
    let page: Vec<JobOverview> = meant.into_iter().skip(after).take(limit).cloned().collect();
    let end = after.saturating_add(page.len());
    Ok(Json(JobList {
        jobs: page,
        total,
        after: (end < total).then_some(end),
    }))
}

impl JobSort {
    fn compare(self, one: &JobOverview, other: &JobOverview) -> Ordering {
        use JobSort::{
            Bytes, BytesDown, Name, NameDown, Queued, QueuedDown, Started, StartedDown, State,
            StateDown, Uris, UrisDown,
        };
        let order = match self {
            Name | NameDown => one.name.cmp(&other.name),
            State | StateDown => one.state.cmp(&other.state),
            Uris | UrisDown => one.uris.cmp(&other.uris),
            Queued | QueuedDown => one.queued.cmp(&other.queued),
            Bytes | BytesDown => one.bytes.cmp(&other.bytes),
            Started | StartedDown => one.started.cmp(&other.started),
        };
        let is_down = matches!(
            self,
            NameDown | StateDown | UrisDown | QueuedDown | BytesDown | StartedDown
        );
        let order = match is_down {
            true => order.reverse(),
            false => order,
        };
        order.then_with(|| one.name.cmp(&other.name))
    }
}

/// Creates a job: checks, copies and freezes its profile. If the profile has errors, the response lists them with line and
/// column, and no job is created. A text in the request must not name programs to run or files of this machine. Only an
/// admin's text may name components in registries.
#[utoipa::path(post, path = "/jobs", operation_id = "make_job", tag = "jobs", request_body = Making, responses((status = 201, body = MadeJob, headers(("location" = String, description = "The job")))))]
pub(crate) async fn make(
    State(daemon): Shared,
    caller: Caller,
    Body(making): Body<Making>,
) -> Result<impl IntoResponse, Problem> {
    let (named, text) = (making.profile, making.profile_toml);
    let (profiles, by) = (daemon.clone(), caller.clone());
    let profile = blocking(move || match (named, text) {
        (Some(name), None) => profiles.profile(&name),
        (Some(name), Some(text)) => changed(profiles.profile(&name)?, text, &by),
        (None, Some(text)) => {
            reach::check(&text, None, &by)?;
            let file = "profile.toml".to_owned();
            Ok(ProfileSource::Text { file, text })
        }
        (None, None) => Err(Problem::unusable(
            "give profile (a name), profile_toml (a text), or both",
        )),
    });
    let profile = profile.await?;
    let new = NewJob {
        name: making.name.clone(),
        profile,
        seeds: making.seeds,
        contact_url: making.contact_url,
    };
    let folder = daemon.folder.clone();
    let notes = blocking(move || folder.make(new).map_err(Problem::from)).await?;
    if making.start || making.start_at.is_some() {
        daemon.order(&making.name, |orders| {
            *orders = Orders::new(true, &caller.user);
            orders.start_at = making.start_at;
        });
    }
    Ok(created(
        making.name,
        notes.iter().map(FaultFound::from).collect(),
    ))
}

/// A changed text of a named profile.
fn changed(source: ProfileSource, text: String, caller: &Caller) -> Result<ProfileSource, Problem> {
    let named = match source {
        ProfileSource::Named(named) => named,
        ProfileSource::Builtin(name) => NamedProfile {
            file: format!("{name}.toml").into(),
            text: Profile::builtin_text(&name).unwrap_or_default().to_owned(),
            origin: ProfileOrigin {
                name,
                version: None,
            },
        },
        other => return Ok(other),
    };
    reach::check(&text, Some(&named.text), caller)?;
    Ok(ProfileSource::Named(NamedProfile { text, ..named }))
}

fn created(name: String, notices: Vec<FaultFound>) -> impl IntoResponse {
    let location = format!("{BASE}/jobs/{name}");
    (
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(MadeJob { name, notices }),
    )
}

/// Shows a job: its overview and its status.
#[utoipa::path(get, path = "/jobs/{job}", operation_id = "show_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = JobStatus)))]
pub(crate) async fn show(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<JobStatus>, Problem> {
    Ok(Json(status_of(&daemon.known(&job).await?)))
}

/// Deletes a job that is not running. Archive, logs, reports, profile and seeds are kept unless `archive` is set. For admins.
#[utoipa::path(delete, path = "/jobs/{job}", operation_id = "delete_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job"), Deleting), responses((status = 204, description = "The job was deleted")))]
pub(crate) async fn delete(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(Deleting { archive }): Params<Deleting>,
) -> Result<StatusCode, Problem> {
    caller.needs(Role::Admin)?;
    let directory = daemon.directory(&job)?;
    let job_lock = daemon.commands.lock_job(&directory).await?;
    let (folder, deleted) = (daemon.folder.clone(), job.clone());
    blocking(move || {
        let _held = job_lock;
        folder.delete(&job, archive).map_err(Problem::from)
    })
    .await?;
    daemon.file_tasks.forget(&deleted);
    daemon.supervisor_wake.notify_one();
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a job with the profile, the changes, the seeds and the plugins of another job, but without its crawl data. The
/// profile is checked as for a new job; if it has errors, no job is created.
#[utoipa::path(post, path = "/jobs/{job}/clone", operation_id = "clone_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), request_body = NewName, responses((status = 201, body = MadeJob, headers(("location" = String, description = "The job")))))]
pub(crate) async fn copy(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Body(NewName { name }): Body<NewName>,
) -> Result<impl IntoResponse, Problem> {
    let (folder, new_name) = (daemon.folder.clone(), name.clone());
    blocking(move || folder.copy(&job, &new_name).map_err(Problem::from)).await?;
    daemon.supervisor_wake.notify_one();
    Ok(created(name, Vec::new()))
}

/// Starts or resumes a job as soon as a place among the concurrent crawls is free. The daemon restarts the job if its process
/// dies.
#[utoipa::path(post, path = "/jobs/{job}/start", operation_id = "start_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 202, body = Done)))]
pub(crate) async fn start(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<(StatusCode, Json<Done>), Problem> {
    let JobOverview {
        state, ended_why, ..
    } = daemon.known(&job).await?.overview;
    if state == JobState::Waiting {
        // A job that waits for its start time starts at once.
        let waited = daemon.order_for(&job, |orders| orders.start_at.take().is_some())?;
        if waited {
            let result = STARTS.to_owned();
            return Ok((StatusCode::ACCEPTED, Json(Done { result })));
        }
    }
    match state {
        JobState::New
        | JobState::Stopped
        | JobState::Finished
        | JobState::Failed
        | JobState::Crashed => {}
        JobState::Damaged => {
            let why = ended_why.unwrap_or_default();
            return Err(Problem::conflict(format!("the job is damaged: {why}")));
        }
        _ => {
            return Err(Problem::conflict(format!(
                "the job is already {}",
                state.name()
            )));
        }
    }
    // The daemon's information on the job may be a second old.
    let is_wanted = daemon.order_for(&job, |orders| {
        let was = orders.crawl;
        if !was {
            *orders = Orders::new(true, &caller.user);
        }
        was
    })?;
    if is_wanted {
        return Err(Problem::conflict("the job already waits to be started"));
    }
    let result = STARTS.to_owned();
    Ok((StatusCode::ACCEPTED, Json(Done { result })))
}

/// Pauses a job: it starts no new fetches, and current fetches finish. The pause lasts until an operator resumes the job, also
/// across restarts of the job, the daemon and the machine. A job that waits to be started will start paused. A job that several
/// nodes share is paused on all of them.
#[utoipa::path(post, path = "/jobs/{job}/pause", operation_id = "pause_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Done)))]
pub(crate) async fn pause(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    if is_shared(&daemon.directory(&job)?) {
        // The directories of all nodes store the pause.
        return daemon.have_done(&job, &caller, Command::Pause).await;
    }
    let has_orders = daemon.has_orders(&job)?;
    if has_orders && daemon.order_awaited(&job, true)? {
        let result = "the job will start paused".to_owned();
        return Ok(Json(Done { result }));
    }
    let paused = daemon.have_done(&job, &caller, Command::Pause).await?;
    if has_orders {
        daemon.order_for(&job, |orders| {
            orders.paused = true;
            // An operator has paused the job, so the window must not resume it.
            orders.window_closed = false;
        })?;
    }
    Ok(paused)
}

/// Resumes a paused job, on all nodes that share it. A job that waits to be started will not start paused.
#[utoipa::path(post, path = "/jobs/{job}/resume", operation_id = "resume_job", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Done)))]
pub(crate) async fn resume(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Done>, Problem> {
    let has_orders = daemon.has_orders(&job)?;
    let waits = has_orders && daemon.order_awaited(&job, false)?;
    if waits && !is_shared(&daemon.directory(&job)?) {
        let result = STARTS.to_owned();
        return Ok(Json(Done { result }));
    }
    let now = daemon.clock.now();
    if !crate::window::is_open(&daemon.config.window, &job, now) {
        // The operator's pause ends, but the job stays paused because of its window.
        let was_paused = has_orders
            && daemon.order_for(&job, |orders| {
                orders.window_closed |= orders.paused;
                std::mem::take(&mut orders.paused)
            })?;
        if was_paused {
            let result = "the job resumes when its crawl window opens".to_owned();
            return Ok(Json(Done { result }));
        }
        return Err(Problem::conflict(
            "the crawl window is closed; the job resumes when it opens",
        ));
    }
    let resumed = daemon.have_done(&job, &caller, Command::Resume).await?;
    if has_orders {
        daemon.order_for(&job, |orders| orders.paused = false)?;
    }
    Ok(resumed)
}

/// Returns `true` if several nodes share a job. Then its commands act on all of them.
pub(super) fn is_shared(directory: &Path) -> bool {
    matches!(JobPart::read(directory), Ok(Some(_)))
}

/// Saves a copy of the job's state in its folder `checkpoints`. A running crawl continues.
#[utoipa::path(post, path = "/jobs/{job}/checkpoint", operation_id = "make_checkpoint", tag = "jobs", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = Checkpoint)))]
pub(crate) async fn checkpoint(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
) -> Result<Json<Checkpoint>, Problem> {
    let command = Command::Checkpoint { to: None };
    let made = daemon.one(&job, &caller, command, |answer| match answer {
        CommandResponse::Checkpoint(checkpoint) => Some(checkpoint),
        _ => None,
    });
    Ok(Json(made.await?))
}

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(Problem::failure(format!("the request panicked: {panic}"))))
}

impl Daemon {
    /// Returns `true` if a job has ever had orders.
    pub(super) fn has_orders(&self, job: &str) -> Result<bool, Problem> {
        let orders = Orders::read(&self.directory(job)?);
        Ok(orders.is_ok_and(|orders| orders.is_some()))
    }

    /// Returns `true` if a job waits for a process. If so, sets whether that process begins paused.
    fn order_awaited(&self, job: &str, is_paused: bool) -> Result<bool, Problem> {
        let directory = self.directory(job)?;
        self.order_for(job, |orders| {
            let is_awaited = orders.crawl && process::is_awaited(&directory, orders);
            if is_awaited {
                orders.paused = is_paused;
            }
            is_awaited
        })
    }

    /// Returns the daemon's information on a job. For a new job, waits until the job was examined.
    pub(crate) async fn known(&self, job: &str) -> Result<crate::overview::KnownJob, Problem> {
        self.directory(job)?;
        let mut jobs = self.jobs.subscribe();
        loop {
            if let Some(known) = jobs.borrow_and_update().get(job) {
                return Ok(known.clone());
            }
            self.supervisor_wake.notify_one();
            if jobs.changed().await.is_err() {
                return Err(Problem::failure("the daemon is ending"));
            }
            self.directory(job)?;
        }
    }
}
