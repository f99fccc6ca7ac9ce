//! Symbolic links that lead out of a job's folder, which are refused.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_stacks::components;
use opilio_stacks::known_stacks;

use crate::changes::{
    ADDED_SEEDS, CHANGES, LAYERS, REDIRECTED_SEEDS, REMOVED_SEEDS, SHARED_COMMANDS,
};
use crate::fetched_files::{FETCHED_FILES, FETCHED_FOLDER};
use crate::history;

/// Files that are read in a job's own folder, and quoted if they have errors. Other files there are never read.
const OWN_FILES: [&str; 12] = [
    "job.json",
    "profile.toml",
    "seeds.txt",
    ADDED_SEEDS,
    REMOVED_SEEDS,
    REDIRECTED_SEEDS,
    LAYERS,
    history::FILE,
    components::LIST,
    known_stacks::FILE,
    SHARED_COMMANDS,
    FETCHED_FILES,
];

/// Refuses a path in a folder of a job or of its archive files that leads out of the folder by a link. Otherwise a user with
/// write access there could expose files that others must not read. Paths outside the folder are allowed, since the profile names
/// them. Missing paths are allowed, too.
///
/// # Errors
/// Fails if the path leads out, or if the folder cannot be read.
pub fn stays_inside(folder: &Path, path: &Path) -> io::Result<()> {
    if !path.starts_with(folder) {
        return Ok(());
    }
    let real = match path.canonicalize() {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(problem) => {
            let message = format!("cannot follow {}: {problem}", path.display());
            return Err(io::Error::new(problem.kind(), message));
        }
        Ok(real) => real,
    };
    if real.starts_with(folder.canonicalize()?) {
        return Ok(());
    }
    let problem = LeadsOut {
        path: path.to_owned(),
        folder: folder.to_owned(),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

/// A path that [`stays_inside`] refuses.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is a link out of {}, which is not followed; move its target there, or create a new job whose profile names the folder",
    path.display(), folder.display()
)]
struct LeadsOut {
    path: PathBuf,
    folder: PathBuf,
}

/// Returns `true` for an error of [`stays_inside`].
pub fn leads_out(problem: &io::Error) -> bool {
    let inner = problem.get_ref();
    inner.is_some_and(|inner| inner.is::<LeadsOut>())
}

/// Applies [`stays_inside`] to all files that are read in a job's own folder, including changes of its settings: errors quote
/// these files. Folders of logs, reports and archive files are checked by the code that shows their content.
///
/// # Errors
/// Fails if a file leads out, or if the folder cannot be read.
pub fn files_stay_inside(job: &Path) -> io::Result<()> {
    for file in OWN_FILES {
        stays_inside(job, &job.join(file))?;
    }
    let changes = job.join(CHANGES);
    stays_inside(job, &changes)?;
    let entries = match fs::read_dir(&changes) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        stays_inside(job, &entry?.path())?;
    }
    Ok(())
}

/// Applies [`files_stay_inside`], and checks the kept plugins of a job and its copies of files: together they are the files that a
/// copy of the job contains.
///
/// # Errors
/// Fails if a file leads out, or if the folder cannot be read.
pub fn copies_stay_inside(job: &Path) -> io::Result<()> {
    files_stay_inside(job)?;
    for folder in [components::COMPONENTS, FETCHED_FOLDER] {
        let folder = job.join(folder);
        stays_inside(job, &folder)?;
        let entries = match fs::read_dir(&folder) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            stays_inside(job, &entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_within_a_folder_are_followed_and_those_that_lead_out_are_not() {
        let home = tempfile::tempdir().unwrap();
        let (job, other) = (home.path().join("job"), home.path().join("job-other"));
        for folder in [&job, &other] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(other.join("a.log"), "").unwrap();
        fs::create_dir(job.join("logs")).unwrap();
        fs::write(job.join("logs/a.log"), "").unwrap();
        symlink("logs", job.join("more")).unwrap();
        symlink(&other, job.join("out")).unwrap();
        symlink("../../job-other/a.log", job.join("logs/b.log")).unwrap();
        for (path, expected) in [
            ("logs/a.log", true),
            ("more/a.log", true),
            ("missing", true),
            ("out", false),
            ("out/a.log", false),
            ("logs/b.log", false),
            ("../job-other", false),
        ] {
            let answer = stays_inside(&job, &job.join(path));
            assert_eq!(answer.is_ok(), expected, "{path}: {answer:?}");
        }
        // The profile names this folder.
        stays_inside(&job, &other).unwrap();

        fs::write(job.join("seeds.txt"), "").unwrap();
        symlink("seeds.txt", job.join("added-seeds.txt")).unwrap();
        // This file is never read.
        symlink(other.join("a.log"), job.join("README")).unwrap();
        files_stay_inside(&job).unwrap();
        let file = other.join("a.log");
        for (link, to) in [
            ("profile.toml", &file),
            ("changes", &other),
            ("changes/000001.toml", &file),
        ] {
            let link = job.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(to, &link).unwrap();
            assert!(files_stay_inside(&job).is_err(), "{link:?}");
            fs::remove_file(link).unwrap();
        }
    }
}
