//! Many short texts looked for in one pass: pages are read by every filter that looks, so each byte is looked at once.

use std::collections::HashMap;

/// Texts to be found, told apart by their first two bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needles {
    texts: Vec<String>,
    /// One bit for each first byte: most bytes begin nothing.
    firsts: [u64; 4],
    by_start: HashMap<[u8; 2], Vec<usize>>,
}

impl Needles {
    /// Adds a text of two bytes or more, and says what its number is; none for a shorter one.
    pub(crate) fn add(&mut self, text: &str) -> Option<usize> {
        if let Some(known) = self.texts.iter().position(|one| one == text) {
            return Some(known);
        }
        let start = *text.as_bytes().first_chunk::<2>()?;
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.firsts[usize::from(start[0] >> 6)] |= 1 << (start[0] & 63);
        self.by_start.entry(start).or_default().push(number);
        Some(number)
    }

    /// Which of them stand in `bytes`, by number.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Vec<bool> {
        let mut found = vec![false; self.texts.len()];
        for (at, pair) in bytes.windows(2).enumerate() {
            if self.firsts[usize::from(pair[0] >> 6)] >> (pair[0] & 63) & 1 == 0 {
                continue;
            }
            for &number in self.by_start.get(pair).into_iter().flatten() {
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
        let mut needles = Needles::default();
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
