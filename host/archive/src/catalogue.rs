//! Which files of an archive directory have captures under a key, so that a look-up opens the indexes of those and not of a
//! hundred thousand.
//!
//! ```text
//! a.cdxj b.cdxj …  ─► .catalogue-0-000001   hashes of keys, sorted, each with the file that has it
//!                     32 of a level ─► one of the next, so there are few however many files there are
//! ```
//! A catalogue says where to look and nothing else. A file in none of them is looked into, as is one that a hash names by chance;
//! where a catalogue is damaged or gone, look-ups take longer. Names of files may be used again and indexes written anew, so a
//! catalogue holds for an index of the length and time that it had when it was entered, and for no other. Whoever takes something
//! out of an index removes the catalogues of its directory ([`forget_catalogues`]), for they have hashes of what was in it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};
use std::slice;

use jiff::Timestamp;
use sha1::{Digest as _, Sha1};
use uuid::Uuid;

use crate::cdxj::{LINE_BYTES_MAX, index_path};
use crate::repair::is_archive;

const PREFIX: &str = ".catalogue-";
const DRAFT_PREFIX: &str = ".catalogue.draft";
const MAGIC: &[u8; 20] = b"opilio catalogue 2\r\n";

/// Indexes that make a catalogue, and catalogues of one level that make one of the next: look-ups read so many of each level
/// at most.
const FAN: usize = 32;

/// Keys of one catalogue's indexes that are held in memory: 48 MB. An index with more makes a catalogue of its own.
const HELD_MAX: usize = 4_000_000;

/// Catalogues that would have more keys together stay as they are: 1.2 GB are written in seconds, ten times as much is not.
const MERGED_MAX: u64 = 100_000_000;

/// The beginning of a hash, and the number of a file, both with the highest byte first: the order of bytes is that of numbers.
type Entry = [u8; 12];
const ENTRY_BYTES: u64 = 12;
const HASH_BYTES: usize = 8;

/// A catalogue of a directory, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    level: u32,
    number: u64,
}

/// An index as it was when it was entered. Shown, it is its line in a catalogue, without the line end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Index {
    /// The name of the archive file.
    file: String,
    length: u64,
    /// When it was last written to, in nanoseconds since 1970.
    modified: i128,
}

/// A catalogue that is being read.
struct Catalogue {
    indexes: Vec<Index>,
    entries: u64,
    /// Where the first entry begins.
    start: u64,
    source: BufReader<File>,
}

/// What the catalogues of a directory know of a key.
#[derive(Debug, Default)]
pub(crate) struct Told {
    known: HashSet<Index>,
    has_key: HashSet<Index>,
}

impl Told {
    /// What the catalogues among these names, which are all of the directory's, have under a key.
    pub(crate) fn of(directory: &Path, names: &[String], key: &str) -> Told {
        let mut told = Told::default();
        for name in names.iter().filter(|name| Name::read(name).is_some()) {
            let found = Catalogue::open(&directory.join(name)).and_then(|mut catalogue| {
                let found = catalogue.find(hash(key))?;
                Ok((catalogue.indexes, found))
            });
            // It has become part of another, or is damaged: what it would have said is found without it.
            if let Ok((indexes, found)) = found {
                let has_key = found.into_iter().filter_map(|at| indexes.get(at as usize));
                told.has_key.extend(has_key.cloned());
                told.known.extend(indexes);
            }
        }
        told
    }

    /// Whether the index of a finished archive file, as it is now, has nothing under the key.
    pub(crate) fn leaves_out(&self, directory: &Path, file: &str) -> bool {
        // Without catalogues nothing need be asked of a hundred thousand files.
        !self.known.is_empty()
            && Index::now(directory, file)
                .is_ok_and(|index| self.known.contains(&index) && !self.has_key.contains(&index))
    }
}

/// Enters finished indexes of a directory that stand in no catalogue as they are now, at most so many, and makes few catalogues
/// of many. Fewer than 32 are left until there are more. Returns how many were entered. Who else does the same at the same time
/// does it for nothing.
///
/// # Errors
/// The directory or a catalogue cannot be read, or the disk is full; what there was stays in force. Or there are indexes that
/// cannot be read: the first is named, and all others were entered.
pub fn catalogue(directory: &Path, files_max: usize) -> io::Result<usize> {
    let names = match names(directory) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(0),
        names => names?,
    };
    remove_abandoned(directory, &names);
    let mut catalogues = Vec::new();
    let mut known = HashSet::new();
    for name in names.iter().filter_map(|name| Name::read(name)) {
        let path = name.path(directory);
        match Catalogue::open(&path) {
            Ok(catalogue) => {
                known.extend(catalogue.indexes);
                catalogues.push(name);
            }
            // Its indexes are entered anew.
            Err(damage) if is_damage(&damage) => remove(&path)?,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            // It may be whole, and can be read when there are fewer open files.
            Err(problem) => return Err(of(&path, problem)),
        }
    }
    let mut unread = Vec::new();
    let current = current(directory, &names, &mut unread);
    let mut new: Vec<&Index> = current.difference(&known).collect();
    new.sort();
    let mut new = new.iter();
    let mut number = catalogues.iter().map(|name| name.number).max().unwrap_or(0);
    let mut entered = 0;
    while new.len() >= FAN && entered + FAN <= files_max {
        number += 1;
        let name = Name { level: 0, number };
        let of_name = enter(directory, &mut new, &name, &mut unread)?;
        if of_name > 0 {
            entered += of_name;
            catalogues.push(name);
        }
    }
    for level in 0.. {
        let mut of_level: Vec<Name> = catalogues
            .iter()
            .filter(|it| it.level == level)
            .cloned()
            .collect();
        if of_level.is_empty() {
            break;
        }
        of_level.sort();
        for some in of_level.chunks_exact(FAN) {
            number += 1;
            let name = Name {
                level: level + 1,
                number,
            };
            if merge(directory, some, &name, &current)? {
                catalogues.push(name);
            }
        }
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

/// Removes the catalogues of a directory, since an index in it is no longer what it was.
///
/// # Errors
/// One of them cannot be removed.
pub fn forget_catalogues(directory: &Path) -> io::Result<()> {
    for name in names(directory)?.iter().filter_map(|name| Name::read(name)) {
        // Where it is gone, the crawl has made a larger one of it, of which the next look knows.
        remove(&name.path(directory))?;
    }
    Ok(())
}

/// All names in a directory.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(directory)?;
    let names = names.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// The indexes of the archive files among these names, as they are now. Those that cannot be asked are `unread`.
fn current(directory: &Path, names: &[String], unread: &mut Vec<io::Error>) -> HashSet<Index> {
    let mut current = HashSet::new();
    // A catalogue has a line for each.
    let has_line = |name: &&String| is_archive(name) && !name.contains(char::is_control);
    for name in names.iter().filter(has_line) {
        match Index::now(directory, name) {
            Ok(index) => {
                current.insert(index);
            }
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            Err(problem) => unread.push(of(&index_path(&directory.join(name)), problem)),
        }
    }
    current
}

/// Makes a catalogue of the next of these indexes that can be read: of 32, or of fewer where they have many keys. How many it
/// has; none is made where there are not enough.
fn enter(
    directory: &Path,
    new: &mut slice::Iter<'_, &Index>,
    name: &Name,
    unread: &mut Vec<io::Error>,
) -> io::Result<usize> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut indexes = Vec::new();
    while indexes.len() < FAN && entries.len() < HELD_MAX {
        let Some(Index { file, .. }) = new.next() else {
            return Ok(0);
        };
        let held = entries.len();
        match read(directory, file, indexes.len() as u32, &mut entries) {
            Ok(index) => indexes.push(index),
            Err(problem) => {
                entries.truncate(held);
                // One that was handed over meanwhile is nobody's concern.
                if problem.kind() != io::ErrorKind::NotFound {
                    unread.push(of(&index_path(&directory.join(file)), problem));
                }
            }
        }
    }
    entries.sort_unstable();
    write(directory, name, &indexes, entries.into_iter().map(Ok))?;
    Ok(indexes.len())
}

/// Adds the keys of a file's index, and says which index it was: where more is written meanwhile, it is another.
fn read(directory: &Path, file: &str, number: u32, entries: &mut Vec<Entry>) -> io::Result<Index> {
    let source = File::open(index_path(&directory.join(file)))?;
    let index = Index::of(file, &source.metadata()?)?;
    keys(BufReader::new(source), |key| {
        let entry = entry(hash(key), number);
        // Keys stand together.
        if entries.last() != Some(&entry) {
            entries.push(entry);
        }
    })?;
    Ok(index)
}

/// Calls with the key of each line.
fn keys(mut index: BufReader<File>, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = index
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if got == 0 {
            return Ok(());
        }
        let key = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        each(&String::from_utf8_lossy(key));
    }
}

/// Makes one catalogue of several and removes those. Indexes that are gone or others now are left out. False where it would
/// become too large, or somebody else has removed one.
fn merge(
    directory: &Path,
    parts: &[Name],
    name: &Name,
    current: &HashSet<Index>,
) -> io::Result<bool> {
    let mut opened = Vec::new();
    for part in parts {
        match Catalogue::open(&part.path(directory)) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(false),
            part => opened.push(part?),
        }
    }
    if opened.iter().map(|part| part.entries).sum::<u64>() > MERGED_MAX {
        return Ok(false);
    }
    let mut indexes: Vec<Index> = Vec::new();
    let mut numbers: Vec<Vec<Option<u32>>> = Vec::new();
    for part in &mut opened {
        let mut of_part = Vec::new();
        for index in std::mem::take(&mut part.indexes) {
            let is_current = current.contains(&index);
            of_part.push(is_current.then_some(indexes.len() as u32));
            indexes.extend(is_current.then_some(index));
        }
        numbers.push(of_part);
        part.source.seek(SeekFrom::Start(part.start))?;
    }
    let mut heads = BinaryHeap::new();
    for (place, part) in opened.iter_mut().enumerate() {
        let next = next_of(part, &numbers[place])?;
        heads.extend(next.map(|entry| Reverse((entry, place))));
    }
    let merged = std::iter::from_fn(|| {
        let Reverse((entry, place)) = heads.pop()?;
        match next_of(&mut opened[place], &numbers[place]) {
            Ok(next) => heads.extend(next.map(|entry| Reverse((entry, place)))),
            Err(problem) => return Some(Err(problem)),
        }
        Some(Ok(entry))
    });
    write(directory, name, &indexes, merged)?;
    for part in parts {
        remove(&part.path(directory))?;
    }
    Ok(true)
}

/// The next entry of a catalogue of an index that is still there, with the number that it has elsewhere.
fn next_of(part: &mut Catalogue, numbers: &[Option<u32>]) -> io::Result<Option<Entry>> {
    while part.entries > 0 {
        part.entries -= 1;
        let mut read = Entry::default();
        part.source.read_exact(&mut read)?;
        if let Some(Some(number)) = numbers.get(number_of(&read) as usize) {
            return Ok(Some(entry(hash_of(&read), *number)));
        }
    }
    Ok(None)
}

/// Writes a catalogue, which is whole or not there.
fn write(
    directory: &Path,
    name: &Name,
    indexes: &[Index],
    entries: impl Iterator<Item = io::Result<Entry>>,
) -> io::Result<()> {
    // Jobs may share a directory: each has drafts of its own.
    let draft = directory.join(format!("{DRAFT_PREFIX}-{}", Uuid::new_v4()));
    let written = File::create_new(&draft).and_then(|out| {
        // Held while it is written: one that nobody holds is abandoned.
        out.lock()?;
        let out = fill(BufWriter::new(out), indexes, entries)?;
        fs::rename(&draft, name.path(directory))?;
        drop(out);
        Ok(())
    });
    if written.is_err() {
        // Whatever is left is taken for abandoned.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Writes what a catalogue consists of to the disk.
fn fill(
    mut out: BufWriter<File>,
    indexes: &[Index],
    entries: impl Iterator<Item = io::Result<Entry>>,
) -> io::Result<File> {
    let lines: String = indexes.iter().map(|index| format!("{index}\n")).collect();
    out.write_all(MAGIC)?;
    // How many entries there are is known at the end.
    out.write_all(&0_u64.to_be_bytes())?;
    out.write_all(&(lines.len() as u64).to_be_bytes())?;
    out.write_all(lines.as_bytes())?;
    let mut count: u64 = 0;
    for entry in entries {
        out.write_all(&entry?)?;
        count += 1;
    }
    let mut out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    out.write_all(&count.to_be_bytes())?;
    out.sync_all()?;
    Ok(out)
}

/// Removes drafts that a process left when it was killed.
fn remove_abandoned(directory: &Path, names: &[String]) {
    for name in names.iter().filter(|name| name.starts_with(DRAFT_PREFIX)) {
        let draft = directory.join(name);
        // Whatever cannot be removed is in nobody's way and tried again.
        let _ = File::open(&draft).map(|held| held.try_lock().map(|()| fs::remove_file(&draft)));
    }
}

/// Removes a catalogue that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|problem| of(path, problem)),
    }
}

impl Index {
    /// The index of an archive file as it is now.
    fn now(directory: &Path, file: &str) -> io::Result<Index> {
        Index::of(file, &fs::metadata(index_path(&directory.join(file)))?)
    }

    fn of(file: &str, metadata: &Metadata) -> io::Result<Index> {
        let modified = Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)?;
        Ok(Index {
            file: file.to_owned(),
            length: metadata.len(),
            modified: modified.as_nanosecond(),
        })
    }

    fn read(line: &str) -> Option<Index> {
        let (length, rest) = line.split_once(' ')?;
        let (modified, file) = rest.split_once(' ')?;
        Some(Index {
            file: file.to_owned(),
            length: length.parse().ok()?,
            modified: modified.parse().ok()?,
        })
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.length, self.modified, self.file)
    }
}

impl Catalogue {
    fn open(path: &Path) -> io::Result<Catalogue> {
        let mut source = BufReader::new(File::open(path)?);
        let length = source.get_ref().metadata()?.len();
        let mut magic = [0; MAGIC.len()];
        source.read_exact(&mut magic)?;
        let mut number = || {
            let mut bytes = [0; 8];
            source
                .read_exact(&mut bytes)
                .map(|()| u64::from_be_bytes(bytes))
        };
        let (entries, lines) = (number()?, number()?);
        let start = (MAGIC.len() as u64 + 16).saturating_add(lines);
        let end = entries
            .checked_mul(ENTRY_BYTES)
            .and_then(|bytes| bytes.checked_add(start));
        if magic != *MAGIC || end != Some(length) {
            return Err(damaged());
        }
        let mut text = String::new();
        source.by_ref().take(lines).read_to_string(&mut text)?;
        let indexes: Option<Vec<Index>> = text.lines().map(Index::read).collect();
        Ok(Catalogue {
            indexes: indexes.ok_or_else(damaged)?,
            entries,
            start,
            source,
        })
    }

    /// The files that have a hash.
    fn find(&mut self, hash: [u8; HASH_BYTES]) -> io::Result<Vec<u32>> {
        // Entries before `low` are smaller, those from `high` on are not.
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle)? < entry(hash, 0) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let mut found = Vec::new();
        while low < self.entries {
            let entry = self.entry(low)?;
            if !entry.starts_with(&hash) {
                break;
            }
            found.push(number_of(&entry));
            low += 1;
        }
        Ok(found)
    }

    fn entry(&mut self, place: u64) -> io::Result<Entry> {
        let mut entry = Entry::default();
        self.source
            .seek(SeekFrom::Start(self.start + place * ENTRY_BYTES))?;
        self.source.read_exact(&mut entry)?;
        Ok(entry)
    }
}

impl Name {
    fn read(name: &str) -> Option<Name> {
        let (level, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Name {
            level: level.parse().ok()?,
            number: number.parse().ok()?,
        })
    }

    fn path(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{PREFIX}{}-{:06}", self.level, self.number))
    }
}

fn hash(key: &str) -> [u8; HASH_BYTES] {
    let digest = Sha1::digest(key);
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&digest[..HASH_BYTES]);
    hash
}

fn entry(hash: [u8; HASH_BYTES], number: u32) -> Entry {
    let mut entry = Entry::default();
    entry[..HASH_BYTES].copy_from_slice(&hash);
    entry[HASH_BYTES..].copy_from_slice(&number.to_be_bytes());
    entry
}

fn hash_of(entry: &Entry) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&entry[..HASH_BYTES]);
    hash
}

fn number_of(entry: &Entry) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&entry[HASH_BYTES..]);
    u32::from_be_bytes(number)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no catalogue, or a damaged one")
}

/// Whether it is what is in a file that cannot be read, and not the file.
fn is_damage(problem: &io::Error) -> bool {
    matches!(
        problem.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

fn of(path: &Path, problem: io::Error) -> io::Error {
    io::Error::new(problem.kind(), format!("{}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::captures;

    /// An archive of so many files, each with the page that all have and one of its own.
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

    /// Where a page is: file and offset of each capture.
    fn found(directory: &Path, page: &str) -> Vec<(String, String)> {
        let uri = format!("http://a.org/{page}");
        let found = captures(&[directory.to_owned()], &uri).unwrap();
        assert!(found.unlisted.is_empty(), "{found:?}");
        let entries = found.entries.into_iter();
        entries
            .map(|it| (it.capture.filename.unwrap(), it.capture.offset.unwrap()))
            .collect()
    }

    #[test]
    fn what_is_found_by_catalogues_is_what_is_found_without() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let pages = ["all", "own0", "own31", "own40", "own1060", "none"];
        let mut done = 0;
        for (files, expected) in [
            (31, &[][..]),
            (75, &[".catalogue-0-000001", ".catalogue-0-000002"]),
            (1061, &[".catalogue-0-000034", ".catalogue-1-000033"]),
        ] {
            archive(done..files, directory);
            done = files;
            let before = pages.map(|page| found(directory, page));
            assert_eq!(before[0].len(), 2 * files);
            while catalogue(directory, 500).unwrap() > 0 {}
            assert_eq!(catalogues(directory), expected, "{files}");
            assert_eq!(pages.map(|page| found(directory, page)), before, "{files}");
        }
        // Files that are handed over are not looked for, and those that come are.
        fs::remove_file(directory.join("f00031.warc.gz")).unwrap();
        assert_eq!(found(directory, "own31"), []);
        archive(2000..2001, directory);
        assert_eq!(found(directory, "own2000").len(), 1);
        forget_catalogues(directory).unwrap();
        assert_eq!(catalogues(directory), [""; 0]);
        assert_eq!(found(directory, "own40").len(), 1);
    }

    /// Writes a file's index anew, with another page for its own, and gives it the time that the old one had.
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
        archive(0..64, directory);
        assert_eq!(catalogue(directory, 1000).unwrap(), 64);
        // Nobody can tell it from what it was before it is opened.
        swap_own(directory, 7, "new7");
        assert_eq!(found(directory, "new7"), []);
        assert_eq!(found(directory, "own40").len(), 1);
    }

    #[test]
    fn an_index_that_is_another_now_is_opened_and_entered_anew() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..64, directory);
        assert_eq!(catalogue(directory, 1000).unwrap(), 64);
        // Of another length, and of another time.
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
        // With 30 more there are enough for a catalogue.
        archive(64..94, directory);
        assert_eq!(catalogue(directory, 1000).unwrap(), 32);
        assert_eq!(catalogue(directory, 1000).unwrap(), 0);
        for (page, captures) in [("longer7", 1), ("new8", 1), ("own8", 0), ("own9", 1)] {
            assert_eq!(found(directory, page).len(), captures, "{page}");
        }
        let number = hash("org,a)/new8");
        let mut last = Catalogue::open(&directory.join(".catalogue-0-000003")).unwrap();
        assert_eq!(last.find(number).unwrap().len(), 1);
    }

    #[test]
    fn what_an_index_had_before_is_in_no_merged_catalogue() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..31 * FAN, directory);
        assert_eq!(catalogue(directory, usize::MAX).unwrap(), 31 * FAN);
        for file in 0..FAN {
            swap_own(directory, file, &format!("another{file}"));
        }
        assert_eq!(catalogue(directory, usize::MAX).unwrap(), FAN);
        assert_eq!(catalogues(directory), [".catalogue-1-000033"]);
        let mut merged = Catalogue::open(&directory.join(".catalogue-1-000033")).unwrap();
        assert_eq!(merged.indexes.len(), 31 * FAN);
        for (page, files) in [
            ("own3", 0),
            ("another3", 1),
            ("own33", 1),
            ("all", 31 * FAN),
        ] {
            let hash = hash(&format!("org,a)/{page}"));
            assert_eq!(merged.find(hash).unwrap().len(), files, "{page}");
            assert!(found(directory, page).len() >= files, "{page}");
        }
    }

    #[test]
    fn the_index_of_a_file_that_is_gone_is_not_that_of_one_being_written() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..32, directory);
        assert_eq!(catalogue(directory, 1000).unwrap(), 32);
        // Handed over without its index, and its name used again.
        fs::remove_file(directory.join("f00005.warc.gz")).unwrap();
        fs::write(directory.join("f00005.warc.gz.open"), "").unwrap();
        let line = "org,a)/new 20260101000000 {\"url\":\"http://a.org/new\",\"offset\":\"3\"}\n";
        fs::write(directory.join("f00005.cdxj.open"), line).unwrap();
        assert_eq!(found(directory, "new").len(), 1);
        assert_eq!(found(directory, "own5"), []);
    }

    #[test]
    fn an_index_that_cannot_be_read_is_told_and_keeps_no_other_out() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..72, directory);
        // A folder in its place cannot be read.
        for file in [0, 33] {
            let index = directory.join(format!("f{file:05}.cdxj"));
            fs::remove_file(&index).unwrap();
            fs::create_dir(&index).unwrap();
        }
        for _ in 0..2 {
            let problem = catalogue(directory, 32).unwrap_err().to_string();
            assert!(problem.contains("f00000.cdxj"), "{problem}");
        }
        let expected = [".catalogue-0-000001", ".catalogue-0-000002"];
        assert_eq!(catalogues(directory), expected);
        let of_last = Catalogue::open(&directory.join(expected[1])).unwrap();
        assert_eq!(of_last.indexes.last().unwrap().file, "f00065.warc.gz");
        // With the two that cannot be read there are 32 left, which is too few.
        archive(72..96, directory);
        let problem = catalogue(directory, 1000).unwrap_err().to_string();
        assert!(problem.contains("f00000.cdxj"), "{problem}");
        assert_eq!(catalogues(directory), expected);
    }

    #[test]
    fn drafts_of_the_dead_are_removed_and_those_of_the_living_are_not() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let living = File::create(directory.join(".catalogue.draft-living")).unwrap();
        living.lock().unwrap();
        fs::write(directory.join(".catalogue.draft-dead"), "half").unwrap();
        archive(0..32, directory);
        assert_eq!(catalogue(directory, 1000).unwrap(), 32);
        let expected = [".catalogue-0-000001", ".catalogue.draft-living"];
        assert_eq!(catalogues(directory), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_catalogue_that_cannot_be_opened_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..40, directory);
        // What leads to itself cannot be opened, and can be removed.
        let itself = directory.join(".catalogue-0-000001");
        std::os::unix::fs::symlink(&itself, &itself).unwrap();
        let problem = catalogue(directory, 1000).unwrap_err().to_string();
        assert!(problem.contains(".catalogue-0-000001"), "{problem}");
        assert_eq!(catalogues(directory), [".catalogue-0-000001"]);
        assert_eq!(found(directory, "own9").len(), 1);
    }

    #[test]
    fn a_damaged_catalogue_costs_time_and_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        archive(0..40, directory);
        catalogue(directory, 1000).unwrap();
        let file = directory.join(".catalogue-0-000001");
        let whole = fs::read(&file).unwrap();
        for length in [0, 19, 30, whole.len() - 1] {
            fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(found(directory, "own9").len(), 1, "{length}");
        }
        assert_eq!(catalogue(directory, 1000).unwrap(), 32);
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
}
