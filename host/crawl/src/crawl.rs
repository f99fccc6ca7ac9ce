//! One crawl, from a profile to closed WARC files.
//!
//! [`plan`] checks everything that can be checked without creating anything. [`Plan::begin`] makes or resumes the job.
//! [`Crawl::run`] takes operators' commands (`control`) and crawls until nothing is left, a limit is reached, or a stop is
//! requested.

// The request and its checks.
mod order;
mod plan;
mod sharing;

// A job is made or resumed.
mod begin;
mod lost_captures;
mod seeds;

// The crawl runs.
mod background_tasks;
mod census;
mod dispatch;
mod handing_over;
mod limit_shares;
mod limits;
mod links_between_nodes;
mod observe;
mod part_figures;
mod part_status;
mod workers;

// The crawl ends.
mod close;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use opilio_archive::RepairedFile;
use opilio_frontier::Statistics;
use opilio_profile::Profile;
use opilio_sandbox::Engine;
use opilio_source::Sources;
use opilio_uri::SurtPrefixSet;
use tokio::sync::watch;

pub use close::EndedCrawl;
pub use lost_captures::{fetch_again, fetched_again};
pub use order::{NamedProfile, Order, ProfileSource};
pub use plan::plan;
pub use seeds::{seed_candidate, seed_lines};

use crate::context::CrawlContext;
use crate::live::Live;
use crate::membership::JobMembership;
use crate::stop::Stop;
use crate::tables::TableKeeper;
use opilio_job::End;
use opilio_job::alerts::{AlertKind, Notifier, Severity};
use opilio_job::directory::{Job, ProfileOrigin};
use opilio_job::events::Events;
use opilio_job::fetched_files::FetchedFiles;
use opilio_job::job_log::JobLog;
use opilio_job::job_state::JobState;
use opilio_job::process_record::ProcessRecord;
use opilio_job::progress::Progress;
use opilio_job::queue_tally::QueueTally;
use opilio_job::share::Share;
use opilio_stacks::Loaded;

/// A crawl after the checks. Nothing has been created yet.
pub struct Plan {
    profile: Profile,
    tables: TableKeeper,
    plugins: Loaded,
    engine: Engine,
    sources: Sources,
    directory: PathBuf,
    base: PathBuf,
    /// The named profile, for a job that is made.
    origin: Option<ProfileOrigin>,
    prefixes: SurtPrefixSet,
    /// Contact URL given in addition to the profile, if it differs from the job's.
    contact_url: Option<String>,
    notes: Vec<String>,
    /// Copies of files that the profile names, for a job whose profile was fetched from the cluster.
    fetched: Option<FetchedFiles>,
    /// The membership in a job that several nodes share.
    membership: Option<JobMembership>,
}

/// A crawl that is ready to run.
pub struct Crawl {
    context: Arc<CrawlContext>,
    job: Arc<Job>,
    repaired: Vec<RepairedFile>,
    stop: Stop,
    live: Arc<Live>,
    log: Arc<JobLog>,
    /// Notes that were shown to the operator before the start, for `job.log`.
    notes: Vec<String>,
    began: Instant,
    /// The frontier's statistics at the start of this process. Its limits count from there.
    baseline: Statistics,
    process_record: Arc<Mutex<ProcessRecord>>,
}

/// A view of a crawl while it runs. Clones show the same crawl.
#[derive(Clone)]
pub struct CrawlView {
    context: Arc<CrawlContext>,
    stop: Stop,
    live: Arc<Live>,
    began: Instant,
}

impl Crawl {
    /// Crawls until nothing is left, a limit is reached, or [`Stop::stop`] is called.
    pub async fn crawl(self) -> EndedCrawl {
        let watching = observe::start(&self.context, self.job.directory(), &self.stop);
        let watching = watching.map_err(|problem| {
            let problem = format!("cannot read an observer's memory: {problem}");
            self.stop.end(End::Halted(problem));
        });
        self.log_begin();
        self.start_notifier();
        // Background tasks end when `running` is dropped.
        let (running, ended) = watch::channel(());
        let beside = background_tasks::start(&self, &ended);
        let handing_over = background_tasks::start_handovers(&self, &ended);

        let end = match self.dispatch().await {
            Ok(end) => end,
            Err(halt) => End::Halted(halt.message()),
        };

        // A plugin replacement that is requested now gets an error.
        self.context.plugins.factory.engine.stop_compiling();
        self.raise_halt_alert(&end);
        EndedCrawl {
            crawl: self,
            end,
            watching: watching.ok(),
            running,
            beside,
            handing_over,
        }
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the WARC files that a killed process had left open, and the results of their repair.
    pub fn repaired(&self) -> &[RepairedFile] {
        &self.repaired
    }

    /// Returns a handle that stops the crawl.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Pauses the crawl: nothing is fetched until it is resumed.
    pub fn pause(&self) {
        self.live.pause(true);
    }

    /// Limits the crawl to its share of the machine's bandwidth and connections, until it gets another share.
    pub fn share(&self, share: Share) {
        let throttle = self.context.network.fetchers.base().throttle();
        throttle.allow(share.allowance());
    }

    /// Returns the state that all URIs of the crawl share.
    pub fn context(&self) -> &Arc<CrawlContext> {
        &self.context
    }

    /// Returns a handle that shows the crawl.
    pub fn view(&self) -> CrawlView {
        CrawlView {
            context: self.context.clone(),
            stop: self.stop.clone(),
            live: self.live.clone(),
            began: self.began,
        }
    }

    fn log_begin(&self) {
        let words = match self.baseline.discovered {
            0 => "new job",
            _ => "resumed",
        };
        self.log.crawl("begin", words);
        for note in &self.notes {
            self.log.crawl("note", note);
        }
    }

    /// Starts to send alerts and events, and clears the alert of an earlier halt.
    fn start_notifier(&self) {
        let notifier = Notifier::start(&self.context.job);
        *self
            .context
            .alerts
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(notifier);
        let profile = &self.context.profile;
        match Events::start(&profile.webhooks, &profile.streams) {
            // The value is set once, at the beginning.
            Ok(events) => drop(self.context.alerts.events.set(events)),
            Err(problem) => tracing::error!("cannot send events: {problem}"),
        }
        self.context.clear(AlertKind::Halted, "");
    }

    fn raise_halt_alert(&self, end: &End) {
        if let End::Halted(why) = end {
            let why = format!("the crawl stopped: {why}");
            self.context
                .raise(AlertKind::Halted, "", Severity::Critical, &why);
        }
    }
}

impl CrawlView {
    /// Returns the progress of the crawl as it is now.
    pub fn progress(&self) -> Progress {
        let figures = &self.context.figures;
        let counters = &figures.counters;
        let tallies = figures
            .tallies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut busiest: Vec<_> = tallies.iter().collect();
        busiest.sort_by(|(a, one), (b, other)| other.uris.cmp(&one.uris).then_with(|| a.cmp(b)));
        busiest.truncate(10);
        let own = |(queue, tally): (&String, &QueueTally)| (queue.clone(), tally.clone());
        let busiest = busiest.into_iter().map(own).collect();
        drop(tallies);
        let queues = figures.census.get().queues;
        let failing = queues.map_or(0, |queues| queues.failing);
        Progress {
            elapsed: self.began.elapsed(),
            state: match self.stop.is_requested() {
                true => JobState::Ending,
                false => self.live.crawl_state(),
            },
            statistics: self.context.frontier().statistics(),
            visits: figures.ledger.totals().visits(),
            uris: counters.lines.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            faults: counters.faults.load(Ordering::Relaxed),
            out_of_scope: counters.out_of_scope.load(Ordering::Relaxed),
            alerts: self.context.alerts.board.active(),
            busiest,
            failing,
            failing_queue: figures.failing_queue(),
            waits_until: self.live.waits_until(),
        }
    }
}
