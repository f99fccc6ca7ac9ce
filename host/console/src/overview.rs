//! The overview of all jobs, refreshed once a second for all its readers.
//!
//! The state of jobs without a process is read from their files, again after each change. Only running jobs are asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use opilio_control::figures::content_bytes;
use opilio_control::{
    Author, Command, CommandRequest, CommandResponse, JobState, Status, carry_out, chain,
};
use opilio_crawl::{
    Alert, JobError, JobOrigin, JobPart, ProcessRecord, Share, kept_alerts, origin_of_job,
};
use serde::Serialize;
use tokio::task::JoinSet;
use utoipa::ToSchema;

use crate::clock::Clock;
use crate::folder::Folder;
use crate::is_supervised;
use crate::orders::Orders;
use crate::process::{Alive, is_alive, may_be_on_its_way};
use crate::window::{self, Window};

/// Maximum wait for the status of a job. If a job takes longer, its last status is shown.
const PATIENCE: Duration = Duration::from_secs(3);

/// Minimum time over which a rate is computed, so that rates do not jump.
const RATE_SPAN: Duration = Duration::from_secs(4);

/// Overview of a job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct JobOverview {
    /// Name of the job.
    pub name: String,
    /// State of the job.
    pub state: JobState,
    /// Name of the profile.
    pub profile: Option<String>,
    /// Time at which the job was created.
    pub created: Option<Timestamp>,
    /// Time at which the job was last started.
    pub started: Option<Timestamp>,
    /// Time at which the job last ended; not set while it crawls.
    pub ended: Option<Timestamp>,
    /// Reason why the job ended or waits.
    pub ended_why: Option<String>,
    /// Number of finished visits.
    pub uris: u64,
    /// Number of queued URIs.
    pub queued: u64,
    /// Number of known URIs.
    pub discovered: u64,
    /// Bytes of content received by successful visits.
    pub bytes: u64,
    /// Visits finished per second, over the last seconds.
    pub uris_per_second: f64,
    /// Bytes received per second, over the last seconds.
    pub bytes_per_second: f64,
    /// Number of active alerts that are not acknowledged. For a job that is not running: those at its last crawl.
    pub alerts: u64,
    /// Crawl window of the job; not set: always.
    pub schedule: Option<String>,
    /// Number of times in a row that the process died.
    pub deaths: u32,
    /// Name of the crawl in the cluster; not set if the job runs on this machine alone.
    pub cluster_job: Option<String>,
    /// Share of the bandwidth and connections of all jobs; not set while the job does not crawl, or if nothing is divided.
    pub share: Option<Share>,
}

/// The daemon's information on a job.
#[derive(Clone, Debug)]
pub(crate) struct KnownJob {
    pub directory: PathBuf,
    pub overview: JobOverview,
    pub alive: Alive,
    pub process_record: Option<ProcessRecord>,
    pub orders: Option<Orders>,
    /// Status of a running job.
    pub status: Option<Arc<Status>>,
}

/// All jobs, by name.
pub(crate) type Jobs = BTreeMap<String, KnownJob>;

/// Examines the jobs of a folder periodically.
pub(crate) struct Watcher {
    folder: Folder,
    /// Crawl windows; `None` outside a daemon, because only the daemon has them.
    windows: Option<Arc<Vec<Window>>>,
    /// Free space below which no job is started.
    disk_free: Option<u64>,
    clock: Clock,
    read: BTreeMap<String, JobFiles>,
    /// Error of the last examination of the folder.
    problem: Option<String>,
}

/// Age of a file's time from which a further write is sure to change it. The clock ticks of file systems are milliseconds to two
/// seconds long.
const SETTLED: Duration = Duration::from_secs(3);

/// Reason for which a job does not start, besides pauses and the maximum number of concurrent crawls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartBlocker {
    Nothing,
    Window,
    Disk,
    /// Not known to this process.
    Unknown,
}

/// The time of a file's last write.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    written: SystemTime,
    /// `true` if the time is so old that a further write is sure to change it.
    is_settled: bool,
}

/// Contents of a job's files, with the times of their last writes.
#[derive(Clone, Default)]
struct JobFiles {
    stamps: [Option<Stamp>; 5],
    made: Option<JobOrigin>,
    part: Option<JobPart>,
    /// The error of each file.
    problems: [Option<String>; 3],
    process_record: Option<ProcessRecord>,
    orders: Option<Orders>,
    /// Number of alerts stored by its last process.
    alerts: u64,
    status: Option<Arc<Status>>,
    /// Process, time, URIs and bytes at an earlier examination, from which rates are computed.
    before: Option<(u32, Instant, u64, u64)>,
    rates: (f64, f64),
}

impl Watcher {
    pub(crate) fn new(
        folder: Folder,
        windows: Option<Arc<Vec<Window>>>,
        disk_free: Option<u64>,
        clock: Clock,
    ) -> Watcher {
        Watcher {
            folder,
            windows,
            disk_free,
            clock,
            read: BTreeMap::new(),
            problem: None,
        }
    }

    /// Returns the error of the last examination of the folder of jobs; `None` if it succeeded.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Examines all jobs.
    pub(crate) async fn look(&mut self) -> Jobs {
        let (folder, mut before) = (self.folder.clone(), std::mem::take(&mut self.read));
        let examined = tokio::task::spawn_blocking(move || {
            let (names, problem) = match folder.names() {
                Ok(names) => (names, None),
                Err(problem) => (Vec::new(), Some(chain(&problem))),
            };
            let read = names.into_iter().map(|name| {
                let directory = folder.path().join(&name);
                let mut read = before.remove(&name).unwrap_or_default();
                read.read_changed_files(&directory);
                let alive = is_alive(
                    &directory,
                    read.orders.as_ref(),
                    read.process_record.as_ref(),
                )
                .unwrap_or(Alive::No);
                (name, (directory, read, alive))
            });
            (read.collect::<BTreeMap<_, _>>(), problem)
        });
        let (mut examined, problem) = examined
            .await
            .unwrap_or_else(|panic| (BTreeMap::new(), Some(panic.to_string())));
        // Logged once, not at every examination.
        if let Some(problem) = problem
            .as_ref()
            .filter(|it| self.problem.as_ref() != Some(it))
        {
            tracing::error!("cannot read the folder of jobs, so no job is managed: {problem}");
        }
        self.problem = problem;
        let mut asking = JoinSet::new();
        for (name, (directory, _, alive)) in &examined {
            if *alive == Alive::Yes {
                let (name, directory) = (name.clone(), directory.clone());
                asking.spawn(async move {
                    let asked = tokio::task::spawn_blocking(move || status_of(&directory));
                    let status = tokio::time::timeout(PATIENCE, asked).await;
                    (name, status.ok().and_then(Result::ok).flatten())
                });
            }
        }
        let mut statuses = BTreeMap::new();
        while let Some(Ok((name, status))) = asking.join_next().await {
            statuses.insert(name, status);
        }
        let now = self.clock.now();
        let is_disk_low = is_disk_low(self.folder.path(), self.disk_free);
        let mut jobs = Jobs::new();
        for (name, (directory, read, alive)) in &mut examined {
            match (*alive, statuses.remove(name).flatten()) {
                (Alive::Yes, Some(status)) => read.record_status(status),
                (Alive::Yes, None) => {}
                // `before` is kept: earlier answers of the process show that it has begun.
                (Alive::Silent, _) => (read.status, read.rates) = (None, (0.0, 0.0)),
                _ => (read.status, read.before, read.rates) = (None, None, (0.0, 0.0)),
            }
            let holds = match &self.windows {
                None => StartBlocker::Unknown,
                Some(windows) if !window::is_open(windows, name, now) => StartBlocker::Window,
                Some(_) if is_disk_low => StartBlocker::Disk,
                Some(_) => StartBlocker::Nothing,
            };
            let windows = self.windows.as_deref().map_or(&[][..], Vec::as_slice);
            let overview = read.overview(name, *alive, windows, holds);
            let known = KnownJob {
                directory: directory.clone(),
                overview,
                alive: *alive,
                process_record: read.process_record.clone(),
                orders: read.orders.clone(),
                status: read.status.clone(),
            };
            jobs.insert(name.clone(), known);
        }
        self.read = examined
            .into_iter()
            .map(|(name, (_, read, _))| (name, read))
            .collect();
        jobs
    }
}

impl JobFiles {
    /// Reads the files that have changed since they were last read.
    fn read_changed_files(&mut self, directory: &Path) {
        let now = SystemTime::now();
        let stamp = |file: &str| {
            let metadata = fs::metadata(directory.join(file)).ok()?;
            let written = metadata.modified().ok()?;
            let age = now.duration_since(written);
            Some(Stamp {
                written,
                is_settled: age.is_ok_and(|age| age > SETTLED),
            })
        };
        let stamps = [
            stamp("job.json"),
            stamp("process.json"),
            stamp("orders.json"),
            stamp("alerts.json"),
            stamp("cluster.json"),
        ];
        let is_old = |at: usize| {
            let may_change = stamps[at].is_some_and(|stamp| !stamp.is_settled);
            may_change || stamps[at] != self.stamps[at]
        };
        let [of_job, of_process, of_orders] = &mut self.problems;
        if is_old(0) {
            *of_job = None;
            self.made = origin_of_job(directory)
                .map_err(|problem| *of_job = Some(unreadable(&problem)))
                .ok();
        }
        if is_old(1) {
            *of_process = None;
            self.process_record = ProcessRecord::read(directory).unwrap_or_else(|source| {
                *of_process = Some(format!(
                    "process.json is damaged: {source}; remove it, then resume the job"
                ));
                None
            });
        }
        if is_old(2) {
            *of_orders = None;
            self.orders = Orders::read(directory).unwrap_or_else(|source| {
                *of_orders = Some(format!(
                    "orders.json is damaged: {source}; remove it, then start the job if it should crawl"
                ));
                None
            });
        }
        if is_old(3) {
            // A damaged file of alerts is replaced when the job resumes, and is not an error of the job.
            let kept = kept_alerts(directory).unwrap_or_default();
            self.alerts = open(&kept);
        }
        if is_old(4) {
            self.part = JobPart::read(directory).ok().flatten();
        }
        self.stamps = stamps;
    }

    fn record_status(&mut self, status: Status) {
        let (pid, now) = (status.pid.unwrap_or_default(), Instant::now());
        match self.before {
            Some((before, at, uris, bytes)) if before == pid => {
                let span = now - at;
                if span >= RATE_SPAN {
                    let span = span.as_secs_f64();
                    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / span;
                    self.rates = (rate(status.uris, uris), rate(status.bytes, bytes));
                    self.before = Some((pid, now, status.uris, status.bytes));
                }
            }
            _ => {
                self.before = Some((pid, now, status.uris, status.bytes));
                self.rates = (0.0, 0.0);
            }
        }
        self.status = Some(Arc::new(status));
    }

    fn overview(
        &self,
        name: &str,
        alive: Alive,
        windows: &[Window],
        holds: StartBlocker,
    ) -> JobOverview {
        let process_record = self.process_record.as_ref();
        let statistics = match &self.status {
            Some(status) => status.statistics,
            None => process_record
                .map(|process_record| process_record.statistics)
                .unwrap_or_default(),
        };
        let ended = process_record.and_then(|process_record| process_record.ended.as_ref());
        let schedule = window::words(windows, name);
        let (state, why) = self.state(alive, holds);
        let is_over = alive == Alive::No;
        JobOverview {
            name: name.to_owned(),
            state,
            profile: self.made.as_ref().map(|made| made.profile.clone()),
            created: self.made.as_ref().map(|made| made.at),
            started: process_record.map(|process_record| process_record.began),
            ended: ended.filter(|_| is_over).map(|ended| ended.at),
            ended_why: why,
            uris: statistics.finished(),
            queued: statistics.queued,
            discovered: statistics.discovered,
            bytes: content_bytes(&statistics),
            uris_per_second: self.rates.0,
            bytes_per_second: self.rates.1,
            alerts: self
                .status
                .as_ref()
                .map_or(self.alerts, |status| open(&status.alerts)),
            schedule,
            deaths: self.orders.as_ref().map_or(0, |orders| orders.deaths),
            cluster_job: self.part.as_ref().map(|part| part.job.clone()),
            share: self
                .status
                .as_ref()
                .map(|status| status.share)
                .filter(|share| *share != Share::default()),
        }
    }

    /// Returns `true` if a process that accepts no commands has answered before, or has recorded its end.
    fn is_ending(&self) -> bool {
        self.process_record.as_ref().is_some_and(|process_record| {
            let is_new = |orders: &Orders| orders.begun > Some(process_record.began);
            let was_asked = self
                .before
                .is_some_and(|(pid, ..)| pid == process_record.pid);
            !self.orders.as_ref().is_some_and(is_new)
                && (was_asked || process_record.ended.is_some())
        })
    }

    fn is_stop_pending(&self) -> bool {
        self.orders.as_ref().is_some_and(|it| it.stop_pending)
    }

    fn state(&self, alive: Alive, holds: StartBlocker) -> (JobState, Option<String>) {
        if let Some(problem) = self.problems.iter().flatten().next() {
            return (JobState::Damaged, Some(problem.clone()));
        }
        match (alive, &self.status) {
            (Alive::Yes, Some(status)) => {
                let state = status.state;
                let closed = self.orders.as_ref().is_some_and(|it| it.window_closed);
                // A job that runs without the daemon does not depend on the window.
                let waits = closed && state != JobState::Running;
                let why = waits.then(|| "the crawl window is closed".to_owned());
                return (state, why);
            }
            (Alive::Silent, _) if self.is_ending() => return (JobState::Ending, None),
            (Alive::Yes | Alive::Silent, _) if self.is_stop_pending() => return stops(),
            (Alive::Yes | Alive::Silent, _) => return (JobState::Starting, None),
            (Alive::No, _) => {}
        }
        let ended = self
            .process_record
            .as_ref()
            .and_then(|process_record| process_record.ended.as_ref());
        if let Some(orders) = &self.orders {
            if let Some(why) = &orders.gave_up {
                return (JobState::Failed, Some(why.clone()));
            }
            // The record of the process is used only if that process began after the order. The supervisor may notice its death
            // later.
            let process_record = self.process_record.as_ref();
            let has_begun =
                |begun| process_record.is_some_and(|process_record| process_record.began >= begun);
            match orders.begun {
                Some(begun) if orders.crawl && has_begun(begun) && ended.is_none() => {
                    return (JobState::Waiting, Some("the process died".to_owned()));
                }
                // After that time the process counts as ended, even if no daemon records it.
                Some(begun)
                    if orders.stop_pending
                        && !has_begun(begun)
                        && may_be_on_its_way(begun, Timestamp::now()) =>
                {
                    return stops();
                }
                Some(begun) if orders.crawl && !has_begun(begun) => {
                    return (JobState::Starting, Some(format!("started at {begun:.0}")));
                }
                None if orders.crawl => {
                    return (JobState::Waiting, Some(waits(orders, holds)));
                }
                _ => {}
            }
        }
        let state = JobState::without_process(self.process_record.as_ref());
        let why = match state {
            JobState::Crashed => Some("the process died; start the job to resume it".to_owned()),
            _ => ended.map(|ended| ended.why.clone()),
        };
        (state, why)
    }
}

/// Returns the state of a job that was stopped while its process was starting.
fn stops() -> (JobState, Option<String>) {
    let why = "the job stops as soon as its process accepts commands";
    (JobState::Ending, Some(why.to_owned()))
}

/// Formats the error in a job's `job.json`, with advice.
fn unreadable(problem: &JobError) -> String {
    let message = chain(problem);
    match problem {
        JobError::Damaged { .. } => {
            format!(
                "{message}; restore the file, or create a job from a checkpoint with `opilio job restore CHECKPOINT JOB`"
            )
        }
        _ => message,
    }
}

/// Returns the number of active alerts that are not acknowledged.
fn open(alerts: &[Alert]) -> u64 {
    alerts.iter().filter(|alert| alert.is_open()).count() as u64
}

/// Returns the reason for which an ordered job waits.
fn waits(orders: &Orders, holds: StartBlocker) -> String {
    if let Some(at) = orders.start_at.filter(|at| *at > Timestamp::now()) {
        return format!("the job starts at {at:.0}");
    }
    match (orders.not_before, orders.deaths) {
        (Some(at), 1) if at > Timestamp::now() => {
            format!("the process died; restart at {at:.0}")
        }
        (Some(at), deaths) if at > Timestamp::now() => {
            format!("the process died {deaths} times in a row; restart at {at:.0}")
        }
        _ if holds == StartBlocker::Window => "the crawl window is closed".to_owned(),
        _ if holds == StartBlocker::Disk => "the disk is nearly full (limits.disk-free)".to_owned(),
        _ if holds == StartBlocker::Unknown => {
            "waiting for a free place among the concurrent crawls, or for the crawl window"
                .to_owned()
        }
        _ => "waiting for a free place among the concurrent crawls".to_owned(),
    }
}

/// Returns `true` if there is less free space than wanted, as far as the system reports it.
pub(crate) fn is_disk_low(folder: &Path, wanted: Option<u64>) -> bool {
    let free = opilio_crawl::free_space(folder);
    matches!((wanted, free), (Some(wanted), Some(free)) if free < wanted)
}

/// Asks a running job for its status.
fn status_of(directory: &Path) -> Option<Status> {
    let request = CommandRequest {
        by: Author {
            user: "daemon".to_owned(),
            pid: std::process::id(),
        },
        command: Command::Status,
        only_here: true,
    };
    let mut found = None;
    let asked = carry_out(directory, &request, &mut |answer| {
        if let CommandResponse::Status(status) = answer {
            found = Some(*status);
        }
        true
    });
    asked.ok()?;
    found.filter(|status| status.pid.is_some())
}

/// Returns the current overview of all jobs of a folder.
pub async fn job_overviews(folder: &Folder) -> Vec<JobOverview> {
    let jobs = Watcher::new(folder.clone(), None, None, Clock::default())
        .look()
        .await;
    let mut jobs: Vec<_> = jobs.into_values().map(|known| known.overview).collect();
    if !is_supervised(folder.path()) {
        // Without a daemon no job is started or restarted.
        let waiting = |job: &&mut JobOverview| job.state == JobState::Waiting;
        for job in jobs.iter_mut().filter(waiting) {
            job.ended_why = Some("waiting for the daemon; start it with opilio serve".to_owned());
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pause and its end within one tick of the file system's clock.
    #[test]
    fn files_that_change_twice_within_a_clock_tick_are_read_twice() {
        let dir = tempfile::tempdir().unwrap();
        let moment = SystemTime::now();
        let mut read = JobFiles::default();
        for is_paused in [true, false, true] {
            let mut orders = Orders::new(true, "ada");
            orders.paused = is_paused;
            orders.write(dir.path()).unwrap();
            let file = fs::File::options()
                .write(true)
                .open(dir.path().join("orders.json"));
            file.unwrap().set_modified(moment).unwrap();
            read.read_changed_files(dir.path());
            assert_eq!(read.orders.as_ref().map(|it| it.paused), Some(is_paused));
        }
    }

    #[test]
    fn a_job_stopped_while_starting_is_ending_for_a_limited_time() {
        let state = |alive, begun: Option<Timestamp>| {
            let mut orders = Orders::new(false, "ada");
            orders.stop_pending = true;
            orders.begun = begun;
            let files = JobFiles {
                orders: Some(orders),
                ..JobFiles::default()
            };
            files.state(alive, StartBlocker::Nothing).0
        };
        let now = Some(Timestamp::now());
        assert_eq!(state(Alive::No, now), JobState::Ending);
        assert_eq!(state(Alive::Silent, now), JobState::Ending);
        // The process has not locked its job, and no daemon has recorded this.
        let long_ago = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(state(Alive::No, long_ago), JobState::New);
        assert_eq!(state(Alive::No, None), JobState::New);
    }
}
