//! The scope stack, asked once for all outlinks of a page. It decides which found URIs belong to the crawl.
//!
//! The last ruling that is not `pass` decides. If all pass, the URI is out of scope. The scope fails closed: if a filter cannot
//! be asked about a URI, the URI is not crawled, unless the profile sets otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use opilio_sandbox::{Candidates, Stage, Verdict};

use opilio_stacks::Staged;
use opilio_stacks::batch::{self, BatchAnswer};
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::{CandidateGuards, GuardVerdict, handled};

/// The scope's decision on one candidate.
#[derive(Clone, Debug)]
pub struct ScopeDecision {
    /// `true` if it is in scope.
    pub accepted: bool,
    /// The filter that decided; none if all passed.
    pub by: Option<String>,
    /// Its reason; may be empty.
    pub reason: String,
    /// `true` if a missing answer decided.
    pub failed: bool,
}

impl ScopeDecision {
    /// Returns the filter that decided and its reason, as an annotation.
    pub fn because(&self) -> String {
        match &self.by {
            Some(by) if self.reason.is_empty() => by.clone(),
            Some(by) => format!("{by}:{}", self.reason),
            None => String::new(),
        }
    }
}

/// Decisions on a batch, and the calls that failed.
pub struct ScopeJudgement {
    /// One for each candidate, in order.
    pub decisions: Vec<ScopeDecision>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// Filters that could not be asked about some candidates, with the number of these candidates.
    pub unjudged: BTreeMap<Arc<str>, u64>,
}

/// The part of one filter in a decision on a candidate. Filters that do not handle its URI have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPart<'a> {
    /// Its guards keep it from seeing the candidate.
    Guarded,
    /// Its verdict and the reason.
    Ruled(&'a Verdict, &'a str),
    /// It could not be asked, and why.
    Failed(&'a str),
}

/// Asks the stack about a batch. `accepts` applies if all pass: false at scope, true before a fetch.
pub fn judge(
    stack: &[Staged],
    stage: &Stage,
    candidates: &Candidates,
    accepts: bool,
) -> ScopeJudgement {
    judge_and_tell(stack, stage, candidates, accepts, |_, _| {})
}

/// Asks as [`judge`] does. Passes the part of each filter, by its index in the stack, to `tell`: for each candidate, in order.
pub fn judge_and_tell(
    stack: &[Staged],
    stage: &Stage,
    candidates: &Candidates,
    accepts: bool,
    mut tell: impl FnMut(usize, FilterPart<'_>),
) -> ScopeJudgement {
    let unasked = ScopeDecision {
        accepted: accepts,
        by: None,
        reason: String::new(),
        failed: false,
    };
    let mut judged = ScopeJudgement {
        decisions: vec![unasked; candidates.len()],
        failures: Vec::new(),
        unjudged: BTreeMap::new(),
    };
    let mut guards = CandidateGuards::new(candidates);
    for (index, staged) in stack.iter().enumerate() {
        let seen = guards.seen_by(staged);
        let mut places = handled(staged, candidates);
        for &place in &places {
            match &seen[place] {
                GuardVerdict::Yes => {}
                GuardVerdict::No => tell(index, FilterPart::Guarded),
                GuardVerdict::Unknown(reason) => {
                    tell(index, FilterPart::Failed(reason));
                    judged.miss(place, staged, staged.policy.stands_for, reason);
                }
            }
        }
        places.retain(|&place| seen[place] == GuardVerdict::Yes);
        let answers = batch::ask(staged, stage, candidates, &places);
        judged.failures.extend(answers.failures);
        for (place, answer) in answers.list.into_iter().enumerate() {
            match answer {
                BatchAnswer::NotAsked => {}
                BatchAnswer::Ruled(ruling) => {
                    tell(index, FilterPart::Ruled(&ruling.verdict, &ruling.reason));
                    match ruling.verdict {
                        Verdict::Accept => judged.decide(place, staged, true, ruling.reason),
                        Verdict::Reject => judged.decide(place, staged, false, ruling.reason),
                        _ => {}
                    }
                }
                BatchAnswer::Failed(missing) => {
                    tell(index, FilterPart::Failed(&missing.reason));
                    judged.miss(place, staged, missing.stands_for, &missing.reason);
                }
            }
        }
    }
    judged.failures.extend(guards.failures);
    judged
}

impl ScopeJudgement {
    fn decide(&mut self, place: usize, staged: &Staged, accepted: bool, reason: String) {
        self.decisions[place] = ScopeDecision {
            accepted,
            by: Some(staged.name.to_string()),
            reason,
            failed: false,
        };
    }

    /// Records that a filter could not be asked. A later filter that has answered may still decide otherwise.
    fn miss(&mut self, place: usize, staged: &Staged, stands_for: Option<bool>, reason: &str) {
        *self.unjudged.entry(staged.name.clone()).or_default() += 1;
        if let Some(accepted) = stands_for {
            self.decide(place, staged, accepted, reason.to_owned());
            self.decisions[place].failed = true;
        }
    }
}
