//! Start of a crawl: the job is made from a plan or resumed, and everything that the crawl needs is opened.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use opilio_archive::RepairedFile;
use opilio_frontier::{Frontier, FrontierConfig, SharedFrontier};
use opilio_job::changes;
use opilio_profile::{Diagnostics, Profile, SecretSource};
use opilio_source::Sources;

use super::seeds::seed_lines;
use super::{Crawl, Plan};
use crate::archive;
use crate::browsers::{Browsers, check_browser};
use crate::context::{
    AlertState, Counters, CrawlContext, CrawlFigures, CrawlPlugins, Network, Outputs, Queues,
    SeedPrefixes,
};
use crate::cookies::Cookies;
use crate::credentials::{Credentials, MissingSecret};
use crate::duplicates::Duplicates;
use crate::error::{CrawlError, io_error};
use crate::fetchers::Fetchers;
use crate::handover;
use crate::lanes::{DocumentMemory, Lanes};
use crate::live::Live;
use crate::logins::Logins;
use crate::observers::Observers;
use crate::plugin_factory::PluginFactory;
use crate::reconcile;
use crate::servers::Servers;
use crate::settings::frontier_config;
use crate::stop::Stop;
use opilio_job::alerts::AlertBoard;
use opilio_job::census::LastCensus;
use opilio_job::directory::{self, Job, ProfileOrigin};
use opilio_job::fetched_files::FetchedFiles;
use opilio_job::handover::{FileStore, only_in_store};
use opilio_job::history::{self, Change, Changed};
use opilio_job::job_log::JobLog;
use opilio_job::ledger::Ledger;
use opilio_job::logs::JobLogs;
use opilio_job::plugin_report::EarlierPluginFigures;
use opilio_job::process_record::ProcessRecord;
use opilio_job::series::Series;
use opilio_stacks::recorder::Recorder;
use opilio_stacks::{self, KnownStacks, Loaded, Stacks};
use opilio_visit::budget::Budget;
use opilio_visit::precedence::QueueRanks;
use opilio_visit::scope_memory::ScopeMemory;

impl Plan {
    /// Makes the job without crawling. Another process runs the job later.
    ///
    /// # Errors
    /// [`CrawlError`]; a job that is in use or of another version is left as it is.
    pub fn make(self) -> Result<Job, CrawlError> {
        let job = open_job(&NewJob {
            directory: &self.directory,
            profile: &self.profile,
            base: &self.base,
            origin: self.origin.as_ref(),
            contact_url: self.contact_url.as_deref(),
            files: &self.fetched_files(),
        })?;
        keep_components(&job, &self.plugins, &self.sources)?;
        Ok(job)
    }

    /// Checks what the crawl needs on this machine: secrets, the keys of its store, cookies, indexes of earlier archives, and the
    /// browser.
    ///
    /// # Errors
    /// [`CrawlError::Profile`], at the setting that names the missing item.
    pub fn check_machine(&self) -> Result<(), CrawlError> {
        secrets(&self.profile).map_err(CrawlError::Profile)?;
        files_of_machine(&self.profile).map_err(CrawlError::Profile)?;
        match check_browser(&self.profile) {
            Some(fault) => Err(CrawlError::Profile(Diagnostics::from(fault))),
            None => Ok(()),
        }
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
            origin,
            prefixes,
            contact_url,
            notes,
            fetched,
            membership,
        } = self;
        let (credentials, logins) = secrets(&profile).map_err(CrawlError::Profile)?;
        if let Some(fault) = check_browser(&profile) {
            return Err(CrawlError::Profile(Diagnostics::from(fault)));
        }
        let job = Arc::new(open_job(&NewJob {
            directory: &directory,
            profile: &profile,
            base: &base,
            origin: origin.as_ref(),
            contact_url: contact_url.as_deref(),
            files: &fetched.unwrap_or_default(),
        })?);
        job.add_seeds(&seed_lines(&profile.seeds))?;
        job.restore_seeds(&profile.seeds)?;
        let profile = Arc::new(profile);
        let membership = membership.map(Arc::new);
        if let Some(membership) = &membership {
            let written = membership.part().write(job.directory());
            written.map_err(|source| io_error(job.directory(), source))?;
        }
        let part = membership.as_ref().map(|it| it.part());
        let config = FrontierConfig {
            part: part.map(|part| part.queues(&profile)),
            ..frontier_config(&profile, part)
        };
        let mut frontier = Frontier::open(&job.state(), config)?;
        keep_identity(&mut frontier, &profile)?;
        let epoch = membership.as_ref().map_or(0, |it| it.part().epoch);
        if epoch > 1 && frontier.statistics().discovered == 0 {
            // The previous node may have fetched from any server recently.
            frontier.wait_everywhere(Timestamp::now())?;
        }
        let baseline = frontier.statistics();
        // A record that cannot be read must not stop the crawl.
        let before = ProcessRecord::read(job.directory()).ok().flatten();
        let process_record = ProcessRecord::begin(job.directory(), baseline)
            .map_err(|source| io_error(job.directory(), source))?;
        let fetchers = Fetchers::new(&profile, job.scratch())?;
        let cut = fetchers.base().abort_handle();
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
        let duplicates = Duplicates::open(&profile, job.directory(), |message| {
            log.crawl("archive.duplicates", &message);
        })?;
        let config = archive::writer_config(&profile, job.directory())?;
        archive::complete_indexes(&config);
        let handovers = handover::open(&profile, job.directory(), membership.as_ref())?;
        let elsewhere = only_in_store(job.directory());
        let elsewhere = elsewhere.map_err(|source| io_error(job.directory(), source))?;
        writers.count_elsewhere(elsewhere.iter().map(|file| file.size).sum());
        let limits = &profile.limits;
        // Bodies have a separate memory limit, because they arrive while documents wait for memory.
        let bodies = profile.settings().fetch.spool_memory_total;
        let running = engine.clone();
        let memory = DocumentMemory {
            max: limits.memory.bytes().saturating_sub(bodies.bytes()),
            plugins: Box::new(move || running.plugin_memory()),
        };
        let lanes = Lanes::start(memory).map_err(|source| io_error(job.directory(), source))?;
        let browsers = std::path::absolute(job.directory())
            .map(|job| Browsers::new(&profile, &job))
            .map_err(|source| io_error(job.directory(), source))?;
        let seeds = SeedPrefixes {
            set: prefixes,
            file: job.redirected_seeds(),
            redirects: HashMap::new(),
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
                browsers,
            },
            outputs: Outputs {
                writers: Arc::new(writers),
                duplicates,
                handovers,
                logs,
            },
            plugins: CrawlPlugins {
                stacks: RwLock::new(stacks),
                known_stacks: KnownStacks::open(job.directory())
                    .map_err(|source| io_error(job.directory(), source))?,
                tables: Arc::new(tables),
                factory: PluginFactory {
                    engine,
                    sources,
                    job: job.directory().to_owned(),
                    kept: Mutex::new(plugins.job),
                },
                observers: Observers::default(),
                seeds: tokio::sync::Mutex::new(seeds),
                scope_memory: ScopeMemory::default(),
                scope_faults: Mutex::default(),
                fault_counts: Mutex::default(),
                before: EarlierPluginFigures::open(job.directory()),
            },
            membership,
            figures: CrawlFigures {
                counters: Counters::default(),
                ledger,
                series,
                census: LastCensus::default(),
                tallies: Mutex::default(),
                in_process: Arc::default(),
                tally_before: baseline.tally,
                faults_before,
            },
            alerts: AlertState {
                board: AlertBoard::open(job.directory()),
                notifier: Mutex::default(),
                events: OnceLock::new(),
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
            process_record: Arc::new(Mutex::new(process_record)),
        };
        let left_open = crawl.repaired.iter().flat_map(RepairedFile::files).cloned();
        crawl.complete_log(reconcile::suspects(before.as_ref(), left_open, &config)?);
        crawl.load_cookies()?;
        crawl.context.schedule_lost(&crawl.repaired)?;
        crawl.schedule_seeds()?;
        Ok(crawl)
    }
}

/// The inputs of a new job.
struct NewJob<'j> {
    directory: &'j Path,
    profile: &'j Profile,
    base: &'j Path,
    origin: Option<&'j ProfileOrigin>,
    contact_url: Option<&'j str>,
    files: &'j FetchedFiles,
}

/// Makes the job with copies of profile and seeds, or opens the existing job.
fn open_job(new: &NewJob<'_>) -> Result<Job, CrawlError> {
    let NewJob {
        directory,
        profile,
        base,
        origin,
        contact_url,
        files,
    } = *new;
    let copies = directory::Copies {
        profile: profile.source_text(),
        name: &profile.name,
        seeds: &seed_lines(&profile.seeds),
        base,
        layers: profile.extended(),
        origin,
        files,
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

/// Stores a contact URL that was given in addition to the profile as a change of the profile, so that later starts of the job use
/// it, too.
fn keep_contact(job: &Path, url: &str, by: &str) -> std::io::Result<()> {
    // A JSON string is a TOML string.
    let toml = format!("operator.contact-url = {}\n", serde_json::to_string(url)?);
    let change = Change {
        number: history::next_number(job)?,
        at: Timestamp::now(),
        by: by.to_owned(),
        reason: None,
        what: Changed::Set { toml: toml.clone() },
    };
    let Change { number, at, by, .. } = &change;
    changes::keep_change(job, *number, &format!("# {at:.0} {by}\n{toml}"))?;
    history::add(job, &change)
}

/// Writes copies of all components into the job. Registers the job with the plugin store, so that the components are not pruned
/// meanwhile.
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

/// Checks that the files that differ by machine can be read, apart from secrets: cookies, and indexes of earlier archives.
fn files_of_machine(profile: &Profile) -> Result<(), Diagnostics> {
    let cookies = profile.settings().cookies.load.iter();
    let cookies = cookies.map(|file| ("/cookies/load", file));
    let history = profile.archive.duplicates.history.iter();
    let history = history.map(|file| ("/archive/duplicates/history", file));
    for (pointer, file) in cookies.chain(history) {
        if let Err(problem) = File::open(file) {
            let problem = format!("cannot read {}: {problem}", file.display());
            return Err(Diagnostics::from(profile.fault_at(pointer, problem)));
        }
    }
    Ok(())
}

/// Reads the secrets that the profile names, or returns the errors of those that are not available.
fn secrets(profile: &Profile) -> Result<(Credentials, Logins), Diagnostics> {
    let fault = |missing: MissingSecret| {
        let problem = opilio_stacks::chain(&missing);
        Diagnostics::from(profile.fault_at(&missing.pointer(), problem))
    };
    let credentials = Credentials::read(profile).map_err(fault)?;
    let logins = Logins::read(profile).map_err(fault)?;
    for webhook in &profile.webhooks {
        if let Some(Err(problem)) = webhook.secret.as_ref().map(SecretSource::read) {
            let pointer = format!("/webhooks/{}/secret", webhook.name);
            let fault = profile.fault_at(&pointer, opilio_stacks::chain(&problem));
            return Err(Diagnostics::from(fault));
        }
    }
    for stream in &profile.streams {
        if let Some(Err(problem)) = stream.credentials.as_ref().map(SecretSource::read) {
            let pointer = format!("/streams/{}/credentials", stream.name);
            let fault = profile.fault_at(&pointer, opilio_stacks::chain(&problem));
            return Err(Diagnostics::from(fault));
        }
    }
    if let Some(store) = &profile.archive.store {
        // If a key is missing, no file is created.
        let opened = FileStore::open(store, Path::new(""));
        opened.map_err(|problem| {
            let problem = opilio_stacks::chain(&problem);
            Diagnostics::from(profile.fault_at("/archive/store", problem))
        })?;
    }
    // The password is read again when it is needed. A missing password should be reported before any file is created.
    let proxy = profile.settings().fetch.proxy.as_ref();
    if let Some(Err(problem)) = proxy
        .and_then(|it| it.password.as_ref())
        .map(SecretSource::read)
    {
        let fault = profile.fault_at("/fetch/proxy-password", opilio_stacks::chain(&problem));
        return Err(Diagnostics::from(fault));
    }
    Ok((credentials, logins))
}

/// Stores the settings that determine the identity of URIs and queues at a job's first start. Later starts must have the same
/// settings.
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
