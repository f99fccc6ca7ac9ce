//! Compiled functions, in memory and in a file beside the cached components. A component with many plugins is compiled once for
//! each of them, and once more before it is configured. A scope filter is compiled for every list of seeds. These compilations
//! differ only in the initial memory, so functions that are already compiled are taken from here. All components of one toolchain
//! also share the functions of their runtime. Complete components are cached by [`crate::cache`].
//!
//! The file has one record after the other: lengths, digest, key, value. The key is cranelift's digest of everything that the
//! machine code depends on. Processes append to the file under its lock. A function is written when its component has been
//! compiled, so that a component that is too costly does not become cheaper with every attempt.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wasmtime::CacheStore;
use xxhash_rust::xxh3::xxh3_128;

/// Most bytes of all functions together, in memory and in the file. A function that exceeds this clears the cache. The built-in
/// components need 32 MiB together, and a component of Python as much again.
const FUNCTION_BYTES_MAX: usize = 128 << 20;
/// Name of the file in the directory of cached components.
const FILE: &str = "functions";
/// Bytes of a record before its key: the lengths of key and value, and the digest.
const HEAD_BYTES: usize = 4 + 4 + 16;

/// Compiled functions by the digest of their source.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    path: Option<PathBuf>,
    kept: Mutex<CachedFunctions>,
}

#[derive(Debug, Default)]
struct CachedFunctions {
    functions: HashMap<Box<[u8]>, Box<[u8]>>,
    /// Bytes of the records of all functions.
    bytes: usize,
    /// Keys of the functions that are not in the file.
    unsaved: Vec<Box<[u8]>>,
    /// `true` if the file has been read. It is read when a function is first needed.
    loaded: bool,
    /// Bytes of the file that were read.
    read: u64,
}

impl Functions {
    /// The functions in a file of this directory; without one they are in memory only.
    pub(crate) fn in_directory(directory: Option<&Path>) -> Self {
        Self {
            path: directory.map(|directory| directory.join(FILE)),
            kept: Mutex::default(),
        }
    }

    /// The directory of the file.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// Appends new functions to the file. If this fails, they are only compiled again later.
    pub(crate) fn save(&self) {
        let Some(path) = &self.path else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.unsaved.is_empty() {
            return;
        }
        if let Err(error) = kept.save(path) {
            tracing::debug!(path = %path.display(), %error, "compiled functions cannot be kept");
        }
    }
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.loaded {
            kept.loaded = true;
            if let Some(path) = &self.path
                && let Err(error) = File::open(path).and_then(|mut file| kept.read(&mut file))
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(path = %path.display(), %error, "compiled functions cannot be read");
            }
        }
        let function = kept.functions.get(key)?;
        Some(Cow::Owned(function.to_vec()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = kept.put(key, value.into());
        if is_kept && self.path.is_some() {
            kept.unsaved.push(key.into());
        }
        is_kept
    }
}

impl CachedFunctions {
    fn put(&mut self, key: &[u8], value: Box<[u8]>) -> bool {
        let bytes = HEAD_BYTES + key.len() + value.len();
        if bytes > FUNCTION_BYTES_MAX {
            return false;
        }
        if self.bytes + bytes > FUNCTION_BYTES_MAX {
            self.functions.clear();
            self.unsaved.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some(before) = self.functions.insert(key.into(), value) {
            self.bytes -= HEAD_BYTES + key.len() + before.len();
        }
        true
    }

    /// Reads the records that the file has gained, up to its end or a record that is not whole.
    fn read(&mut self, file: &mut File) -> io::Result<()> {
        if file.metadata()?.len() < self.read {
            // Another process has started the file afresh.
            self.read = 0;
        }
        let mut bytes = from(file, self.read)?;
        if self.read > 0 && !bytes.is_empty() && first_record(&bytes).is_none() {
            // Another process has started the file afresh, and it has grown past what was read.
            self.read = 0;
            bytes = from(file, 0)?;
        }
        let mut rest = bytes.as_slice();
        while let Some((key, value, after)) = first_record(rest) {
            self.put(key, value.into());
            rest = after;
        }
        self.read += (bytes.len() - rest.len()) as u64;
        Ok(())
    }

    fn save(&mut self, path: &Path) -> io::Result<()> {
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if file.try_lock().is_err() {
            // Another process is writing. These functions are written with the next ones.
            return Ok(());
        }
        // Functions that other processes have written meanwhile are not written again.
        let unsaved = std::mem::take(&mut self.unsaved);
        let mut functions = Vec::new();
        for key in unsaved {
            if let Some(function) = self.functions.remove(&key) {
                self.bytes -= HEAD_BYTES + key.len() + function.len();
                functions.push((key, function));
            }
        }
        self.read(&mut file)?;
        let mut records = Vec::new();
        for (key, function) in functions {
            if !self.functions.contains_key(&key) {
                write_record(&mut records, &key, &function);
                self.put(&key, function);
            }
        }
        if self.read + records.len() as u64 > FUNCTION_BYTES_MAX as u64 {
            self.read = 0;
        }
        // Also cuts off a record that a killed process has not finished.
        file.set_len(self.read)?;
        file.seek(SeekFrom::Start(self.read))?;
        file.write_all(&records)?;
        self.read += records.len() as u64;
        Ok(())
    }
}

/// The bytes of a file from this offset on.
fn from(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    records.extend((key.len() as u32).to_le_bytes());
    records.extend((value.len() as u32).to_le_bytes());
    let digest = records.len();
    records.extend([0; 16]);
    records.extend(key);
    records.extend(value);
    let body = xxh3_128(&records[digest + 16..]);
    records[digest..digest + 16].copy_from_slice(&body.to_le_bytes());
}

/// The key and the value of the first record, and the bytes after it; `None` if the record is not whole.
fn first_record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let (lengths, digest) = head.split_at(8);
    let length = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize);
    let (key_length, value_length) = (length(&lengths[..4])?, length(&lengths[4..])?);
    let (body, after) = rest.split_at_checked(key_length.checked_add(value_length)?)?;
    if xxh3_128(body).to_le_bytes() != digest {
        return None;
    }
    let (key, value) = body.split_at(key_length);
    Some((key, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of each of these keys, in another process.
    fn found(directory: &Path, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let functions = Functions::in_directory(Some(directory));
        let value = |key: &&[u8]| functions.get(key).map(Cow::into_owned);
        keys.iter().map(value).collect()
    }

    fn put(functions: &Functions, key: &[u8], byte: u8, length: usize) {
        assert!(functions.insert(key, vec![byte; length]));
    }

    #[test]
    fn a_rewritten_file_is_read_from_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let slow = Functions::in_directory(Some(directory.path()));
        put(&slow, b"a", 1, 10);
        slow.save();
        // Another process starts the file afresh, and writes more than the slow one has read.
        std::fs::remove_file(directory.path().join(FILE)).unwrap();
        let other = Functions::in_directory(Some(directory.path()));
        put(&other, b"b", 2, 100);
        other.save();
        put(&slow, b"c", 3, 10);
        slow.save();
        let all = found(directory.path(), &[b"b", b"c"]);
        assert_eq!(all, [Some(vec![2; 100]), Some(vec![3; 10])]);
    }

    #[test]
    fn exceeding_the_size_limit_clears_the_cache() {
        let functions = Functions::default();
        let half = FUNCTION_BYTES_MAX / 2;
        put(&functions, b"a", 1, half);
        assert_eq!(functions.get(b"a").map(|found| found.len()), Some(half));
        put(&functions, b"b", 2, half);
        assert_eq!(functions.get(b"a"), None);
        assert_eq!(functions.get(b"b").map(|found| found[0]), Some(2));
        assert!(!functions.insert(b"c", vec![3; FUNCTION_BYTES_MAX]));
        assert!(functions.get(b"b").is_some());
    }

    #[test]
    fn a_recompiled_function_counts_once() {
        let functions = Functions::default();
        for _ in 0..3 {
            put(&functions, b"a", 1, FUNCTION_BYTES_MAX / 2);
        }
        assert!(functions.get(b"a").is_some());
        let kept = functions
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        assert!(kept.bytes <= FUNCTION_BYTES_MAX / 2 + HEAD_BYTES + 1);
    }

    #[test]
    fn saved_functions_are_read_by_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let process = || Functions::in_directory(Some(directory.path()));
        let (one, other) = (process(), process());
        put(&one, b"a", 1, 10);
        put(&one, b"unsaved", 1, 10);
        one.save();
        put(&one, b"later", 1, 10);
        // It has compiled one of them too, before it looked into the file.
        put(&other, b"a", 1, 10);
        put(&other, b"b", 2, 20);
        other.save();
        let file = directory.path().join(FILE);
        let whole = std::fs::metadata(&file).unwrap().len();
        assert_eq!(
            found(directory.path(), &[b"a", b"b", b"later"]),
            [Some(vec![1; 10]), Some(vec![2; 20]), None]
        );
        assert_eq!(whole, (3 * HEAD_BYTES + 1 + 7 + 1 + 10 + 10 + 20) as u64);
        one.save();
        assert_eq!(found(directory.path(), &[b"later"]), [Some(vec![1; 10])]);
    }

    #[test]
    fn an_incomplete_record_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        for damage in [
            |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 3),
            |bytes: &mut Vec<u8>| {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
            },
        ] {
            let functions = Functions::in_directory(Some(directory.path()));
            put(&functions, b"a", 1, 10);
            put(&functions, b"b", 2, 10);
            functions.save();
            let mut bytes = std::fs::read(&file).unwrap();
            damage(&mut bytes);
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(found(directory.path(), &[b"a", b"b"])[1], None);
            let functions = Functions::in_directory(Some(directory.path()));
            put(&functions, b"c", 3, 10);
            functions.save();
            assert_eq!(
                found(directory.path(), &[b"a", b"b", b"c"]),
                [Some(vec![1; 10]), None, Some(vec![3; 10])]
            );
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_full_file_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let one = Functions::in_directory(Some(directory.path()));
        put(&one, b"a", 1, FUNCTION_BYTES_MAX / 2);
        one.save();
        let other = Functions::in_directory(Some(directory.path()));
        put(&other, b"b", 2, FUNCTION_BYTES_MAX / 2);
        other.save();
        let found = found(directory.path(), &[b"a", b"b"]);
        let lengths: Vec<_> = found
            .iter()
            .map(|value| value.as_ref().map(Vec::len))
            .collect();
        assert_eq!(lengths, [None, Some(FUNCTION_BYTES_MAX / 2)]);
    }
}
