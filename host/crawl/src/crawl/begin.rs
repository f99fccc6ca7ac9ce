//! Start of a crawl: a plan becomes a job, and everything that the crawl needs is opened.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use opilio_archive::{Repaired, archives};
use opilio_frontier::{Frontier, SharedFrontier};
use opilio_job::changes;
use opilio_profile::{Faults, Profile, SecretSource};
use opilio_source::Sources;

use super::seeds::seed_lines;
use super::{Crawl, Plan};
use crate::archive;
use crate::context::{
    AlertState, Counters, CrawlContext, CrawlFigures, CrawlPlugins, Network, Outputs, Queues,
    SeedPrefixes,
};
use crate::cookies::Cookies;
use crate::credentials::{Credentials, Missing};
use crate::duplicates::Duplicates;
use crate::error::{CrawlError, io_error};
use crate::fetchers::Fetchers;
use crate::handover::Handover;
use crate::lanes::{DocumentMemory, Lanes};
use crate::live::Live;
use crate::logins::Logins;
use crate::observers::Observers;
use crate::reconcile;
use crate::servers::Servers;
use crate::stop::Stop;
use crate::workshop::Workshop;
use opilio_job::alerts::Board;
use opilio_job::census::LastCensus;
use opilio_job::course::Course;
use opilio_job::directory::{self, Job};
use opilio_job::history::{self, Change, Changed};
use opilio_job::job_log::JobLog;
use opilio_job::ledger::Ledger;
use opilio_job::logs::JobLogs;
use opilio_job::plugin_report::SeenBefore;
use opilio_job::series::Series;
use opilio_stacks::recorder::Recorder;
use opilio_stacks::{self, KnownStacks, Loaded, Stacks};
use opilio_visit::budget::Budget;
use opilio_visit::policy;
use opilio_visit::precedence::QueueRanks;
use opilio_visit::scope_memory::ScopeMemory;

impl Plan {
    /// Makes the job without crawling. The process that runs the job begins the crawl.
    ///
    /// # Errors
    /// [`CrawlError`]; a job that is in use or of another version is left as it is.
    pub fn make(self) -> Result<Job, CrawlError> {
        let contact = self.contact_url.as_deref();
        let job = open_job(&self.directory, &self.profile, &self.base, contact)?;
        keep_components(&job, &self.plugins, &self.sources)?;
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
            contact_url,
            notes,
        } = self;
        let (credentials, logins) = secrets(&profile).map_err(CrawlError::Profile)?;
        let job = Arc::new(open_job(
            &directory,
            &profile,
            &base,
            contact_url.as_deref(),
        )?);
        job.add_seeds(&seed_lines(&profile.seeds))?;
        job.restore_seeds(&profile.seeds)?;
        let profile = Arc::new(profile);
        let mut frontier = Frontier::open(&job.state(), policy::frontier_config(&profile))?;
        keep_identity(&mut frontier, &profile)?;
        let baseline = frontier.statistics();
        // A record that cannot be read must not stop the crawl.
        let before = Course::read(job.directory()).ok().flatten();
        let course = Course::begin(job.directory(), baseline)
            .map_err(|source| io_error(job.directory(), source))?;
        let fetchers = Fetchers::new(&profile, job.scratch())?;
        let cut = fetchers.base().cut();
        keep_components(&job, &plugins, &sources)?;
        let recorder = Recorder::new(profile.record.clone(), job.directory());
        let pool = plugins.stacks.pool().recorded(recorder);
        let stacks = Stacks::with(profile.settings(), pool);
        let (writers, repaired) = archive::open(&profile, stacks.in_force(), job.directory())?;
        let logs_directory = job.directory().join(&profile.logs.directory);
        let frontier = SharedFrontier::new(frontier);
        let ledger = Ledger::open(&logs_directory, &frontier)
            .map_err(|source| io_error(&logs_directory, source))?;
        let ledger = Arc::new(ledger);
        let logs = JobLogs::open(&logs_directory, &profile.logs, ledger.clone())
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
        let limits = &profile.limits;
        // Bodies have memory of their own: they arrive while documents wait for memory.
        let bodies = profile.settings().fetch.spool_memory_total;
        let running = engine.clone();
        let memory = DocumentMemory {
            max: limits.memory.bytes().saturating_sub(bodies.bytes()),
            plugins: Box::new(move || running.plugin_memory()),
        };
        let lanes = Lanes::start(memory).map_err(|source| io_error(job.directory(), source))?;
        let seeds = SeedPrefixes {
            set: prefixes,
            file: job.redirected_seeds(),
            moves: HashMap::new(),
        };
        let budget = {
            let frontier = frontier.lock();
            Budget::open(&frontier, Timestamp::now())?
        };
        let context = CrawlContext {
            current: RwLock::new(profile.clone()),
            profile,
            job: std::path::absolute(job.directory())
                .map_err(|source| io_error(job.directory(), source))?,
            live: live.clone(),
            job_log: log.clone(),
            lanes,
            frontier,
            queues: Queues {
                budget: Mutex::new(budget),
                ranks: QueueRanks::default(),
            },
            network: Network {
                fetchers,
                servers: Servers::default(),
                cookies: Cookies::default(),
                credentials,
                logins,
            },
            outputs: Outputs {
                writers: Arc::new(writers),
                duplicates,
                handover: handover.map(Arc::new),
                logs,
            },
            plugins: CrawlPlugins {
                stacks: RwLock::new(stacks),
                known_stacks: KnownStacks::open(job.directory())
                    .map_err(|source| io_error(job.directory(), source))?,
                tables: Arc::new(tables),
                workshop: Workshop {
                    engine,
                    sources,
                    job: job.directory().to_owned(),
                    kept: Mutex::new(plugins.job),
                },
                observers: Observers::default(),
                seeds: tokio::sync::Mutex::new(seeds),
                scope_memory: ScopeMemory::default(),
                scope_faults: Mutex::default(),
                before: SeenBefore::open(job.directory()),
            },
            figures: CrawlFigures {
                counters: Counters::default(),
                ledger,
                series,
                census: LastCensus::default(),
                tallies: Mutex::default(),
                faults_before,
            },
            alerts: AlertState {
                board: Board::open(job.directory()),
                notifier: Mutex::default(),
            },
            held: job.clone(),
        };
        let crawl = Crawl {
            context: Arc::new(context),
            job,
            repaired,
            stop: Stop::new(cut),
            live,
            log,
            notes,
            began: Instant::now(),
            baseline,
            course: Arc::new(Mutex::new(course)),
        };
        archive::complete_indexes(&config);
        let left_open = crawl.repaired.iter().flat_map(Repaired::files).cloned();
        crawl.complete_log(reconcile::suspects(before.as_ref(), left_open, &config)?);
        crawl.load_cookies()?;
        crawl.schedule_lost(&crawl.repaired)?;
        crawl.schedule_seeds()?;
        Ok(crawl)
    }
}

/// Makes the job with copies of profile and seeds, or opens the existing job.
fn open_job(
    directory: &Path,
    profile: &Profile,
    base: &Path,
    contact_url: Option<&str>,
) -> Result<Job, CrawlError> {
    let copies = directory::Copies {
        profile: profile.source_text(),
        name: &profile.name,
        seeds: &seed_lines(&profile.seeds),
        base,
        layers: profile.extended(),
    };
    let by = match directory::is_job(directory) {
        true => "who resumed the job",
        false => "who created the job",
    };
    let job = Job::open(directory, &copies, Timestamp::now())?;
    if let Some(url) = contact_url {
        keep_contact(directory, url, by).map_err(|source| io_error(directory, source))?;
    }
    Ok(job)
}

/// Stores a contact URL that was given beside the profile as a change of the profile. Later starts of the job have it, too.
fn keep_contact(job: &Path, url: &str, by: &str) -> std::io::Result<()> {
    // A JSON string is a TOML string.
    let toml = format!("operator.contact-url = {}\n", serde_json::to_string(url)?);
    let change = Change {
        number: history::next_number(job)?,
        at: Timestamp::now(),
        by: by.to_owned(),
        what: Changed::Set { toml: toml.clone() },
    };
    let Change { number, at, by, .. } = &change;
    changes::keep_change(job, *number, &format!("# {at:.0} {by}\n{toml}"))?;
    history::add(job, &change)
}

/// Writes copies of all components into the job. Tells the store of the job, so that the components are not pruned meanwhile.
fn keep_components(job: &Job, plugins: &Loaded, sources: &Sources) -> Result<(), CrawlError> {
    let kept = plugins.job.write(job.directory(), &plugins.components);
    kept.map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
    if let Err(problem) = sources.begun(job.directory(), plugins.job.frozen()) {
        tracing::warn!(
            "cannot register the job in the plugin store: {}",
            opilio_stacks::chain(&problem)
        );
    }
    Ok(())
}

/// Reads the secrets that the profile names, or returns the errors of those that are not available.
fn secrets(profile: &Profile) -> Result<(Credentials, Logins), Faults> {
    let fault = |missing: Missing| {
        let problem = opilio_stacks::chain(&missing);
        Faults::from(profile.fault_at(&missing.pointer(), problem))
    };
    let credentials = Credentials::read(profile).map_err(fault)?;
    let logins = Logins::read(profile).map_err(fault)?;
    // It is read again when it is needed. A missing password should be reported before anything is created.
    let proxy = profile.settings().fetch.proxy.as_ref();
    if let Some(Err(problem)) = proxy
        .and_then(|it| it.password.as_ref())
        .map(SecretSource::read)
    {
        let fault = profile.fault_at("/fetch/proxy-password", opilio_stacks::chain(&problem));
        return Err(Faults::from(fault));
    }
    Ok((credentials, logins))
}

/// Stores the settings that fix the identity of URIs and queues at a job's first start. Later starts must have the same.
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

impl Crawl {
    /// Loads the cookies of the profile's file into the job.
    fn load_cookies(&self) -> Result<(), CrawlError> {
        let context = &self.context;
        let settings = &context.profile.settings().cookies;
        let Some(file) = &settings.load else {
            return Ok(());
        };
        let text = std::fs::read_to_string(file).map_err(|source| io_error(file, source))?;
        let (frontier, now) = (&context.frontier, Timestamp::now());
        let loaded = context
            .network
            .cookies
            .load(frontier, &text, settings.per_host, now)?;
        let Some((count, problems)) = loaded else {
            return Ok(());
        };
        let file = file.display();
        for problem in &problems {
            tracing::warn!("{file}: {problem}; skipped the line");
        }
        let left_out = problems.len();
        context.job_log.crawl(
            &format!("cookies {file}"),
            &format!("{count} cookies read, {left_out} lines skipped"),
        );
        Ok(())
    }
}
