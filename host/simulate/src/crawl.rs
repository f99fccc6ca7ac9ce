//! A crawl without sockets, clock and archive: the frontier, the profile and the plugins of a real one, told what servers
//! answer and what time it is. A simulation lives through a year in minutes.
//!
//! Visits go through [`opilio_visit`] as those of a real crawl do. Left out are look-ups, which cost a server nothing, and
//! cookies, logins, duplicates of other URIs and redirects of seeds and robots.txt, which scenarios do not have.

use std::cell::{RefCell, RefMut};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
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
    Candidate, ContentState, Directive, Disposition, Finished, Frontier, Issue, KeptValues, Next,
    Outcome, Transfer, WarcLocation,
};
use opilio_profile::Profile;
use opilio_sandbox::{Engine, EngineConfig};
use opilio_stacks::breaker::Failure;
use opilio_uri::{HopPath, Uri};
use opilio_visit::budget::{Answered, Budget, Place};
use opilio_visit::evaluation::OddWait;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::precedence::{QueueRanks, raise, rank_queue};
use opilio_visit::reading::{Reading, ReadingTask};
use opilio_visit::robots::answer_of;
use opilio_visit::synthetic::exchange;
use opilio_visit::{
    Addresses, Admission, Driver, Ending, Keep, Lane, LogEntry, PendingCapture, Permit, Pipeline,
    RequestHeaders, RobotsAnswer, ScratchFailed, Stored, judge_head, policy,
};

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
pub struct Request {
    /// The headers that a visit decides.
    pub headers: RequestHeaders,
    pipeline: Arc<Pipeline>,
    permit: Permit,
    memory: PluginMemory,
}

/// Whether a URI is asked for.
pub enum Begun {
    /// It is: hand the answer to [`SimulatedCrawl::receive`].
    Asks(Box<Request>),
    /// It was not to be fetched, or waits for its server's robots.txt: the frontier has it back.
    Ended(Box<VisitEnd>),
}

/// The answer of a server.
#[derive(Clone, Debug)]
pub enum Answer {
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

/// One visit: the answers to its questions.
struct SimulatedVisit<'c> {
    crawl: &'c SimulatedCrawl,
    pipeline: Arc<Pipeline>,
    now: Timestamp,
    transfer: Transfer,
    end: RefCell<VisitEnd>,
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
                    return Ok(Begun::Asks(Box::new(Request {
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
        request: Request,
        answer: Answer,
        now: Timestamp,
    ) -> Result<VisitEnd, SimulationError> {
        self.set_clock(now);
        let Request {
            pipeline,
            permit,
            memory,
            ..
        } = request;
        let started = pipeline.started;
        let took = Duration::try_from(now - started).unwrap_or_default();
        let (head, content, size) = match answer {
            Answer::Response {
                status,
                headers,
                content,
                size,
            } => (Some(head(status, headers)), content, size),
            Answer::Failure => (None, Bytes::new(), 0),
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

impl<'c> SimulatedVisit<'c> {
    fn new(
        crawl: &'c SimulatedCrawl,
        pipeline: &Arc<Pipeline>,
        now: Timestamp,
        transfer: Transfer,
    ) -> Self {
        Self {
            crawl,
            pipeline: pipeline.clone(),
            now,
            transfer,
            end: RefCell::new(VisitEnd {
                state: ContentState::Unknown,
                body: false,
                archived: false,
                answered: false,
                odd: Vec::new(),
                wait: None,
                kind: EndKind::Unfinished,
                entry: LogEntry::default(),
            }),
        }
    }
}

impl Driver for SimulatedVisit<'_> {
    type Error = SimulationError;
    type Reservation = ();

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn run<T: Send + 'static>(
        &self,
        _lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SimulationError> {
        Ok(work())
    }

    async fn read(&self, task: ReadingTask) -> Result<(Reading, ()), SimulationError> {
        let mut reading = task.run();
        reading.size = reading.size.map(|_| self.transfer.bytes);
        Ok((reading, ()))
    }

    fn failed(&self, failures: &[Failure]) -> Result<(), SimulationError> {
        let mut state = self.crawl.state();
        for Failure { fault, .. } in failures {
            state.faults += 1;
            let first = || format!("{}: {}", fault.plugin, fault.message);
            state.first_fault.get_or_insert_with(first);
        }
        Ok(())
    }

    fn site_values(&self, uri: &Uri) -> Result<KeptValues, SimulationError> {
        let State {
            sites, frontier, ..
        } = &mut *self.crawl.state();
        Ok(match sites.entry(uri.surt_authority()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => unknown.insert(frontier.site_values(uri)?).clone(),
        })
    }

    fn addresses(&self, _host: &str) -> Result<Addresses, SimulationError> {
        Ok(Addresses::NotNeeded)
    }

    fn robots(&self, uri: &Uri) -> Option<(Arc<Robots>, Duration)> {
        let state = self.crawl.state();
        let (robots, until) = state.robots.get(uri.robots_txt()?.as_str())?;
        let good_for = Duration::try_from(*until - self.pipeline.started).ok()?;
        (!good_for.is_zero()).then(|| (robots.clone(), good_for))
    }

    fn custom_robots(&self, text: &str) -> Arc<Robots> {
        let mut state = self.crawl.state();
        let parse = || Arc::new(Robots::parse(text.as_bytes()));
        let known = state.custom_robots.entry(text.to_owned());
        known.or_insert_with(parse).clone()
    }

    fn keep_robots(
        &self,
        uri: &Uri,
        (status, body): (i32, Vec<u8>),
        lifetime: Duration,
        from: Timestamp,
    ) -> Result<Arc<Robots>, SimulationError> {
        let robots = Arc::new(Robots::from_response(status, &body));
        let until = from + lifetime.min(robots.lifetime());
        let key = uri.as_str().to_owned();
        let mut state = self.crawl.state();
        state.robots.insert(key, (robots.clone(), until));
        Ok(robots)
    }

    async fn robots_answer(
        &self,
        exchange: &Arc<Exchange>,
    ) -> Result<RobotsAnswer, SimulationError> {
        let (status, body) = answer_of(exchange);
        Ok(RobotsAnswer::Came(status, body))
    }

    fn set_crawl_delay(&self, delay: Option<Duration>) -> Result<(), SimulationError> {
        let queue = &self.pipeline.issue.queue;
        let mut state = self.crawl.state();
        Ok(state.frontier.set_crawl_delay(queue, delay, self.now)?)
    }

    fn transfer(&self, _exchange: &Exchange) -> Transfer {
        self.transfer
    }

    async fn seed_moved(&self, _seed: &str, _target: &Uri) -> Result<(), SimulationError> {
        Ok(())
    }

    async fn store(
        &self,
        mut capture: PendingCapture<'_>,
        keep: Keep,
    ) -> Result<Stored, SimulationError> {
        capture.annotate(&self.pipeline, &keep);
        let at = WarcLocation {
            file: String::new(),
            offset: 0,
            record_id: String::new(),
            date: self.pipeline.started,
        };
        Ok(Stored {
            at: (keep != Keep::Nothing).then_some(at),
            keep,
            annotations: capture.annotations,
        })
    }

    fn measures(&self) -> Result<BTreeMap<String, f64>, SimulationError> {
        let State {
            budget, frontier, ..
        } = &mut *self.crawl.state();
        let place = Place::of(&self.pipeline.issue);
        Ok(budget.measures(frontier, place, self.pipeline.started)?)
    }

    fn promised(&self, wait: Duration, is_visit: bool) -> Result<(), SimulationError> {
        let issue = &self.pipeline.issue;
        let State {
            budget, frontier, ..
        } = &mut *self.crawl.state();
        let answered = Answered {
            now: self.now,
            wait,
            is_visit,
            pace: frontier.pace(&issue.queue, self.transfer.duration)?,
            queued: frontier.statistics().queued,
            budget: self.crawl.visits_a_day,
        };
        Ok(budget.answered(frontier, issue, answered)?)
    }

    fn wait_answered(&self, answered: bool, odd: &[OddWait]) {
        let mut end = self.end.borrow_mut();
        end.answered = answered;
        end.odd = odd.to_vec();
    }

    fn finish(&self, mut outcome: Outcome) -> Result<Finished, SimulationError> {
        let mut state = self.crawl.state();
        if let Outcome::Succeeded(success) = &mut outcome {
            let mut end = self.end.borrow_mut();
            end.state = success.visit.state;
            end.body = success.visit.size.is_some();
            end.archived = success.visit.digests.is_some();
            end.wait = success.wait;
            // Nobody would read them in the store: they are in `sites`.
            let changes = std::mem::take(&mut success.kept_for_site);
            let site = self.pipeline.issue.uri.surt_authority();
            let known = state.sites.entry(site).or_default();
            changes.into_iter().for_each(|change| known.apply(change));
        }
        let ticket = self.pipeline.issue.ticket;
        Ok(state.frontier.finished(ticket, outcome, self.now)?)
    }

    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), SimulationError> {
        Ok(raise(
            &mut self.crawl.state().frontier,
            uri,
            rank,
            self.now,
        )?)
    }

    async fn rank_queues(
        &self,
        found: impl Iterator<Item = String>,
    ) -> Result<(), SimulationError> {
        let stack = &self.crawl.plugins.stacks.precedence;
        if stack.is_empty() {
            return Ok(());
        }
        let due = self
            .crawl
            .state()
            .ranks
            .due(&self.pipeline.issue.queue, found);
        for queue in due {
            let report = self.crawl.state().frontier.queue(&queue, self.now)?;
            let Some(report) = report else { continue };
            let (rank, failures) = rank_queue(stack, &report, self.now);
            self.failed(&failures)?;
            // If one failed and none answered, the rank stays.
            if rank.is_some() || failures.is_empty() {
                let mut state = self.crawl.state();
                state.frontier.rank_queue(&queue, rank, self.now)?;
            }
        }
        Ok(())
    }

    fn keep_no_addresses(&self, _host: &str, _expires: Timestamp) -> Result<(), SimulationError> {
        Ok(())
    }

    async fn finished(
        &self,
        pipeline: &Pipeline,
        entry: LogEntry,
        ending: Ending,
        disposition: Disposition,
    ) -> Result<(), SimulationError> {
        let mut end = self.end.borrow_mut();
        end.entry = entry;
        end.kind = match ending {
            Ending::Succeeded if pipeline.is_robots() => EndKind::Robots,
            Ending::Succeeded => EndKind::Success,
            _ if opilio_visit::comes_again(disposition) => EndKind::Unfinished,
            Ending::Unfinished | Ending::Failed => EndKind::Failed,
        };
        Ok(())
    }
}

impl From<ScratchFailed> for SimulationError {
    fn from(ScratchFailed(source): ScratchFailed) -> Self {
        SimulationError::Broken(format!("a response was to be spooled: {source}"))
    }
}
