//! Positions of the objects in a PDF file or an object stream. The file's own table is ignored, because it is often broken.

use std::collections::HashMap;

/// Most objects that are indexed.
const OBJECTS_MAX: usize = 500_000;

/// Objects by number and by position.
#[derive(Debug, Default)]
pub(super) struct Objects {
    starts: HashMap<u32, usize>,
    /// Ordered by position.
    in_order: Vec<(usize, u32)>,
}

impl Objects {
    /// Objects of a file: `12 0 obj`.
    pub(super) fn of_file(bytes: &[u8]) -> Self {
        let mut objects = Self::default();
        for at in memchr::memmem::find_iter(bytes, b" obj").take(OBJECTS_MAX) {
            if let Some(number) = number_before(bytes, at) {
                objects.add(number, at + 4);
            }
        }
        objects
    }

    /// Objects of an unpacked object stream (PDF 32000-1 §7.5.7), which begins with pairs of number and position.
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
        // Of several, the last counts, as in files with incremental updates.
        self.starts.insert(number, start);
        self.in_order.push((start, number));
    }

    /// The start of an object's content.
    pub(super) fn start(&self, number: u32) -> Option<usize> {
        self.starts.get(&number).copied()
    }

    /// The number of the object at a position.
    pub(super) fn around(&self, at: usize) -> Option<u32> {
        let behind = self.in_order.partition_point(|(start, _)| *start <= at);
        self.in_order
            .get(behind.checked_sub(1)?)
            .map(|(_, number)| *number)
    }
}

/// The number in `12 0 obj`; `at` is the position of ` obj`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    /// Digits of both numbers, and the blank between them.
    const BYTES_MAX: usize = 17;
    let before = &bytes[at.saturating_sub(BYTES_MAX)..at];
    let mut words = before.rsplit(|byte| !byte.is_ascii_digit());
    let _generation = words.next().filter(|digits| !digits.is_empty())?;
    std::str::from_utf8(words.next()?).ok()?.parse().ok()
}

/// The number after a name in a dictionary.
fn value(dictionary: &[u8], name: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(dictionary, name)? + name.len();
    let behind = dictionary[at..].trim_ascii_start();
    let end = behind
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(behind.len());
    std::str::from_utf8(&behind[..end]).ok()?.parse().ok()
}
