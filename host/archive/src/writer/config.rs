//! The writer's configuration: directories, names, size, packing and durability of files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ArchiveFormat;
use crate::digest::Algorithm;
use crate::name::NameTemplate;
use crate::serialize::Compression;

/// Directories, names, size and packing of the files of a [`Writer`](super::Writer).
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Directory for the files; created if missing.
    pub directory: PathBuf,
    /// Further directories. Each new file goes to the next of all directories in turn.
    pub further_directories: Vec<PathBuf>,
    /// Format of the files.
    pub format: ArchiveFormat,
    /// `${prefix}` of the names.
    pub prefix: String,
    /// Template of the names.
    pub template: NameTemplate,
    /// Size in bytes at which no further capture is written to a file. It may be exceeded by one capture, because a capture is
    /// never split across files.
    pub size_max: u64,
    /// Age at which no further capture is written to a file.
    pub age_max: Option<Duration>,
    /// Packing of the records.
    pub compression: Compression,
    /// Dictionary for zstd frames; each file begins with it.
    pub dictionary: Option<Arc<[u8]>>,
    /// Algorithm of block digests.
    pub digest: Algorithm,
    /// Algorithm of a second block digest, in a header of its own: the standard has only one.
    pub further_digest: Option<Algorithm>,
    /// `true` if an index is written beside each file when it is finished ([`crate::index_path`]).
    pub index: bool,
    /// Times at which data is synced to disk.
    pub durability: Durability,
    /// `${host}` of the names.
    pub host: String,
    /// `${pid}` of the names.
    pub pid: u32,
    /// `${port}` of the names: that of the console, 0 without one.
    pub port: u16,
}

/// Times at which written data is synced to disk. In all cases, a crash of the process loses no capture after
/// [`Writer::write`](super::Writer::write) has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Never: a power loss may cost data that the operating system had not written yet.
    Never,
    /// At the end of each file: a power loss may cost part of the open file.
    Finished,
    /// At the end of each file, and with the first capture after this time. A power loss may cost the captures of this time and of
    /// the pause before the next capture.
    Every(Duration),
    /// With each capture: a power loss costs no capture that was written completely.
    Capture,
}

impl WriterConfig {
    /// Creates a configuration with Heritrix's defaults: prefix `WEB`, 1,000,000,000 bytes, gzip. Files are synced when they are
    /// finished.
    pub fn new(directory: impl Into<PathBuf>) -> WriterConfig {
        WriterConfig {
            directory: directory.into(),
            further_directories: Vec::new(),
            format: ArchiveFormat::Warc,
            prefix: "WEB".to_owned(),
            template: NameTemplate::default(),
            size_max: 1_000_000_000,
            age_max: None,
            compression: Compression::Gzip(6),
            dictionary: None,
            digest: Algorithm::Sha1,
            further_digest: None,
            index: false,
            durability: Durability::Finished,
            host: "localhost".to_owned(),
            pid: std::process::id(),
            port: 0,
        }
    }

    /// All directories, beginning with the main one.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.directory]
            .into_iter()
            .chain(&self.further_directories)
    }
}
