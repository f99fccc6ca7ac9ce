//! Positions of the objects in a PDF file or an object stream. The file's own table is not used, because it is often damaged.

use std::collections::HashMap;

/// Most objects whose position is kept.
const OBJECTS_MAX: usize = 500_000;

/// Objects by number and by position.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Start of the content of each object, by its number.
    starts: HashMap<u32, usize>,
    /// Start and number of each object, ordered by start.
    in_order: Vec<(usize, u32)>,
}

impl Objects {
    /// Finds the objects of a file: `12 0 obj`.
    pub(super) fn of_file(bytes: &[u8]) -> Self {
        let mut objects = Self::default();
        for at in memchr::memmem::find_iter(bytes, b" obj").take(OBJECTS_MAX) {
            if let Some(number) = number_before(bytes, at) {
                objects.add(number, at + 4);
            }
        }
        objects
    }

    /// Reads the objects of an unpacked object stream (PDF 32000-1 §7.5.7), which begins with pairs of number and position.
    pub(super) fn of_stream(bytes: &[u8], dictionary: &[u8]) -> Self {
        let mut objects = Self::default();
        let Some(first) = value(dictionary, b"/First") else {
            return objects;
        };
        let header = bytes.get(..first).unwrap_or_default();
        let mut numbers = header
            .split(u8::is_ascii_whitespace)
            .filter_map(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        while let (Some(number), Some(offset)) = (numbers.next(), numbers.next())
            && objects.in_order.len() < OBJECTS_MAX
        {
            let start = first.saturating_add(offset as usize);
            if start < bytes.len() {
                objects.add(number, start);
            }
        }
        objects.in_order.sort_unstable();
        objects
    }

    fn add(&mut self, number: u32, start: usize) {
        // Incremental updates append new versions of an object, so the last one counts.
        self.starts.insert(number, start);
        self.in_order.push((start, number));
    }

    /// Returns the start of an object's content.
    pub(super) fn start(&self, number: u32) -> Option<usize> {
        self.starts.get(&number).copied()
    }

    /// Returns the number of the object that contains a position.
    pub(super) fn number_at(&self, at: usize) -> Option<u32> {
        let after = self.in_order.partition_point(|(start, _)| *start <= at);
        self.in_order
            .get(after.checked_sub(1)?)
            .map(|(_, number)| *number)
    }
}

/// Returns the number in `12 0 obj`; `at` is the position of ` obj`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    /// Longest text of both numbers and the blank between them.
    const BYTES_MAX: usize = 17;
    let before = &bytes[at.saturating_sub(BYTES_MAX)..at];
    let mut words = before.rsplit(|byte| !byte.is_ascii_digit());
    let _generation = words.next().filter(|digits| !digits.is_empty())?;
    std::str::from_utf8(words.next()?).ok()?.parse().ok()
}

/// Returns the number after a name in a dictionary.
fn value(dictionary: &[u8], name: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(dictionary, name)? + name.len();
    let after = dictionary[at..].trim_ascii_start();
    let end = after
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(after.len());
    std::str::from_utf8(&after[..end]).ok()?.parse().ok()
}
