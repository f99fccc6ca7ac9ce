//! Check of the database's lists of its own files. The database removes files that its lists do not name. It takes a keyspace
//! without a list for one that was never finished. So a torn list must be found before the database is opened. Each keyspace has
//! `current`, which names its list and has that list's checksum.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::{FrontierError, folder, is_damaged_file};

/// Checks the lists of all keyspaces of the database in `path`. There must be `keyspaces` of them, besides the database's own.
pub(crate) fn check(dir: &Path, path: &Path, keyspaces: usize) -> Result<(), FrontierError> {
    let version = path.join("version");
    if !version.try_exists().map_err(folder(&version))? {
        return Err(torn(dir, version));
    }
    if lists(dir, path)?.len() < keyspaces + 1 {
        return Err(torn(dir, path.join("keyspaces")));
    }
    // The database does not open without its own empty lock file, which copies of stores often lack.
    let lock = path.join("lock");
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lock)
        .map(drop)
        .map_err(folder(&lock))
}

/// Reads every table of the database in `path`, and compares it with its checksum.
pub(crate) fn check_tables(dir: &Path, path: &Path) -> Result<(), FrontierError> {
    for list in lists(dir, path)? {
        let tables = tables(&list).map_err(|source| match is_damaged_file(&source) {
            true => torn(dir, list.clone()),
            false => folder(&list)(source),
        })?;
        for (name, expected) in tables {
            let table = list.with_file_name("tables").join(name);
            match checksum(&table) {
                Ok(found) if found == expected => {}
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(folder(&table)(source));
                }
                _ => return Err(torn(dir, table)),
            }
        }
    }
    Ok(())
}

fn torn(dir: &Path, file: PathBuf) -> FrontierError {
    FrontierError::Torn {
        dir: dir.to_owned(),
        file: file.strip_prefix(dir).unwrap_or(&file).to_owned(),
    }
}

/// The current list of each keyspace. Returns an error if one is not what was written.
fn lists(dir: &Path, path: &Path) -> Result<Vec<PathBuf>, FrontierError> {
    let all = path.join("keyspaces");
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Err(torn(dir, all)),
        Err(source) => return Err(folder(&all)(source)),
    };
    let mut lists = Vec::new();
    for entry in entries {
        let entry = entry.map_err(folder(&all))?;
        let keyspace = entry.path();
        if !entry.file_type().map_err(folder(&keyspace))?.is_dir() {
            continue;
        }
        let current = keyspace.join("current");
        let Some((name, checksum)) = read(&current)?.as_deref().and_then(from_current) else {
            return Err(torn(dir, current));
        };
        let list = keyspace.join(name);
        match read(&list)? {
            Some(bytes) if xxh3_128(&bytes) == checksum => lists.push(list),
            _ => return Err(torn(dir, list)),
        }
    }
    Ok(lists)
}

/// Names and checksums of the tables in a list. The list has the number of levels (1 byte). Each level has its number of runs
/// (1), each run its number of tables (4). Each table has its number (8), the kind of its checksum (1), the checksum (16), and a
/// sequence number (8).
fn tables(list: &Path) -> io::Result<Vec<(String, u128)>> {
    let reader = sfa::Reader::new(list).map_err(|problem| match problem {
        sfa::Error::Io(source) => source,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })?;
    let section = reader.toc().section(b"tables");
    let mut section = section
        .ok_or(io::ErrorKind::UnexpectedEof)?
        .buf_reader(list)?;
    let mut tables = Vec::new();
    let [levels] = take(&mut section)?;
    for _ in 0..levels {
        let [runs] = take(&mut section)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(take(&mut section)?) {
                let number = u64::from_le_bytes(take(&mut section)?);
                let [_kind] = take(&mut section)?;
                let checksum = u128::from_le_bytes(take(&mut section)?);
                let _sequence_number: [u8; 8] = take(&mut section)?;
                tables.push((number.to_string(), checksum));
            }
        }
    }
    Ok(tables)
}

fn take<const LENGTH: usize>(reader: &mut impl Read) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn checksum(path: &Path) -> io::Result<u128> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.digest128()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Name and checksum of a list: its number (8 bytes) and XXH3 (16), both little-endian, and the kind of checksum (0).
fn from_current(bytes: &[u8]) -> Option<(String, u128)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (checksum, kind) = rest.split_first_chunk::<16>()?;
    let name = format!("v{}", u64::from_le_bytes(*number));
    (kind == [0]).then(|| (name, u128::from_le_bytes(*checksum)))
}

/// The content of a file; `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, FrontierError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(folder(path)(source)),
    }
}
