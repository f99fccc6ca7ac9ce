//! Index of stored payloads by digest: those a crawl has written, those of other jobs that share the index, and those that
//! indexes (CDXJ) of earlier archives list. A SQLite database on disk, which several processes may use at the same time.

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

/// Payloads of an earlier archive that are put in at a time. Other processes wait meanwhile, some ten milliseconds.
const BATCH: usize = 1024;

/// Longest wait for another process that writes. All of them write for milliseconds, so a longer wait means a disk that hangs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Digests of different kinds have different lengths, so one column holds them all.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS payloads (
        digest BLOB PRIMARY KEY, uri TEXT NOT NULL, date TEXT NOT NULL, record_id TEXT, file TEXT NOT NULL,
        record_offset INTEGER NOT NULL
    ) WITHOUT ROWID;
    -- CDXJ files that were read, with their length and time of change.
    CREATE TABLE IF NOT EXISTS histories (path TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;";

/// The payloads that are stored, and where.
pub struct Payloads {
    connection: Mutex<Connection>,
    /// The folder.
    path: PathBuf,
}

/// The capture that has a payload whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPayload {
    /// Its URI.
    pub uri: String,
    /// Its `WARC-Date`, as far as it is known: indexes have seconds.
    pub date: Timestamp,
    /// Its `WARC-Record-ID` without angle brackets; indexes have none.
    pub record_id: Option<String>,
    /// Its file, without folder.
    pub file: String,
    /// Offset of its record in the file.
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

/// The remedy where the file system is not to blame.
fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::InvalidData => "; remove the folder: then payloads stored so far count as new",
        ErrorKind::ResourceBusy => {
            "; another process has been writing for a minute: see what it waits for"
        }
        _ => "",
    }
}

/// The error with the kind that the system's own error would have.
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
    /// Opens the index in a folder, which is made if absent.
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

    /// Finds where a payload with this digest is stored whole. A row with an unreadable date counts as absent.
    pub fn find(&self, digest: &Digest) -> Result<Option<StoredPayload>, PayloadsError> {
        let connection = self.connection();
        let found = || {
            let sql =
                "SELECT uri, date, record_id, file, record_offset FROM payloads WHERE digest = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row([digest.bytes()], stored).optional()
        };
        Ok(found().map_err(|source| self.fault(source))?.flatten())
    }

    /// Records where a payload is stored, in place of an earlier entry.
    pub fn keep(&self, digest: &Digest, stored: &StoredPayload) -> Result<(), PayloadsError> {
        let kept = insert(&self.connection(), "REPLACE", digest, stored);
        kept.map(drop).map_err(|source| self.fault(source))
    }

    /// Removes the payloads of files that lost their end. `kept` maps a file's name to the bytes left of it.
    /// Returns how many payloads were removed.
    pub fn forget(&self, kept: &HashMap<String, u64>) -> Result<u64, PayloadsError> {
        if kept.is_empty() {
            return Ok(0);
        }
        self.forget_where(|stored| {
            kept.get(&stored.file)
                .is_some_and(|kept| stored.offset >= *kept)
        })
    }

    /// Removes the payloads whose captures are gone. Returns how many.
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
                    if stored(row)?.is_some_and(|stored| is_gone(&stored)) {
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
        // Syncs what was written since the last time, then moves it from the log into the database.
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

/// Opens the database; none where the folder has other files instead.
fn open(path: &Path) -> io::Result<Option<Connection>> {
    fs::create_dir_all(path)?;
    let file = path.join(FILE);
    if !file.exists() {
        // Another job may be making the same index now: its files have names that begin with that of the database.
        for entry in fs::read_dir(path)? {
            if !entry?.file_name().to_string_lossy().starts_with(FILE) {
                return Ok(None);
            }
        }
    }
    // One process after the other: SQLite does not wait where two turn on the write-ahead log at the same time.
    let turn = File::create(path.join(format!("{FILE}.lock")))?;
    turn.lock()?;
    let connect = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(&file)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Readers and the one writer do not wait for one another, and nothing is synced before `persist`: a process that
        // dies loses nothing, a machine that does at most what was kept since, and never the order of what is left.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(connection)
    };
    connect().map(Some).map_err(io_error)
}

/// A change that other processes see as a whole. The lock on writing is taken at once, so that it never fails in between.
fn change(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// Puts a payload in by `REPLACE` or `INSERT OR IGNORE`. Returns how many rows were written.
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

/// Reads a payload from the first five columns of a row; none if its date is malformed.
fn stored(row: &Row<'_>) -> rusqlite::Result<Option<StoredPayload>> {
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

/// Returns the payload that a line of an index describes; none for revisits and for forms that we do not know.
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

/// Length and time of change of a file, by which a later change is noticed.
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
        drop(payloads);
        let payloads = Payloads::open(&path).unwrap();
        assert_eq!(payloads.find(&one).unwrap(), Some(stored("a.warc.gz", 7)));
        assert_eq!(payloads.find(&other).unwrap(), None);
    }

    #[test]
    fn several_use_one_index_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        std::thread::scope(|scope| {
            for number in 0_u8..4 {
                let path = &path;
                scope.spawn(move || {
                    let payloads = Payloads::open(path).unwrap();
                    for count in 0_u8..50 {
                        let digest = Digest::sha1(&[number, count]);
                        payloads.keep(&digest, &stored("a", count.into())).unwrap();
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
            assert_eq!(one.find(&digest).unwrap(), Some(stored("a", count.into())));
        }
        // What one does, the other sees at once.
        let late = Digest::sha1(b"late");
        one.keep(&late, &stored("b", 1)).unwrap();
        assert_eq!(other.find(&late).unwrap(), Some(stored("b", 1)));
        assert_eq!(other.forget_where(|stored| stored.file == "b").unwrap(), 1);
        assert_eq!(one.find(&late).unwrap(), None);
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused_and_damage_is_named() {
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
