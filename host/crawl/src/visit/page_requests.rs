//! Requests of one rendered page. Each is admitted, fetched, archived and logged as an embed of the page. The request for the page
//! itself is answered with the response of its plain fetch. Cookies that servers set here stay in the browser and are dropped with
//! the page.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use jiff::Timestamp;
use opilio_browser::{FetchFuture, FetchRejection, OpenedWebSocket, PageBody, PageFetcher};
use opilio_fetch::{Exchange, FetchFailure, ResponseHead};
use opilio_frontier::{Issue, Outcome, Quota, RequestInPassing, TallyKind, UriRecord};
use opilio_uri::{Hop, Uri};
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::{
    Admission, CaptureForm, Conclusion, Driver as _, EarlierCapture, HeaderVerdict, LogEntry,
    Permit, RobotsAnswer, policy, status,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::look_up::LookUpResult;
use super::page_request::{
    PageRequest, RequestMemory, ResponseSender, is_archived, plain_response,
};
use super::{CrawlVisit, stored_payload, warc_location};
use crate::context::CrawlContext;
use crate::error::Halt;
use crate::live::Flight;
use crate::records::{self, RecordContext};
use crate::render_board::PageOnBoard;

/// Annotation of a line in `crawl.log` whose request a browser made.
const BY_BROWSER: &str = "browser";

/// Maximum of prerequisites of one request: an address and a robots.txt, and each once more if it has expired meanwhile.
const PREREQUISITES_MAX: usize = 4;

/// Reason of a refusal after the end of the page.
const PAGE_CLOSED: &str = "the page is closed";

/// Maximum of chunks of a payload that wait for the browser.
const CHUNKS_MAX: usize = 8;

/// The requests of one page. It belongs to the visit of the page, which waits for all of them.
pub(super) struct PageRequests {
    context: Arc<CrawlContext>,
    flight: Arc<Flight>,
    worker: usize,
    page: Uri,
    record: UriRecord,
    /// The response of the plain fetch.
    plain: Arc<Exchange>,
    /// `true` if the browser has not received this response yet.
    is_plain_wanted: AtomicBool,
    requests_per_server: usize,
    room: RequestMemory,
    servers: Mutex<HashMap<String, Arc<PageServer>>>,
    /// Tasks of the requests; `None` once the visit waits for the last of them.
    tasks: Mutex<Option<JoinSet<Result<(), Halt>>>>,
    archived: Mutex<HashSet<Uri>>,
    /// The page as the console shows it.
    pub(super) on_board: PageOnBoard,
}

/// The requests of a page to one server.
struct PageServer {
    /// Requests that may begin.
    slots: Semaphore,
    /// Locked while the server's address and robots.txt are fetched, so that they are fetched once.
    preparing: tokio::sync::Mutex<()>,
}

/// Passes requests of the browser to their page. It has no reference to the visit, which may end before the browser's connections.
pub(super) struct PageNetwork(pub(super) Weak<PageRequests>);

impl PageFetcher for PageNetwork {
    fn fetch(&self, request: http::Request<PageBody>) -> FetchFuture<'_, http::Response<PageBody>> {
        let page = self.0.upgrade();
        Box::pin(async move {
            let page = page.ok_or_else(|| FetchRejection::refused(PAGE_CLOSED))?;
            page.answer(request).await
        })
    }

    /// Refuses a WebSocket: archives have no record for it yet (decision 69).
    fn open_web_socket(&self, _: http::Request<()>) -> FetchFuture<'_, OpenedWebSocket> {
        if let Some(page) = self.0.upgrade() {
            page.on_board.requested();
            page.on_board.refused(|by| &mut by.web_sockets);
        }
        Box::pin(async { Err(FetchRejection::refused("WebSocket")) })
    }
}

impl PageRequests {
    /// Prepares the requests of the page that `visit` has fetched with `plain`.
    pub(super) fn new(
        visit: &CrawlVisit<'_>,
        plain: &Arc<Exchange>,
        requests_per_server: usize,
    ) -> PageRequests {
        let issue = &visit.pipeline.issue;
        PageRequests {
            context: visit.context.clone(),
            flight: visit.flight.clone(),
            worker: visit.worker,
            page: issue.uri.clone(),
            record: issue.record.clone(),
            plain: plain.clone(),
            is_plain_wanted: AtomicBool::new(true),
            requests_per_server: requests_per_server.max(1),
            room: RequestMemory::default(),
            servers: Mutex::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
            archived: Mutex::default(),
            on_board: visit.context.network.browsers.board.add(issue.uri.as_str()),
        }
    }

    /// Starts the page in another browser, which also gets the response of the plain fetch.
    pub(super) fn begin(&self) {
        self.is_plain_wanted.store(true, Ordering::Relaxed);
    }

    /// Waits until all requests are archived and logged, and refuses further ones. Returns the URIs that were archived.
    pub(super) async fn finish(&self) -> Result<HashSet<Uri>, Halt> {
        let mut tasks = lock(&self.tasks).take().unwrap_or_default();
        let mut halted = None;
        while let Some(done) = tasks.join_next().await {
            match done {
                Ok(Ok(())) => {}
                Ok(Err(halt)) => halted = halted.or(Some(halt)),
                Err(panic) => halted = halted.or(Some(Halt::Worker(panic.to_string()))),
            }
        }
        match halted {
            Some(halt) => Err(halt),
            None => Ok(std::mem::take(&mut *lock(&self.archived))),
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<PageBody>,
    ) -> Result<http::Response<PageBody>, FetchRejection> {
        let request = PageRequest::read(request, &self.room).await?;
        // The first request to the page's server is the request for the page itself.
        if request.is_for(&self.page) && self.is_plain_wanted.swap(false, Ordering::Relaxed) {
            return plain_response(&self.plain);
        }
        self.on_board.requested();
        let (payload, body) = mpsc::channel(CHUNKS_MAX);
        let (sender, head) = ResponseSender::new(payload);
        let (ended, end) = oneshot::channel();
        let page = self.clone();
        let work = async move { page.fetch(request, sender, ended).await };
        // The browser may drop this future. A response that has been received is archived even then.
        self.begin_task(work.in_current_span())?;
        let head = head.await;
        let head = head.map_err(|_| FetchRejection::failed("no response"))??;
        super::page_request::response(&head, super::page_bodies::received(body, end))
    }

    /// Begins a task for which the visit waits. While the page is closed, a connection of the browser may send another request. It
    /// is refused, because the visit would not wait for it and the crawl could end first.
    fn begin_task(
        &self,
        work: impl Future<Output = Result<(), Halt>> + Send + 'static,
    ) -> Result<(), FetchRejection> {
        match &mut *lock(&self.tasks) {
            Some(tasks) => {
                tasks.spawn(work);
                Ok(())
            }
            None => {
                self.on_board.ended(|by| &mut by.abandoned);
                Err(FetchRejection::refused(PAGE_CLOSED))
            }
        }
    }

    /// Fetches a URI for the page, and archives and logs the exchange.
    async fn fetch(
        &self,
        request: PageRequest,
        sender: ResponseSender,
        ended: oneshot::Sender<bool>,
    ) -> Result<(), Halt> {
        let issue = self.issue(&request.uri, Hop::Embed);
        let visit = CrawlVisit::new(&self.context, issue, &self.flight, self.worker);
        let server = self.server(&request.uri);
        let slot = tokio::select! {
            slot = server.slots.acquire() => slot,
            () = sender.gone() => {
                self.on_board.ended(|by| &mut by.abandoned);
                return Ok(());
            }
        };
        let admitted = match self.admit(&visit, &server).await? {
            Ok(permit) => {
                let place = tokio::select! {
                    biased;
                    place = self.context.place_for_request() => place,
                    () = sender.gone() => {
                        self.on_board.ended(|by| &mut by.abandoned);
                        return Ok(());
                    }
                };
                let place = place.ok_or_else(|| over_quota("quota:crawl".to_owned()));
                place.map(|place| (permit, place))
            }
            Err(refused) => Err(refused),
        };
        // The place under the limits is kept until the request has been counted.
        let (permit, _place) = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => {
                self.on_board.refused(|by| by.of_entry(&refused.entry));
                let why = opilio_frontier::status_words(refused.entry.status);
                sender.reject(FetchRejection::refused(why));
                return self.log_refusal(&visit, refused.entry).await;
            }
        };
        let exchange = visit.exchange_for_page(&self.page, &request, &permit, &sender);
        let Some((mut exchange, mid_fetch)) = exchange.await? else {
            self.on_board.ended(|by| &mut by.abandoned);
            return Ok(());
        };
        exchange.annotations.extend(permit.annotations);
        let captures = &self.context.network.browsers.captures;
        exchange.started = captures.own_time(request.uri.as_str(), exchange.started);
        drop(slot);
        visit.failed(&mid_fetch.failures)?;
        if let Some(HeaderVerdict::Rejected(rejection)) = mid_fetch.verdict {
            let mut entry = entry_of(&request, &exchange);
            entry.status = rejection.status;
            entry.annotations.push(rejection.because);
            self.on_board.refused(|by| by.of_entry(&entry));
            return self.log(&visit, entry, false).await;
        }
        let is_complete = exchange.failure.is_none() && exchange.truncated.is_none();
        if let Some(failure) = &exchange.failure {
            sender.reject(FetchRejection::failed(opilio_stacks::chain(failure)));
        }
        drop(sender);
        // The browser may not wait for the response any more.
        let _ = ended.send(is_complete);
        self.archive_and_log(&visit, &request, exchange).await
    }

    /// Admits a request. The inner error is a refusal.
    async fn admit(
        &self,
        visit: &CrawlVisit<'_>,
        server: &PageServer,
    ) -> Result<Result<Permit, Box<Conclusion>>, Halt> {
        let refuse = |status| Ok(Err(Box::new(Conclusion::failed(status, String::new()))));
        if let Some(limit) = visit.quota_in_passing()? {
            return Ok(Err(over_quota(limit)));
        }
        let _prepared = server.preparing.lock().await;
        for _ in 0..PREREQUISITES_MAX {
            let ended = match opilio_visit::admit(&visit.pipeline, visit).await? {
                Admission::Fetch(permit) => return Ok(Ok(permit)),
                Admission::Ends(ended) => ended,
            };
            let Outcome::Deferred { prerequisites } = &ended.outcome else {
                return Ok(Err(ended));
            };
            let uri = &visit.pipeline.issue.uri;
            let Some(first) = prerequisites.first() else {
                return Ok(Err(ended));
            };
            if first.uri.scheme() == "dns" {
                if let LookUpResult::Failed(status) = visit.addresses_now(uri).await? {
                    return refuse(status);
                }
            } else if uri.robots_txt().as_ref() == Some(&first.uri) {
                let issue = self.issue(&first.uri, Hop::Prerequisite);
                let robots = CrawlVisit::new(&self.context, issue, &self.flight, self.worker);
                robots.fetch_robots_in_passing(&self.page).await?;
            } else {
                // Logins are not made for requests in passing.
                break;
            }
        }
        refuse(status::PREREQUISITE_FAILED)
    }

    /// Returns a URI in the form of an issued URI, although the frontier has not issued it.
    fn issue(&self, uri: &Uri, hop: Hop) -> Issue {
        let profile = self.context.current();
        let candidate = policy::candidate(
            &profile,
            uri.clone(),
            self.record.hop_path.then(hop),
            Some(self.page.as_str()),
            self.record.source.as_deref(),
        );
        let (now, uri) = (Timestamp::now(), candidate.uri.clone());
        Issue::unissued(uri, UriRecord::of(candidate, now), now)
    }

    fn server(&self, uri: &Uri) -> Arc<PageServer> {
        let (host, port) = (uri.host().unwrap_or_default(), uri.port_or_default());
        let name = format!("{}://{host}:{port}", uri.scheme());
        let mut servers = lock(&self.servers);
        let server = servers.entry(name).or_insert_with(|| {
            Arc::new(PageServer {
                slots: Semaphore::new(self.requests_per_server),
                preparing: tokio::sync::Mutex::default(),
            })
        });
        server.clone()
    }

    /// Counts a request that is not archived.
    fn count_unarchived(&self, exchange: &Exchange) {
        let board = &self.on_board;
        match &exchange.failure {
            Some(FetchFailure::AddressRefused { .. } | FetchFailure::PortRefused { .. }) => {
                board.refused(|by| &mut by.addresses);
            }
            _ if exchange.head.is_some() => board.ended(|by| &mut by.unarchived),
            _ => board.ended(|by| &mut by.failed),
        }
    }

    async fn log_refusal(&self, visit: &CrawlVisit<'_>, mut entry: LogEntry) -> Result<(), Halt> {
        if entry.status == status::OUT_OF_SCOPE {
            // Requests out of scope have no line, like links out of scope.
            self.context.figures.counters.out_of_scope(1);
            return Ok(());
        }
        entry.annotations.insert(0, BY_BROWSER.to_owned());
        self.log(visit, entry, false).await
    }

    /// Logs and counts a finished request, and passes it to observers.
    async fn log(
        &self,
        visit: &CrawlVisit<'_>,
        entry: LogEntry,
        is_document: bool,
    ) -> Result<(), Halt> {
        let context = &self.context;
        let line = visit.line(entry.clone());
        context.log_visit(&line)?;
        context.finished(&visit.pipeline.issue.queue, &line, is_document);
        let observers = &context.plugins.observers;
        if !observers.is_empty() {
            observers.send(visit.event(entry)).await;
        }
        Ok(())
    }

    /// Archives and logs an exchange.
    async fn archive_and_log(
        &self,
        visit: &CrawlVisit<'_>,
        request: &PageRequest,
        exchange: Exchange,
    ) -> Result<(), Halt> {
        match &exchange.failure {
            Some(FetchFailure::Stopped) if exchange.head.is_none() => return Err(Halt::Stopped),
            Some(FetchFailure::Scratch(source)) => return Err(Halt::Scratch(source.clone())),
            _ => {}
        }
        let mut entry = entry_of(request, &exchange);
        if exchange.head.is_some() && is_archived(&request.method) {
            let exchange = Arc::new(exchange);
            let is_novel = visit.archive_for_page(&exchange, &mut entry).await?;
            let request_in_passing = RequestInPassing {
                bytes: exchange.payload.length(),
                is_novel,
                transfer: visit.transfer(&exchange),
            };
            visit.count_in_passing(request_in_passing)?;
            self.on_board.ended(|by| match is_novel {
                true => &mut by.archived,
                false => &mut by.duplicate,
            });
            // This applies to all methods: a URI that a script requests by POST is not fetched by GET because of a string in that
            // script.
            lock(&self.archived).insert(request.uri.clone());
        } else {
            self.count_unarchived(&exchange);
        }
        let is_document = entry.is_archived();
        self.log(visit, entry, is_document).await
    }
}

impl CrawlVisit<'_> {
    /// Archives an exchange of a page, and completes its log entry. Returns whether its payload was stored.
    async fn archive_for_page(
        &self,
        exchange: &Arc<Exchange>,
        entry: &mut LogEntry,
    ) -> Result<bool, Halt> {
        let issue = &self.pipeline.issue;
        let payload = self.context.payload_digests(exchange).await?;
        let held = self
            .lock_payload(exchange, &CaptureForm::Response, payload)
            .await?;
        let (uri, digest) = (issue.uri.as_str(), exchange.payload_digest.0);
        let captures = &self.context.network.browsers.captures;
        let is_complete = exchange.failure.is_none() && exchange.truncated.is_none();
        let earlier = captures.earlier(uri, digest).filter(|_| is_complete);
        let (keep, how) = match (held.as_ref().and_then(|held| held.found.clone()), earlier) {
            (Some(stored), _) => {
                let stored = records::previous_of(stored);
                (CaptureForm::Duplicate(stored), "uriAgnosticDigest")
            }
            // ARC has no record for a missing payload.
            (None, Some(earlier)) if !self.writes_arc() => {
                (CaptureForm::Identical(earlier), "digest")
            }
            _ => (CaptureForm::Response, ""),
        };
        let is_novel = keep == CaptureForm::Response;
        if !is_novel {
            entry.annotations.push("duplicate:digest".to_owned());
            entry.annotations.push(format!("warcRevisit:{how}"));
        }
        let about = RecordContext {
            payload: Some(payload),
            via: issue.record.via.as_deref(),
            hop_path: issue.record.hop_path.as_str(),
            source: issue.record.source.as_deref(),
            annotations: &entry.annotations,
            ..RecordContext::default()
        };
        let records = records::of_exchange(&issue.uri, exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();
        let date = records::date_of(exchange);
        if let (Some(held), Some(location), true) = (&held, &location, is_novel) {
            held.add_to_index(&stored_payload(&issue.uri, date, location))?;
        }
        entry.archived = location.map(|location| warc_location(location, date));
        if let (Some(at), true) = (&entry.archived, is_novel && is_complete) {
            let capture = EarlierCapture {
                uri: uri.to_owned(),
                at: at.clone(),
            };
            captures.remember(digest, capture);
        }
        Ok(is_novel)
    }

    /// Returns the quotas that apply to the URI, with the names of their tallies.
    fn quotas_in_passing(&self) -> Vec<(TallyKind, &str, Quota)> {
        let issue = &self.pipeline.issue;
        let profile = &self.pipeline.profile;
        let settings = profile.queue_settings(&issue.queue);
        let domain = issue.uri.registrable_domain().or_else(|| issue.uri.host());
        let of_source = profile.quotas.source;
        let all = [
            (TallyKind::Host, issue.uri.host(), settings.host_quota),
            (TallyKind::Domain, domain, settings.domain_quota),
            (TallyKind::Source, issue.record.source.as_deref(), of_source),
        ];
        let named = all.into_iter().filter(|(.., quota)| quota.is_some());
        named
            .filter_map(|(kind, name, quota)| Some((kind, name?, quota)))
            .collect()
    }

    /// Returns the quota that is used up, as an annotation.
    fn quota_in_passing(&self) -> Result<Option<String>, Halt> {
        for (kind, name, quota) in self.quotas_in_passing() {
            let tally = self.context.frontier().tally(kind, name)?;
            if let Some(limit) = tally.reached(&quota, 0) {
                return Ok(Some(format!("quota:{}:{limit}", kind.name())));
            }
        }
        Ok(None)
    }

    fn count_in_passing(&self, request: RequestInPassing) -> Result<(), Halt> {
        let quotas = self.quotas_in_passing();
        let tallies: Vec<(TallyKind, &str)> = quotas
            .iter()
            .map(|(kind, name, _)| (*kind, *name))
            .collect();
        let queue = &self.pipeline.issue.queue;
        let mut frontier = self.context.frontier();
        Ok(frontier.count_in_passing(queue, &tallies, request, Timestamp::now())?)
    }

    /// Fetches this robots.txt for a request of the page, and archives and keeps it.
    async fn fetch_robots_in_passing(&self, page: &Uri) -> Result<(), Halt> {
        let (pipeline, context) = (&self.pipeline, self.context);
        let robots = &pipeline.issue.uri;
        let answer = match self.addresses_now(robots).await? {
            LookUpResult::NoSuchHost => (status::NO_ADDRESS, Vec::new()),
            LookUpResult::Failed(status) => (status, Vec::new()),
            LookUpResult::Found(addresses) => {
                let permit = Permit {
                    addresses,
                    ..Permit::default()
                };
                let memory = PluginMemory::default();
                let (exchange, _) = self.fetch(robots, &permit, &memory).await?;
                let exchange = Arc::new(exchange);
                let about = RecordContext {
                    via: Some(page.as_str()),
                    hop_path: pipeline.issue.record.hop_path.as_str(),
                    ..RecordContext::default()
                };
                let form = CaptureForm::Response;
                let records = records::of_exchange(robots, &exchange, &form, &about);
                context.archive(records::in_passing(records, page)).await?;
                match self.follow_robots(&exchange).await? {
                    RobotsAnswer::Received(status, body) => (status, body),
                    RobotsAnswer::Busy(_) => (status::ROBOTS_FAILED, Vec::new()),
                }
            }
        };
        let expires = pipeline.settings.robots.expires;
        let lifetime = match answer.0 > 0 {
            true => expires,
            false => pipeline.denial_lifetime(expires),
        };
        self.keep_robots(robots, answer, lifetime, Timestamp::now())?;
        Ok(())
    }
}

/// Returns the conclusion for a request beyond this quota.
fn over_quota(quota: String) -> Box<Conclusion> {
    Box::new(Conclusion::postponed(status::QUOTA, quota))
}

/// Returns the log entry of an exchange, before it is archived.
fn entry_of(request: &PageRequest, exchange: &Exchange) -> LogEntry {
    let head = exchange.head.as_ref();
    let mut annotations = vec![BY_BROWSER.to_owned()];
    if request.method != http::Method::GET {
        annotations.push(format!("method:{}", request.method));
    }
    annotations.extend(exchange.annotations.iter().cloned());
    if let Some(failure) = &exchange.failure {
        annotations.push(format!("err={}", opilio_stacks::chain(failure)));
    }
    if head.is_some() && !is_archived(&request.method) {
        annotations.push(format!("unwritten:{}", request.method));
    }
    LogEntry {
        status: exchange.status(),
        size: Some(exchange.payload.length()).filter(|_| head.is_some()),
        media_type: head.and_then(ResponseHead::media_type),
        fetch: Some((exchange.started, exchange.duration)),
        digest: head.map(|_| exchange.payload_digest.to_string()),
        annotations,
        received: head.map(|_| exchange.wire.length()),
        ..LogEntry::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
