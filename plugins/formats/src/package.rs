//! Reads requested parts of ZIP archives, the format of office documents and books.
//!
//! The directory is read entry by entry and not kept, because a hostile archive may have millions of entries. A part is read up
//! to its limit. Encrypted parts and archives of several files are not supported.

use std::io::Read;

use flate2::read::DeflateDecoder;
use opilio_plugin::Document;

/// Most unpacked bytes of one part to read; the rest is dropped.
const PART_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Most unpacked bytes of all parts together.
const PARTS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most entries of the directory to read.
const ENTRIES_MAX: usize = 20_000;

// Signatures of the structures of an archive (APPNOTE 4.3).
const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
const DIRECTORY_HEADER: &[u8] = b"PK\x01\x02";
const DIRECTORY_END: &[u8] = b"PK\x05\x06";
const DIRECTORY_END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";

/// Stands for a number that does not fit in four bytes. A field of ZIP64 has the number.
const IN_ZIP64: u32 = u32::MAX;

/// Returns `true` if the document begins like a ZIP archive.
pub(crate) fn is_package(document: &Document) -> bool {
    document.read(0, 4) == LOCAL_HEADER
}

/// Reads the parts with a `wanted` name in the order of the directory, and calls `part` with the name and text of each. Returns
/// the problem if some could not be read.
pub(crate) fn read(
    document: &Document,
    wanted: impl Fn(&str) -> bool,
    mut part: impl FnMut(&str, &str),
) -> Option<String> {
    let Some(mut at) = directory_start(document) else {
        return Some("the archive has no directory; it may be truncated".to_owned());
    };
    let mut left = PARTS_BYTES_MAX;
    let mut problem = None;
    for _ in 0..ENTRIES_MAX {
        let header = document.read(at, 46);
        if !header.starts_with(DIRECTORY_HEADER) || header.len() < 46 {
            return problem;
        }
        let name_length = u16_at(&header, 28);
        let name = document.read(at + 46, name_length);
        let name = String::from_utf8_lossy(&name);
        let extra_at = at + 46 + u64::from(name_length);
        let extra_length = u16_at(&header, 30);
        at = extra_at + u64::from(extra_length + u16_at(&header, 32));
        if !wanted(&name) {
            continue;
        }
        let entry = Entry::parse(&header, || document.read(extra_at, extra_length));
        let text = entry.text(document, left.min(PART_BYTES_MAX));
        left -= (text.len() as u64).min(left);
        if text.len() as u64 >= PART_BYTES_MAX {
            problem = Some(format!(
                "only the first {PART_BYTES_MAX} bytes of {name} were read"
            ));
        }
        part(&name, &text);
        if left == 0 {
            return Some(format!(
                "parts after the first {PARTS_BYTES_MAX} bytes were not read"
            ));
        }
    }
    Some(format!(
        "more than {ENTRIES_MAX} parts; the rest was not read"
    ))
}

/// Returns the position of the directory.
fn directory_start(document: &Document) -> Option<u64> {
    /// Length of the end record with the longest comment.
    const END_BYTES_MAX: u32 = 22 + 65_535;
    let from = document.length().saturating_sub(u64::from(END_BYTES_MAX));
    let end = document.read(from, END_BYTES_MAX);
    let at = memchr::memmem::rfind(&end, DIRECTORY_END)?;
    let start = u32_at(end.get(at..at + 22)?, 16);
    if start != IN_ZIP64 {
        return Some(u64::from(start));
    }
    let locator = end.get(at.checked_sub(20)?..at)?;
    if !locator.starts_with(LOCATOR_64) {
        return None;
    }
    let end = document.read(u64_at(locator, 8), 56);
    (end.len() == 56 && end.starts_with(DIRECTORY_END_64)).then(|| u64_at(&end, 48))
}

/// The entry of a part in the directory.
struct Entry {
    flags: u32,
    method: u32,
    /// Packed size in bytes.
    packed: u64,
    /// Position of the part's local header.
    header: u64,
}

impl Entry {
    /// Parses the header of an entry. `extra` returns the extra fields, which follow the name.
    fn parse(header: &[u8], extra: impl FnOnce() -> Vec<u8>) -> Self {
        let (unpacked, packed, at) = (u32_at(header, 24), u32_at(header, 20), u32_at(header, 42));
        let mut entry = Self {
            flags: u16_at(header, 8),
            method: u16_at(header, 10),
            packed: u64::from(packed),
            header: u64::from(at),
        };
        if [unpacked, packed, at].contains(&IN_ZIP64) {
            let extra = extra();
            let mut numbers = zip64_numbers(&extra).chunks_exact(8);
            // ZIP64 has only the numbers that do not fit, in this order.
            if unpacked == IN_ZIP64 {
                numbers.next();
            }
            for (number, field) in [(&mut entry.packed, packed), (&mut entry.header, at)] {
                if field == IN_ZIP64
                    && let Some(large) = numbers.next()
                {
                    *number = u64_at(large, 0);
                }
            }
        }
        entry
    }

    /// Returns the text of the part, at most `max` bytes. It is empty if the part cannot be read, and ends at the first error.
    fn text(&self, document: &Document, max: u64) -> String {
        /// The flag of an encrypted part.
        const ENCRYPTED: u32 = 1;
        let header = document.read(self.header, 30);
        if header.len() < 30 || !header.starts_with(LOCAL_HEADER) || self.flags & ENCRYPTED != 0 {
            return String::new();
        }
        // The header was read, so the sum cannot overflow.
        let content = self.header + 30 + u64::from(u16_at(&header, 26) + u16_at(&header, 28));
        let packed = Span {
            document,
            at: content,
            end: content.saturating_add(self.packed),
        };
        let mut bytes = Vec::new();
        // The text before an error may contain links.
        let _ = match self.method {
            0 => packed.take(max).read_to_end(&mut bytes),
            8 => DeflateDecoder::new(packed)
                .take(max)
                .read_to_end(&mut bytes),
            _ => Ok(0),
        };
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Reads a range of a document's bytes.
struct Span<'a> {
    document: &'a Document,
    at: u64,
    end: u64,
}

impl Read for Span<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = (self.end - self.at).min(buffer.len() as u64);
        let bytes = self
            .document
            .read(self.at, u32::try_from(length).unwrap_or(u32::MAX));
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Returns the content of the ZIP64 field among the extra fields of an entry (APPNOTE 4.5.3): numbers of eight bytes.
fn zip64_numbers(mut extra: &[u8]) -> &[u8] {
    while extra.len() >= 4 {
        let length = u16_at(extra, 2) as usize;
        let content = &extra[4..];
        if u16_at(extra, 0) == 1 {
            return &content[..length.min(content.len())];
        }
        extra = content.get(length..).unwrap_or_default();
    }
    &[]
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 2)
        .map_or(0, |two| u32::from(u16::from_le_bytes([two[0], two[1]])))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
