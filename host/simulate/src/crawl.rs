//! A crawl without sockets, clock and archive: the frontier, the profile and the plugins of a real one, told what servers
//! answer and what time it is. A simulation lives through a year in minutes.
//!
//! Visits go through [`opilio_visit`] as those of a real crawl do. Left out are look-ups, which cost a server nothing, and
//! cookies, logins, duplicates of other URIs and redirects of seeds and robots.txt, which scenarios do not have.

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
use opilio_fetch::{Exchange, FetchFailure, ResponseHead};
use opilio_frontier::{
    Candidate, ContentState, Directive, Frontier, Issue, KeptValues, Next, Transfer,
};
use opilio_profile::Profile;
use opilio_sandbox::{Engine, EngineConfig};
use opilio_uri::{HopPath, Uri};
use opilio_visit::budget::Budget;
use opilio_visit::evaluation::OddWait;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::precedence::QueueRanks;
use opilio_visit::synthetic::exchange;
use opilio_visit::{
    Admission, Driver, LogEntry, Permit, Pipeline, RequestHeaders, ScratchFailed, judge_head,
    policy,
};
use visit::SimulatedVisit;

use crate::SimulationError;
use crate::plugin_log::first_of_each_kind;

/// Seeds given to the frontier at once.
const SEEDS_BATCH: usize = 10_000;

/// A crawl in virtual time.
pub struct SimulatedCrawl {
    profile: Arc<Profile>,
    /// Visits a day that prices share out.
    visits_a_day: Option<u64>,
    plugins: LoadedPlugins,
    clock: Arc<AtomicI64>,
    state: RefCell<State>,
    /// Plugins run with it for as long as there is a crawl.
    _engine: Engine,
}

struct State {
    frontier: Frontier,
    budget: Budget,
    robots: HashMap<String, (Arc<Robots>, Timestamp)>,
    custom_robots: HashMap<String, Arc<Robots>>,
    /// Values kept for sites, by authority. Many visits to few sites in no time leave so many versions of these values in the
    /// store's memory that reading them there would take longest of all.
    sites: HashMap<String, KeptValues>,
    ranks: QueueRanks,
    faults: u64,
    first_fault: Option<String>,
}

/// A request that a simulated server is to answer.
pub struct PageRequest {
    /// The headers that a visit decides.
    pub headers: RequestHeaders,
    pipeline: Arc<Pipeline>,
    permit: Permit,
    memory: PluginMemory,
}

/// Whether a URI is asked for.
pub enum Begun {
    /// It is: hand the answer to [`SimulatedCrawl::receive`].
    Asks(Box<PageRequest>),
    /// It was not to be fetched, or waits for its server's robots.txt: the frontier has it back.
    Ended(Box<VisitEnd>),
}

/// The answer of a server.
#[derive(Clone, Debug)]
pub enum ServerAnswer {
    /// A response.
    Response {
        /// 100 to 999.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The content, as plugins see it.
        content: Bytes,
        /// The bytes that it counts as: the stand-in for a page may be shorter than pages are.
        size: u64,
    },
    /// No response: the connection could not be made.
    Failure,
}

/// The end of a visit.
#[derive(Clone)]
pub struct VisitEnd {
    /// The state of the content.
    pub state: ContentState,
    /// Whether a body came.
    pub body: bool,
    /// Whether the body is kept in full.
    pub archived: bool,
    /// Whether a wait evaluator answered.
    pub answered: bool,
    /// The corrections of its answer.
    pub odd: Vec<OddWait>,
    /// The time until the next visit.
    pub wait: Option<Duration>,
    /// The kind of end.
    pub kind: EndKind,
    /// The line that a crawl log would have.
    pub entry: LogEntry,
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// With a response that counts.
    Success,
    /// With a robots.txt.
    Robots,
    /// It is tried again, or waits for a prerequisite.
    Unfinished,
    /// It failed, or a filter refused it.
    Failed,
}

impl SimulatedCrawl {
    /// Loads the profile's plugins and makes an empty frontier in `dir`. Seeds are those that [`Self::seed`] is given;
    /// `prefixes` are the SURT prefixes that the scope takes for theirs.
    ///
    /// # Errors
    /// Every fault of the profile's plugins at its place; why the store cannot be made.
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
        let config = policy::frontier_config_at(&profile, move || {
            Timestamp::from_millisecond(hands.load(Ordering::Relaxed)).unwrap_or_default()
        });
        let config = opilio_frontier::Config {
            // Nobody resumes a simulation.
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

    /// Limits the visits a day to so many, or fewer if `revisit.budget` says so: an operator who knows that a crawl may make no
    /// more would have written it there.
    pub fn allow(&mut self, visits_a_day: u64) {
        let wanted = self.visits_a_day.unwrap_or(u64::MAX);
        self.visits_a_day = Some(visits_a_day.min(wanted));
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The record of a URI.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn record(&self, uri: &Uri) -> Result<Option<opilio_frontier::UriRecord>, SimulationError> {
        Ok(self.state().frontier.record(uri)?)
    }

    /// Calls of plugins that failed, and the message of the first.
    pub fn faults(&self) -> (u64, Option<String>) {
        let state = self.state();
        (state.faults, state.first_fault.clone())
    }

    /// Schedules seeds, each with its own URI as source.
    ///
    /// # Errors
    /// Where the store fails.
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

    /// [`Frontier::next`].
    ///
    /// # Errors
    /// Where the store fails.
    pub fn next(&self, now: Timestamp) -> Result<Next, SimulationError> {
        self.set_clock(now);
        Ok(self.state().frontier.next(now)?)
    }

    /// Begins the visit of an issued URI. Calls plugins: on a thread of [`opilio_stacks::on_plugin_thread`].
    ///
    /// # Errors
    /// Where the store fails.
    pub fn begin(&self, issue: Issue, now: Timestamp) -> Result<Begun, SimulationError> {
        let stacks = self.plugins.stacks.clone();
        let pipeline = Arc::new(Pipeline::new(issue, self.profile.clone(), stacks, now));
        let visit = SimulatedVisit::new(self, &pipeline, now, Transfer::default());
        if pipeline.issue.visit_after.is_some() {
            let outcome = at_once(opilio_visit::consider(&pipeline, &visit))?;
            visit.finish(outcome)?;
            return Ok(Begun::Ended(Box::new(visit.end.into_inner())));
        }
        let conclusion = match pipeline.over_quota() {
            Some(conclusion) => conclusion,
            None => match at_once(opilio_visit::admit(&pipeline, &visit))? {
                Admission::Ends(conclusion) => *conclusion,
                Admission::Fetch(permit) => {
                    let memory = opilio_visit::memory(&pipeline, &visit)?;
                    return Ok(Begun::Asks(Box::new(PageRequest {
                        headers: pipeline.request_headers(&pipeline.issue.uri, &permit),
                        pipeline,
                        permit,
                        memory,
                    })));
                }
            },
        };
        at_once(opilio_visit::finish(&pipeline, &visit, conclusion))?;
        Ok(Begun::Ended(Box::new(visit.end.into_inner())))
    }

    /// Takes in the answer to a request, and hands the URI back to the frontier. Calls plugins: on a thread of
    /// [`opilio_stacks::on_plugin_thread`].
    ///
    /// # Errors
    /// Where the store fails.
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
                    let asked = judge_head(&pipeline, &visit, &head, None, &memory).await?;
                    visit.failed(&asked.failures)?;
                    // A fetch that a filter ends at the headers brings no body.
                    let content = match asked.verdict {
                        None => content,
                        Some(_) => Bytes::new(),
                    };
                    let mut exchange = exchange(head, &content, (started, took));
                    let aborted = asked.verdict.as_ref().map(|_| "midFetchAbort".to_owned());
                    exchange.annotations.extend(aborted);
                    (exchange, asked.verdict)
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

    /// Never held across a call of another method.
    fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }
}

/// Runs a stage of a visit, whose questions are all answered at once.
fn at_once<T>(
    stage: impl Future<Output = Result<T, SimulationError>>,
) -> Result<T, SimulationError> {
    match pin!(stage).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(SimulationError::Broken(
            "a simulated visit waits for something".to_owned(),
        )),
    }
}

fn head(status: u16, headers: Vec<(String, String)>) -> ResponseHead {
    ResponseHead {
        version: "HTTP/1.1".to_owned(),
        status,
        reason: String::new(),
        headers,
        length: 0,
    }
}

/// The exchange with a server that takes no connection.
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
        ..exchange(head(0, Vec::new()), &[], (started, took))
    }
}

impl From<ScratchFailed> for SimulationError {
    fn from(ScratchFailed(source): ScratchFailed) -> Self {
        SimulationError::Broken(format!("a response was to be spooled: {source}"))
    }
}
