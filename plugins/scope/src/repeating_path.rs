//! `repeating-path`: URIs with repeated path segments, which crawler traps generate: `/a/b/a/b/a/b/`.
//!
//! The URI, its query included, is split at slashes. The filter looks for a group of pieces, each ended by a slash, that is
//! followed by itself `max-repetitions` times. Backtracking regular expressions take at least quadratic time for this. The
//! filter searches for runs in a sequence of numbers, n log n in the number of pieces.

use opilio_plugin::prelude::*;

/// Rejects URIs in which a group of path segments repeats too often.
pub struct RepeatingPath {
    settings: Settings,
}

/// Settings of `repeating-path`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// A URI is rejected if a group of one or several segments is followed by itself this many times. With 2, `/a/b/a/b/a/b/`
    /// is rejected and `/a/b/a/b/` is not.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub max_repetitions: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_repetitions: 2 }
    }
}

impl Plugin for RepeatingPath {
    const NAME: &'static str = "repeating-path";
    const SUMMARY: &'static str = "Rejects URIs with repeated path segments or groups of segments.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        if settings.max_repetitions == 0 {
            return Err(vec![SettingsFault::new(
                "/max-repetitions",
                "0 would reject everything; the minimum is 1",
            )]);
        }
        Ok(Self { settings })
    }
}

impl Filter for RepeatingPath {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let times = self.settings.max_repetitions as usize + 1;
        if has_run(&numbered_pieces(candidate.uri(), times), times) {
            Ruling::reject(format!(
                "path segments repeat {} times",
                self.settings.max_repetitions
            ))
        } else {
            Ruling::pass()
        }
    }
}

/// Returns a number for each piece between slashes, equal for equal pieces. In the common case the result is empty: no piece
/// occurs `times` times, so no group does.
fn numbered_pieces(uri: &str, times: usize) -> Vec<u32> {
    let mut pieces: Vec<&str> = uri.split('/').collect();
    // A group begins after a slash and ends with one.
    pieces.pop();
    if pieces.len() <= times {
        return Vec::new();
    }
    pieces.remove(0);

    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_unstable_by_key(|&at| pieces[at]);
    let mut numbers = vec![0_u32; pieces.len()];
    let (mut number, mut equal, mut most) = (0, 1, 1);
    for pair in order.windows(2) {
        if pieces[pair[0]] == pieces[pair[1]] {
            equal += 1;
        } else {
            number += 1;
            equal = 1;
        }
        most = most.max(equal);
        numbers[pair[1]] = number;
    }
    if most < times { Vec::new() } else { numbers }
}

/// Returns true if some group occurs `times` times in a row; `times` is at least 2.
///
/// Divide and conquer (Main and Lorentz 1984): such a run lies in one half, or crosses the middle. Consider a run that crosses
/// the middle with a group of p pieces. Either its second copy begins after the middle, or its last copy but one ends before
/// the middle. The Z function shows how far the two sequences, p apart, agree to the left and right of that point.
fn has_run(sequence: &[u32], times: usize) -> bool {
    if sequence.len() < times {
        return false;
    }
    let (left, right) = sequence.split_at(sequence.len() / 2);
    if has_run(left, times) || has_run(right, times) {
        return true;
    }
    let reversed = |part: &[u32]| part.iter().rev().copied().collect::<Vec<_>>();
    crosses(left, right, times) || crosses(&reversed(right), &reversed(left), times)
}

/// Returns true if a run crosses the border between `left` and `right`, and `right` begins with a whole group of it.
fn crosses(left: &[u32], right: &[u32], times: usize) -> bool {
    // For each p: how many pieces from position p of `right` agree with those from the border.
    let forward = z_function(right);
    // For each p: how many pieces before position p of `right` agree, backwards, with those before the border. This is the Z
    // function of `left` reversed, a separator that equals no piece, and the whole sequence reversed.
    let mut joined: Vec<u32> = left.iter().rev().copied().collect();
    joined.push(u32::MAX);
    joined.extend(right.iter().rev());
    joined.extend(left.iter().rev());
    let backward = z_function(&joined);
    (1..=right.len()).any(|period| {
        let after = forward.get(period).copied().unwrap_or(0);
        let before = backward[left.len() + 1 + right.len() - period];
        before + period + after >= period * times
    })
}

/// Returns for each position how many numbers from there agree with those from the start.
fn z_function(sequence: &[u32]) -> Vec<usize> {
    let length = sequence.len();
    let mut z = vec![0; length];
    // Of all parts that agree with the start, the part [from, to) that ends last.
    let (mut from, mut to) = (0, 0);
    for at in 1..length {
        let mut agree = if at < to {
            z[at - from].min(to - at)
        } else {
            0
        };
        while at + agree < length && sequence[agree] == sequence[at + agree] {
            agree += 1;
        }
        if at + agree > to {
            (from, to) = (at, at + agree);
        }
        z[at] = agree;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of a run: tries every group at every position.
    fn has_run_by_trying(sequence: &[u32], times: usize) -> bool {
        (1..=sequence.len() / times).any(|period| {
            sequence
                .windows(period * times)
                .any(|run| run[period..] == run[..run.len() - period])
        })
    }

    #[test]
    fn has_run_agrees_with_the_definition() {
        // Every sequence of up to nine pieces of three kinds, and of up to fourteen of two.
        for (kinds, longest) in [(3_u32, 9_u32), (2, 14)] {
            for length in 0..=longest {
                for code in 0..kinds.pow(length) {
                    let sequence: Vec<u32> =
                        (0..length).map(|at| code / kinds.pow(at) % kinds).collect();
                    for times in [2, 3, 4] {
                        assert_eq!(
                            has_run(&sequence, times),
                            has_run_by_trying(&sequence, times),
                            "{sequence:?} {times}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_path_without_a_run_is_judged_quickly() {
        // The Fibonacci word has cubes and no fourth powers. Trying every group at every position would take minutes.
        let (mut before, mut word) = (String::from("a/"), String::from("a/b/"));
        while word.len() < 200_000 {
            (before, word) = (word.clone(), word + &before);
        }
        let uri = format!("http://example.org/{word}");
        assert!(!has_run(&numbered_pieces(&uri, 4), 4));
        assert!(has_run(&numbered_pieces(&uri, 3), 3));
    }
}
