//! What a job goes back to, on its way to its place. It is put together beside what the job knows, and then takes its place
//! part by part; where that is cut short, whoever opens the job next carries on, so nobody sees half of each.
//!
//! ```text
//! JOB/restoring.new/  grows, and counts for nothing; also what is done with and on its way out
//! JOB/restoring/      whole: from here on the job is what stands in it
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::io_error;
use super::lock::lock;
use super::{ADDED_SEEDS, JobError, REDIRECTED_SEEDS, REMOVED_SEEDS, write_text};
use crate::places::stays_inside;
use crate::{components, course, history, settings};

const GROWING: &str = "restoring.new";
const WHOLE: &str = "restoring";

/// Folders that take the places of the job's.
pub(crate) const FOLDERS: [&str; 3] = ["state", settings::CHANGES, components::COMPONENTS];

/// Files that do; one that is missing is removed in the job, too.
const FILES: [&str; 9] = [
    "profile.toml",
    "seeds.txt",
    REDIRECTED_SEEDS,
    REMOVED_SEEDS,
    ADDED_SEEDS,
    settings::LAYERS,
    history::FILE,
    components::LIST,
    course::FILE,
];

/// An empty folder for what the job is to go back to. For whoever holds the job.
pub(crate) fn begin_restoring(job: &Path) -> io::Result<PathBuf> {
    let growing = job.join(GROWING);
    remove(&growing)?;
    fs::create_dir(&growing)?;
    Ok(growing)
}

/// Nothing comes of it.
pub(crate) fn discard_restoring(job: &Path) -> io::Result<()> {
    remove(&job.join(GROWING))
}

/// It is whole, and takes the place of what the job knows. For whoever holds the job.
///
/// # Errors
/// Where that cannot be begun nothing was changed; where it was, [`settle`] carries on.
pub(crate) fn put_in_place(job: &Path) -> Result<(), JobError> {
    let growing = job.join(GROWING);
    fs::rename(&growing, job.join(WHOLE)).map_err(|source| io_error(&growing, source))?;
    sync(job)?;
    settle(job)
}

/// Carries on with what was cut short, if anything was. For whoever holds the job.
pub(crate) fn settle(job: &Path) -> Result<(), JobError> {
    let (growing, whole) = (job.join(GROWING), job.join(WHOLE));
    if is_there(&whole) {
        for part in FOLDERS.iter().chain(&FILES) {
            stays_inside(job, &whole.join(part)).map_err(JobError::Link)?;
        }
        for folder in FOLDERS {
            let (from, to) = (whole.join(folder), job.join(folder));
            // One that is not there has taken its place already.
            if is_there(&from) {
                remove(&to)
                    .and_then(|()| fs::rename(&from, &to))
                    .map_err(|source| io_error(&to, source))?;
            }
        }
        for file in FILES {
            let to = job.join(file);
            // Copied, not moved: after a crash all of them are put there again.
            let put = match fs::read(whole.join(file)) {
                Ok(text) => write_text(&to, text),
                Err(missing) if missing.kind() == io::ErrorKind::NotFound => remove_file(&to),
                Err(problem) => Err(problem),
            };
            put.map_err(|source| io_error(&to, source))?;
        }
        sync(job)?;
        remove(&growing)
            .and_then(|()| fs::rename(&whole, &growing))
            .map_err(|source| io_error(&whole, source))?;
    }
    remove(&growing).map_err(|source| io_error(&growing, source))
}

/// The same for whoever reads a job before opening it.
pub(crate) fn settle_unheld(job: &Path) -> Result<(), JobError> {
    if !is_there(&job.join(WHOLE)) {
        return Ok(());
    }
    let _held = lock(job)?;
    settle(job)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(problem),
        _ => Ok(()),
    }
}

fn remove_file(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(problem),
        _ => Ok(()),
    }
}

/// Names in a folder are on the disk when this returns, where the system has such a thing.
fn sync(folder: &Path) -> Result<(), JobError> {
    match cfg!(unix) {
        true => File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| io_error(folder, source)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// A job of which all parts say `before`, and what it goes back to, of which they say `then`; that has no added seeds.
    fn whole(job: &Path) {
        let growing = begin_restoring(job).unwrap();
        for (at, says) in [(job, "before"), (&*growing, "then")] {
            for folder in FOLDERS {
                fs::create_dir_all(at.join(folder)).unwrap();
                fs::write(at.join(folder).join(says), says).unwrap();
            }
            for file in FILES {
                fs::write(at.join(file), says).unwrap();
            }
        }
        fs::remove_file(growing.join(ADDED_SEEDS)).unwrap();
    }

    #[track_caller]
    fn check(job: &Path, says: &str) {
        for folder in FOLDERS {
            let entries = fs::read_dir(job.join(folder)).unwrap();
            let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, [says], "{folder}");
        }
        for file in FILES {
            match (file, says) {
                (ADDED_SEEDS, "then") => assert!(!job.join(file).exists()),
                _ => assert_eq!(fs::read_to_string(job.join(file)).unwrap(), says, "{file}"),
            }
        }
        assert!(!job.join(GROWING).exists() && !job.join(WHOLE).exists());
    }

    #[test]
    fn what_is_not_whole_counts_for_nothing() {
        let job = tempfile::tempdir().unwrap();
        whole(job.path());
        settle_unheld(job.path()).unwrap();
        settle(job.path()).unwrap();
        check(job.path(), "before");
    }

    #[test]
    fn what_is_whole_takes_its_place_wherever_that_was_cut_short() {
        // Each is a crash: so many parts have taken their places, the next one's has been cleared.
        for crash in 0..=FOLDERS.len() {
            let home = tempfile::tempdir().unwrap();
            let job = home.path();
            whole(job);
            fs::rename(job.join(GROWING), job.join(WHOLE)).unwrap();
            for folder in &FOLDERS[..crash] {
                fs::remove_dir_all(job.join(folder)).unwrap();
                fs::rename(job.join(WHOLE).join(folder), job.join(folder)).unwrap();
            }
            if let Some(folder) = FOLDERS.get(crash) {
                fs::remove_dir_all(job.join(folder)).unwrap();
            }
            fs::remove_file(job.join(FILES[crash])).unwrap();
            settle_unheld(job).unwrap();
            settle(job).unwrap();
            check(job, "then");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_leads_elsewhere_takes_no_place() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("job");
        fs::create_dir(&job).unwrap();
        whole(&job);
        fs::rename(job.join(GROWING), job.join(WHOLE)).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        let seeds = job.join(WHOLE).join("seeds.txt");
        fs::remove_file(&seeds).unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), seeds).unwrap();
        assert!(matches!(settle(&job), Err(JobError::Link(_))));
        let text = fs::read_to_string(job.join("seeds.txt")).unwrap();
        assert_eq!(text, "before");
    }
}
