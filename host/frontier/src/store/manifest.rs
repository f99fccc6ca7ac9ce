//! Whether the database's lists of its own files are what was written. The database removes files that its lists do not
//! name, and takes a keyspace without a list for one that was never finished; so a torn list must be found before it is
//! opened. Each keyspace has `current`, which names its list and holds that list's checksum.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_128;

use super::{Error, folder};

/// Checks the lists of all keyspaces of the database in `path`, of which there must be so many, its own one left out.
pub(crate) fn check(dir: &Path, path: &Path, keyspaces: usize) -> Result<(), Error> {
    let torn = |file: PathBuf| Error::Torn {
        dir: dir.to_owned(),
        file: file.strip_prefix(dir).unwrap_or(&file).to_owned(),
    };
    let version = path.join("version");
    if !version.exists() {
        return Err(torn(version));
    }
    let all = path.join("keyspaces");
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Err(torn(all)),
        Err(source) => return Err(folder(&all)(source)),
    };
    let mut found = 0;
    for entry in entries {
        let keyspace = entry.map_err(folder(&all))?.path();
        if !keyspace.is_dir() {
            continue;
        }
        let current = keyspace.join("current");
        let Some((name, checksum)) = read(&current)?.as_deref().and_then(from_current) else {
            return Err(torn(current));
        };
        let list = keyspace.join(name);
        match read(&list)? {
            Some(bytes) if xxh3_128(&bytes) == checksum => found += 1,
            _ => return Err(torn(list)),
        }
    }
    if found < keyspaces + 1 {
        return Err(torn(all));
    }
    // The database does not open without its own empty lock file, which those who copy stores tend to leave out.
    let lock = path.join("lock");
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lock)
        .map(drop)
        .map_err(folder(&lock))
}

/// Name and checksum of a list: its number (8 bytes) and XXH3 (16), both little-endian, and the kind of checksum (0).
fn from_current(bytes: &[u8]) -> Option<(String, u128)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (checksum, kind) = rest.split_first_chunk::<16>()?;
    let name = format!("v{}", u64::from_le_bytes(*number));
    (kind == [0]).then(|| (name, u128::from_le_bytes(*checksum)))
}

/// The content of a file; none where there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(folder(path)(source)),
    }
}
