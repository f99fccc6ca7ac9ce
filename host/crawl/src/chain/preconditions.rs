//! What a URI needs before it may be fetched: the addresses of its host, the word of its server to robots, and the consent
//! of pre-fetch filters.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::robots::{
    Agents, ROBOTS_BYTES_MAX, ROBOTS_REDIRECTS_MAX, Reason, Robots, Verdict as RobotsVerdict,
};
use opilio_fetch::{Exchange, FetchFailure};
use opilio_frontier::{
    Candidate, ContentState, Digests, Directive, Outcome, Success, UNTIL_CHANGED, Visit,
};
use opilio_profile::{RobotsPolicy, ServerGroup};
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{Hop, Uri};
use tracing::Instrument as _;

use crate::context::Halt;
use crate::control::Step;
use crate::crawl_log::ExtraInfo;
use crate::lanes::Lane;
use crate::logins::{Came, Needs, Part};
use crate::records::{self, About, Keep};
use opilio_visit::found;
use opilio_visit::scope::{self, Judged};
use opilio_visit::standing::{self, Memory};

use super::exchange::retry_after;
use super::{Chain, Entry, Turn, status, transfer};

/// How long a robots.txt waits for a turn of the host that it redirects to, before it is put off.
const TURN_PATIENCE: Duration = Duration::from_secs(60);

/// As much of a login's page or answer is read; its form stands in it.
const LOGIN_PAGE_BYTES_MAX: u64 = 1 << 20;

impl Chain<'_> {
    pub(super) async fn look_up(&self) -> Result<Turn, Halt> {
        let context = self.context;
        let host = self.issue.uri.path();
        self.flight.step(Step::Fetch);
        let profile = context.current();
        let dns = &profile.dns;
        let fetcher = context.fetchers.base();
        let resolving = fetcher.resolve(host, self.started);
        let resolving = resolving.instrument(tracing::info_span!("dns"));
        match self.waiting(resolving).await {
            Err(FetchFailure::Stopped) => Err(Halt::Stopped),
            Ok(resolution) => {
                let good_for = resolution.ttl.clamp(dns.min_expires, dns.max_expires);
                let record = records::of_resolution(&self.issue.uri, &resolution, self.started);
                let location = context.archive(vec![record]).await?.into_iter().next();
                let addresses = resolution.addresses;
                context.servers.keep_addresses(
                    &context.frontier,
                    host,
                    dns,
                    addresses,
                    self.started + good_for,
                )?;
                let payload = opilio_fetch::PayloadDigest::of(resolution.text.as_bytes());
                let size = resolution.text.len() as u64;
                let extra = ExtraInfo::of(size, location.as_ref());
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
                        state: ContentState::New,
                        extra,
                        ..Entry::default()
                    },
                })
            }
            // A name that had an address before has lost it by a mistake, more often than not.
            Err(ref failure @ FetchFailure::NoAddress { ttl, .. })
                if !context.servers.had_addresses(&context.frontier, host) =>
            {
                let most = dns.negative_expires;
                let expires = Timestamp::now() + ttl.map_or(most, |ttl| ttl.min(most));
                let servers = &context.servers;
                servers.keep_addresses(&context.frontier, host, dns, Vec::new(), expires)?;
                Ok(Turn::failed(failure.status(), String::new()))
            }
            Err(failure) if !self.settings.retry.has_error(failure.status()) => {
                let expires = Timestamp::now() + dns.negative_expires;
                let servers = &context.servers;
                servers.keep_addresses(&context.frontier, host, dns, Vec::new(), expires)?;
                Ok(Turn::failed(failure.status(), String::new()))
            }
            Err(failure) => Ok(Turn::retry(failure.status(), None, None)),
        }
    }

    /// Whether the profile leaves it to the proxy to find the host's addresses: it may be that nobody else can.
    fn is_looked_up_by_proxy(&self, host: &str) -> bool {
        let proxy = self.settings.fetch.proxy.as_ref();
        proxy.is_some_and(|proxy| proxy.looks_up(host))
    }

    /// DNS and robots.txt, known and still good; or what to do about it.
    pub(super) fn preconditions(&self) -> Result<Precondition, Halt> {
        let context = self.context;
        let uri = &self.issue.uri;
        let host = match uri.scheme() {
            "whois" => Some(opilio_fetch::whois_host(uri)),
            _ => uri.host(),
        };
        let Some(host) = host else {
            return Ok(Precondition::settled(Turn::failed(
                status::UNFETCHABLE,
                String::new(),
            )));
        };
        let mut leave = Leave::to(Vec::new());
        if !self.is_looked_up_by_proxy(host) {
            let Some(known) = context.servers.addresses(
                &context.frontier,
                host,
                &context.current().dns,
                self.started,
            ) else {
                return Ok(Precondition::settled(self.deferred(Uri::dns(host))));
            };
            if known.addresses.is_empty() {
                return Ok(Precondition::settled(Turn::failed(
                    status::NO_ADDRESS,
                    String::new(),
                )));
            }
            self.join_group(&known.addresses)?;
            leave.addresses = known.addresses;
        }
        // Servers of FTP and WHOIS have no word to robots.
        if self.is_robots() || !uri.is_http() {
            return Ok(Precondition::Met(leave));
        }
        // Where to log in is the operator's word, which robots.txt files commonly forbid.
        leave.part = context.logins.part_of(uri);
        if leave.part.is_some() {
            return Ok(Precondition::Met(leave));
        }
        let known = context.servers.robots(&context.frontier, uri, self.started);
        let Some((robots, good_for)) = known else {
            return Ok(Precondition::settled(match uri.robots_txt() {
                Some(robots) => self.deferred(robots),
                None => Turn::failed(status::UNFETCHABLE, String::new()),
            }));
        };
        if let Some(refusal) = self.refused_by(&robots, good_for, &mut leave) {
            return Ok(Precondition::settled(refusal));
        }
        match context.logins.needs(&context.frontier, uri, self.started) {
            Needs::Nothing => Ok(Precondition::Met(leave)),
            Needs::First(first) if first == *uri => {
                leave.part = context.logins.part_of(uri);
                Ok(Precondition::Met(leave))
            }
            Needs::First(first) => Ok(Precondition::settled(self.deferred(first))),
            Needs::Refused(name) => Ok(Precondition::settled(Turn::failed(
                status::PREREQUISITE_FAILED,
                format!("login:{name}"),
            ))),
        }
    }

    /// What robots.txt says, by the profile's policy; none where the URI may be fetched. It says so for as long as it is good.
    fn refused_by(&self, robots: &Robots, good_for: Duration, leave: &mut Leave) -> Option<Turn> {
        let settings = &self.settings.robots;
        let profile = self.context.current();
        let own = profile.user_agent.as_str();
        if settings.policy == RobotsPolicy::Ignore {
            return None;
        }
        let custom = (settings.policy == RobotsPolicy::Custom)
            .then(|| self.context.servers.custom(&settings.text));
        let robots = custom.as_deref().unwrap_or(robots);
        let target = self.issue.uri.path_and_query();
        let (agent, verdict) = robots.verdict_among(own, agents(settings), target);
        if settings.masquerade && agent != own {
            leave.agent = Some(agent.to_owned());
        }
        let RobotsVerdict::Refused(reason) = verdict else {
            return None;
        };
        let mut remarks = vec!["robotExcluded".to_owned()];
        if let Reason::Rule(line) = &reason {
            remarks.push(format!("robotsLine:{}", line.number));
        }
        if settings.policy == RobotsPolicy::Audit {
            leave.remarks = remarks;
            return None;
        }
        Some(match reason {
            // An address that may not be connected to, for robots.txt as for anything else of its host.
            Reason::Unreachable(status::BLOCKED) => Turn::disregarded(
                status::BLOCKED,
                "robots.txt leads to a refused address or port".to_owned(),
            ),
            Reason::Unreachable(_) => Turn::failed(status::ROBOTS_FAILED, String::new()),
            reason => Turn {
                outcome: Outcome::Disregarded {
                    status: status::ROBOTS,
                    reason: format!("robotExcluded: {reason}"),
                    // The profile's own text does not expire.
                    wait: Some(match custom {
                        Some(_) => UNTIL_CHANGED,
                        None => good_for,
                    }),
                    transfer: None,
                },
                entry: Entry {
                    annotations: remarks,
                    ..Entry::of(status::ROBOTS, String::new())
                },
            },
        })
    }

    /// Somebody else answers now in the place of a page that needs a login: the login is sent anew, and the page asked for
    /// once more.
    pub(super) fn turned_away(
        &self,
        exchange: &Exchange,
        leave: &Leave,
    ) -> Result<Option<Turn>, Halt> {
        let Some(head) = &exchange.head else {
            return Ok(None);
        };
        if leave.part.is_some() || self.is_prerequisite() || self.is_robots() {
            return Ok(None);
        }
        let uri = &self.issue.uri;
        let target = redirect_of(uri, exchange);
        let (logins, frontier) = (&self.context.logins, &self.context.frontier);
        let page = logins.turned_away(frontier, uri, head.status, target.as_ref())?;
        Ok(page.map(|page| self.deferred(page)))
    }

    /// The page of a login has come, or the answer to its form: what is next.
    pub(super) async fn login_came(
        &self,
        exchange: &Arc<Exchange>,
        part: &Part,
    ) -> Result<(), Halt> {
        let context = self.context;
        let read = exchange.clone();
        let text = context
            .lanes
            .run(Lane::Document, move || {
                let head = read.head.as_ref();
                let content = head.map(|head| found::content(&read, head, LOGIN_PAGE_BYTES_MAX).0);
                String::from_utf8_lossy(&content.unwrap_or_default()).into_owned()
            })
            .await?;
        let (logins, frontier) = (&context.logins, &context.frontier);
        let came = logins.came(frontier, part, exchange.status(), &text, Timestamp::now())?;
        self.tell_of_login(&came);
        Ok(())
    }

    /// A login's page or form was not fetched, and will not be.
    pub(super) fn login_lost(&self) -> Result<(), Halt> {
        let (logins, frontier) = (&self.context.logins, &self.context.frontier);
        let Some(part) = logins.part_of(&self.issue.uri) else {
            return Ok(());
        };
        let (Part::Page(name) | Part::Form { name, .. }) = &part;
        let why = "its page or form cannot be fetched";
        let came = logins.fail(frontier, name, why, Timestamp::now())?;
        self.tell_of_login(&came);
        Ok(())
    }

    fn tell_of_login(&self, came: &Came) {
        match came {
            Came::Page => {}
            Came::In(name) => {
                let what = format!("login {name}");
                self.context.job_log.crawl(&what, "logged in");
            }
            Came::Refused(name, why) => {
                let why =
                    format!("{why}; the pages that need it fail, and it is tried again in an hour");
                tracing::warn!("login {name}: {why}");
                self.context
                    .job_log
                    .crawl(&format!("alert login {name}"), &why);
            }
        }
    }

    /// Puts the queue into the group of its server's address, where the profile groups by it. Servers with several
    /// addresses stand in the group of the lowest.
    fn join_group(&self, addresses: &[IpAddr]) -> Result<(), Halt> {
        let context = self.context;
        let queue = &self.issue.queue;
        if context.current().queue_settings(queue).queue.group != ServerGroup::Address {
            return Ok(());
        }
        let address = addresses.iter().min().map(ToString::to_string);
        if address != self.issue.group {
            let now = Timestamp::now();
            context
                .frontier()
                .set_address_group(queue, address.as_deref(), now)?;
        }
        Ok(())
    }

    /// Asks the scope again about what was found through links: the operator may have changed it since. None: it still
    /// belongs to the crawl.
    pub(super) async fn still_in_scope(&self) -> Result<Option<Turn>, Halt> {
        let record = &self.issue.record;
        let is_judged = record.scope == self.stacks.scope_hash;
        if is_judged || record.seed || record.hop_path.is_empty() || self.is_prerequisite() {
            return Ok(None);
        }
        let judged = self.judged_by_scope().await?;
        if !judged.unjudged.is_empty() {
            // A filter that fails says nothing about what it has let in before.
            return Ok(None);
        }
        let refused = judged.decisions.into_iter().next();
        Ok(refused
            .filter(|decision| !decision.accepted)
            .map(|decision| {
                let status = status::OUT_OF_SCOPE;
                Turn {
                    outcome: Outcome::OutOfScope {
                        status,
                        reason: decision.because(),
                    },
                    entry: Entry::of(status, decision.because()),
                }
            }))
    }

    /// The scope's ruling on the URI, by the filters in force now.
    pub(super) async fn judged_by_scope(&self) -> Result<Judged, Halt> {
        let candidate = standing::candidate(&self.issue.uri, &self.issue.record);
        let stacks = self.stacks.clone();
        let judged = self
            .context
            .lanes
            .run(Lane::Header, move || {
                let candidates = Candidates::new(vec![candidate]);
                scope::judge(&stacks.scope, &Stage::Scope, &candidates, false)
            })
            .await?;
        self.context.failures(&judged.failures)?;
        Ok(judged)
    }

    pub(super) fn deferred(&self, prerequisite: Uri) -> Turn {
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

    pub(super) async fn pre_fetch(&self, addresses: &[IpAddr]) -> Result<Option<Turn>, Halt> {
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
                let candidates = Candidates::new(vec![candidate]);
                scope::judge(&stacks.pre_fetch, &Stage::PreFetch, &candidates, true)
            })
            .await?;
        self.context.failures(&judged.failures)?;
        Ok(judged
            .decisions
            .into_iter()
            .next()
            .filter(|decision| !decision.accepted)
            .map(|decision| {
                if decision.failed {
                    Turn::postponed(status::RUNTIME, decision.because())
                } else {
                    let mut filters = self.stacks.pre_fetch.iter();
                    let by = filters.find(|filter| Some(&*filter.name) == decision.by.as_deref());
                    let status = by.map_or(status::BLOCKED, status::of_refusal);
                    Turn::disregarded(status, decision.because())
                }
            }))
    }

    /// robots.txt has come, or has not. None: it is archived like any other response, its word is kept.
    pub(super) async fn robots(&self, exchange: &Arc<Exchange>) -> Result<Option<Turn>, Halt> {
        let context = self.context;
        let mut answer = robots_answer(exchange);
        let mut at = self.issue.uri.clone();
        let mut redirect = redirect_of(&at, exchange);
        for _ in 0..ROBOTS_REDIRECTS_MAX {
            let Some(target) = redirect.take() else { break };
            // Many hosts redirect to one; those that come later need not ask.
            let known = context
                .servers
                .robots_answer(&context.frontier, &target, Timestamp::now());
            if let Some(known) = known {
                answer = known;
                break;
            }
            if !self.wait_for_turn(&target).await? {
                // Its server is busy with something else for long.
                let sent = Some(transfer(exchange));
                return Ok(Some(Turn::retry(
                    status::ROBOTS_FAILED,
                    Some(TURN_PATIENCE),
                    sent,
                )));
            }
            let Some(addresses) = self.addresses_now(&target).await? else {
                self.give_turn_back(&target, Duration::ZERO)?;
                break;
            };
            let leave = Leave::to(addresses);
            let (next, _) = self.fetch(&target, &leave, &Memory::default()).await?;
            self.give_turn_back(&target, next.duration)?;
            let about = About {
                via: Some(at.as_str()),
                hop_path: self.issue.record.hop_path.as_str(),
                ..About::default()
            };
            let records = records::of_exchange(&target, &next, &Keep::Response, &about);
            context
                .archive(records::in_passing(records, &self.issue.uri))
                .await?;
            answer = robots_answer(&next);
            redirect = redirect_of(&target, &next);
            let is_own = target.robots_txt().as_ref() == Some(&target);
            if is_own && redirect.is_none() && (200..500).contains(&answer.0) {
                let (servers, now) = (&context.servers, Timestamp::now());
                let lifetime = self.settings.robots.expires;
                servers.keep_robots(&context.frontier, &target, answer.clone(), lifetime, now)?;
            }
            at = target;
        }
        let unreachable = !(200..500).contains(&answer.0);
        // What the profile forbids is forbidden the next time as well.
        let refused = answer.0 == status::BLOCKED;
        let may_pass = answer.0 > 0 || self.settings.retry.has_error(answer.0);
        if unreachable && !refused && may_pass && self.attempts_left() {
            // One bad moment of the server must not close the site: asked again, as often as the profile wants.
            return Ok(Some(Turn::retry(
                answer.0,
                retry_after(exchange),
                Some(transfer(exchange)),
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
        let settings = &self.settings.robots;
        let custom = (settings.policy == RobotsPolicy::Custom)
            .then(|| context.servers.custom(&settings.text));
        let robots = custom.unwrap_or(robots);
        let profile = context.current();
        let agent = robots.agent_among(&profile.user_agent, agents(settings));
        let delay = robots.crawl_delay(agent).filter(|delay| !delay.is_zero());
        context
            .frontier()
            .set_crawl_delay(&self.issue.queue, delay, Timestamp::now())?;
        Ok(None)
    }

    /// Waits until the queue of a URI that is fetched in passing may be asked, and takes a turn of it. False where that takes
    /// too long.
    async fn wait_for_turn(&self, uri: &Uri) -> Result<bool, Halt> {
        let context = self.context;
        let queue = context.current().queue_name(uri);
        if queue == self.issue.queue {
            let settings = context.current().queue_settings(&queue);
            let politeness = &settings.politeness;
            self.rest(politeness.min_delay.min(TURN_PATIENCE)).await?;
            return Ok(true);
        }
        let end = Timestamp::now() + TURN_PATIENCE;
        loop {
            let now = Timestamp::now();
            let Some(at) = context.frontier().take_turn(&queue, uri, now)? else {
                return Ok(true);
            };
            if at > end {
                return Ok(false);
            }
            self.rest(Duration::try_from(at - now).unwrap_or_default())
                .await?;
        }
    }

    /// Lets time pass, in the place of no worker where it is long, and no longer than the crawl goes on.
    async fn rest(&self, time: Duration) -> Result<(), Halt> {
        let cut = self.context.fetchers.base().cut();
        let rest = self.waiting(tokio::time::sleep(time));
        cut.unless_made(rest).await.ok_or(Halt::Stopped)
    }

    fn give_turn_back(&self, uri: &Uri, took: Duration) -> Result<(), Halt> {
        let context = self.context;
        let queue = context.current().queue_name(uri);
        if queue != self.issue.queue {
            let now = Timestamp::now();
            context.frontier().give_turn_back(&queue, took, now)?;
        }
        Ok(())
    }

    /// Addresses of another host, looked up at once and archived where they are not known.
    pub(super) async fn addresses_now(&self, uri: &Uri) -> Result<Option<Vec<IpAddr>>, Halt> {
        let context = self.context;
        let Some(host) = uri.host() else {
            return Ok(None);
        };
        if self.is_looked_up_by_proxy(host) {
            return Ok(Some(Vec::new()));
        }
        let now = Timestamp::now();
        let profile = context.current();
        let dns = &profile.dns;
        let known = context.servers.addresses(&context.frontier, host, dns, now);
        if let Some(known) = known {
            return Ok(Some(known.addresses).filter(|addresses| !addresses.is_empty()));
        }
        let fetcher = context.fetchers.base();
        let resolution = match self.waiting(fetcher.resolve(host, now)).await {
            Ok(resolution) => resolution,
            Err(FetchFailure::Stopped) => return Err(Halt::Stopped),
            Err(_) => return Ok(None),
        };
        let record = records::of_resolution(&Uri::dns(host), &resolution, now);
        let records = records::in_passing(vec![record], &self.issue.uri);
        context.archive(records).await?;
        let expires = now + resolution.ttl.clamp(dns.min_expires, dns.max_expires);
        context.servers.keep_addresses(
            &context.frontier,
            host,
            dns,
            resolution.addresses.clone(),
            expires,
        )?;
        Ok(Some(resolution.addresses))
    }
}

/// How a URI may be fetched.
#[derive(Debug, Default)]
pub(super) struct Leave {
    /// From one of these addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// As this robot, in place of ourselves.
    pub(super) agent: Option<String>,
    /// What the log should say of it.
    pub(super) remarks: Vec<String>,
    /// Its part in a login.
    pub(super) part: Option<Part>,
}

impl Leave {
    /// From one of these addresses, as anything else.
    pub(super) fn to(addresses: Vec<IpAddr>) -> Leave {
        Leave {
            addresses,
            ..Leave::default()
        }
    }
}

/// Whose rules the profile goes by.
fn agents(settings: &opilio_profile::Robots) -> Agents<'_> {
    match settings.policy {
        RobotsPolicy::FirstNamed => Agents::FirstNamed(&settings.agents),
        RobotsPolicy::MostFavoured => Agents::MostFavoured(&settings.agents),
        _ => Agents::Own,
    }
}

/// What the preconditions of a fetch came to.
pub(super) enum Precondition {
    /// Fetch.
    Met(Leave),
    /// There will be no fetch now.
    Settled(Box<Turn>),
}

impl Precondition {
    fn settled(turn: Turn) -> Precondition {
        Precondition::Settled(Box::new(turn))
    }
}

/// Status and body of a response to a request for robots.txt.
pub(super) fn robots_answer(exchange: &Exchange) -> (i32, Vec<u8>) {
    let status = exchange.status();
    let body = exchange
        .head
        .as_ref()
        .map(|head| found::content(exchange, head, ROBOTS_BYTES_MAX as u64).0);
    (status, body.unwrap_or_default().to_vec())
}

/// Where a response sends us.
pub(super) fn redirect_of(uri: &Uri, exchange: &Exchange) -> Option<Uri> {
    let head = exchange
        .head
        .as_ref()
        .filter(|head| (300..400).contains(&head.status))?;
    uri.join(head.first("location")?).ok().filter(Uri::is_http)
}
