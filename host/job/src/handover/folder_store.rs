//! A folder as a store, such as a mounted share. A copy appears under its name when it is complete and on disk.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::Checksums;
use super::failure::{FileStoreError, unreadable};

/// Folder that takes copies of files.
#[derive(Clone)]
pub(super) struct FolderStore {
    folder: PathBuf,
}

/// Copy in the store.
pub(super) struct Stored {
    pub(super) size: u64,
    /// SHA-256; `None` if the metadata of an object do not have it.
    pub(super) digest: Option<String>,
}

impl Stored {
    pub(super) fn is_copy_of(&self, sums: &Checksums) -> bool {
        self.size == sums.size && self.digest.as_ref() == Some(&sums.sha256)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, ", self.size)?;
        match &self.digest {
            Some(digest) => write!(f, "SHA-256 {digest}"),
            None => f.write_str("without a SHA-256"),
        }
    }
}

impl FolderStore {
    pub(super) fn new(folder: &Path) -> FolderStore {
        FolderStore {
            folder: folder.to_owned(),
        }
    }

    /// Copies a file to a path in the folder, and forces the copy to disk.
    pub(super) async fn copy(&self, file: &Path, path: &Path) -> Result<(), FileStoreError> {
        let (store, file, path) = (self.clone(), file.to_owned(), path.to_owned());
        let copied = tokio::task::spawn_blocking(move || store.copy_now(&file, &path)).await;
        copied.map_err(|panic| FileStoreError::Store(panic.to_string()))?
    }

    /// Reads the copy at a path, if there is one, and computes its digest.
    pub(super) async fn read(&self, path: &Path) -> Result<Option<Stored>, FileStoreError> {
        self.ensure_folder()?;
        let copy = self.folder.join(path);
        let read = tokio::task::spawn_blocking(move || match Checksums::of(&copy) {
            Ok(sums) => Ok(Some(Stored {
                size: sums.size,
                digest: Some(sums.sha256),
            })),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FileStoreError::Folder { file: copy, source }),
        });
        let read = read.await;
        read.map_err(|panic| FileStoreError::Store(panic.to_string()))?
    }

    /// Returns the place of a path in the folder.
    pub(super) fn place_of(&self, path: &Path) -> Result<PathBuf, FileStoreError> {
        self.ensure_folder()?;
        Ok(self.folder.join(path))
    }

    /// The folder itself is not created: the share may not be mounted.
    fn ensure_folder(&self) -> Result<(), FileStoreError> {
        match self.folder.is_dir() {
            true => Ok(()),
            false => Err(FileStoreError::NoFolder(self.folder.clone())),
        }
    }

    fn copy_now(&self, file: &Path, path: &Path) -> Result<(), FileStoreError> {
        self.ensure_folder()?;
        let copy = self.folder.join(path);
        let source = File::open(file).map_err(|source| unreadable(file, source))?;
        let copied = copy_to_disk(source, &copy);
        copied.map_err(|source| FileStoreError::Folder { file: copy, source })
    }
}

/// Writes a copy under a temporary name in the same folder, forces it to disk, and renames it.
fn copy_to_disk(source: File, copy: &Path) -> io::Result<()> {
    let folder = copy.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut name = copy.file_name().unwrap_or_default().to_owned();
    name.push(".draft");
    let draft = folder.join(name);
    let mut target = File::create(&draft)?;
    io::copy(&mut BufReader::new(source), &mut target)?;
    target.sync_all()?;
    fs::rename(&draft, copy)?;
    // The name is on disk, too.
    File::open(folder)?.sync_all()
}
