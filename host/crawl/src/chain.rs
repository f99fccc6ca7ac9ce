//! The way of one URI: preconditions, fetch, digest, extraction, scope, archive, wait.
//!
//! Whatever happens on the way, the URI goes back to the frontier with an outcome; what cannot be gone on with (a full
//! disk, a broken store, a scope filter that keeps failing) halts the crawl instead, and the URI is found in process
//! at the next start and put back in its queue.

mod consideration;
mod decisions;
mod exchange;
mod keeping;
mod outlinks;
mod preconditions;
mod settlement;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::Location;
use opilio_fetch::Exchange;
use opilio_fetch::ResponseHead;
use opilio_frontier::{
    ContentState, Disposition, Issue, Outcome, Place, Scheduled, Transfer, UNTIL_CHANGED,
    UriRecord, WarcLocation,
};
use opilio_profile::Settings;
use opilio_sandbox::{Document, Finished, NamedValue};
use opilio_uri::{Hop, Uri};
use tracing::Instrument as _;

use crate::context::{Context, Halt};
use crate::control::{Flight, Step};
use crate::crawl_log::{ExtraInfo, LogLine};
use crate::records;
use opilio_stacks::Stacks;
use opilio_visit::found;
use opilio_visit::standing::{self, Memory};
use opilio_visit::status;

use self::preconditions::Precondition;

/// Queues rest for less, whatever a profile or a server says.
const REST_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a turn came to: the outcome for the frontier, and what the log says.
struct Turn {
    outcome: Outcome,
    entry: Entry,
}

/// The part of a log line that a turn decides.
#[derive(Default)]
struct Entry {
    status: i32,
    size: Option<u64>,
    media_type: Option<String>,
    fetch: Option<(Timestamp, Duration)>,
    digest: Option<String>,
    annotations: Vec<String>,
    extra: ExtraInfo,
    /// What observers are told besides.
    state: ContentState,
    notes: BTreeMap<String, String>,
    /// What plugins have ranked its outlinks, in order.
    ranks: Vec<Option<u8>>,
}

/// One issued URI on its way.
pub(crate) struct Chain<'a> {
    context: &'a Arc<Context>,
    issue: &'a Issue,
    flight: &'a Flight,
    settings: Arc<Settings>,
    /// The plugins in force when the visit began. It ends with these, whatever is replaced meanwhile.
    in_force: Arc<Stacks>,
    stacks: Arc<Stacks>,
    started: Timestamp,
}

impl<'a> Chain<'a> {
    /// A URI as the frontier issued it.
    pub(crate) fn new(
        context: &'a Arc<Context>,
        issue: &'a Issue,
        flight: &'a Flight,
    ) -> Chain<'a> {
        let started = records::to_millisecond(Timestamp::now());
        let profile = context.current();
        let settings = profile.effective_with(&opilio_profile::Context {
            source: issue.record.source.as_deref(),
            now: Some(started),
            ..opilio_profile::Context::of(&issue.uri)
        });
        let in_force = context.stacks();
        Chain {
            context,
            issue,
            flight,
            stacks: in_force.selected(&settings, profile.settings()),
            in_force,
            settings,
            started,
        }
    }

    /// Takes the URI all the way and hands it back to the frontier.
    pub(crate) async fn run(&self, worker: usize) -> Result<(), Halt> {
        let record = &self.issue.record;
        let span = tracing::info_span!(
            parent: None,
            "uri",
            url.full = self.issue.uri.as_str(),
            opilio.queue = self.issue.queue.as_str(),
            opilio.hop_path = record.hop_path.as_str(),
            opilio.via = record.via.as_deref(),
            opilio.attempts = record.attempts,
            opilio.status = tracing::field::Empty,
            opilio.size = tracing::field::Empty,
            opilio.annotations = tracing::field::Empty,
        );
        self.turn(worker).instrument(span).await
    }

    async fn turn(&self, worker: usize) -> Result<(), Halt> {
        if self.issue.visit_after.is_some() {
            return self.consider().await;
        }
        let turn = match (&self.issue.over_quota, self.issue.uri.scheme()) {
            (Some(over), _) => {
                let annotation = format!("quota:{}:{}", over.kind.name(), over.limit);
                let status = match over.limit {
                    "run-time" => status::RUN_TIME,
                    _ => status::QUOTA,
                };
                Turn::postponed(status, annotation)
            }
            (None, "dns") => self.look_up().await?,
            (None, _) => match self.visit().await {
                Err(Halt::Lane(panic)) if self.context.counters.survives_panic() => {
                    tracing::error!(uri = %self.issue.uri, "{panic}; please report it");
                    Turn::failed(status::SERIOUS_ERROR, format!("err={panic}"))
                }
                visited => visited?,
            },
        };
        self.conclude(worker, turn).await
    }

    async fn conclude(&self, worker: usize, turn: Turn) -> Result<(), Halt> {
        self.flight.step(Step::Finish);
        let Turn { outcome, mut entry } = turn;
        let retried = matches!(outcome, Outcome::Retry { .. });
        let deferred = matches!(outcome, Outcome::Deferred { .. });
        let succeeded = matches!(outcome, Outcome::Succeeded(_));
        let is_lost = matches!(
            outcome,
            Outcome::Failed { .. } | Outcome::Disregarded { .. } | Outcome::OutOfScope { .. }
        );
        if is_lost {
            self.login_lost()?;
        }
        let (state, notes) = (entry.state, std::mem::take(&mut entry.notes));
        let ranks = std::mem::take(&mut entry.ranks);
        let is_archived = entry.extra.file.is_some();
        let mut line = self.line(worker, entry);
        if succeeded || is_archived {
            // Before the frontier knows: a crash in between writes the line twice rather than never.
            self.context.logs.crawl(&line)?;
        }
        let outlinks: Vec<(Uri, String)> = match &outcome {
            Outcome::Succeeded(success) => {
                let links = success.outlinks.iter();
                let links = links.map(|link| (link.uri.clone(), link.queue.clone()));
                links.collect()
            }
            _ => Vec::new(),
        };
        let finished = tracing::info_span!("settle").in_scope(|| {
            let mut frontier = self.context.frontier();
            frontier.finished(self.issue.ticket, outcome, Timestamp::now())
        })?;
        for ((link, _), scheduled) in outlinks.iter().zip(&finished.scheduled) {
            if let Scheduled::Refused(why) = scheduled {
                let (page, link) = (self.issue.uri.as_str(), link.as_str());
                self.context.logs.uri_error(page, link, why)?;
            }
        }
        for (((link, _), scheduled), rank) in outlinks.iter().zip(&finished.scheduled).zip(ranks) {
            if let (Scheduled::Known, Some(rank)) = (scheduled, rank) {
                self.raise(link, rank)?;
            }
        }
        self.rank_queues(outlinks.into_iter().map(|(_, queue)| queue))
            .await?;
        match finished.disposition {
            Disposition::GivenUp { status, tries, .. } => {
                line.status = status;
                line.annotations.push(format!("{tries}t"));
                self.given_up(status, finished.queue_ready)?;
                self.context.logs.crawl(&line)?;
            }
            Disposition::Retrying { attempts } => self.context.logs.nonfatal(&line, attempts)?,
            Disposition::Deferred => {}
            _ if !succeeded && !is_archived && !retried && !deferred => {
                self.context.logs.crawl(&line)?;
            }
            _ => {}
        }
        let span = tracing::Span::current();
        if !span.is_disabled() {
            span.record("opilio.status", line.status);
            span.record("opilio.size", line.size);
            span.record("opilio.annotations", line.annotations.join(","));
        }
        let document = succeeded && self.issue.uri.scheme() != "dns" && !self.is_prerequisite();
        self.context.finished(&self.issue.queue, &line, document);
        let comes_again = matches!(
            finished.disposition,
            Disposition::Retrying { .. } | Disposition::Deferred
        );
        if !comes_again && !self.context.observers.is_empty() {
            let event = self.event(line, state, notes);
            self.context.observers.tell(event).await;
        }
        Ok(())
    }

    /// A prerequisite that was tried as often as the profile wants: those that wait for it must learn of it. They come when
    /// their queue has rested, which it does for longer than what is known would hold. Once the first of them is probed again,
    /// it is asked for anew.
    fn given_up(&self, status: i32, queue_ready: Timestamp) -> Result<(), Halt> {
        self.login_lost()?;
        let (uri, now) = (&self.issue.uri, Timestamp::now());
        let now = queue_ready.clamp(now, now + REST_MAX);
        let probed_after = self.settings.revisit.min_wait;
        let context = self.context;
        if uri.scheme() == "dns" {
            let host = uri.path();
            let profile = context.current();
            let expires = now + profile.dns.negative_expires.min(probed_after);
            let servers = &context.servers;
            servers.keep_addresses(&context.frontier, host, &profile.dns, Vec::new(), expires)?;
        } else if self.is_robots() {
            let lifetime = self.settings.robots.expires.min(probed_after);
            context.servers.keep_robots(
                &context.frontier,
                uri,
                (status, Vec::new()),
                lifetime,
                now,
            )?;
        }
        Ok(())
    }

    /// What observers are told.
    fn event(
        &self,
        line: LogLine,
        state: ContentState,
        notes: BTreeMap<String, String>,
    ) -> Finished {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Finished {
            at: u64::try_from(self.started.as_millisecond()).unwrap_or(0),
            uri: line.uri,
            status: line.status,
            media_type: line.media_type.unwrap_or_default(),
            size: line.size,
            took: line.fetch.map(|(_, took)| milliseconds(took)),
            state: standing::plugin_state(state),
            hop_path: line.hop_path,
            via: line.via,
            source: line.source,
            queue: self.issue.queue.clone(),
            digest: line.digest,
            annotations: line.annotations,
            attributes: notes
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
        }
    }

    /// Has plugins rank the queues that have a part in this, as far as they are due to be ranked.
    async fn rank_queues(&self, found: impl Iterator<Item = String>) -> Result<(), Halt> {
        let context = self.context;
        if context.stacks().precedence.is_empty() {
            return Ok(());
        }
        let mut queues: BTreeSet<String> = found
            .filter(|queue| context.turns.is_due_when_found(queue))
            .collect();
        if context.turns.is_due_after_turn(&self.issue.queue) {
            queues.insert(self.issue.queue.clone());
        }
        context.rank_queues(queues).await
    }

    /// A page links again to what waits already: it goes by the better of the two precedences. Being linked from a page of
    /// less worth says nothing against it.
    fn raise(&self, uri: &Uri, rank: u8) -> Result<(), Halt> {
        let mut frontier = self.context.frontier();
        let record = frontier.record(uri)?;
        let waits = |record: &UriRecord| {
            matches!(record.place, Place::Queued { .. }) && record.precedence > rank
        };
        if record.is_some_and(|record| waits(&record)) {
            // Not where it is just being fetched, when it matters no more.
            frontier.set_precedence(uri, rank, Timestamp::now())?;
        }
        Ok(())
    }

    fn line(&self, worker: usize, entry: Entry) -> LogLine {
        let record = &self.issue.record;
        LogLine {
            logged: Timestamp::now(),
            status: entry.status,
            size: entry.size,
            uri: self.issue.uri.as_str().to_owned(),
            hop_path: record.hop_path.as_str().to_owned(),
            via: record.via.clone(),
            media_type: entry.media_type,
            worker,
            fetch: entry.fetch,
            digest: entry.digest,
            source: record.source.clone(),
            annotations: entry.annotations,
            extra: self.context.profile.logs.extra_info.then_some(entry.extra),
        }
    }

    async fn visit(&self) -> Result<Turn, Halt> {
        if let Some(turn) = self.still_in_scope().await? {
            return Ok(turn);
        }
        let leave = match self.preconditions()? {
            Precondition::Met(leave) => leave,
            Precondition::Settled(turn) => return Ok(*turn),
        };
        if leave.part.is_none()
            && let Some(turn) = self.pre_fetch(&leave.addresses).await?
        {
            return Ok(turn);
        }
        let memory = self.memory()?;
        self.flight.step(Step::Fetch);
        let fetch = self.fetch(&self.issue.uri, &leave, &memory);
        let Some(fetched) = self.flight.unless_cancelled(fetch).await else {
            return Ok(self.cancelled());
        };
        self.flight.step(Step::Read);
        let (mut exchange, mid_fetch) = fetched?;
        exchange.annotations.extend(leave.remarks.iter().cloned());
        self.context.failures(&mid_fetch.failures)?;
        let (exchange, header_verdict) = (Arc::new(exchange), mid_fetch.verdict);
        if self.is_robots()
            && let Some(turn) = self.robots(&exchange).await?
        {
            return Ok(turn);
        }
        if let Some(turn) = self.turned_away(&exchange, &leave)? {
            return Ok(turn);
        }
        if let Some(turn) = self.unusable(&exchange, header_verdict.as_ref()).await? {
            return Ok(turn);
        }
        let turn = self
            .settle(exchange.clone(), header_verdict, memory)
            .await?;
        if let Some(part) = &leave.part {
            self.login_came(&exchange, part).await?;
        }
        Ok(turn)
    }

    /// What plugins have kept with the URI and its site.
    fn memory(&self) -> Result<Memory, Halt> {
        let site = self.context.frontier().site_values(&self.issue.uri)?;
        Ok(Memory::new(&self.issue.record.kept, &site))
    }

    /// The operator has broken the fetch off. What had come of it is not archived.
    fn cancelled(&self) -> Turn {
        let duration = self.elapsed();
        let sent = Transfer { duration, bytes: 0 };
        Turn {
            outcome: Outcome::Failed {
                status: status::CANCELLED,
                transfer: Some(sent),
            },
            entry: Entry {
                fetch: Some((self.started, duration)),
                ..Entry::of(status::CANCELLED, "cancelled".to_owned())
            },
        }
    }

    /// Settings that hold now for a URI of the same source.
    fn settings_for(&self, uri: &Uri, media_type: Option<&str>) -> Arc<Settings> {
        let current = self.context.current();
        current.effective_with(&opilio_profile::Context {
            source: self.issue.record.source.as_deref(),
            now: Some(self.started),
            media_type,
            uri,
        })
    }

    /// Settings and plugins for a response of this type.
    fn for_response(&self, media_type: &str) -> (Arc<Settings>, Arc<Stacks>) {
        let settings = self.settings_for(&self.issue.uri, Some(media_type));
        let stacks = self.stacks_of(&settings);
        (settings, stacks)
    }

    /// The plugins for what these settings hold for.
    fn stacks_of(&self, settings: &Settings) -> Arc<Stacks> {
        self.in_force
            .selected(settings, self.context.current().settings())
    }

    /// Whose share of the lanes it uses: that of its registrable domain, or of its queue where it has none.
    fn site(&self) -> &str {
        let domain = self.issue.uri.registrable_domain();
        domain.unwrap_or(&self.issue.queue)
    }

    fn is_prerequisite(&self) -> bool {
        self.issue.record.hop_path.last() == Some(Hop::Prerequisite)
    }

    /// By its URI alone: a link may lead to a robots.txt as well, and it is the same document however it was found.
    fn is_robots(&self) -> bool {
        self.issue.uri.robots_txt().as_ref() == Some(&self.issue.uri)
    }

    /// What relative references resolve against, until an extractor reports a base. A script's strings are resolved by
    /// the page that runs it, so an external script resolves against the page it was found on.
    fn base(&self, head: &ResponseHead) -> String {
        let media_type = head.media_type().unwrap_or_default();
        let script = media_type.ends_with("javascript") || media_type.ends_with("ecmascript");
        let page = self.issue.record.via.as_ref().filter(|_| script);
        page.map_or_else(|| self.issue.uri.as_str().to_owned(), Clone::clone)
    }

    fn document(
        &self,
        head: &ResponseHead,
        content: Bytes,
        charset: Option<&'static encoding_rs::Encoding>,
        memory: &Memory,
    ) -> Document {
        found::document(
            self.issue.uri.as_str(),
            &self.base(head),
            head,
            content,
            charset,
            memory,
        )
    }

    fn location(&self, location: Location, date: Timestamp) -> WarcLocation {
        WarcLocation {
            file: location.file,
            offset: location.offset,
            record_id: location.record_id.to_string(),
            date,
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(Timestamp::now() - self.started).unwrap_or_default()
    }
}

impl Turn {
    /// Cannot be fetched, and no request was sent.
    fn failed(status: i32, annotation: String) -> Turn {
        Turn {
            outcome: Outcome::Failed {
                status,
                transfer: None,
            },
            entry: Entry::of(status, annotation),
        }
    }

    /// Refused, and no request was sent.
    fn disregarded(status: i32, annotation: String) -> Turn {
        Turn {
            outcome: disregarded(status, annotation.clone(), None),
            entry: Entry::of(status, annotation),
        }
    }

    /// Not fetched for a reason that may be gone at any time, and no request was sent.
    fn postponed(status: i32, annotation: String) -> Turn {
        Turn {
            outcome: Outcome::Disregarded {
                status,
                reason: annotation.clone(),
                wait: None,
                transfer: None,
            },
            entry: Entry::of(status, annotation),
        }
    }

    /// The server cannot be had, for this URI as for others.
    fn retry(status: i32, after: Option<Duration>, transfer: Option<Transfer>) -> Turn {
        Turn {
            outcome: Outcome::Retry {
                status,
                queue_after: 1,
                after,
                transfer,
            },
            entry: Entry::of(status, String::new()),
        }
    }
}

impl Entry {
    fn of(status: i32, annotation: String) -> Entry {
        let annotations = if annotation.is_empty() {
            Vec::new()
        } else {
            vec![annotation]
        };
        Entry {
            status,
            annotations,
            ..Entry::default()
        }
    }
}

/// What an exchange cost.
fn transfer(exchange: &Exchange) -> Transfer {
    Transfer {
        duration: exchange.duration,
        bytes: exchange.wire.length(),
    }
}

/// Refused, until somebody changes what refused it.
fn disregarded(status: i32, reason: String, transfer: Option<Transfer>) -> Outcome {
    Outcome::Disregarded {
        status,
        reason,
        wait: Some(UNTIL_CHANGED),
        transfer,
    }
}
