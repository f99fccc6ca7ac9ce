//! Copies of the files that a job's profile names. A node of a shared crawl has them if it has fetched the profile from the
//! cluster: the files themselves are on another machine.
//!
//! ```text
//! JOB/cluster-files.json  the copy of each file, by layer and by the text of the setting
//! JOB/cluster-files/      the copies
//! ```
//! Without the list, the folder has no effect. So a process may fetch the files before the job is made.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_profile::Layer;
use serde::{Deserialize, Serialize};

use crate::text_file::write_text;

/// The list of copies, in the job's directory.
pub const FETCHED_FILES: &str = "cluster-files.json";
/// The folder of copies, in the job's directory.
pub const FETCHED_FOLDER: &str = "cluster-files";

/// The copies of a job: names of files in its folder, by the texts of settings. The first item is for the profile itself, the
/// others are for the profiles that it extends, in their order. Empty if the job's profile was made on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFiles(Vec<BTreeMap<String, String>>);

impl FetchedFiles {
    /// Creates the list of copies with these names: first those of the profile itself, then those of the profiles that it extends.
    #[must_use]
    pub fn new(layers: Vec<BTreeMap<String, String>>) -> FetchedFiles {
        FetchedFiles(layers)
    }

    /// Reads the list of a job. It is empty if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(job: &Path) -> io::Result<FetchedFiles> {
        match fs::read(job.join(FETCHED_FILES)) {
            Ok(json) => serde_json::from_slice(&json).map_err(io::Error::other),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                Ok(FetchedFiles::default())
            }
            Err(problem) => Err(problem),
        }
    }

    /// Writes the list into a job. Without copies, the job has no list afterwards.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        let path = job.join(FETCHED_FILES);
        if self.0.iter().all(BTreeMap::is_empty) {
            return match fs::remove_file(path) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(problem),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(self)?;
        write_text(&path, format!("{text}\n"))
    }

    /// Sets the copies in the folder of a job in these layers: the profile itself, and the profiles that it extends.
    ///
    /// # Errors
    /// The current folder is unknown, and the job's path is relative.
    pub fn apply(&self, job: &Path, own: &mut Layer, below: &mut [Layer]) -> io::Result<()> {
        // The profile's relative paths are resolved against another folder, so absolute paths are used.
        let folder = std::path::absolute(job.join(FETCHED_FOLDER))?;
        let layers = std::iter::once(own).chain(below);
        for (layer, names) in layers.zip(&self.0) {
            let inside = names.iter().filter(|(_, name)| is_plain(name));
            let copies = inside.map(|(written, name)| (written.clone(), folder.join(name)));
            layer.files = copies.collect::<BTreeMap<String, PathBuf>>();
        }
        Ok(())
    }
}

/// Returns `true` for a name that does not lead out of the folder.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer() -> Layer {
        Layer {
            file: "p.toml".to_owned(),
            text: String::new(),
            base: PathBuf::from("/base"),
            files: BTreeMap::new(),
        }
    }

    #[test]
    fn copies_are_listed_by_layer_and_their_names_stay_in_the_folder() {
        let job = tempfile::tempdir().unwrap();
        let names = |names: &[(&str, &str)]| {
            let names = names.iter();
            let names = names.map(|(written, name)| ((*written).to_owned(), (*name).to_owned()));
            names.collect::<BTreeMap<_, _>>()
        };
        let layers = vec![
            names(&[("rows.txt", "1.txt"), ("secret", "../secret")]),
            names(&[("rows.txt", "2.txt")]),
        ];
        let files = FetchedFiles::new(layers);
        files.write(job.path()).unwrap();
        let read = FetchedFiles::read(job.path()).unwrap();
        assert_eq!(read, files);
        let (mut own, mut below) = (layer(), [layer(), layer()]);
        read.apply(job.path(), &mut own, &mut below).unwrap();
        let copy = |name: &str| {
            let path = job.path().join(FETCHED_FOLDER).join(name);
            BTreeMap::from([("rows.txt".to_owned(), path)])
        };
        assert_eq!(own.files, copy("1.txt"));
        assert_eq!(below[0].files, copy("2.txt"));
        assert!(below[1].files.is_empty());

        FetchedFiles::default().write(job.path()).unwrap();
        assert_eq!(
            FetchedFiles::read(job.path()).unwrap(),
            FetchedFiles::default()
        );
        assert!(!job.path().join(FETCHED_FILES).exists());
    }
}
