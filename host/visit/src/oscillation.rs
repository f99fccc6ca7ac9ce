//! Damping of oscillating wait evaluators: their answers for one page go far up and far down in turn, though every visit found
//! the same. Such answers are held to the middle. A learning evaluator narrows its answers down. A rhythm of days stretches one
//! answer, not three in a row.
//!
//! In a crawl the last answer is the wait in the URI's record. The swings so far are kept among the plugins' kept values of the
//! URI, under a name that no plugin can have, and only while the answers swing.

use std::time::Duration;

use opilio_frontier::{ContentState, KeptChange, KeptValue, KeptValues};

/// Owner of the value. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":swings";

/// Name of the only value: the direction of the last swing, and the number of swings in a row.
const NAME: &str = "swings";

/// Version of the value's format.
const VERSION: u32 = 1;

/// An answer this many times as long, or as short, as the one before is a swing.
const FACTOR: f64 = 4.0;

/// Swings in a row, each in the opposite direction to the one before, from which on an evaluator oscillates.
const IN_A_ROW: u32 = 3;

/// A wait that does not oscillate.
pub(crate) struct HeldWait {
    /// The wait.
    pub(crate) wait: Duration,
    /// Whether the evaluator's answer oscillates.
    pub(crate) oscillates: bool,
    /// The value to keep with the URI.
    pub(crate) kept: KeptChange,
}

/// Returns the wait after one more visit, which found `state`. It is the answer or, from the third swing on, the geometric mean
/// of the answer and the last wait. `last` is the state that the previous visit found, and the wait after it.
pub(crate) fn hold(
    last: Option<(ContentState, Duration)>,
    kept: &KeptValues,
    state: ContentState,
    answer: Duration,
) -> HeldWait {
    let kept = kept.get(OWNER, NAME);
    let kept = kept.filter(|kept| kept.version == VERSION);
    let (way, in_a_row) = kept
        .and_then(|kept| kept.value.split_once(' '))
        .unwrap_or_default();
    let in_a_row: u32 = in_a_row.parse().unwrap_or(0);
    let seconds = |wait: Duration| wait.as_secs_f64().max(1e-3);
    // If the state differs, a different answer is legitimate.
    let before = last.filter(|(found, _)| *found == state);
    let ratio = before.map_or(1.0, |(_, before)| seconds(answer) / seconds(before));
    let now = if ratio >= FACTOR {
        Some("up")
    } else if ratio <= 1.0 / FACTOR {
        Some("down")
    } else {
        None
    };
    let in_a_row = match now {
        None => 0,
        Some(now) if in_a_row > 0 && now != way => in_a_row + 1,
        Some(_) => 1,
    };
    let oscillates = in_a_row >= IN_A_ROW;
    let wait = match before {
        Some((_, before)) if oscillates => {
            Duration::from_secs_f64((seconds(answer) * seconds(before)).sqrt())
        }
        _ => answer,
    };
    let value = now.map(|way| KeptValue {
        version: VERSION,
        value: format!("{way} {in_a_row}"),
    });
    HeldWait {
        wait,
        oscillates,
        kept: KeptChange {
            plugin: OWNER.to_owned(),
            name: NAME.to_owned(),
            value,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentState::{Changed, Unchanged};

    /// Checks answers in hours against the resulting waits.
    #[track_caller]
    fn check(answers: &[(ContentState, u64)], expected: &[u64], oscillating: usize) {
        let (mut last, mut kept) = (None, KeptValues::default());
        let (mut waits, mut counted) = (Vec::new(), 0);
        for (state, hours) in answers {
            let held = hold(last, &kept, *state, Duration::from_secs(3600 * hours));
            counted += usize::from(held.oscillates);
            kept.apply(held.kept);
            waits.push(held.wait.as_secs() / 3600);
            last = Some((*state, held.wait));
        }
        assert_eq!((waits.as_slice(), counted), (expected, oscillating));
    }

    #[test]
    fn far_up_and_down_and_up_without_a_reason_is_held_to_the_middle() {
        // √(1 × 36), √(6 × 1), √(2.45 × 36), √(9.39 × 1)
        check(
            &[1, 36, 1, 36, 1, 36, 1].map(|hours| (Unchanged, hours)),
            &[1, 36, 1, 6, 2, 9, 3],
            4,
        );
    }

    #[test]
    fn what_learns_or_has_its_reasons_is_taken_as_it_is() {
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
