//! One crawl, from a profile to closed WARC files.
//!
//! [`plan`] checks everything that can be checked without creating anything; [`Plan::begin`] makes or resumes the job;
//! [`Crawl::run`] crawls until nothing is left, a limit is reached, or it is asked to stop.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_archive::{PayloadsError, Repaired, archives};
use opilio_fetch::Cut;
use opilio_frontier::{
    Candidate, Directive, Frontier, Issue, Next, Quota, Statistics, Tally, UriRecord, WarcLocation,
};
use opilio_profile::{Faults, Given, Layer, Profile, SecretSource, Seed, Seeds};
use opilio_sandbox::{Candidates, Engine, EngineConfig, Tables};
use opilio_source::{Sources, SourcesConfig};
use opilio_uri::{HopPath, SurtPrefixSet, Uri};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::actions;
use crate::alerts::{AlertKind, Board, Notifier, Severity};
use crate::archive;
use crate::budget::Budget;
use crate::census::{self, LastCensus};
use crate::chain::Chain;
use crate::components::JobPlugins;
use crate::context::{Context, Counters, Halt, SeedPrefixes};
use crate::control::{self, Desk, Flight, JobLog, Live, Running, Server};
use crate::cookies::Cookies;
use crate::course::Course;
use crate::credentials::{Credentials, Missing};
use crate::duplicates::Duplicates;
use crate::fetchers::{FetcherError, Fetchers};
use crate::handover::{self, Handover};
use crate::job::{self, Job, JobError};
use crate::lanes::Lanes;
use crate::ledger::Ledger;
use crate::logins::Logins;
use crate::logs::Logs;
use crate::observers::{self, Observers};
use crate::plugin_report;
use crate::policy;
use crate::precedence::{self, QueueTurns};
use crate::progress::{End, Progress, Summary};
use crate::pulse;
use crate::recorder::Recorder;
use crate::replace::{self, Workshop};
use crate::series::Series;
use crate::servers::Servers;
use crate::settings;
use crate::share::Share;
use crate::stacks::{self, Loaded, Loading, Stacks};
use crate::standing;
use crate::tables::{self, TableKeeper};

/// The frontier is forced to the disk at most this often, however short the profile's interval.
const SYNC_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Longest pause before the frontier is asked again, so that a clock that is set back costs no more than this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How often the time is looked at.
const TIME_INTERVAL: Duration = Duration::from_secs(30);

/// Queues resolved at once.
const QUEUES_RESOLVED: usize = 500;

/// Seeds given to the frontier at once.
const SEED_BATCH: usize = 10_000;

/// What to crawl with.
#[derive(Clone, Debug)]
pub enum ProfileSource {
    /// A file.
    File(PathBuf),
    /// One that ships, by name.
    Builtin(String),
    /// In memory; the name is what faults call it.
    Text {
        /// What faults call it.
        file: String,
        /// TOML.
        text: String,
    },
}

/// What a crawl is asked for on the command line.
#[derive(Clone, Debug)]
pub struct Order {
    /// The profile. A job that is resumed goes on with its own copy.
    pub profile: ProfileSource,
    /// More seeds.
    pub seeds: Vec<String>,
    /// Contact URL, in place of the profile's.
    pub contact_url: Option<String>,
    /// The job's directory; `jobs/` and the profile's name where none is given.
    pub job: Option<PathBuf>,
    /// Where compiled components are kept; none compiles them at every start.
    pub component_cache: Option<PathBuf>,
}

/// Why there is no crawl.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The profile, or a component, has faults. Nothing has been created.
    #[error("{0}")]
    Profile(Faults),
    /// The job directory cannot be used.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The plugin engine cannot be set up.
    #[error(transparent)]
    Engine(#[from] opilio_sandbox::EngineError),
    /// The frontier cannot be opened.
    #[error(transparent)]
    Frontier(#[from] opilio_frontier::Error),
    /// The job's profile names URIs or queues in another way than when the job was made.
    #[error(
        "the job's profile says otherwise than when the job was made which URIs count as the same or how queues are named ([canonicalization], frontier.queue-key, frontier.parallel-queues, queue.name): put it back, or make a new job; then it said {then}"
    )]
    Identity {
        /// What it said, as JSON.
        then: String,
    },
    /// What is stored already cannot be looked up.
    #[error("payloads cannot be looked up")]
    Payloads(#[from] PayloadsError),
    /// The archive cannot be opened.
    #[error(transparent)]
    Archive(#[from] opilio_archive::Error),
    /// The job's list of plugins, or its copies of their components, cannot be used.
    #[error("{0}")]
    Kept(String),
    /// The fetcher cannot be set up.
    #[error(transparent)]
    Fetch(#[from] FetcherError),
    /// The file system refused.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

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
    notes: Vec<String>,
}

/// A crawl that is ready to run.
pub struct Crawl {
    context: Arc<Context>,
    job: Job,
    repaired: Vec<Repaired>,
    stop: Stop,
    live: Arc<Live>,
    log: Arc<JobLog>,
    /// What the operator was told of before it began, for `job.log`.
    notes: Vec<String>,
    began: Instant,
    /// The frontier's statistics when it began: limits count from there.
    baseline: Statistics,
    /// Of the whole crawl, over all its processes.
    quota: Quota,
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

/// Checks profile, seeds and components. Creates nothing but entries of the component cache.
///
/// # Errors
/// [`CrawlError::Profile`] with every fault at its place; or why the engine cannot run here.
pub fn plan(order: &Order) -> Result<Plan, CrawlError> {
    let given = Given {
        builtins: opilio_builtin::all()
            .map(|builtin| builtin.plugin.to_owned())
            .collect(),
        seeds: order.seeds.clone(),
        contact_url: order.contact_url.clone(),
        ..Given::default()
    };
    let resumed = order
        .job
        .as_deref()
        .filter(|directory| job::is_job(directory));
    let (mut profile, mut base) = match resumed {
        Some(directory) => frozen(directory, given.clone())?,
        None => written(&order.profile, &given)?,
    };
    let directory = order
        .job
        .clone()
        .unwrap_or_else(|| Path::new("jobs").join(file_name(&profile.name)));
    if resumed.is_none() && job::is_job(&directory) {
        (profile, base) = frozen(&directory, given)?;
    }
    let mut notes = other_profile(&order.profile, &profile, &directory);
    profile.check_job().map_err(CrawlError::Profile)?;
    let prefixes = seed_prefixes(&profile, &job::redirected_seeds(&directory))?;
    let engine = Engine::new(EngineConfig {
        cache_dir: order.component_cache.clone(),
        ..EngineConfig::default()
    })?;
    let list: Vec<String> = prefixes.iter().map(str::to_owned).collect();
    let kept = JobPlugins::read(&directory)
        .map_err(|problem| CrawlError::Kept(stacks::chain(&problem)))?;
    let sources = sources(&directory);
    let (tables, plugins) = load(&engine, &profile, &list, &sources, Some(&kept))?;
    notes.extend(plugins.notes.iter().cloned());
    Ok(Plan {
        profile,
        tables,
        plugins,
        engine,
        sources,
        directory,
        base,
        prefixes,
        notes,
    })
}

/// The plugins that ship, by the names that profiles have for them.
pub fn builtin_plugins() -> Vec<String> {
    opilio_builtin::all()
        .map(|builtin| builtin.plugin.to_owned())
        .collect()
}

/// Loads the components of a profile and checks their settings. Creates nothing but entries of the component cache.
///
/// # Errors
/// [`CrawlError::Profile`] with every fault at its place; or why the engine cannot run here.
pub fn check_plugins(
    profile: &Profile,
    component_cache: Option<PathBuf>,
) -> Result<(), CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    load(&engine, profile, &[], &sources(Path::new("")), None).map(drop)
}

/// The schema of each plugin's settings, by the instance's name in the profile.
///
/// # Errors
/// As [`check_plugins`].
pub fn settings_schemas(
    profile: &Profile,
    component_cache: Option<PathBuf>,
) -> Result<Vec<(String, serde_json::Value)>, CrawlError> {
    let engine = Engine::new(EngineConfig {
        cache_dir: component_cache,
        ..EngineConfig::default()
    })?;
    let (_, loaded) = load(&engine, profile, &[], &sources(Path::new("")), None)?;
    Ok(loaded.stacks.pool().schemas())
}

/// Tables and plugins; faults of both at once.
pub(crate) fn load(
    engine: &Engine,
    profile: &Profile,
    seed_prefixes: &[String],
    sources: &Sources,
    job: Option<&JobPlugins>,
) -> Result<(TableKeeper, Loaded), CrawlError> {
    let tables = TableKeeper::load(profile);
    let none = Tables::default();
    let loading = Loading {
        engine,
        profile,
        seed_prefixes,
        tables: tables.as_ref().map_or(&none, TableKeeper::tables),
        sources,
        job,
        only: None,
    };
    let plugins = stacks::load(loading);
    match (tables, plugins) {
        (Ok(tables), Ok(plugins)) => Ok((tables, plugins)),
        (Err(faults), Ok(_)) | (Ok(_), Err(faults)) => Err(CrawlError::Profile(faults)),
        (Err(mut faults), Err(more)) => {
            faults.append(more);
            Err(CrawlError::Profile(faults))
        }
    }
}

/// Where components come from. Whoever has no home directory has a store with the job.
pub(crate) fn sources(job: &Path) -> Sources {
    Sources::new(SourcesConfig::standard().unwrap_or_else(|_| SourcesConfig {
        store: job.join("store"),
        credentials: None,
        now: Timestamp::now,
    }))
}

/// A job goes on with its own copy of the profile; where the command line names another text, that must be said.
fn other_profile(source: &ProfileSource, profile: &Profile, directory: &Path) -> Vec<String> {
    let (named, text) = match source {
        ProfileSource::File(path) => (
            path.display().to_string(),
            std::fs::read_to_string(path).ok(),
        ),
        ProfileSource::Builtin(name) => (
            format!("the built-in profile {name}"),
            Profile::builtin_text(name).map(str::to_owned),
        ),
        ProfileSource::Text { file, text } => (file.clone(), Some(text.clone())),
    };
    if !job::is_job(directory) || text.is_none_or(|text| text == profile.source_text()) {
        return Vec::new();
    }
    let job = directory.display();
    vec![format!(
        "{named} differs from the profile that job {job} was made with; the job goes on with its own copy, \
         {job}/profile.toml: change that, or name another directory with --job"
    )]
}

/// The profile as the command line names it, and the folder its relative paths start from.
fn written(source: &ProfileSource, given: &Given) -> Result<(Profile, PathBuf), CrawlError> {
    let here = std::env::current_dir().unwrap_or_default();
    let profile = match source {
        ProfileSource::File(path) => {
            let folder = here.join(path.parent().unwrap_or(Path::new("")));
            return Ok((
                Profile::load(path, given).map_err(CrawlError::Profile)?,
                folder,
            ));
        }
        ProfileSource::Builtin(name) => Profile::builtin(name, given),
        ProfileSource::Text { file, text } => Profile::parse(file, text, given),
    };
    Ok((profile.map_err(CrawlError::Profile)?, here))
}

/// The profile that the job in `directory` goes on with.
pub(crate) fn frozen_profile(directory: &Path) -> Result<Profile, CrawlError> {
    changed_profile(directory, None)
}

/// The profile as the job froze it, with the job's own seeds.
fn frozen(directory: &Path, given: Given) -> Result<(Profile, PathBuf), CrawlError> {
    frozen_with(directory, given, None)
}

/// The same, with one more change: its name for faults, and its text.
fn frozen_with(
    directory: &Path,
    given: Given,
    change: Option<(&str, &str)>,
) -> Result<(Profile, PathBuf), CrawlError> {
    let copy = job::Frozen::read(directory)?;
    let (again, _) = Seeds::parse("--seed", &given.seeds.join("\n"));
    let mut seeds = vec![copy.seeds.clone()];
    seeds.extend(given.seeds);
    let given = Given {
        seeds,
        seeds_elsewhere: true,
        name: Some(copy.name.clone()),
        base: Some(copy.base.clone()),
        ..given
    };
    let mut profile = layered(directory, &copy, change, &given)?;
    // Those that the operator has removed may stand in the profile, which stays as it was frozen.
    let removed = job::removed_seeds(directory);
    let is_given = |seed: &Seed| again.list.iter().any(|given| given.uri == seed.uri);
    profile
        .seeds
        .list
        .retain(|seed| !removed.contains(seed.uri.as_str()) || is_given(seed));
    Ok((profile, copy.base))
}

/// The job's copy of its profile, over what it extends and below what was changed since.
fn layered(
    directory: &Path,
    copy: &job::Frozen,
    change: Option<(&str, &str)>,
    given: &Given,
) -> Result<Profile, CrawlError> {
    let unreadable = |source| io_error(directory, source);
    let own = Layer {
        file: copy.profile.display().to_string(),
        text: std::fs::read_to_string(&copy.profile)
            .map_err(|source| io_error(&copy.profile, source))?,
        base: copy.base.clone(),
    };
    let below = settings::layers(directory).map_err(unreadable)?;
    let mut above = settings::changes(directory, &copy.base).map_err(unreadable)?;
    above.extend(change.map(|(file, text)| Layer {
        file: file.to_owned(),
        text: text.to_owned(),
        base: copy.base.clone(),
    }));
    Profile::layered(below, own, above, given).map_err(CrawlError::Profile)
}

/// The profile of a job with one more change, which is called by this name.
pub(crate) fn changed_profile(
    directory: &Path,
    change: Option<(&str, &str)>,
) -> Result<Profile, CrawlError> {
    let given = Given {
        builtins: opilio_builtin::all()
            .map(|builtin| builtin.plugin.to_owned())
            .collect(),
        ..Given::default()
    };
    frozen_with(directory, given, change).map(|(profile, _)| profile)
}

/// A profile's name as a folder's.
fn file_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    match name.trim_matches('.') {
        "" => "crawl".to_owned(),
        name => name.to_owned(),
    }
}

fn seed_prefixes(profile: &Profile, redirected: &[String]) -> Result<SurtPrefixSet, CrawlError> {
    let mut set = SurtPrefixSet::default();
    for seed in &profile.seeds.list {
        set.insert(&seed.surt_prefix);
    }
    for line in profile.seeds.surt_prefixes.iter().chain(redirected) {
        match opilio_uri::surt_prefix_from_line(line) {
            Ok(Some(prefix)) => set.insert(&prefix),
            Ok(None) => {}
            Err(problem) => {
                let fault = profile.fault_at("/seeds", format!("SURT prefix {line:?}: {problem}"));
                return Err(CrawlError::Profile(fault.into()));
            }
        }
    }
    Ok(set)
}

impl Plan {
    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What the operator should know before it begins, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where the job is or will be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the job and does not begin to crawl: that is for the process that runs it.
    ///
    /// # Errors
    /// [`CrawlError`]; a job that is in use or of another version is left as it is.
    pub fn make(self) -> Result<Job, CrawlError> {
        let seeds = seeds_as_lines(&self.profile);
        let copies = job::Copies {
            profile: self.profile.source_text(),
            name: &self.profile.name,
            seeds: &seeds,
            base: &self.base,
            layers: self.profile.extended(),
        };
        let job = Job::open(&self.directory, &copies, Timestamp::now())?;
        let kept = self
            .plugins
            .job
            .write(job.directory(), &self.plugins.components);
        kept.map_err(|problem| CrawlError::Kept(stacks::chain(&problem)))?;
        if let Err(problem) = self
            .sources
            .begun(job.directory(), self.plugins.job.frozen())
        {
            tracing::warn!(
                "the store does not know of the job: {}",
                stacks::chain(&problem)
            );
        }
        Ok(job)
    }

    /// Makes or resumes the job and opens everything that the crawl needs.
    ///
    /// # Errors
    /// [`CrawlError`]; a job that is in use or of another version is left as it is.
    pub fn begin(self) -> Result<Crawl, CrawlError> {
        let Plan {
            profile,
            tables,
            plugins,
            engine,
            sources,
            directory,
            base,
            prefixes,
            notes,
        } = self;
        let now = Timestamp::now();
        let (credentials, logins) = secrets(&profile).map_err(CrawlError::Profile)?;
        let seeds = seeds_as_lines(&profile);
        let job = Job::open(
            &directory,
            &job::Copies {
                profile: profile.source_text(),
                name: &profile.name,
                seeds: &seeds,
                base: &base,
                layers: profile.extended(),
            },
            now,
        )?;
        job.add_seeds(&seeds)?;
        job.restore_seeds(&profile.seeds)?;
        let profile = Arc::new(profile);
        let mut frontier = Frontier::open(&job.state(), policy::frontier_config(&profile))?;
        keep_identity(&mut frontier, &profile)?;
        let baseline = frontier.statistics();
        let course = Course::begin(job.directory(), baseline)
            .map_err(|source| io_error(job.directory(), source))?;
        let quota = policy::quota(&profile.queue_settings("").quotas.crawl);
        let fetchers = Fetchers::new(&profile, job.scratch())?;
        let cut = fetchers.base().cut();
        let kept = plugins.job.write(job.directory(), &plugins.components);
        kept.map_err(|problem| CrawlError::Kept(stacks::chain(&problem)))?;
        if let Err(problem) = sources.begun(job.directory(), plugins.job.frozen()) {
            tracing::warn!(
                "the store does not know of the job: {}",
                stacks::chain(&problem)
            );
        }
        let recorder = Recorder::new(profile.record.clone(), job.directory());
        let pool = plugins.stacks.pool().recorded(recorder);
        let stacks = Stacks::with(profile.settings(), pool);
        let (writers, repaired) = archive::open(&profile, stacks.in_force(), job.directory())?;
        let logs_directory = job.directory().join(&profile.logs.directory);
        let frontier = Mutex::new(frontier);
        let ledger = Ledger::open(&logs_directory, &frontier)
            .map_err(|source| io_error(&logs_directory, source))?;
        let ledger = Arc::new(ledger);
        let logs = Logs::open(&logs_directory, &profile.logs, ledger.clone())
            .map_err(|source| io_error(&logs_directory, source))?;
        let series = Series::open(job.directory());
        let faults_before = series
            .since(None, None)
            .last()
            .map_or(0, |last| last.faults);
        let log =
            JobLog::open(&logs_directory).map_err(|source| io_error(&logs_directory, source))?;
        let log = Arc::new(log);
        let live = Arc::<Live>::default();
        let duplicates = Duplicates::open(&profile, job.directory(), |words| {
            log.crawl("archive.duplicates", &words);
        })?;
        let config = archive::writer_config(&profile, job.directory())?;
        let finished = archives(&config)?.into_iter().map(|(file, _)| file);
        let handover = Handover::open(
            &profile.archive.on_close,
            profile.archive.on_close_timeout,
            job.directory(),
            finished,
        )
        .map_err(|source| io_error(job.directory(), source))?;
        let lanes = Lanes::start().map_err(|source| io_error(job.directory(), source))?;
        let seeds = SeedPrefixes {
            set: prefixes,
            file: job.redirected_seeds(),
            moves: HashMap::new(),
        };
        let budget = {
            let frontier = frontier.lock().unwrap_or_else(PoisonError::into_inner);
            Budget::open(&frontier, Timestamp::now())?
        };
        let context = Context {
            current: RwLock::new(profile.clone()),
            profile,
            fetcher: fetchers.base().clone(),
            fetchers,
            frontier,
            writers: Arc::new(writers),
            duplicates,
            handover,
            lanes,
            logs,
            ledger,
            series,
            census: LastCensus::default(),
            board: Board::open(job.directory()),
            notifier: Mutex::default(),
            faults_before,
            job: std::path::absolute(job.directory())
                .map_err(|source| io_error(job.directory(), source))?,
            servers: Servers::default(),
            cookies: Cookies::default(),
            credentials,
            logins,
            counters: Counters::default(),
            seeds: tokio::sync::Mutex::new(seeds),
            stacks: RwLock::new(stacks),
            tables: Arc::new(tables),
            workshop: Workshop {
                engine,
                sources,
                job: job.directory().to_owned(),
                kept: Mutex::new(plugins.job),
            },
            tallies: Mutex::default(),
            observers: Observers::default(),
            scope_faults: Mutex::default(),
            turns: QueueTurns::default(),
            budget: Mutex::new(budget),
            live: live.clone(),
            job_log: log.clone(),
        };
        let crawl = Crawl {
            context: Arc::new(context),
            job,
            repaired,
            stop: Stop {
                reason: Arc::new(watch::Sender::new(None)),
                cut,
            },
            live,
            log,
            notes,
            began: Instant::now(),
            baseline,
            quota,
            course: Arc::new(Mutex::new(course)),
        };
        crawl.load_cookies()?;
        crawl.schedule_lost()?;
        crawl.schedule_seeds()?;
        Ok(crawl)
    }
}

impl Crawl {
    /// Puts the cookies of the profile's file into the job.
    fn load_cookies(&self) -> Result<(), CrawlError> {
        let context = &self.context;
        let settings = &context.profile.settings().cookies;
        let Some(file) = &settings.load else {
            return Ok(());
        };
        let text = std::fs::read_to_string(file).map_err(|source| io_error(file, source))?;
        let (frontier, now) = (&context.frontier, Timestamp::now());
        let loaded = context
            .cookies
            .load(frontier, &text, settings.per_host, now)?;
        let Some((count, problems)) = loaded else {
            return Ok(());
        };
        let file = file.display();
        for problem in &problems {
            tracing::warn!("{file}: {problem}; the line is left out");
        }
        let left_out = problems.len();
        context.job_log.crawl(
            &format!("cookies {file}"),
            &format!("{count} cookies read, {left_out} lines left out"),
        );
        Ok(())
    }

    /// Writes the job's cookies to the file that the profile names.
    fn save_cookies(&self) {
        let context = &self.context;
        let Some(name) = &context.profile.settings().cookies.save else {
            return;
        };
        let file = self.job.directory().join(name);
        if let Err(problem) = Cookies::save(&context.frontier, &file, Timestamp::now()) {
            let problem = stacks::chain(&problem);
            tracing::warn!("cookies are not saved to {}: {problem}", file.display());
        }
    }
}

impl Stop {
    /// Nothing more is begun; what is being fetched is finished.
    pub fn stop(&self) {
        self.end(End::Stopped);
    }

    /// As [`Stop::stop`], by the system rather than by somebody: who looks after the job begins it again.
    pub fn terminate(&self) {
        self.end(End::Terminated);
    }

    /// What is being fetched is waited for no longer: of responses that have begun, what has come is archived as
    /// truncated; what has not is fetched when the crawl goes on.
    pub fn cut(&self) {
        self.end(End::Stopped);
        self.cut.now();
    }

    /// It has been asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// It ends for this reason, unless there has been another.
    pub(crate) fn end(&self, end: End) {
        self.reason.send_if_modified(|reason| {
            let first = reason.is_none();
            reason.get_or_insert(end);
            first
        });
    }
}

impl View {
    /// The crawl as it is now.
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

impl Crawl {
    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// WARC files that a killed process had left open, and what became of them.
    pub fn repaired(&self) -> &[Repaired] {
        &self.repaired
    }

    /// To ask it to stop.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Nothing is fetched until somebody resumes it.
    pub fn pause(&self) {
        self.live.pause(true);
    }

    /// It takes so much at most of what all crawls of the machine have together, until somebody says otherwise.
    pub fn share(&self, share: Share) {
        self.context.fetcher.throttle().allow(share.allowance());
    }

    /// To watch it.
    pub fn view(&self) -> View {
        View {
            context: self.context.clone(),
            began: self.began,
        }
    }

    /// Captures that the frontier knows and the archive has lost: after a power failure the end of an open WARC file may
    /// be gone although its URIs were finished. They are fetched again.
    fn schedule_lost(&self) -> Result<(), CrawlError> {
        let kept = |repaired: &Repaired| {
            let file = repaired.file.as_ref();
            file.and_then(|file| std::fs::metadata(file).ok())
                .map_or(0, |file| file.len())
        };
        let cut: HashMap<String, u64> = self
            .repaired
            .iter()
            .filter(|repaired| {
                repaired.cut_bytes > 0 || repaired.rescued.is_some() || repaired.file.is_none()
            })
            .filter_map(|repaired| Some((final_name(&repaired.found)?, kept(repaired))))
            .collect();
        if cut.is_empty() {
            return Ok(());
        }
        if let Some(duplicates) = &self.context.duplicates {
            duplicates.forget(&cut)?;
        }
        let records = self.context.frontier().records("");
        let mut lost = Vec::new();
        for record in records {
            let record = record?;
            let gone = |at: &WarcLocation| cut.get(&at.file).is_some_and(|kept| at.offset >= *kept);
            if record.archived.as_ref().is_some_and(gone) {
                lost.extend(self.again(&record));
            }
        }
        if !lost.is_empty() {
            tracing::warn!(
                captures = lost.len(),
                "lost from the archive when power failed; fetched again"
            );
        }
        for batch in lost.chunks(SEED_BATCH) {
            self.context
                .frontier()
                .schedule(batch.to_vec(), Timestamp::now())?;
        }
        Ok(())
    }

    fn again(&self, record: &UriRecord) -> Option<Candidate> {
        let uri = Uri::parse(&record.uri).ok()?;
        Some(Candidate {
            queue: record.queue.clone(),
            seed: record.seed,
            force: true,
            ..policy::candidate(
                &self.context.profile,
                uri,
                record.hop_path.clone(),
                record.via.as_deref(),
                record.source.as_deref(),
            )
        })
    }

    fn schedule_seeds(&self) -> Result<(), opilio_frontier::Error> {
        let context = &self.context;
        let mut candidates: Vec<Candidate> = context
            .profile
            .seeds
            .list
            .iter()
            .map(|Seed { uri, .. }| seed_candidate(&context.profile, uri))
            .collect();
        for batch in candidates.chunks_mut(SEED_BATCH) {
            self.rank_seeds(batch);
            context
                .frontier()
                .schedule(batch.to_vec(), Timestamp::now())?;
        }
        Ok(())
    }

    /// Gives seeds the precedence that plugins say they have. What they cannot be asked has that of the profile.
    fn rank_seeds(&self, seeds: &mut [Candidate]) {
        let context = &self.context;
        let stacks = context.stacks();
        if stacks.precedence.is_empty() {
            return;
        }
        let seen: Candidates = seeds.iter().map(standing::seed).collect();
        let ranked = context
            .lanes
            .wait(move || precedence::rank(&stacks.precedence, &seen, None));
        let ranked = ranked.map_err(Halt::from).and_then(|ranked| {
            context.failures(&ranked.failures)?;
            Ok(ranked.ranks)
        });
        match ranked {
            Ok(ranks) => {
                for (seed, rank) in seeds.iter_mut().zip(ranks) {
                    seed.precedence = rank.unwrap_or(seed.precedence);
                }
            }
            Err(halt) => self.stop.end(End::Halted(stacks::chain(&halt))),
        }
    }

    /// Crawls until nothing is left, a limit is reached, or [`Stop::stop`] is called; then closes the archive.
    pub async fn run(self) -> Summary {
        let limit = self.context.profile.limits.time;
        let timer = limit.map(|limit| {
            let stop = self.stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(limit).await;
                stop.end(End::TimeLimit);
            })
        });
        // Whoever works beside the dispatcher ends when `running` is gone.
        let (running, ended) = watch::channel(());
        let syncing = self.context.profile.archive.fsync.map(|interval| {
            tokio::spawn(sync_frontier(
                self.context.clone(),
                interval.max(SYNC_INTERVAL_MIN),
                ended.clone(),
            ))
        });
        let watching = observers::start(&self.context, self.job.directory(), &self.stop);
        let watching = watching.map_err(|problem| {
            let problem = format!("an observer's memory cannot be read: {problem}");
            self.stop.end(End::Halted(problem));
        });
        let server = self.take_commands();
        let words = match self.baseline.discovered {
            0 => "a new job",
            _ => "goes on",
        };
        self.log.crawl("begin", words);
        for note in &self.notes {
            self.log.crawl("note", note);
        }
        let keeping = tokio::spawn(keep_time(
            self.context.clone(),
            self.live.clone(),
            self.began,
            ended.clone(),
        ));
        let notifier = Notifier::start(&self.context.profile.alerts, &self.context.job);
        *self
            .context
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = notifier;
        self.context.clear(AlertKind::Halted, "");
        let beating = tokio::spawn(pulse::keep(
            self.context.clone(),
            self.stop.clone(),
            self.context.job.clone(),
            self.began,
            ended.clone(),
        ));
        let counting = tokio::spawn(census::keep_queues(self.context.clone(), ended.clone()));
        let ageing = tokio::spawn(census::keep_pages(self.context.clone(), ended.clone()));
        let noting = tokio::spawn(note_course(
            self.context.clone(),
            self.course.clone(),
            self.job.directory().to_owned(),
            ended.clone(),
        ));
        let tables = self.context.tables.clone();
        let looking = tokio::spawn(tables::keep(tables, self.log.clone(), ended.clone()));
        let replacing = tokio::spawn(replace::watch(self.context.clone(), ended.clone()));
        let acting = tokio::spawn(actions::keep(self.running(), ended.clone()));
        let job = self.job.directory().to_owned();
        let finishing = tokio::spawn(handover::look_after(self.context.clone(), ended.clone()));
        let handing = tokio::spawn(handover::hand_over(self.context.clone(), ended.clone()));
        let reporting = tokio::spawn(write_reports(self.context.clone(), job, ended));
        let end = match self.dispatch().await {
            Ok(end) => end,
            Err(halt) => End::Halted(stacks::chain(&halt)),
        };
        if let End::Halted(why) = &end {
            let why = format!("it could not go on: {why}");
            self.context
                .raise(AlertKind::Halted, "", Severity::Critical, &why);
        }
        if let Some(server) = server {
            server.close().await;
        }
        if let Some(timer) = timer {
            timer.abort();
        }
        if let Ok(watching) = watching {
            watching.finish(&self.context.observers).await;
        }
        drop(running);
        for task in syncing
            .into_iter()
            .chain([
                keeping, noting, looking, replacing, reporting, finishing, handing,
            ])
            .chain([beating, counting, ageing, acting])
        {
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

    /// Takes operators' commands while the crawl runs. It runs without them where it must.
    fn take_commands(&self) -> Option<Server> {
        Server::start(self.running())
            .inspect_err(|problem| tracing::warn!("the crawl takes no commands: {problem}"))
            .ok()
    }

    /// As commands see it.
    fn running(&self) -> Running {
        Running {
            context: self.context.clone(),
            live: self.live.clone(),
            stop: self.stop.clone(),
            view: self.view(),
            // Who asks may stand elsewhere.
            job: std::path::absolute(self.job.directory())
                .unwrap_or_else(|_| self.job.directory().to_owned()),
            log: self.log.clone(),
        }
    }

    /// Hands issued URIs to workers until the end, then waits for those at work.
    async fn dispatch(&self) -> Result<End, Halt> {
        let mut stop = self.stop.reason.subscribe();
        let mut at_work: JoinSet<(usize, Result<(), Halt>)> = JoinSet::new();
        let mut idle: Vec<usize> = (1..=self.context.profile.workers).rev().collect();
        let throttle = self.context.fetcher.throttle();
        let mut halted = None;
        let mut paused = Paused::No;
        let end = loop {
            while let Some(done) = at_work.try_join_next() {
                halted = halted.or(returned(done, &mut idle));
            }
            if halted.is_some() {
                break End::Stopped;
            }
            let asked = self.stop.reason.borrow().clone();
            if let Some(end) = asked.or_else(|| self.limit_reached()) {
                break end;
            }
            let holds = self.live.holds();
            paused = paused.then(holds, at_work.is_empty(), &self.log);
            let is_at_share = !idle.is_empty() && at_work.len() >= throttle.connections_max();
            if is_at_share && !holds {
                self.live.wants_connections();
            }
            let is_full =
                idle.is_empty() || is_at_share || !self.room_for_a_document(at_work.len());
            // Asked first: what is resolved while the frontier is asked may be what it does not give yet.
            let are_queues_resolved = self.live.are_queues_resolved();
            let next = match holds || is_full {
                true => Next::InProcess,
                false => self.context.frontier().next(Timestamp::now())?,
            };
            self.live.wait_until(match (&next, holds || is_full) {
                (Next::WaitUntil(at), false) => Some(*at),
                (Next::Empty, false) => Some(Timestamp::MAX),
                _ => None,
            });
            let pause = match next {
                Next::Issue(issue) => {
                    if let Some(worker) = idle.pop() {
                        let flight = self.live.begin(issue.ticket, issue.uri.as_str());
                        at_work.spawn(work(self.context.clone(), issue, worker, flight));
                    }
                    continue;
                }
                // What the operator has frozen is to go on some time; what is retired is done with.
                Next::Empty if are_queues_resolved && !self.holds_frozen()? => break End::Finished,
                Next::Empty => PAUSE_MAX,
                Next::InProcess if at_work.is_empty() && !holds => break Err(Halt::NobodyAtWork)?,
                Next::InProcess => PAUSE_MAX,
                Next::WaitUntil(at) => {
                    Duration::try_from(at - Timestamp::now()).unwrap_or_default()
                }
            };
            // A worker that is done is seen here as its task ends, so none is ever waited for in vain.
            tokio::select! {
                Some(done) = at_work.join_next() => halted = halted.or(returned(done, &mut idle)),
                () = tokio::time::sleep(pause.min(PAUSE_MAX)) => {}
                _ = stop.changed() => {}
                () = self.live.nudged() => {}
            }
        };
        let grace = self.context.profile.settings().fetch.stop_grace;
        let mut grace = pin!(async {
            match grace {
                Some(grace) => tokio::time::sleep(grace).await,
                None => std::future::pending().await,
            }
        });
        let mut waits = true;
        loop {
            tokio::select! {
                done = at_work.join_next() => match done {
                    Some(done) => halted = halted.or(returned(done, &mut idle)),
                    None => break,
                },
                () = &mut grace, if waits => {
                    waits = false;
                    self.stop.cut();
                }
            }
        }
        halted.map_or(Ok(end), Err)
    }

    /// Whether a frozen queue keeps the crawl from being finished.
    fn holds_frozen(&self) -> Result<bool, Halt> {
        let frontier = self.context.frontier();
        Ok(frontier.statistics().queued > 0 && frontier.has_frozen()?)
    }

    /// Whether one more document may be begun, were all that is at work to succeed: the limit is never exceeded.
    fn room_for_a_document(&self, at_work: usize) -> bool {
        let profile = self.context.current();
        let limits = &profile.limits;
        let at_work = at_work as u64;
        let documents = self.context.counters.documents.load(Ordering::Relaxed);
        let room =
            |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count + at_work < limit);
        if !room(limits.documents, documents) || self.quota_reached(at_work).is_some() {
            return false;
        }
        if limits.fetched.is_none() && limits.succeeded.is_none() {
            return true;
        }
        let since = self.since_begin();
        room(limits.fetched, since.fetched) && room(limits.succeeded, since.succeeded)
    }

    /// Which quota of the whole crawl has been reached, were so many more documents to come in: over all its processes,
    /// and of time that for which they ran.
    fn quota_reached(&self, at_work: u64) -> Option<&'static str> {
        if self.quota == Quota::default() {
            return None;
        }
        let statistics = self.context.frontier().statistics();
        let ran = Tally {
            run_time: statistics.run_time,
            ..statistics.tally
        };
        self.quota.reached(&ran, at_work)
    }

    /// What this process has brought in.
    fn since_begin(&self) -> Tally {
        let now = self.context.frontier().statistics().tally;
        let before = self.baseline.tally;
        Tally {
            fetched: now.fetched - before.fetched,
            succeeded: now.succeeded - before.succeeded,
            novel: now.novel - before.novel,
            bytes: now.bytes - before.bytes,
            novel_bytes: now.novel_bytes - before.novel_bytes,
            run_time: now.run_time.saturating_sub(before.run_time),
        }
    }

    fn limit_reached(&self) -> Option<End> {
        let profile = self.context.current();
        let limits = &profile.limits;
        let counters = &self.context.counters;
        let documents = counters.documents.load(Ordering::Relaxed);
        if limits.documents.is_some_and(|limit| documents >= limit) {
            return Some(End::DocumentLimit);
        }
        let bytes = counters.bytes.load(Ordering::Relaxed);
        if limits.bytes.is_some_and(|limit| bytes >= limit.bytes()) {
            return Some(End::ByteLimit);
        }
        let archive = &profile.archive;
        let written = self.context.writers.bytes();
        if archive
            .max_total_bytes
            .is_some_and(|max| written >= max.bytes())
        {
            return Some(End::ArchiveLimit);
        }
        if let Some(quota) = self.quota_reached(0) {
            return Some(End::Quota(quota));
        }
        let counted = [limits.fetched, limits.succeeded, limits.novel_documents];
        if counted.iter().all(Option::is_none) && limits.novel_bytes.is_none() {
            return None;
        }
        let since = self.since_begin();
        let counts = [since.fetched, since.succeeded, since.novel];
        let is_reached =
            |(limit, count): (&Option<u64>, u64)| limit.is_some_and(|limit| count >= limit);
        if counted.iter().zip(counts).any(is_reached) {
            return Some(End::DocumentLimit);
        }
        let is_full = |limit: opilio_profile::ByteSize| since.novel_bytes >= limit.bytes();
        limits
            .novel_bytes
            .is_some_and(is_full)
            .then_some(End::ByteLimit)
    }

    fn close(self, end: End) -> Summary {
        let progress = self.view().progress();
        let plugins = self.context.plugin_reports();
        // The first reason is the cause; what fails because of it only follows.
        let mut end = end;
        let mut halt = |problem: String| {
            if !matches!(end, End::Halted(_)) {
                end = End::Halted(problem);
            }
        };
        self.save_cookies();
        pulse::finish(&self.context, self.job.directory());
        self.context.board.write();
        let kept = keep_run_time(&self.context, self.began).and_then(|()| {
            let prices = self.context.budget().all_prices(Timestamp::now());
            let mut frontier = self.context.frontier();
            frontier.put_servers(&prices)?;
            frontier.persist()
        });
        if let Err(problem) = kept {
            halt(stacks::chain(&problem));
        }
        if let Err(problem) = plugin_report::write(self.job.directory(), &plugins) {
            let folder = self.job.directory().join("reports");
            halt(format!("cannot write {}: {problem}", folder.display()));
        }
        if let Some(Err(problem)) = self.context.duplicates.as_ref().map(Duplicates::persist) {
            halt(stacks::chain(&problem));
        }
        let warcs = match self.context.writers.finish() {
            Ok(warcs) => warcs,
            Err(problem) => {
                halt(stacks::chain(&problem));
                Vec::new()
            }
        };
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        let statistics = self.context.frontier().statistics();
        if let Err(problem) = course.end(self.job.directory(), statistics, &end) {
            tracing::error!("course.json cannot be written: {problem}");
        }
        drop(course);
        // Which say how it ended.
        let desk = Desk::new(
            self.job.directory(),
            &self.context.profile,
            &self.context.frontier,
            &self.log,
        );
        if let Err(problem) = control::write_reports(&desk) {
            tracing::error!("reports cannot be written: {problem}");
        }
        self.log.crawl("end", &end.to_string());
        Summary {
            end,
            progress,
            warcs,
            job: self.job.directory().to_owned(),
            warc_directory: self
                .job
                .directory()
                .join(&self.context.profile.archive.directory),
            logs: self
                .job
                .directory()
                .join(&self.context.profile.logs.directory),
            plugins,
        }
    }
}

/// What fixes the identity of URIs and queues is fixed with the first start of a job.
fn keep_identity(frontier: &mut Frontier, profile: &Profile) -> Result<(), CrawlError> {
    let identity = profile.identity();
    match frontier.identity()? {
        Some(then) if then != identity.as_bytes() => Err(CrawlError::Identity {
            then: String::from_utf8_lossy(&then).into_owned(),
        }),
        Some(_) => Ok(()),
        None => Ok(frontier.set_identity(identity.as_bytes())?),
    }
}

/// Keeps what depends on the passing of time: time spent crawling in the frontier's statistics, and the settings of queues
/// where overrides hold at some times of day alone. Queues are resolved anew once at the beginning, since the profile may
/// have changed, in parts that hold nobody up.
async fn keep_time(
    context: Arc<Context>,
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
        let kept = tokio::task::spawn_blocking(move || -> Result<(), opilio_frontier::Error> {
            keep_run_time(&context, began)?;
            if !is_changed {
                return Ok(());
            }
            context.frontier().set_settings_hash(settings_hash);
            let mut after = None;
            while still.has_changed().is_ok() {
                let part =
                    context
                        .frontier()
                        .resolve_queues(after.as_deref(), QUEUES_RESOLVED, now)?;
                match part {
                    Some(last) => after = Some(last),
                    None => break,
                }
            }
            Ok(())
        });
        if let Ok(Err(problem)) = kept.await {
            tracing::error!("{}", stacks::chain(&problem));
        }
        if is_changed {
            live.queues_resolved();
        }
        // Which changes only by going away.
        let _ = timeout(TIME_INTERVAL, ended.changed()).await;
    }
}

/// Notes now and then how the crawl gets on, for whoever looks at many jobs.
async fn note_course(
    context: Arc<Context>,
    course: Arc<Mutex<Course>>,
    job: PathBuf,
    mut ended: watch::Receiver<()>,
) {
    // Which changes only by going away.
    while timeout(TIME_INTERVAL, ended.changed()).await.is_err() {
        let (context, course, job) = (context.clone(), course.clone(), job.clone());
        let noted = tokio::task::spawn_blocking(move || {
            let statistics = context.frontier().statistics();
            let mut course = course.lock().unwrap_or_else(PoisonError::into_inner);
            course.goes_on(&job, statistics)
        });
        if let Ok(Err(problem)) = noted.await {
            tracing::warn!("course.json cannot be written: {problem}");
        }
    }
}

/// Writes now and then what was seen of plugins, for whoever looks into the job while it runs.
async fn write_reports(context: Arc<Context>, job: PathBuf, mut ended: watch::Receiver<()>) {
    while timeout(TIME_INTERVAL, ended.changed()).await.is_err() {
        let (context, job) = (context.clone(), job.clone());
        let written = tokio::task::spawn_blocking(move || {
            plugin_report::write(&job, &context.plugin_reports())
        });
        if let Ok(Err(problem)) = written.await {
            tracing::error!("reports on plugins cannot be written: {problem}");
        }
    }
}

/// Adds what has passed since it was last added.
fn keep_run_time(context: &Context, began: Instant) -> Result<(), opilio_frontier::Error> {
    let passed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let before = context
        .counters
        .run_time
        .fetch_max(passed, Ordering::Relaxed);
    let since = Duration::from_millis(passed.saturating_sub(before));
    context.frontier().add_run_time(since)
}

/// Forces the frontier's journal to the disk now and then, so that power loss costs no more than the interval.
async fn sync_frontier(context: Arc<Context>, interval: Duration, mut ended: watch::Receiver<()>) {
    // Until it has ended, which comes before the interval is over.
    while timeout(interval, ended.changed()).await.is_err() {
        let context = context.clone();
        let synced = tokio::task::spawn_blocking(move || context.frontier().persist()).await;
        if let Ok(Err(problem)) = synced {
            tracing::error!("{}", stacks::chain(&problem));
        }
    }
}

/// The name a WARC file has when it is finished, of one found open.
fn final_name(found: &Path) -> Option<String> {
    let name = found.file_name()?.to_str()?;
    Some(name.strip_suffix(".open").unwrap_or(name).to_owned())
}

async fn work(
    context: Arc<Context>,
    issue: Box<Issue>,
    worker: usize,
    flight: Flight,
) -> (usize, Result<(), Halt>) {
    let done = Chain::new(&context, &issue, &flight).run(worker).await;
    (worker, done)
}

/// How far a pause is, for the job's log.
#[derive(Clone, Copy, PartialEq)]
enum Paused {
    No,
    Pausing,
    Yes,
}

impl Paused {
    fn then(self, holds: bool, is_idle: bool, log: &JobLog) -> Paused {
        let next = match (holds, is_idle) {
            (false, _) => Paused::No,
            (true, false) => Paused::Pausing,
            (true, true) => Paused::Yes,
        };
        match (self, next) {
            (before, Paused::Yes) if before != Paused::Yes => {
                log.crawl("pause", "nothing is in flight");
            }
            (before, Paused::No) if before != Paused::No => log.crawl("resume", "goes on"),
            _ => {}
        }
        next
    }
}

/// A worker is idle again. A task that panicked is a defect of ours: the URI stays in process and is put back at the
/// next start; the crawl stops rather than lose track.
fn returned(
    done: Result<(usize, Result<(), Halt>), tokio::task::JoinError>,
    idle: &mut Vec<usize>,
) -> Option<Halt> {
    match done {
        Ok((worker, result)) => {
            idle.push(worker);
            result.err().filter(|halt| !matches!(halt, Halt::Stopped))
        }
        Err(panic) => Some(Halt::Worker(panic.to_string())),
    }
}

/// The seeds in force, one a line, so that reading them back gives the same seeds and the same scope: what a seed
/// implies depends on how it was written, so a prefix that its normal form does not imply has a line of its own.
fn seeds_as_lines(profile: &Profile) -> Vec<String> {
    seed_lines(&profile.seeds)
}

pub(crate) fn seed_lines(seeds: &Seeds) -> Vec<String> {
    let mut lines = Vec::new();
    for seed in &seeds.list {
        lines.push(seed.uri.to_string());
        if opilio_uri::implied_surt_prefix(seed.uri.as_str()).as_ref() != Ok(&seed.surt_prefix) {
            lines.push(format!("+{}", seed.surt_prefix));
        }
    }
    let prefixes = seeds.surt_prefixes.iter();
    lines.extend(prefixes.map(|prefix| format!("+{prefix}")));
    lines
}

/// A seed as the frontier takes it.
pub(crate) fn seed_candidate(profile: &Profile, uri: &Uri) -> Candidate {
    Candidate {
        seed: true,
        directive: Directive::Medium,
        ..policy::candidate(
            profile,
            uri.clone(),
            HopPath::new(),
            None,
            Some(uri.as_str()),
        )
    }
}

/// The secrets that the profile names, or the faults of those that cannot be had.
fn secrets(profile: &Profile) -> Result<(Credentials, Logins), Faults> {
    let fault = |missing: Missing| {
        let problem = stacks::chain(&missing);
        Faults::from(profile.fault_at(&missing.pointer(), problem))
    };
    let credentials = Credentials::read(profile).map_err(fault)?;
    let logins = Logins::read(profile).map_err(fault)?;
    // Read again where it is needed; what is not there should be known before anything is created.
    let proxy = profile.settings().fetch.proxy.as_ref();
    if let Some(Err(problem)) = proxy
        .and_then(|it| it.password.as_ref())
        .map(SecretSource::read)
    {
        let fault = profile.fault_at("/fetch/proxy-password", stacks::chain(&problem));
        return Err(Faults::from(fault));
    }
    Ok((credentials, logins))
}

fn io_error(path: &Path, source: std::io::Error) -> CrawlError {
    CrawlError::Io {
        path: path.display().to_string(),
        source,
    }
}
