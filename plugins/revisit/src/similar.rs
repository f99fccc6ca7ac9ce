//! `similar`: counts an almost identical version as unchanged, for sites of low importance. No crawl does this by default,
//! because a single changed word can matter (README.md, docs/CHANGE.md).
//!
//! A page is represented by the set of its shingles, runs of a few words (Broder 1997). The likeness of two versions is the
//! share of shingles that they have in common. Only a sketch of the set is kept. Shingles are distributed to bins by their
//! hash, and each bin keeps the smallest hash (one permutation hashing, Li, Owen and Zhang 2012). The share of equal bins
//! estimates the likeness. With 512 bins the standard error is below 2.3 %, and below 1 % at a likeness of 95 %.

use opilio_plugin::prelude::*;

use crate::words::Words;

/// Number of bins in a sketch.
const BINS: usize = 512;

/// Value of an empty bin.
const EMPTY: u32 = u32::MAX;

/// First byte of a fingerprint: the version of its format.
const FORM: u8 = 1;

/// Largest number of words in a shingle.
const WORDS_MAX: u32 = 32;

/// Counts a document with small differences as unchanged.
pub struct Similar {
    settings: Settings,
}

/// Settings of `similar`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Smallest likeness of two versions that count as one: the share of shingles that they have in common, above 0 and up to
    /// 1.
    #[schemars(range(min = 0, max = 1), extend("x-opilio-overridable" = true))]
    pub threshold: f64,
    /// Number of words in a shingle. A larger number gives each word more weight.
    #[schemars(range(min = 1, max = 32), extend("x-opilio-overridable" = true))]
    pub words: u32,
    /// Largest document to compare, in bytes. Larger ones are left to the next evaluator.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

impl Default for Settings {
    /// One word of a 300-word page may change: four shingles are lost and four gained, a likeness of 97 %. A changed paragraph
    /// exceeds the limit.
    fn default() -> Self {
        Self {
            threshold: 0.95,
            words: 4,
            max_size: 1024 * 1024,
        }
    }
}

impl Plugin for Similar {
    const NAME: &'static str = "similar";
    const SUMMARY: &'static str =
        "Counts a document as unchanged if its text is almost that of the last archived version.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        // Also rejects NaN.
        if !(settings.threshold > 0.0 && settings.threshold <= 1.0) {
            let problem = format!(
                "{} is not a share that two versions can have in common; write a number above 0, such as 0.95, up to 1",
                settings.threshold
            );
            faults.push(SettingsFault::new("/threshold", problem));
        }
        if !(1..=WORDS_MAX).contains(&settings.words) {
            let problem = format!(
                "invalid number of words: {}; write 1 to {WORDS_MAX}",
                settings.words
            );
            faults.push(SettingsFault::new("/words", problem));
        }
        none_or(faults, Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html", "application/xhtml+xml", "text/plain"])
    }
}

impl ChangeEvaluator for Similar {
    fn compare(&self, document: &Document, _: &Visit, last: Option<&[u8]>) -> Comparison {
        if document.length() > self.settings.max_size {
            return Comparison::pass();
        }
        let text = document.text();
        let is_markup = document.media_type() != "text/plain";
        let Some(sketch) = Sketch::of(&text, is_markup, self.settings.words) else {
            // No text to compare: most likely the scripts of the page insert it.
            return Comparison::pass();
        };
        let comparison = match last.and_then(Sketch::decode) {
            None => Comparison::pass(),
            Some(last) => {
                let likeness = sketch.likeness(&last);
                // Rounded down: a reported likeness of the threshold or more means that the threshold was reached.
                let reason = format!("{}%-alike", (likeness * 100.0) as u32);
                match likeness >= self.settings.threshold {
                    true => Comparison::unchanged(reason),
                    false => Comparison::changed(reason),
                }
            }
        };
        comparison.fingerprint(sketch.encode())
    }
}

/// A sketch of a set of shingles.
struct Sketch([u32; BINS]);

impl Sketch {
    /// Returns the sketch of a text, or `None` if it has no words.
    fn of(text: &str, is_markup: bool, words: u32) -> Option<Self> {
        let words = words as usize;
        let mut sketch = Self([EMPTY; BINS]);
        let mut run: Vec<u64> = Vec::with_capacity(words);
        let mut has_words = false;
        for word in Words::of(text, is_markup) {
            has_words = true;
            if run.len() == words {
                run.remove(0);
            }
            run.push(hash_of(word));
            if run.len() == words {
                sketch.add(&run);
            }
        }
        // A text with fewer words is one shingle.
        if has_words && run.len() < words {
            sketch.add(&run);
        }
        has_words.then_some(sketch)
    }

    fn add(&mut self, run: &[u64]) {
        let hash = mix_bits(run.iter().fold(0, |hash: u64, word| {
            hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(*word)
        }));
        let bin = (hash >> 32) as usize % BINS;
        // The lower half of the hash, because the bin is derived from the upper half. All ones stands for an empty bin.
        let value = (hash as u32).min(EMPTY - 1);
        self.0[bin] = self.0[bin].min(value);
    }

    /// Share of equal bins among those used by either sketch.
    fn likeness(&self, other: &Self) -> f64 {
        let pairs = || self.0.iter().zip(&other.0);
        let used = pairs().filter(|&(a, b)| (*a, *b) != (EMPTY, EMPTY)).count();
        let same = pairs().filter(|&(a, b)| a == b && *a != EMPTY).count();
        match used {
            0 => 1.0,
            used => same as f64 / used as f64,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = self.0.iter().flat_map(|value| value.to_le_bytes());
        std::iter::once(FORM).chain(numbers).collect()
    }

    /// Parses a fingerprint. Returns `None` if its format is unknown.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&form, numbers) = bytes.split_first()?;
        if form != FORM || numbers.len() != BINS * 4 {
            return None;
        }
        let mut sketch = Self([EMPTY; BINS]);
        for (value, bytes) in sketch.0.iter_mut().zip(numbers.chunks_exact(4)) {
            *value = u32::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(sketch)
    }
}

/// FNV-1a.
fn hash_of(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finaliser of splitmix64.
fn mix_bits(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{VisitFacts, document, visit};

    /// A text of a number of words. The words at the positions in `others` are different.
    fn text(words: usize, others: std::ops::Range<usize>) -> String {
        let word = |n| match others.contains(&n) {
            true => format!("other{n} "),
            false => format!("word{n} "),
        };
        (0..words).map(word).collect()
    }

    /// Compares the estimate with the likeness of all shingles.
    #[test]
    fn estimate_is_close_to_the_likeness() {
        for (words, others) in [
            (300, 0..0),
            (300, 100..101),
            (300, 100..130),
            (3000, 100..130),
            (3000, 100..1600),
            (40, 3..5),
            (3, 0..1),
        ] {
            let lost = match others.len() {
                0 => 0,
                n => (n + 3).min((words - 3_usize.min(words - 1)).max(1)),
            };
            let all = (words - 3_usize.min(words - 1)).max(1);
            let truth = (all - lost) as f64 / (all + lost) as f64;
            let one = Sketch::of(&text(words, 0..0), false, 4).unwrap();
            let two = Sketch::of(&text(words, others.clone()), false, 4).unwrap();
            let estimate = one.likeness(&two);
            assert!(
                (estimate - truth).abs() < 0.05,
                "{words} {others:?}: {truth} {estimate}"
            );
        }
    }

    /// Versions are compared with the last archived one, so small differences add up until they count as a change.
    #[test]
    fn small_differences_add_up() {
        let similar = Similar::new(Settings::default()).unwrap();
        let compare = |text: &str, last: Option<&[u8]>| {
            let page = document("http://a.org/")
                .media_type("text/plain")
                .text(text);
            similar.compare(&page, &visit(VisitFacts::default()), last)
        };
        let archived = compare(&text(300, 0..0), None).fingerprint.unwrap();
        assert!(archived.len() <= 4096, "{}", archived.len());
        let first = (1..100).find(|&n| {
            let answer = compare(&text(300, 0..n), Some(&archived));
            answer.difference == Some(Difference::Changed)
        });
        assert!((3..12).contains(&first.unwrap()), "{first:?}");
    }

    #[test]
    fn unknown_formats_of_fingerprints_are_rejected() {
        let sketch = Sketch::of("one two three four five", false, 4).unwrap();
        let mut bytes = sketch.encode();
        assert_eq!(Sketch::decode(&bytes).unwrap().0, sketch.0);
        bytes[0] = 2;
        assert!(Sketch::decode(&bytes).is_none());
        assert!(Sketch::decode(&bytes[..9]).is_none());
        assert!(Sketch::decode(&[]).is_none());
    }
}
