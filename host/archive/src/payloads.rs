//! Which payloads are stored already, by digest: what a crawl has written, what other jobs have, and what indexes (CDXJ)
//! of earlier archives list. One store on disk, looked up without being loaded.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::arc;
use crate::cdxj::{self, CdxjCapture};
use crate::digest::Digest;

/// Memory for blocks of the store.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// Payloads of an earlier archive that are put in at a time.
const BATCH: usize = 1024;

/// The payloads that are stored, and where. One process at a time.
pub struct Payloads {
    database: Database,
    path: PathBuf,
    /// Digest to [`StoredPayload`].
    payloads: Keyspace,
    /// Indexes that were read: path to length and time of change.
    read: Keyspace,
}

/// The capture that has a payload whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPayload {
    /// Its URI.
    pub uri: String,
    /// Its `WARC-Date`, as far as it is known: indexes have seconds.
    pub date: Timestamp,
    /// Its `WARC-Record-ID` without angle brackets; indexes have none.
    pub record_id: Option<String>,
    /// Its file, without folder.
    pub file: String,
    /// Where its record begins there.
    pub offset: u64,
}

/// What became of an index that was to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryRead {
    /// It has not changed since it was read last.
    pub known_already: bool,
    /// Payloads that were not known before.
    pub payloads: u64,
    /// Lines that are none of an index.
    pub bad_lines: u64,
}

/// Payloads cannot be looked up or kept.
#[derive(Debug, thiserror::Error)]
pub enum PayloadsError {
    /// Another process has the store.
    #[error(
        "the index of digests in {} is in use by another process; jobs that share one run one after another",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The store cannot be opened, read or written.
    #[error(
        "the index of digests in {} cannot be used{}",
        path.display(),
        advice(source)
    )]
    Store {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<fjall::Error>,
    },
    /// An index of an earlier archive cannot be read.
    #[error("cannot read {}", file.display())]
    History {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What helps where the file system is not to blame.
fn advice(source: &fjall::Error) -> &'static str {
    match source {
        fjall::Error::Io(_) | fjall::Error::Storage(fjall::LsmError::Io(_)) => "",
        _ => "; remove the folder: then payloads stored so far count as new",
    }
}

impl Payloads {
    /// Opens the store in a folder, which is made if absent.
    pub fn open(path: impl Into<PathBuf>) -> Result<Payloads, PayloadsError> {
        let path = path.into();
        let open = || -> Result<Payloads, fjall::Error> {
            let parent = path.parent().unwrap_or(&path);
            fs::create_dir_all(parent)?;
            let database = Database::builder(&path).cache_size(CACHE_BYTES).open()?;
            Ok(Payloads {
                payloads: database.keyspace("payloads", KeyspaceCreateOptions::default)?,
                read: database.keyspace("read", KeyspaceCreateOptions::default)?,
                database,
                path: path.clone(),
            })
        };
        open().map_err(|source| match source {
            fjall::Error::Locked => PayloadsError::InUse { path: path.clone() },
            source => PayloadsError::Store {
                path: path.clone(),
                source: Box::new(source),
            },
        })
    }

    /// Where a payload with this digest is stored whole. A value that cannot be understood counts as none.
    pub fn find(&self, digest: &Digest) -> Result<Option<StoredPayload>, PayloadsError> {
        let value = self
            .payloads
            .get(key(digest))
            .map_err(|source| self.fault(source))?;
        Ok(value.and_then(|value| postcard::from_bytes(&value).ok()))
    }

    /// Remembers where a payload is stored. What was known before is replaced.
    pub fn keep(&self, digest: &Digest, stored: &StoredPayload) -> Result<(), PayloadsError> {
        let Ok(value) = postcard::to_stdvec(stored) else {
            return Ok(());
        };
        self.payloads
            .insert(key(digest), value)
            .map_err(|source| self.fault(source))
    }

    /// Forgets payloads that the end of a file has taken with it: `kept` says of each such file how many bytes are left.
    /// Returns how many.
    pub fn forget(&self, kept: &HashMap<String, u64>) -> Result<u64, PayloadsError> {
        if kept.is_empty() {
            return Ok(0);
        }
        self.forget_where(|stored| {
            kept.get(&stored.file)
                .is_some_and(|kept| stored.offset >= *kept)
        })
    }

    /// Forgets payloads whose captures are gone. Returns how many.
    pub fn forget_where(
        &self,
        is_gone: impl Fn(&StoredPayload) -> bool,
    ) -> Result<u64, PayloadsError> {
        let mut gone = Vec::new();
        for guard in self.payloads.iter() {
            let (key, value) = guard.into_inner().map_err(|source| self.fault(source))?;
            let stored = postcard::from_bytes::<StoredPayload>(&value);
            if stored.is_ok_and(|stored| is_gone(&stored)) {
                gone.push(key);
            }
        }
        for key in &gone {
            self.payloads
                .remove(key.clone())
                .map_err(|source| self.fault(source))?;
        }
        Ok(gone.len() as u64)
    }

    /// Takes the payloads of an earlier archive from its index, plain or gzip, unless they were taken already.
    pub fn read_history(&self, file: &Path) -> Result<HistoryRead, PayloadsError> {
        let unreadable = |source| PayloadsError::History {
            file: file.to_owned(),
            source,
        };
        let mark = mark(file).map_err(unreadable)?;
        let name = file.to_string_lossy().into_owned();
        let known = self.read.get(&name).map_err(|source| self.fault(source))?;
        if known.is_some_and(|known| *known == *mark.as_bytes()) {
            return Ok(HistoryRead {
                known_already: true,
                ..HistoryRead::default()
            });
        }
        let mut history = HistoryRead::default();
        let mut batch = Vec::new();
        let source = plain(file).map_err(unreadable)?;
        for line in cdxj::read(BufReader::new(source)) {
            match line.map_err(unreadable)? {
                Err(_) => history.bad_lines += 1,
                Ok(entry) => {
                    batch.extend(payload(&entry.timestamp, entry.capture));
                }
            }
            if batch.len() == BATCH {
                history.payloads += self.keep_new(&mut batch)?;
            }
        }
        history.payloads += self.keep_new(&mut batch)?;
        self.read
            .insert(name, mark)
            .map_err(|source| self.fault(source))?;
        self.persist()?;
        Ok(history)
    }

    /// Forces what was kept to disk.
    pub fn persist(&self) -> Result<(), PayloadsError> {
        self.database
            .persist(PersistMode::SyncAll)
            .map_err(|source| self.fault(source))
    }

    fn keep_new(&self, batch: &mut Vec<(Digest, StoredPayload)>) -> Result<u64, PayloadsError> {
        let mut count = 0;
        for (digest, stored) in batch.drain(..) {
            if self.find(&digest)?.is_none() {
                self.keep(&digest, &stored)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn fault(&self, source: fjall::Error) -> PayloadsError {
        PayloadsError::Store {
            path: self.path.clone(),
            source: Box::new(source),
        }
    }
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payloads")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Digests of different kinds have different lengths.
fn key(digest: &Digest) -> &[u8] {
    digest.bytes()
}

/// What a line of an index says of a payload; nothing for revisits, and for what is in no form we know.
fn payload(timestamp: &str, capture: CdxjCapture) -> Option<(Digest, StoredPayload)> {
    if capture.is_revisit() {
        return None;
    }
    let written = capture.digest?;
    // CDX files, and indexes made of them, have SHA-1 without a label.
    let digest = written
        .parse()
        .or_else(|_| format!("sha1:{written}").parse())
        .ok()?;
    let stored = StoredPayload {
        uri: capture.url,
        date: arc::date(timestamp)?,
        record_id: None,
        file: capture.filename.unwrap_or_default(),
        offset: capture.offset.and_then(|offset| offset.parse().ok())?,
    };
    (!stored.uri.is_empty()).then_some((digest, stored))
}

/// By which a file is known to have changed.
fn mark(file: &Path) -> io::Result<String> {
    let metadata = fs::metadata(file)?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
    let changed = changed.unwrap_or_default().as_nanos();
    Ok(format!("{} {changed}", metadata.len()))
}

/// The file unpacked, where it is packed with gzip.
fn plain(file: &Path) -> io::Result<Box<dyn Read>> {
    let mut start = [0; 2];
    let got = File::open(file)?.read(&mut start)?;
    let source = BufReader::new(File::open(file)?);
    Ok(match &start[..got] {
        [0x1f, 0x8b] => Box::new(MultiGzDecoder::new(source)),
        _ => Box::new(source),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write as _;

    use super::*;

    fn stored(file: &str, offset: u64) -> StoredPayload {
        StoredPayload {
            uri: "http://a.example/".to_owned(),
            date: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            record_id: None,
            file: file.to_owned(),
            offset,
        }
    }

    #[test]
    fn what_is_kept_is_found_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job/digests");
        let (one, other) = (Digest::sha1(b"1"), Digest::sha1(b"2"));
        let payloads = Payloads::open(&path).unwrap();
        payloads.keep(&one, &stored("a.warc.gz", 7)).unwrap();
        assert!(matches!(
            Payloads::open(&path),
            Err(PayloadsError::InUse { .. })
        ));
        drop(payloads);
        let payloads = Payloads::open(&path).unwrap();
        assert_eq!(payloads.find(&one).unwrap(), Some(stored("a.warc.gz", 7)));
        assert_eq!(payloads.find(&other).unwrap(), None);
    }

    #[test]
    fn payloads_behind_the_end_of_a_file_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let payloads = Payloads::open(folder.path().join("digests")).unwrap();
        let digests = [b"1", b"2", b"3"].map(|text| Digest::sha1(text));
        payloads.keep(&digests[0], &stored("cut", 99)).unwrap();
        payloads.keep(&digests[1], &stored("cut", 100)).unwrap();
        payloads.keep(&digests[2], &stored("whole", 100)).unwrap();
        let kept = HashMap::from([("cut".to_owned(), 100)]);
        assert_eq!(payloads.forget(&kept).unwrap(), 1);
        let found = digests.map(|digest| payloads.find(&digest).unwrap().is_some());
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn an_earlier_archive_is_known_by_its_index() {
        let folder = tempfile::tempdir().unwrap();
        let payloads = Payloads::open(folder.path().join("digests")).unwrap();
        let (one, other) = (Digest::sha1(b"1"), Digest::sha1(b"2"));
        let bare = one.to_string().split_off("sha1:".len());
        let text = format!(
            "a.example)/ 20220106150849 {{\"url\":\"http://a.example/\",\"digest\":\"{bare}\",\"offset\":\"7\",\"filename\":\"old.warc.gz\"}}\n\
             a.example)/2 20220106150849 {{\"url\":\"http://a.example/2\",\"mime\":\"warc/revisit\",\"digest\":\"{other}\",\"offset\":9}}\n\
             nonsense\n"
        );
        let file = folder.path().join("old.cdxj.gz");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        fs::write(&file, packed.finish().unwrap()).unwrap();
        let read = payloads.read_history(&file).unwrap();
        assert_eq!((read.payloads, read.bad_lines), (1, 1));
        let found = payloads.find(&one).unwrap().unwrap();
        assert_eq!(
            (
                found.uri.as_str(),
                found.date.to_string().as_str(),
                found.file.as_str(),
                found.offset
            ),
            (
                "http://a.example/",
                "2022-01-06T15:08:49Z",
                "old.warc.gz",
                7
            )
        );
        assert_eq!(
            payloads.find(&other).unwrap(),
            None,
            "a revisit has no payload"
        );
        assert!(payloads.read_history(&file).unwrap().known_already);
        fs::write(&file, text + "\n").unwrap();
        assert!(!payloads.read_history(&file).unwrap().known_already);
    }
}
