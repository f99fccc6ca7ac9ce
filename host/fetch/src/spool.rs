//! Recorded bytes of one exchange: in memory while they are few, in an unlinked temporary file once they are many.
//!
//! A [`Spool`] is cheap to clone and to slice. All clones read the same bytes, each at its own position. The space is
//! released when the last clone is dropped. After a crash it is released too, because the file has no name.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::scratch::Claim;

/// Recorded bytes, complete and unchanging.
#[derive(Clone, Debug)]
pub struct Spool {
    store: Store,
    start: u64,
    end: u64,
}

#[derive(Clone, Debug)]
#[expect(
    dead_code,
    reason = "claims are held, not read: dropping the last gives room back"
)]
enum Store {
    Memory(Bytes, Option<Arc<Claim>>),
    File(Arc<File>, Option<Arc<Claim>>),
}

/// Writes a [`Spool`], front to back.
#[derive(Debug)]
pub struct SpoolWriter {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
    memory_max: usize,
    scratch_dir: PathBuf,
    /// The share of the space of all exchanges; `None` for recordings outside it.
    claim: Option<Arc<Claim>>,
}

/// Reads a [`Spool`] from its start. On a file every call is one system call: wrap it in a `BufReader` for small reads.
#[derive(Clone, Debug)]
pub struct SpoolReader {
    spool: Spool,
    position: u64,
}

impl Spool {
    /// Length in bytes.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Returns `true` if the spool has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// Returns an independent reader, at the first byte.
    pub fn reader(&self) -> SpoolReader {
        SpoolReader {
            spool: self.clone(),
            position: 0,
        }
    }

    /// All bytes without copying, if they are in memory; `None` if they went to disk.
    pub fn bytes_if_small(&self) -> Option<Bytes> {
        match &self.store {
            Store::Memory(bytes, _) => Some(bytes.slice(self.start as usize..self.end as usize)),
            Store::File(..) => None,
        }
    }

    /// At most `length` bytes from `offset`; fewer at the end, none past it.
    ///
    /// # Errors
    /// The scratch file could not be read.
    pub fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let from = self.start.saturating_add(offset).min(self.end);
        let to = from.saturating_add(length as u64).min(self.end);
        match &self.store {
            Store::Memory(bytes, _) => Ok(bytes.slice(from as usize..to as usize)),
            Store::File(file, _) => {
                let mut buffer = vec![0; (to - from) as usize];
                read_exact_at(file, &mut buffer, from)?;
                Ok(buffer.into())
            }
        }
    }

    /// A part of the spool, sharing the bytes. A range past the end is cut.
    pub fn slice(&self, range: Range<u64>) -> Spool {
        let start = self.start.saturating_add(range.start).min(self.end);
        let end = self
            .start
            .saturating_add(range.end)
            .min(self.end)
            .max(start);
        Spool {
            store: self.store.clone(),
            start,
            end,
        }
    }
}

impl Default for Spool {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl From<Bytes> for Spool {
    fn from(bytes: Bytes) -> Self {
        Spool {
            start: 0,
            end: bytes.len() as u64,
            store: Store::Memory(bytes, None),
        }
    }
}

impl SpoolWriter {
    /// Creates a writer that keeps up to `memory_max` bytes in memory and then moves to a file in `scratch_dir`. It does not
    /// touch the directory before.
    pub fn new(memory_max: usize, scratch_dir: &Path) -> Self {
        SpoolWriter {
            memory: Vec::new(),
            file: None,
            length: 0,
            memory_max,
            scratch_dir: scratch_dir.to_owned(),
            claim: None,
        }
    }

    /// Creates a writer that takes its space from that of all exchanges.
    pub(crate) fn within(claim: Arc<Claim>, memory_max: usize) -> Self {
        SpoolWriter {
            scratch_dir: claim.directory().to_owned(),
            claim: Some(claim),
            ..SpoolWriter::new(memory_max, Path::new(""))
        }
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// The scratch file could not be created or written; the spool is then useless.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        let claim = self.claim.as_deref();
        let fits = self.memory.len() + bytes.len() <= self.memory_max;
        if self.file.is_none() && fits && claim.is_none_or(|claim| claim.take_memory(bytes.len())) {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            vacant => {
                let mut file = tempfile::tempfile_in(&self.scratch_dir)?;
                file.write_all(&self.memory)?;
                if let Some(claim) = claim {
                    claim.give_memory_back(self.memory.len());
                    claim.written(self.memory.len());
                }
                self.memory = Vec::new();
                vacant.insert(file)
            }
        };
        if let Some(claim) = claim {
            claim.written(bytes.len());
        }
        file.write_all(bytes)
    }

    /// Bytes that would go to disk if this many bytes were appended.
    pub(crate) fn to_disk(&self, bytes: usize) -> u64 {
        let whole = self.memory.len() + bytes;
        let has_memory = |claim: &Arc<Claim>| claim.has_memory(bytes);
        let in_memory = self.file.is_none() && whole <= self.memory_max;
        match in_memory && self.claim.as_ref().is_none_or(has_memory) {
            true => 0,
            false => whole as u64,
        }
    }

    /// Finishes writing and returns the bytes for reading.
    pub fn finish(self) -> Spool {
        let held = self.claim;
        Spool {
            start: 0,
            end: self.length,
            store: match self.file {
                Some(file) => Store::File(Arc::new(file), held),
                None => Store::Memory(self.memory.into(), held),
            },
        }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from = self.spool.start + self.position;
        let count = (self.spool.end - from).min(buffer.len() as u64) as usize;
        match &self.spool.store {
            Store::Memory(bytes, _) => {
                let from = from as usize;
                buffer[..count].copy_from_slice(&bytes[from..from + count]);
            }
            Store::File(file, _) => read_exact_at(file, &mut buffer[..count], from)?,
        }
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(memory_max: usize, parts: &[&[u8]], in_memory: bool) {
        let scratch = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::new(memory_max, scratch.path());
        for part in parts {
            writer.append(part).unwrap();
        }
        let whole = parts.concat();
        assert_eq!(writer.length(), whole.len() as u64);
        let spool = writer.finish();
        assert_eq!(spool.bytes_if_small().is_some(), in_memory);
        assert_eq!(spool.length(), whole.len() as u64);
        let (mut one, mut two) = (spool.reader(), spool.reader());
        let mut first = [0; 3];
        let _ = one.read(&mut first).unwrap();
        for reader in [&mut two, &mut one] {
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            assert!(whole.ends_with(&rest), "{rest:?}");
        }
        for from in 0..=whole.len() + 1 {
            for length in 0..=whole.len() + 1 {
                let to = (from + length).min(whole.len());
                let expected = &whole[from.min(to)..to];
                let read = spool.read_at(from as u64, length).unwrap();
                assert_eq!(read, expected, "{from} {length}");
                let slice = spool.slice(from as u64..(from + length) as u64);
                assert_eq!(slice.length(), expected.len() as u64);
                let mut bytes = Vec::new();
                slice.reader().read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes, expected, "{from} {length}");
                assert_eq!(slice.read_at(1, 2).unwrap(), {
                    let end = expected.len().min(3);
                    &expected[end.min(1)..end]
                });
            }
        }
        let (start, end) = (2, 1);
        assert!(spool.slice(start..end).is_empty());
        assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn few_bytes_stay_in_memory() {
        check(8, &[], true);
        check(8, &[b"abc", b"defgh"], true);
    }

    #[test]
    fn many_bytes_go_to_a_file_without_a_name() {
        check(8, &[b"abc", b"defgh", b"i", b"jk"], false);
        check(0, &[b"a"], false);
    }

    #[test]
    fn a_missing_scratch_directory_is_an_error_and_only_when_needed() {
        let mut writer = SpoolWriter::new(2, Path::new("/nonexistent/scratch"));
        writer.append(b"ab").unwrap();
        writer.append(b"c").unwrap_err();
    }
}
