//! The store: a folder with a lock, a format version in plain text, and a fjall database of sixteen keyspaces. It handles bytes,
//! not their meaning; `keys.rs` has the layout.
//!
//! ```text
//! <dir>/lock      held while the store is open
//! <dir>/format    the format version, so that another version is refused before anything is written
//! <dir>/store/    the database
//! <dir>/making    exists while the database is created; with it and without `format`, the database is created again
//! ```

mod manifest;

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode, UserKey,
    UserValue,
    compaction::Leveled,
    config::{
        BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy,
        FilterPolicyEntry,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use crate::FrontierConfig;

/// The format this code reads and writes.
pub const FORMAT_VERSION: u32 = 4;

/// First byte of every value that `postcard` encodes, so that one kind of value can change its encoding and the others keep
/// theirs.
const ENCODING: u8 = 1;

/// Bytes of one keyspace held in memory before they are written out in order. Smaller values cause more merging. Larger ones cost
/// more memory, and leave more journal to read at the next opening.
const MEMTABLE_BYTES_MAX: u64 = 24 * 1024 * 1024;

/// Bytes of sealed journals before the oldest is written out. Opening reads these and the current one again.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of one file of a keyspace. Larger files mean more merging at once, and a longer wait before newer data in memory is
/// written out.
const TABLE_BYTES: u64 = 16 * 1024 * 1024;

/// Threads that write out and merge. With a second thread, the database makes the first one spin while the second merges, at the
/// cost of a whole processor.
const WORKERS: usize = 1;

/// Name of the file that marks a database that is being made.
const MAKING: &str = "making";

/// Name of the database's folder in the store's folder.
const DATABASE: &str = "store";

/// Bytes that a journal may bring into memory at an opening without being written out at once.
const JOURNAL_KEPT_MAX: u64 = 8 * 1024 * 1024;

/// Errors of the frontier. After any but [`FrontierError::UnknownTicket`] and [`FrontierError::Name`], drop the frontier and open
/// it again: acknowledged changes are still there.
#[derive(Debug, thiserror::Error)]
pub enum FrontierError {
    /// The folder cannot be made, read or locked.
    #[error("cannot use {} for the frontier's store", path.display())]
    Folder {
        /// The path concerned.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A living process has it open.
    #[error("the frontier's store {} is in use by another process", dir.display())]
    InUse {
        /// The store.
        dir: PathBuf,
    },
    /// The folder that was to be read has no store. Nothing has been touched.
    #[error("no frontier's store in {}", dir.display())]
    NoStore {
        /// The folder.
        dir: PathBuf,
    },
    /// A file or folder exists in the place of a new store. Nothing has been touched.
    #[error("{} already exists; write the checkpoint into a new folder", dir.display())]
    Exists {
        /// The file or folder that exists.
        dir: PathBuf,
    },
    /// Another version of this code wrote it. Nothing has been touched.
    #[error(
        "the frontier's store {} was written in format {written}, this version reads format {FORMAT_VERSION}; use the version \
         of Opilio that wrote it, or export its URIs with that version and import them into a new job",
        dir.display()
    )]
    OtherVersion {
        /// The store.
        dir: PathBuf,
        /// The content of its format file.
        written: String,
    },
    /// The content of a database file is not what was written. Nothing has been touched.
    #[error("the frontier's store {} is damaged: its file {} is truncated or missing; restore a checkpoint", dir.display(), file.display())]
    Torn {
        /// The store.
        dir: PathBuf,
        /// The file, within the store's folder.
        file: PathBuf,
    },
    /// The database does not open.
    #[error("the frontier's store {} is damaged and cannot be opened; restore a checkpoint", dir.display())]
    Unopenable {
        /// The store.
        dir: PathBuf,
        /// The cause.
        #[source]
        source: Box<fjall::Error>,
    },
    /// The store opens, but contains a value that this code would not have written.
    #[error(
        "the frontier's store is damaged: {what} under key {key:?}; `opilio frontier check JOB --repair` repairs what can be repaired"
    )]
    Damaged {
        /// Description of the value.
        what: &'static str,
        /// Its key, readable as far as it is text.
        key: String,
    },
    /// The bytes read are not those written: a file of the database is torn.
    #[error("a file of the frontier's store is damaged; restore a checkpoint")]
    Unreadable(#[source] Box<fjall::Error>),
    /// Reading or writing failed, for the reason that the system gives: most often a full disk.
    #[error("the frontier's store failed")]
    Storage(#[source] Box<fjall::Error>),
    /// An earlier call failed, and memory may not agree with the store.
    #[error("the frontier has failed before and must be opened again")]
    Broken,
    /// No key can be made of this name: it is empty, too long, or (a queue's) contains a NUL. Changes nothing.
    #[error("a name of {bytes} bytes cannot be kept: it is empty, too long or contains a NUL")]
    Name {
        /// Length of the name.
        bytes: usize,
    },
    /// No URI is in process under this ticket. Changes nothing.
    #[error("no URI is in process under ticket {0}")]
    UnknownTicket(u64),
}

impl From<fjall::Error> for FrontierError {
    fn from(source: fjall::Error) -> Self {
        if is_damage(&source) {
            Self::Unreadable(Box::new(source))
        } else {
            Self::Storage(Box::new(source))
        }
    }
}

/// A key and its value, as read.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Entries to put (`Some`) and to remove (`None`), by key. The last value of a key counts, since a batch must not name a key
/// twice.
pub(crate) type Entries = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

pub(crate) struct Store {
    pub(crate) uris: Keyspace,
    pub(crate) canonical_forms: Keyspace,
    pub(crate) ready: Keyspace,
    pub(crate) waiting: Keyspace,
    pub(crate) queues: Keyspace,
    pub(crate) queue_order: Keyspace,
    pub(crate) in_process: Keyspace,
    pub(crate) server_groups: Keyspace,
    pub(crate) tallies: Keyspace,
    pub(crate) embeds_by_page: Keyspace,
    pub(crate) pages_by_embed: Keyspace,
    pub(crate) refused_uris: Keyspace,
    pub(crate) site_values: Keyspace,
    pub(crate) site_figures: Keyspace,
    pub(crate) caller_values: Keyspace,
    pub(crate) meta: Keyspace,
    pub(crate) database: Database,
    /// Last, so that it is released after all else is closed.
    _lock: Lock,
}

impl Store {
    /// Opens the store in this folder, or makes one.
    pub(crate) fn open(dir: &Path, config: &FrontierConfig) -> Result<Self, FrontierError> {
        // The version comes first: not even a lock file is written next to a store of another version.
        is_store(dir)?;
        fs::create_dir_all(dir).map_err(folder(dir))?;
        let lock = lock(dir)?;
        if !is_store(dir)? {
            return Self::finish(dir, Self::begin(dir, config, lock)?);
        }
        conclude_making(dir)?;
        Self::open_known(dir, config, lock)
    }

    /// Opens a store without making one, and reads its files through first.
    pub(crate) fn open_existing(
        dir: &Path,
        config: &FrontierConfig,
    ) -> Result<Self, FrontierError> {
        if !is_store(dir)? {
            return Err(FrontierError::NoStore {
                dir: dir.to_owned(),
            });
        }
        let lock = lock(dir)?;
        manifest::check_tables(dir, &dir.join(DATABASE))?;
        Self::open_known(dir, config, lock)
    }

    /// Makes an empty store in a new folder. Until [`Store::finish`] is called, it does not count as a store.
    pub(crate) fn create(dir: &Path, config: &FrontierConfig) -> Result<Self, FrontierError> {
        fs::create_dir_all(dir).map_err(folder(dir))?;
        let lock = lock(dir)?;
        if is_store(dir)? {
            return Err(FrontierError::Exists {
                dir: dir.to_owned(),
            });
        }
        Self::begin(dir, config, lock)
    }

    /// Turns the result of [`Store::create`] into a store.
    pub(crate) fn finish(dir: &Path, store: Self) -> Result<Self, FrontierError> {
        store.persist()?;
        write_version(dir)?;
        conclude_making(dir)?;
        Ok(store)
    }

    fn begin(dir: &Path, config: &FrontierConfig, lock: Lock) -> Result<Self, FrontierError> {
        let path = dir.join(DATABASE);
        let making = dir.join(MAKING);
        if (making.exists() || !path.join("version").exists()) && path.exists() {
            // A process died while it created the database, so no caller has used a store here.
            fs::remove_dir_all(&path).map_err(folder(&path))?;
        }
        File::create(&making).map_err(folder(&making))?;
        let store = Self::open_database(dir, config, lock)?;
        if !store.uris.is_empty()? {
            return Err(FrontierError::Damaged {
                what: "URIs without a format file",
                key: "format".to_owned(),
            });
        }
        Ok(store)
    }

    fn open_known(dir: &Path, config: &FrontierConfig, lock: Lock) -> Result<Self, FrontierError> {
        manifest::check(dir, &dir.join(DATABASE), Self::KEYSPACES)?;
        let store = Self::open_database(dir, config, lock)?;
        store.write_out_journal()?;
        Ok(store)
    }

    /// Writes out the entries that the journal brought into memory, in order and in the background. Memory is for current
    /// entries, and the next opening need not read these again.
    fn write_out_journal(&self) -> Result<(), FrontierError> {
        if self.database.write_buffer_size() < JOURNAL_KEPT_MAX {
            return Ok(());
        }
        for keyspace in [
            &self.uris,
            &self.canonical_forms,
            &self.ready,
            &self.waiting,
            &self.queues,
            &self.queue_order,
        ] {
            keyspace.rotate_memtable()?;
        }
        Ok(())
    }

    /// Opens the database of the store in `dir`, or makes it.
    fn open_database(
        dir: &Path,
        config: &FrontierConfig,
        lock: Lock,
    ) -> Result<Self, FrontierError> {
        let open = || -> Result<Self, fjall::Error> {
            let database = Database::builder(dir.join(DATABASE))
                .cache_size(config.cache_bytes)
                .manual_journal_persist(!config.survives)
                .worker_threads(WORKERS)
                .max_journaling_size(JOURNAL_BYTES_MAX)
                .open()?;
            Ok(Self {
                uris: database.keyspace("uris", || lookup_options(16 * 1024))?,
                canonical_forms: database.keyspace("canonical_forms", || {
                    // Keys are hashes, and most values are numbers: compression would gain little.
                    lookup_options(4 * 1024).data_block_compression_policy(CompressionPolicy::all(
                        CompressionType::None,
                    ))
                })?,
                ready: database.keyspace("ready", scan_options)?,
                waiting: database.keyspace("waiting", scan_options)?,
                queues: database.keyspace("queues", || lookup_options(4 * 1024))?,
                queue_order: database.keyspace("queue_order", scan_options)?,
                in_process: database.keyspace("in_process", scan_options)?,
                server_groups: database.keyspace("server_groups", || lookup_options(4 * 1024))?,
                tallies: database.keyspace("tallies", || lookup_options(4 * 1024))?,
                embeds_by_page: database.keyspace("embeds_by_page", scan_options)?,
                pages_by_embed: database.keyspace("pages_by_embed", scan_options)?,
                refused_uris: database.keyspace("refused_uris", || lookup_options(4 * 1024))?,
                site_values: database.keyspace("site_values", scan_options)?,
                site_figures: database.keyspace("site_figures", scan_options)?,
                caller_values: database.keyspace("caller_values", || lookup_options(4 * 1024))?,
                meta: database.keyspace("meta", || lookup_options(4 * 1024))?,
                database,
                _lock: lock,
            })
        };
        open().map_err(|source| opening_error(dir, source))
    }

    /// Number of keyspaces in a database of this format.
    const KEYSPACES: usize = 16;

    /// All keyspaces.
    pub(crate) fn keyspaces(&self) -> [&Keyspace; Self::KEYSPACES] {
        [
            &self.uris,
            &self.canonical_forms,
            &self.ready,
            &self.waiting,
            &self.queues,
            &self.queue_order,
            &self.in_process,
            &self.server_groups,
            &self.tallies,
            &self.embeds_by_page,
            &self.pages_by_embed,
            &self.refused_uris,
            &self.site_values,
            &self.site_figures,
            &self.caller_values,
            &self.meta,
        ]
    }

    /// Writes everything acknowledged through to the disk.
    pub(crate) fn persist(&self) -> Result<(), FrontierError> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

/// Reads up to `entries_max` entries from `from` up to but not including `end`, and returns whether these were the last.
pub(crate) fn read(
    keyspace: &Keyspace,
    from: &[u8],
    end: &[u8],
    entries_max: usize,
) -> Result<(Vec<Entry>, bool), FrontierError> {
    if from >= end {
        return Ok((Vec::new(), true));
    }
    let mut entries = Vec::new();
    let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(from), Bound::Excluded(end));
    for guard in keyspace.range::<&[u8], _>(range) {
        if entries.len() == entries_max {
            return Ok((entries, false));
        }
        let (key, value) = guard.into_inner()?;
        entries.push((key.to_vec(), value.to_vec()));
    }
    Ok((entries, true))
}

/// Writes entries, which must be sorted, into an empty keyspace: in order and at once, past journal and memory. Returns their
/// number.
pub(crate) fn fill<K, V>(
    keyspace: &Keyspace,
    entries: impl Iterator<Item = Result<(K, V), FrontierError>>,
) -> Result<u64, FrontierError>
where
    K: Into<UserKey>,
    V: Into<UserValue>,
{
    let mut ingestion = keyspace.start_ingestion()?;
    let mut last: Option<UserKey> = None;
    let mut written = 0;
    for entry in entries {
        let (key, value) = entry?;
        let key: UserKey = key.into();
        // The database would panic at an entry out of order.
        if last.is_some_and(|last| last >= key) {
            return Err(damaged("an entry out of order", &key));
        }
        ingestion.write(key.clone(), value)?;
        last = Some(key);
        written += 1;
    }
    ingestion.finish()?;
    Ok(written)
}

/// Encodes a value for the store.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FrontierError> {
    postcard::to_extend(value, vec![ENCODING]).map_err(|_| FrontierError::Damaged {
        what: "a value that cannot be written",
        key: String::new(),
    })
}

/// Decodes a value that [`encode`] made.
pub(crate) fn decode<T: DeserializeOwned>(
    what: &'static str,
    key: &[u8],
    bytes: &[u8],
) -> Result<T, FrontierError> {
    match bytes.split_first() {
        Some((&ENCODING, bytes)) => postcard::from_bytes(bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| damaged(what, key))
}

/// The error for a database that does not open.
fn opening_error(dir: &Path, source: fjall::Error) -> FrontierError {
    let dir = dir.to_owned();
    match source {
        fjall::Error::Locked => FrontierError::InUse { dir },
        fjall::Error::Io(source) | fjall::Error::Storage(LsmError::Io(source))
            if !is_damaged_file(&source) =>
        {
            FrontierError::Folder { path: dir, source }
        }
        source => FrontierError::Unopenable {
            dir,
            source: Box::new(source),
        },
    }
}

/// Returns `true` if an error of the file system means that the content of a file is not what was written. Other errors are
/// unrelated to the content: no room, no permission, too many open files, a disk that does not answer.
fn is_damaged_file(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound
    )
}

/// Returns `true` if an error means that the bytes read are not those written.
fn is_damage(error: &fjall::Error) -> bool {
    match error {
        fjall::Error::Storage(
            LsmError::ChecksumMismatch { .. }
            | LsmError::Decompress(_)
            | LsmError::InvalidTag(_)
            | LsmError::InvalidTrailer
            | LsmError::InvalidHeader(_)
            | LsmError::InvalidVersion(_)
            | LsmError::Unrecoverable
            | LsmError::Utf8(_),
        )
        | fjall::Error::JournalRecovery(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable => true,
        fjall::Error::Storage(LsmError::Io(source)) | fjall::Error::Io(source) => {
            is_damaged_file(source)
        }
        _ => false,
    }
}

pub(crate) fn damaged(what: &'static str, key: &[u8]) -> FrontierError {
    FrontierError::Damaged {
        what,
        key: String::from_utf8_lossy(key).into_owned(),
    }
}

/// Options of keyspaces whose keys are looked up one by one, and are often absent.
fn lookup_options(block_bytes: u32) -> KeyspaceCreateOptions {
    base_options()
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
            BloomConstructionPolicy::BitsPerKey(12.0),
        )))
}

/// Options of keyspaces that are read from a key on: a filter would never be used.
fn scan_options() -> KeyspaceCreateOptions {
    base_options().filter_policy(FilterPolicy::all(FilterPolicyEntry::None))
}

fn base_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES_MAX)
        .compaction_strategy(Arc::new(
            Leveled::default().with_table_target_size(TABLE_BYTES),
        ))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
}

/// Returns whether the folder holds a finished store; an error if the store is of another format.
fn is_store(dir: &Path) -> Result<bool, FrontierError> {
    let path = dir.join("format");
    let written = match fs::read(&path) {
        Ok(written) => String::from_utf8_lossy(&written).trim().to_owned(),
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(FrontierError::Folder { path, source }),
    };
    let dir = dir.to_owned();
    match written.as_str() {
        "" => Err(FrontierError::Torn {
            dir,
            file: "format".into(),
        }),
        current if current == FORMAT_VERSION.to_string() => Ok(true),
        _ => Err(FrontierError::OtherVersion { dir, written }),
    }
}

/// Writes the format of this code. The file appears whole or not at all.
fn write_version(dir: &Path) -> Result<(), FrontierError> {
    let (new, path) = (dir.join("format.new"), dir.join("format"));
    fs::write(&new, format!("{FORMAT_VERSION}\n"))
        .and_then(|()| File::open(&new)?.sync_all())
        .and_then(|()| fs::rename(&new, &path))
        .map_err(folder(&path))?;
    sync(dir)
}

/// Ends the making of a database. Call it only after the format file has been found.
fn conclude_making(dir: &Path) -> Result<(), FrontierError> {
    let making = dir.join(MAKING);
    match fs::remove_file(&making) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(folder(&making)(source)),
        _ => Ok(()),
    }
}

/// Makes the entries of a folder survive the loss of power.
pub(crate) fn sync(dir: &Path) -> Result<(), FrontierError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(folder(dir))
}

/// The lock of a folder: no other process opens the store in it until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    /// Closing the file would not be enough: a child process shares it until it runs its own program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

pub(crate) fn lock(dir: &Path) -> Result<Lock, FrontierError> {
    let path = dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(folder(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(FrontierError::InUse {
            dir: dir.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(FrontierError::Folder { path, source }),
    }
}

pub(crate) fn folder(path: &Path) -> impl FnOnce(io::Error) -> FrontierError {
    let path = path.to_owned();
    move |source| FrontierError::Folder { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_file_content_count_as_damage() {
        // EPERM, EIO, EACCES, ENFILE, EMFILE, EFBIG, ENOSPC, EROFS; ENOENT.
        for (code, is_damage) in [1, 5, 13, 23, 24, 27, 28, 30, 2].map(|code| (code, code == 2)) {
            let io = || io::Error::from_raw_os_error(code);
            for error in [fjall::Error::Io(io()), fjall::Error::Storage(io().into())] {
                let error = opening_error(Path::new("state"), error);
                let text = error.to_string();
                assert_eq!(text.contains("damaged"), is_damage, "{code}: {text}");
                assert_eq!(matches!(error, FrontierError::Folder { .. }), !is_damage);
            }
        }
        let torn = io::Error::from(io::ErrorKind::UnexpectedEof);
        let error = opening_error(Path::new("state"), torn.into());
        assert!(
            matches!(error, FrontierError::Unopenable { .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_starting_child_process_does_not_keep_a_released_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(FrontierError::InUse { .. })));

        // A child process has this copy until it runs its program.
        let inherited = held.0.try_clone().unwrap();
        drop(held);
        drop(lock(dir.path()).unwrap());
        drop(inherited);
    }
}
