//! Seeds as candidates for the frontier, and as lines of the job's copy.

use std::sync::PoisonError;

use jiff::Timestamp;
use opilio_frontier::{Candidate, Directive, UriRecord, is_fetched};
use opilio_profile::{Profile, Seed, Seeds};
use opilio_sandbox::Candidates;
use opilio_uri::{HopPath, Uri};

use super::Crawl;
use crate::error::Halt;
use opilio_job::End;
use opilio_job::seed_outcome::{SeedFailure, SeedOutcome, SeedOutcomes};
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
            Err(halt) => self.stop.end(End::Halted(halt.message())),
        }
    }
}

/// Statuses of attempts that the network or the server has failed (`docs/GLOSSARY.md`).
const NETWORK_ERRORS: [i32; 8] = [-1, -2, -3, -4, -6, -9, -61, -404];

/// Name of the value in the frontier with the seeds that were not fetched, as JSON. A later process of the job does not visit
/// them again, and knows their errors from it.
const FAILURES: &str = "seed-failures";

impl Crawl {
    /// Returns the outcomes of all seeds, and keeps those that were not fetched.
    pub(super) fn seed_outcomes(&self) -> Result<SeedOutcomes, opilio_frontier::FrontierError> {
        let mut outcomes = SeedOutcomes::default();
        let kept = self.context.frontier().caller_value(FAILURES)?;
        let kept: Vec<SeedFailure> = kept
            .and_then(|json| serde_json::from_slice(&json).ok())
            .unwrap_or_default();
        let profile = self.context.current();
        for Seed { uri, .. } in &profile.seeds.list {
            if self.context.has_own(&seed_candidate(&profile, uri)) {
                outcomes.count(self.seed_outcome(uri)?);
            }
        }
        for failure in &mut outcomes.failed {
            failure.recall(&kept);
        }
        let failed = serde_json::to_vec(&outcomes.failed).unwrap_or_default();
        if let Err(problem) = self.context.frontier().put_caller_value(FAILURES, &failed) {
            tracing::debug!("cannot keep the errors of seeds: {problem}");
        }
        Ok(outcomes)
    }

    fn seed_outcome(&self, seed: &Uri) -> Result<SeedOutcome, opilio_frontier::FrontierError> {
        let frontier = self.context.frontier();
        let Some(record) = frontier.record(seed)?.filter(|record| record.status != 0) else {
            return Ok(SeedOutcome::Unvisited);
        };
        let end = redirect::end_of(&frontier, &record)?;
        drop(frontier);
        let failed = |record: &UriRecord, redirect, error| {
            SeedOutcome::Failed(SeedFailure {
                uri: seed.as_str().to_owned(),
                redirect,
                status: record.status,
                error,
            })
        };
        Ok(match end {
            None if is_fetched(record.status) => SeedOutcome::Fetched,
            None => failed(&record, None, self.last_error(&record)),
            Some((_, Some(end))) if end.status == 0 => SeedOutcome::Unvisited,
            Some((_, Some(end))) if is_fetched(end.status) => SeedOutcome::Fetched,
            Some((uri, Some(end))) => {
                failed(&end, Some(uri.as_str().to_owned()), self.last_error(&end))
            }
            Some((uri, None)) => {
                let error = "the target was not fetched; `opilio frontier why JOB URI` explains it";
                failed(&record, Some(uri.as_str().to_owned()), error.to_owned())
            }
        })
    }

    /// Returns the reason for which a URI was not fetched: the decision against it, or the last error of its server.
    fn last_error(&self, record: &UriRecord) -> String {
        let reason = &record.reason;
        let tallies = &self.context.figures.tallies;
        let tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue's last error may be of another URI: a decision against this one has none.
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
