//! One crawl, from a profile to closed WARC files.
//!
//! [`plan`] checks everything that can be checked without creating anything. [`Plan::begin`] makes or resumes the job.
//! [`Crawl::run`] crawls until nothing is left, a limit is reached, or a stop is requested.

// The request and its checks.
mod frozen;
mod order;
mod plan;

// A job is made or resumed.
mod begin;
mod lost;
mod seeds;

// The crawl runs.
mod beside;
mod dispatch;
mod limits;
mod workers;

// The crawl ends.
mod close;

mod error;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use opilio_archive::Repaired;
use opilio_fetch::Cut;
use opilio_frontier::Statistics;
use opilio_profile::Profile;
use opilio_sandbox::Engine;
use opilio_source::Sources;
use opilio_uri::SurtPrefixSet;
use tokio::sync::watch;

pub use error::CrawlError;
pub(crate) use frozen::{changed_profile, frozen_profile};
pub(crate) use lost::{fetch_again, fetched_again};
pub use order::{Order, ProfileSource};
pub use plan::LoadedPlugins;
pub use plan::{builtin_plugins, check_plugins, plan, settings_schemas};
pub(crate) use plan::{load, sources};
pub(crate) use seeds::{seed_candidate, seed_lines};

use crate::alerts::{AlertKind, Notifier, Severity};
use crate::context::Context;
use crate::control::{JobLog, Live, Running, Server};
use crate::handover;
use crate::observers;
use crate::progress::{Progress, Summary};
use crate::share::Share;
use crate::tables::TableKeeper;
use opilio_job::End;
use opilio_job::course::Course;
use opilio_job::directory::Job;
use opilio_stacks::Loaded;

/// A crawl that has been checked; nothing has been created yet.
pub struct Plan {
    profile: Profile,
    tables: TableKeeper,
    plugins: Loaded,
    engine: Engine,
    sources: Sources,
    directory: PathBuf,
    base: PathBuf,
    prefixes: SurtPrefixSet,
    /// Contact URL given beside the profile, if it differs from the job's.
    contact_url: Option<String>,
    notes: Vec<String>,
}

/// A crawl that is ready to run.
pub struct Crawl {
    context: Arc<Context>,
    job: Arc<Job>,
    repaired: Vec<Repaired>,
    stop: Stop,
    live: Arc<Live>,
    log: Arc<JobLog>,
    /// Notes that the operator got before the start, for `job.log`.
    notes: Vec<String>,
    began: Instant,
    /// The frontier's statistics at the start. Limits count from there.
    baseline: Statistics,
    course: Arc<Mutex<Course>>,
}

/// Asks a crawl to stop. Clones ask the same crawl.
#[derive(Clone, Debug)]
pub struct Stop {
    reason: Arc<watch::Sender<Option<End>>>,
    cut: Cut,
}

/// Shows a crawl while it runs. Clones show the same crawl.
#[derive(Clone)]
pub struct View {
    context: Arc<Context>,
    began: Instant,
}

impl Crawl {
    /// Crawls until nothing is left, a limit is reached, or [`Stop::stop`] is called; then closes the archive.
    pub async fn run(self) -> Summary {
        let watching = observers::start(&self.context, self.job.directory(), &self.stop);
        let watching = watching.map_err(|problem| {
            let problem = format!("cannot read an observer's memory: {problem}");
            self.stop.end(End::Halted(problem));
        });
        let server = self.take_commands();
        self.log_begin();
        self.start_notifier();
        // Tasks beside the dispatcher end when `running` is dropped.
        let (running, ended) = watch::channel(());
        let beside = beside::start(&self, &ended);

        let end = match self.dispatch().await {
            Ok(end) => end,
            Err(halt) => End::Halted(halt.told()),
        };

        // A plugin replacement that is requested now gets an error.
        self.context.workshop.engine.stop_compiling();
        self.tell_halt(&end);
        if let Some(server) = server {
            server.close().await;
        }
        if let Ok(watching) = watching {
            watching.finish(&self.context.observers).await;
        }
        drop(running);
        for task in beside {
            if let Err(panic) = task.await {
                tracing::error!("{panic}");
            }
        }
        let context = self.context.clone();
        let summary = self.close(end);
        handover::finish(&context).await;
        let notifier = context
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(notifier) = notifier {
            notifier.finish().await;
        }
        summary
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the WARC files that a killed process had left open, and what became of them.
    pub fn repaired(&self) -> &[Repaired] {
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
        let throttle = self.context.fetchers.base().throttle();
        throttle.allow(share.allowance());
    }

    /// Returns a handle that shows the crawl.
    pub fn view(&self) -> View {
        View {
            context: self.context.clone(),
            began: self.began,
        }
    }

    /// Starts to take operators' commands. If that fails, the crawl runs without them.
    fn take_commands(&self) -> Option<Server> {
        Server::start(self.running())
            .inspect_err(|problem| tracing::warn!("the crawl cannot accept commands: {problem}"))
            .ok()
    }

    /// Returns the crawl as commands see it.
    fn running(&self) -> Running {
        Running {
            context: self.context.clone(),
            live: self.live.clone(),
            stop: self.stop.clone(),
            view: self.view(),
            // The client may have another working directory.
            job: std::path::absolute(self.job.directory())
                .unwrap_or_else(|_| self.job.directory().to_owned()),
            log: self.log.clone(),
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

    /// Starts to send alerts, and clears the alert of an earlier halt.
    fn start_notifier(&self) {
        let notifier = Notifier::start(&self.context.job);
        *self
            .context
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(notifier);
        self.context.clear(AlertKind::Halted, "");
    }

    fn tell_halt(&self, end: &End) {
        if let End::Halted(why) = end {
            let why = format!("the crawl stopped: {why}");
            self.context
                .raise(AlertKind::Halted, "", Severity::Critical, &why);
        }
    }
}

impl Stop {
    /// Stops the crawl: no visit begins any more, and fetches in flight finish.
    pub fn stop(&self) {
        self.end(End::Stopped);
    }

    /// Stops the crawl as [`Stop::stop`] does, for the system and not for an operator. The program that supervises the job
    /// restarts it.
    pub fn terminate(&self) {
        self.end(End::Terminated);
    }

    /// Stops the crawl without waiting for fetches in flight. Responses that have begun are archived as truncated. URIs without a
    /// response are fetched when the crawl is resumed.
    pub fn cut(&self) {
        self.end(End::Stopped);
        self.cut.now();
    }

    /// Whether a stop has been requested.
    pub(crate) fn is_asked(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// Ends the crawl for this reason, unless there is an earlier one.
    pub(crate) fn end(&self, end: End) {
        self.reason.send_if_modified(|reason| {
            let first = reason.is_none();
            reason.get_or_insert(end);
            first
        });
    }
}

impl View {
    /// Returns the progress of the crawl as it is now.
    pub fn progress(&self) -> Progress {
        let counters = &self.context.counters;
        let tallies = self
            .context
            .tallies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut busiest: Vec<_> = tallies
            .iter()
            .map(|(queue, tally)| (queue.clone(), *tally))
            .collect();
        drop(tallies);
        busiest.sort_by(|(a, one), (b, other)| other.uris.cmp(&one.uris).then_with(|| a.cmp(b)));
        busiest.truncate(10);
        Progress {
            elapsed: self.began.elapsed(),
            statistics: self.context.frontier().statistics(),
            uris: counters.lines.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            faults: counters.faults.load(Ordering::Relaxed),
            out_of_scope: counters.out_of_scope.load(Ordering::Relaxed),
            alerts: self.context.board.active(),
            busiest,
        }
    }
}
