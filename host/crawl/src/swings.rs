//! Evaluators that do not know what they want: answers to one page that go far up and far down in turn, though every visit
//! found the same. Learning narrows answers down; a rhythm of days stretches one and not three in a row.
//!
//! In a crawl the last answer is the wait in the URI's record. How far it has swung so far is kept among what plugins keep with
//! the URI, under a name that none can have, and only while it swings.

use std::time::Duration;

use opilio_frontier::{ContentState, KeptChange, KeptValue, KeptValues};

/// No plugin is called so: their names are words joined by hyphens.
const OWNER: &str = ":swings";

/// The one value: which way the last swing went, and how many there were in a row.
const NAME: &str = "swings";

/// Of the value's form.
const VERSION: u32 = 1;

/// An answer this many times as long, or as short, as the one before is a swing.
const FACTOR: f64 = 4.0;

/// Swings in a row, each against the one before, from which on an evaluator oscillates.
const IN_A_ROW: u32 = 3;

/// The answers to one page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Swings {
    last: Option<(ContentState, f64)>,
    is_up: bool,
    in_a_row: u32,
}

impl Swings {
    /// As the last visit left it: what it found, the wait after it, and what was kept.
    pub(crate) fn of(last: Option<(ContentState, Duration)>, kept: &KeptValues) -> Self {
        let kept = kept.get(OWNER, NAME);
        let kept = kept.filter(|kept| kept.version == VERSION);
        let (way, in_a_row) = kept
            .and_then(|kept| kept.value.split_once(' '))
            .unwrap_or_default();
        Self {
            last: last.map(|(state, wait)| (state, wait.as_secs_f64())),
            is_up: way == "up",
            in_a_row: in_a_row.parse().unwrap_or(0),
        }
    }

    /// What is to be kept of it with the URI.
    pub(crate) fn kept(&self) -> KeptChange {
        let way = if self.is_up { "up" } else { "down" };
        let value = (self.in_a_row > 0).then(|| KeptValue {
            version: VERSION,
            value: format!("{way} {}", self.in_a_row),
        });
        KeptChange {
            plugin: OWNER.to_owned(),
            name: NAME.to_owned(),
            value,
        }
    }

    /// One more answer; whether it oscillates.
    pub fn note(&mut self, state: ContentState, answer: Duration) -> bool {
        let answer = answer.as_secs_f64().max(1e-3);
        let before = self.last.replace((state, answer));
        let ratio = match before {
            Some((found, before)) if found == state => answer / before.max(1e-3),
            // What was found is another: the answer may be too.
            _ => 1.0,
        };
        if ratio < FACTOR && ratio > 1.0 / FACTOR {
            self.in_a_row = 0;
            return false;
        }
        let is_up = ratio > 1.0;
        let is_back = self.in_a_row > 0 && is_up != self.is_up;
        self.in_a_row = if is_back { self.in_a_row + 1 } else { 1 };
        self.is_up = is_up;
        self.in_a_row >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentState::{Changed, Unchanged};

    /// Answers in hours that oscillate, where they are remembered and where each is read from what was kept.
    #[track_caller]
    fn check(answers: &[(ContentState, u64)], expected: usize) {
        let mut swings = Swings::default();
        let (mut last, mut kept) = (None, KeptValues::default());
        let (mut remembered, mut read) = (0, 0);
        for (state, hours) in answers {
            let answer = Duration::from_secs(3600 * hours);
            remembered += usize::from(swings.note(*state, answer));
            let mut left = Swings::of(last, &kept);
            read += usize::from(left.note(*state, answer));
            kept.apply(left.kept());
            last = Some((*state, answer));
        }
        assert_eq!((remembered, read), (expected, expected));
    }

    #[test]
    fn far_up_and_down_and_up_without_a_reason_is_oscillating() {
        let hours = [1, 24, 1, 24, 1];
        check(&hours.map(|hours| (Unchanged, hours)), 2);
    }

    #[test]
    fn what_learns_or_has_its_reasons_is_steady() {
        // The rules of crawlers: by a factor below two.
        check(&[24, 36, 24, 36, 24, 36].map(|hours| (Unchanged, hours)), 0);
        // Longer and longer.
        check(&[1, 8, 64, 512].map(|hours| (Unchanged, hours)), 0);
        // A week's end.
        check(
            &[4, 5, 62, 4, 5, 4, 62, 4].map(|hours| (Unchanged, hours)),
            0,
        );
        // Short where it changed, long where it did not.
        let turns = [(Changed, 1), (Unchanged, 24)].repeat(4);
        check(&turns, 0);
    }
}
