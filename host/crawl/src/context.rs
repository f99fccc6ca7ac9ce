//! State that all URIs of a crawl share: frontier, fetchers, archive, plugins, logs, counters.

mod document_room;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use jiff::Timestamp;
use opilio_archive::{Location, Record, Writers};
use opilio_fetch::Exchange;
use opilio_frontier::{Frontier, SharedFrontier, Tally};
use opilio_profile::{ArchiveDigest, Profile};
use opilio_sandbox::Fault;
use opilio_uri::{SurtPrefixSet, Uri};

use crate::browsers::Browsers;
use crate::cookies::Cookies;
use crate::credentials::Credentials;
use crate::duplicates::{Duplicates, PayloadDigests};
use crate::error::Halt;
use crate::fetchers::Fetchers;
use crate::handover::Handover;
use crate::lanes::{LaneKind, Lanes};
use crate::live::Live;
use crate::logins::Logins;
use crate::membership::JobMembership;
use crate::observers::Observers;
use crate::plugin_factory::PluginFactory;
use crate::records;
use crate::render_board::BrowsersStatus;
use crate::servers::Servers;
use crate::tables::TableKeeper;
use document_room::DocumentsInProcess;
use opilio_job::alerts::{Alert, AlertBoard, AlertKind, Event, Notice, Notifier, Severity};
use opilio_job::census::LastCensus;
use opilio_job::crawl_log::CrawlLogLine;
use opilio_job::directory::Job;
use opilio_job::events::{Events, Occurrence};
use opilio_job::job_log::JobLog;
use opilio_job::ledger::Ledger;
use opilio_job::logs::JobLogs;
use opilio_job::plugin_report::{EarlierPluginFigures, PluginFigures, PluginReport};
use opilio_job::queue_tally::QueueTally;
use opilio_job::series::Series;
use opilio_stacks::breaker::{Consequence, Failure};
use opilio_stacks::{KnownStacks, PluginSeen, Pool, Stacks};
use opilio_visit::budget::Budget;
use opilio_visit::precedence::{self, QueueRanks, RankChange};
use opilio_visit::scope_memory::ScopeMemory;

/// Maximum of redirects by which one seed may widen the scope: http to https, to www, to a new name. A seed that redirects more
/// often may be under the control of another party.
const SEED_REDIRECTS_MAX: u32 = 5;

/// Maximum of queues whose activity is counted for the progress display. Beyond it, the half with less activity is dropped.
const TALLIES_MAX: usize = 4096;

/// State shared by all workers of a crawl.
pub struct CrawlContext {
    /// The profile when this process began.
    pub profile: Arc<Profile>,
    /// The profile with all changes since; see [`CrawlContext::current`].
    pub(crate) current: RwLock<Arc<Profile>>,
    /// Directory of the job.
    pub job: PathBuf,
    /// State that commands of operators change: the pause and the fetches in flight.
    pub live: Arc<Live>,
    /// `job.log`.
    pub job_log: Arc<JobLog>,
    pub(crate) lanes: Lanes,
    /// The frontier; see [`CrawlContext::frontier`].
    pub frontier: SharedFrontier,
    pub(crate) queues: Queues,
    /// State of fetching.
    pub network: Network,
    /// Archive and logs.
    pub outputs: Outputs,
    /// Plugins and their state.
    pub plugins: CrawlPlugins,
    /// The membership in a job that several nodes share; `None` on one machine.
    pub membership: Option<Arc<JobMembership>>,
    /// Counts of the crawl.
    pub figures: CrawlFigures,
    /// Alerts for the operator.
    pub alerts: AlertState,
    /// The job's lock. It is dropped last: when the next process locks the job, all stores are closed.
    #[expect(dead_code, reason = "held for its lock")]
    pub(crate) held: Arc<Job>,
}

/// State for the choice between queues, in addition to the frontier.
pub(crate) struct Queues {
    /// The budget. Lock it before the frontier, never after.
    pub(crate) budget: Mutex<Budget>,
    /// Counts of visits, which decide when plugins rank a queue again.
    pub(crate) ranks: QueueRanks,
}

/// State of fetching.
pub struct Network {
    /// Fetchers by settings.
    pub fetchers: Fetchers,
    pub(crate) servers: Servers,
    pub(crate) cookies: Cookies,
    pub(crate) credentials: Credentials,
    pub(crate) logins: Logins,
    pub(crate) browsers: Browsers,
}

/// Archive and logs.
pub struct Outputs {
    pub(crate) writers: Arc<Writers>,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) handovers: Vec<Arc<Handover>>,
    /// The logs of the job, except `job.log`.
    pub logs: JobLogs,
}

/// Plugins of a crawl and their state.
pub struct CrawlPlugins {
    pub(crate) stacks: RwLock<Arc<Stacks>>,
    pub(crate) known_stacks: KnownStacks,
    /// Tables in which plugins look values up.
    pub tables: Arc<TableKeeper>,
    pub(crate) factory: PluginFactory,
    /// Running observers.
    pub observers: Observers,
    /// SURT prefixes of the scope. Locked while plugins are replaced, so that two concurrent changes do not undo each other.
    pub(crate) seeds: tokio::sync::Mutex<SeedPrefixes>,
    /// Recent decisions of the scope.
    pub(crate) scope_memory: ScopeMemory,
    /// Scope filters whose errors left links without a decision, and for which an alert has been raised.
    pub(crate) scope_faults: Mutex<BTreeSet<Arc<str>>>,
    /// Number of errors of each plugin in this process.
    pub(crate) fault_counts: Mutex<BTreeMap<Arc<str>, u64>>,
    /// Figures of plugins in earlier processes.
    pub(crate) before: EarlierPluginFigures,
}

/// Counts of a crawl.
pub struct CrawlFigures {
    /// Counters of this process.
    pub counters: Counters,
    /// Counts by host, status, media type and source.
    pub ledger: Arc<Ledger>,
    /// Samples over time.
    pub series: Series,
    /// Last counts of queues and pages.
    pub census: LastCensus,
    pub(crate) tallies: Mutex<HashMap<String, QueueTally>>,
    /// Documents in process, which count for limits.
    pub(crate) in_process: Arc<DocumentsInProcess>,
    /// The frontier's tally at the start of this process. Its limits count from there.
    pub(crate) tally_before: Tally,
    /// Plugin errors in earlier processes, if known.
    pub(crate) faults_before: u64,
}

/// Alerts for the operator, and their senders.
pub struct AlertState {
    /// Alerts that are active, and recent ones.
    pub board: AlertBoard,
    pub(crate) notifier: Mutex<Option<Notifier>>,
    /// Receivers of events; set when the crawl begins.
    pub(crate) events: OnceLock<Events>,
}

/// SURT prefixes that the seeds imply, and the file with the prefixes of redirected seeds.
pub(crate) struct SeedPrefixes {
    pub set: SurtPrefixSet,
    pub file: PathBuf,
    /// Number of times that each seed has widened the scope in this process.
    pub redirects: HashMap<String, u32>,
}

impl CrawlFigures {
    /// Returns a queue that backs off after failures, with its tally; `None` if the last count found no such queue.
    pub(crate) fn failing_queue(&self) -> Option<(String, QueueTally)> {
        let named = self.census.lock().queues.as_ref()?.failing_named.clone();
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = named.into_iter().filter_map(|queue| {
            let tally = tallies.get(&queue)?.clone();
            Some((queue, tally))
        });
        found.next()
    }
}

/// Counters of this process. The frontier's own counters are durable.
#[derive(Default)]
pub struct Counters {
    /// Content received, in bytes.
    pub bytes: AtomicU64,
    /// Responses archived.
    pub documents: AtomicU64,
    /// URIs finished.
    pub lines: AtomicU64,
    /// Plugin errors.
    pub faults: AtomicU64,
    /// Links that the scope has refused.
    pub out_of_scope: AtomicU64,
    /// URIs whose processing panicked.
    pub panics: AtomicU64,
    /// Run time of this process that the frontier's statistics include, in milliseconds.
    pub run_time: AtomicU64,
}

impl Counters {
    pub(crate) fn out_of_scope(&self, count: u64) {
        self.out_of_scope.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a panic while a URI was processed, and returns `true` if the crawl continues. Then only the URI fails; otherwise, the
    /// crawl would halt at this URI after each start. After too many panics, the cause is not a single URI, and the crawl halts.
    pub(crate) fn survives_panic(&self) -> bool {
        self.panics.fetch_add(1, Ordering::Relaxed) < PANICS_MAX
    }
}

/// Maximum of errors of a plugin that are logged one by one. Later errors are counted.
const ERRORS_LOGGED_MAX: u64 = 3;

/// Returns `true` if a count is a power of ten. At these counts, the number of errors is printed.
fn is_round(count: u64) -> bool {
    10u64.pow(count.ilog10()) == count
}

/// Maximum of URIs in one process that may fail with status code −3000 before the crawl halts.
const PANICS_MAX: u64 = 10;

impl CrawlContext {
    /// Locks the budget for one call. The guard is never held across an await.
    pub fn budget(&self) -> MutexGuard<'_, Budget> {
        self.queues
            .budget
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the frontier for one call. The guard is never held across an await.
    pub(crate) fn frontier(&self) -> MutexGuard<'_, Frontier> {
        self.frontier.lock()
    }

    /// Returns the plugins in effect now.
    pub fn stacks(&self) -> Arc<Stacks> {
        self.plugins
            .stacks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Writes the records of one capture. They have reached the operating system when this returns.
    pub(crate) async fn archive(&self, records: Vec<Record>) -> Result<Vec<Location>, Halt> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let writers = self.outputs.writers.clone();
        Ok(self
            .lanes
            .run(LaneKind::Document, move || {
                let _span = tracing::info_span!("write", opilio.records = records.len()).entered();
                writers.write(&records, Timestamp::now())
            })
            .await
            // The state of the writer's file is unknown: the next start repairs it.
            .map_err(|panic| Halt::Worker(panic.to_string()))??)
    }

    /// Returns the pages that browsers have now, and counts; `None` if no page was to be rendered so far.
    pub fn browsers_status(&self) -> Option<BrowsersStatus> {
        self.network.browsers.status()
    }

    /// Computes the digests of a payload that the profile selects.
    pub(crate) async fn payload_digests(
        &self,
        exchange: &Arc<Exchange>,
    ) -> Result<PayloadDigests, Halt> {
        let wanted = self.profile.archive.digest;
        let digests = if wanted == ArchiveDigest::Sha1 {
            records::payload_digests(exchange, wanted)
        } else {
            let exchange = exchange.clone();
            self.lanes
                .run(LaneKind::Document, move || {
                    records::payload_digests(&exchange, wanted)
                })
                .await?
        };
        digests.map_err(|problem| Halt::Scratch(Arc::new(problem)))
    }

    /// Logs and counts plugin errors, and applies the consequences that the profile sets.
    pub(crate) fn failures(&self, failures: &[Failure]) -> Result<(), Halt> {
        let mut halt = None;
        for Failure { fault, consequence } in failures {
            self.figures.counters.faults.fetch_add(1, Ordering::Relaxed);
            self.outputs.logs.fault(fault)?;
            self.log_plugin_error(fault);
            let why = format!("failed too often, last with {}", fault.message);
            match consequence {
                None => {}
                Some(Consequence::LeftOut(time)) => {
                    let words = format!("{why}; left out for {} s", time.as_secs_f64());
                    self.alert(&fault.plugin, Severity::Warning, &words);
                }
                Some(Consequence::Pause { each: true }) => {
                    let why = format!("failed with {}", fault.message);
                    self.pause_for(&fault.plugin, &why);
                }
                Some(Consequence::Pause { each: false }) => self.pause_for(&fault.plugin, &why),
                Some(Consequence::Halt) => {
                    let words = format!("{why}; the crawl ends, as the profile sets");
                    self.alert(&fault.plugin, Severity::Critical, &words);
                    halt.get_or_insert(Halt::Plugin {
                        plugin: fault.plugin.to_string(),
                        message: fault.message.clone(),
                    });
                }
            }
        }
        halt.map_or(Ok(()), Err)
    }

    /// Prints the first errors of a plugin, and then their number at growing intervals. `runtime-errors.log` has all of them.
    fn log_plugin_error(&self, fault: &Fault) {
        let mut counts = self
            .plugins
            .fault_counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(fault.plugin.clone()).or_default();
        *count += 1;
        match *count {
            ..=ERRORS_LOGGED_MAX => tracing::warn!("{fault}; details are in runtime-errors.log"),
            count if is_round(count) => {
                tracing::warn!("plugin `{}`: {count} errors so far", fault.plugin);
            }
            _ => {}
        }
    }

    /// Reports that errors of a scope filter left links of a page without a decision. Each such page has an annotation in
    /// `crawl.log`; the first page raises an alert as well.
    pub(crate) fn scope_fault(&self, plugin: &Arc<str>) {
        let mut known = self
            .plugins
            .scope_faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.insert(plugin.clone()) {
            self.alert(
                plugin,
                Severity::Warning,
                "failed for some links; crawl.log has scope-fault for their pages, which are extracted again at their next visit, if there is one",
            );
        }
    }

    /// Raises an alert about a plugin.
    pub(crate) fn alert(&self, plugin: &str, severity: Severity, what: &str) {
        self.raise(AlertKind::Plugin, plugin, severity, what);
    }

    /// Raises an alert about a problem that the operator should see.
    pub fn raise(&self, kind: AlertKind, subject: &str, severity: Severity, what: &str) {
        let raised = self
            .alerts
            .board
            .raise(kind, subject, severity, what, Timestamp::now());
        if let Some(alert) = raised {
            let name = kind.name();
            let subject = format!("alert {name} {subject}");
            let subject = subject.trim_end();
            tracing::warn!("{subject}: {what}");
            self.job_log.crawl(subject, what);
            self.announce(Event::Raised, alert);
        }
    }

    /// Clears an alert if it is active.
    pub fn clear(&self, kind: AlertKind, subject: &str) {
        if let Some(alert) = self.alerts.board.clear(kind, subject, Timestamp::now()) {
            self.announce(Event::Cleared, alert);
        }
    }

    /// Clears alerts of single events that have been shown long enough.
    pub(crate) fn expire_alerts(&self, now: Timestamp) {
        for alert in self.alerts.board.expire(now) {
            self.announce(Event::Cleared, alert);
        }
    }

    fn announce(&self, event: Event, alert: Alert) {
        let at = Timestamp::now();
        let line = format!("{at:.3} {} {alert}", event.name());
        if let Err(problem) = self.outputs.logs.alert(&line) {
            tracing::error!("cannot write alerts.log: {problem}");
        }
        self.send_event(|| Occurrence::Alert {
            change: event,
            alert: alert.clone(),
        });
        let notifier = self
            .alerts
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(notifier) = notifier.as_ref() {
            let profile = self.current();
            let notice = Notice::new(&self.job, &profile, event, alert);
            notifier.send(notice, &profile.alerts);
        }
    }

    fn pause_for(&self, plugin: &str, why: &str) {
        // Only one alert is raised for all visits that were in process when the pause began.
        if self.live.pause(true) {
            self.alert(
                plugin,
                Severity::Critical,
                &format!("{why}; the crawl pauses until an operator resumes it"),
            );
        }
    }

    /// Returns the figures of each plugin from all processes of the job, in the order of names, each instance before its
    /// variants.
    pub fn plugin_reports(&self) -> Vec<PluginReport> {
        let seen = self.plugins_seen().into_iter();
        seen.map(|seen| seen.report).collect()
    }

    /// Returns the same figures in the form that is stored for the next process.
    pub(crate) fn plugins_seen(&self) -> Vec<PluginFigures> {
        let stacks = self.stacks();
        let now = stacks.pool().seen().into_iter().map(|seen| {
            let PluginSeen {
                name,
                variant,
                plugin,
                statistics,
                breaker,
            } = seen;
            let lost_events = match variant {
                None => self.plugins.observers.lost(&name),
                Some(_) => 0,
            };
            let mut seen = PluginFigures::new(&name, variant, &plugin, statistics, breaker);
            seen.report.lost_events = lost_events;
            seen
        });
        self.plugins.before.with(now)
    }

    /// Calls precedence plugins on these queues, and applies their answers.
    pub(crate) async fn rank_queues(&self, queues: BTreeSet<String>) -> Result<(), Halt> {
        for queue in queues {
            let now = Timestamp::now();
            let Some(report) = self.frontier().queue(&queue, now)? else {
                continue;
            };
            let stacks = self.stacks();
            let (change, failures) = self
                .lanes
                .run(LaneKind::Document, move || {
                    precedence::rank_queue(&stacks.precedence, &report, now)
                })
                .await?;
            self.failures(&failures)?;
            if let RankChange::Set(rank) = change {
                self.frontier().rank_queue(&queue, rank, now)?;
            }
        }
        Ok(())
    }

    /// Handles the redirect of a seed: its target counts as a seed from now on, and widens the scope like a seed.
    pub(crate) async fn widen_scope(&self, seed: &str, target: &Uri) -> Result<(), Halt> {
        let Ok(prefix) = opilio_uri::implied_surt_prefix(target.as_str()) else {
            return Ok(());
        };
        // Locked until the new plugins are in effect, so that two concurrent redirects do not undo each other.
        let mut seeds = self.plugins.seeds.lock().await;
        if seeds.set.covers(&target.surt()) {
            return Ok(());
        }
        let redirects = seeds.redirects.entry(seed.to_owned()).or_default();
        *redirects += 1;
        if *redirects > SEED_REDIRECTS_MAX {
            tracing::warn!(seed, %target, "a seed redirects elsewhere too often to widen the scope further");
            return Ok(());
        }
        seeds.set.insert(&prefix);
        let prefixes: Vec<String> = seeds.set.iter().map(str::to_owned).collect();
        tracing::warn!(seed, %target, prefix, "a redirected seed widens the scope");
        let pool = self.pool_with(prefixes).await?;
        append_line(&seeds.file, &format!("{prefix} # {seed}"))?;
        self.set_plugins(pool);
        Ok(())
    }

    /// Applies these prefixes to the scope from now on, after a seed was removed.
    pub async fn replace_seed_prefixes(&self, set: SurtPrefixSet) -> Result<(), Halt> {
        let mut seeds = self.plugins.seeds.lock().await;
        let prefixes: Vec<String> = set.iter().map(str::to_owned).collect();
        let pool = self.pool_with(prefixes).await?;
        seeds.set = set;
        self.set_plugins(pool);
        Ok(())
    }

    /// Returns the plugins in effect, with these prefixes for the scope.
    async fn pool_with(&self, prefixes: Vec<String>) -> Result<Pool, Halt> {
        let current = self.stacks();
        let made = self
            .lanes
            .run(LaneKind::Document, move || {
                current.pool().with_seed_prefixes(&prefixes)
            })
            .await?;
        made.map_err(Halt::Seed)
    }

    /// Puts plugins into effect for all work that begins from now on. The caller must hold the lock of [`CrawlContext::seeds`]
    /// since it made the plugins, so that two concurrent changes do not undo each other.
    pub(crate) fn set_plugins(&self, pool: Pool) {
        let stacks = Stacks::with(self.current().settings(), pool);
        *self
            .plugins
            .stacks
            .write()
            .unwrap_or_else(PoisonError::into_inner) = stacks;
    }

    /// Counts a finished visit.
    pub(crate) fn finished(&self, queue: &str, line: &CrawlLogLine, document: bool) {
        let (counters, size) = (&self.figures.counters, line.size.unwrap_or(0));
        let documents = u64::from(document);
        counters.documents.fetch_add(documents, Ordering::Relaxed);
        counters.lines.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(size, Ordering::Relaxed);
        let mut tallies = self
            .figures
            .tallies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if tallies.len() >= TALLIES_MAX && !tallies.contains_key(queue) {
            let mut counts: Vec<u64> = tallies.values().map(|tally| tally.uris).collect();
            counts.sort_unstable();
            let median = counts[counts.len() / 2];
            tallies.retain(|_, tally| tally.uris > median);
        }
        let tally = tallies.entry(queue.to_owned()).or_default();
        tally.uris += 1;
        tally.bytes += size;
        tally.last_status = line.status;
        let mut annotations = line.annotations.iter();
        match annotations.find_map(|annotation| annotation.strip_prefix("err=")) {
            Some(error) => error.clone_into(&mut tally.last_error),
            None if line.status > 0 => tally.last_error.clear(),
            // Without an attempt, the last error is not changed.
            None => {}
        }
    }
}

fn append_line(file: &std::path::Path, line: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_errors_is_printed_at_powers_of_ten() {
        let round: Vec<u64> = (4..2000).filter(|count| is_round(*count)).collect();
        assert_eq!(round, [10, 100, 1000]);
    }

    #[test]
    fn a_few_panics_fail_their_uris_and_too_many_halt_the_crawl() {
        let counters = Counters::default();
        assert!((0..PANICS_MAX).all(|_| counters.survives_panic()));
        assert!(!counters.survives_panic());
    }
}
