//! State that all URIs of a crawl share: frontier, fetchers, archive, plugins, logs, counters.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use opilio_archive::{Location, PayloadsError, Record, Writers};
use opilio_fetch::Exchange;
use opilio_frontier::Frontier;
use opilio_profile::{ArchiveDigest, Profile};

use opilio_uri::{SurtPrefixSet, Uri};

use crate::alerts::{Alert, AlertKind, Board, Event, Notice, Notifier, Severity};
use crate::census::LastCensus;
use crate::control::{JobLog, Live};
use crate::cookies::Cookies;
use crate::credentials::Credentials;
use crate::duplicates::{Duplicates, PayloadDigests};
use crate::fetchers::Fetchers;
use crate::handover::Handover;
use crate::lanes::{Lane, LanePanic, Lanes};
use crate::logins::Logins;
use crate::observers::Observers;
use crate::plugin_report::{PluginFigures, PluginReport, SeenBefore};
use crate::progress::QueueTally;
use crate::records;
use crate::replace::Workshop;
use crate::series::Series;
use crate::servers::Servers;
use crate::tables::TableKeeper;
use opilio_job::crawl_log::LogLine;
use opilio_job::directory::Job;
use opilio_job::ledger::Ledger;
use opilio_job::logs::JobLogs;
use opilio_job::remedy::with_remedy;
use opilio_stacks::breaker::{Consequence, Failure};
use opilio_stacks::{KnownStacks, PluginSeen, Pool, Stacks};
use opilio_visit::budget::Budget;
use opilio_visit::precedence::{self, QueueRanks};

/// Maximum of times that one seed may widen the scope by redirecting: http to https, to www, to a new name. A seed that redirects
/// more often is controlled by somebody else.
const SEED_MOVES_MAX: u32 = 5;

/// Maximum of queues whose activity is counted for the progress display. Beyond it the quieter half is forgotten.
const TALLIES_MAX: usize = 4096;

/// State shared by all workers of a crawl.
pub(crate) struct Context {
    /// The profile when this process began.
    pub profile: Arc<Profile>,
    /// The profile with all changes since; see [`Context::current`].
    pub current: RwLock<Arc<Profile>>,
    pub fetchers: Fetchers,
    pub frontier: Mutex<Frontier>,
    pub writers: Arc<Writers>,
    pub duplicates: Option<Duplicates>,
    pub handover: Option<Handover>,
    pub lanes: Lanes,
    pub logs: JobLogs,
    pub ledger: Arc<Ledger>,
    pub series: Series,
    pub census: LastCensus,
    pub board: Board,
    pub notifier: Mutex<Option<Notifier>>,
    /// Plugin errors in earlier processes, as far as they are known.
    pub faults_before: u64,
    pub plugins_before: SeenBefore,
    /// The job's directory.
    pub job: std::path::PathBuf,
    pub servers: Servers,
    pub cookies: Cookies,
    pub credentials: Credentials,
    pub logins: Logins,
    pub counters: Counters,
    pub seeds: tokio::sync::Mutex<SeedPrefixes>,
    pub stacks: RwLock<Arc<Stacks>>,
    pub known_stacks: KnownStacks,
    pub tables: Arc<TableKeeper>,
    pub workshop: Workshop,
    pub tallies: Mutex<HashMap<String, QueueTally>>,
    pub observers: Observers,
    /// Scope filters that left links unjudged, and for which an alert has been raised.
    pub scope_faults: Mutex<BTreeSet<Arc<str>>>,
    pub turns: QueueRanks,
    /// The budget. Lock it before the frontier, never after.
    pub budget: Mutex<Budget>,
    pub live: Arc<Live>,
    pub job_log: Arc<JobLog>,
    /// The job's lock. It is dropped last, so that the next process that locks the job finds the stores closed.
    #[expect(dead_code, reason = "held for its lock")]
    pub held: Arc<Job>,
}

/// SURT prefixes that the seeds imply, and the file that keeps those of redirected seeds.
pub(crate) struct SeedPrefixes {
    pub set: SurtPrefixSet,
    pub file: std::path::PathBuf,
    /// Number of times that each seed has widened the scope in this process.
    pub moves: HashMap<String, u32>,
}

/// Counters of this process. The frontier's own counters are durable.
#[derive(Default)]
pub(crate) struct Counters {
    pub bytes: AtomicU64,
    pub documents: AtomicU64,
    pub lines: AtomicU64,
    pub faults: AtomicU64,
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

    /// Counts a panic while a URI was processed, and returns whether the crawl continues. Then only the URI fails; otherwise the
    /// crawl would halt at the URI after each start. Too many panics are not about one URI any more, and the crawl halts.
    pub(crate) fn survives_panic(&self) -> bool {
        self.panics.fetch_add(1, Ordering::Relaxed) < PANICS_MAX
    }
}

/// Maximum of URIs in one process that may fail with −3000 before the crawl halts.
const PANICS_MAX: u64 = 10;

/// Error that halts a crawl. Nothing is lost: the URI in process is put back at the next start.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The frontier's store failed.
    #[error("the frontier's store failed")]
    Frontier(#[from] opilio_frontier::Error),
    /// The archive cannot be written, usually because the disk is full.
    #[error("cannot write the archive")]
    Archive(#[from] opilio_archive::Error),
    /// Stored cannot look up payloads.
    #[error("cannot look up payloads")]
    Payloads(#[from] PayloadsError),
    /// A log cannot be written, usually because the disk is full.
    #[error("cannot write a log")]
    Log(#[from] io::Error),
    /// Large bodies cannot be spooled, usually because the disk is full.
    #[error("cannot write the scratch directory")]
    Scratch(#[source] Arc<io::Error>),
    /// The fetch settings of an override cannot be used.
    #[error("invalid override: {0}; correct it, then run the same command again")]
    Fetcher(String),
    /// The crawl is being stopped, and the fetch had received nothing yet. The URI is found in process at the next start, as
    /// after a crash. This is not an end of its own.
    #[error("the crawl was stopped")]
    Stopped,
    /// A plugin fails too often, and the profile ends the crawl for that, as it does for filters of the scope.
    #[error(
        "plugin {plugin} failed too often, last with {message}; fix it, replace it with `opilio plugin replace`, and run the same command again"
    )]
    Plugin {
        /// The plugin.
        plugin: String,
        /// Its last error.
        message: String,
    },
    /// The scope could not be widened to a redirected seed.
    #[error("cannot configure the scope with a redirected seed: {0}")]
    Seed(String),
    /// The frontier waits for a URI that no worker has: a defect of Opilio.
    #[error(
        "the frontier waits for a URI that no worker processes; please report it, then run the same command again"
    )]
    NobodyAtWork,
    /// A worker panicked: a defect of Opilio.
    #[error("a worker panicked: {0}; please report it, then run the same command again")]
    Worker(String),
    /// A plugin lane panicked: a defect of Opilio.
    #[error(transparent)]
    Lane(#[from] LanePanicked),
}

/// A plugin lane panicked: a defect of Opilio.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LanePanicked(LanePanic);

impl From<LanePanic> for Halt {
    fn from(panic: LanePanic) -> Halt {
        Halt::Lane(LanePanicked(panic))
    }
}

impl Halt {
    /// Returns the error, its cause, and the remedy.
    pub(crate) fn told(&self) -> String {
        let said = with_remedy(self);
        match self {
            Halt::Frontier(_)
            | Halt::Archive(_)
            | Halt::Payloads(_)
            | Halt::Log(_)
            | Halt::Scratch(_) => format!("{said}, then run the same command again"),
            _ => said,
        }
    }
}

impl Context {
    /// Locks the budget for one call. The guard is never held across an await.
    pub(crate) fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the frontier for one call. The guard is never held across an await.
    pub(crate) fn frontier(&self) -> MutexGuard<'_, Frontier> {
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plugins in effect now.
    pub(crate) fn stacks(&self) -> Arc<Stacks> {
        self.stacks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Writes the records of one capture. They have reached the operating system when this returns.
    pub(crate) async fn archive(&self, records: Vec<Record>) -> Result<Vec<Location>, Halt> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let writers = self.writers.clone();
        Ok(self
            .lanes
            .run(Lane::Document, move || {
                let _span = tracing::info_span!("write", opilio.records = records.len()).entered();
                writers.write(&records, Timestamp::now())
            })
            .await
            // The state of the writer's file is unknown: the next start repairs it.
            .map_err(|panic| Halt::Worker(panic.to_string()))??)
    }

    /// Computes the digests of a payload that the profile asks for.
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
                .run(Lane::Document, move || {
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
            self.counters.faults.fetch_add(1, Ordering::Relaxed);
            self.logs.fault(fault)?;
            let why = format!("failed too often, last with {}", fault.message);
            match consequence {
                None => {}
                Some(Consequence::LeftOut(rest)) => {
                    let rest = rest.as_secs_f64();
                    self.alert(
                        &fault.plugin,
                        Severity::Warning,
                        &format!("{why}; left out for {rest} s"),
                    );
                }
                Some(Consequence::Pause { each: true }) => {
                    let why = format!("failed with {}", fault.message);
                    self.pause_for(&fault.plugin, &why);
                }
                Some(Consequence::Pause { each: false }) => self.pause_for(&fault.plugin, &why),
                Some(Consequence::Halt) => {
                    self.alert(
                        &fault.plugin,
                        Severity::Critical,
                        &format!("{why}; the crawl ends, as the profile sets"),
                    );
                    halt.get_or_insert(Halt::Plugin {
                        plugin: fault.plugin.to_string(),
                        message: fault.message.clone(),
                    });
                }
            }
        }
        halt.map_or(Ok(()), Err)
    }

    /// Reports that a scope filter left links of a page unjudged. Each page's line in `crawl.log` has an annotation for it; the
    /// first page raises an alert as well.
    pub(crate) fn scope_fault(&self, plugin: &Arc<str>) {
        let mut known = self
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

    /// Raises an alert about a problem that the operator should know of.
    pub(crate) fn raise(&self, kind: AlertKind, subject: &str, severity: Severity, what: &str) {
        let raised = self
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
    pub(crate) fn clear(&self, kind: AlertKind, subject: &str) {
        if let Some(alert) = self.board.clear(kind, subject, Timestamp::now()) {
            self.announce(Event::Cleared, alert);
        }
    }

    /// Clears alerts of single events that have been shown long enough.
    pub(crate) fn expire_alerts(&self, now: Timestamp) {
        for alert in self.board.expire(now) {
            self.announce(Event::Cleared, alert);
        }
    }

    fn announce(&self, event: Event, alert: Alert) {
        let at = Timestamp::now();
        let line = format!("{at:.3} {} {alert}", event.name());
        if let Err(problem) = self.logs.alert(&line) {
            tracing::error!("cannot write alerts.log: {problem}");
        }
        let notifier = self.notifier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notifier) = notifier.as_ref() {
            let profile = self.current();
            let notice = Notice::new(&self.job, &profile, event, alert);
            notifier.send(notice, &profile.alerts);
        }
    }

    fn pause_for(&self, plugin: &str, why: &str) {
        // One alert for all visits that were in process when the pause began.
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
    pub(crate) fn plugin_reports(&self) -> Vec<PluginReport> {
        let seen = self.plugins_seen().into_iter();
        seen.map(|seen| seen.report).collect()
    }

    /// Returns the same figures in the form that the next process needs.
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
                None => self.observers.lost(&name),
                Some(_) => 0,
            };
            let mut seen = PluginFigures::new(&name, variant, &plugin, statistics, breaker);
            seen.report.lost_events = lost_events;
            seen
        });
        self.plugins_before.with(now)
    }

    /// Asks precedence plugins about these queues, and applies their answers.
    pub(crate) async fn rank_queues(&self, queues: BTreeSet<String>) -> Result<(), Halt> {
        for queue in queues {
            let now = Timestamp::now();
            let Some(report) = self.frontier().queue(&queue, now)? else {
                continue;
            };
            let stacks = self.stacks();
            let (rank, failures) = self
                .lanes
                .run(Lane::Document, move || {
                    precedence::rank_queue(&stacks.precedence, &report, now)
                })
                .await?;
            self.failures(&failures)?;
            // If a plugin failed and none answered, the queue keeps its rank.
            if rank.is_some() || failures.is_empty() {
                self.frontier().rank_queue(&queue, rank, now)?;
            }
        }
        Ok(())
    }

    /// Handles the redirect of a seed: its target is a seed from now on, and widens the scope as one.
    pub(crate) async fn seed_moved(&self, seed: &str, target: &Uri) -> Result<(), Halt> {
        let Ok(prefix) = opilio_uri::implied_surt_prefix(target.as_str()) else {
            return Ok(());
        };
        // Held until the new plugins are in effect, so that two concurrent redirects do not undo each other.
        let mut seeds = self.seeds.lock().await;
        if seeds.set.covers(&target.surt()) {
            return Ok(());
        }
        let moves = seeds.moves.entry(seed.to_owned()).or_default();
        *moves += 1;
        if *moves > SEED_MOVES_MAX {
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
    pub(crate) async fn replace_seed_prefixes(&self, set: SurtPrefixSet) -> Result<(), Halt> {
        let mut seeds = self.seeds.lock().await;
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
            .run(Lane::Document, move || {
                current.pool().with_seed_prefixes(&prefixes)
            })
            .await?;
        made.map_err(Halt::Seed)
    }

    /// Puts plugins into effect for all work that begins from now on. The caller has held [`Context::seeds`] since it made them,
    /// so that two concurrent changes do not undo each other.
    pub(crate) fn set_plugins(&self, pool: Pool) {
        let stacks = Stacks::with(self.current().settings(), pool);
        *self.stacks.write().unwrap_or_else(PoisonError::into_inner) = stacks;
    }

    /// Counts a finished visit.
    pub(crate) fn finished(&self, queue: &str, line: &LogLine, document: bool) {
        self.counters
            .documents
            .fetch_add(u64::from(document), Ordering::Relaxed);
        self.counters.lines.fetch_add(1, Ordering::Relaxed);
        let size = line.size.unwrap_or(0);
        self.counters.bytes.fetch_add(size, Ordering::Relaxed);
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn few_panics_fail_their_uris_and_more_halt_the_crawl() {
        let counters = Counters::default();
        assert!((0..PANICS_MAX).all(|_| counters.survives_panic()));
        assert!(!counters.survives_panic());
    }

    #[test]
    fn each_cause_has_its_own_remedy_and_no_other() {
        let expected = [
            (28, "free space"),
            (122, "disk quota"),
            (27, "ulimit -f"),
            (30, "mount"),
            (13, "allow the user"),
            (1, "immutable"),
            (5, "dmesg"),
            (24, "ulimit -n"),
            (23, "file-max"),
        ];
        for (code, words) in expected {
            let io = || io::Error::from_raw_os_error(code);
            let archive = || opilio_archive::Error::Write {
                file: std::path::PathBuf::from("a.warc.gz"),
                offset: 7,
                source: io(),
            };
            for halt in [Halt::Log(io()), Halt::Archive(archive())] {
                let said = halt.told();
                assert!(said.contains(words), "{code}: {said}");
                assert!(said.ends_with("then run the same command again"), "{said}");
                let is_about_space = matches!(code, 28 | 122);
                assert_eq!(said.contains("free space"), is_about_space, "{said}");
                assert!(!said.contains("checkpoint"), "{said}");
            }
        }
    }
}
