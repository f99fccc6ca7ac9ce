//! The caller's side of a visit: everything that needs a socket, a store, a clock or a thread.
//!
//! There are two drivers. The crawl answers from servers, the frontier's store and plugin lanes. The simulator answers from a
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
use crate::extraction::{FoundLink, RefusedLink};
use crate::pipeline::LogEntry;
use crate::reading::{Reading, ReadingTask};
use crate::scope::ScopeDecision;
use crate::scope_memory::ScopeMemory;

/// The threads that a piece of work is for.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    /// Work on documents, which may take long.
    Document,
    /// Short questions that a socket may wait for.
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
    /// The word for it in reports and commands.
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
    /// Its plain fetch. The browser gets this response, not another one.
    pub exchange: &'p Arc<Exchange>,
    /// The settings for its media type.
    pub settings: &'p EffectiveSettings,
    /// The behaviours to call on it, in order.
    pub behaviors: &'p [Staged],
    /// The visit as they see it.
    pub visit: &'p Visit,
}

/// The end of an attempt to render a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderResult {
    /// A browser showed the page, or there was nothing to show.
    #[default]
    Shown,
    /// No browser showed the page. Its links are not known.
    NotShown,
}

/// The result of rendering a page.
#[derive(Debug, Default)]
pub struct Rendering {
    /// The end of the attempt.
    pub result: RenderResult,
    /// The document as the browser showed it, as HTML; none if it cannot be compared with another rendering.
    pub document: Option<Bytes>,
    /// Links of the rendered page. Those that the plain page has may be among them.
    pub links: Vec<FoundLink>,
    /// URIs that the page has requested and that were archived. They need not be fetched again.
    pub archived: HashSet<Uri>,
    /// Annotations for the line of the page.
    pub annotations: Vec<String>,
    /// Records about the page, such as pictures and text. They are archived if the page is.
    pub records: Vec<Record>,
}

/// The addresses of a host, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Not known, or no longer: the host must be looked up first.
    Unknown,
    /// Known; empty if the last look-up found that the host has none.
    Known(Vec<IpAddr>),
    /// Not needed: a proxy looks hosts up, or nothing is looked up at all.
    NotNeeded,
}

/// The login that a URI needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginNeed {
    /// None, or it is logged in already.
    Nothing,
    /// This URI must be fetched first.
    First(Uri),
    /// The login of this name was refused.
    Refused(String),
}

/// The answer to a request for robots.txt, redirects followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// HTTP status, or a negative fetch status, and the body.
    Received(i32, Vec<u8>),
    /// A redirect leads to a server that is busy for longer than this.
    Busy(Duration),
}

/// The kind of outcome that a visit had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A response that counts.
    Succeeded,
    /// It was to be tried again, or waits for a prerequisite.
    Unfinished,
    /// It failed or was refused.
    Failed,
}

/// Answers the questions of a visit and does its work. Methods named for an event only take note of it.
pub trait Driver {
    /// An error that ends the crawl.
    type Error;
    /// PluginMemory that is reserved for a document until it is dropped.
    type Reservation;

    /// The time now.
    fn now(&self) -> Timestamp;

    /// The visit has come so far.
    fn step(&self, _step: Step) {}

    /// Runs work that calls plugins and therefore blocks.
    fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Self::Error>>;

    /// Reads a response once there is memory for its content.
    fn read(
        &self,
        task: ReadingTask,
    ) -> impl Future<Output = Result<(Reading, Self::Reservation), Self::Error>>;

    /// Calls of plugins have failed.
    fn failed(&self, failures: &[Failure]) -> Result<(), Self::Error>;

    /// The state kept for the site of the URI.
    fn site_record(&self, uri: &Uri) -> Result<SiteRecord, Self::Error>;

    /// The addresses of a host.
    fn addresses(&self, host: &str) -> Result<Addresses, Self::Error>;

    /// Returns `true` if the URI is the page of a login that is under way, or the target of its form.
    fn is_login(&self, _uri: &Uri) -> bool {
        false
    }

    /// The login that the URI needs. Asking for it may begin the login, so it is asked only if robots.txt allows the URI.
    fn login_need(&self, _uri: &Uri) -> LoginNeed {
        LoginNeed::Nothing
    }

    /// The rules of a server's robots.txt and for how long they hold; none if it has to be fetched.
    fn robots(&self, uri: &Uri) -> Option<(Arc<Robots>, Duration)>;

    /// The rules of a robots.txt that the profile has in place of a server's own.
    fn custom_robots(&self, text: &str) -> Arc<Robots>;

    /// Keeps the answer to a request for robots.txt for at most `lifetime` from `from`. Returns its rules.
    fn keep_robots(
        &self,
        uri: &Uri,
        answer: (i32, Vec<u8>),
        lifetime: Duration,
        from: Timestamp,
    ) -> Result<Arc<Robots>, Self::Error>;

    /// Follows the redirects of a robots.txt, which has come with `exchange`.
    fn robots_answer(
        &self,
        exchange: &Arc<Exchange>,
    ) -> impl Future<Output = Result<RobotsAnswer, Self::Error>>;

    /// Sets the `Crawl-delay` of the URI's queue.
    fn set_crawl_delay(&self, delay: Option<Duration>) -> Result<(), Self::Error>;

    /// Returns the login page to fetch, if a response shows that the login has ended.
    fn turned_away(&self, _exchange: &Exchange) -> Result<Option<Uri>, Self::Error> {
        Ok(None)
    }

    /// Time and bytes of an exchange.
    fn transfer(&self, exchange: &Exchange) -> Transfer {
        Transfer {
            duration: exchange.duration,
            bytes: exchange.wire.length(),
        }
    }

    /// Widens the scope: a seed redirects to `target`.
    fn seed_moved(&self, seed: &str, target: &Uri)
    -> impl Future<Output = Result<(), Self::Error>>;

    /// The stack with this hash is about to be named in a record.
    fn used_stack(&self, _stage: Stage, _hash: u64, _stack: &[Staged]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Decisions of the scope that were made lately; none if the filters are to be asked each time.
    fn scope_memory(&self) -> Option<&ScopeMemory> {
        None
    }

    /// Whether each of these links would change nothing in the frontier, so that no filter need be asked about it
    /// ([`opilio_frontier::Frontier::changes_nothing`]).
    fn known_links(&self, links: &[&Candidate]) -> Result<Vec<bool>, Self::Error>;

    /// The scope has decided on links.
    fn judged_links<'l>(
        &self,
        _links: impl Iterator<Item = (&'l Uri, &'l ScopeDecision)>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A filter of the scope could not be asked about links.
    fn scope_fault(&self, _plugin: &Arc<str>) {}

    /// References that the crawl cannot follow, and how many links were out of scope.
    fn refused_links(
        &self,
        _malformed: &[RefusedLink],
        _out_of_scope: u64,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The capture that has a payload, if another URI brought it.
    fn original(&self, _payload: [u8; 20]) -> Result<Option<EarlierCapture>, Self::Error> {
        Ok(None)
    }

    /// Returns `true` if [`PendingCapture::decisions`] are wanted. They cost a call of the scope.
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

    /// Renders the page in a browser, and archives its requests.
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

    /// Prices and other measures for wait evaluators.
    fn measures(&self) -> Result<BTreeMap<String, f64>, Self::Error>;

    /// The time from the last visit to the next has been decided, after a visit or without one.
    fn wait_decided(&self, wait: Duration, is_visit: bool) -> Result<(), Self::Error>;

    /// A wait evaluator was asked: whether it answered, and what the answer was corrected for.
    fn wait_answered(&self, _answered: bool, _corrections: &[WaitCorrection]) {}

    /// The response belongs to a login, and its visit is over.
    fn login_received(
        &self,
        _exchange: &Arc<Exchange>,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        std::future::ready(Ok(()))
    }

    /// The visit is about to be handed to the frontier. Lines of captures are written now.
    fn finishing(&self, _outcome: &Outcome, _entry: &LogEntry) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Hands the outcome to the frontier.
    fn finish(&self, outcome: Outcome) -> Result<FinishResult, Self::Error>;

    /// The frontier refused a link of the page.
    fn link_refused(&self, _link: &Uri, _why: &str) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Lowers the precedence value of a waiting URI to `rank`, if that is better.
    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), Self::Error>;

    /// Has precedence plugins rank the queue of the visit and those of `found`, as far as they are due.
    fn rank_queues(
        &self,
        found: impl Iterator<Item = String>,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Keeps that a host could not be looked up: the attempts are used up.
    fn keep_no_addresses(&self, host: &str, expires: Timestamp) -> Result<(), Self::Error>;

    /// The frontier has the outcome.
    fn finished(
        &self,
        entry: LogEntry,
        ending: Ending,
        disposition: Disposition,
    ) -> impl Future<Output = Result<(), Self::Error>>;
}
