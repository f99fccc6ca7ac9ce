//! Catalogues: files in an archive directory that list which indexes (CDXJ) have captures of a key. With catalogues, a look-up
//! opens some hundred files instead of a hundred thousand.
//!
//! A catalogue covers 256 indexes and is a text file of sorted lines:
//!
//! ```text
//! ! 4711 1790000000000000000 a.warc.gz   an index: its length, its time of change in nanoseconds, its archive file
//! ! 8150 1790000000000000001 b.warc.gz
//! 00c1d2e3f4051627 1                     hash of a key, and which of the indexes above has it, counted from 0
//! ~                                      the end; without it the catalogue is damaged
//! ```
//!
//! - Catalogues only exclude indexes. A look-up opens each index that no catalogue covers, and each index with a matching hash,
//!   even if the match is a collision. Without catalogues the look-up takes longer and has the same result.
//! - An entry of a catalogue is valid only for an index of the same length and time of change, because file names may be used
//!   again, and indexes may be rewritten.
//! - Code that removes captures from an index also removes the catalogues of its directory ([`forget_catalogues`]), because these
//!   have hashes of the removed keys.
//!
//! Catalogues are files instead of a database, because archives may be on network disks and read-only disks, and because a file is
//! written sequentially, while a database of a billion hashes would be changed at random places.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};
use std::{slice, str};

use jiff::Timestamp;
use sha1::{Digest as _, Sha1};
use uuid::Uuid;

use crate::cdxj::{LINE_BYTES_MAX, index_path};
use crate::name::{is_archive, names};
use crate::sorted_lines::{bisect, line};

const PREFIX: &str = ".catalogue-";
const DRAFT_PREFIX: &str = ".catalogue.draft";

/// The last line of a catalogue.
const END: &[u8; 2] = b"~\n";

/// Number of indexes in a catalogue. A look-up opens one catalogue for each 256 indexes, and up to 255 indexes without a catalogue.
const INDEXES: usize = 256;

/// Maximum keys of a catalogue, which are in memory while it is made (64 MB). At this number it is complete even with fewer
/// indexes.
const KEYS_MAX: usize = 4_000_000;

/// State of an index when it was entered in a catalogue. Its `Display` is its line there, without start and line end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct IndexState {
    /// The name of the archive file.
    file: String,
    length: u64,
    /// The time of its last change, in nanoseconds since 1970.
    modified: i128,
}

/// A catalogue that is being read.
struct Catalogue {
    indexes: Vec<IndexState>,
    length: u64,
    source: BufReader<File>,
}

/// The indexes of a directory that need not be opened for a key.
#[derive(Debug, Default)]
pub(crate) struct IndexFilter {
    known: HashSet<IndexState>,
    with_key: HashSet<IndexState>,
}

impl IndexFilter {
    /// Looks for a key in the catalogues of a directory. `names` are all names in it.
    pub(crate) fn of(directory: &Path, names: &[String], key: &str) -> IndexFilter {
        let mut filter = IndexFilter::default();
        for name in names.iter().filter(|name| name.starts_with(PREFIX)) {
            let found = Catalogue::open(&directory.join(name)).and_then(|mut catalogue| {
                let found = catalogue.find(key)?;
                Ok((catalogue.indexes, found))
            });
            // A catalogue that was removed or is damaged excludes nothing.
            if let Ok((indexes, found)) = found {
                let with_key = found.into_iter().filter_map(|at| indexes.get(at));
                filter.with_key.extend(with_key.cloned());
                filter.known.extend(indexes);
            }
        }
        filter
    }

    /// Returns `true` if the index of a finished archive file, as it is now, has no captures of the key.
    pub(crate) fn excludes(&self, directory: &Path, file: &str) -> bool {
        // Without catalogues, the state of a hundred thousand files is not queried.
        !self.known.is_empty()
            && IndexState::now(directory, file)
                .is_ok_and(|index| self.known.contains(&index) && !self.with_key.contains(&index))
    }
}

/// Makes catalogues of up to `files_max` finished indexes of a directory that are in no catalogue, each of 256 indexes. If fewer
/// than 256 are left, they are not entered. `moved` are archive files that were deleted after they were stored elsewhere; their
/// indexes are included if they are in this directory. Returns the number of entered indexes. Several processes may call this at
/// the same time.
///
/// # Errors
/// The directory or a catalogue cannot be read, or the disk is full; existing catalogues stay valid. Or some indexes cannot be
/// read: the error names the first one, and all others were entered.
pub fn catalogue(directory: &Path, moved: &[PathBuf], files_max: usize) -> io::Result<usize> {
    let names = match names(directory) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(0),
        names => names?,
    };
    remove_abandoned(directory, &names);
    let mut unread = Vec::new();
    let moved = moved.iter().filter(|file| file.parent() == Some(directory));
    let moved = moved.filter_map(|file| file.file_name()?.to_str());
    let files = names.iter().map(String::as_str).chain(moved);
    let current = current_indexes(directory, files, &mut unread);
    let known = covered_indexes(directory, &names)?;
    let mut new: Vec<&IndexState> = current.difference(&known).collect();
    new.sort();
    let mut new = new.iter();
    let numbers = names.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let numbers = numbers.filter_map(|number| number.parse::<u64>().ok());
    let mut number = numbers.max().unwrap_or(0);
    let mut entered = 0;
    while new.len() >= INDEXES && entered + INDEXES <= files_max {
        number += 1;
        let name = format!("{PREFIX}{number:06}");
        entered += enter(directory, &mut new, &name, &mut unread)?;
    }
    let others = unread.len().saturating_sub(1);
    match unread.into_iter().next() {
        None => Ok(entered),
        Some(first) if others == 0 => Err(first),
        Some(first) => Err(io::Error::new(
            first.kind(),
            format!("{first}; and {others} more"),
        )),
    }
}

/// Removes the catalogues of a directory, because an index in it has changed.
///
/// # Errors
/// One of them cannot be removed.
pub fn forget_catalogues(directory: &Path) -> io::Result<()> {
    let names = names(directory)?;
    for name in names.iter().filter(|name| name.starts_with(PREFIX)) {
        remove(&directory.join(name))?;
    }
    Ok(())
}

/// Returns the present indexes of the archive files among these names. Errors are added to `unread`.
fn current_indexes<'n>(
    directory: &Path,
    names: impl Iterator<Item = &'n str>,
    unread: &mut Vec<io::Error>,
) -> HashSet<IndexState> {
    let mut current = HashSet::new();
    // Names with control characters would break the lines of a catalogue.
    let has_line = |name: &&str| is_archive(name) && !name.contains(char::is_control);
    for name in names.filter(has_line) {
        match IndexState::now(directory, name) {
            Ok(index) => {
                current.insert(index);
            }
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            Err(problem) => unread.push(of(&index_path(&directory.join(name)), problem)),
        }
    }
    current
}

/// Returns the indexes that catalogues among these names cover. Removes damaged catalogues, and catalogues whose indexes are all
/// missing or changed.
fn covered_indexes(directory: &Path, names: &[String]) -> io::Result<HashSet<IndexState>> {
    // All files are considered, not only those of this job, because jobs may share a directory.
    let is_as_it_was =
        |index: &IndexState| IndexState::now(directory, &index.file).is_ok_and(|now| now == *index);
    let mut known = HashSet::new();
    for name in names.iter().filter(|name| name.starts_with(PREFIX)) {
        let path = directory.join(name);
        match Catalogue::open(&path) {
            Ok(catalogue) if catalogue.indexes.iter().any(is_as_it_was) => {
                known.extend(catalogue.indexes);
            }
            Ok(_) => remove(&path)?,
            Err(damage) if is_damage(&damage) => remove(&path)?,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            // The catalogue may be valid, and readable when fewer files are open.
            Err(problem) => return Err(of(&path, problem)),
        }
    }
    Ok(known)
}

/// Makes a catalogue of the next readable indexes: 256, or fewer if they have many keys. Returns their number. If there are too
/// few, makes no catalogue and returns 0.
fn enter(
    directory: &Path,
    new: &mut slice::Iter<'_, &IndexState>,
    name: &str,
    unread: &mut Vec<io::Error>,
) -> io::Result<usize> {
    let mut keys = Vec::new();
    let mut indexes = Vec::new();
    while indexes.len() < INDEXES && keys.len() < KEYS_MAX {
        let Some(IndexState { file, .. }) = new.next() else {
            return Ok(0);
        };
        let before = keys.len();
        match read(directory, file, indexes.len() as u32, &mut keys) {
            Ok(index) => indexes.push(index),
            Err(problem) => {
                keys.truncate(before);
                // A file that was handed over meanwhile is not an error.
                if problem.kind() != io::ErrorKind::NotFound {
                    unread.push(of(&index_path(&directory.join(file)), problem));
                }
            }
        }
    }
    keys.sort_unstable();
    write(directory, name, &indexes, &keys)?;
    Ok(indexes.len())
}

/// Adds the hash of each key in a file's index, with the index's number. Returns the state of the index that was read.
fn read(
    directory: &Path,
    file: &str,
    number: u32,
    keys: &mut Vec<(u64, u32)>,
) -> io::Result<IndexState> {
    let source = File::open(index_path(&directory.join(file)))?;
    let index = IndexState::of(file, &source.metadata()?)?;
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = source.by_ref().take(LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(index);
        }
        let key = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let entry = (hash(&String::from_utf8_lossy(key)), number);
        // Lines with the same key follow each other.
        if keys.last() != Some(&entry) {
            keys.push(entry);
        }
    }
}

/// Writes a catalogue. It gets its name when it is complete.
fn write(
    directory: &Path,
    name: &str,
    indexes: &[IndexState],
    keys: &[(u64, u32)],
) -> io::Result<()> {
    // Jobs may share a directory, so each draft has a name of its own.
    let draft = directory.join(format!("{DRAFT_PREFIX}-{}", Uuid::new_v4()));
    let written = File::create_new(&draft).and_then(|file| {
        // A draft without a lock counts as abandoned.
        file.lock()?;
        let mut out = BufWriter::new(file);
        for index in indexes {
            writeln!(out, "! {index}")?;
        }
        for (hash, number) in keys {
            writeln!(out, "{hash:016x} {number}")?;
        }
        out.write_all(END)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&draft, directory.join(name))
    });
    if written.is_err() {
        // If the removal fails, the draft counts as abandoned.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Removes drafts of processes that were killed.
fn remove_abandoned(directory: &Path, names: &[String]) {
    for name in names.iter().filter(|name| name.starts_with(DRAFT_PREFIX)) {
        let draft = directory.join(name);
        // A draft that cannot be removed is harmless, and the removal is retried.
        let _ = File::open(&draft).map(|held| held.try_lock().map(|()| fs::remove_file(&draft)));
    }
}

/// Removes a catalogue, which may not exist.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|problem| of(path, problem)),
    }
}

impl IndexState {
    /// Returns the present state of the index of an archive file.
    fn now(directory: &Path, file: &str) -> io::Result<IndexState> {
        IndexState::of(file, &fs::metadata(index_path(&directory.join(file)))?)
    }

    fn of(file: &str, metadata: &Metadata) -> io::Result<IndexState> {
        let modified = Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)?;
        Ok(IndexState {
            file: file.to_owned(),
            length: metadata.len(),
            modified: modified.as_nanosecond(),
        })
    }

    /// Parses a line of a catalogue.
    fn parse(line: &[u8]) -> Option<IndexState> {
        let line = str::from_utf8(line).ok()?.strip_suffix('\n')?;
        let (length, rest) = line.split_once(' ')?;
        let (modified, file) = rest.split_once(' ')?;
        Some(IndexState {
            file: file.to_owned(),
            length: length.parse().ok()?,
            modified: modified.parse().ok()?,
        })
    }
}

impl fmt::Display for IndexState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.length, self.modified, self.file)
    }
}

impl Catalogue {
    /// Opens a catalogue and reads its indexes.
    fn open(path: &Path) -> io::Result<Catalogue> {
        let mut source = BufReader::new(File::open(path)?);
        let length = source.get_ref().metadata()?.len();
        let mut end = [0; END.len()];
        source.seek(SeekFrom::Start(length.saturating_sub(END.len() as u64)))?;
        source.read_exact(&mut end)?;
        if end != *END {
            return Err(damaged());
        }
        source.rewind()?;
        let mut indexes = Vec::new();
        while let Some(index) = line(&mut source)?.strip_prefix(b"! ") {
            indexes.push(IndexState::parse(index).ok_or_else(damaged)?);
        }
        Ok(Catalogue {
            indexes,
            length,
            source,
        })
    }

    /// Returns the positions of the indexes that have a key.
    fn find(&mut self, key: &str) -> io::Result<Vec<usize>> {
        let begins = format!("{:016x} ", hash(key));
        let start = bisect(&mut self.source, self.length, begins.as_bytes())?;
        self.source.seek(SeekFrom::Start(start))?;
        let mut found = Vec::new();
        while let Some(number) = line(&mut self.source)?.strip_prefix(begins.as_bytes()) {
            let number = str::from_utf8(number).map(|number| number.trim_end().parse());
            found.push(number.map_err(|_| damaged())?.map_err(|_| damaged())?);
        }
        Ok(found)
    }
}

/// The first eight bytes of the SHA-1 of a key.
fn hash(key: &str) -> u64 {
    let digest = Sha1::digest(key);
    let mut hash = [0; 8];
    hash.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(hash)
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "not a catalogue, or a damaged one",
    )
}

/// Returns `true` if an error is about the content of a file, and not about reading it.
fn is_damage(problem: &io::Error) -> bool {
    matches!(
        problem.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Adds the path to an error.
pub(crate) fn of(path: &Path, problem: io::Error) -> io::Error {
    io::Error::new(problem.kind(), format!("{}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captures;

    /// Writes indexes of these files. Each lists a page that all files have, and a page of its own.
    fn archive(files: std::ops::Range<usize>, directory: &Path) {
        for file in files {
            let name = format!("f{file:05}");
            fs::write(directory.join(format!("{name}.warc.gz")), "").unwrap();
            let line = |path: &str, offset: usize| {
                format!(
                    "org,a)/{path} 20260101000000 {{\"url\":\"http://a.org/{path}\",\"offset\":\"{offset}\"}}\n"
                )
            };
            let lines = line("all", 1) + &line("all", 2) + &line(&format!("own{file}"), 3);
            fs::write(directory.join(format!("{name}.cdxj")), lines).unwrap();
        }
    }

    fn catalogues(directory: &Path) -> Vec<String> {
        let mut names = names(directory).unwrap();
        names.retain(|name| name.starts_with('.'));
        names.sort();
        names
    }

    /// Returns the captures of a page, each as file and offset.
    fn found(directory: &Path, page: &str) -> Vec<(String, String)> {
        let uri = format!("http://a.org/{page}");
        let found = captures(&[directory.to_owned()], &[], &uri).unwrap();
        assert!(found.unlisted.is_empty(), "{found:?}");
        let entries = found.entries.into_iter();
        entries
            .map(|it| (it.capture.filename.unwrap(), it.capture.offset.unwrap()))
            .collect()
    }

    #[test]
    fn look_ups_with_and_without_catalogues_have_the_same_results() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let pages = ["all", "own0", "own31", "own40", "own799", "none"];
        let mut done = 0;
        for (files, expected) in [
            (255, &[][..]),
            (600, &[".catalogue-000001", ".catalogue-000002"]),
            (
                800,
                &[
                    ".catalogue-000001",
                    ".catalogue-000002",
                    ".catalogue-000003",
                ],
            ),
        ] {
            archive(done..files, directory);
            done = files;
            let before = pages.map(|page| found(directory, page));
            assert_eq!(before[0].len(), 2 * files);
            while catalogue(directory, &[], 300).unwrap() > 0 {}
            assert_eq!(catalogues(directory), expected, "{files}");
            assert_eq!(pages.map(|page| found(directory, page)), before, "{files}");
        }
        // A removed file is no longer found, and a new file is found.
        fs::remove_file(directory.join("f00031.warc.gz")).unwrap();
        assert_eq!(found(directory, "own31"), []);
        archive(2000..2001, directory);
        assert_eq!(found(directory, "own2000").len(), 1);
        forget_catalogues(directory).unwrap();
        assert_eq!(catalogues(directory), [""; 0]);
        assert_eq!(found(directory, "own40").len(), 1);
    }

    /// Rewrites a file's index with another page of its own, and sets the modification time of the old index.
    fn swap_own(directory: &Path, file: usize, page: &str) {
        let index = directory.join(format!("f{file:05}.cdxj"));
        let lines = fs::read_to_string(&index).unwrap();
        let modified = fs::metadata(&index).unwrap().modified().unwrap();
        fs::write(&index, lines.replace(&format!("own{file}"), page)).unwrap();
        let index = File::options().write(true).open(&index).unwrap();
        index.set_modified(modified).unwrap();
    }

    #[test]
    fn indexes_without_the_key_are_not_opened() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..256, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        // The new index cannot be distinguished from the old one without opening it.
        swap_own(directory, 7, "new7");
        assert_eq!(found(directory, "new7"), []);
        assert_eq!(found(directory, "own40").len(), 1);
    }

    #[test]
    fn a_changed_index_is_opened_and_entered_again() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..256, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        // One index has another length, and one has another time.
        swap_own(directory, 7, "longer7");
        swap_own(directory, 8, "new8");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        let index = File::options()
            .write(true)
            .open(directory.join("f00008.cdxj"));
        index.unwrap().set_modified(later).unwrap();
        for page in ["longer7", "new8"] {
            assert_eq!(found(directory, page).len(), 1, "{page}");
        }
        // With 254 more indexes there are enough for a catalogue.
        archive(256..510, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 0);
        for (page, captures) in [("longer7", 1), ("new8", 1), ("own8", 0), ("own9", 1)] {
            assert_eq!(found(directory, page).len(), captures, "{page}");
        }
        let mut last = Catalogue::open(&directory.join(".catalogue-000002")).unwrap();
        assert_eq!(last.find("org,a)/new8").unwrap().len(), 1);
    }

    #[test]
    fn a_catalogue_is_removed_when_all_its_indexes_are_missing_or_changed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..2 * INDEXES, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 2 * INDEXES);
        for file in 1..INDEXES {
            for ending in ["warc.gz", "cdxj"] {
                fs::remove_file(directory.join(format!("f{file:05}.{ending}"))).unwrap();
            }
        }
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 0);
        let both = [".catalogue-000001", ".catalogue-000002"];
        assert_eq!(catalogues(directory), both);
        swap_own(directory, 0, "another0");
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 0);
        assert_eq!(catalogues(directory), both[1..]);
        assert_eq!(found(directory, "another0").len(), 1);
        assert_eq!(found(directory, "own300").len(), 1);
    }

    #[test]
    fn indexes_of_files_that_are_stored_elsewhere_are_in_catalogues() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..2 * INDEXES, directory);
        let file = |file: usize| directory.join(format!("f{file:05}.warc.gz"));
        let moved: Vec<PathBuf> = (0..INDEXES).map(file).collect();
        for file in &moved {
            fs::remove_file(file).unwrap();
        }
        assert_eq!(catalogue(directory, &moved, 1000).unwrap(), 2 * INDEXES);
        // Another job in the directory does not know the moved files, and does not change their catalogue.
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 0);
        let both = [".catalogue-000001", ".catalogue-000002"];
        assert_eq!(catalogues(directory), both);
        let of_moved = |page: &str| {
            let uri = format!("http://a.org/{page}");
            let found = captures(&[directory.to_owned()], &moved, &uri).unwrap();
            found.entries.len()
        };
        assert_eq!((of_moved("own7"), of_moved("own300")), (1, 1));
        // An index that is excluded is not opened.
        swap_own(directory, 7, "new7");
        assert_eq!((of_moved("new7"), of_moved("own8")), (0, 1));
    }

    #[test]
    fn the_index_of_a_missing_file_is_not_used_for_an_open_file_of_its_name() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..256, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        // The file was handed over without its index, and its name is used again.
        fs::remove_file(directory.join("f00005.warc.gz")).unwrap();
        fs::write(directory.join("f00005.warc.gz.open"), "").unwrap();
        let line = "org,a)/new 20260101000000 {\"url\":\"http://a.org/new\",\"offset\":\"3\"}\n";
        fs::write(directory.join("f00005.cdxj.open"), line).unwrap();
        assert_eq!(found(directory, "new").len(), 1);
        assert_eq!(found(directory, "own5"), []);
    }

    #[test]
    fn an_unreadable_index_is_reported_and_others_are_entered() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..520, directory);
        // A folder in place of the index cannot be read.
        for file in [0, 257] {
            let index = directory.join(format!("f{file:05}.cdxj"));
            fs::remove_file(&index).unwrap();
            fs::create_dir(&index).unwrap();
        }
        for _ in 0..2 {
            let problem = catalogue(directory, &[], 256).unwrap_err().to_string();
            assert!(problem.contains("f00000.cdxj"), "{problem}");
        }
        let expected = [".catalogue-000001", ".catalogue-000002"];
        assert_eq!(catalogues(directory), expected);
        let of_last = Catalogue::open(&directory.join(expected[1])).unwrap();
        assert_eq!(of_last.indexes.last().unwrap().file, "f00513.warc.gz");
        // Including the two unreadable ones, 256 indexes are left, which is too few.
        archive(520..768, directory);
        let problem = catalogue(directory, &[], 1000).unwrap_err().to_string();
        assert!(problem.contains("f00000.cdxj"), "{problem}");
        assert_eq!(catalogues(directory), expected);
    }

    #[test]
    fn drafts_of_killed_processes_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let living = File::create(directory.join(".catalogue.draft-living")).unwrap();
        living.lock().unwrap();
        fs::write(directory.join(".catalogue.draft-dead"), "half").unwrap();
        archive(0..256, directory);
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        let expected = [".catalogue-000001", ".catalogue.draft-living"];
        assert_eq!(catalogues(directory), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_catalogue_that_cannot_be_opened_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..264, directory);
        // A symbolic link to itself cannot be opened, but can be removed.
        let itself = directory.join(".catalogue-000001");
        std::os::unix::fs::symlink(&itself, &itself).unwrap();
        let problem = catalogue(directory, &[], 1000).unwrap_err().to_string();
        assert!(problem.contains(".catalogue-000001"), "{problem}");
        assert_eq!(catalogues(directory), [".catalogue-000001"]);
        assert_eq!(found(directory, "own9").len(), 1);
    }

    #[test]
    fn a_damaged_catalogue_is_ignored_and_replaced() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..264, directory);
        catalogue(directory, &[], 1000).unwrap();
        let file = directory.join(".catalogue-000001");
        let whole = fs::read(&file).unwrap();
        for length in [0, 1, 30, whole.len() - 1] {
            fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(found(directory, "own9").len(), 1, "{length}");
        }
        assert_eq!(catalogue(directory, &[], 1000).unwrap(), 256);
        assert_eq!(catalogues(directory), [".catalogue-000002"]);
        let anew = fs::read(directory.join(".catalogue-000002")).unwrap();
        assert_eq!(anew, whole);
    }
}
