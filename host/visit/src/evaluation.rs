//! Calls of wait evaluators, and the limits of the profile on their answers.

use std::sync::Arc;
use std::time::Duration;

use opilio_frontier::{ContentState, Oscillation, UriRecord};
use opilio_profile::Revisit;
use opilio_sandbox::{Document, Plugin, Visit};
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;

use crate::oscillation;

/// The answers of a stack of wait evaluators.
pub struct Evaluation {
    /// The wait until the next visit, as answered.
    pub wait: Option<Duration>,
    /// The evaluator that answered.
    by: Option<Plugin>,
    /// The answer of each evaluator of the stack, in order.
    pub answers: Vec<EvaluatorAnswer>,
    /// `true` if the call of an evaluator failed.
    pub failed: bool,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// Time until the evaluator is called again without a visit, if it requested that.
    pub ask_again: Option<Duration>,
}

/// The answer of one wait evaluator.
pub struct EvaluatorAnswer {
    /// Name in the profile.
    pub name: Arc<str>,
    /// The evaluator's answer.
    pub kind: AnswerKind,
}

/// The kind of an evaluator's answer.
pub enum AnswerKind {
    /// A wait.
    Wait,
    /// The evaluator passes: the next one is called.
    Pass,
    /// The evaluator does not handle such documents.
    Unhandled,
    /// The evaluator's guards reject the document.
    Guarded,
    /// The call failed, with the reason.
    Failed(String),
    /// Not called, because an earlier evaluator had answered.
    Unreached,
}

impl Evaluation {
    /// Returns the name in the profile of the evaluator that answered.
    pub fn answered_by(&self) -> Option<&Arc<str>> {
        let mut answers = self.answers.iter();
        let by = answers.find(|answer| matches!(answer.kind, AnswerKind::Wait));
        by.map(|answer| &answer.name)
    }

    /// Returns the time until the evaluator is called again without a visit, if it requested that. The time is at least the
    /// shortest wait of the profile and at most `wait`.
    pub(crate) fn until_reconsidered(&self, wait: Duration, limits: &Revisit) -> Option<Duration> {
        let ask_again = self.ask_again?;
        Some(ask_again.max(limits.min_wait).min(wait))
    }

    /// Returns the wait after a visit that found `state`: the answer within the limits of the profile, with oscillation damped.
    pub fn decide_wait(
        &self,
        record: &UriRecord,
        state: ContentState,
        limits: &Revisit,
    ) -> WaitDecision {
        let wait = self.until_next(record.wait, limits);
        let last = record.history.first().map(|past| past.state);
        let damped = oscillation::damp(last.zip(record.wait), record.oscillation, state, wait);
        let wait = damped.wait.clamp(limits.min_wait, limits.max_wait);
        let outside = self
            .wait
            .and_then(|answer| WaitCorrection::of(answer, limits));
        let oscillates =
            (self.wait.is_some() && damped.oscillates).then_some(WaitCorrection::Oscillating);
        WaitDecision {
            until_next: wait,
            until_reconsidered: self.until_reconsidered(wait, limits),
            corrections: outside.into_iter().chain(oscillates).collect(),
            oscillation: damped.oscillation,
        }
    }

    /// Counts corrections with the evaluator that answered.
    pub(crate) fn note_corrections(&self, corrections: impl IntoIterator<Item = WaitCorrection>) {
        let Some(evaluator) = &self.by else { return };
        for correction in corrections {
            evaluator.note_odd_wait(correction.name());
        }
    }

    /// The wait until the next visit: the answer within the limits of the profile.
    fn until_next(&self, previous: Option<Duration>, limits: &Revisit) -> Duration {
        let wait = match self.wait {
            Some(wait) => wait,
            // After an error the previous wait applies.
            None if self.failed => previous.unwrap_or(limits.default_wait),
            None => limits.default_wait,
        };
        wait.clamp(limits.min_wait, limits.max_wait)
    }
}

/// An evaluator's answer within the limits of the profile.
pub struct WaitDecision {
    /// The time until the next visit.
    pub until_next: Duration,
    /// The time until evaluators are called without a visit, if that is earlier.
    pub until_reconsidered: Option<Duration>,
    /// The corrections.
    pub corrections: Vec<WaitCorrection>,
    /// The state of oscillating answers, for the record.
    pub oscillation: Option<Oscillation>,
}

/// A correction of an evaluator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCorrection {
    /// Zero, or not a number.
    Zero,
    /// Below the profile's limit, to which it was raised.
    TooShort,
    /// Above the profile's limit, to which it was cut.
    TooLong,
    /// The answers oscillate. The wait is the geometric mean of the answer and the last wait.
    Oscillating,
}

impl WaitCorrection {
    /// Returns the correction that an answer needs without regard to earlier answers.
    pub fn of(answer: Duration, limits: &Revisit) -> Option<Self> {
        match answer {
            answer if answer > limits.max_wait => Some(Self::TooLong),
            answer if answer >= limits.min_wait => None,
            // A duration that is not a number arrives as zero.
            Duration::ZERO => Some(Self::Zero),
            _ => Some(Self::TooShort),
        }
    }

    /// Name of the correction in reports and metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::TooShort => "too-short",
            Self::TooLong => "too-long",
            Self::Oscillating => "oscillating",
        }
    }
}

/// Calls wait evaluators on a visit and its document. The first answer applies.
pub fn evaluate(
    stack: &[Staged],
    media_type: &str,
    visit: &Visit,
    document: &Document,
    guards: &Guards,
) -> Evaluation {
    let mut evaluation = Evaluation {
        wait: None,
        by: None,
        failed: false,
        failures: Vec::new(),
        ask_again: None,
        answers: Vec::with_capacity(stack.len()),
    };
    for staged in stack {
        let kind = if evaluation.by.is_some() {
            AnswerKind::Unreached
        } else if !staged.plugin.handles(media_type, &visit.candidate.uri) {
            AnswerKind::Unhandled
        } else if !guards.admit(staged, document, visit) {
            AnswerKind::Guarded
        } else {
            match staged.evaluate(visit) {
                Ok(Some(wait)) => {
                    evaluation.wait = Some(wait.next_visit);
                    evaluation.by = Some(staged.plugin.clone());
                    evaluation.ask_again = wait.ask_again;
                    AnswerKind::Wait
                }
                Ok(None) => AnswerKind::Pass,
                Err(unanswered) => {
                    let reason = unanswered.reason();
                    evaluation.failed = true;
                    evaluation.failures.extend(unanswered.failure());
                    AnswerKind::Failed(reason)
                }
            }
        };
        let name = staged.name.clone();
        evaluation.answers.push(EvaluatorAnswer { name, kind });
    }
    evaluation.failures.extend(guards.take_failures());
    evaluation
}
