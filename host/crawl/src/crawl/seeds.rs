//! Seeds as candidates for the frontier, and as lines of the job's copy.

use jiff::Timestamp;
use opilio_frontier::{Candidate, Directive};
use opilio_profile::{Profile, Seed, Seeds};
use opilio_sandbox::Candidates;
use opilio_uri::{HopPath, Uri};

use super::Crawl;
use crate::error::Halt;
use opilio_job::End;
use opilio_visit::plugin_view;
use opilio_visit::policy;
use opilio_visit::precedence;

/// Seeds scheduled at once.
pub(super) const SEED_BATCH: usize = 10_000;

impl Crawl {
    pub(super) fn schedule_seeds(&self) -> Result<(), opilio_frontier::Error> {
        let context = &self.context;
        let mut candidates: Vec<Candidate> = context
            .profile
            .seeds
            .list
            .iter()
            .map(|Seed { uri, .. }| seed_candidate(&context.profile, uri))
            .collect();
        for batch in candidates.chunks_mut(SEED_BATCH) {
            self.rank_seeds(batch);
            context
                .frontier()
                .schedule(batch.to_vec(), Timestamp::now())?;
        }
        Ok(())
    }

    /// Gives seeds the precedence that plugins return. Other seeds keep that of the profile.
    fn rank_seeds(&self, seeds: &mut [Candidate]) {
        let context = &self.context;
        let stacks = context.stacks();
        if stacks.precedence.is_empty() {
            return;
        }
        let seen: Candidates = seeds.iter().map(plugin_view::seed).collect();
        let ranked = context
            .lanes
            .wait(move || precedence::rank(&stacks.precedence, &seen, None));
        let ranked = ranked.map_err(Halt::from).and_then(|ranked| {
            context.failures(&ranked.failures)?;
            Ok(ranked.ranks)
        });
        match ranked {
            Ok(ranks) => {
                for (seed, rank) in seeds.iter_mut().zip(ranks) {
                    seed.precedence = rank.unwrap_or(seed.precedence);
                }
            }
            Err(halt) => self.stop.end(End::Halted(halt.told())),
        }
    }
}

/// Returns the candidate for a seed.
pub fn seed_candidate(profile: &Profile, uri: &Uri) -> Candidate {
    Candidate {
        seed: true,
        directive: Directive::Medium,
        ..policy::candidate(
            profile,
            uri.clone(),
            HopPath::new(),
            None,
            Some(uri.as_str()),
        )
    }
}

/// Returns seeds, one a line. Reading the lines back gives the same seeds and the same scope. The prefix that a seed implies
/// depends on the way it was written. A prefix that the seed's normal form does not imply gets a line of its own.
pub fn seed_lines(seeds: &Seeds) -> Vec<String> {
    let mut lines = Vec::new();
    for seed in &seeds.list {
        lines.push(seed.uri.to_string());
        if opilio_uri::implied_surt_prefix(seed.uri.as_str()).as_ref() != Ok(&seed.surt_prefix) {
            lines.push(format!("+{}", seed.surt_prefix));
        }
    }
    let prefixes = seeds.surt_prefixes.iter();
    lines.extend(prefixes.map(|prefix| format!("+{prefix}")));
    lines
}
