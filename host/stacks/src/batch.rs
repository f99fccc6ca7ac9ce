//! Calls of one filter about many candidates. All candidates go into one call. If that call fails, each candidate gets a call of
//! its own, so that one malformed link does not cost a page all the others.

use opilio_sandbox::{Candidates, Ruling, Stage};

use crate::Staged;
use crate::breaker::{Failure, UnansweredCall};

/// Most candidates of a batch on which a filter may fail one by one before the rest is given up: each may cost its time limit.
const FAULTS_ALONE_MAX: usize = 8;

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
    /// It was not asked.
    NotAsked,
    /// Its ruling.
    Ruled(Ruling),
    /// It could not be asked.
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

/// Asks a filter about the candidates at the indices in `places`.
pub fn ask(
    staged: &Staged,
    stage: &Stage,
    candidates: &Candidates,
    places: &[usize],
) -> FilterAnswers {
    let mut answers = FilterAnswers {
        list: vec![BatchAnswer::NotAsked; candidates.len()],
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
    let mut left_alone = match was_called && batch.len() > 1 {
        true => FAULTS_ALONE_MAX,
        false => 0,
    };
    for (&place, candidate) in places.iter().zip(&batch) {
        if left_alone == 0 {
            answers.list[place] = BatchAnswer::Failed(missing.clone());
            continue;
        }
        match judge(&Candidates::new(vec![candidate.clone()])) {
            Ok(mut rulings) => {
                answers.list[place] = rulings
                    .pop()
                    .map_or(BatchAnswer::NotAsked, BatchAnswer::Ruled);
            }
            Err(unanswered) => {
                left_alone = match unanswered.was_called() {
                    true => left_alone - 1,
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
