//! A crawl without sockets, clock and archive. It has the frontier, the profile and the plugins of a real crawl, and receives the
//! servers' answers and the time from its caller. A simulation covers a year in minutes.
//!
//! Visits go through [`opilio_visit`] as those of a real crawl do. `docs/SIMULATION.md` has the same list of what is left out:
//! - DNS, because look-ups cost a server nothing;
//! - cookies, logins, browsers, duplicates of other URIs, redirects of seeds (which widen the scope of a crawl) and of
//!   robots.txt, because scenarios do not have them;
//! - records, observers and the consequences of breakers. Failed calls are counted.

mod visit;

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_crawl::{CrawlError, LoadedPlugins};
use opilio_fetch::robots::Robots;
use opilio_fetch::{Exchange, FetchFailure};
use opilio_frontier::{
    Candidate, ContentState, Directive, Frontier, Issue, Next, SiteRecord, Transfer,
};
use opilio_profile::Profile;
use opilio_sandbox::{Engine, EngineConfig};
use opilio_uri::{HopPath, Uri};
use opilio_visit::budget::Budget;
use opilio_visit::evaluation::WaitCorrection;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::precedence::QueueRanks;
use opilio_visit::synthetic::{exchange, head};
use opilio_visit::{
    Admission, Driver, LogEntry, Permit, Pipeline, RequestHeaders, ScratchFailed, judge_head,
    policy,
};
use visit::SimulatedVisit;

use crate::plugin_log::first_of_each_kind;
use crate::server_answer::ServerAnswer;

/// Seeds given to the frontier at once.
const SEEDS_BATCH: usize = 10_000;

/// A crawl in virtual time.
pub struct SimulatedCrawl {
    profile: Arc<Profile>,
    /// Visits a day that prices divide.
    visits_a_day: Option<u64>,
    plugins: LoadedPlugins,
    clock: Arc<AtomicI64>,
    state: RefCell<State>,
    /// Engine of the plugins, kept as long as the crawl.
    _engine: Engine,
}

struct State {
    frontier: Frontier,
    budget: Budget,
    robots: HashMap<String, (Arc<Robots>, Timestamp)>,
    custom_robots: HashMap<String, Arc<Robots>>,
    /// State kept for sites, by authority. Many visits to few sites in a short time leave many versions of these values in the
    /// store's memory. Reading them there would dominate the running time.
    sites: HashMap<String, SiteRecord>,
    ranks: QueueRanks,
    faults: u64,
    first_fault: Option<String>,
}

/// A request for a simulated server.
pub struct PageRequest {
    /// The headers that a visit decides.
    pub headers: RequestHeaders,
    pipeline: Arc<Pipeline>,
    permit: Permit,
    memory: PluginMemory,
}

/// The result of beginning a visit.
pub enum VisitStart {
    /// A request is made: hand the answer to [`SimulatedCrawl::receive`].
    Asks(Box<PageRequest>),
    /// The URI is not fetched, or waits for its server's robots.txt. The frontier has its outcome.
    Ended(Box<VisitEnd>),
}

/// The end of a visit.
#[derive(Clone)]
pub struct VisitEnd {
    /// The state of the content.
    pub state: ContentState,
    /// `true` if a body came.
    pub body: bool,
    /// `true` if the body is kept in full.
    pub archived: bool,
    /// `true` if a wait evaluator answered.
    pub answered: bool,
    /// The corrections of its answer.
    pub corrections: Vec<WaitCorrection>,
    /// The time until the next visit.
    pub wait: Option<Duration>,
    /// The kind of end.
    pub kind: EndKind,
    /// The line that a crawl log would have.
    pub entry: LogEntry,
}

/// The kind of end of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// A response that counts.
    Success,
    /// A robots.txt.
    Robots,
    /// The URI will be retried, or waits for a prerequisite.
    Unfinished,
    /// The URI failed, or a filter refused it.
    Failed,
}

/// The reason that a simulation has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The profile or its plugins have errors.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// The frontier's store failed.
    #[error("the frontier's store failed")]
    Frontier(#[from] opilio_frontier::FrontierError),
    /// The folder for the frontier's store cannot be made.
    #[error("cannot make a folder for the frontier's store")]
    Folder(#[from] std::io::Error),
    /// A defect of Opilio.
    #[error("the simulator failed: {0}; please report it")]
    Broken(String),
}

impl SimulatedCrawl {
    /// Loads the profile's plugins and makes an empty frontier in `dir`. Seeds come from [`Self::seed`]. `prefixes` are the SURT
    /// prefixes that the scope uses for them.
    ///
    /// # Errors
    /// Returns every error of the profile's plugins at its place, or the reason that the store cannot be made.
    pub fn open(
        profile: Profile,
        dir: &Path,
        component_cache: Option<PathBuf>,
        prefixes: &[String],
        now: Timestamp,
    ) -> Result<Self, SimulationError> {
        let config = EngineConfig::default();
        let engine = Engine::new(EngineConfig {
            cache_dir: component_cache,
            remember: true,
            log_sink: first_of_each_kind(config.log_sink.clone()),
            ..config
        })
        .map_err(CrawlError::from)?;
        let plugins = LoadedPlugins::load(&engine, &profile, prefixes, dir)?;
        let profile = Arc::new(profile);
        let clock = Arc::new(AtomicI64::new(now.as_millisecond()));
        let hands = clock.clone();
        let config = policy::frontier_config(&profile, move || {
            Timestamp::from_millisecond(hands.load(Ordering::Relaxed)).unwrap_or_default()
        });
        let config = opilio_frontier::FrontierConfig {
            // Simulations are never resumed.
            survives: false,
            ..config
        };
        let frontier = Frontier::open(&dir.join("state"), config)?;
        let budget = Budget::open(&frontier, now)?;
        Ok(Self {
            visits_a_day: profile.settings().revisit.budget,
            profile,
            plugins,
            clock,
            state: RefCell::new(State {
                frontier,
                budget,
                robots: HashMap::new(),
                custom_robots: HashMap::new(),
                sites: HashMap::new(),
                ranks: QueueRanks::default(),
                faults: 0,
                first_fault: None,
            }),
            _engine: engine,
        })
    }

    /// Limits the visits a day to this number, or to fewer if `revisit.budget` is lower. In a real crawl the operator would write
    /// such a limit into that setting.
    pub fn allow(&mut self, visits_a_day: u64) {
        let wanted = self.visits_a_day.unwrap_or(u64::MAX);
        self.visits_a_day = Some(visits_a_day.min(wanted));
    }

    /// Returns the profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the record of a URI.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn record(&self, uri: &Uri) -> Result<Option<opilio_frontier::UriRecord>, SimulationError> {
        Ok(self.state().frontier.record(uri)?)
    }

    /// Returns the report on a queue; `None` if there is no such queue.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn queue(
        &self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<opilio_frontier::QueueReport>, SimulationError> {
        Ok(self.state().frontier.queue(name, now)?)
    }

    /// Returns the number of plugin calls that failed, and the message of the first.
    pub fn faults(&self) -> (u64, Option<String>) {
        let state = self.state();
        (state.faults, state.first_fault.clone())
    }

    /// Schedules seeds, each with its own URI as source.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn seed(&self, seeds: Vec<Uri>, now: Timestamp) -> Result<(), SimulationError> {
        let mut seeds = seeds.into_iter().peekable();
        while seeds.peek().is_some() {
            let profile = &self.profile;
            let candidates = seeds.by_ref().take(SEEDS_BATCH).map(|uri| {
                let source = uri.as_str().to_owned();
                let candidate =
                    policy::candidate(profile, uri, HopPath::new(), None, Some(&source));
                Candidate {
                    seed: true,
                    directive: Directive::Medium,
                    ..candidate
                }
            });
            let candidates = candidates.collect();
            self.state().frontier.schedule(candidates, now)?;
        }
        Ok(())
    }

    /// Calls [`Frontier::next`].
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn next(&self, now: Timestamp) -> Result<Next, SimulationError> {
        self.set_clock(now);
        Ok(self.state().frontier.next(now)?)
    }

    /// Begins the visit of an issued URI. It calls plugins, so run it on a thread of [`opilio_stacks::on_plugin_thread`].
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn begin(&self, issue: Issue, now: Timestamp) -> Result<VisitStart, SimulationError> {
        let stacks = self.plugins.stacks.clone();
        let pipeline = Arc::new(Pipeline::new(issue, self.profile.clone(), stacks, now));
        let visit = SimulatedVisit::new(self, &pipeline, now, Transfer::default());
        if pipeline.issue.visit_after.is_some() {
            let outcome = at_once(opilio_visit::consider(&pipeline, &visit))?;
            visit.finish(outcome)?;
            return Ok(VisitStart::Ended(Box::new(visit.end.into_inner())));
        }
        let conclusion = match pipeline.over_quota() {
            Some(conclusion) => conclusion,
            None => match at_once(opilio_visit::admit(&pipeline, &visit))? {
                Admission::Ends(conclusion) => *conclusion,
                Admission::Fetch(permit) => {
                    let memory = opilio_visit::memory(&pipeline, &visit)?;
                    return Ok(VisitStart::Asks(Box::new(PageRequest {
                        headers: pipeline.request_headers(&pipeline.issue.uri, &permit),
                        pipeline,
                        permit,
                        memory,
                    })));
                }
            },
        };
        at_once(opilio_visit::finish(&pipeline, &visit, conclusion))?;
        Ok(VisitStart::Ended(Box::new(visit.end.into_inner())))
    }

    /// Receives the answer to a request, and hands the outcome to the frontier. It calls plugins, so run it on a thread of
    /// [`opilio_stacks::on_plugin_thread`].
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn receive(
        &self,
        request: PageRequest,
        answer: ServerAnswer,
        now: Timestamp,
    ) -> Result<VisitEnd, SimulationError> {
        self.set_clock(now);
        let PageRequest {
            pipeline,
            permit,
            memory,
            ..
        } = request;
        let started = pipeline.started;
        let took = Duration::try_from(now - started).unwrap_or_default();
        let (head, content, size) = match answer {
            ServerAnswer::Response {
                status,
                headers,
                content,
                size,
            } => (Some(head(status, headers)), content, size),
            ServerAnswer::Failure => (None, Bytes::new(), 0),
        };
        let transfer = Transfer {
            duration: took,
            bytes: size,
        };
        let visit = SimulatedVisit::new(self, &pipeline, now, transfer);
        let conclusion = at_once(async {
            let (exchange, verdict) = match head {
                None => (no_connection(started, took), None),
                Some(head) => {
                    let ruling = judge_head(&pipeline, &visit, &head, None, &memory).await?;
                    visit.failed(&ruling.failures)?;
                    // A fetch that a filter ends at the headers brings no body.
                    let content = match ruling.verdict {
                        None => content,
                        Some(_) => Bytes::new(),
                    };
                    let mut exchange = exchange(head, content, (started, took));
                    let aborted = ruling.verdict.as_ref().map(|_| "midFetchAbort".to_owned());
                    exchange.annotations.extend(aborted);
                    (exchange, ruling.verdict)
                }
            };
            opilio_visit::receive(&pipeline, &visit, &permit, exchange, verdict, memory).await
        })?;
        at_once(opilio_visit::finish(&pipeline, &visit, conclusion))?;
        Ok(visit.end.into_inner())
    }

    fn set_clock(&self, now: Timestamp) {
        self.clock.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// Borrows the state. The borrow never lasts across a call of another method.
    fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }
}

/// Runs a stage of a visit. Its driver answers every question at once.
fn at_once<T>(
    stage: impl Future<Output = Result<T, SimulationError>>,
) -> Result<T, SimulationError> {
    match pin!(stage).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(SimulationError::Broken(
            "a stage of a simulated visit was suspended".to_owned(),
        )),
    }
}

/// Returns the exchange with a server that refuses connections.
fn no_connection(started: Timestamp, took: Duration) -> Exchange {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let failure = FetchFailure::Connect {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 80,
        source: Arc::new(refused),
    };
    Exchange {
        head: None,
        time_to_head: None,
        failure: Some(failure),
        ..exchange(head(0, Vec::new()), Bytes::new(), (started, took))
    }
}

impl From<ScratchFailed> for SimulationError {
    fn from(ScratchFailed(source): ScratchFailed) -> Self {
        SimulationError::Broken(format!("cannot spool a response: {source}"))
    }
}
