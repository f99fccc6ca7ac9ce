//! The disk cache of compiled components, so that a second start compiles nothing. Entries are machine code that the host will
//! run: the directory must be writable by the operator alone. An entry that is not exactly as written is compiled again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Last bytes of an entry. The number is the version of its layout. The compiled component comes first, so that the file can be
/// mapped into memory as it is.
const MAGIC: &[u8; 16] = b"opilio compiled2";
const DIGEST_BYTES: usize = 32;
/// Most bytes of all entries together when a cache is opened; the longest unused go first. Every list of seeds makes its own
/// entries, because a scope filter is compiled with the prefixes of its seeds. Without the limit they would pile up for ever.
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

/// A cache entry that was found whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedEntry {
    /// Reason for which the component cannot be snapshotted, if it cannot.
    pub(crate) refusal: Option<String>,
    /// The file.
    pub(crate) path: PathBuf,
    /// Its content.
    bytes: Vec<u8>,
    compiled_length: usize,
}

impl CachedEntry {
    /// The beginning of the file: the output of wasmtime's serialisation.
    pub(crate) fn compiled(&self) -> &[u8] {
        &self.bytes[..self.compiled_length]
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
        // An entry that cannot be removed only costs disk space.
        if let Err(error) = prune(directory, CACHE_BYTES_MAX) {
            tracing::debug!(directory = %directory.display(), %error, "old compiled components stay");
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The entry under this key; `None` if there is no entry, or none that can be trusted.
    pub(crate) fn read(&self, key: &Key) -> Option<CachedEntry> {
        let path = self.path(key);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled component cannot be read; compiling it anew");
                return None;
            }
        };
        let Some((compiled, refusal)) = Entry::split(&bytes) else {
            tracing::warn!(path = %path.display(), "compiled component is damaged; compiling it anew");
            return None;
        };
        // `prune` takes the file's time as the time of its last use. If the time cannot be written, the entry only goes sooner.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        let compiled_length = compiled.len();
        Some(CachedEntry {
            refusal,
            path,
            bytes,
            compiled_length,
        })
    }

    /// Writes an entry, whole or not at all. A failure only costs time at the next start.
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
            // The failure is reported already; an unfinished file is never read.
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
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (compiled, refusal) = Self::split(bytes)?;
        Some(Self {
            refusal,
            compiled: compiled.to_vec(),
        })
    }

    /// The compiled component and the refusal, if the entry is whole.
    fn split(bytes: &[u8]) -> Option<(&[u8], Option<String>)> {
        let bytes = bytes.strip_suffix(MAGIC)?;
        let (bytes, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if digest != Sha256::digest(bytes).as_slice() {
            return None;
        }
        let (bytes, length) = bytes.split_last_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (compiled, refusal) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
        let refusal = String::from_utf8(refusal.to_vec()).ok()?;
        Some((compiled, (!refusal.is_empty()).then_some(refusal)))
    }

    /// The compiled component, the refusal and its length, the digest of all that, and the magic number.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let refusal = self.refusal.as_deref().unwrap_or_default();
        let refusal = crate::notes::clip(refusal, 1024);
        let mut bytes = Vec::with_capacity(self.compiled.len() + refusal.len() + 64);
        bytes.extend(&self.compiled);
        bytes.extend(refusal.as_bytes());
        bytes.extend((refusal.len() as u32).to_le_bytes());
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest.as_slice());
        bytes.extend(MAGIC);
        bytes
    }
}

/// A digest of everything that an entry depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// Makes a key. Each part counts with its length, so that no two lists of parts are alike.
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
    fn what_has_not_been_used_for_longest_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path()).unwrap();
        let entry = Entry {
            refusal: None,
            compiled: vec![7; 1000],
        };
        let keys = ["old", "used", "new"].map(|name| Key::of(&[name]));
        for (age, key) in [3, 2, 1].into_iter().zip(&keys) {
            cache.write(key, &entry);
            let then = SystemTime::now() - std::time::Duration::from_secs(age * 3600);
            let file = File::options().append(true).open(cache.path(key)).unwrap();
            file.set_modified(then).unwrap();
        }
        assert!(cache.read(&keys[0]).is_some());
        prune(directory.path(), 2500).unwrap();
        let left = keys.each_ref().map(|key| cache.path(key).exists());
        assert_eq!(left, [true, false, true]);
    }

    #[test]
    fn what_is_written_is_read_again() {
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
            assert_eq!(read.compiled(), entry.compiled);
            let bytes = std::fs::read(read.path).unwrap();
            assert!(bytes.starts_with(&entry.compiled));
            assert_eq!(Entry::parse(&bytes), Some(entry));
        }
        assert_eq!(cache.read(&other), None);
    }

    #[test]
    fn an_entry_with_any_byte_changed_or_missing_is_not_trusted() {
        let whole = Entry {
            refusal: Some("why".to_owned()),
            compiled: vec![1, 2, 3],
        }
        .to_bytes();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(Entry::parse(&changed), None, "byte {at} changed");
            assert_eq!(Entry::parse(&whole[..at]), None, "cut at byte {at}");
            assert_eq!(Entry::parse(&whole[at + 1..]), None, "begins at byte {at}");
        }
        assert!(Entry::parse(&whole).is_some());
    }
}
