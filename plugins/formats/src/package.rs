//! ZIP archives, as office documents and books are packed: the parts that a caller asks for, one after the other.
//!
//! The directory is walked where it lies and never held, since a hostile one has millions of entries; so is no part longer
//! than its limit. Encrypted parts, parts across several disks and ZIP64 are left out.

use std::io::Read;

use flate2::read::DeflateDecoder;
use opilio_plugin::Document;

/// Longest part read, in bytes; what lies behind is cut off.
const PART_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of all parts together, unpacked.
const PARTS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Entries of the directory that are looked at.
const ENTRIES_MAX: usize = 20_000;

/// Signatures of APPNOTE 4.3.
const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
const DIRECTORY_HEADER: &[u8] = b"PK\x01\x02";
const DIRECTORY_END: &[u8] = b"PK\x05\x06";

/// Does the document begin like a ZIP archive?
pub(crate) fn is_package(document: &Document) -> bool {
    document.read(0, 4) == LOCAL_HEADER
}

/// Reads the parts whose name is `wanted`, in the order of the directory, and says what could not be read.
pub(crate) fn read(
    document: &Document,
    wanted: impl Fn(&str) -> bool,
    mut part: impl FnMut(&str, &str),
) -> Option<String> {
    let Some(mut at) = directory(document) else {
        return Some("the archive has no directory; it may have been cut".to_owned());
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
        at += 46 + u64::from(name_length + u16_at(&header, 30) + u16_at(&header, 32));
        if !wanted(&name) {
            continue;
        }
        let entry = Entry {
            flags: u16_at(&header, 8),
            method: u16_at(&header, 10),
            packed: u32_at(&header, 20),
            header: u64::from(u32_at(&header, 42)),
        };
        let text = entry.text(document, left.min(PART_BYTES_MAX));
        left -= (text.len() as u64).min(left);
        if text.len() as u64 >= PART_BYTES_MAX {
            problem = Some(format!(
                "of {name} the first {PART_BYTES_MAX} bytes were read"
            ));
        }
        part(&name, &text);
        if left == 0 {
            return Some(format!(
                "what lies behind the first {PARTS_BYTES_MAX} bytes was not read"
            ));
        }
    }
    Some(format!("more than {ENTRIES_MAX} parts"))
}

/// Where the directory begins.
fn directory(document: &Document) -> Option<u64> {
    /// The end of the directory, and the longest comment behind it.
    const END_BYTES_MAX: u32 = 22 + 65_535;
    let from = document.length().saturating_sub(u64::from(END_BYTES_MAX));
    let end = document.read(from, END_BYTES_MAX);
    let at = memchr::memmem::rfind(&end, DIRECTORY_END)?;
    let end = end.get(at..at + 22)?;
    Some(u64::from(u32_at(end, 16)))
}

/// What the directory says of a part.
struct Entry {
    flags: u32,
    method: u32,
    packed: u32,
    /// Where its local header is.
    header: u64,
}

impl Entry {
    /// The part as text, as far as it can be read.
    fn text(&self, document: &Document, max: u64) -> String {
        const ENCRYPTED: u32 = 1;
        let header = document.read(self.header, 30);
        if header.len() < 30 || !header.starts_with(LOCAL_HEADER) || self.flags & ENCRYPTED != 0 {
            return String::new();
        }
        let content = self.header + 30 + u64::from(u16_at(&header, 26) + u16_at(&header, 28));
        let packed = Span {
            document,
            at: content,
            end: content + u64::from(self.packed),
        };
        let mut bytes = Vec::new();
        // Half a part is worth more than none.
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

/// Bytes of a document.
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

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 2)
        .map_or(0, |two| u32::from(u16::from_le_bytes([two[0], two[1]])))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}
