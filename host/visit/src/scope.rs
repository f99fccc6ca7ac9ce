//! The scope stack, which is called once for all outlinks of a page. It decides which found URIs belong to the crawl.
//!
//! The last ruling that is not `pass` decides. If all pass, the URI is out of scope. The scope fails closed: if the call of a
//! filter on a URI fails, the URI is not crawled, unless the profile sets otherwise.

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
    /// `true` if the candidate is in scope.
    pub accepted: bool,
    /// The filter that decided; `None` if all filters passed.
    pub by: Option<String>,
    /// Its reason; may be empty.
    pub reason: String,
    /// `true` if a plugin error decided, not an answer of a filter.
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
    /// One decision for each candidate, in order.
    pub decisions: Vec<ScopeDecision>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// Filters whose calls failed for some candidates, with the number of these candidates.
    pub unjudged: BTreeMap<Arc<str>, u64>,
}

/// The answer of one filter in a decision on a candidate. Filters that do not handle the candidate's URI have no such answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPart<'a> {
    /// The filter's guards reject the candidate.
    Guarded,
    /// The filter's verdict and reason.
    Ruled(&'a Verdict, &'a str),
    /// The call failed, with the reason.
    Failed(&'a str),
}

/// Calls the stack on a batch. `accepts` applies if all filters pass: `false` at the stage scope, `true` at the stage pre-fetch.
pub fn judge(
    stack: &[Staged],
    stage: &Stage,
    candidates: &Candidates,
    accepts: bool,
) -> ScopeJudgement {
    judge_and_report(stack, stage, candidates, accepts, |_, _| {})
}

/// Calls the stack as [`judge`] does, and passes the answer of each filter, with its index in the stack, to `report`: for each
/// candidate, in order.
pub fn judge_and_report(
    stack: &[Staged],
    stage: &Stage,
    candidates: &Candidates,
    accepts: bool,
    mut report: impl FnMut(usize, FilterPart<'_>),
) -> ScopeJudgement {
    let default_decision = ScopeDecision {
        accepted: accepts,
        by: None,
        reason: String::new(),
        failed: false,
    };
    let mut judged = ScopeJudgement {
        decisions: vec![default_decision; candidates.len()],
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
                GuardVerdict::No => report(index, FilterPart::Guarded),
                GuardVerdict::Unknown(reason) => {
                    report(index, FilterPart::Failed(reason));
                    judged.record_failure(place, staged, staged.policy.stands_for, reason);
                }
            }
        }
        places.retain(|&place| seen[place] == GuardVerdict::Yes);
        let answers = batch::judge_all(staged, stage, candidates, &places);
        judged.failures.extend(answers.failures);
        for (place, answer) in answers.list.into_iter().enumerate() {
            match answer {
                BatchAnswer::NotCalled => {}
                BatchAnswer::Ruled(ruling) => {
                    report(index, FilterPart::Ruled(&ruling.verdict, &ruling.reason));
                    match ruling.verdict {
                        Verdict::Accept => judged.decide(place, staged, true, ruling.reason),
                        Verdict::Reject => judged.decide(place, staged, false, ruling.reason),
                        _ => {}
                    }
                }
                BatchAnswer::Failed(missing) => {
                    report(index, FilterPart::Failed(&missing.reason));
                    judged.record_failure(place, staged, missing.stands_for, &missing.reason);
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

    /// Records that the call of a filter failed. A later filter may still decide otherwise.
    fn record_failure(
        &mut self,
        place: usize,
        staged: &Staged,
        stands_for: Option<bool>,
        reason: &str,
    ) {
        *self.unjudged.entry(staged.name.clone()).or_default() += 1;
        if let Some(accepted) = stands_for {
            self.decide(place, staged, accepted, reason.to_owned());
            self.decisions[place].failed = true;
        }
    }
}
