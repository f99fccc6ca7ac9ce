//! Appends captures to WARC or ARC files. One file is open at a time; it is rotated by size and age. After a failed write the
//! file is cut back to its last complete capture.

mod append;
mod config;
mod create;
mod open_file;
mod writers;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use append::{AppendError, append};
use open_file::{OpenFile, since};

pub use config::{Durability, WriterConfig};
pub use writers::{Writers, archives};

use crate::cdxj::{self, CdxjEntry};
use crate::record::{Record, RecordId};
use crate::repair::{RepairedFile, free_name, repair, repair_file, sync_directory_of};
use crate::serialize::Packer;
use crate::warcinfo::WarcInfo;
use crate::write_error::WriteError;

/// Maximum finished files that are kept for [`Writer::take_finished`]; the oldest are dropped.
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
    /// Files that still have the suffix `.open` because they could not be finished.
    unfinished: Vec<PathBuf>,
}

/// The place of a written record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name of the finished file (no directory, no `.open`).
    pub file: String,
    /// Offset of the record (its gzip member).
    pub offset: u64,
    /// Bytes of the record in the file.
    pub length: u64,
    /// The record.
    pub record_id: RecordId,
}

impl Writer {
    /// Creates the directory, repairs the files that a killed process left in it, and reports them. The first capture creates a
    /// file.
    pub fn open(
        config: WriterConfig,
        info: WarcInfo,
    ) -> Result<(Writer, Vec<RepairedFile>), WriteError> {
        Writer::open_with_ids(config, info, RecordId::random)
    }

    /// Like [`Writer::open`], with a source of identifiers for the `warcinfo` records.
    pub fn open_with_ids(
        config: WriterConfig,
        info: WarcInfo,
        ids: impl FnMut() -> RecordId + Send + 'static,
    ) -> Result<(Writer, Vec<RepairedFile>), WriteError> {
        let mut repaired = Vec::new();
        for directory in config.directories() {
            fs::create_dir_all(directory).map_err(|source| WriteError::Directory {
                directory: directory.clone(),
                source,
            })?;
            repaired.extend(repair(directory, config.index)?);
        }
        let dictionary = config.dictionary.as_deref().unwrap_or_default();
        let packer = Packer::new(config.compression, dictionary).map_err(WriteError::Packer)?;
        let ids = Box::new(ids);
        let writer = Writer {
            config,
            info,
            ids,
            packer,
            current: None,
            serial: 0,
            finished: VecDeque::new(),
            unfinished: Vec::new(),
        };
        Ok((writer, repaired))
    }

    /// Writes all records of one capture to the same file, in order. They are passed to the operating system before this returns,
    /// so that a crash of the process does not lose the capture. After an error, nothing of the capture is in the file.
    pub fn write(
        &mut self,
        capture: &[Record],
        now: Timestamp,
    ) -> Result<Vec<Location>, WriteError> {
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
                        AppendError::File(source) => WriteError::Write {
                            file: path,
                            offset: whole,
                            source,
                        },
                    })
                }
                (Err(cut), fault) => {
                    self.unfinished.push(file.path.clone());
                    Err(WriteError::Abandoned {
                        file: file.path,
                        offset: whole,
                        cut,
                        source: match fault {
                            AppendError::File(source) => source,
                            AppendError::Capture(error) => io::Error::other(error),
                        },
                    })
                }
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
            // Plugins or settings have changed, so the next records refer to a new description.
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

    /// Finishes the open file if it has reached its maximum age. Call it periodically while no captures are written;
    /// [`Writer::write`] includes this check.
    pub fn tick(&mut self, now: Timestamp) -> Result<Option<PathBuf>, WriteError> {
        match (&self.current, self.config.age_max) {
            (Some(file), Some(age_max)) if since(file.created, now) >= age_max => {
                self.finish_current()
            }
            _ => Ok(None),
        }
    }

    /// Finishes the open file, if there is one. The next capture begins another.
    pub fn rotate(&mut self) -> Result<Option<PathBuf>, WriteError> {
        self.finish_current()
    }

    /// Retries finishing files that could not be finished. Each is repaired as at a start, so parts that a failing disk has lost
    /// are cut off. Every file is tried. Returns the finished files, and the first error.
    pub fn finish_left(&mut self) -> (Vec<RepairedFile>, Option<WriteError>) {
        let (mut repaired, mut first_error) = (Vec::new(), None);
        for path in std::mem::take(&mut self.unfinished) {
            match repair_file(&path, self.config.index) {
                Ok(done) => {
                    for file in done.iter().flat_map(RepairedFile::files) {
                        self.remember(file.clone());
                    }
                    repaired.extend(done);
                }
                Err(error) => {
                    first_error = first_error.or(Some(error));
                    self.unfinished.push(path);
                }
            }
        }
        (repaired, first_error)
    }

    /// Files finished since the last call, oldest first: by size, by age, or by [`Writer::rotate`].
    pub fn take_finished(&mut self) -> Vec<PathBuf> {
        self.finished.drain(..).collect()
    }

    /// The file being written, with its `.open`.
    pub fn current(&self) -> Option<&Path> {
        self.current.as_ref().map(|file| file.path.as_path())
    }

    /// Finishes the open file: syncs it to disk (depending on [`WriterConfig::durability`]), renames it and returns its final name.
    /// A writer that is dropped without this call leaves a complete `.open` file.
    pub fn close(mut self) -> Result<Option<PathBuf>, WriteError> {
        self.finish_current()
    }

    fn finish_current(&mut self) -> Result<Option<PathBuf>, WriteError> {
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
                // The index is written before the rename, because a repair writes it only for files that still have `.open`.
                write_index(&target, entries)?;
            }
            fs::rename(&path, &target)?;
            if self.config.durability != Durability::Never {
                sync_directory_of(&target)?;
            }
            Ok(target)
        };
        let finished = finish();
        // Another process, or a later attempt of this one, may repair it now.
        drop(file);
        let target = finished.map_err(|source| {
            self.unfinished.push(path.clone());
            WriteError::Finish { file: path, source }
        })?;
        if let Some(index) = index {
            // The sorted index exists, so the index of the open file is no longer used.
            let _ = fs::remove_file(index.path);
        }
        self.remember(target.clone());
        Ok(Some(target))
    }

    fn remember(&mut self, finished: PathBuf) {
        if self.finished.len() == FINISHED_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back(finished);
    }
}

/// Writes the index of a file's records under the name that the file will get.
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::record::Block;

    #[test]
    fn a_file_that_can_neither_be_written_nor_cut_back_stays_open_for_repair() {
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
        // A read-only handle refuses both writing and cutting.
        open.file = File::open(&open.path).unwrap();
        let error = writer
            .write(&[record("lost")], Timestamp::UNIX_EPOCH)
            .unwrap_err();
        assert!(
            matches!(error, WriteError::Abandoned { offset, .. } if offset == whole),
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

    #[test]
    fn a_file_that_could_not_be_finished_is_finished_later_with_its_index() {
        let directory = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            index: true,
            ..WriterConfig::new(directory.path())
        };
        let (mut writer, _) = Writer::open(config, WarcInfo::new("opilio")).unwrap();
        let record = |text: &str| Record {
            block: Block::from(format!("HTTP/1.1 200 OK\r\n\r\n{text}").into_bytes()),
            ..Record::response(
                RecordId::random(),
                Timestamp::UNIX_EPOCH,
                "http://a.example/",
                Block::from(Vec::new()),
            )
        };
        let location = &writer
            .write(&[record("one")], Timestamp::UNIX_EPOCH)
            .unwrap()[0];
        let target = directory.path().join(&location.file);
        let index = cdxj::index_path(&target);
        // A folder of the same name prevents the file.
        let obstacle = index.with_extension("cdxj.draft");
        fs::create_dir(&obstacle).unwrap();
        let error = writer.rotate().unwrap_err();
        assert!(matches!(error, WriteError::Finish { .. }), "{error:?}");
        let (repaired, error) = writer.finish_left();
        assert!(repaired.is_empty() && error.is_some());
        assert!(!target.exists() && writer.take_finished().is_empty());

        fs::remove_dir(&obstacle).unwrap();
        let (repaired, error) = writer.finish_left();
        assert!(error.is_none(), "{error:?}");
        assert_eq!((repaired[0].records, repaired[0].cut_bytes), (2, 0));
        assert_eq!(writer.take_finished(), std::slice::from_ref(&target));
        let lines = fs::read_to_string(index).unwrap();
        assert!(lines.contains("http://a.example/"), "{lines}");
        let mut names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        assert_eq!(names, [cdxj::index_path(&target), target]);
        let (repaired, error) = writer.finish_left();
        assert!(repaired.is_empty() && error.is_none());
    }
}
