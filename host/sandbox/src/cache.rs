//! The disk cache of compiled components, so that a second start compiles nothing. Entries are machine code that the host will
//! run: the directory must be writable by the operator alone. An entry that is not exactly as written is compiled again.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Last bytes of an entry. The number is the version of its layout. The compiled component comes first, so that the file can be
/// mapped into memory.
const MAGIC: &[u8; 16] = b"opilio compiled3";
/// XXH3 of everything before it. It detects damage, not forgery: an attacker who can forge it can write to the directory anyway.
const DIGEST_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;
/// Bytes of an entry that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Most bytes of all entries together when a cache is opened; the longest unused go first. Every list of seeds makes its own
/// entries, because a scope filter is compiled with the prefixes of its seeds. The limit keeps their number from growing for ever.
const CACHE_BYTES_MAX: u64 = 512 << 20;

/// A directory of cache entries.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
}

/// A cache entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Reason for which the component cannot be snapshotted, if it cannot.
    pub(crate) refusal: Option<String>,
    /// Output of wasmtime's serialisation.
    pub(crate) compiled: Vec<u8>,
}

/// A cache entry whose digest was found correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedEntry {
    /// Reason for which the component cannot be snapshotted, if it cannot.
    pub(crate) refusal: Option<String>,
    /// The file.
    pub(crate) path: PathBuf,
    compiled_bytes: u64,
}

impl CachedEntry {
    /// Opens a file and checks it, without holding its content; `None` if it is not exactly as written.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        let end = (DIGEST_BYTES + MAGIC.len()) as u64;
        let Some(body) = file.metadata()?.len().checked_sub(end) else {
            return Ok(None);
        };
        let mut digest = Xxh3::new();
        let (mut reader, mut buffer) = ((&file).take(body), vec![0; READ_BYTES]);
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                length => digest.update(&buffer[..length]),
            }
        }
        let mut written = Vec::new();
        file.read_to_end(&mut written)?;
        if written != [&digest.digest128().to_le_bytes()[..], MAGIC].concat() {
            return Ok(None);
        }
        let Some(length_at) = body.checked_sub(LENGTH_BYTES as u64) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(length_at))?;
        let mut length = [0; LENGTH_BYTES];
        file.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let Some(compiled_bytes) = length_at.checked_sub(length) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(compiled_bytes))?;
        let mut refusal = String::new();
        file.take(length).read_to_string(&mut refusal)?;
        Ok(Some(Self {
            refusal: (!refusal.is_empty()).then_some(refusal),
            path: path.to_owned(),
            compiled_bytes,
        }))
    }

    /// Reads the beginning of the file: the output of wasmtime's serialisation.
    pub(crate) fn compiled(&self) -> io::Result<Vec<u8>> {
        let mut compiled = Vec::new();
        let file = File::open(&self.path)?;
        file.take(self.compiled_bytes).read_to_end(&mut compiled)?;
        Ok(compiled)
    }
}

impl Cache {
    /// Opens the directory, or makes it.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
        // An entry that cannot be removed only takes disk space.
        if let Err(error) = prune(directory, CACHE_BYTES_MAX) {
            tracing::debug!(directory = %directory.display(), %error, "old compiled components stay");
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The entry under this key; `None` if it is missing or damaged.
    pub(crate) fn read(&self, key: &Key) -> Option<CachedEntry> {
        let path = self.path(key);
        let entry = match CachedEntry::open(&path) {
            Ok(entry) => entry,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled component cannot be read; compiling it again");
                return None;
            }
        };
        if entry.is_none() {
            tracing::warn!(path = %path.display(), "compiled component is damaged; compiling it again");
            return None;
        }
        // `prune` uses the file's time as the time of last use. If it cannot be updated, the entry is only removed sooner.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        entry
    }

    /// Writes an entry, completely or not at all. A failure only makes the next start slower.
    pub(crate) fn write(&self, key: &Key, entry: &Entry) {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let path = self.path(key);
        let n = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let unfinished = self
            .directory
            .join(format!("{}.{}-{n}.unfinished", key.0, process::id()));
        let written = std::fs::write(&unfinished, entry.to_bytes())
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "compiled component cannot be kept");
            // The failure is reported already, and unfinished files are never read.
            let _ = std::fs::remove_file(&unfinished);
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{}.compiled", key.0))
    }
}

/// Removes the longest unused entries until the others fit.
fn prune(directory: &Path, bytes_max: u64) -> io::Result<()> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "compiled")
        {
            let metadata = std::fs::metadata(&path)?;
            entries.push((metadata.modified()?, metadata.len(), path));
        }
    }
    entries.sort();
    let mut bytes: u64 = entries.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in entries {
        if bytes <= bytes_max {
            break;
        }
        std::fs::remove_file(path)?;
        bytes -= length;
    }
    Ok(())
}

impl Entry {
    /// Parses the output of [`to_bytes`](Self::to_bytes), if it is complete.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_suffix(MAGIC)?;
        let (bytes, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if digest != xxh3_128(bytes).to_le_bytes() {
            return None;
        }
        let (bytes, length) = bytes.split_last_chunk::<LENGTH_BYTES>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (compiled, refusal) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
        let refusal = String::from_utf8(refusal.to_vec()).ok()?;
        Some(Self {
            refusal: (!refusal.is_empty()).then_some(refusal),
            compiled: compiled.to_vec(),
        })
    }

    /// The compiled component, the refusal and its length, the digest of all that, and the magic number.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let refusal = self.refusal.as_deref().unwrap_or_default();
        let refusal = crate::notes::clip(refusal, 1024);
        let mut bytes = Vec::with_capacity(self.compiled.len() + refusal.len() + 64);
        bytes.extend(&self.compiled);
        bytes.extend(refusal.as_bytes());
        bytes.extend((refusal.len() as u32).to_le_bytes());
        bytes.extend(xxh3_128(&bytes).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

/// A digest of everything that an entry depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// Makes a key. Each part is hashed with its length, so that no two lists of parts have equal input.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(HEXLOWER.encode(&digest.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_removed_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path()).unwrap();
        let entry = Entry {
            refusal: None,
            compiled: vec![7; 1000],
        };
        let keys = ["old", "used", "new"].map(|name| Key::of(&[name]));
        for (age, key) in [3, 2, 1].into_iter().zip(&keys) {
            cache.write(key, &entry);
            let last_used = SystemTime::now() - std::time::Duration::from_secs(age * 3600);
            let file = File::options().append(true).open(cache.path(key)).unwrap();
            file.set_modified(last_used).unwrap();
        }
        assert!(cache.read(&keys[0]).is_some());
        prune(directory.path(), 2500).unwrap();
        let remaining = keys.each_ref().map(|key| cache.path(key).exists());
        assert_eq!(remaining, [true, false, true]);
    }

    #[test]
    fn a_written_entry_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(&directory.path().join("a/b")).unwrap();
        let (one, other) = (Key::of(&["a", "bc"]), Key::of(&["ab", "c"]));
        for refusal in [None, Some("table.grow".to_owned())] {
            let entry = Entry {
                refusal,
                compiled: vec![1, 2, 3],
            };
            cache.write(&one, &entry);
            let read = cache.read(&one).unwrap();
            assert_eq!(read.refusal, entry.refusal);
            assert_eq!(read.compiled().unwrap(), entry.compiled);
            let bytes = std::fs::read(read.path).unwrap();
            assert!(bytes.starts_with(&entry.compiled));
            assert_eq!(Entry::parse(&bytes), Some(entry));
        }
        assert_eq!(cache.read(&other), None);
    }

    #[test]
    fn a_damaged_entry_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path()).unwrap();
        let key = Key::of(&["a"]);
        let is_trusted = |bytes: &[u8]| {
            std::fs::write(cache.path(&key), bytes).unwrap();
            let is_read = cache.read(&key).is_some();
            assert_eq!(Entry::parse(bytes).is_some(), is_read);
            is_read
        };
        let whole = Entry {
            refusal: Some("why".to_owned()),
            compiled: vec![1, 2, 3],
        }
        .to_bytes();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(!is_trusted(&changed), "byte {at} changed");
            assert!(!is_trusted(&whole[..at]), "cut at byte {at}");
            assert!(!is_trusted(&whole[at + 1..]), "begins at byte {at}");
        }
        assert!(is_trusted(&whole));
    }
}
