//! The crawl's side of a visit: sockets, the frontier's store, the archive, logs and plugin lanes.
//!
//! Every decision is taken by `opilio_visit`. In all cases but one, the URI is returned to the frontier with an outcome. The
//! exception is an error that halts the crawl, such as a full disk, a broken store, or a scope filter that keeps failing. The URI
//! is then found in process at the next start and put back in its queue.

mod behave;
mod fetch;
mod login;
mod look_up;
mod page_bodies;
mod page_request;
mod page_requests;
mod read;
mod render;
mod robots;
mod store;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_archive::{Record, StoredPayload};
use opilio_fetch::Exchange;
use opilio_fetch::robots::Robots;
use opilio_frontier::{
    Candidate, Disposition, FinishResult, Issue, Outcome, SiteRecord, WarcLocation,
};
use opilio_profile::{ServerGroup, Stage};
use opilio_sandbox::{Finished as Event, NamedValue};
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_uri::Uri;
use opilio_visit::budget::{self, EvaluatedWait};
use opilio_visit::extraction::RefusedLink;
use opilio_visit::reading::{Reading, ReadingTask};
use opilio_visit::scope::ScopeDecision;
use opilio_visit::scope_memory::ScopeMemory;
use opilio_visit::{
    Addresses, Admission, CaptureForm, Conclusion, Driver, EarlierCapture, LogEntry, LoginNeed,
    OutcomeKind, PageToRender, PendingCapture, Pipeline, Rendering, RobotsAnswer, ScratchFailed,
    Step, StoredCapture, precedence, status,
};
use tracing::Instrument as _;

pub(crate) use page_request::{PageRequest, RequestMemory, plain_response};

use crate::context::CrawlContext;
use crate::error::Halt;
use crate::lanes::{LaneKind, Reserved};
use crate::live::Flight;
use crate::logins::LoginRequirement;
use crate::records;
use opilio_job::crawl_log::{CrawlLogLine, ExtraInfo};

/// The visit of one issued URI by a worker.
pub(crate) struct CrawlVisit<'a> {
    context: &'a Arc<CrawlContext>,
    pipeline: Arc<Pipeline>,
    flight: &'a Arc<Flight>,
    worker: usize,
}

impl<'a> CrawlVisit<'a> {
    /// Starts the visit of a URI that the frontier has issued.
    pub(crate) fn new(
        context: &'a Arc<CrawlContext>,
        issue: Issue,
        flight: &'a Arc<Flight>,
        worker: usize,
    ) -> CrawlVisit<'a> {
        let started = records::to_millisecond(Timestamp::now());
        let (profile, stacks) = (context.current(), context.stacks());
        CrawlVisit {
            context,
            pipeline: Arc::new(Pipeline::new(issue, profile, stacks, started)),
            flight,
            worker,
        }
    }

    /// Makes the visit and returns the URI to the frontier.
    pub(crate) async fn run(&self) -> Result<(), Halt> {
        let issue = &self.pipeline.issue;
        let record = &issue.record;
        let span = tracing::info_span!(
            parent: None,
            "uri",
            url.full = issue.uri.as_str(),
            opilio.queue = issue.queue.as_str(),
            opilio.hop_path = record.hop_path.as_str(),
            opilio.via = record.via.as_deref(),
            opilio.attempts = record.attempts,
            opilio.status = tracing::field::Empty,
            opilio.size = tracing::field::Empty,
            opilio.annotations = tracing::field::Empty,
        );
        self.visit().instrument(span).await
    }

    async fn visit(&self) -> Result<(), Halt> {
        let pipeline = &self.pipeline;
        let uri = &pipeline.issue.uri;
        if pipeline.issue.visit_after.is_some() {
            let outcome = opilio_visit::consider(pipeline, self).await?;
            self.finish(outcome)?;
            return Ok(());
        }
        let conclusion = match pipeline.over_quota() {
            Some(conclusion) => conclusion,
            None if uri.scheme() == "dns" => self.look_up().await?,
            None => match self.fetch_and_read().await {
                Err(Halt::Lane(panic)) if self.context.figures.counters.survives_panic() => {
                    tracing::error!(%uri, "{panic}; please report it");
                    Conclusion::failed(status::SERIOUS_ERROR, format!("err={panic}"))
                }
                concluded => concluded?,
            },
        };
        opilio_visit::finish(pipeline, self, conclusion).await
    }

    async fn fetch_and_read(&self) -> Result<Conclusion, Halt> {
        let pipeline = &self.pipeline;
        let permit = match opilio_visit::admit(pipeline, self).await? {
            Admission::Fetch(permit) => permit,
            Admission::Ends(conclusion) => return Ok(*conclusion),
        };
        let memory = opilio_visit::memory(pipeline, self)?;
        self.step(Step::Fetch);
        let fetch = self.fetch(&pipeline.issue.uri, &permit, &memory);
        let Some(fetched) = self.flight.unless_cancelled(fetch).await else {
            return Ok(pipeline.cancelled(self.elapsed()));
        };
        let (exchange, mid_fetch) = fetched?;
        self.failed(&mid_fetch.failures)?;
        let verdict = mid_fetch.verdict;
        opilio_visit::receive(pipeline, self, &permit, exchange, verdict, memory).await
    }

    /// Returns the site whose share of the lanes the visit uses: the registrable domain, or the queue if the host has no
    /// registrable domain.
    fn site(&self) -> &str {
        let issue = &self.pipeline.issue;
        issue.uri.registrable_domain().unwrap_or(&issue.queue)
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(Timestamp::now() - self.pipeline.started).unwrap_or_default()
    }

    fn line(&self, entry: LogEntry) -> CrawlLogLine {
        let issue = &self.pipeline.issue;
        let record = &issue.record;
        let extra = ExtraInfo {
            received: entry.received,
            file: entry.archived.as_ref().map(|at| at.file.clone()),
            offset: entry.archived.as_ref().map(|at| at.offset),
        };
        CrawlLogLine {
            logged: Timestamp::now(),
            status: entry.status,
            size: entry.size,
            uri: issue.uri.as_str().to_owned(),
            hop_path: record.hop_path.as_str().to_owned(),
            via: record.via.clone(),
            media_type: entry.media_type,
            worker: self.worker,
            fetch: entry.fetch,
            digest: entry.digest,
            source: record.source.clone(),
            annotations: entry.annotations,
            extra: self.context.profile.logs.extra_info.then_some(extra),
        }
    }

    /// Returns the event for observers.
    fn event(&self, entry: LogEntry) -> Event {
        let pipeline = &self.pipeline;
        let (state, notes) = (entry.state, entry.notes.clone());
        let line = self.line(entry);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Event {
            at: u64::try_from(pipeline.started.as_millisecond()).unwrap_or(0),
            uri: line.uri,
            status: line.status,
            media_type: line.media_type.unwrap_or_default(),
            size: line.size,
            took: line.fetch.map(|(_, took)| milliseconds(took)),
            state: state.into(),
            hop_path: line.hop_path,
            via: line.via,
            source: line.source,
            queue: pipeline.issue.queue.clone(),
            digest: line.digest,
            annotations: line.annotations,
            attributes: notes
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
        }
    }

    /// Puts the queue into the group of its server's address, if the profile groups queues by address. Servers with several
    /// addresses belong to the group of the lowest address.
    fn join_group(&self, addresses: &[IpAddr]) -> Result<(), Halt> {
        let (context, issue) = (self.context, &self.pipeline.issue);
        let queue = &issue.queue;
        if context.current().server_group(queue) != ServerGroup::Address {
            return Ok(());
        }
        let address = addresses.iter().min().map(ToString::to_string);
        if address != issue.group {
            let now = Timestamp::now();
            context
                .frontier()
                .set_address_group(queue, address.as_deref(), now)?;
        }
        Ok(())
    }

    /// Returns `true` if the proxy looks up the host's addresses according to the profile. The crawl itself may be unable to look
    /// them up.
    fn is_looked_up_by_proxy(&self, host: &str) -> bool {
        let proxy = self.pipeline.settings.fetch.proxy.as_ref();
        proxy.is_some_and(|proxy| proxy.looks_up(host))
    }

    /// Waits for a server. If the server is slow, no worker is occupied.
    async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let slow_after = self.pipeline.settings.fetch.slow_after;
        self.flight.waiting(slow_after, work).await
    }
}

impl From<ScratchFailed> for Halt {
    fn from(ScratchFailed(source): ScratchFailed) -> Halt {
        Halt::Scratch(source)
    }
}

impl Driver for CrawlVisit<'_> {
    type Error = Halt;
    type Reservation = Reserved;

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn step(&self, step: Step) {
        self.flight.step(step);
    }

    async fn run<T: Send + 'static>(
        &self,
        lane: opilio_visit::Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Halt> {
        let lanes = &self.context.lanes;
        Ok(match lane {
            opilio_visit::Lane::Document => lanes.document(self.site(), 0, |_| work()).await?,
            opilio_visit::Lane::Header => lanes.run(LaneKind::Header, work).await?,
        })
    }

    async fn read(&self, task: ReadingTask) -> Result<(Reading, Reserved), Halt> {
        Ok(read::within_memory(&self.context.lanes, self.site(), task).await?)
    }

    fn failed(&self, failures: &[Failure]) -> Result<(), Halt> {
        self.context.failures(failures)
    }

    fn site_record(&self, uri: &Uri) -> Result<SiteRecord, Halt> {
        Ok(self.context.frontier().site(uri)?)
    }

    fn addresses(&self, host: &str) -> Result<Addresses, Halt> {
        if self.is_looked_up_by_proxy(host) {
            return Ok(Addresses::NotNeeded);
        }
        let (context, dns) = (self.context, &self.pipeline.profile.dns);
        let known =
            context
                .network
                .servers
                .addresses(&context.frontier, host, dns, self.pipeline.started);
        let Some(known) = known else {
            return Ok(Addresses::Unknown);
        };
        if !known.addresses.is_empty() {
            self.join_group(&known.addresses)?;
        }
        Ok(Addresses::Known(known.addresses))
    }

    fn is_login(&self, uri: &Uri) -> bool {
        self.context.network.logins.part_of(uri).is_some()
    }

    fn login_need(&self, uri: &Uri) -> LoginNeed {
        let context = self.context;
        let needs = context
            .network
            .logins
            .needs(&context.frontier, uri, self.pipeline.started);
        match needs {
            LoginRequirement::Nothing => LoginNeed::Nothing,
            LoginRequirement::First(first) => LoginNeed::First(first),
            LoginRequirement::Refused(name) => LoginNeed::Refused(name),
        }
    }

    fn robots(&self, uri: &Uri) -> Option<(Arc<Robots>, Duration)> {
        let context = self.context;
        context
            .network
            .servers
            .robots(&context.frontier, uri, self.pipeline.started)
    }

    fn custom_robots(&self, text: &str) -> Arc<Robots> {
        self.context.network.servers.custom(text)
    }

    fn keep_robots(
        &self,
        uri: &Uri,
        answer: (i32, Vec<u8>),
        lifetime: Duration,
        from: Timestamp,
    ) -> Result<Arc<Robots>, Halt> {
        let (servers, frontier) = (&self.context.network.servers, &self.context.frontier);
        Ok(servers.keep_robots(frontier, uri, answer, lifetime, from)?)
    }

    async fn robots_answer(&self, exchange: &Arc<Exchange>) -> Result<RobotsAnswer, Halt> {
        self.follow_robots(exchange).await
    }

    fn set_crawl_delay(&self, delay: Option<Duration>) -> Result<(), Halt> {
        let queue = &self.pipeline.issue.queue;
        let mut frontier = self.context.frontier();
        Ok(frontier.set_crawl_delay(queue, delay, Timestamp::now())?)
    }

    fn login_page_to_fetch(&self, exchange: &Exchange) -> Result<Option<Uri>, Halt> {
        self.login_page_after(exchange)
    }

    async fn widen_scope(&self, seed: &str, target: &Uri) -> Result<(), Halt> {
        self.context.widen_scope(seed, target).await
    }

    fn used_stack(&self, stage: Stage, hash: u64, stack: &[Staged]) -> Result<(), Halt> {
        Ok(self.context.plugins.known_stacks.note(stage, hash, stack)?)
    }

    fn scope_memory(&self) -> Option<&ScopeMemory> {
        Some(&self.context.plugins.scope_memory)
    }

    fn known_links(&self, links: &[&Candidate]) -> Result<Vec<bool>, Halt> {
        // The scope log lists every link, so all links need a decision.
        if self.context.outputs.logs.has_scope() {
            return Ok(vec![false; links.len()]);
        }
        let links = links.iter().copied();
        Ok(self.context.frontier().changes_nothing(links)?)
    }

    fn judged_links<'l>(
        &self,
        links: impl Iterator<Item = (&'l Uri, &'l ScopeDecision)>,
    ) -> Result<(), Halt> {
        if !self.context.outputs.logs.has_scope() {
            return Ok(());
        }
        let decided: Vec<(&str, bool, String)> = links
            .map(|(link, decision)| (link.as_str(), decision.accepted, decision.because()))
            .collect();
        let lines = decided
            .iter()
            .map(|(link, accepted, because)| (*link, *accepted, because.as_str()));
        Ok(self
            .context
            .outputs
            .logs
            .scope(self.pipeline.issue.uri.as_str(), lines)?)
    }

    fn scope_fault(&self, plugin: &Arc<str>) {
        self.context.scope_fault(plugin);
    }

    fn refused_links(&self, malformed: &[RefusedLink], out_of_scope: u64) -> Result<(), Halt> {
        let page = self.pipeline.issue.uri.as_str();
        self.context.outputs.logs.uri_errors(page, malformed)?;
        self.context.figures.counters.out_of_scope(out_of_scope);
        Ok(())
    }

    fn original(&self, payload: [u8; 20]) -> Result<Option<EarlierCapture>, Halt> {
        let Some(duplicates) = &self.context.outputs.duplicates else {
            return Ok(None);
        };
        let original = duplicates.original(&self.pipeline.issue.record.uri, payload)?;
        Ok(original.map(records::previous_of))
    }

    async fn store(
        &self,
        capture: PendingCapture<'_>,
        keep: CaptureForm,
    ) -> Result<StoredCapture, Halt> {
        self.write_capture(capture, keep).await
    }

    fn has_browser(&self) -> bool {
        true
    }

    async fn render(&self, page: PageToRender<'_>) -> Result<Rendering, Halt> {
        self.render_page(page).await
    }

    async fn store_about_page(&self, records: Vec<Record>) -> Result<(), Halt> {
        if !records.is_empty() {
            self.context.archive(records).await?;
            let board = &self.context.network.browsers.board;
            board.archived(self.pipeline.issue.uri.as_str());
        }
        Ok(())
    }

    fn measures(&self) -> Result<BTreeMap<String, f64>, Halt> {
        let issue = &self.pipeline.issue;
        let mut budget = self.context.budget();
        let frontier = self.context.frontier();
        let place = budget::UriInQueue::of(issue);
        Ok(budget.measures(&frontier, place, self.pipeline.started)?)
    }

    fn wait_decided(&self, wait: Duration, is_visit: bool) -> Result<(), Halt> {
        let pipeline = &self.pipeline;
        let mut budget = self.context.budget();
        let mut frontier = self.context.frontier();
        let answered = EvaluatedWait {
            now: pipeline.started,
            wait,
            is_visit,
            pace: frontier.request_interval(&pipeline.issue.queue, self.elapsed())?,
            queued: frontier.statistics().queued,
            budget: pipeline
                .profile
                .settings()
                .revisit
                .budget
                .map(|budget| self.context.even_share(budget)),
        };
        budget.answered(&frontier, &pipeline.issue, answered)?;
        // Prices are written to the store at intervals.
        if let Some(prices) = budget.due_prices(pipeline.started) {
            frontier.put_caller_values(&prices)?;
        }
        Ok(())
    }

    async fn login_received(&self, exchange: &Arc<Exchange>) -> Result<(), Halt> {
        self.read_login(exchange).await
    }

    fn finishing(&self, outcome: &Outcome, entry: &LogEntry) -> Result<(), Halt> {
        let is_lost = matches!(
            outcome,
            Outcome::Failed { .. } | Outcome::Disregarded { .. } | Outcome::OutOfScope { .. }
        );
        if is_lost {
            self.login_lost()?;
        }
        if matches!(outcome, Outcome::Succeeded(_)) || entry.is_archived() {
            // The lines are written before the frontier receives the outcome: after a crash in between, a line may be written
            // twice, but is never missing.
            self.context.log_visit(&self.line(entry.clone()))?;
        }
        Ok(())
    }

    fn finish(&self, outcome: Outcome) -> Result<FinishResult, Halt> {
        let ticket = self.pipeline.issue.ticket;
        tracing::info_span!("finish").in_scope(|| {
            let mut frontier = self.context.frontier();
            Ok(frontier.finished(ticket, outcome, Timestamp::now())?)
        })
    }

    fn link_refused(&self, link: &Uri, why: &str) -> Result<(), Halt> {
        let page = self.pipeline.issue.uri.as_str();
        Ok(self
            .context
            .outputs
            .logs
            .uri_error(page, link.as_str(), &why)?)
    }

    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), Halt> {
        let mut frontier = self.context.frontier();
        Ok(precedence::raise(
            &mut frontier,
            uri,
            rank,
            Timestamp::now(),
        )?)
    }

    async fn rank_queues(&self, found: impl Iterator<Item = String>) -> Result<(), Halt> {
        let (context, queue) = (self.context, &self.pipeline.issue.queue);
        if context.stacks().precedence.is_empty() {
            return Ok(());
        }
        let queues = context.queues.ranks.due(queue, found);
        context.rank_queues(queues).await
    }

    fn keep_no_addresses(&self, host: &str, expires: Timestamp) -> Result<(), Halt> {
        let (context, dns) = (self.context, &self.pipeline.profile.dns);
        let (servers, frontier) = (&context.network.servers, &context.frontier);
        Ok(servers.keep_addresses(frontier, host, dns, Vec::new(), expires)?)
    }

    async fn finished(
        &self,
        entry: LogEntry,
        kind: OutcomeKind,
        disposition: Disposition,
    ) -> Result<(), Halt> {
        let context = self.context;
        let line = self.line(entry.clone());
        match disposition {
            Disposition::GivenUp { .. } => {
                self.login_lost()?;
                context.log_visit(&line)?;
            }
            Disposition::Retrying { attempts } => context.outputs.logs.nonfatal(&line, attempts)?,
            Disposition::Deferred => {}
            // Other captures have their line already.
            _ if kind == OutcomeKind::Failed && !entry.is_archived() => context.log_visit(&line)?,
            _ => {}
        }
        let span = tracing::Span::current();
        if !span.is_disabled() {
            span.record("opilio.status", line.status);
            span.record("opilio.size", line.size);
            span.record("opilio.annotations", line.annotations.join(","));
        }
        let pipeline = &self.pipeline;
        let issue = &pipeline.issue;
        let succeeded = kind == OutcomeKind::Succeeded;
        let document = succeeded && issue.uri.scheme() != "dns" && !pipeline.is_prerequisite();
        context.finished(&issue.queue, &line, document);
        if !opilio_visit::will_be_reissued(disposition) && !context.plugins.observers.is_empty() {
            context.plugins.observers.send(self.event(entry)).await;
        }
        Ok(())
    }
}

/// Returns the payload of a record, for records that refer to it.
fn stored_payload(
    uri: &Uri,
    date: Timestamp,
    location: &opilio_archive::Location,
) -> StoredPayload {
    StoredPayload {
        uri: uri.as_str().to_owned(),
        date,
        record_id: Some(location.record_id.to_string()),
        file: location.file.clone(),
        offset: location.offset,
    }
}

fn warc_location(location: opilio_archive::Location, date: Timestamp) -> WarcLocation {
    WarcLocation {
        file: location.file,
        offset: location.offset,
        record_id: location.record_id.to_string(),
        date,
    }
}
