//! Repairs files with the suffix `.open` that a killed process left. Complete records are kept, an incomplete last record is cut
//! off, and the file gets its final name. A file that a running writer has locked (by an advisory lock) is not changed.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::cdxj::{self, open_index_path};
use crate::name::{ENDINGS, OPEN_SUFFIX, final_path, is_archive, names};
use crate::reader::{ReadError, Reader};
use crate::record::RecordId;
use crate::write_error::WriteError;
use crate::zst;

/// A repaired file that was found with `.open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedFile {
    /// Its final name; `None` if it had no complete record and was removed.
    pub file: Option<PathBuf>,
    /// Its path before the repair.
    pub found: PathBuf,
    /// Number of complete records that the file keeps, at unchanged offsets.
    pub records: u64,
    /// Number of bytes that were cut off.
    pub cut_bytes: u64,
    /// Complete records after a damaged one (pages that were lost in a power failure). They were moved to a separate file.
    pub rescued: Option<RescuedRecords>,
}

/// Complete records that followed a damaged one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescuedRecords {
    /// The new file, in which the records have other offsets.
    pub file: PathBuf,
    /// Their number.
    pub records: u64,
}

/// The result of reading a file.
#[derive(Default)]
struct Survey {
    records: u64,
    /// End of the last complete record before any damage.
    whole_bytes: u64,
    /// Offset and length of complete records after damage.
    behind: Vec<(u64, u64)>,
}

/// Repairs every abandoned file of a directory, by name.
pub(crate) fn repair(directory: &Path, index: bool) -> Result<Vec<RepairedFile>, WriteError> {
    let listing = |source| WriteError::Directory {
        directory: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(listing)? {
        found.push(entry.map_err(listing)?.path());
    }
    found.sort();
    let mut repaired = Vec::new();
    for path in found.iter().filter(|path| final_path(path).is_some()) {
        repaired.extend(repair_file(path, index)?);
    }
    for index in found.iter().filter(|path| is_abandoned_index(path)) {
        // A leftover index is never read. If it cannot be removed, the next repair tries again.
        let _ = fs::remove_file(index);
    }
    Ok(repaired)
}

/// Returns `true` if this is the index of an open file that no longer exists, because it was finished.
pub fn is_abandoned_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = name.strip_suffix(&format!(".cdxj{OPEN_SUFFIX}")) else {
        return false;
    };
    ENDINGS.iter().all(|ending| {
        let open = path.with_file_name(format!("{stem}{ending}{OPEN_SUFFIX}"));
        // The file is created before its index.
        matches!(open.try_exists(), Ok(false))
    })
}

impl RepairedFile {
    /// The files after the repair.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let rescued = self.rescued.iter().map(|rescued| &rescued.file);
        self.file.iter().chain(rescued)
    }
}

/// Repairs an abandoned file, and writes its index if required. The index is written before the file gets its final name, so that
/// every finished file has an index.
pub(crate) fn repair_file(path: &Path, index: bool) -> Result<Option<RepairedFile>, WriteError> {
    let fault = |source| WriteError::Repair {
        file: path.to_owned(),
        source,
    };
    let Some(target) = final_path(path) else {
        return Ok(None);
    };
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        // The file was finished by its writer, or replaced by another repair, after the directory was listed.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(fault(e)),
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        // On a file system without locks, no process can have locked the file.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    if !path.try_exists().map_err(fault)? {
        return Ok(None);
    }

    let survey = survey(path)?;
    let length = file.metadata().map_err(fault)?.len();
    let rescued = rescue(path, &target, &survey.behind, index)?;
    // The index may list records that were cut off.
    let _ = fs::remove_file(open_index_path(&target));
    let found = path.to_owned();
    let Survey {
        records,
        whole_bytes,
        ..
    } = survey;
    let cut_bytes = length - whole_bytes;
    if records == 0 {
        fs::remove_file(path).map_err(fault)?;
        if !target.try_exists().map_err(fault)? {
            // The index was written when the file was about to be finished, before power was lost.
            let _ = fs::remove_file(cdxj::index_path(&target));
        }
        return Ok(Some(RepairedFile {
            file: None,
            found,
            records,
            cut_bytes,
            rescued,
        }));
    }
    if cut_bytes > 0 {
        file.set_len(whole_bytes).map_err(fault)?;
    }
    file.sync_all().map_err(fault)?;
    let target = free_name(target).map_err(fault)?;
    if index {
        write_index(path, &target)?;
    }
    fs::rename(path, &target).map_err(fault)?;
    sync_directory_of(&target).map_err(fault)?;
    Ok(Some(RepairedFile {
        file: Some(target),
        found,
        records,
        cut_bytes,
        rescued,
    }))
}

/// Writes the index of a file under the name that the file will get.
fn write_index(path: &Path, target: &Path) -> Result<(), WriteError> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let entries = cdxj::index_as(path, &name)?;
    cdxj::write(&cdxj::index_path(target), &entries).map_err(|source| WriteError::Repair {
        file: path.to_owned(),
        source,
    })
}

/// Writes missing indexes of the finished files of a directory, at most `files_max`, the newest files first. Returns the
/// number of indexes written.
///
/// # Errors
/// The directory cannot be read. Or files cannot be read, or indexes cannot be written: the first of these errors is
/// returned, after all other indexes were written.
pub fn complete_indexes(directory: &Path, files_max: usize) -> io::Result<usize> {
    let of = |path: &Path, problem: io::Error| {
        io::Error::new(problem.kind(), format!("{}: {problem}", path.display()))
    };
    let names = match names(directory) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(0),
        names => names.map_err(|problem| of(directory, problem))?,
    };
    let has: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut without = Vec::new();
    for name in names.iter().filter(|name| is_archive(name)) {
        let index = cdxj::index_path(Path::new(name));
        if !index.to_str().is_some_and(|index| has.contains(index)) {
            let path = directory.join(name);
            // A file that was handed over meanwhile needs no index.
            let modified = fs::metadata(&path).and_then(|file| file.modified());
            without.extend(modified.ok().map(|modified| (modified, path)));
        }
    }
    without.sort_by(|one, other| other.cmp(one));
    let (mut written, mut first_problem) = (0, None);
    for (_, path) in without.into_iter().take(files_max) {
        match write_index(&path, &path) {
            Ok(()) => written += 1,
            Err(_) if matches!(path.try_exists(), Ok(false)) => {}
            Err(problem) => {
                let problem = of(&path, io::Error::other(problem));
                first_problem = first_problem.or(Some(problem));
            }
        }
    }
    first_problem.map_or(Ok(written), Err)
}

fn survey(path: &Path) -> Result<Survey, WriteError> {
    let mut survey = Survey::default();
    let mut warcinfos: HashSet<RecordId> = HashSet::new();
    let mut damaged = false;
    let mut reader = Reader::open(path)?;
    loop {
        let result = match reader.next_record() {
            Ok(None) => return Ok(survey),
            Ok(Some(record)) => {
                let headers = record.headers();
                if !damaged && headers.kind() == "warcinfo" {
                    warcinfos.extend(headers.record_id());
                }
                // After damage, a record may be part of an archived WARC file. Records of the damaged file itself are recognised by
                // the warcinfo record that they refer to.
                let named = headers
                    .first("WARC-Warcinfo-ID")
                    .and_then(|id| id.parse().ok());
                let ours = named.is_some_and(|id| warcinfos.contains(&id));
                record.finish().map(|extent| (extent, ours))
            }
            Err(e) => Err(e),
        };
        match result {
            Ok((extent, ours)) if damaged => {
                if ours && !extent.shared {
                    survey.behind.push((extent.offset, extent.length));
                }
            }
            // Our writer puts each record into a member of its own. In files of other writers, the last record of a member ends it.
            Ok((extent, _)) => {
                survey.records += 1;
                survey.whole_bytes = extent.offset + extent.length;
            }
            Err(ReadError::Damaged { .. }) => {
                damaged = true;
                if reader.resync()?.is_none() {
                    return Ok(survey);
                }
            }
            Err(io) => return Err(io.into()),
        }
    }
}

/// Copies records to a separate file, before the damaged file is cut. After an interruption, the next repair repeats it.
fn rescue(
    path: &Path,
    target: &Path,
    records: &[(u64, u64)],
    index: bool,
) -> Result<Option<RescuedRecords>, WriteError> {
    if records.is_empty() {
        return Ok(None);
    }
    let fault = |source| WriteError::Repair {
        file: path.to_owned(),
        source,
    };
    let rescued = path_with_mark(target, "-rescued");
    let mut open = rescued.clone().into_os_string();
    open.push(OPEN_SUFFIX);
    let open = PathBuf::from(open);
    let copy = || -> io::Result<()> {
        let mut from = File::open(path)?;
        let mut to = File::create(&open)?;
        if let Some(dictionary) = zst::read_dictionary(BufReader::new(File::open(path)?))? {
            to.write_all(&zst::dictionary_frame(&dictionary)?)?;
        }
        for &(offset, length) in records {
            from.seek(SeekFrom::Start(offset))?;
            io::copy(&mut (&mut from).take(length), &mut to)?;
        }
        to.sync_all()
    };
    copy().map_err(fault)?;
    if index {
        write_index(&open, &rescued)?;
    }
    fs::rename(&open, &rescued).map_err(fault)?;
    Ok(Some(RescuedRecords {
        file: rescued,
        records: records.len() as u64,
    }))
}

/// Inserts a mark between the name and its ending.
fn path_with_mark(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let at = name.rfind(".warc").or_else(|| name.rfind(".arc"));
    let (stem, ending) = name.split_at(at.unwrap_or(name.len()));
    path.with_file_name(format!("{stem}{mark}{ending}"))
}

/// Returns the path, or an unused one beside it, because a finished file is never replaced.
pub(crate) fn free_name(path: PathBuf) -> io::Result<PathBuf> {
    let mut free = path.clone();
    let mut number = 1_u64;
    while free.try_exists()? {
        free = path_with_mark(&path, &format!("-{number}"));
        number += 1;
    }
    Ok(free)
}

/// Syncs a directory, so that a new name in it survives power loss. Does nothing on systems that cannot open directories.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        #[cfg(unix)]
        Some(directory) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}
