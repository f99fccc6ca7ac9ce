//! The driver: the part of a program that does the I/O of a visit. It has the sockets, the store, the clock and the threads.
//!
//! There are two drivers. The crawl's driver uses servers, the frontier's store and plugin lanes. The simulator's driver uses a
//! synthetic web in virtual time. Both run the same pipeline, so a decision is the same in both.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::Record;
use opilio_fetch::Exchange;
use opilio_fetch::robots::Robots;
use opilio_frontier::{Candidate, Disposition, FinishResult, Outcome, SiteRecord, Transfer};
use opilio_profile::{EffectiveSettings, Stage};
use opilio_sandbox::Visit;
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::capture::{CaptureForm, EarlierCapture, PendingCapture, StoredCapture};
use crate::evaluation::WaitCorrection;
use crate::extraction::{Outlink, RefusedLink};
use crate::pipeline::LogEntry;
use crate::reading::{Reading, ReadingTask};
use crate::scope::ScopeDecision;
use crate::scope_memory::ScopeMemory;

/// The threads that a piece of work is for.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    /// Work on documents, which may take long.
    Document,
    /// Short calls during which a socket may wait.
    Header,
}

/// Step of a visit, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Scope, address, robots.txt, logins and pre-fetch filters decide whether the URI may be fetched.
    #[default]
    Prepare,
    /// The URI is requested, and the response is received. For a URI with the scheme `dns` this is the look-up.
    Fetch,
    /// The document is digested and compared, and its links are extracted and judged.
    Read,
    /// A browser renders the page.
    Render,
    /// The capture waits for a writer, and is written to the archive.
    Archive,
    /// Wait evaluators decide the time of the next visit.
    Wait,
    /// The outcome is passed to the frontier, the logs and the observers.
    Finish,
}

impl Step {
    /// Name of the step in reports and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Step::Prepare => "prepare",
            Step::Fetch => "fetch",
            Step::Read => "read",
            Step::Render => "render",
            Step::Archive => "archive",
            Step::Wait => "wait",
            Step::Finish => "finish",
        }
    }
}

/// A page that is to be rendered.
#[derive(Clone, Copy)]
pub struct PageToRender<'p> {
    /// The response of the plain fetch. The browser gets this response; the page is not fetched again.
    pub exchange: &'p Arc<Exchange>,
    /// The settings for its media type.
    pub settings: &'p EffectiveSettings,
    /// The page behaviours to call, in order.
    pub behaviors: &'p [Staged],
    /// The visit as page behaviours see it.
    pub visit: &'p Visit,
}

/// The end of an attempt to render a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderResult {
    /// A browser showed the page, or there was nothing to show.
    #[default]
    Shown,
    /// No browser showed the page. The links of the rendered page are unknown.
    NotShown,
}

/// The result of rendering a page.
#[derive(Debug, Default)]
pub struct Rendering {
    /// The end of the attempt.
    pub result: RenderResult,
    /// The document as the browser showed it, in HTML; `None` if it cannot be compared with another rendering.
    pub document: Option<Bytes>,
    /// Links of the rendered page. They may include links of the plain page.
    pub links: Vec<Outlink>,
    /// URIs that the page has requested and that were archived. They need not be fetched again.
    pub archived: HashSet<Uri>,
    /// Annotations for the page's line in `crawl.log`.
    pub annotations: Vec<String>,
    /// Records about the page, such as pictures and text. They are archived only if the page is archived.
    pub records: Vec<Record>,
}

/// The addresses of a host, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Unknown or expired: the host must be looked up first.
    Unknown,
    /// Known; empty if the last look-up found no addresses for the host.
    Known(Vec<IpAddr>),
    /// Not needed: a proxy looks hosts up, or the driver has no network.
    NotNeeded,
}

/// The login that a URI needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginNeed {
    /// The URI needs no login, or the crawl is logged in already.
    Nothing,
    /// This URI must be fetched first.
    First(Uri),
    /// The login of this name was refused.
    Refused(String),
}

/// The answer to a request for robots.txt, redirects followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// The HTTP status or a negative status code, and the body.
    Received(i32, Vec<u8>),
    /// A redirect leads to a server whose queue is busy for longer than this time.
    Busy(Duration),
}

/// The kind of outcome that a visit had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// A response that counts.
    Succeeded,
    /// The URI is retried, or waits for a prerequisite.
    Unfinished,
    /// The URI failed or was disregarded.
    Failed,
}

/// The I/O of a visit. Methods that are named for an event only record that event.
pub trait Driver {
    /// An error that ends the crawl.
    type Error;
    /// A reservation of memory for a document, which is held until this value is dropped.
    type Reservation;

    /// Returns the present time.
    fn now(&self) -> Timestamp;

    /// Records that the visit has reached this step.
    fn step(&self, _step: Step) {}

    /// Runs work that calls plugins and therefore blocks.
    fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Self::Error>>;

    /// Reads a response once memory for its content is free.
    fn read(
        &self,
        task: ReadingTask,
    ) -> impl Future<Output = Result<(Reading, Self::Reservation), Self::Error>>;

    /// Records plugin errors, and applies the consequences that the profile sets for them.
    fn failed(&self, failures: &[Failure]) -> Result<(), Self::Error>;

    /// Returns the state that is kept with the site of the URI.
    fn site_record(&self, uri: &Uri) -> Result<SiteRecord, Self::Error>;

    /// Returns the addresses of a host.
    fn addresses(&self, host: &str) -> Result<Addresses, Self::Error>;

    /// Returns `true` if the URI is the page of a login in progress, or the target of its form.
    fn is_login(&self, _uri: &Uri) -> bool {
        false
    }

    /// Returns the login that the URI needs. The call may begin the login, so it is made only if robots.txt allows the URI.
    fn login_need(&self, _uri: &Uri) -> LoginNeed {
        LoginNeed::Nothing
    }

    /// Returns the rules of a server's robots.txt and their remaining lifetime; `None` if the robots.txt has to be fetched.
    fn robots(&self, uri: &Uri) -> Option<(Arc<Robots>, Duration)>;

    /// Returns the rules of a robots.txt text of the profile, which replaces the server's own.
    fn custom_robots(&self, text: &str) -> Arc<Robots>;

    /// Keeps the answer to a request for robots.txt for at most `lifetime` from `from`. Returns its rules.
    fn keep_robots(
        &self,
        uri: &Uri,
        answer: (i32, Vec<u8>),
        lifetime: Duration,
        from: Timestamp,
    ) -> Result<Arc<Robots>, Self::Error>;

    /// Follows the redirects of a robots.txt that was received with `exchange`.
    fn robots_answer(
        &self,
        exchange: &Arc<Exchange>,
    ) -> impl Future<Output = Result<RobotsAnswer, Self::Error>>;

    /// Sets the `Crawl-delay` of the URI's queue.
    fn set_crawl_delay(&self, delay: Option<Duration>) -> Result<(), Self::Error>;

    /// Returns the login page to fetch, if a response shows that the login has ended.
    fn login_page_to_fetch(&self, _exchange: &Exchange) -> Result<Option<Uri>, Self::Error> {
        Ok(None)
    }

    /// Returns the duration and bytes of an exchange.
    fn transfer(&self, exchange: &Exchange) -> Transfer {
        Transfer {
            duration: exchange.duration,
            bytes: exchange.wire.length(),
        }
    }

    /// Widens the scope, because a seed redirects to `target`.
    fn widen_scope(
        &self,
        seed: &str,
        target: &Uri,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Records that a WARC record will contain the hash of this stack.
    fn used_stack(&self, _stage: Stage, _hash: u64, _stack: &[Staged]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns recent decisions of the scope; `None` if the filters are called each time.
    fn scope_memory(&self) -> Option<&ScopeMemory> {
        None
    }

    /// Returns for each of these links whether it would change nothing in the frontier, so that no filter need be called on it
    /// ([`opilio_frontier::Frontier::changes_nothing`]).
    fn known_links(&self, links: &[&Candidate]) -> Result<Vec<bool>, Self::Error>;

    /// Records the scope's decisions on links.
    fn judged_links<'l>(
        &self,
        _links: impl Iterator<Item = (&'l Uri, &'l ScopeDecision)>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Records that a call of a scope filter on links failed.
    fn scope_fault(&self, _plugin: &Arc<str>) {}

    /// Records references that the crawl cannot follow, and the number of links that were out of scope.
    fn refused_links(
        &self,
        _malformed: &[RefusedLink],
        _out_of_scope: u64,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns the capture that has a payload, if that capture is of another URI.
    fn original(&self, _payload: [u8; 20]) -> Result<Option<EarlierCapture>, Self::Error> {
        Ok(None)
    }

    /// Returns `true` if [`PendingCapture::decisions`] are archived. They cost a call of the scope.
    fn wants_decisions(&self) -> bool {
        true
    }

    /// Writes a capture to the archive.
    fn store(
        &self,
        capture: PendingCapture<'_>,
        keep: CaptureForm,
    ) -> impl Future<Output = Result<StoredCapture, Self::Error>>;

    /// Returns true if there are browsers, so that pages can be rendered.
    fn has_browser(&self) -> bool {
        false
    }

    /// Renders the page in a browser, and archives the requests of the page.
    fn render(
        &self,
        _page: PageToRender<'_>,
    ) -> impl Future<Output = Result<Rendering, Self::Error>> {
        std::future::ready(Ok(Rendering::default()))
    }

    /// Archives the records about a page that was rendered.
    fn store_about_page(
        &self,
        _records: Vec<Record>,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        std::future::ready(Ok(()))
    }

    /// Returns prices and other measures for wait evaluators.
    fn measures(&self) -> Result<BTreeMap<String, f64>, Self::Error>;

    /// Records the decided time from the last visit to the next, after a visit or after a reconsideration.
    fn wait_decided(&self, wait: Duration, is_visit: bool) -> Result<(), Self::Error>;

    /// Records a call of wait evaluators: whether one answered, and the corrections of its answer.
    fn wait_answered(&self, _answered: bool, _corrections: &[WaitCorrection]) {}

    /// Processes a response that belongs to a login, at the end of its visit.
    fn login_received(
        &self,
        _exchange: &Arc<Exchange>,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        std::future::ready(Ok(()))
    }

    /// Writes the log lines of captures, before the outcome is passed to the frontier.
    fn finishing(&self, _outcome: &Outcome, _entry: &LogEntry) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Passes the outcome to the frontier.
    fn finish(&self, outcome: Outcome) -> Result<FinishResult, Self::Error>;

    /// Records that the frontier refused a link of the page.
    fn link_refused(&self, _link: &Uri, _why: &str) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Lowers the precedence value of a waiting URI to `rank`, if that is better.
    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), Self::Error>;

    /// Calls precedence plugins to rank the queue of the visit and the queues `found`, as far as these are due for it.
    fn rank_queues(
        &self,
        found: impl Iterator<Item = String>,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Stores that a host could not be looked up and that no attempts are left.
    fn keep_no_addresses(&self, host: &str, expires: Timestamp) -> Result<(), Self::Error>;

    /// Processes the end of the visit, after the frontier has received the outcome.
    fn finished(
        &self,
        entry: LogEntry,
        kind: OutcomeKind,
        disposition: Disposition,
    ) -> impl Future<Output = Result<(), Self::Error>>;
}
