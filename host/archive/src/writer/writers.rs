//! Several writers to the same directories, and the finished files in them.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::{Location, WriteError, Writer, WriterConfig};
use crate::name::is_archive;
use crate::record::Record;
use crate::repair::RepairedFile;
use crate::warcinfo::WarcInfo;

/// Several writers to the same directories, so that captures need not wait for each other.
#[derive(Debug)]
pub struct Writers {
    writers: Vec<Mutex<Writer>>,
    next: AtomicUsize,
    /// Bytes in the files of the directories, including files of earlier processes.
    bytes: AtomicU64,
}

impl Writers {
    /// Opens `count` writers (at least one), and returns the repaired files.
    pub fn open(
        config: &WriterConfig,
        info: &WarcInfo,
        count: usize,
    ) -> Result<(Writers, Vec<RepairedFile>), WriteError> {
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

    /// Sets the description of the crawl from now on. If it has changed, the next capture in an open file gets a `warcinfo`
    /// record before it.
    pub fn describe(&self, info: &WarcInfo) {
        for writer in &self.writers {
            let mut writer = lock(writer);
            let is_same = writer.info.fields() == info.fields();
            writer.info = info.clone();
            if let Some(file) = &mut writer.current {
                file.described &= is_same;
            }
        }
    }

    /// Bytes of all records in the directories, including those of earlier processes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes of files that were moved elsewhere to the bytes of the directories.
    pub fn count_elsewhere(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Writes a capture with a free writer. If none is free, waits for one; the writers are chosen in rotation.
    pub fn write(&self, capture: &[Record], now: Timestamp) -> Result<Vec<Location>, WriteError> {
        // The search begins with the first writer, so that files are filled one after another under light load.
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
    pub fn tick(&self, now: Timestamp) -> Result<(), WriteError> {
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

    /// Finishes all open files and returns their names; a later capture begins a new file. Every file is tried; the first error
    /// is returned.
    pub fn finish(&self) -> Result<Vec<PathBuf>, WriteError> {
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

    /// Retries finishing files that could not be finished ([`Writer::finish_left`]).
    pub fn finish_left(&self) -> (Vec<RepairedFile>, Option<WriteError>) {
        let (mut repaired, mut first_error) = (Vec::new(), None);
        for writer in &self.writers {
            let (more, error) = lock(writer).finish_left();
            repaired.extend(more);
            first_error = first_error.or(error);
        }
        (repaired, first_error)
    }
}

/// Locks a writer. If a write has panicked, its open file was dropped: the file keeps the suffix `.open` for the next repair, and
/// the writer creates another one.
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The finished files in the directories of a configuration and their lengths, by name.
pub fn archives(config: &WriterConfig) -> Result<Vec<(PathBuf, u64)>, WriteError> {
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
        list().map_err(|source| WriteError::Directory {
            directory: directory.clone(),
            source,
        })?;
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PluginInForce;
    use crate::record::{Block, RecordId};
    use crate::serialize::Compression;

    #[test]
    fn files_list_the_plugins_in_effect_when_they_were_created() {
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
        writers.describe(&WarcInfo {
            plugins: vec![plugin],
            ..WarcInfo::new("opilio")
        });
        let before = writers.finish().unwrap();
        capture();
        let after = writers.finish().unwrap();
        let names_it = |files: &[PathBuf]| {
            let text = fs::read(&files[0]).unwrap();
            String::from_utf8_lossy(&text).contains("plugin: html 2.0.0")
        };
        assert!(!names_it(&before) && names_it(&after));
    }
}
