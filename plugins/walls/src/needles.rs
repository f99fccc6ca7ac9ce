//! Finds many short texts in a page in one pass, because the filter sees every page of the crawl.

use std::collections::BTreeMap;

/// Number of pairs of bytes.
const PAIRS: usize = 1 << 16;

/// Texts to find, indexed by their first two bytes.
#[derive(Clone, Debug)]
pub(crate) struct Needles {
    texts: Vec<String>,
    /// A bit for each pair, set if a text begins with it. Almost no pair of a page begins a text.
    starts: Vec<u64>,
    by_start: BTreeMap<u16, Vec<usize>>,
}

impl Needles {
    /// An empty set.
    pub(crate) fn new() -> Self {
        Self {
            texts: Vec::new(),
            starts: vec![0; PAIRS / 64],
            by_start: BTreeMap::new(),
        }
    }

    /// Adds a text of two bytes or more. Returns its number; `None` for a shorter text.
    pub(crate) fn add(&mut self, text: &str) -> Option<usize> {
        if let Some(known) = self.texts.iter().position(|one| one == text) {
            return Some(known);
        }
        let start = u16::from_be_bytes(*text.as_bytes().first_chunk()?);
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.starts[usize::from(start / 64)] |= 1 << (start % 64);
        self.by_start.entry(start).or_default().push(number);
        Some(number)
    }

    /// Returns for each text, by number, whether `bytes` contain it.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Vec<bool> {
        let mut found = vec![false; self.texts.len()];
        for (at, pair) in bytes.windows(2).enumerate() {
            let start = u16::from_be_bytes([pair[0], pair[1]]);
            if self.starts[usize::from(start / 64)] >> (start % 64) & 1 == 0 {
                continue;
            }
            for &number in self.by_start.get(&start).into_iter().flatten() {
                if !found[number] && bytes[at..].starts_with(self.texts[number].as_bytes()) {
                    found[number] = true;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_at_any_position() {
        let mut needles = Needles::new();
        let numbers: Vec<_> = ["ab", "abc", "é!", "ab", "zz", "x"]
            .map(|text| needles.add(text))
            .into();
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(0), Some(3), None]);
        assert_eq!(
            needles.found_in("xabcé!".as_bytes()),
            [true, true, true, false]
        );
        assert_eq!(needles.found_in(b"zab"), [true, false, false, false]);
        assert_eq!(needles.found_in(b""), [false; 4]);
    }
}
