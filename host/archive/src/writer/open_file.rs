//! The file being written, and its index for readers.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::Durability;
use crate::cdxj::{self, CdxjEntry};
use crate::record::RecordId;
use crate::serialize::Output;

/// Bytes collected before they are passed to the operating system within a capture.
const WRITE_BYTES: usize = 256 * 1024;

/// The file being written.
pub(super) struct OpenFile {
    pub(super) file: File,
    /// Entries of its index.
    pub(super) entries: Vec<CdxjEntry>,
    /// The index on disk, for look-ups while the file is being written.
    pub(super) index: Option<OpenIndex>,
    /// `true` if the last `warcinfo` of the file has the current description.
    pub(super) described: bool,
    /// The path with `.open`.
    pub(super) path: PathBuf,
    /// The name without `.open`.
    pub(super) name: String,
    pub(super) warcinfo: RecordId,
    pub(super) created: Timestamp,
    pub(super) synced: Timestamp,
    /// Bytes passed to the operating system.
    pub(super) written: u64,
    /// Bytes not yet passed on; empty between captures.
    pub(super) buffer: Vec<u8>,
}

/// The index of a file being written.
pub(super) struct OpenIndex {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl OpenFile {
    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Adds new entries to the index on disk. If this fails, the capture does not fail, but the index is removed, and readers have
    /// no index until the file is finished.
    pub(super) fn list_from(&mut self, listed: usize) {
        let lines = self.entries[listed..].iter();
        let lines: String = lines.map(|entry| format!("{entry}\n")).collect();
        if let Some(index) = &mut self.index
            && index.file.write_all(lines.as_bytes()).is_err()
        {
            let _ = fs::remove_file(&index.path);
            self.index = None;
        }
    }

    pub(super) fn sync_if_due(&mut self, durability: Durability, now: Timestamp) -> io::Result<()> {
        let due = match durability {
            Durability::Never | Durability::Finished => false,
            Durability::Every(interval) => since(self.synced, now) >= interval,
            Durability::Capture => true,
        };
        if due {
            self.file.sync_data()?;
            self.synced = now;
        }
        Ok(())
    }

    /// Cuts the file back to an earlier length. Writing continues there, because the file is in append mode.
    pub(super) fn cut_back(&mut self, length: u64, listed: usize) -> io::Result<()> {
        self.buffer.clear();
        self.entries.truncate(listed);
        self.file.set_len(length)?;
        self.written = length;
        Ok(())
    }
}

impl OpenIndex {
    pub(super) fn create(file: &OpenFile) -> io::Result<OpenIndex> {
        let path = cdxj::open_index_path(&file.path.with_file_name(&file.name));
        let file = File::create(&path)?;
        Ok(OpenIndex { file, path })
    }
}

impl Output for OpenFile {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn added(&mut self) -> io::Result<()> {
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }
}

pub(super) fn since(then: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(then)
        .try_into()
        .unwrap_or(Duration::ZERO)
}
