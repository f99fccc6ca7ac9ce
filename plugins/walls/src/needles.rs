//! Many short texts looked for in one pass: pages are read by every filter that looks, so each byte is looked at once.

use std::collections::BTreeMap;

/// Pairs of bytes, a bit each.
const PAIRS: usize = 1 << 16;

/// Texts to be found, told apart by their first two bytes.
#[derive(Clone, Debug)]
pub(crate) struct Needles {
    texts: Vec<String>,
    /// Pairs that a text begins with: nearly all pairs of a page begin none.
    starts: Vec<u64>,
    by_start: BTreeMap<u16, Vec<usize>>,
}

impl Needles {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            texts: Vec::new(),
            starts: vec![0; PAIRS / 64],
            by_start: BTreeMap::new(),
        }
    }

    /// Adds a text of two bytes or more, and says what its number is; none for a shorter one.
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

    /// Which of them stand in `bytes`, by number.
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
    fn texts_are_found_wherever_they_stand() {
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
