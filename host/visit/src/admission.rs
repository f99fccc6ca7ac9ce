//! Admission, the checks before a fetch: scope, addresses, robots.txt, logins, pre-fetch filters.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use opilio_fetch::robots::{Agents, Robots, RobotsReason, Verdict};
use opilio_frontier::{Candidate, Directive, Outcome, Strategy, UNTIL_CHANGED};
use opilio_profile::RobotsPolicy;
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{Hop, Uri};

use crate::driver::{Addresses, Driver, Lane, LoginNeed};
use crate::pipeline::{Conclusion, LogEntry, Pipeline};
use crate::scope::{self, FilterPart, ScopeDecision, ScopeJudgement};
use crate::scope_memory::ScopeQuestion;
use crate::{plugin_view, status};

/// Annotation of a URI whose robots.txt has an address or a port that the profile refuses.
pub const ROBOTS_ADDRESS_REFUSED: &str =
    "fetch.allow-addresses or fetch.allow-ports refuses its robots.txt";

/// The result of the stages before a fetch.
pub enum Admission {
    /// The URI may be fetched.
    Fetch(Permit),
    /// The URI is not fetched now.
    Ends(Box<Conclusion>),
}

/// The terms of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permit {
    /// Addresses to connect to. Empty if a proxy looks the host up.
    pub addresses: Vec<IpAddr>,
    /// The user agent to send instead of the profile's.
    pub agent: Option<String>,
    /// Annotations.
    pub annotations: Vec<String>,
    /// `true` if the URI is part of a login.
    pub is_login: bool,
}

impl Admission {
    fn ends(conclusion: Conclusion) -> Admission {
        Admission::Ends(Box::new(conclusion))
    }
}

/// Decides whether the URI may be fetched now.
///
/// # Errors
/// Returns the errors of the driver.
pub async fn admit<D: Driver>(pipeline: &Arc<Pipeline>, driver: &D) -> Result<Admission, D::Error> {
    if let Some(conclusion) = still_in_scope(pipeline, driver).await? {
        return Ok(Admission::ends(conclusion));
    }
    let permit = match preconditions(pipeline, driver)? {
        Admission::Fetch(permit) => permit,
        ends @ Admission::Ends(_) => return Ok(ends),
    };
    if !permit.is_login
        && let Some(conclusion) = pre_fetch(pipeline, driver, &permit).await?
    {
        return Ok(Admission::ends(conclusion));
    }
    Ok(Admission::Fetch(permit))
}

/// Checks the scope again for a URI that was found through links, because the operator may have changed the scope since.
async fn still_in_scope<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
) -> Result<Option<Conclusion>, D::Error> {
    let is_judged = pipeline.issue.record.scope == pipeline.stacks.scope_hash;
    if is_judged || pipeline.is_exempt_from_scope() {
        return Ok(None);
    }
    let (decision, is_judged) = judged_by_scope(pipeline, driver).await?;
    if !is_judged {
        // The earlier acceptance stays valid if a filter fails.
        return Ok(None);
    }
    let refused = decision.filter(|decision| !decision.accepted);
    Ok(refused.map(|decision| {
        let outcome = Outcome::OutOfScope {
            status: status::OUT_OF_SCOPE,
            reason: decision.because(),
        };
        let entry = LogEntry::of(status::OUT_OF_SCOPE, decision.because());
        Conclusion::new(outcome, entry)
    }))
}

/// Returns the decision of the present scope filters on the URI, and whether all calls succeeded.
pub(crate) async fn judged_by_scope<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
) -> Result<(Option<Arc<ScopeDecision>>, bool), D::Error> {
    let memory = driver.scope_memory();
    if let Some(known) = memory.and_then(|memory| memory.get(pipeline.scope_question())) {
        return Ok((Some(known), true));
    }
    let shared_pipeline = pipeline.clone();
    let judge = move || shared_pipeline.judge_scope(|_, _| {});
    let judged = driver.run(Lane::Header, judge).await?;
    driver.failed(&judged.failures)?;
    if let Some(memory) = memory {
        let question = std::iter::once(pipeline.scope_question());
        memory.keep(&pipeline.stacks.scope, question, &judged);
    }
    let decision = judged.decisions.into_iter().next();
    Ok((decision.map(Arc::new), judged.unjudged.is_empty()))
}

impl Pipeline {
    /// Returns `true` if the URI belongs to the crawl without a check of the scope: it was not found through links, or other URIs
    /// wait for it.
    pub fn is_exempt_from_scope(&self) -> bool {
        let record = &self.issue.record;
        record.seed || record.hop_path.is_empty() || self.is_prerequisite()
    }

    /// Returns the input of [`Self::judge_scope`].
    fn scope_question(&self) -> ScopeQuestion<'_> {
        let record = &self.issue.record;
        ScopeQuestion {
            filters: self.stacks.scope_identity,
            uri: self.issue.uri.as_str(),
            hop_path: record.hop_path.as_str(),
            seed: record.seed,
        }
    }

    /// Calls the scope filters on the URI. Passes the answer of each filter, with its index in the stack, to `report`. Blocks.
    pub fn judge_scope(&self, report: impl FnMut(usize, FilterPart<'_>)) -> ScopeJudgement {
        let (stack, candidates) = (&self.stacks.scope, self.candidates(None));
        scope::judge_and_report(stack, &Stage::Scope, &candidates, false, report)
    }

    /// Calls the pre-fetch filters on the URI, whose host has `address`. Passes the answer of each filter, with its index in the
    /// stack, to `report`. Blocks.
    pub fn judge_pre_fetch(
        &self,
        address: Option<String>,
        report: impl FnMut(usize, FilterPart<'_>),
    ) -> ScopeJudgement {
        let (stack, candidates) = (&self.stacks.pre_fetch, self.candidates(address));
        scope::judge_and_report(stack, &Stage::PreFetch, &candidates, true, report)
    }

    /// Returns the URI as the sole candidate.
    fn candidates(&self, address: Option<String>) -> Candidates {
        let mut candidate = plugin_view::candidate(&self.issue.uri, &self.issue.record);
        candidate.address = address;
        Candidates::new(vec![candidate])
    }
}

/// Checks addresses, robots.txt and login. If one is missing, the URI waits for it as a prerequisite.
fn preconditions<D: Driver>(pipeline: &Pipeline, driver: &D) -> Result<Admission, D::Error> {
    let uri = &pipeline.issue.uri;
    let unfetchable = || Admission::ends(Conclusion::failed(status::UNFETCHABLE, String::new()));
    let host = match uri.scheme() {
        "whois" => Some(opilio_fetch::whois_host(uri)),
        _ => uri.host(),
    };
    let Some(host) = host else {
        return Ok(unfetchable());
    };
    let mut permit = Permit::default();
    match driver.addresses(host)? {
        Addresses::NotNeeded => {}
        Addresses::Unknown => return Ok(Admission::ends(deferred(pipeline, Uri::dns(host)))),
        Addresses::Known(addresses) if addresses.is_empty() => {
            let error = format!("err=no address for {host}");
            let conclusion = Conclusion::failed(status::NO_ADDRESS, error);
            return Ok(Admission::ends(conclusion));
        }
        Addresses::Known(addresses) => permit.addresses = addresses,
    }
    // Servers of FTP and WHOIS have no robots.txt.
    if pipeline.is_robots() || !uri.is_http() {
        return Ok(Admission::Fetch(permit));
    }
    if driver.is_login(uri) {
        // The operator decides where to log in; robots.txt files commonly forbid such pages.
        permit.is_login = true;
        return Ok(Admission::Fetch(permit));
    }
    let Some((robots, good_for)) = driver.robots(uri) else {
        return Ok(match uri.robots_txt() {
            Some(robots) => Admission::ends(deferred(pipeline, robots)),
            None => unfetchable(),
        });
    };
    if let Some(refusal) = refused_by_robots(pipeline, driver, &robots, good_for, &mut permit) {
        return Ok(Admission::ends(refusal));
    }
    Ok(match driver.login_need(uri) {
        LoginNeed::Nothing => Admission::Fetch(permit),
        LoginNeed::First(first) if first == *uri => {
            permit.is_login = true;
            Admission::Fetch(permit)
        }
        LoginNeed::First(first) => Admission::ends(deferred(pipeline, first)),
        LoginNeed::Refused(name) => {
            let annotation = format!("login:{name}");
            Admission::ends(Conclusion::failed(status::PREREQUISITE_FAILED, annotation))
        }
    })
}

/// Returns the conclusion for a refusal by robots.txt, by the profile's policy. It is valid as long as the robots.txt is.
fn refused_by_robots<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    robots: &Robots,
    good_for: Duration,
    permit: &mut Permit,
) -> Option<Conclusion> {
    let settings = &pipeline.settings.robots;
    let own = pipeline.profile.user_agent.as_str();
    if settings.policy == RobotsPolicy::Ignore {
        return None;
    }
    let custom =
        (settings.policy == RobotsPolicy::Custom).then(|| driver.custom_robots(&settings.text));
    let robots = custom.as_deref().unwrap_or(robots);
    let target = pipeline.issue.uri.path_and_query();
    let (agent, verdict) = robots.verdict_among(own, agents(settings), target);
    if settings.masquerade && agent != own {
        permit.agent = Some(agent.to_owned());
    }
    let Verdict::Refused(reason) = verdict else {
        return None;
    };
    let mut annotations = vec!["robotExcluded".to_owned()];
    if let RobotsReason::Rule(line) = &reason {
        annotations.push(format!("robotsLine:{}", line.number));
    }
    if settings.policy == RobotsPolicy::Audit {
        permit.annotations = annotations;
        return None;
    }
    Some(match reason {
        // A refused robots.txt blocks the other URIs of its host too. A refused port stays refused, but a host name may get another
        // address at any time.
        RobotsReason::Unreachable(status::BLOCKED) => {
            let annotation = ROBOTS_ADDRESS_REFUSED.to_owned();
            let port = pipeline.issue.uri.port_or_default();
            match opilio_fetch::is_bad_port(port, &pipeline.settings.fetch.allow_ports) {
                true => Conclusion::disregarded(status::BLOCKED, annotation),
                false => Conclusion::postponed(status::BLOCKED, annotation),
            }
        }
        RobotsReason::Unreachable(_) => Conclusion::failed(status::ROBOTS_FAILED, String::new()),
        reason => Conclusion::new(
            Outcome::Disregarded {
                status: status::ROBOTS,
                reason: format!("robotExcluded: {reason}"),
                // The profile's own text does not expire.
                wait: Some(match custom {
                    Some(_) => UNTIL_CHANGED,
                    None => good_for,
                }),
                transfer: None,
            },
            LogEntry {
                annotations,
                ..LogEntry::of(status::ROBOTS, String::new())
            },
        ),
    })
}

/// Returns the user agents whose rules apply under the profile's policy.
pub(crate) fn agents(settings: &opilio_profile::RobotsSettings) -> Agents<'_> {
    match settings.policy {
        RobotsPolicy::FirstNamed => Agents::FirstNamed(&settings.agents),
        RobotsPolicy::MostFavoured => Agents::MostFavoured(&settings.agents),
        _ => Agents::Own,
    }
}

/// Returns the conclusion for a URI that waits for a prerequisite. The prerequisite is first in its queue.
pub(crate) fn deferred(pipeline: &Pipeline, prerequisite: Uri) -> Conclusion {
    let issue = &pipeline.issue;
    let record = &issue.record;
    let hop_path = record.hop_path.then(Hop::Prerequisite);
    let candidate = Candidate {
        queue: issue.queue.clone(),
        via: Some(issue.uri.as_str().to_owned()),
        source: record.source.clone(),
        directive: Directive::Highest,
        force: true,
        ..Candidate::new(prerequisite, hop_path, Strategy::Snapshot)
    };
    let outcome = Outcome::Deferred {
        prerequisites: vec![candidate],
    };
    Conclusion::new(outcome, LogEntry::default())
}

/// Calls the pre-fetch filters. Prerequisites are accepted without a call.
async fn pre_fetch<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    permit: &Permit,
) -> Result<Option<Conclusion>, D::Error> {
    if pipeline.stacks.pre_fetch.is_empty() || pipeline.is_prerequisite() {
        return Ok(None);
    }
    let address = permit.addresses.first().map(ToString::to_string);
    let shared_pipeline = pipeline.clone();
    let judge = move || shared_pipeline.judge_pre_fetch(address, |_, _| {});
    let judged = driver.run(Lane::Header, judge).await?;
    driver.failed(&judged.failures)?;
    let decision = judged.decisions.into_iter().next();
    let refused = decision.filter(|decision| !decision.accepted);
    Ok(refused.map(|decision| {
        if decision.failed {
            return Conclusion::postponed(status::RUNTIME, decision.because());
        }
        let mut filters = pipeline.stacks.pre_fetch.iter();
        let by = filters.find(|filter| Some(&*filter.name) == decision.by.as_deref());
        let status = by.map_or(status::BLOCKED, status::of_refusal);
        Conclusion::disregarded(status, decision.because())
    }))
}
