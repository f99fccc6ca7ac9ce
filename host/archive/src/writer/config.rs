//! Where files go, what they are called, how they are packed, and what survives power loss.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::digest::Algorithm;
use crate::name::NameTemplate;
use crate::reader::Format;

/// Where files go, what they are called and how large they grow.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Where the files go; made if absent.
    pub directory: PathBuf,
    /// Where they go as well: each new file to the next of all directories.
    pub further_directories: Vec<PathBuf>,
    /// What is written.
    pub format: Format,
    /// `${prefix}` of the names.
    pub prefix: String,
    /// How files are called.
    pub template: NameTemplate,
    /// A file that has reached this many bytes takes no further capture. It may be longer by one
    /// capture, since a capture stays in one file.
    pub size_max: u64,
    /// A file this old takes no further capture.
    pub age_max: Option<Duration>,
    /// How records are packed.
    pub compression: Compression,
    /// What zstd frames refer to; each file begins with it.
    pub dictionary: Option<Arc<[u8]>>,
    /// How block digests are made.
    pub digest: Algorithm,
    /// A second block digest, in a header of its own: the standard has room for one.
    pub further_digest: Option<Algorithm>,
    /// Whether an index is written beside each file when it is finished ([`crate::index_path`]).
    pub index: bool,
    /// What survives power loss.
    pub durability: Durability,
    /// `${host}` of the names.
    pub host: String,
    /// `${pid}` of the names.
    pub pid: u32,
    /// `${port}` of the names: that of the console, 0 where there is none.
    pub port: u16,
}

/// How records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain, `.warc`.
    None,
    /// A gzip member per record, `.warc.gz`; level 0 to 9 (more counts as 9).
    Gzip(u32),
    /// A zstd frame per record, `.warc.zst`; level 1 to 22. Not for ARC.
    Zstd(i32),
}

/// When what was written is forced to the disk. Whatever is chosen, a crash of the process loses
/// nothing that [`Writer::write`](super::Writer::write) has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Never: a power loss may cost what the operating system had not written yet.
    Never,
    /// When a file is finished: a power loss may cost part of the open file.
    Finished,
    /// When a file is finished, and with the first capture after this long: a power loss may cost
    /// what this time and the pause before the next capture brought.
    Every(Duration),
    /// With each capture: a power loss costs nothing that was returned.
    Capture,
}

impl WriterConfig {
    /// The predecessor's defaults: prefix `WEB`, 1,000,000,000 bytes, gzip; files are forced to
    /// disk when they are finished.
    pub fn new(directory: impl Into<PathBuf>) -> WriterConfig {
        WriterConfig {
            directory: directory.into(),
            further_directories: Vec::new(),
            format: Format::Warc,
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

    /// All directories, the first first.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.directory]
            .into_iter()
            .chain(&self.further_directories)
    }
}
