//! The links of a page: which are in the scope, what plugins rank them, and what the frontier is given of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_frontier::{Candidate, Refused};
use opilio_sandbox::{Candidates, Stage};
use opilio_uri::{Hop, Uri};

use super::Chain;
use crate::context::Halt;
use opilio_stacks::Stacks;
use opilio_visit::extraction::FoundLink;
use opilio_visit::found;
use opilio_visit::link_attributes;
use opilio_visit::policy;
use opilio_visit::precedence;
use opilio_visit::scope;
use opilio_visit::standing;

/// What became of the links of a page.
#[derive(Default)]
pub(super) struct Outlinks {
    pub(super) accepted: Vec<Candidate>,
    /// What plugins have ranked them, in the same order.
    pub(super) ranks: Vec<Option<u8>>,
    pub(super) refused: Vec<Refused>,
    /// Filters of the scope that could not be asked, and about how many links.
    pub(super) unjudged: BTreeMap<Arc<str>, u64>,
}

/// A link, and what decides about it.
struct Found {
    link: FoundLink,
    /// The same as plugins see it.
    seen: opilio_sandbox::Candidate,
    /// The plugins that hold for its target.
    stacks: Arc<Stacks>,
}

impl Chain<'_> {
    /// Links as candidates for the frontier, and those out of scope.
    pub(super) async fn outlinks(&self, reading: &found::Reading) -> Result<Outlinks, Halt> {
        let mut links = reading.extracted.links.clone();
        if self.is_robots() {
            // They have been followed already, and lead nowhere else.
            links.retain(|link| link.hop != Hop::Redirect);
        }
        if links.is_empty() {
            return Ok(Outlinks::default());
        }
        let record = &self.issue.record;
        if let Some(redirect) = links
            .iter()
            .find(|link| link.hop == Hop::Redirect && record.seed)
        {
            let seed = record.source.as_deref().unwrap_or(self.issue.uri.as_str());
            self.context.seed_moved(seed, &redirect.uri).await?;
        }
        let via_surt = self.issue.uri.surt();
        let found = links.into_iter().map(|link| Found {
            seen: standing::found_candidate(&self.issue.uri, &via_surt, record, &link),
            stacks: self.stacks_for(&link.uri),
            link,
        });
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        let mut unjudged = BTreeMap::new();
        // Nearly always one group of all: filters are asked once about the links of a page.
        for group in grouped(found.collect(), |one, other| {
            one.stacks.scope_hash == other.stacks.scope_hash
        }) {
            let judged = self
                .ask_about(&group, |stacks, candidates| {
                    scope::judge(&stacks.scope, &Stage::Scope, candidates, false)
                })
                .await?;
            self.context.failures(&judged.failures)?;
            for (plugin, links) in judged.unjudged {
                *unjudged.entry(plugin).or_default() += links;
            }
            if self.context.logs.has_scope() {
                let because: Vec<String> = judged.decisions.iter().map(|it| it.because()).collect();
                let judged = group.iter().zip(&judged.decisions).zip(&because);
                let lines = judged.map(|((found, decision), because)| {
                    (found.link.uri.as_str(), decision.accepted, because.as_str())
                });
                self.context.logs.scope(self.issue.uri.as_str(), lines)?;
            }
            for (found, decision) in group.into_iter().zip(&judged.decisions) {
                if decision.accepted {
                    accepted.push(found);
                } else {
                    refused.push(Refused {
                        reason: decision.because(),
                        uri: found.link.uri,
                    });
                }
            }
        }
        let mut outlinks = Outlinks {
            refused,
            unjudged,
            ..Outlinks::default()
        };
        for group in grouped(accepted, |one, other| {
            Arc::ptr_eq(&one.stacks, &other.stacks)
        }) {
            outlinks.ranks.extend(self.ranks(&group, reading).await?);
            outlinks
                .accepted
                .extend(group.into_iter().map(|found| Candidate {
                    scope: found.stacks.scope_hash,
                    ..self.candidate(found.link)
                }));
        }
        for (candidate, rank) in outlinks.accepted.iter_mut().zip(&outlinks.ranks) {
            candidate.precedence = rank.unwrap_or(candidate.precedence);
        }
        Ok(outlinks)
    }

    /// The plugins that hold for a link's target.
    fn stacks_for(&self, target: &Uri) -> Arc<Stacks> {
        self.stacks_of(&self.settings_for(target, None))
    }

    /// What precedence plugins say of links for which the same ones hold.
    async fn ranks(
        &self,
        group: &[Found],
        reading: &found::Reading,
    ) -> Result<Vec<Option<u8>>, Halt> {
        if group.iter().all(|found| found.stacks.precedence.is_empty()) {
            return Ok(vec![None; group.len()]);
        }
        let page = reading.document.clone();
        let ranked = self
            .ask_about(group, move |stacks, candidates| {
                precedence::rank(&stacks.precedence, candidates, Some(&page))
            })
            .await?;
        self.context.failures(&ranked.failures)?;
        Ok(ranked.ranks)
    }

    /// Asks plugins about links, on a document lane: those that hold for the first of them.
    async fn ask_about<T: Send + 'static>(
        &self,
        group: &[Found],
        ask: impl FnOnce(&Stacks, &Candidates) -> T + Send + 'static,
    ) -> Result<T, Halt> {
        let stacks = match group.first() {
            Some(first) => first.stacks.clone(),
            None => self.stacks.clone(),
        };
        let candidates: Candidates = group.iter().map(|found| found.seen.clone()).collect();
        let answer = self
            .context
            .lanes
            .document(self.site(), 0, move |_| ask(&stacks, &candidates))
            .await?;
        Ok(answer)
    }

    pub(super) fn candidate(&self, link: FoundLink) -> Candidate {
        let record = &self.issue.record;
        Candidate {
            context: link.context,
            modified: link.modified,
            kept: link_attributes::kept(&link.attributes),
            seed: record.seed && link.hop == Hop::Redirect,
            ..policy::candidate(
                &self.context.current(),
                link.uri,
                record.hop_path.then(link.hop),
                Some(self.issue.uri.as_str()),
                record.source.as_deref(),
            )
        }
    }
}

/// In groups of those that are alike, in order.
fn grouped(all: Vec<Found>, is_alike: impl Fn(&Found, &Found) -> bool) -> Vec<Vec<Found>> {
    let mut groups: Vec<Vec<Found>> = Vec::new();
    for found in all {
        let alike = groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| is_alike(first, &found)));
        match alike {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    groups
}
