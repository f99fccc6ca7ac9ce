//! Creates a new file under an unused name, locks it, and writes its first records.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::append::{AppendError, append};
use super::open_file::{OpenFile, OpenIndex};
use super::{Durability, WriteError, Writer};
use crate::ArchiveFormat;
use crate::arc;
use crate::digest::Digest;
use crate::name::{NameParts, OPEN_SUFFIX};
use crate::record::{Record, RecordId};
use crate::repair::sync_directory_of;
use crate::serialize::{Compression, TRAILER, warcinfo_header};
use crate::zst;

/// Maximum names tried for a new file: other writers may share directory and process.
const NAMES_MAX: u64 = 100_000;

impl Writer {
    /// Creates a file under an unused name, locks it, and writes its `warcinfo`.
    pub(super) fn create(&mut self, now: Timestamp) -> Result<OpenFile, WriteError> {
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
                    // If the index cannot be created, readers have no index until the file is finished.
                    file.index = OpenIndex::create(&file).ok();
                }
                Ok(file)
            }
            Err(source) => {
                // The file is empty. If it cannot be removed, the next start removes it.
                let _ = fs::remove_file(&file.path);
                Err(WriteError::Write {
                    file: file.path,
                    offset: 0,
                    source,
                })
            }
        }
    }

    /// Writes the beginning of every file.
    fn begin(&mut self, file: &mut OpenFile, now: Timestamp) -> io::Result<()> {
        if let (Compression::Zstd(_), Some(dictionary)) =
            (self.config.compression, &self.config.dictionary)
        {
            file.buffer
                .extend_from_slice(&zst::dictionary_frame(dictionary)?);
        }
        self.describe(file, file.warcinfo, now)?;
        if self.config.format == ArchiveFormat::Warc {
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

    /// Writes the description of the crawl: a `warcinfo` record, or the first record of an ARC file.
    pub(super) fn describe(
        &mut self,
        file: &mut OpenFile,
        warcinfo: RecordId,
        now: Timestamp,
    ) -> io::Result<()> {
        let record = match self.config.format {
            ArchiveFormat::Arc if file.position() > 0 => return Ok(()),
            ArchiveFormat::Arc => arc::file_description(&file.name, now, &self.info).into_bytes(),
            ArchiveFormat::Warc => {
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

    fn create_locked(&mut self, now: Timestamp) -> Result<(File, PathBuf, String), WriteError> {
        let ending = match (self.config.format, self.config.compression) {
            (ArchiveFormat::Warc, Compression::None) => ".warc",
            (ArchiveFormat::Warc, Compression::Gzip(_)) => ".warc.gz",
            (ArchiveFormat::Warc, Compression::Zstd(_)) => ".warc.zst",
            (ArchiveFormat::Arc, Compression::None) => ".arc",
            (ArchiveFormat::Arc, Compression::Gzip(_) | Compression::Zstd(_)) => ".arc.gz",
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
                Err(source) => return Err(WriteError::Create { file: path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(WriteError::Create { file: last, source })
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
    // On a file system without locks, other processes repair no files either.
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Ok(()) | Err(fs::TryLockError::Error(_)) => {}
    }
    // Before it was locked, a repair by another process may have removed the empty file as abandoned.
    Ok(path.try_exists()?.then_some(file))
}
