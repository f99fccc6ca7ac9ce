//! Work that is done every second while a crawl runs: counters are sampled, counts are stored, alerts are raised and cleared, and
//! progress is logged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::context::CrawlContext;
use crate::progress_log::{self, ProgressLog};
use crate::stop::Stop;
use opilio_job::alerts::{self, AlertAction, Measurements, Watch};
use opilio_job::events::Occurrence;
use opilio_job::handover::only_in_store;
use opilio_job::job_state::JobState;
use opilio_job::series::Sample;

/// Time between two rounds of this work.
const TICK: Duration = Duration::from_secs(1);
/// Interval at which counts are stored. They are stored earlier if many have changed.
const STORE_EVERY: Duration = Duration::from_secs(5);
/// Interval at which the time series is written. A crash loses the samples of this interval.
const WRITE_EVERY: Duration = Duration::from_secs(600);

/// Interval at which finished archive files are added to catalogues, and the maximum of files at a time. 100,000 files of an
/// existing folder are added within a day.
const CATALOGUE_EVERY: Duration = Duration::from_secs(300);
const CATALOGUED_MAX: usize = 512;

/// State that is kept from one second to the next.
struct Housekeeping {
    context: Arc<CrawlContext>,
    stop: Stop,
    job: PathBuf,
    folders: Vec<PathBuf>,
    watch: Watch,
    progress: ProgressLog,
    first: Option<Sample>,
    stored: Instant,
    written: Instant,
    catalogued: Option<Instant>,
    cataloguing: Option<thread::JoinHandle<()>>,
    logged: Option<Instant>,
    /// State of the crawl at the last tick.
    state: Option<JobState>,
}

/// Does the work every second until the crawl ends.
pub(crate) async fn run(
    context: Arc<CrawlContext>,
    stop: Stop,
    job: PathBuf,
    began: Instant,
    mut ended: watch::Receiver<()>,
) {
    let mut housekeeping = Housekeeping::new(context, stop, job, began);
    loop {
        let ticked = tokio::task::spawn_blocking(move || {
            housekeeping.tick();
            housekeeping
        });
        housekeeping = match ticked.await {
            Ok(housekeeping) => housekeeping,
            Err(panic) => return tracing::error!("{panic}"),
        };
        // Resolves when the sender is dropped.
        if tokio::time::timeout(TICK, ended.changed()).await.is_ok() {
            housekeeping.end();
            return;
        }
    }
}

/// Stores counts and time series after the last fetch.
pub(crate) fn finish(context: &CrawlContext, job: &Path) {
    if let Err(problem) = context.figures.ledger.store(&context.frontier) {
        tracing::error!("{}", opilio_stacks::chain(&problem));
    }
    if let Err(problem) = context.figures.series.write(job) {
        tracing::error!("cannot write the progress of the crawl: {problem}");
    }
}

impl Housekeeping {
    fn new(context: Arc<CrawlContext>, stop: Stop, job: PathBuf, began: Instant) -> Housekeeping {
        let profile = &context.profile;
        let archive = &profile.archive;
        let more = archive.more_directories.iter();
        let folders = more.chain([&archive.directory, &profile.logs.directory]);
        let mut folders: Vec<PathBuf> = folders.map(|folder| job.join(folder)).collect();
        folders.push(job.clone());
        Housekeeping {
            watch: Watch::new(profile.alerts.clone(), &context.alerts.board.active()),
            folders,
            progress: ProgressLog::new(began),
            first: None,
            stored: began,
            written: began,
            catalogued: None,
            cataloguing: None,
            logged: None,
            state: None,
            context,
            stop,
            job,
        }
    }

    fn tick(&mut self) {
        let now = Timestamp::now();
        let sample = self.context.sample(now);
        self.context.figures.series.push(sample.clone());
        self.send_state();
        self.update_alerts(&sample, now);
        self.log(&sample);
        self.catalogue();
        let context = &self.context;
        if self.stored.elapsed() >= STORE_EVERY || context.figures.ledger.is_full() {
            self.stored = Instant::now();
            if let Err(problem) = context.figures.ledger.store(&context.frontier) {
                tracing::error!("{}", opilio_stacks::chain(&problem));
            }
        }
        if self.written.elapsed() >= WRITE_EVERY {
            self.written = Instant::now();
            if let Err(problem) = context.figures.series.write(&self.job) {
                tracing::error!("cannot write the progress of the crawl: {problem}");
            }
        }
    }

    /// Sends an event when the crawl has another state.
    fn send_state(&mut self) {
        let state = match self.stop.is_requested() {
            true => JobState::Ending,
            false => self.context.live.crawl_state(),
        };
        if self.state.replace(state) != Some(state) {
            self.context.send_event(|| Occurrence::Job {
                state: state.name().to_owned(),
                reason: None,
            });
        }
    }

    /// Updates the archive's catalogues with its files, on a thread of its own.
    fn catalogue(&mut self) {
        let is_due = self
            .catalogued
            .is_none_or(|at| at.elapsed() >= CATALOGUE_EVERY);
        let is_at_it = self
            .cataloguing
            .as_ref()
            .is_some_and(|it| !it.is_finished());
        if !self.context.profile.archive.index || !is_due || is_at_it {
            return;
        }
        self.catalogued = Some(Instant::now());
        let archive = &self.context.profile.archive;
        let directories = archive.more_directories.iter().chain([&archive.directory]);
        let directories: Vec<_> = directories.map(|folder| self.job.join(folder)).collect();
        let job = self.job.clone();
        // The end of the crawl does not wait for the thread: a half-written catalogue is never used.
        let begun = thread::Builder::new().name("catalogue".to_owned());
        let begun = begun.spawn(move || {
            let moved = only_in_store(&job).unwrap_or_else(|problem| {
                tracing::warn!("look-ups take longer: cannot read handed-over.jsonl: {problem}");
                Vec::new()
            });
            let moved: Vec<_> = moved.iter().map(|file| file.path(&job)).collect();
            for directory in directories {
                if let Err(problem) = opilio_archive::complete_indexes(&directory, CATALOGUED_MAX) {
                    tracing::warn!("cannot index an archive file: {problem}");
                }
                if let Err(problem) = opilio_archive::catalogue(&directory, &moved, CATALOGUED_MAX)
                {
                    let directory = directory.display();
                    tracing::warn!("look-ups in {directory} take longer: {problem}");
                }
            }
        });
        self.cataloguing = begun.ok();
    }

    /// Takes the last sample, and writes the last line of the log.
    fn end(&mut self) {
        let sample = self.context.sample(Timestamp::now());
        self.context.figures.series.push(sample.clone());
        self.logged = None;
        self.log(&sample);
    }

    fn update_alerts(&mut self, sample: &Sample, now: Timestamp) {
        let context = &self.context;
        let first = self.first.get_or_insert_with(|| sample.clone());
        let alerts = context.current().alerts.clone();
        let then = context.figures.series.before(now - alerts.window);
        self.watch.set_limits(alerts);
        let then = then.filter(|then| then.at > first.at);
        let census = context.figures.census.get();
        let state = context.live.crawl_state();
        let waits_until = context.live.waits_until();
        let part = context.membership.as_ref().and_then(|it| it.status());
        let seen = Measurements {
            at: now,
            instant: Instant::now(),
            rooms: alerts::free_space_of_disks(self.folders.iter().map(PathBuf::as_path)),
            now: sample,
            then: then.as_ref().unwrap_or(first),
            queues: census.queues.as_ref(),
            failing: context.figures.failing_queue(),
            rendered: context.network.browsers.board.figures().rendered_pages(),
            part: part.as_ref(),
            holds: state != JobState::Running || self.stop.is_requested(),
            holds_everywhere: context.live.is_paused_everywhere() || self.stop.is_requested(),
            waits_until,
            is_overlong: waits_until.is_some_and(|until| context.is_overlong(until, now)),
        };
        for act in self.watch.evaluate(&seen) {
            match act {
                AlertAction::Raise(kind, subject, severity, message) => {
                    context.raise(kind, &subject, severity, &message);
                }
                AlertAction::Clear(kind, subject) => context.clear(kind, &subject),
                AlertAction::Pause(why) => {
                    if context.live.pause(true) {
                        context.job_log.crawl("pause", &format!("pausing: {why}"));
                    }
                }
                AlertAction::Resume => {
                    if context.live.pause(false) {
                        context
                            .job_log
                            .crawl("resume", "free space on the disk again");
                    }
                }
            }
        }
        context.expire_alerts(now);
    }

    fn log(&mut self, sample: &Sample) {
        let context = &self.context;
        let every = context.profile.logs.progress_interval;
        if self.logged.is_some_and(|logged| logged.elapsed() < every) {
            return;
        }
        self.logged = Some(Instant::now());
        let line = self.progress.line(sample, context);
        if let Err(problem) = context.outputs.logs.progress(&progress_log::names(), &line) {
            tracing::error!("cannot write progress-statistics.log: {problem}");
        }
    }
}

impl CrawlContext {
    /// Returns `true` if the crawl waits until the time `until` because of overlong waits
    /// ([`opilio_frontier::Frontier::overlong_until`]).
    fn is_overlong(&self, until: Timestamp, now: Timestamp) -> bool {
        if until <= now + alerts::WAIT_MIN {
            return false;
        }
        let overlong = self.frontier().overlong_until(now);
        overlong.is_ok_and(|overlong| overlong.is_some())
    }

    /// Returns a sample of the crawl as it is now.
    pub(crate) fn sample(&self, at: Timestamp) -> Sample {
        let statistics = self.frontier().statistics();
        let totals = self.figures.ledger.totals();
        let faults =
            self.figures.faults_before + self.figures.counters.faults.load(Ordering::Relaxed);
        let queues = self.figures.census.get().queues.map(|queues| queues.states);
        Sample::new(&statistics, &totals, faults, queues, at)
    }
}
