//! A folder of components, each in a file named by its SHA-256. The store has one, and so has every job. A job keeps the components
//! with which it was created, even if the store, the registry or the author's file changes.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::sha256::Sha256;

/// Largest component, in bytes: the maximum of the sandbox. Python components are the largest known, with 18 MB.
pub const COMPONENT_BYTES_MAX: u64 = 64 << 20;

/// Prefix of files that are being written. They are renamed when they are complete.
const PARTIAL: &str = ".partial-";
/// Extension of the files, after the digest.
const EXTENSION: &str = "wasm";

/// A folder of components by SHA-256. Any number of processes may use it at once: files are written under another name, then
/// renamed, and never changed.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

/// An error in reading or writing a component of a folder.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The file system reports an error.
    #[error("cannot {what} {path}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        problem: io::Error,
    },
    /// The file does not have the digest in its name.
    #[error("{path} is damaged: its sha256 is {found}; remove it, and it is downloaded again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The digest of its content.
        found: Sha256,
    },
}

impl Blobs {
    /// The components in this folder, which need not exist yet.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Path of the component with this digest, whether or not it exists.
    #[must_use]
    pub fn path(&self, sha256: Sha256) -> PathBuf {
        self.folder.join(format!("{sha256}.{EXTENSION}"))
    }

    /// Returns the component with this digest; `None` if the file does not exist. The digest is verified.
    ///
    /// # Errors
    /// The file cannot be read, or has another digest than its name.
    pub fn get(&self, sha256: Sha256) -> Result<Option<Vec<u8>>, BlobError> {
        let path = self.path(sha256);
        let bytes = match read_bounded(&path) {
            Ok(bytes) => bytes,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(refused("read", &path)(problem)),
        };
        match Sha256::of(&bytes) {
            found if found == sha256 => Ok(Some(bytes)),
            found => Err(BlobError::Damaged { path, found }),
        }
    }

    /// Writes a component, unless an intact one exists. It is on disk when this returns.
    ///
    /// # Errors
    /// The component cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Sha256, BlobError> {
        let sha256 = Sha256::of(bytes);
        if matches!(self.get(sha256), Ok(Some(_))) {
            return Ok(sha256);
        }
        fs::create_dir_all(&self.folder).map_err(refused("create", &self.folder))?;
        write_whole(&self.path(sha256), bytes)?;
        Ok(sha256)
    }

    /// All components by digest, with their sizes.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn all(&self) -> Result<Vec<(Sha256, u64)>, BlobError> {
        let mut all = Vec::new();
        for entry in self.entries()? {
            let path = entry.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let is_wasm = path.extension().is_some_and(|found| found == EXTENSION);
            if let (true, Some(Ok(sha256))) = (is_wasm, stem.map(str::parse)) {
                let length = entry.metadata().map_err(refused("look at", &path))?.len();
                all.push((sha256, length));
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Removes a component, if it exists.
    pub(crate) fn remove(&self, sha256: Sha256) -> Result<(), BlobError> {
        let path = self.path(sha256);
        match fs::remove_file(&path) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                Err(refused("remove", &path)(problem))
            }
            _ => Ok(()),
        }
    }

    /// Files that are incomplete, or are being written now.
    pub(crate) fn partial(&self) -> Result<Vec<PathBuf>, BlobError> {
        let is_partial = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(PARTIAL))
        };
        let entries = self.entries()?;
        let partial = entries.iter().filter(|entry| is_partial(entry));
        Ok(partial.map(fs::DirEntry::path).collect())
    }

    fn entries(&self) -> Result<Vec<fs::DirEntry>, BlobError> {
        match fs::read_dir(&self.folder) {
            Ok(entries) => entries
                .collect::<Result<_, _>>()
                .map_err(refused("read", &self.folder)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(problem) => Err(refused("read", &self.folder)(problem)),
        }
    }
}

/// Writes a file atomically: a reader finds either the complete new file or the old one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BlobError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(PARTIAL)
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|problem| problem.error)?;
        // Make the name survive power loss, too.
        fs::File::open(folder)?.sync_all()
    };
    written().map_err(refused("write", path))
}

/// Reads a whole file that is at most as large as a component.
pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= COMPONENT_BYTES_MAX {
        // A file that grows meanwhile, or a device without a length, is cut one byte past the limit.
        file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    let length = length.max(bytes.len() as u64);
    if length > COMPONENT_BYTES_MAX {
        let problem = format!(
            "it has {length} bytes; components may have {COMPONENT_BYTES_MAX}: name the .wasm file that `opilio plugin build` \
             makes, or build a smaller one (in Rust: opt-level = \"s\", strip)"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

fn refused(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    let path = path.to_owned();
    move |problem| BlobError::Io {
        what,
        path,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stored_components_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::at(folder.path().join("components"));
        assert!(blobs.get(Sha256::of(b"a")).unwrap().is_none());
        let sha256 = blobs.put(b"a").unwrap();
        assert_eq!(blobs.put(b"a").unwrap(), sha256);
        assert_eq!(blobs.get(sha256).unwrap().unwrap(), b"a");
        assert_eq!(blobs.all().unwrap(), [(sha256, 1)]);
        assert_eq!(blobs.partial().unwrap(), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_damaged_component_is_reported_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::at(folder.path());
        let sha256 = blobs.put(b"a component").unwrap();
        fs::write(blobs.path(sha256), b"a compon").unwrap();
        let problem = blobs.get(sha256).unwrap_err();
        assert!(matches!(problem, BlobError::Damaged { .. }), "{problem}");
        blobs.put(b"a component").unwrap();
        assert_eq!(blobs.get(sha256).unwrap().unwrap(), b"a component");
    }

    #[test]
    fn a_file_past_the_limit_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.wasm");
        let file = fs::File::create(&path).unwrap();
        file.set_len(COMPONENT_BYTES_MAX + 1).unwrap();
        let problem = read_bounded(&path).unwrap_err().to_string();
        assert!(
            problem.contains("components may have 67108864"),
            "{problem}"
        );
        let endless = read_bounded(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
    }
}
