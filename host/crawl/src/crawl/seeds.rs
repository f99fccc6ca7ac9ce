//! Seeds as candidates for the frontier, and as lines of the job's copy.

use std::sync::PoisonError;

use jiff::Timestamp;
use opilio_frontier::{Candidate, Directive, UriRecord};
use opilio_profile::{Profile, Seed, Seeds};
use opilio_sandbox::Candidates;
use opilio_uri::{HopPath, Uri};

use super::Crawl;
use crate::context::CrawlContext;
use crate::error::Halt;
use opilio_job::End;
use opilio_job::seed_outcome::{KEPT_MAX, KeptFailures, SeedOutcome, SeedOutcomes, keep_failures};
use opilio_visit::plugin_view;
use opilio_visit::policy;
use opilio_visit::precedence;
use opilio_visit::redirect;

/// Seeds scheduled at once.
pub(super) const SEED_BATCH: usize = 10_000;

impl Crawl {
    pub(super) fn schedule_seeds(&self) -> Result<(), opilio_frontier::FrontierError> {
        let context = &self.context;
        let mut candidates: Vec<Candidate> = context
            .profile
            .seeds
            .list
            .iter()
            .map(|Seed { uri, .. }| seed_candidate(&context.profile, uri))
            .filter(|seed| context.has_own(seed))
            .collect();
        for batch in candidates.chunks_mut(SEED_BATCH) {
            self.rank_seeds(batch);
            context
                .frontier()
                .schedule(batch.to_vec(), Timestamp::now())?;
        }
        Ok(())
    }

    /// Sets the precedence that plugins return for seeds. Seeds without an answer keep the profile's precedence.
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
            Err(halt) => self.stop.end(End::Halted(halt.message())),
        }
    }
}

/// Status codes of attempts that failed because of the network or the server (`docs/OPERATING.md`).
const NETWORK_ERRORS: [i32; 8] = [-1, -2, -3, -4, -6, -9, -61, -404];

impl Crawl {
    /// Returns the outcomes of all seeds, and keeps the errors of those that were not fetched.
    pub(super) fn seed_outcomes(&self) -> Result<SeedOutcomes, opilio_frontier::FrontierError> {
        let mut outcomes = SeedOutcomes::default();
        let mut failures = Vec::new();
        let kept = KeptFailures::read(&self.context.frontier())?;
        let profile = self.context.current();
        for Seed { uri, .. } in &profile.seeds.list {
            if !self.context.has_own(&seed_candidate(&profile, uri)) {
                continue;
            }
            let mut outcome = self.seed_outcome(uri)?;
            if let SeedOutcome::Failed(failure) = &mut outcome {
                kept.recall(failure);
                if failures.len() < KEPT_MAX {
                    failures.push(failure.clone());
                }
            }
            outcomes.count(outcome);
        }
        if let Err(problem) = keep_failures(&mut self.context.frontier(), &failures) {
            tracing::debug!("cannot keep the errors of seeds: {problem}");
        }
        Ok(outcomes)
    }

    fn seed_outcome(&self, seed: &Uri) -> Result<SeedOutcome, opilio_frontier::FrontierError> {
        let frontier = self.context.frontier();
        let record = frontier.record(seed)?;
        let end = match &record {
            Some(record) => redirect::end_of(&frontier, record)?,
            None => None,
        };
        drop(frontier);
        let last_error = |record: &UriRecord| self.context.last_error(record);
        Ok(SeedOutcome::of(
            seed.as_str(),
            record.as_ref(),
            end.as_ref(),
            last_error,
        ))
    }
}

impl CrawlContext {
    /// Returns the reason for which a URI was not fetched: the decision against it, or the last error of its server in this
    /// process. Empty if neither is known.
    pub fn last_error(&self, record: &UriRecord) -> String {
        let reason = &record.reason;
        let tallies = &self.figures.tallies;
        let tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue's last error may belong to another URI: a decision against this URI has no error.
        let tally = tallies.get(&record.queue).filter(|tally| {
            tally.last_status == record.status && NETWORK_ERRORS.contains(&record.status)
        });
        let last = tally.map(|tally| &tally.last_error);
        match last.filter(|last| !last.is_empty() && *last != reason) {
            Some(last) if reason.is_empty() => last.clone(),
            Some(last) => format!("{reason}: {last}"),
            None => reason.clone(),
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

/// Returns seeds, one a line. Reading the lines gives the same seeds and the same scope. The prefix that a seed implies depends on
/// the way the seed was written. A prefix that the normalised seed does not imply gets a separate line.
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
