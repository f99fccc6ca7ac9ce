//! The way of one URI: preconditions, fetch, digest, extraction, scope, archive, wait.
//!
//! Whatever happens on the way, the URI goes back to the frontier with an outcome; what cannot be gone on with (a full
//! disk, a broken store, a scope filter that keeps failing) halts the crawl instead, and the URI is found in process
//! at the next start and put back in its queue.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_archive::Location;
use opilio_fetch::robots::{
    ROBOTS_BYTES_MAX, ROBOTS_REDIRECTS_MAX, Reason, Verdict as RobotsVerdict,
};
use opilio_fetch::{Exchange, FetchFailure, HeadVerdict, Request, ResponseHead};
use opilio_frontier::{
    Candidate, ContentState, Digests, Directive, Disposition, Issue, Outcome, Scheduled, Success,
    Validators, Visit, WarcLocation,
};
use opilio_profile::{RobotsPolicy, Settings, StrippedEqual};
use opilio_sandbox::{Document, Notes, Stage, Verdict};
use opilio_uri::{Hop, Uri};

use crate::context::{Context, Halt};
use crate::crawl_log::{LogLine, revisit_annotations};
use crate::extraction::FoundLink;
use crate::lanes::Lane;
use crate::records::{self, About, Keep, Previous};
use crate::scope;
use crate::stacks::Stacks;
use crate::{found, standing};

/// How long a name without address counts as such.
const NO_ADDRESS: Duration = Duration::from_secs(3600);

/// Fetch statuses of the glossary that this module gives.
mod status {
    pub(super) const DNS_OK: i32 = 1;
    pub(super) const RUNTIME: i32 = -5;
    pub(super) const NO_ADDRESS: i32 = -6;
    pub(super) const UNFETCHABLE: i32 = -7;
    pub(super) const ROBOTS_FAILED: i32 = -61;
    pub(super) const BLOCKED: i32 = -5001;
    pub(super) const ROBOTS: i32 = -9998;
}

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
}

/// One issued URI on its way.
pub(crate) struct Chain<'a> {
    context: &'a Arc<Context>,
    issue: &'a Issue,
    settings: Arc<Settings>,
    stacks: Arc<Stacks>,
    started: Timestamp,
}

impl<'a> Chain<'a> {
    /// A URI as the frontier issued it.
    pub(crate) fn new(context: &'a Arc<Context>, issue: &'a Issue) -> Chain<'a> {
        Chain {
            context,
            issue,
            settings: context.profile.effective(&issue.uri),
            stacks: context.stacks(),
            started: records::to_millisecond(Timestamp::now()),
        }
    }

    /// Takes the URI all the way and hands it back to the frontier.
    pub(crate) async fn run(&self, worker: usize) -> Result<(), Halt> {
        let turn = match self.issue.uri.scheme() {
            "dns" => self.look_up().await?,
            "http" | "https" => self.visit().await?,
            scheme => Turn::failed(status::UNFETCHABLE, format!("scheme:{scheme}")),
        };
        self.conclude(worker, turn)
    }

    fn conclude(&self, worker: usize, turn: Turn) -> Result<(), Halt> {
        let Turn { outcome, entry } = turn;
        let retried = matches!(outcome, Outcome::Retry { .. });
        let deferred = matches!(outcome, Outcome::Deferred { .. });
        let succeeded = matches!(outcome, Outcome::Succeeded(_));
        let mut line = self.line(worker, entry);
        if succeeded {
            // Before the frontier knows: a crash in between writes the line twice rather than never.
            self.context.logs.crawl(&line)?;
        }
        let outlinks = match &outcome {
            Outcome::Succeeded(success) => success
                .outlinks
                .iter()
                .map(|link| link.uri.clone())
                .collect(),
            _ => Vec::new(),
        };
        let finished =
            self.context
                .frontier()
                .finished(self.issue.ticket, outcome, Timestamp::now())?;
        for (uri, scheduled) in outlinks.iter().zip(&finished.scheduled) {
            if let Scheduled::Refused(why) = scheduled {
                self.context
                    .logs
                    .uri_error(self.issue.uri.as_str(), uri.as_str(), why)?;
            }
        }
        match finished.disposition {
            Disposition::GivenUp { status, tries, .. } => {
                line.status = status;
                line.annotations.push(format!("{tries}t"));
                self.given_up(status)?;
                self.context.logs.crawl(&line)?;
            }
            Disposition::Retrying { attempts } => self.context.logs.nonfatal(&line, attempts)?,
            Disposition::Deferred => {}
            _ if !succeeded && !retried && !deferred => self.context.logs.crawl(&line)?,
            _ => {}
        }
        let document = succeeded && self.issue.uri.is_http() && !self.is_prerequisite();
        self.context.finished(&self.issue.queue, &line, document);
        Ok(())
    }

    /// A prerequisite that was tried as often as the profile wants: those that wait for it must learn of it.
    fn given_up(&self, status: i32) -> Result<(), Halt> {
        let (uri, now) = (&self.issue.uri, Timestamp::now());
        let context = self.context;
        if uri.scheme() == "dns" {
            let host = uri.path();
            context.servers.keep_addresses(
                &context.frontier,
                host,
                Vec::new(),
                now + NO_ADDRESS,
            )?;
        } else if self.is_robots() {
            let lifetime = self.settings.robots.expires;
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
        }
    }

    // ---- DNS ----

    async fn look_up(&self) -> Result<Turn, Halt> {
        let context = self.context;
        let host = self.issue.uri.path();
        match context.fetcher.resolve(host, self.started).await {
            Ok(resolution) => {
                let dns = &context.profile.dns;
                let good_for = resolution.ttl.clamp(dns.min_expires, dns.max_expires);
                let record = records::of_resolution(&self.issue.uri, &resolution, self.started);
                let location = context.archive(vec![record]).await?.into_iter().next();
                let addresses = resolution.addresses;
                context.servers.keep_addresses(
                    &context.frontier,
                    host,
                    addresses,
                    self.started + good_for,
                )?;
                let payload = opilio_fetch::PayloadDigest::of(resolution.text.as_bytes());
                let size = resolution.text.len() as u64;
                let visit = Visit {
                    status: status::DNS_OK,
                    state: ContentState::New,
                    size: Some(size),
                    media_type: "text/dns".to_owned(),
                    digests: Some(Digests {
                        payload: Some(payload.0),
                        stripped: None,
                    }),
                    archived: location.map(|location| self.location(location, self.started)),
                    ..Visit::default()
                };
                Ok(Turn {
                    outcome: Outcome::Succeeded(Box::new(Success {
                        visit,
                        ..Success::default()
                    })),
                    entry: Entry {
                        status: status::DNS_OK,
                        size: Some(size),
                        media_type: Some("text/dns".to_owned()),
                        fetch: Some((self.started, self.elapsed())),
                        digest: Some(payload.to_string()),
                        annotations: Vec::new(),
                    },
                })
            }
            Err(failure @ FetchFailure::NoAddress { .. }) => {
                let expires = Timestamp::now() + NO_ADDRESS;
                context
                    .servers
                    .keep_addresses(&context.frontier, host, Vec::new(), expires)?;
                Ok(Turn::failed(failure.status(), String::new()))
            }
            Err(failure) => Ok(Turn::retry(failure.status(), None, None)),
        }
    }

    // ---- HTTP ----

    async fn visit(&self) -> Result<Turn, Halt> {
        let addresses = match self.preconditions()? {
            Precondition::Met(addresses) => addresses,
            Precondition::Settled(turn) => return Ok(turn),
        };
        if let Some(turn) = self.pre_fetch(&addresses).await? {
            return Ok(turn);
        }
        let notes = Notes::new();
        let (exchange, header_verdict) = self.fetch(&self.issue.uri, addresses, &notes).await;
        let exchange = Arc::new(exchange);
        if self.is_robots()
            && let Some(turn) = self.robots(&exchange).await?
        {
            return Ok(turn);
        }
        if let Some(turn) = self.unusable(&exchange, header_verdict.as_ref()).await? {
            return Ok(turn);
        }
        self.settle(exchange, header_verdict, notes).await
    }

    /// DNS and robots.txt, known and still good; or what to do about it.
    fn preconditions(&self) -> Result<Precondition, Halt> {
        let context = self.context;
        let uri = &self.issue.uri;
        let Some(host) = uri.host() else {
            return Ok(Precondition::Settled(Turn::failed(
                status::UNFETCHABLE,
                String::new(),
            )));
        };
        let Some(known) = context
            .servers
            .addresses(&context.frontier, host, self.started)
        else {
            return Ok(Precondition::Settled(self.deferred(Uri::dns(host))));
        };
        if known.addresses.is_empty() {
            return Ok(Precondition::Settled(Turn::failed(
                status::NO_ADDRESS,
                String::new(),
            )));
        }
        if self.is_robots() {
            return Ok(Precondition::Met(known.addresses));
        }
        let Some(robots) = context.servers.robots(&context.frontier, uri, self.started) else {
            return Ok(Precondition::Settled(match uri.robots_txt() {
                Some(robots) => self.deferred(robots),
                None => Turn::failed(status::UNFETCHABLE, String::new()),
            }));
        };
        if self.settings.robots.policy == RobotsPolicy::Ignore {
            return Ok(Precondition::Met(known.addresses));
        }
        Ok(
            match robots.verdict(&context.profile.user_agent, uri.path_and_query()) {
                RobotsVerdict::Allowed(_) => Precondition::Met(known.addresses),
                // An address that may not be connected to, for robots.txt as for anything else of its host.
                RobotsVerdict::Refused(Reason::Unreachable(status::BLOCKED)) => {
                    Precondition::Settled(Turn::disregarded(status::BLOCKED, String::new()))
                }
                RobotsVerdict::Refused(Reason::Unreachable(_)) => {
                    Precondition::Settled(Turn::failed(status::ROBOTS_FAILED, String::new()))
                }
                RobotsVerdict::Refused(_) => Precondition::Settled(Turn::disregarded(
                    status::ROBOTS,
                    "robotExcluded".to_owned(),
                )),
            },
        )
    }

    fn is_prerequisite(&self) -> bool {
        self.issue.record.hop_path.last() == Some(Hop::Prerequisite)
    }

    /// By its URI alone: a link may lead to a robots.txt as well, and it is the same document however it was found.
    fn is_robots(&self) -> bool {
        self.issue.uri.robots_txt().as_ref() == Some(&self.issue.uri)
    }

    fn deferred(&self, prerequisite: Uri) -> Turn {
        let record = &self.issue.record;
        let candidate = Candidate {
            queue: self.issue.queue.clone(),
            via: Some(self.issue.uri.as_str().to_owned()),
            source: record.source.clone(),
            directive: Directive::Highest,
            force: true,
            ..Candidate::new(
                prerequisite,
                record.hop_path.then(Hop::Prerequisite),
                opilio_frontier::Strategy::Snapshot,
            )
        };
        Turn {
            outcome: Outcome::Deferred {
                prerequisites: vec![candidate],
            },
            entry: Entry::default(),
        }
    }

    async fn pre_fetch(&self, addresses: &[IpAddr]) -> Result<Option<Turn>, Halt> {
        if self.stacks.pre_fetch.is_empty() || self.is_prerequisite() {
            return Ok(None);
        }
        let mut candidate = standing::candidate(&self.issue.uri, &self.issue.record);
        candidate.address = addresses.first().map(ToString::to_string);
        let stacks = self.stacks.clone();
        let judged = self
            .context
            .lanes
            .run(Lane::Header, move || {
                scope::judge(&stacks.pre_fetch, &Stage::PreFetch, &[candidate], true)
            })
            .await?;
        let failed = !judged.faults.is_empty();
        self.context.faults(&judged.faults)?;
        Ok(judged
            .decisions
            .into_iter()
            .next()
            .filter(|decision| !decision.accepted)
            .map(|decision| {
                let status = if failed {
                    status::RUNTIME
                } else {
                    status::BLOCKED
                };
                Turn::disregarded(status, decision.because())
            }))
    }

    /// One exchange, mid-fetch filters included.
    async fn fetch(
        &self,
        uri: &Uri,
        addresses: Vec<IpAddr>,
        notes: &Notes,
    ) -> (Exchange, Option<HeaderVerdict>) {
        let settings = &self.settings.fetch;
        let record = &self.issue.record;
        let same = uri == &self.issue.uri;
        // A page that is to be extracted again, because extractors have changed or failed, must come with its body.
        let extracted = record.extractor == Some(self.stacks.extract_hash);
        let conditional = same && settings.conditional && record.archived.is_some() && extracted;
        // Nobody follows a link to robots.txt.
        let followed = same && !self.is_prerequisite();
        let referer = record
            .via
            .as_deref()
            .filter(|_| settings.referer && followed);
        let request = Request {
            uri: uri.clone(),
            addresses,
            referer: referer
                .and_then(|via| Uri::parse(via).ok())
                .filter(Uri::is_http),
            if_none_match: record.validators.etag.clone().filter(|_| conditional),
            if_modified_since: record
                .validators
                .last_modified
                .clone()
                .filter(|_| conditional),
            headers: Vec::new(),
            body: None,
        };
        let verdict = Mutex::new(None);
        let exchange = self
            .context
            .fetcher
            .http(request, async |head: &ResponseHead| {
                if !same || self.stacks.mid_fetch.is_empty() {
                    return HeadVerdict::Continue;
                }
                let asked = self.mid_fetch(head, notes).await;
                let answer = match &asked {
                    None => HeadVerdict::Continue,
                    Some(verdict) => HeadVerdict::Abort {
                        reason: verdict.reason().to_owned(),
                    },
                };
                *verdict.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                answer
            })
            .await;
        (
            exchange,
            verdict.into_inner().unwrap_or_else(PoisonError::into_inner),
        )
    }

    async fn mid_fetch(&self, head: &ResponseHead, notes: &Notes) -> Option<HeaderVerdict> {
        let document = self.document(head, Bytes::new(), None, notes);
        let visit = standing::visit(
            self.issue,
            self.started,
            i32::from(head.status),
            head.media_type(),
        );
        let stacks = self.stacks.clone();
        let judged = self
            .context
            .lanes
            .run(Lane::Header, move || {
                found::judge_document(&stacks.mid_fetch, &Stage::MidFetch, &document, &visit)
            })
            .await;
        let judged = match judged {
            Ok(judged) => judged,
            Err(panic) => {
                tracing::error!(uri = %self.issue.uri, "{panic}");
                return None;
            }
        };
        if let Err(halt) = self.context.faults(&judged.faults) {
            tracing::error!("{halt}");
        }
        match judged.verdict {
            Verdict::Reject => Some(HeaderVerdict::Rejected(judged.reason)),
            // What has never been archived cannot be unchanged, whatever a filter says.
            Verdict::Unchanged if self.issue.record.archived.is_some() => {
                Some(HeaderVerdict::Unchanged(judged.reason))
            }
            _ => None,
        }
    }

    /// robots.txt has come, or has not. None: it is archived like any other response, its word is kept.
    async fn robots(&self, exchange: &Arc<Exchange>) -> Result<Option<Turn>, Halt> {
        let context = self.context;
        let mut answer = robots_answer(exchange);
        let mut at = self.issue.uri.clone();
        let mut redirect = redirect_of(&at, exchange);
        for _ in 0..ROBOTS_REDIRECTS_MAX {
            let Some(target) = redirect.take() else { break };
            let Some(addresses) = self.addresses_now(&target).await? else {
                break;
            };
            let (next, _) = self.fetch(&target, addresses, &Notes::new()).await;
            let about = About {
                via: Some(at.as_str()),
                hop_path: self.issue.record.hop_path.as_str(),
                ..About::default()
            };
            context
                .archive(records::of_exchange(
                    &target,
                    &next,
                    &Keep::Response,
                    &about,
                ))
                .await?;
            answer = robots_answer(&next);
            redirect = redirect_of(&target, &next);
            at = target;
        }
        let unreachable = !(200..500).contains(&answer.0);
        // What the profile forbids is forbidden the next time as well.
        let refused = answer.0 == status::BLOCKED;
        if unreachable && !refused && self.attempts_left() {
            // One bad moment of the server must not close the site: asked again, as often as the profile wants.
            return Ok(Some(Turn::retry(
                answer.0,
                retry_after(exchange),
                Some(exchange.duration),
            )));
        }
        let lifetime = self.settings.robots.expires;
        let robots = context.servers.keep_robots(
            &context.frontier,
            &self.issue.uri,
            answer,
            lifetime,
            Timestamp::now(),
        )?;
        let delay = robots
            .crawl_delay(&context.profile.user_agent)
            .filter(|delay| !delay.is_zero());
        context
            .frontier()
            .set_crawl_delay(&self.issue.queue, delay)?;
        Ok(None)
    }

    /// Addresses of another host, looked up at once and archived where they are not known.
    async fn addresses_now(&self, uri: &Uri) -> Result<Option<Vec<IpAddr>>, Halt> {
        let context = self.context;
        let Some(host) = uri.host() else {
            return Ok(None);
        };
        let now = Timestamp::now();
        if let Some(known) = context.servers.addresses(&context.frontier, host, now) {
            return Ok(Some(known.addresses).filter(|addresses| !addresses.is_empty()));
        }
        let Ok(resolution) = context.fetcher.resolve(host, now).await else {
            return Ok(None);
        };
        let record = records::of_resolution(&Uri::dns(host), &resolution, now);
        context.archive(vec![record]).await?;
        let dns = &context.profile.dns;
        let expires = now + resolution.ttl.clamp(dns.min_expires, dns.max_expires);
        context.servers.keep_addresses(
            &context.frontier,
            host,
            resolution.addresses.clone(),
            expires,
        )?;
        Ok(Some(resolution.addresses))
    }

    fn attempts_left(&self) -> bool {
        self.issue.record.attempts < self.settings.retry.max_retries
    }

    /// Exchanges that end here: nothing usable came, or the profile wants it tried again.
    async fn unusable(
        &self,
        exchange: &Arc<Exchange>,
        verdict: Option<&HeaderVerdict>,
    ) -> Result<Option<Turn>, Halt> {
        let entry = || Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()).filter(|_| exchange.head.is_some()),
            media_type: exchange.head.as_ref().and_then(ResponseHead::media_type),
            fetch: Some((exchange.started, exchange.duration)),
            digest: exchange
                .head
                .as_ref()
                .map(|_| exchange.payload_digest.to_string()),
            annotations: exchange.annotations.clone(),
        };
        if let Some(HeaderVerdict::Rejected(reason)) = verdict {
            let mut turn = Turn {
                outcome: disregarded(status::BLOCKED, Some(exchange.duration)),
                entry: entry(),
            };
            turn.entry.status = status::BLOCKED;
            turn.entry.annotations.push(reason.clone());
            return Ok(Some(turn));
        }
        if let Some(failure) = &exchange.failure {
            let status = failure.status();
            let words = crate::stacks::chain(failure);
            let mut entry = entry();
            entry.annotations.push(format!("err={words}"));
            let outcome = match failure {
                FetchFailure::Scratch(_) => return Err(Halt::Scratch(words)),
                FetchFailure::AddressRefused { .. } => disregarded(status, None),
                FetchFailure::Unfetchable { .. } => Outcome::Failed {
                    status,
                    fetch_duration: None,
                },
                // Part of a response, and no more attempts: what came is archived as cut short.
                _ if exchange.head.is_some() && !self.attempts_left() => return Ok(None),
                _ => Outcome::Retry {
                    status,
                    after: None,
                    fetch_duration: Some(exchange.duration),
                },
            };
            return Ok(Some(Turn { outcome, entry }));
        }
        let retry = exchange
            .head
            .as_ref()
            .is_some_and(|head| self.settings.retry.statuses.contains(&head.status));
        if retry && self.attempts_left() {
            let outcome = Outcome::Retry {
                status: exchange.status(),
                after: retry_after(exchange),
                fetch_duration: Some(exchange.duration),
            };
            return Ok(Some(Turn {
                outcome,
                entry: entry(),
            }));
        }
        Ok(None)
    }

    // ---- What came ----

    /// A response that counts: digest, state, links, archive, wait.
    async fn settle(
        &self,
        exchange: Arc<Exchange>,
        verdict: Option<HeaderVerdict>,
        notes: Notes,
    ) -> Result<Turn, Halt> {
        let Some(head) = exchange.head.clone() else {
            return Ok(Turn::failed(exchange.status(), String::new()));
        };
        let not_modified = head.status == 304 && self.issue.record.archived.is_some();
        let by_header = matches!(verdict, Some(HeaderVerdict::Unchanged(_)));
        let bodyless = not_modified || by_header;
        let mut annotations = exchange.annotations.clone();

        let reading = self.read(&exchange, &head, bodyless, &notes).await?;
        annotations.extend(reading.annotations.iter().cloned());
        self.context.faults(&reading.faults)?;
        if let Some(reason) = reading.rejected {
            annotations.push(reason);
            let entry = Entry {
                status: status::BLOCKED,
                size: Some(exchange.payload.length()),
                media_type: head.media_type(),
                fetch: Some((exchange.started, exchange.duration)),
                digest: None,
                annotations,
            };
            let outcome = disregarded(status::BLOCKED, Some(exchange.duration));
            return Ok(Turn { outcome, entry });
        }
        if let Some(after) = reading.retry {
            let entry = Entry {
                status: exchange.status(),
                annotations,
                ..Entry::default()
            };
            let outcome = Outcome::Retry {
                status: entry.status,
                after: Some(after),
                fetch_duration: Some(exchange.duration),
            };
            return Ok(Turn { outcome, entry });
        }
        let (candidates, refused) = self.outlinks(&reading).await?;
        self.context
            .logs
            .uri_errors(self.issue.uri.as_str(), &reading.extracted.refused)?;
        if let Some(count) = Some(refused).filter(|count| *count > 0) {
            self.context.counters.out_of_scope(count);
        }

        let keep = self.keep(&exchange, &reading, bodyless);
        annotations.extend(notes.annotations());
        self.annotate(&mut annotations, &reading, not_modified);
        let record = &self.issue.record;
        let about = About {
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            charset: reading.charset.clone(),
            annotations: &annotations,
            notes: notes.all().into_iter().collect(),
            links: &reading.extracted.links,
        };
        let records = records::of_exchange(&self.issue.uri, &exchange, &keep, &about);
        let location = self.context.archive(records).await?.into_iter().next();

        let visit = self.to_remember(&exchange, &head, &reading, &keep, location);
        let wait = self.wait(&visit).await?;
        let entry = Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()),
            media_type: head.media_type(),
            fetch: Some((exchange.started, exchange.duration)),
            digest: (!bodyless).then(|| exchange.payload_digest.to_string()),
            annotations: self.final_annotations(annotations, &visit, wait),
        };
        let success = Success {
            visit,
            wait,
            outlinks: candidates,
            fetch_duration: exchange.duration,
        };
        Ok(Turn {
            outcome: Outcome::Succeeded(Box::new(success)),
            entry,
        })
    }

    /// Decodes, asks post-fetch filters, digests, judges the state and extracts: everything that wants the content,
    /// on a document lane.
    async fn read(
        &self,
        exchange: &Arc<Exchange>,
        head: &ResponseHead,
        bodyless: bool,
        notes: &Notes,
    ) -> Result<found::Reading, Halt> {
        let task = found::Task {
            stacks: self.stacks.clone(),
            exchange: exchange.clone(),
            head: head.clone(),
            uri: self.issue.uri.as_str().to_owned(),
            base: self.base(head),
            visit: standing::visit(
                self.issue,
                self.started,
                i32::from(head.status),
                head.media_type(),
            ),
            last: self
                .issue
                .record
                .archived
                .is_some()
                .then_some(self.issue.record.digests),
            last_extractor: self.issue.record.extractor,
            bodyless,
            content_max: self.context.profile.limits.plugin_content.bytes(),
            links_max: self.context.profile.limits.outlinks,
            notes: notes.clone(),
        };
        Ok(self
            .context
            .lanes
            .run(Lane::Document, move || task.run())
            .await?)
    }

    /// Links as candidates for the frontier, those out of scope left out; and how many those were.
    async fn outlinks(&self, reading: &found::Reading) -> Result<(Vec<Candidate>, u64), Halt> {
        let mut links = reading.extracted.links.clone();
        if self.is_robots() {
            // They have been followed already, and lead nowhere else.
            links.retain(|link| link.hop != Hop::Redirect);
        }
        if links.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let record = &self.issue.record;
        let via_surt = self.issue.uri.surt();
        let found: Vec<_> = links
            .iter()
            .map(|link| standing::found_candidate(&self.issue.uri, &via_surt, record, link))
            .collect();
        if let Some(redirect) = links
            .iter()
            .find(|link| link.hop == Hop::Redirect && record.seed)
        {
            let seed = record.source.as_deref().unwrap_or(self.issue.uri.as_str());
            self.context.seed_moved(seed, &redirect.uri).await?;
        }
        let stacks = self.context.stacks();
        let judged = self
            .context
            .lanes
            .run(Lane::Document, move || {
                scope::judge(&stacks.scope, &Stage::Scope, &found, false)
            })
            .await?;
        self.context.scope_faults(&judged)?;
        let mut accepted = Vec::new();
        let mut refused = 0;
        for (link, decision) in links.into_iter().zip(&judged.decisions) {
            if decision.accepted {
                accepted.push(self.candidate(link));
            } else {
                refused += 1;
            }
        }
        Ok((accepted, refused))
    }

    fn candidate(&self, link: FoundLink) -> Candidate {
        let record = &self.issue.record;
        let context = self.context;
        Candidate {
            queue: context.queue_of(&link.uri),
            canonical: context.profile.canonicaliser.apply(&link.uri),
            via: Some(self.issue.uri.as_str().to_owned()),
            context: link.context,
            source: record.source.clone(),
            seed: record.seed && link.hop == Hop::Redirect,
            ..Candidate::new(link.uri, record.hop_path.then(link.hop), record.strategy)
        }
    }

    /// How the capture is kept.
    fn keep(&self, exchange: &Exchange, reading: &found::Reading, bodyless: bool) -> Keep {
        let record = &self.issue.record;
        let previous = record.archived.clone().map(|at| Previous {
            uri: record.uri.clone(),
            at,
        });
        let identical = record.digests.payload == Some(exchange.payload_digest.0);
        match (previous, reading.state) {
            _ if !reading.archive => Keep::Nothing,
            (Some(previous), ContentState::Unchanged) if bodyless => Keep::NotModified(previous),
            (Some(previous), ContentState::Unchanged) if identical => Keep::Identical(previous),
            (Some(previous), ContentState::Unchanged) => match self.settings.revisit.stripped_equal
            {
                StrippedEqual::Archive => Keep::Response,
                StrippedEqual::Note => Keep::Note(previous),
                StrippedEqual::Drop => Keep::Nothing,
            },
            _ => Keep::Response,
        }
    }

    fn annotate(
        &self,
        annotations: &mut Vec<String>,
        reading: &found::Reading,
        not_modified: bool,
    ) {
        if self.issue.record.attempts > 0 {
            annotations.push(format!("{}t", self.issue.record.attempts + 1));
        }
        if reading.state == ContentState::Unchanged {
            annotations.push("unchanged".to_owned());
        }
        if not_modified {
            annotations.push("duplicate:server-not-modified".to_owned());
        }
        if reading.extracted.dropped > 0 {
            annotations.push(format!("dol:{}", reading.extracted.dropped));
        }
        for (plugin, problem) in &reading.extracted.problems {
            tracing::debug!(uri = %self.issue.uri, plugin, problem, "could not be read in full");
        }
    }

    fn to_remember(
        &self,
        exchange: &Exchange,
        head: &ResponseHead,
        reading: &found::Reading,
        keep: &Keep,
        location: Option<Location>,
    ) -> Visit {
        let kept = *keep == Keep::Response && location.is_some();
        let complete = kept && exchange.truncated.is_none() && exchange.failure.is_none();
        let validators = Validators {
            etag: head.first("etag").map(str::to_owned),
            last_modified: head.first("last-modified").map(str::to_owned),
        };
        let digests = Digests {
            payload: Some(exchange.payload_digest.0),
            stripped: reading.stripped,
        };
        Visit {
            status: exchange.status(),
            state: reading.state,
            size: reading.size,
            // A 304 seldom names a type; it is that of the version it stands for.
            media_type: head
                .media_type()
                .unwrap_or_else(|| self.issue.record.media_type.clone()),
            digests: kept.then_some(digests),
            // Only a complete body may stand behind a 304.
            validators: kept.then(|| {
                if complete && head.status == 200 {
                    validators
                } else {
                    Validators::default()
                }
            }),
            archived: location
                .filter(|_| kept)
                .map(|location| self.location(location, records::date_of(exchange))),
            extractor: reading.extracted_by,
            outlinks: reading
                .extracted_by
                .filter(|by| *by != found::NOT_EXTRACTED)
                .map(|_| reading.extracted.links.len() as u64),
            attributes: None,
        }
    }

    /// The wait until the next visit, under revisit: what the first evaluator with an answer says, within the limits of
    /// the profile.
    async fn wait(&self, visit: &Visit) -> Result<Option<Duration>, Halt> {
        let record = &self.issue.record;
        if record.strategy == opilio_frontier::Strategy::Snapshot {
            return Ok(None);
        }
        let asked = standing::after(self.issue, self.started, visit);
        let stacks = self.stacks.clone();
        let media_type = visit.media_type.clone();
        let answer = self
            .context
            .lanes
            .run(Lane::Header, move || {
                found::evaluate(&stacks.wait, &media_type, &asked)
            })
            .await?;
        self.context.faults(&answer.faults)?;
        let limits = &self.settings.revisit;
        let wait = match answer.wait {
            Some(wait) => wait,
            // A fault leaves the previous wait.
            None if !answer.faults.is_empty() => record.wait.unwrap_or(limits.default_wait),
            None => limits.default_wait,
        };
        Ok(Some(wait.clamp(limits.min_wait, limits.max_wait)))
    }

    fn final_annotations(
        &self,
        mut annotations: Vec<String>,
        visit: &Visit,
        wait: Option<Duration>,
    ) -> Vec<String> {
        let record = &self.issue.record;
        if record.strategy == opilio_frontier::Strategy::Revisit {
            let new_version = matches!(visit.state, ContentState::New | ContentState::Changed);
            let versions = record.versions + u64::from(new_version);
            annotations.extend(revisit_annotations(
                wait,
                record.visits + 1,
                versions,
                self.issue.overdue,
            ));
        }
        annotations
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
        notes: &Notes,
    ) -> Document {
        found::document(
            self.issue.uri.as_str(),
            &self.base(head),
            head,
            content,
            charset,
            notes,
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

/// What the preconditions of a fetch came to.
enum Precondition {
    /// Fetch, from one of these addresses.
    Met(Vec<IpAddr>),
    /// There will be no fetch now.
    Settled(Turn),
}

/// What mid-fetch filters made of a response's headers, where they did not let it go on.
enum HeaderVerdict {
    Rejected(String),
    Unchanged(String),
}

impl HeaderVerdict {
    fn reason(&self) -> &str {
        match self {
            HeaderVerdict::Rejected(reason) | HeaderVerdict::Unchanged(reason) => reason,
        }
    }
}

impl Turn {
    /// Cannot be fetched, and no request was sent.
    fn failed(status: i32, annotation: String) -> Turn {
        Turn {
            outcome: Outcome::Failed {
                status,
                fetch_duration: None,
            },
            entry: Entry::of(status, annotation),
        }
    }

    /// Not to be fetched, and no request was sent.
    fn disregarded(status: i32, annotation: String) -> Turn {
        Turn {
            outcome: disregarded(status, None),
            entry: Entry::of(status, annotation),
        }
    }

    fn retry(status: i32, after: Option<Duration>, fetch_duration: Option<Duration>) -> Turn {
        Turn {
            outcome: Outcome::Retry {
                status,
                after,
                fetch_duration,
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

fn disregarded(status: i32, fetch_duration: Option<Duration>) -> Outcome {
    Outcome::Disregarded {
        status,
        fetch_duration,
    }
}

/// Status and body of a response to a request for robots.txt.
fn robots_answer(exchange: &Exchange) -> (i32, Vec<u8>) {
    let status = exchange.status();
    let body = exchange
        .head
        .as_ref()
        .map(|head| found::content(exchange, head, ROBOTS_BYTES_MAX as u64).0);
    (status, body.unwrap_or_default().to_vec())
}

/// Where a response sends us.
fn redirect_of(uri: &Uri, exchange: &Exchange) -> Option<Uri> {
    let head = exchange
        .head
        .as_ref()
        .filter(|head| (300..400).contains(&head.status))?;
    uri.join(head.first("location")?).ok().filter(Uri::is_http)
}

/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3).
fn retry_after(exchange: &Exchange) -> Option<Duration> {
    let value = exchange.head.as_ref()?.first("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at - Timestamp::now()).unwrap_or_default())
}
