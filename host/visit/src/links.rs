//! The links of a page: the scope's decisions on them, their ranks by plugins, and the candidates for the frontier.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_frontier::{Candidate, Refused};
use opilio_sandbox::{Candidates, Stage};
use opilio_stacks::Stacks;
use opilio_uri::Hop;

use crate::driver::{Driver, Lane};
use crate::extraction::FoundLink;
use crate::pipeline::Pipeline;
use crate::reading::Reading;
use crate::{link_attributes, plugin_view, policy, precedence, scope};

/// The links of a page, judged.
#[derive(Default)]
pub(crate) struct Outlinks {
    pub(crate) accepted: Vec<Candidate>,
    /// The ranks that plugins gave them, in the same order.
    pub(crate) ranks: Vec<Option<u8>>,
    pub(crate) refused: Vec<Refused>,
    /// Scope filters that could not be asked, with the number of links affected.
    pub(crate) unjudged: BTreeMap<Arc<str>, u64>,
}

/// A link and the plugins that hold for its target.
struct Target {
    link: FoundLink,
    /// The link as plugins see it.
    seen: opilio_sandbox::Candidate,
    stacks: Arc<Stacks>,
}

/// Judges and ranks the links of a page.
pub(crate) async fn outlinks<D: Driver>(
    pipeline: &Arc<Pipeline>,
    driver: &D,
    reading: &Reading,
) -> Result<Outlinks, D::Error> {
    let mut links = reading.extracted.links.clone();
    if pipeline.is_robots() {
        // The redirects of a robots.txt have been followed already. They lead nowhere else.
        links.retain(|link| link.hop != Hop::Redirect);
    }
    if links.is_empty() {
        return Ok(Outlinks::default());
    }
    let (uri, record) = (&pipeline.issue.uri, &pipeline.issue.record);
    let redirect = links.iter().find(|link| link.hop == Hop::Redirect);
    if let Some(redirect) = redirect.filter(|_| record.seed) {
        let seed = record.source.as_deref().unwrap_or(uri.as_str());
        driver.seed_moved(seed, &redirect.uri).await?;
    }
    let via_surt = uri.surt();
    let targets = links.into_iter().map(|link| Target {
        seen: plugin_view::found_candidate(uri, &via_surt, record, &link),
        stacks: pipeline.stacks_of(&pipeline.settings_for(&link.uri, None)),
        link,
    });
    let mut accepted = Vec::new();
    let mut outlinks = Outlinks::default();
    // There is nearly always one group only: filters are asked once about the links of a page.
    for group in grouped(targets.collect(), |one, other| {
        one.stacks.scope_hash == other.stacks.scope_hash
    }) {
        let judge = |stacks: &Stacks, candidates: &Candidates| {
            scope::judge(&stacks.scope, &Stage::Scope, candidates, false)
        };
        let judged = ask_about(driver, &group, judge).await?;
        driver.failed(&judged.failures)?;
        for (plugin, links) in judged.unjudged {
            *outlinks.unjudged.entry(plugin).or_default() += links;
        }
        let uris = group.iter().map(|target| &target.link.uri);
        driver.judged_links(uris.zip(&judged.decisions))?;
        for (target, decision) in group.into_iter().zip(&judged.decisions) {
            if decision.accepted {
                accepted.push(target);
            } else {
                outlinks.refused.push(Refused {
                    reason: decision.because(),
                    uri: target.link.uri,
                });
            }
        }
    }
    for group in grouped(accepted, |one, other| {
        Arc::ptr_eq(&one.stacks, &other.stacks)
    }) {
        outlinks.ranks.extend(ranks(driver, &group, reading).await?);
        let candidates = group.into_iter().map(|target| Candidate {
            scope: target.stacks.scope_hash,
            ..candidate(pipeline, target.link)
        });
        outlinks.accepted.extend(candidates);
    }
    for (candidate, rank) in outlinks.accepted.iter_mut().zip(&outlinks.ranks) {
        candidate.precedence = rank.unwrap_or(candidate.precedence);
    }
    Ok(outlinks)
}

/// Asks precedence plugins about links for which the same ones hold.
async fn ranks<D: Driver>(
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
    let ranked = ask_about(driver, group, rank).await?;
    driver.failed(&ranked.failures)?;
    Ok(ranked.ranks)
}

/// Asks the plugins that hold for the first link of a group about all of it.
async fn ask_about<D: Driver, T: Send + 'static>(
    driver: &D,
    group: &[Target],
    ask: impl FnOnce(&Stacks, &Candidates) -> T + Send + 'static,
) -> Result<T, D::Error> {
    let stacks = group.first().map(|first| first.stacks.clone());
    let stacks = stacks.unwrap_or_default();
    let candidates: Candidates = group.iter().map(|target| target.seen.clone()).collect();
    driver
        .run(Lane::Document, move || ask(&stacks, &candidates))
        .await
}

fn candidate(pipeline: &Pipeline, link: FoundLink) -> Candidate {
    let record = &pipeline.issue.record;
    Candidate {
        context: link.context,
        modified: link.modified,
        link_attributes: link_attributes::for_record(link.attributes),
        seed: record.seed && link.hop == Hop::Redirect,
        ..policy::candidate(
            &pipeline.profile,
            link.uri,
            record.hop_path.then(link.hop),
            Some(pipeline.issue.uri.as_str()),
            record.source.as_deref(),
        )
    }
}

/// Splits links into groups of those that are alike, in order.
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
