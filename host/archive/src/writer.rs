//! Appends captures to WARC or ARC files: one open file at a time, rotated by size and age, cut back
//! to the last whole capture when a write fails.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::arc;
use crate::cdxj::{self, CdxjEntry};
use crate::digest::{Algorithm, Digest, Hasher};
use crate::name::{NameParts, NameTemplate};
use crate::reader::{Extent, Format, ReadError};
use crate::record::{Block, Record, RecordId, RecordKind};
use crate::repair::{OPEN_SUFFIX, Repaired, free_name, is_archive, repair, sync_directory_of};
use crate::serialize::{HeaderError, Output, Packer, TRAILER, header, read_spool, warcinfo_header};
use crate::warcinfo::{PluginInForce, WarcInfo};
use crate::zst;

/// Bytes collected before they are handed to the operating system within a capture.
const WRITE_BYTES: usize = 256 * 1024;

/// Names tried for a new file before giving up: other writers may share directory and process.
const NAMES_MAX: u64 = 100_000;

/// Finished files remembered for [`Writer::take_finished`]; the oldest fall out.
const FINISHED_MAX: usize = 10_000;

/// Writes captures to one file after another.
pub struct Writer {
    config: WriterConfig,
    info: WarcInfo,
    ids: Box<dyn FnMut() -> RecordId + Send>,
    packer: Packer,
    current: Option<OpenFile>,
    serial: u64,
    finished: VecDeque<PathBuf>,
}

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
/// nothing that [`Writer::write`] has returned.
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

/// Where a record was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name the file has when it is finished (no directory, no `.open`).
    pub file: String,
    /// Where the record (its gzip member) begins.
    pub offset: u64,
    /// Bytes it takes in the file.
    pub length: u64,
    /// The record.
    pub record_id: RecordId,
}

/// A capture could not be written, or a file not finished. After any of these the writer can be
/// used again; unless the text says otherwise, nothing of the failed capture is in a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be made or listed.
    #[error("cannot use the directory {}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No file can be created.
    #[error("cannot create {}", file.display())]
    Create {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written (a full disk). It was cut back to its last whole capture.
    #[error("cannot write {} at offset {offset}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Its length before and after.
        offset: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file can neither be written nor cut back. It was left with `.open`, to be repaired at
    /// the next start; further captures go to a new file.
    #[error("cannot write {} at offset {offset}, nor cut it back ({cut}); it stays open for repair", file.display())]
    Abandoned {
        /// The file.
        file: PathBuf,
        /// The end of its last whole capture.
        offset: u64,
        /// Why it could not be cut back.
        cut: io::Error,
        /// Why it could not be written.
        #[source]
        source: io::Error,
    },
    /// A block kept elsewhere could not be read, or has another length than stated.
    #[error("cannot read the block of record {record}")]
    Block {
        /// The record.
        record: RecordId,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The packer cannot be set up.
    #[error("cannot pack records as they should be")]
    Packer(#[source] io::Error),
    /// A header cannot be written.
    #[error("cannot write the header of record {record}")]
    Header {
        /// The record.
        record: RecordId,
        /// Which one, and why.
        #[source]
        source: HeaderError,
    },
    /// The file cannot be forced to disk or renamed. It stays with `.open`, whole; the next start
    /// gives it its name.
    #[error("cannot finish {}", file.display())]
    Finish {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be put in order.
    #[error("cannot repair {}", file.display())]
    Repair {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be read.
    #[error("cannot repair what was left open")]
    Survey(#[from] ReadError),
}

/// The file being written.
struct OpenFile {
    file: File,
    /// What its index will list.
    entries: Vec<CdxjEntry>,
    /// The same, for whoever looks for captures meanwhile.
    index: Option<OpenIndex>,
    /// The plugins that its last `warcinfo` names are those in force.
    described: bool,
    /// With `.open`.
    path: PathBuf,
    /// Without.
    name: String,
    warcinfo: RecordId,
    created: Timestamp,
    synced: Timestamp,
    /// Bytes handed to the operating system.
    written: u64,
    /// Bytes not yet handed over; empty between captures.
    buffer: Vec<u8>,
}

/// The index of a file being written.
struct OpenIndex {
    file: File,
    path: PathBuf,
}

/// Why the records of a capture could not be appended; the file is named later.
enum AppendError {
    File(io::Error),
    Capture(Error),
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

impl Writer {
    /// Makes the directory, repairs the files a killed process left in it, and reports them. A
    /// file is created with the first capture.
    pub fn open(config: WriterConfig, info: WarcInfo) -> Result<(Writer, Vec<Repaired>), Error> {
        Writer::open_with_ids(config, info, RecordId::random)
    }

    /// As [`Writer::open`], with a source of identifiers for the `warcinfo` records.
    pub fn open_with_ids(
        config: WriterConfig,
        info: WarcInfo,
        ids: impl FnMut() -> RecordId + Send + 'static,
    ) -> Result<(Writer, Vec<Repaired>), Error> {
        let mut repaired = Vec::new();
        for directory in config.directories() {
            fs::create_dir_all(directory).map_err(|source| Error::Directory {
                directory: directory.clone(),
                source,
            })?;
            repaired.extend(repair(directory)?);
        }
        if config.index {
            for file in repaired.iter().flat_map(Repaired::files) {
                let entries = cdxj::index(file)?;
                cdxj::write(&cdxj::index_path(file), &entries).map_err(|source| Error::Repair {
                    file: file.clone(),
                    source,
                })?;
            }
        }
        let dictionary = config.dictionary.as_deref().unwrap_or_default();
        let packer = Packer::new(config.compression, dictionary).map_err(Error::Packer)?;
        let ids = Box::new(ids);
        let writer = Writer {
            config,
            info,
            ids,
            packer,
            current: None,
            serial: 0,
            finished: VecDeque::new(),
        };
        Ok((writer, repaired))
    }

    /// Writes all records of one capture to the same file, in order, and hands them to the
    /// operating system before it returns: a crash of the process loses nothing that was
    /// returned. On an error nothing of the capture is in the file.
    pub fn write(&mut self, capture: &[Record], now: Timestamp) -> Result<Vec<Location>, Error> {
        if capture.is_empty() {
            return Ok(Vec::new());
        }
        self.tick(now)?;
        if self
            .current
            .as_ref()
            .is_some_and(|file| file.written >= self.config.size_max)
        {
            self.finish_current()?;
        }
        let mut file = match self.current.take() {
            Some(file) => file,
            None => self.create(now)?,
        };
        let (whole, listed) = (file.written, file.entries.len());
        let result = self.append_capture(&mut file, capture, now);
        match result {
            Ok(locations) => {
                file.list_from(listed);
                self.current = Some(file);
                Ok(locations)
            }
            Err(fault) => match (file.cut_back(whole, listed), fault) {
                (Ok(()), fault) => {
                    let path = file.path.clone();
                    self.current = Some(file);
                    Err(match fault {
                        AppendError::Capture(error) => error,
                        AppendError::File(source) => Error::Write {
                            file: path,
                            offset: whole,
                            source,
                        },
                    })
                }
                (Err(cut), AppendError::File(source)) => Err(Error::Abandoned {
                    file: file.path,
                    offset: whole,
                    cut,
                    source,
                }),
                (Err(cut), AppendError::Capture(error)) => Err(Error::Abandoned {
                    file: file.path,
                    offset: whole,
                    cut,
                    source: io::Error::other(error),
                }),
            },
        }
    }

    fn append_capture(
        &mut self,
        file: &mut OpenFile,
        capture: &[Record],
        now: Timestamp,
    ) -> Result<Vec<Location>, AppendError> {
        if !file.described {
            // Other plugins decide now: what follows names another description.
            let warcinfo = (self.ids)();
            self.describe(file, warcinfo, now)
                .map_err(AppendError::File)?;
            file.warcinfo = warcinfo;
        }
        let locations = append(&mut self.packer, file, &self.config, capture)?;
        file.sync_if_due(self.config.durability, now)
            .map_err(AppendError::File)?;
        file.described = true;
        Ok(locations)
    }

    /// Finishes the open file if it is past its age; to be called now and then while no captures
    /// come. [`Writer::write`] does it by itself.
    pub fn tick(&mut self, now: Timestamp) -> Result<Option<PathBuf>, Error> {
        match (&self.current, self.config.age_max) {
            (Some(file), Some(age_max)) if since(file.created, now) >= age_max => {
                self.finish_current()
            }
            _ => Ok(None),
        }
    }

    /// Finishes the open file, if there is one, so that the next capture begins another.
    pub fn rotate(&mut self) -> Result<Option<PathBuf>, Error> {
        self.finish_current()
    }

    /// Files finished since the last call, oldest first: by size, by age, or by
    /// [`Writer::rotate`].
    pub fn take_finished(&mut self) -> Vec<PathBuf> {
        self.finished.drain(..).collect()
    }

    /// The file being written, with its `.open`.
    pub fn current(&self) -> Option<&Path> {
        self.current.as_ref().map(|file| file.path.as_path())
    }

    /// Finishes the open file: forces it to disk (by policy) and gives it its final name, which
    /// is returned. A writer that is dropped without this leaves a whole `.open` file.
    pub fn close(mut self) -> Result<Option<PathBuf>, Error> {
        self.finish_current()
    }

    fn finish_current(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some(file) = self.current.take() else {
            return Ok(None);
        };
        let OpenFile {
            file,
            path,
            name,
            entries,
            index,
            ..
        } = file;
        let finish = || -> io::Result<PathBuf> {
            if self.config.durability != Durability::Never {
                file.sync_all()?;
            }
            let target = free_name(path.with_file_name(name))?;
            if self.config.index {
                // Before the file has its name: repair writes the index of a file that has not.
                write_index(&target, entries)?;
            }
            fs::rename(&path, &target)?;
            if self.config.durability != Durability::Never {
                sync_directory_of(&target)?;
            }
            Ok(target)
        };
        let target = finish().map_err(|source| Error::Finish {
            file: path.clone(),
            source,
        })?;
        if let Some(index) = index {
            // The sorted one is there; this one would be taken for nothing.
            let _ = fs::remove_file(index.path);
        }
        if self.finished.len() == FINISHED_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back(target.clone());
        Ok(Some(target))
    }

    /// Creates a file under a name nobody has, locks it, and writes its `warcinfo`.
    fn create(&mut self, now: Timestamp) -> Result<OpenFile, Error> {
        let (file, path, name) = self.create_locked(now)?;
        let warcinfo = (self.ids)();
        let mut file = OpenFile {
            file,
            entries: Vec::new(),
            index: None,
            described: true,
            path,
            name,
            warcinfo,
            created: now,
            synced: now,
            written: 0,
            buffer: Vec::new(),
        };
        match self.begin(&mut file, now) {
            Ok(()) => {
                if self.config.index {
                    file.index = Some(OpenIndex::create(&file)?);
                }
                Ok(file)
            }
            Err(source) => {
                // Nothing is in it; if it cannot be removed, the next start will.
                let _ = fs::remove_file(&file.path);
                Err(Error::Write {
                    file: file.path,
                    offset: 0,
                    source,
                })
            }
        }
    }

    /// What every file begins with.
    fn begin(&mut self, file: &mut OpenFile, now: Timestamp) -> io::Result<()> {
        if let (Compression::Zstd(_), Some(dictionary)) =
            (self.config.compression, &self.config.dictionary)
        {
            file.buffer
                .extend_from_slice(&zst::dictionary_frame(dictionary)?);
        }
        self.describe(file, file.warcinfo, now)?;
        if self.config.format == Format::Warc {
            for document in self.info.documents.clone() {
                let record = Record {
                    concurrent_to: vec![file.warcinfo],
                    ..Record::resource(
                        (self.ids)(),
                        now,
                        document.target_uri,
                        &document.content_type,
                        document.content.into(),
                    )
                };
                append(&mut self.packer, file, &self.config, &[record]).map_err(
                    |fault| match fault {
                        AppendError::File(source) => source,
                        AppendError::Capture(error) => io::Error::other(error),
                    },
                )?;
            }
        }
        file.flush()?;
        if self.config.durability != Durability::Never {
            sync_directory_of(&file.path)?;
        }
        Ok(())
    }

    /// Says what is known of the crawl: a `warcinfo` record, or the description that an ARC file begins with.
    fn describe(
        &mut self,
        file: &mut OpenFile,
        warcinfo: RecordId,
        now: Timestamp,
    ) -> io::Result<()> {
        let record = match self.config.format {
            Format::Arc if file.position() > 0 => return Ok(()),
            Format::Arc => arc::file_description(&file.name, now, &self.info).into_bytes(),
            Format::Warc => {
                let block = self.info.fields().to_bytes();
                let digest = Digest::of(self.config.digest, &block);
                let further = self.config.further_digest.map(|by| Digest::of(by, &block));
                let header =
                    warcinfo_header(warcinfo, now, &file.name, (digest, further), block.len());
                [header.as_bytes(), &block, TRAILER].concat()
            }
        };
        self.packer.begin(file, record.len() as u64)?;
        self.packer.feed(&record, file)?;
        self.packer.end(file)
    }

    fn create_locked(&mut self, now: Timestamp) -> Result<(File, PathBuf, String), Error> {
        let ending = match (self.config.format, self.config.compression) {
            (Format::Warc, Compression::None) => ".warc",
            (Format::Warc, Compression::Gzip(_)) => ".warc.gz",
            (Format::Warc, Compression::Zstd(_)) => ".warc.zst",
            (Format::Arc, Compression::None) => ".arc",
            (Format::Arc, Compression::Gzip(_) | Compression::Zstd(_)) => ".arc.gz",
        };
        let mut last = PathBuf::new();
        for _ in 0..NAMES_MAX {
            let name = self.config.template.name(
                NameParts {
                    prefix: &self.config.prefix,
                    created: now,
                    serial: self.serial,
                    pid: self.config.pid,
                    host: &self.config.host,
                    port: self.config.port,
                },
                ending,
            );
            let directory = self.next_directory();
            self.serial += 1;
            let path = directory.join(format!("{name}{OPEN_SUFFIX}"));
            match create_new(&path, &directory.join(&name)) {
                Ok(Some(file)) => return Ok((file, path, name)),
                Ok(None) => last = path,
                Err(source) => return Err(Error::Create { file: path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(Error::Create { file: last, source })
    }

    fn next_directory(&self) -> PathBuf {
        let count = self.config.further_directories.len() as u64 + 1;
        let turn = usize::try_from(self.serial % count).unwrap_or(0);
        self.config
            .directories()
            .nth(turn)
            .unwrap_or(&self.config.directory)
            .clone()
    }
}

/// Lists the records of a file under the name that it is about to have.
fn write_index(target: &Path, mut entries: Vec<CdxjEntry>) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    for entry in &mut entries {
        entry.capture.filename = Some(name.to_string());
    }
    cdxj::sort(&mut entries);
    cdxj::write(&cdxj::index_path(target), &entries)
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("config", &self.config)
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

/// A new, locked file; `None` if the name is taken.
fn create_new(path: &Path, target: &Path) -> io::Result<Option<File>> {
    if target.try_exists()? {
        return Ok(None);
    }
    let file = match OpenOptions::new().append(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(e) => return Err(e),
    };
    // A file system without locks must do without; nobody else repairs there either.
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Ok(()) | Err(fs::TryLockError::Error(_)) => {}
    }
    // Another process' repair may have taken the empty file for a leftover before it was locked.
    Ok(path.try_exists()?.then_some(file))
}

fn append(
    packer: &mut Packer,
    file: &mut OpenFile,
    config: &WriterConfig,
    capture: &[Record],
) -> Result<Vec<Location>, AppendError> {
    let mut locations = Vec::with_capacity(capture.len());
    for record in capture {
        let offset = file.position();
        let digest = append_record(packer, file, config, record)?;
        let length = file.position() - offset;
        if length == 0 {
            // ARC has no place for it.
            continue;
        }
        if config.index
            && let Some(mut entry) = cdxj::written(record)
        {
            if entry.capture.digest.is_none() && record.kind == RecordKind::Resource {
                entry.capture.digest = digest.map(|digest| digest.to_string());
            }
            let extent = Extent {
                offset,
                length,
                shared: false,
            };
            file.entries.push(entry.at(extent, &file.name));
        }
        locations.push(Location {
            file: file.name.clone(),
            offset,
            length,
            record_id: record.id,
        });
    }
    file.flush().map_err(AppendError::File)?;
    Ok(locations)
}

/// Appends a record, and returns the digest of its block where one was made.
fn append_record(
    packer: &mut Packer,
    file: &mut OpenFile,
    config: &WriterConfig,
    record: &Record,
) -> Result<Option<Digest>, AppendError> {
    let (header, trailer, digest): (String, &[u8], _) = match config.format {
        Format::Arc => match arc::line(record) {
            Some(line) => (line, b"\n", None),
            None => return Ok(None),
        },
        Format::Warc => {
            let (digest, further) = block_digests(record, config)?;
            let header = header(record, file.warcinfo, (digest, further)).map_err(|source| {
                AppendError::Capture(Error::Header {
                    record: record.id,
                    source,
                })
            })?;
            (header, TRAILER, Some(digest))
        }
    };
    let length = header.len() as u64 + record.block.length() + trailer.len() as u64;
    packer.begin(file, length).map_err(AppendError::File)?;
    packer
        .feed(header.as_bytes(), file)
        .map_err(AppendError::File)?;
    each_piece(record, |bytes| {
        packer.feed(bytes, file).map_err(AppendError::File)
    })?;
    packer.feed(trailer, file).map_err(AppendError::File)?;
    packer.end(file).map_err(AppendError::File)?;
    Ok(digest)
}

/// The digests of a record's block, made in one go as far as they are not known.
fn block_digests(
    record: &Record,
    config: &WriterConfig,
) -> Result<(Digest, Option<Digest>), AppendError> {
    if let (Some(digest), None) = (record.block_digest, config.further_digest) {
        return Ok((digest, None));
    }
    let mut hasher = Hasher::new(config.digest);
    let mut further = config.further_digest.map(Hasher::new);
    each_piece(record, |bytes| {
        hasher.update(bytes);
        if let Some(further) = &mut further {
            further.update(bytes);
        }
        Ok(())
    })?;
    let digest = record.block_digest.unwrap_or_else(|| hasher.finish());
    Ok((digest, further.map(Hasher::finish)))
}

/// Goes through a record's block piece by piece.
fn each_piece(
    record: &Record,
    mut each: impl FnMut(&[u8]) -> Result<(), AppendError>,
) -> Result<(), AppendError> {
    match &record.block {
        Block::Bytes(bytes) => each(bytes),
        Block::Spool { length, open } => {
            let fault = |source| {
                AppendError::Capture(Error::Block {
                    record: record.id,
                    source,
                })
            };
            let reader = open().map_err(fault)?;
            read_spool(reader, *length, fault, each)
        }
    }
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(then)
        .try_into()
        .unwrap_or(Duration::ZERO)
}

impl OpenFile {
    /// Where the next byte goes.
    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Adds what was listed since to the index that others read. Where that cannot be done they do without, until the file is
    /// finished: no capture fails for it.
    fn list_from(&mut self, listed: usize) {
        let lines = self.entries[listed..].iter();
        let lines: String = lines.map(|entry| format!("{entry}\n")).collect();
        if let Some(index) = &mut self.index
            && index.file.write_all(lines.as_bytes()).is_err()
        {
            let _ = fs::remove_file(&index.path);
            self.index = None;
        }
    }

    fn sync_if_due(&mut self, durability: Durability, now: Timestamp) -> io::Result<()> {
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

    /// Makes the file as long as it was; it is appended to, so writing goes on from there.
    fn cut_back(&mut self, length: u64, listed: usize) -> io::Result<()> {
        self.buffer.clear();
        self.entries.truncate(listed);
        self.file.set_len(length)?;
        self.written = length;
        Ok(())
    }
}

impl OpenIndex {
    fn create(file: &OpenFile) -> Result<OpenIndex, Error> {
        let path = cdxj::open_index_path(&file.path.with_file_name(&file.name));
        match File::create(&path) {
            Ok(file) => Ok(OpenIndex { file, path }),
            Err(source) => Err(Error::Create { file: path, source }),
        }
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

/// Several writers to one directory, so that captures need not wait for one another.
#[derive(Debug)]
pub struct Writers {
    writers: Vec<Mutex<Writer>>,
    next: AtomicUsize,
    /// Bytes in the files of the directories, those of earlier processes included.
    bytes: AtomicU64,
}

impl Writers {
    /// Opens `count` writers (at least one), and reports what was repaired.
    pub fn open(
        config: &WriterConfig,
        info: &WarcInfo,
        count: usize,
    ) -> Result<(Writers, Vec<Repaired>), Error> {
        let mut writers = Vec::new();
        let mut all_repaired = Vec::new();
        for _ in 0..count.max(1) {
            let (writer, repaired) = Writer::open(config.clone(), info.clone())?;
            writers.push(Mutex::new(writer));
            all_repaired.extend(repaired);
        }
        let files = archives(config)?;
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        Ok((
            Writers {
                writers,
                next: AtomicUsize::new(0),
                bytes: AtomicU64::new(bytes),
            },
            all_repaired,
        ))
    }

    /// Other plugins decide from now on: captures that follow name a description that has these.
    pub fn set_plugins(&self, plugins: &[PluginInForce]) {
        for writer in &self.writers {
            let mut writer = lock(writer);
            writer.info.plugins = plugins.to_vec();
            if let Some(file) = &mut writer.current {
                file.described = false;
            }
        }
    }

    /// Bytes of all records in the directories, those of earlier processes included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes a capture to whichever writer is free, or waits for the one whose turn it is.
    pub fn write(&self, capture: &[Record], now: Timestamp) -> Result<Vec<Location>, Error> {
        // Begin with the first, so that files fill up one after another under light load.
        let free = self
            .writers
            .iter()
            .find_map(|writer| writer.try_lock().ok());
        let mut writer = match free {
            Some(writer) => writer,
            None => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.writers.len();
                lock(&self.writers[turn])
            }
        };
        let locations = writer.write(capture, now)?;
        let bytes = locations.iter().map(|location| location.length).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(locations)
    }

    /// Finishes every file past its age.
    pub fn tick(&self, now: Timestamp) -> Result<(), Error> {
        for writer in &self.writers {
            lock(writer).tick(now)?;
        }
        Ok(())
    }

    /// Files finished since the last call.
    pub fn take_finished(&self) -> Vec<PathBuf> {
        self.writers
            .iter()
            .flat_map(|writer| lock(writer).take_finished())
            .collect()
    }

    /// Finishes all open files and returns their names; a later capture begins a new file. Every
    /// file is tried; the first error is returned.
    pub fn finish(&self) -> Result<Vec<PathBuf>, Error> {
        let mut closed = Vec::new();
        let mut first_error = None;
        for writer in &self.writers {
            match lock(writer).rotate() {
                Ok(path) => closed.extend(path),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(closed), Err)
    }
}

/// The finished files in the directories of a configuration and their lengths, by name.
pub fn archives(config: &WriterConfig) -> Result<Vec<(PathBuf, u64)>, Error> {
    let mut files = Vec::new();
    for directory in config.directories() {
        let mut list = || -> io::Result<()> {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                if is_archive(&entry.file_name().to_string_lossy()) {
                    files.push((entry.path(), entry.metadata()?.len()));
                }
            }
            Ok(())
        };
        list().map_err(|source| Error::Directory {
            directory: directory.clone(),
            source,
        })?;
    }
    files.sort();
    Ok(files)
}

/// A panic in the midst of a write has dropped the open file: it keeps its `.open` for the next
/// repair, and the writer begins another.
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn files_name_the_plugins_in_force_when_they_were_begun() {
        let directory = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            compression: Compression::None,
            ..WriterConfig::new(directory.path())
        };
        let (writers, _) = Writers::open(&config, &WarcInfo::new("opilio"), 1).unwrap();
        let capture = || {
            let record = Record::request(
                RecordId::random(),
                Timestamp::UNIX_EPOCH,
                "http://a.example/",
                Block::from(Vec::new()),
            );
            writers.write(&[record], Timestamp::UNIX_EPOCH).unwrap();
        };
        let plugin = PluginInForce {
            name: "html".to_owned(),
            version: "2.0.0".to_owned(),
            hash: "sha256:00".to_owned(),
            settings: None,
        };
        capture();
        writers.set_plugins(&[plugin]);
        let before = writers.finish().unwrap();
        capture();
        let after = writers.finish().unwrap();
        let names_it = |files: &[PathBuf]| {
            let text = fs::read(&files[0]).unwrap();
            String::from_utf8_lossy(&text).contains("plugin: html 2.0.0")
        };
        assert!(!names_it(&before) && names_it(&after));
    }

    #[test]
    fn a_file_that_can_neither_be_written_nor_cut_back_is_left_to_repair() {
        let directory = tempfile::tempdir().unwrap();
        let config = WriterConfig::new(directory.path());
        let (mut writer, _) = Writer::open(config.clone(), WarcInfo::new("opilio")).unwrap();
        let record = |text: &str| {
            let block = Block::from(text.as_bytes().to_vec());
            Record::request(
                RecordId::random(),
                Timestamp::UNIX_EPOCH,
                "http://a.example/",
                block,
            )
        };
        let first = writer
            .write(&[record("first")], Timestamp::UNIX_EPOCH)
            .unwrap();
        let open = writer.current.as_mut().unwrap();
        let whole = open.written;
        // A handle that refuses both.
        open.file = File::open(&open.path).unwrap();
        let error = writer
            .write(&[record("lost")], Timestamp::UNIX_EPOCH)
            .unwrap_err();
        assert!(
            matches!(error, Error::Abandoned { offset, .. } if offset == whole),
            "{error:?}"
        );
        let second = writer
            .write(&[record("second")], Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_ne!(first[0].file, second[0].file);
        writer.close().unwrap();

        let (_, repaired) = Writer::open(config, WarcInfo::new("opilio")).unwrap();
        let file = Some(directory.path().join(&first[0].file));
        assert_eq!(
            (repaired.len(), &repaired[0].file, repaired[0].records),
            (1, &file, 2)
        );
    }
}
