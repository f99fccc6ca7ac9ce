//! The links of a page: the scope's decisions on them, their ranks by plugins, and the candidates for the frontier.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_frontier::{Candidate, OutOfScopeLink};
use opilio_sandbox::{Candidates, Stage};
use opilio_stacks::Stacks;
use opilio_uri::Hop;

use crate::driver::{Driver, Lane};
use crate::extraction::Outlink;
use crate::pipeline::Pipeline;
use crate::reading::Reading;
use crate::scope::ScopeDecision;
use crate::scope_memory::{ScopeQuestion, judge_by_uri};
use crate::{link_attributes, plugin_view, policy, precedence, scope};

/// The links of a page, judged.
#[derive(Default)]
pub(crate) struct JudgedOutlinks {
    pub(crate) accepted: Vec<Candidate>,
    /// The ranks of the links by plugins, in the same order.
    pub(crate) ranks: Vec<Option<u8>>,
    pub(crate) refused: Vec<OutOfScopeLink>,
    /// Scope filters whose calls failed, with the number of links affected.
    pub(crate) unjudged: BTreeMap<Arc<str>, u64>,
}

/// A link and the plugins that apply to its target.
struct Target {
    link: Outlink,
    /// The link as it is passed to the frontier.
    candidate: Candidate,
    stacks: Arc<Stacks>,
}

impl Target {
    fn scope_question(&self) -> ScopeQuestion<'_> {
        ScopeQuestion {
            filters: self.stacks.scope_identity,
            uri: self.link.uri.as_str(),
            hop_path: self.candidate.hop_path.as_str(),
            seed: self.candidate.seed,
        }
    }
}

/// Judges and ranks the links of a page.
pub(crate) async fn outlinks<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    reading: &Reading,
) -> Result<JudgedOutlinks, D::Error> {
    let mut links = reading.extracted.links.clone();
    if pipeline.is_robots() {
        // The redirects of a robots.txt have been followed already, and it has no other links.
        links.retain(|link| link.hop != Hop::Redirect);
    }
    if links.is_empty() {
        return Ok(JudgedOutlinks::default());
    }
    let (uri, record) = (&pipeline.issue.uri, &pipeline.issue.record);
    let redirect = links.iter().find(|link| link.hop == Hop::Redirect);
    if let Some(redirect) = redirect.filter(|_| record.seed) {
        let seed = record.source.as_deref().unwrap_or(uri.as_str());
        driver.widen_scope(seed, &redirect.uri).await?;
    }
    let targets = links.into_iter().map(|link| Target {
        stacks: pipeline.stacks_of(&pipeline.settings_for(&link.uri, None)),
        candidate: candidate(pipeline, &link),
        link,
    });
    let mut targets: Vec<Target> = targets.collect();
    leave_out_known(driver, &mut targets)?;
    let mut accepted = Vec::new();
    let mut outlinks = JudgedOutlinks::default();
    // There is nearly always one group only, so filters are called once for the links of a page.
    for group in grouped(targets, |one, other| {
        one.stacks.scope_hash == other.stacks.scope_hash
    }) {
        let decisions = decisions(pipeline, driver, &group, &mut outlinks.unjudged).await?;
        let uris = group.iter().map(|target| &target.link.uri);
        driver.judged_links(uris.zip(decisions.iter().map(|decision| &**decision)))?;
        for (target, decision) in group.into_iter().zip(&decisions) {
            if decision.accepted {
                accepted.push(target);
            } else {
                outlinks.refused.push(OutOfScopeLink {
                    reason: decision.because(),
                    uri: target.link.uri,
                });
            }
        }
    }
    for group in grouped(accepted, |one, other| {
        Arc::ptr_eq(&one.stacks, &other.stacks)
    }) {
        let ranks = ranks(pipeline, driver, &group, reading).await?;
        outlinks.ranks.extend(ranks);
        let candidates = group.into_iter().map(|target| Candidate {
            scope: target.stacks.scope_hash,
            context: target.link.context,
            link_attributes: link_attributes::for_record(target.link.attributes),
            ..target.candidate
        });
        outlinks.accepted.extend(candidates);
    }
    for (candidate, rank) in outlinks.accepted.iter_mut().zip(&outlinks.ranks) {
        candidate.precedence = rank.unwrap_or(candidate.precedence);
    }
    Ok(outlinks)
}

/// Removes links that would change nothing in the frontier, so that no filter is called on them. They stay if a filter reads more
/// than the URI of a link, such as the other links of its page, or if precedence plugins rank links.
fn leave_out_known<D: Driver>(driver: &D, targets: &mut Vec<Target>) -> Result<(), D::Error> {
    let may_be_left_out = |target: &&Target| {
        target.stacks.precedence.is_empty() && judge_by_uri(&target.stacks.scope)
    };
    let links: Vec<&Candidate> = targets
        .iter()
        .filter(may_be_left_out)
        .map(|target| &target.candidate)
        .collect();
    if links.is_empty() {
        return Ok(());
    }
    let mut known = driver.known_links(&links)?.into_iter();
    targets.retain(|target| !may_be_left_out(&target) || known.next() != Some(true));
    Ok(())
}

/// Returns the scope's decisions on links with the same filters, in order. Recent decisions are reused; the filters decide on the
/// other links.
async fn decisions<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    group: &[Target],
    unjudged: &mut BTreeMap<Arc<str>, u64>,
) -> Result<Vec<Arc<ScopeDecision>>, D::Error> {
    let memory = driver.scope_memory();
    let known = |target: &Target| memory.and_then(|memory| memory.get(target.scope_question()));
    let mut decisions: Vec<Option<Arc<ScopeDecision>>> = group.iter().map(known).collect();
    let targets = group.iter().zip(&decisions);
    let undecided: Vec<&Target> = targets
        .filter(|(_, known)| known.is_none())
        .map(|(target, _)| target)
        .collect();
    if let Some(first) = undecided.first() {
        let stack = first.stacks.clone();
        let judge = |stacks: &Stacks, candidates: &Candidates| {
            scope::judge(&stacks.scope, &Stage::Scope, candidates, false)
        };
        let judged = call_for_group(pipeline, driver, &undecided, judge).await?;
        driver.failed(&judged.failures)?;
        if let Some(memory) = memory {
            let questions = undecided.iter().map(|target| target.scope_question());
            memory.keep(&stack.scope, questions, &judged);
        }
        for (plugin, links) in judged.unjudged {
            *unjudged.entry(plugin).or_default() += links;
        }
        let mut made = judged.decisions.into_iter().map(Arc::new);
        for decision in decisions.iter_mut().filter(|known| known.is_none()) {
            *decision = made.next();
        }
    }
    Ok(decisions.into_iter().flatten().collect())
}

/// Calls precedence plugins on links with the same plugins.
async fn ranks<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    group: &[Target],
    reading: &Reading,
) -> Result<Vec<Option<u8>>, D::Error> {
    if group
        .iter()
        .all(|target| target.stacks.precedence.is_empty())
    {
        return Ok(vec![None; group.len()]);
    }
    let page = reading.document.clone();
    let rank = move |stacks: &Stacks, candidates: &Candidates| {
        precedence::rank(&stacks.precedence, candidates, Some(&page))
    };
    let group: Vec<&Target> = group.iter().collect();
    let ranked = call_for_group(pipeline, driver, &group, rank).await?;
    driver.failed(&ranked.failures)?;
    Ok(ranked.ranks)
}

/// Calls the plugins that apply to the first link of a group on all links of the group.
async fn call_for_group<D: Driver, T: Send + 'static>(
    pipeline: &Pipeline,
    driver: &D,
    group: &[&Target],
    call: impl FnOnce(&Stacks, &Candidates) -> T + Send + 'static,
) -> Result<T, D::Error> {
    let stacks = group.first().map(|first| first.stacks.clone());
    let stacks = stacks.unwrap_or_default();
    let (uri, record) = (&pipeline.issue.uri, &pipeline.issue.record);
    let via_surt = uri.surt();
    let as_seen =
        |target: &&Target| plugin_view::outlink_candidate(uri, &via_surt, record, &target.link);
    let candidates: Candidates = group.iter().map(as_seen).collect();
    driver
        .run(Lane::Document, move || call(&stacks, &candidates))
        .await
}

/// The link as a candidate, without its context and attributes.
fn candidate(pipeline: &Pipeline, link: &Outlink) -> Candidate {
    let record = &pipeline.issue.record;
    Candidate {
        modified: link.modified,
        seed: record.seed && link.hop == Hop::Redirect,
        ..policy::candidate(
            &pipeline.profile,
            link.uri.clone(),
            record.hop_path.then(link.hop),
            Some(pipeline.issue.uri.as_str()),
            record.source.as_deref(),
        )
    }
}

/// Splits links into groups of alike links, in order.
fn grouped(all: Vec<Target>, is_alike: impl Fn(&Target, &Target) -> bool) -> Vec<Vec<Target>> {
    let mut groups: Vec<Vec<Target>> = Vec::new();
    for target in all {
        let alike = groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| is_alike(first, &target)));
        match alike {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}
