//! Calls of one filter about many candidates. All candidates go into one call. If that call fails, each candidate gets a call of
//! its own, so that one malformed link does not cost a page all the others.

use opilio_sandbox::{Candidates, Ruling, Stage};

use crate::Staged;
use crate::breaker::{Failure, UnansweredCall};

/// Most single calls of a batch in which a filter may fail before the other candidates are given up: each may take the time limit.
const SINGLE_FAILURES_MAX: usize = 8;

/// A filter's answers about candidates.
pub struct FilterAnswers {
    /// One for each candidate, in order.
    pub list: Vec<BatchAnswer>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
}

/// A filter's answer about one candidate.
#[derive(Clone, Debug)]
pub enum BatchAnswer {
    /// The filter was not called for this candidate.
    NotCalled,
    /// Its ruling.
    Ruled(Ruling),
    /// The filter gave no answer.
    Failed(MissingAnswer),
}

/// An answer that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAnswer {
    /// The reason.
    pub reason: String,
    /// The profile's substitute for the answer: `true` for accept; `None` if the filter does not decide then.
    pub stands_for: Option<bool>,
}

/// Calls a filter on the candidates at the indices in `places`.
pub fn judge_all(
    staged: &Staged,
    stage: &Stage,
    candidates: &Candidates,
    places: &[usize],
) -> FilterAnswers {
    let mut answers = FilterAnswers {
        list: vec![BatchAnswer::NotCalled; candidates.len()],
        failures: Vec::new(),
    };
    if places.is_empty() {
        return answers;
    }
    let batch = match places.len() == candidates.len() {
        true => candidates.clone(),
        false => places
            .iter()
            .filter_map(|&place| candidates.get(place).cloned())
            .collect(),
    };
    let judge = |batch: &Candidates| staged.judge_candidates(stage, batch);
    let unanswered = match judge(&batch) {
        Ok(rulings) => {
            for (&place, ruling) in places.iter().zip(rulings) {
                answers.list[place] = BatchAnswer::Ruled(ruling);
            }
            return answers;
        }
        Err(unanswered) => unanswered,
    };
    let mut missing = missing(&unanswered);
    let was_called = unanswered.was_called();
    answers.failures.extend(unanswered.failure());
    let mut failures_left = match was_called && batch.len() > 1 {
        true => SINGLE_FAILURES_MAX,
        false => 0,
    };
    for (&place, candidate) in places.iter().zip(&batch) {
        if failures_left == 0 {
            answers.list[place] = BatchAnswer::Failed(missing.clone());
            continue;
        }
        match judge(&Candidates::new(vec![candidate.clone()])) {
            Ok(mut rulings) => {
                answers.list[place] = rulings
                    .pop()
                    .map_or(BatchAnswer::NotCalled, BatchAnswer::Ruled);
            }
            Err(unanswered) => {
                failures_left = match unanswered.was_called() {
                    true => failures_left - 1,
                    false => 0,
                };
                missing = self::missing(&unanswered);
                answers.list[place] = BatchAnswer::Failed(missing.clone());
                answers.failures.extend(unanswered.failure());
            }
        }
    }
    answers
}

fn missing(unanswered: &UnansweredCall) -> MissingAnswer {
    MissingAnswer {
        reason: unanswered.reason(),
        stands_for: unanswered.stands_for(),
    }
}
