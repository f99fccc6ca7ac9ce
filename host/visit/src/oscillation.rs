//! Damping of oscillating wait evaluators: their answers for one page alternate between far longer and far shorter waits, although
//! every visit found the same content state. Such an answer is replaced by the geometric mean of answer and last wait. Two other
//! causes of large differences are not damped. The answers of an evaluator that learns come closer together. A page that changes by
//! day and not at night changes one answer, not three in a row.
//!
//! The record of the URI has the last answer, as its wait, and the number of swings in a row.

use std::time::Duration;

use opilio_frontier::{ContentState, Oscillation, WaitDirection};

/// An answer that is this many times as long, or as short, as the previous answer is a swing.
const FACTOR: f64 = 4.0;

/// Number of swings in a row, each in the opposite direction to the one before, from which on an evaluator counts as oscillating.
const IN_A_ROW: u32 = 3;

/// A wait after damping.
pub(crate) struct DampedWait {
    /// The wait.
    pub(crate) wait: Duration,
    /// `true` if the evaluator's answer oscillates.
    pub(crate) oscillates: bool,
    /// The swings up to this answer, which the record keeps.
    pub(crate) oscillation: Option<Oscillation>,
}

/// Returns the wait after a visit that found `state`. It is the answer or, from the third swing on, the geometric mean of the
/// answer and the last wait. `last` has the state that the previous visit found, and the wait after it. `before` has the swings up
/// to the previous visit.
pub(crate) fn damp(
    last: Option<(ContentState, Duration)>,
    before: Option<Oscillation>,
    state: ContentState,
    answer: Duration,
) -> DampedWait {
    let seconds = |wait: Duration| wait.as_secs_f64().max(1e-3);
    // If the state differs, a different answer is justified.
    let last = last.filter(|(found, _)| *found == state);
    let ratio = last.map_or(1.0, |(_, last)| seconds(answer) / seconds(last));
    let swing = if ratio >= FACTOR {
        Some(WaitDirection::Up)
    } else if ratio <= 1.0 / FACTOR {
        Some(WaitDirection::Down)
    } else {
        None
    };
    let oscillation = swing.map(|swing| Oscillation {
        last: swing,
        in_a_row: match before {
            Some(before) if before.last != swing => before.in_a_row.saturating_add(1),
            _ => 1,
        },
    });
    let oscillates = oscillation.is_some_and(|oscillation| oscillation.in_a_row >= IN_A_ROW);
    let wait = match last {
        Some((_, last)) if oscillates => {
            Duration::from_secs_f64((seconds(answer) * seconds(last)).sqrt())
        }
        _ => answer,
    };
    DampedWait {
        wait,
        oscillates,
        oscillation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentState::{Changed, Unchanged};

    /// Checks answers in hours against the resulting waits.
    #[track_caller]
    fn check(answers: &[(ContentState, u64)], expected: &[u64], oscillating: usize) {
        let (mut last, mut oscillation) = (None, None);
        let (mut waits, mut counted) = (Vec::new(), 0);
        for (state, hours) in answers {
            let damped = damp(last, oscillation, *state, Duration::from_secs(3600 * hours));
            counted += usize::from(damped.oscillates);
            oscillation = damped.oscillation;
            waits.push(damped.wait.as_secs() / 3600);
            last = Some((*state, damped.wait));
        }
        assert_eq!((waits.as_slice(), counted), (expected, oscillating));
    }

    #[test]
    fn answers_that_alternate_without_a_change_are_replaced_by_the_geometric_mean() {
        // √(1 × 36), √(6 × 1), √(2.45 × 36), √(9.39 × 1)
        check(
            &[1, 36, 1, 36, 1, 36, 1].map(|hours| (Unchanged, hours)),
            &[1, 36, 1, 6, 2, 9, 3],
            4,
        );
    }

    #[test]
    fn answers_that_converge_or_follow_changes_are_not_damped() {
        let steady = |answers: &[(ContentState, u64)]| {
            let hours: Vec<u64> = answers.iter().map(|(_, hours)| *hours).collect();
            check(answers, &hours, 0);
        };
        // The rules of crawlers change waits by a factor below two.
        steady(&[24, 36, 24, 36, 24, 36].map(|hours| (Unchanged, hours)));
        // Waits that grow.
        steady(&[1, 8, 64, 512].map(|hours| (Unchanged, hours)));
        // A weekend.
        steady(&[4, 5, 62, 4, 5, 4, 62, 4].map(|hours| (Unchanged, hours)));
        // Short after a change, long without one.
        steady(&[(Changed, 1), (Unchanged, 24)].repeat(4));
    }
}
