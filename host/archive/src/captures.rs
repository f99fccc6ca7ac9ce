//! Finds the captures of one URI in an archive, through the indexes beside its files.
//!
//! The index of a finished file is sorted and searched by bisection. The index of a file that is being written is in the order of
//! writing and is read completely. Files without an index are only listed, because reading them would take too long. In archives of
//! many files, catalogues reduce the number of files to search.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use opilio_uri::cdx_key;

use crate::catalogue::{IndexFilter, of};
use crate::cdxj::{CdxjEntry, index_path, open_index_path};
use crate::name::{OPEN_SUFFIX, is_archive, names};
use crate::sorted_lines::{bisect, line};

/// Captures of a URI in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// The captures, oldest first. For a file that is being written, the name is without `.open`.
    pub entries: Vec<CdxjEntry>,
    /// Files without an index, which may have further captures.
    pub unlisted: Vec<PathBuf>,
}

/// Finds the captures of a URI, as it was fetched, in the archive files of these directories, and by the indexes of `moved`:
/// archive files that were deleted after they were stored elsewhere.
///
/// # Errors
/// A directory or an index cannot be read, or an index is invalid.
pub fn captures(directories: &[PathBuf], moved: &[PathBuf], uri: &str) -> io::Result<Captures> {
    let mut found = Captures::default();
    let key = cdx_key(uri).replace(' ', "%20");
    let begins = format!("{key} ");
    for directory in directories {
        let files = match names(directory) {
            // No archive file was written so far.
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => continue,
            files => files?,
        };
        let filter = IndexFilter::of(directory, &files, &key);
        for file in &files {
            let name = file.strip_suffix(OPEN_SUFFIX).unwrap_or(file);
            // Catalogues do not cover a file that is being written.
            let is_finished = file == name;
            if !is_archive(name) || is_finished && filter.excludes(directory, name) {
                continue;
            }
            let target = directory.join(name);
            let listed = match is_finished {
                true => entries_of_index(&target, begins.as_bytes()),
                false => entries_of_open_file(&target, begins.as_bytes()),
            };
            match listed? {
                Some(entries) => found.add(&target, entries),
                None => found.unlisted.push(directory.join(file)),
            }
        }
    }
    let mut filters = BTreeMap::new();
    for target in moved {
        let name = target.file_name().and_then(|name| name.to_str());
        if let (Some(folder), Some(name)) = (target.parent(), name) {
            let filter = filters.entry(folder).or_insert_with(|| {
                // A folder that cannot be read has no catalogues, so all its indexes are read.
                IndexFilter::of(folder, &names(folder).unwrap_or_default(), &key)
            });
            if filter.excludes(folder, name) {
                continue;
            }
        }
        let entries = entries_of_index(target, begins.as_bytes())?;
        found.add(target, entries.unwrap_or_default());
    }
    found.entries.retain(|entry| entry.capture.url == uri);
    found.entries.sort_by_cached_key(|entry| {
        let capture = &entry.capture;
        let offset = capture.offset.as_deref().map(str::parse::<u64>);
        (
            entry.timestamp.clone(),
            capture.filename.clone(),
            offset.and_then(Result::ok),
        )
    });
    found.unlisted.sort();
    Ok(found)
}

impl Captures {
    /// Adds entries of a file's index, with the name of this file, because indexes by other programs may have another path.
    fn add(&mut self, file: &Path, entries: Vec<CdxjEntry>) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        self.entries.extend(entries.into_iter().map(|mut entry| {
            entry.capture.filename = Some(name.clone().into_owned());
            entry
        }));
    }
}

/// Entries under a key in the index of a file, if it has one.
fn entries_of_index(target: &Path, key: &[u8]) -> io::Result<Option<Vec<CdxjEntry>>> {
    let finished = index_path(target);
    let Some(index) = open(&finished)? else {
        return Ok(None);
    };
    let found = sorted(index, key).map_err(|problem| of(&finished, problem));
    found.map(Some)
}

/// Entries for a file that was being written. A finished index beside it may belong to another file of the same name.
fn entries_of_open_file(target: &Path, key: &[u8]) -> io::Result<Option<Vec<CdxjEntry>>> {
    let written = open_index_path(target);
    let Some(index) = open(&written)? else {
        // The file was finished after the directory was read.
        return entries_of_index(target, key);
    };
    let found = entries(BufReader::new(index), key, false);
    found.map_err(|problem| of(&written, problem)).map(Some)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(of(path, problem)),
    }
}

fn sorted(index: File, key: &[u8]) -> io::Result<Vec<CdxjEntry>> {
    let length = index.metadata()?.len();
    let mut index = BufReader::new(index);
    let start = bisect(&mut index, length, key)?;
    index.seek(SeekFrom::Start(start))?;
    entries(index, key, true)
}

fn entries(mut index: BufReader<File>, key: &[u8], is_sorted: bool) -> io::Result<Vec<CdxjEntry>> {
    let mut entries = Vec::new();
    loop {
        let line = line(&mut index)?;
        // A line without its end is still being written.
        let Some(line) = line.strip_suffix(b"\n") else {
            return Ok(entries);
        };
        if line.starts_with(key) {
            let entry = String::from_utf8_lossy(line).parse();
            let bad = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
            entries.push(entry.map_err(bad)?);
        } else if is_sorted {
            return Ok(entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn bisection_and_reading_have_the_same_results() {
        for lines in [0, 1, 2, 3, 10, 1000] {
            let mut file = tempfile::tempfile().unwrap();
            for number in 0..lines {
                // Several lines for each key, and lines of different length.
                let padding = "x".repeat(number * 7 % 300);
                let key = number / 3 * 2;
                writeln!(file, "k{key:05} 2026 {{\"url\":\"{padding}\"}}").unwrap();
            }
            let length = file.stream_position().unwrap();
            for key in 0..lines + 2 {
                let key = format!("k{key:05} ");
                let key = key.as_bytes();
                file.seek(SeekFrom::Start(0)).unwrap();
                let index = |file: &File| BufReader::new(file.try_clone().unwrap());
                let read = entries(index(&file), key, false).unwrap();
                let start = bisect(&mut index(&file), length, key).unwrap();
                file.seek(SeekFrom::Start(start)).unwrap();
                let found = entries(index(&file), key, true).unwrap();
                assert_eq!(found, read, "{lines} {key:?}");
            }
        }
    }
}
