//! Digest index: stored payloads by digest. It has the payloads that a crawl has written, those of other jobs that share the index,
//! and those in indexes (CDXJ) of earlier archives. It is a SQLite database on disk, which several processes may use at the same
//! time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Row, Transaction, TransactionBehavior, params,
};

use crate::arc;
use crate::cdxj::{self, CdxjCapture};
use crate::digest::Digest;

/// The database within the folder.
const FILE: &str = "digests.sqlite3";

/// Number of payloads of an earlier archive that are inserted at once. Other processes wait meanwhile, for tens of milliseconds.
const BATCH: usize = 1024;

/// Maximum wait for another process that writes. Each writes for milliseconds, so a longer wait means that the disk hangs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Definition of the tables. Digests of different algorithms have different lengths, so one column is enough for all.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS payloads (
        digest BLOB PRIMARY KEY, uri TEXT NOT NULL, date TEXT NOT NULL, record_id TEXT, file TEXT NOT NULL,
        record_offset INTEGER NOT NULL
    ) WITHOUT ROWID;
    -- CDXJ files that were read, with their length and time of change.
    CREATE TABLE IF NOT EXISTS histories (path TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;";

/// The index of stored payloads.
pub struct Payloads {
    connection: Mutex<Connection>,
    /// The folder.
    path: PathBuf,
}

/// The capture that has a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPayload {
    /// URI of the capture.
    pub uri: String,
    /// `WARC-Date` of the capture, to the second if it is from an index (CDXJ).
    pub date: Timestamp,
    /// `WARC-Record-ID` without angle brackets; not set if the payload is from an index (CDXJ).
    pub record_id: Option<String>,
    /// File name without folder.
    pub file: String,
    /// Offset of the record in the file.
    pub offset: u64,
}

/// The outcome of [`Payloads::read_history`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryRead {
    /// The file has not changed since it was read last.
    pub known_already: bool,
    /// Payloads that were not known before.
    pub payloads: u64,
    /// Malformed lines, which were skipped.
    pub bad_lines: u64,
}

/// The index of digests cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PayloadsError {
    /// The folder has other files, such as an index of an unreleased version.
    #[error(
        "{} holds files and no index of digests; name another folder in archive.duplicates.index, or remove this one: \
         payloads stored so far then count as new",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The index cannot be opened, read or written.
    #[error(
        "the index of digests in {} cannot be used{}",
        path.display(),
        advice(source)
    )]
    Store {
        /// The folder.
        path: PathBuf,
        /// Error of the store.
        #[source]
        source: io::Error,
    },
    /// An index of an earlier archive cannot be read.
    #[error("cannot read {}", file.display())]
    History {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

/// Returns the remedy for errors that are not errors of the file system.
fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::InvalidData => "; remove the folder: then payloads stored so far count as new",
        ErrorKind::ResourceBusy => {
            "; another process has been writing for a minute: see what it waits for"
        }
        _ => "",
    }
}

/// Converts an error to an I/O error with the corresponding kind.
fn io_error(source: rusqlite::Error) -> io::Error {
    let kind = match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => ErrorKind::StorageFull,
        Some(ErrorCode::PermissionDenied) => ErrorKind::PermissionDenied,
        Some(ErrorCode::ReadOnly) => ErrorKind::ReadOnlyFilesystem,
        Some(ErrorCode::OutOfMemory) => ErrorKind::OutOfMemory,
        Some(ErrorCode::DatabaseBusy) => ErrorKind::ResourceBusy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::InvalidData,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, source)
}

impl Payloads {
    /// Opens the index in a folder. Creates the folder if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> Result<Payloads, PayloadsError> {
        let path = path.into();
        match open(&path) {
            Ok(Some(connection)) => Ok(Payloads {
                connection: Mutex::new(connection),
                path,
            }),
            Ok(None) => Err(PayloadsError::Foreign { path }),
            Err(source) => Err(PayloadsError::Store { path, source }),
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the capture that has the payload with this digest. A row with an invalid date counts as missing.
    pub fn find(&self, digest: &Digest) -> Result<Option<StoredPayload>, PayloadsError> {
        let connection = self.connection();
        let found = || {
            let sql =
                "SELECT uri, date, record_id, file, record_offset FROM payloads WHERE digest = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            statement
                .query_row([digest.bytes()], payload_of_row)
                .optional()
        };
        Ok(found().map_err(|source| self.fault(source))?.flatten())
    }

    /// Records the capture that has a payload. Replaces an earlier entry.
    pub fn keep(&self, digest: &Digest, stored: &StoredPayload) -> Result<(), PayloadsError> {
        let kept = insert(&self.connection(), "REPLACE", digest, stored);
        kept.map(drop).map_err(|source| self.fault(source))
    }

    /// Removes the payloads of records beyond the end of files that were cut. `kept` maps a file's name to its remaining length in
    /// bytes. Returns the number of removed payloads.
    pub fn forget(&self, kept: &HashMap<String, u64>) -> Result<u64, PayloadsError> {
        if kept.is_empty() {
            return Ok(0);
        }
        self.forget_where(|stored| {
            kept.get(&stored.file)
                .is_some_and(|kept| stored.offset >= *kept)
        })
    }

    /// Removes the payloads whose captures match, such as redacted ones. Returns the number of removed payloads.
    pub fn forget_where(
        &self,
        is_gone: impl Fn(&StoredPayload) -> bool,
    ) -> Result<u64, PayloadsError> {
        let connection = self.connection();
        let forget = || -> rusqlite::Result<u64> {
            let change = change(&connection)?;
            let mut gone: Vec<Vec<u8>> = Vec::new();
            {
                let sql = "SELECT uri, date, record_id, file, record_offset, digest FROM payloads";
                let mut statement = change.prepare(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    if payload_of_row(row)?.is_some_and(|stored| is_gone(&stored)) {
                        gone.push(row.get(5)?);
                    }
                }
            }
            for digest in &gone {
                change.execute("DELETE FROM payloads WHERE digest = ?1", [digest])?;
            }
            change.commit()?;
            Ok(gone.len() as u64)
        };
        forget().map_err(|source| self.fault(source))
    }

    /// Adds the payloads that the index (CDXJ, plain or gzip) of an earlier archive lists, unless it was read already.
    pub fn read_history(&self, file: &Path) -> Result<HistoryRead, PayloadsError> {
        let unreadable = |source| PayloadsError::History {
            file: file.to_owned(),
            source,
        };
        let mark = mark(file).map_err(unreadable)?;
        let name = file.to_string_lossy().into_owned();
        let sql = "SELECT 1 FROM histories WHERE path = ?1 AND mark = ?2";
        let known = self
            .connection()
            .query_row(sql, [&name, &mark], |_| Ok(()))
            .optional();
        if known.map_err(|source| self.fault(source))?.is_some() {
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
        let sql = "REPLACE INTO histories (path, mark) VALUES (?1, ?2)";
        let noted = self.connection().execute(sql, [&name, &mark]);
        noted.map_err(|source| self.fault(source))?;
        self.persist()?;
        Ok(history)
    }

    /// Syncs every change so far to disk.
    pub fn persist(&self) -> Result<(), PayloadsError> {
        // Syncs recent writes, then moves them from the write-ahead log into the database.
        let sql = "PRAGMA wal_checkpoint(FULL)";
        let done = self.connection().query_row(sql, [], |_| Ok(()));
        done.map_err(|source| self.fault(source))
    }

    fn keep_new(&self, batch: &mut Vec<(Digest, StoredPayload)>) -> Result<u64, PayloadsError> {
        let connection = self.connection();
        let mut keep = || -> rusqlite::Result<u64> {
            let change = change(&connection)?;
            let mut count = 0;
            for (digest, stored) in batch.drain(..) {
                count += insert(&change, "INSERT OR IGNORE", &digest, &stored)? as u64;
            }
            change.commit()?;
            Ok(count)
        };
        keep().map_err(|source| self.fault(source))
    }

    fn fault(&self, source: rusqlite::Error) -> PayloadsError {
        PayloadsError::Store {
            path: self.path.clone(),
            source: io_error(source),
        }
    }
}

/// Opens the database; `None` if the folder has other files instead.
fn open(path: &Path) -> io::Result<Option<Connection>> {
    fs::create_dir_all(path)?;
    let file = path.join(FILE);
    if !file.exists() {
        // Another job may be creating the same index: then there are files whose names begin with the name of the database.
        for entry in fs::read_dir(path)? {
            if !entry?.file_name().to_string_lossy().starts_with(FILE) {
                return Ok(None);
            }
        }
    }
    // A lock serialises this step, because SQLite does not wait if two processes turn on the write-ahead log at the same time.
    let turn = File::create(path.join(format!("{FILE}.lock")))?;
    turn.lock()?;
    let connect = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(&file)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Readers and the writer do not wait for each other, and nothing is synced before `persist`. A crash of the process loses
        // nothing. A crash of the machine loses at most the writes since then, always the latest ones.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(connection)
    };
    connect().map(Some).map_err(io_error)
}

/// Begins a transaction. The write lock is taken at once, so that no later step fails because of another writer.
fn change(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// Inserts a payload by `REPLACE` or `INSERT OR IGNORE`. Returns the number of written rows.
fn insert(
    connection: &Connection,
    how: &str,
    digest: &Digest,
    stored: &StoredPayload,
) -> rusqlite::Result<usize> {
    let sql = format!(
        "{how} INTO payloads (digest, uri, date, record_id, file, record_offset) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        digest.bytes(),
        stored.uri,
        stored.date.to_string(),
        stored.record_id,
        stored.file,
        stored.offset.cast_signed(),
    ])
}

/// Reads a payload from the first five columns of a row; `None` if its date is malformed.
fn payload_of_row(row: &Row<'_>) -> rusqlite::Result<Option<StoredPayload>> {
    let date: String = row.get(1)?;
    let Ok(date) = date.parse() else {
        return Ok(None);
    };
    Ok(Some(StoredPayload {
        uri: row.get(0)?,
        date,
        record_id: row.get(2)?,
        file: row.get(3)?,
        offset: row.get::<_, i64>(4)?.cast_unsigned(),
    }))
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payloads")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Returns the payload that a line of an index (CDXJ) describes; `None` for revisits and unknown forms.
fn payload(timestamp: &str, capture: CdxjCapture) -> Option<(Digest, StoredPayload)> {
    if capture.is_revisit() {
        return None;
    }
    let written = capture.digest?;
    // CDX files, and indexes made from them, have SHA-1 without a label.
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

/// Returns length and modification time of a file, by which later changes are detected.
fn mark(file: &Path) -> io::Result<String> {
    let metadata = fs::metadata(file)?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
    let changed = changed.unwrap_or_default().as_nanos();
    Ok(format!("{} {changed}", metadata.len()))
}

/// Opens a file, and decompresses it if it is gzip.
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
    use std::io::Write as _;

    use super::*;

    fn stored_payload(file: &str, offset: u64) -> StoredPayload {
        StoredPayload {
            uri: "http://a.example/".to_owned(),
            date: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            record_id: None,
            file: file.to_owned(),
            offset,
        }
    }

    #[test]
    fn kept_payloads_are_found_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job/digests");
        let (one, other) = (Digest::sha1(b"1"), Digest::sha1(b"2"));
        let payloads = Payloads::open(&path).unwrap();
        payloads
            .keep(&one, &stored_payload("a.warc.gz", 7))
            .unwrap();
        drop(payloads);
        let payloads = Payloads::open(&path).unwrap();
        assert_eq!(
            payloads.find(&one).unwrap(),
            Some(stored_payload("a.warc.gz", 7))
        );
        assert_eq!(payloads.find(&other).unwrap(), None);
    }

    #[test]
    fn several_processes_use_one_index_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        std::thread::scope(|scope| {
            for number in 0_u8..4 {
                let path = &path;
                scope.spawn(move || {
                    let payloads = Payloads::open(path).unwrap();
                    for count in 0_u8..50 {
                        let digest = Digest::sha1(&[number, count]);
                        payloads
                            .keep(&digest, &stored_payload("a", count.into()))
                            .unwrap();
                    }
                    payloads.persist().unwrap();
                });
            }
        });
        let (one, other) = (
            Payloads::open(&path).unwrap(),
            Payloads::open(&path).unwrap(),
        );
        for (number, count) in (0..4).flat_map(|number| (0..50).map(move |count| (number, count))) {
            let digest = Digest::sha1(&[number, count]);
            assert_eq!(
                one.find(&digest).unwrap(),
                Some(stored_payload("a", count.into()))
            );
        }
        // Each sees the changes of the other at once.
        let late = Digest::sha1(b"late");
        one.keep(&late, &stored_payload("b", 1)).unwrap();
        assert_eq!(other.find(&late).unwrap(), Some(stored_payload("b", 1)));
        assert_eq!(other.forget_where(|stored| stored.file == "b").unwrap(), 1);
        assert_eq!(one.find(&late).unwrap(), None);
    }

    #[test]
    fn a_folder_with_other_files_is_refused_and_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letters.txt"), "dear").unwrap();
        let refused = Payloads::open(folder.path()).unwrap_err();
        assert!(
            matches!(refused, PayloadsError::Foreign { .. }),
            "{refused}"
        );
        let path = folder.path().join("digests");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(FILE), "no database, but longer than a header of one, which has a hundred bytes in all, and begins with its name").unwrap();
        let damaged = Payloads::open(&path).unwrap_err().to_string();
        assert!(damaged.contains("remove the folder"), "{damaged}");
    }

    #[test]
    fn payloads_beyond_the_end_of_a_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let payloads = Payloads::open(folder.path().join("digests")).unwrap();
        let digests = [b"1", b"2", b"3"].map(|text| Digest::sha1(text));
        payloads
            .keep(&digests[0], &stored_payload("cut", 99))
            .unwrap();
        payloads
            .keep(&digests[1], &stored_payload("cut", 100))
            .unwrap();
        payloads
            .keep(&digests[2], &stored_payload("whole", 100))
            .unwrap();
        let kept = HashMap::from([("cut".to_owned(), 100)]);
        assert_eq!(payloads.forget(&kept).unwrap(), 1);
        let found = digests.map(|digest| payloads.find(&digest).unwrap().is_some());
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn payloads_of_an_earlier_archive_are_read_from_its_index() {
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
