//! Files of a job that were handed over: the record of these files, and the store that takes them. The queue of waiting files is in
//! `host/crawl`; a running crawl and `opilio job handover` share it.

mod failure;
mod folder_store;
mod objects;
mod record;
mod requests;
mod store;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use data_encoding::HEXLOWER;
use opilio_archive::{Algorithm, Hasher};

pub use failure::FileStoreError;
pub use record::{HandedOver, HandoverRecord, Receiver, handed_over};
pub use store::FileStore;

/// Size and checksums of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksums {
    /// Size in bytes.
    pub size: u64,
    /// SHA-1, in hexadecimal.
    pub sha1: String,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Checksums {
    /// Computes the checksums of a file, as `sha1sum` and `sha256sum` write them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(file: &Path) -> io::Result<Checksums> {
        let mut source = File::open(file)?;
        let (mut sha1, mut sha256) = (Hasher::new(Algorithm::Sha1), Hasher::new(Algorithm::Sha256));
        let mut buffer = vec![0; 256 * 1024];
        let mut size = 0;
        loop {
            let got = source.read(&mut buffer)?;
            if got == 0 {
                break;
            }
            size += got as u64;
            sha1.update(&buffer[..got]);
            sha256.update(&buffer[..got]);
        }
        Ok(Checksums {
            size,
            sha1: HEXLOWER.encode(sha1.finish().bytes()),
            sha256: hex(sha256),
        })
    }
}

/// Returns the digest in hexadecimal.
fn hex(hasher: Hasher) -> String {
    HEXLOWER.encode(hasher.finish().bytes())
}

/// Returns the archive files of a job that are in a store and no longer in the job, by name. Programs that read archive files use
/// it to explain missing files.
///
/// # Errors
/// The record cannot be read.
pub fn only_in_store(job: &Path) -> io::Result<Vec<HandedOver>> {
    let mut files = handed_over(job)?;
    files.retain(|file| {
        let path = file.path(job);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        file.url.is_some() && opilio_archive::is_archive(&name) && !path.exists()
    });
    Ok(files)
}

/// Returns the name of a file in the record and the store: its path in the job, or its absolute path.
fn name_in(job: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(job).unwrap_or(file);
    inside.to_string_lossy().into_owned()
}

/// Returns the path of a file in the store, below the job's folder. A file of another disk is stored by the name of its folder.
fn path_in_store(job: &Path, file: &Path) -> PathBuf {
    let is_plain = |path: &Path| {
        path.components()
            .all(|it| matches!(it, Component::Normal(_)))
    };
    if let Some(inside) = file.strip_prefix(job).ok().filter(|path| is_plain(path)) {
        return inside.to_owned();
    }
    let folder = file.parent().and_then(Path::file_name);
    Path::new(folder.unwrap_or_default()).join(file.file_name().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn checksums_match_known_values() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let sums = Checksums::of(file.path()).unwrap();
        assert_eq!(sums.size, 3);
        assert_eq!(sums.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            sums.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_file_of_another_disk_is_stored_by_the_name_of_its_folder() {
        let job = Path::new("/jobs/a");
        for (file, stored) in [
            ("/jobs/a/warcs/x.warc.gz", "warcs/x.warc.gz"),
            ("/disk2/more/x.warc.gz", "more/x.warc.gz"),
            ("/jobs/a/../more/x.warc.gz", "more/x.warc.gz"),
        ] {
            assert_eq!(path_in_store(job, Path::new(file)), Path::new(stored));
        }
    }
}
