//! Guards: filters that decide whether one plugin of a stack sees a document or a candidate (stage `plugin`).
//!
//! A plugin that may not see a document or candidate is skipped, as if it were not in the stack. The last guard that does not pass
//! decides. If all pass, the plugin sees it. A guard is asked once about the document of a visit, fragments included, for all
//! plugins that it guards. At each stage it is asked once about the candidates of a page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use opilio_sandbox::{Candidates, Document, Stage, Verdict, Visit};

use crate::Staged;
use crate::batch::{self, BatchAnswer};
use crate::breaker::Failure;

/// The answers of guards about the document of one visit.
#[derive(Default)]
pub struct Guards(Mutex<GuardAnswers>);

#[derive(Default)]
struct GuardAnswers {
    /// Verdicts by the guard's name; `None` if the guard passed or could not be asked.
    verdicts: HashMap<Arc<str>, Option<bool>>,
    failures: Vec<Failure>,
}

impl Guards {
    /// Returns `true` if a plugin may see the document. A guard that fails does not decide.
    pub fn admit(&self, staged: &Staged, document: &Document, visit: &Visit) -> bool {
        if staged.guards.is_empty() {
            return true;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let verdicts = staged
            .guards
            .iter()
            .map(|guard| known.of(guard, document, visit));
        let verdicts: Vec<_> = verdicts.collect();
        verdicts.into_iter().flatten().last().unwrap_or(true)
    }

    /// Returns the failures of guards since the last call of this function.
    pub fn take_failures(&self) -> Vec<Failure> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut known.failures)
    }
}

impl GuardAnswers {
    fn of(&mut self, guard: &Staged, document: &Document, visit: &Visit) -> Option<bool> {
        if let Some(verdict) = self.verdicts.get(&guard.name) {
            return *verdict;
        }
        let handles = guard.plugin.handles(document.media_type(), document.uri());
        let verdict = match handles {
            false => None,
            true => match guard.judge_document(&Stage::Plugin, document, visit) {
                Ok(ruling) => allows(&ruling.verdict),
                Err(unanswered) => {
                    let stands_for = unanswered.stands_for();
                    self.failures.extend(unanswered.failure());
                    stands_for
                }
            },
        };
        self.verdicts.insert(guard.name.clone(), verdict);
        verdict
    }
}

/// The answers of guards about candidates that are judged together.
pub struct CandidateGuards<'c> {
    candidates: &'c Candidates,
    answers: HashMap<Arc<str>, Vec<BatchAnswer>>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
}

/// Whether a plugin may see a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardVerdict {
    /// The plugin may see it.
    Yes,
    /// A guard refuses.
    No,
    /// A guard could not be asked, with the reason. The plugin then counts as one that could not be asked.
    Unknown(String),
}

impl<'c> CandidateGuards<'c> {
    /// Creates the answers before any guard is asked.
    pub fn new(candidates: &'c Candidates) -> CandidateGuards<'c> {
        CandidateGuards {
            candidates,
            answers: HashMap::new(),
            failures: Vec::new(),
        }
    }

    /// Returns whether a plugin may see the candidates, one answer for each candidate.
    pub fn seen_by(&mut self, staged: &Staged) -> Vec<GuardVerdict> {
        let mut seen = vec![GuardVerdict::Yes; self.candidates.len()];
        for guard in &staged.guards {
            for (seen, answer) in seen.iter_mut().zip(self.of(guard)) {
                match answer {
                    BatchAnswer::NotCalled => {}
                    BatchAnswer::Failed(missing) => {
                        *seen = match missing.stands_for {
                            Some(true) => GuardVerdict::Yes,
                            Some(false) => GuardVerdict::No,
                            None => GuardVerdict::Unknown(missing.reason.clone()),
                        }
                    }
                    BatchAnswer::Ruled(ruling) => match allows(&ruling.verdict) {
                        Some(true) => *seen = GuardVerdict::Yes,
                        Some(false) => *seen = GuardVerdict::No,
                        None => {}
                    },
                }
            }
        }
        seen
    }

    fn of(&mut self, guard: &Staged) -> &[BatchAnswer] {
        let candidates = self.candidates;
        let failures = &mut self.failures;
        self.answers.entry(guard.name.clone()).or_insert_with(|| {
            let places = handled(guard, candidates);
            let answers = batch::judge_all(guard, &Stage::Plugin, candidates, &places);
            failures.extend(answers.failures);
            answers.list
        })
    }
}

/// Returns the indices of the candidates that a plugin is to be asked about.
pub fn handled(staged: &Staged, candidates: &Candidates) -> Vec<usize> {
    let all = candidates.iter().enumerate();
    all.filter(|(_, candidate)| staged.plugin.handles_uri(&candidate.uri))
        .map(|(place, _)| place)
        .collect()
}

fn allows(verdict: &Verdict) -> Option<bool> {
    match verdict {
        Verdict::Accept => Some(true),
        Verdict::Reject => Some(false),
        _ => None,
    }
}
