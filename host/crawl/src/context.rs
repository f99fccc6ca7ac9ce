//! What every URI of a crawl shares: frontier, fetcher, archive, plugins, logs, counters.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use opilio_archive::{Location, Record, Writers};
use opilio_fetch::Fetcher;
use opilio_frontier::Frontier;
use opilio_profile::{Profile, Settings};
use opilio_sandbox::Fault;
use opilio_uri::{SurtPrefixSet, Uri};

use crate::crawl_log::LogLine;
use crate::lanes::{Lane, LanePanic, Lanes};
use crate::logs::Logs;
use crate::progress::QueueTally;
use crate::scope::Judged;
use crate::servers::Servers;
use crate::stacks::Stacks;

/// Scope calls that may fail in a row before the crawl stops: what a failing scope would have let in is lost, so a
/// scope that fails for good must not go on quietly.
const SCOPE_FAULTS_MAX: u32 = 25;

/// Times that one seed may widen the scope by redirecting: http to https, to www, to a new name. What redirects more
/// often is led by somebody else.
const SEED_MOVES_MAX: u32 = 5;

/// Queues whose activity is counted for the progress display; past it the quieter half is forgotten.
const TALLIES_MAX: usize = 4096;

/// Shared by all workers of a crawl.
pub(crate) struct Context {
    pub profile: Arc<Profile>,
    pub fetcher: Fetcher,
    pub frontier: Mutex<Frontier>,
    pub writers: Arc<Writers>,
    pub lanes: Lanes,
    pub logs: Logs,
    pub servers: Servers,
    pub counters: Counters,
    pub seeds: tokio::sync::Mutex<SeedPrefixes>,
    pub stacks: RwLock<Arc<Stacks>>,
    pub tallies: Mutex<HashMap<String, QueueTally>>,
    pub scope_faults_in_a_row: AtomicU32,
}

/// SURT prefixes that the seeds imply, and where those of redirected seeds are kept.
pub(crate) struct SeedPrefixes {
    pub set: SurtPrefixSet,
    pub file: std::path::PathBuf,
    /// How often each seed has widened the scope in this process.
    pub moves: HashMap<String, u32>,
}

/// Counted by this process; the frontier's own counters are durable.
#[derive(Default)]
pub(crate) struct Counters {
    pub bytes: AtomicU64,
    pub documents: AtomicU64,
    pub lines: AtomicU64,
    pub faults: AtomicU64,
    pub out_of_scope: AtomicU64,
    /// Milliseconds of this process that the frontier's statistics have.
    pub run_time: AtomicU64,
}

impl Counters {
    pub(crate) fn out_of_scope(&self, count: u64) {
        self.out_of_scope.fetch_add(count, Ordering::Relaxed);
    }
}

/// Why a crawl cannot go on. Nothing is lost: the URI at hand is put back at the next start.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The frontier's store failed.
    #[error("the frontier's store failed")]
    Frontier(#[from] opilio_frontier::Error),
    /// The archive cannot be written, usually because the disk is full.
    #[error("the archive cannot be written; free space, then run the same command again")]
    Archive(#[from] opilio_archive::Error),
    /// A log cannot be written, usually because the disk is full.
    #[error("a log cannot be written; free space, then run the same command again")]
    Log(#[from] io::Error),
    /// Large bodies cannot be spooled, usually because the disk is full.
    #[error(
        "the scratch directory cannot be written: {0}; free space, then run the same command again"
    )]
    Scratch(String),
    /// A scope filter fails again and again.
    #[error(
        "scope filter {plugin} failed {SCOPE_FAULTS_MAX} times in a row, last with {message}; mend it and run the same command again"
    )]
    Scope {
        /// The filter.
        plugin: String,
        /// Its last fault.
        message: String,
    },
    /// Scope could not be widened to a redirected seed.
    #[error("the scope cannot be configured with a redirected seed: {0}")]
    Seed(String),
    /// The frontier waits for a URI that no worker has: a defect of ours.
    #[error(
        "the frontier waits for a URI that no worker has; please report it, then run the same command again"
    )]
    NobodyAtWork,
    /// A worker panicked: a defect of ours.
    #[error("a worker panicked: {0}; please report it, then run the same command again")]
    Worker(String),
    /// A defect of ours.
    #[error(transparent)]
    Lane(#[from] LanePanicked),
}

/// A plugin lane panicked: a defect of ours.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LanePanicked(LanePanic);

impl From<LanePanic> for Halt {
    fn from(panic: LanePanic) -> Halt {
        Halt::Lane(LanePanicked(panic))
    }
}

impl Context {
    /// The frontier, for one call. Never held across an await.
    pub(crate) fn frontier(&self) -> MutexGuard<'_, Frontier> {
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plugins in force now.
    pub(crate) fn stacks(&self) -> Arc<Stacks> {
        self.stacks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The plugins in force now for what these settings hold for.
    pub(crate) fn stacks_of(&self, settings: &Settings) -> Arc<Stacks> {
        self.stacks().selected(settings, self.profile.settings())
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
                writers.write(&records, Timestamp::now())
            })
            .await??)
    }

    /// Logs and counts faults of plugins.
    pub(crate) fn faults(&self, faults: &[Fault]) -> Result<(), Halt> {
        for fault in faults {
            self.counters.faults.fetch_add(1, Ordering::Relaxed);
            self.logs.fault(fault)?;
        }
        Ok(())
    }

    /// Faults of scope filters, which stop the crawl when nothing else comes of them.
    pub(crate) fn scope_faults(&self, judged: &Judged) -> Result<(), Halt> {
        self.faults(&judged.faults)?;
        if !judged.unanswered {
            self.scope_faults_in_a_row.store(0, Ordering::Relaxed);
            return Ok(());
        }
        let in_a_row = self.scope_faults_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        match judged.faults.last() {
            Some(fault) if in_a_row >= SCOPE_FAULTS_MAX => Err(Halt::Scope {
                plugin: fault.plugin.to_string(),
                message: fault.message.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// A seed redirects: its target is a seed from now on, and widens the scope as one.
    pub(crate) async fn seed_moved(&self, seed: &str, target: &Uri) -> Result<(), Halt> {
        let Ok(prefix) = opilio_uri::implied_surt_prefix(target.as_str()) else {
            return Ok(());
        };
        // Held until the new plugins are in force, so that of two redirects neither undoes the other.
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
        let current = self.stacks();
        let stacks = self
            .lanes
            .run(Lane::Document, move || {
                current.with_seed_prefixes(&prefixes)
            })
            .await?
            .map_err(Halt::Seed)?;
        append_line(&seeds.file, &format!("{prefix} # {seed}"))?;
        *self.stacks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(stacks);
        Ok(())
    }

    /// Has the scope go by these prefixes from now on: a seed was removed.
    pub(crate) async fn replace_seed_prefixes(&self, set: SurtPrefixSet) -> Result<(), Halt> {
        let mut seeds = self.seeds.lock().await;
        let prefixes: Vec<String> = set.iter().map(str::to_owned).collect();
        let current = self.stacks();
        let stacks = self
            .lanes
            .run(Lane::Document, move || {
                current.with_seed_prefixes(&prefixes)
            })
            .await?
            .map_err(Halt::Seed)?;
        seeds.set = set;
        *self.stacks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(stacks);
        Ok(())
    }

    /// Counts a finished turn.
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
