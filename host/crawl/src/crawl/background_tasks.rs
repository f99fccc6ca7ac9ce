//! Background tasks of a running crawl, beside the dispatcher. Each ends when the sender of `ended` is dropped.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::spawn;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{
    Crawl, census, handing_over, limit_shares, links_between_nodes, part_figures, part_status,
};
use crate::context::CrawlContext;
use crate::housekeeping;
use crate::live::Live;
use crate::replace;
use crate::tables;
use opilio_job::plugin_report;
use opilio_job::process_record::ProcessRecord;

/// Minimum interval at which the frontier is forced to disk, however short the profile's interval.
const SYNC_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Interval of tasks that depend on the time. Reports and the process record are written at the same interval.
const TIME_INTERVAL: Duration = Duration::from_secs(30);

/// Queues resolved at once.
const QUEUES_RESOLVED: usize = 500;

/// Starts all tasks.
pub(super) fn start(crawl: &Crawl, ended: &watch::Receiver<()>) -> Vec<JoinHandle<()>> {
    let context = || crawl.context.clone();
    let job = || crawl.job.directory().to_owned();
    let ended = || ended.clone();
    let tables = crawl.context.plugins.tables.clone();
    let mut tasks = vec![
        spawn(keep_time(
            context(),
            crawl.live.clone(),
            crawl.began,
            ended(),
        )),
        spawn(housekeeping::run(
            context(),
            crawl.stop.clone(),
            crawl.context.job.clone(),
            crawl.began,
            ended(),
        )),
        spawn(census::keep_queues(context(), ended())),
        spawn(census::keep_pages(context(), ended())),
        spawn(note_process_record(
            context(),
            crawl.process_record.clone(),
            job(),
            ended(),
        )),
        spawn(tables::run(tables, crawl.log.clone(), ended())),
        spawn(replace::watch(context(), ended())),
        spawn(handing_over::finish_old_files(
            crawl.context.outputs.writers.clone(),
            crawl.context.outputs.handovers.clone(),
            ended(),
        )),
        spawn(write_reports(context(), job(), ended())),
    ];
    if crawl.context.membership.is_some() {
        let stop = crawl.stop.clone();
        tasks.push(spawn(links_between_nodes::run(context(), stop, ended())));
        tasks.push(spawn(limit_shares::keep_updated(context(), ended())));
        tasks.push(spawn(part_figures::run(context(), ended())));
        tasks.push(spawn(part_status::run(context(), ended())));
    }
    if let Some(interval) = crawl.context.profile.archive.fsync {
        let interval = interval.max(SYNC_INTERVAL_MIN);
        tasks.push(spawn(sync_frontier(context(), interval, ended())));
    }
    tasks
}

/// Starts the hand-over of files, with a task for each receiver. After the end of the crawl, these tasks finish their present file.
pub(super) fn start_handovers(crawl: &Crawl, ended: &watch::Receiver<()>) -> Vec<JoinHandle<()>> {
    let handovers = crawl.context.outputs.handovers.iter();
    let tasks = handovers.map(|handover| {
        let context = crawl.context.clone();
        spawn(handing_over::hand_over(
            handover.clone(),
            context,
            ended.clone(),
        ))
    });
    tasks.collect()
}

/// Forces the frontier's journal to disk at intervals. A power failure loses no more than one interval.
async fn sync_frontier(
    context: Arc<CrawlContext>,
    interval: Duration,
    mut ended: watch::Receiver<()>,
) {
    // Returns as soon as the crawl has ended, even during an interval.
    while timeout(interval, ended.changed()).await.is_err() {
        let context = context.clone();
        let synced = tokio::task::spawn_blocking(move || context.frontier().persist()).await;
        if let Ok(Err(problem)) = synced {
            tracing::error!("{}", opilio_stacks::chain(&problem));
        }
    }
}

/// Updates state that depends on the time: run time in the frontier's statistics, and settings of queues with overrides for some
/// times of day. Queues are also resolved once at the beginning, because the profile may have changed. They are resolved in parts,
/// so that the frontier is not locked for long.
async fn keep_time(
    context: Arc<CrawlContext>,
    live: Arc<Live>,
    began: Instant,
    mut ended: watch::Receiver<()>,
) {
    let mut resolved = None;
    while ended.has_changed().is_ok() {
        let now = Timestamp::now();
        let settings_hash = context.current().settings_hash_at(now);
        let is_changed = resolved != Some(settings_hash);
        resolved = Some(settings_hash);
        let context = context.clone();
        let still = ended.clone();
        let kept =
            tokio::task::spawn_blocking(move || -> Result<(), opilio_frontier::FrontierError> {
                keep_run_time(&context, began)?;
                if !is_changed {
                    return Ok(());
                }
                context.frontier().set_settings_hash(settings_hash);
                let mut after = None;
                while still.has_changed().is_ok() {
                    let part = context.frontier().resolve_queues(
                        after.as_deref(),
                        QUEUES_RESOLVED,
                        now,
                    )?;
                    match part {
                        Some(last) => after = Some(last),
                        None => break,
                    }
                }
                Ok(())
            });
        if let Ok(Err(problem)) = kept.await {
            tracing::error!("{}", opilio_stacks::chain(&problem));
        }
        if is_changed {
            live.queues_resolved();
        }
        // Resolves when the sender is dropped.
        let _ = timeout(TIME_INTERVAL, ended.changed()).await;
    }
}

/// Adds the run time that has passed since the last call.
pub(super) fn keep_run_time(
    context: &CrawlContext,
    began: Instant,
) -> Result<(), opilio_frontier::FrontierError> {
    let passed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let before = context
        .figures
        .counters
        .run_time
        .fetch_max(passed, Ordering::Relaxed);
    let since = Duration::from_millis(passed.saturating_sub(before));
    context.frontier().add_run_time(since)
}

/// Records the crawl's state at intervals, for programs that list many jobs.
async fn note_process_record(
    context: Arc<CrawlContext>,
    process_record: Arc<Mutex<ProcessRecord>>,
    job: PathBuf,
    mut ended: watch::Receiver<()>,
) {
    // Short intervals at first: a process may die early.
    let mut interval = Duration::from_secs(1);
    // Resolves when the sender is dropped.
    while timeout(interval, ended.changed()).await.is_err() {
        interval = (2 * interval).min(TIME_INTERVAL);
        let (context, process_record, job) = (context.clone(), process_record.clone(), job.clone());
        let noted = tokio::task::spawn_blocking(move || {
            let statistics = context.frontier().statistics();
            let totals = context.figures.ledger.totals();
            let mut process_record = process_record
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            process_record.update(&job, statistics, totals)
        });
        if let Ok(Err(problem)) = noted.await {
            tracing::warn!("cannot write process.json: {problem}");
        }
    }
}

/// Writes the figures of plugins at intervals, for readers of the job while it runs.
async fn write_reports(context: Arc<CrawlContext>, job: PathBuf, mut ended: watch::Receiver<()>) {
    while timeout(TIME_INTERVAL, ended.changed()).await.is_err() {
        let (context, job) = (context.clone(), job.clone());
        let written = tokio::task::spawn_blocking(move || {
            plugin_report::write(&job, &context.plugins_seen())
        });
        if let Ok(Err(problem)) = written.await {
            tracing::error!("cannot write statistics of plugins: {problem}");
        }
    }
}
