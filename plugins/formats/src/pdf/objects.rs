//! Where objects of a PDF file, or of an object stream, begin. The file's own table of them is not asked: it is what is
//! broken first.

use std::collections::HashMap;

/// Objects that are told apart.
const OBJECTS_MAX: usize = 500_000;

/// Objects by number and by place.
#[derive(Debug, Default)]
pub(super) struct Objects {
    starts: HashMap<u32, usize>,
    /// In the order of the bytes.
    in_order: Vec<(usize, u32)>,
}

impl Objects {
    /// Those of a file: `12 0 obj`.
    pub(super) fn of_file(bytes: &[u8]) -> Self {
        let mut objects = Self::default();
        for at in memchr::memmem::find_iter(bytes, b" obj").take(OBJECTS_MAX) {
            if let Some(number) = number_before(bytes, at) {
                objects.add(number, at + 4);
            }
        }
        objects
    }

    /// Those of an unpacked object stream (PDF 32000-1 §7.5.7): pairs of number and place first.
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
        // Of several the last holds, as in files that were added to.
        self.starts.insert(number, start);
        self.in_order.push((start, number));
    }

    /// Where the content of an object begins.
    pub(super) fn start(&self, number: u32) -> Option<usize> {
        self.starts.get(&number).copied()
    }

    /// The number of the object in which a place lies.
    pub(super) fn around(&self, at: usize) -> Option<u32> {
        let behind = self.in_order.partition_point(|(start, _)| *start <= at);
        self.in_order
            .get(behind.checked_sub(1)?)
            .map(|(_, number)| *number)
    }
}

/// The number in `12 0 obj`; `at` is where ` obj` begins.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    /// Digits of both numbers, and the blank between.
    const BYTES_MAX: usize = 17;
    let before = &bytes[at.saturating_sub(BYTES_MAX)..at];
    let mut words = before.rsplit(|byte| !byte.is_ascii_digit());
    let _generation = words.next().filter(|digits| !digits.is_empty())?;
    std::str::from_utf8(words.next()?).ok()?.parse().ok()
}

/// The number behind a name in a dictionary.
fn value(dictionary: &[u8], name: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(dictionary, name)? + name.len();
    let behind = dictionary[at..].trim_ascii_start();
    let end = behind
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(behind.len());
    std::str::from_utf8(&behind[..end]).ok()?.parse().ok()
}
