//! Installation of an earlier state of a job. The state is assembled next to the job's files and then replaces them part by part.
//! If the replacement is interrupted, the next process that opens the job completes it, so that no process reads a mixture of both
//! states.
//!
//! ```text
//! JOB/restoring.new/  being assembled, without effect; also a finished state that is being removed
//! JOB/restoring/      complete: from here on it is the state of the job
//! ```
//! A new job is made from a checkpoint in the same folder. It has no `job.json` until everything else is in place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::lock::lock;
use super::{ADDED_SEEDS, JobError, REDIRECTED_SEEDS, REMOVED_SEEDS, SHARED, names};
use crate::fetched_files::{FETCHED_FILES, FETCHED_FOLDER};
use crate::symlinks::stays_inside;
use crate::text_file::write_text;
use opilio_stacks::components;

use crate::{changes, history, process_record};
use opilio_stacks::known_stacks;

const GROWING: &str = "restoring.new";
const WHOLE: &str = "restoring";
const LOCK: &str = "lock";
/// The file without which a directory is not a job.
const DESCRIPTION: &str = "job.json";

/// Folders that replace the job's.
pub const FOLDERS: [&str; 3] = ["state", changes::CHANGES, components::COMPONENTS];

/// Files that replace the job's. A missing one is removed from the job, too.
const FILES: [&str; 11] = [
    "profile.toml",
    "seeds.txt",
    REDIRECTED_SEEDS,
    REMOVED_SEEDS,
    ADDED_SEEDS,
    changes::LAYERS,
    FETCHED_FILES,
    history::FILE,
    components::LIST,
    process_record::FILE,
    changes::SHARED_COMMANDS,
];

/// Creates an empty folder for the state to restore. The caller must hold the job.
pub fn begin_restoring(job: &Path) -> io::Result<PathBuf> {
    let growing = job.join(GROWING);
    remove(&growing)?;
    fs::create_dir(&growing)?;
    Ok(growing)
}

/// Discards the folder.
pub fn discard_restoring(job: &Path) -> io::Result<()> {
    remove(&job.join(GROWING))
}

/// Makes a new job in `job`, a new or empty directory. `fill` receives a folder and puts the files of the job into it. After an
/// interrupted attempt, the job is made from the beginning.
///
/// # Errors
/// Returns [`JobError::NotEmpty`] if the directory contains anything else; nothing was changed then. Returns the errors of
/// `fill`.
pub fn make_restored<E: From<JobError>>(
    job: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| JobError::io(&path, source)
    };
    refuse_full(job)?;
    fs::create_dir_all(job).map_err(at(job))?;
    let _held = lock(job)?;
    refuse_full(job)?;
    for name in names(job)? {
        let path = job.join(&name);
        match path.is_dir() {
            _ if name == LOCK || name == GROWING || name == FETCHED_FOLDER => {}
            true => remove(&path).map_err(at(&path))?,
            false => remove_file(&path).map_err(at(&path))?,
        }
    }
    let growing = begin_restoring(job).map_err(at(job))?;
    fill(&growing)?;
    let (last, first): (Vec<_>, Vec<_>) = names(&growing)?
        .into_iter()
        .partition(|name| name == DESCRIPTION);
    for name in first.iter().chain(&last) {
        if name == DESCRIPTION {
            sync(job)?;
        }
        let to = job.join(name);
        if name == FETCHED_FOLDER {
            // The new attempt writes all of them.
            remove(&to).map_err(at(&to))?;
        }
        fs::rename(growing.join(name), &to).map_err(at(&to))?;
    }
    sync(job)?;
    Ok(remove(&growing).map_err(at(&growing))?)
}

/// Refuses a directory unless it is empty or has only leftovers of an attempt to make a job from a checkpoint. Such a directory has
/// the folder `restoring.new` until it has `job.json`.
fn refuse_full(job: &Path) -> Result<(), JobError> {
    let all = names(job)?;
    let has = |name: &str| all.iter().any(|it| it == name);
    let is_ours = |name: &OsString| {
        let parts = FOLDERS.iter().chain(&FILES);
        let mut ours = parts.chain(&[LOCK, GROWING, SHARED, FETCHED_FOLDER, known_stacks::FILE]);
        ours.any(|ours| *ours == *name)
    };
    let is_cut_short = !has(DESCRIPTION) && has(GROWING) && all.iter().all(is_ours);
    // Files of the cluster are fetched before the job is made.
    let is_empty = all
        .iter()
        .all(|name| name == LOCK || name == FETCHED_FOLDER);
    match is_empty || is_cut_short {
        true => Ok(()),
        false => Err(JobError::NotEmpty {
            directory: job.display().to_string(),
        }),
    }
}

/// Puts the complete state in the place of the job's own. The caller must hold the job.
///
/// # Errors
/// If the replacement could not begin, nothing was changed. Otherwise [`complete_restore`] completes it.
pub fn put_in_place(job: &Path) -> Result<(), JobError> {
    let growing = job.join(GROWING);
    fs::rename(&growing, job.join(WHOLE)).map_err(|source| JobError::io(&growing, source))?;
    sync(job)?;
    complete_restore(job)
}

/// Completes an interrupted replacement, if there is one. The caller must hold the job.
pub fn complete_restore(job: &Path) -> Result<(), JobError> {
    let (growing, whole) = (job.join(GROWING), job.join(WHOLE));
    if is_there(&whole) {
        for part in FOLDERS.iter().chain(&FILES) {
            stays_inside(job, &whole.join(part)).map_err(JobError::Link)?;
        }
        for folder in FOLDERS {
            let (from, to) = (whole.join(folder), job.join(folder));
            // A missing part is already in its place.
            if is_there(&from) {
                remove(&to)
                    .and_then(|()| fs::rename(&from, &to))
                    .map_err(|source| JobError::io(&to, source))?;
            }
        }
        for file in FILES {
            let to = job.join(file);
            // Files are copied, not moved: after a crash all of them are put there again.
            let put = match fs::read(whole.join(file)) {
                Ok(text) => write_text(&to, text),
                Err(missing) if missing.kind() == io::ErrorKind::NotFound => remove_file(&to),
                Err(problem) => Err(problem),
            };
            put.map_err(|source| JobError::io(&to, source))?;
        }
        sync(job)?;
        remove(&growing)
            .and_then(|()| fs::rename(&whole, &growing))
            .map_err(|source| JobError::io(&whole, source))?;
    }
    remove(&growing).map_err(|source| JobError::io(&growing, source))
}

/// Completes an interrupted replacement for a process that reads a job before it opens it.
pub fn complete_restore_unheld(job: &Path) -> Result<(), JobError> {
    if !is_there(&job.join(WHOLE)) {
        return Ok(());
    }
    let _held = lock(job)?;
    complete_restore(job)
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

/// Syncs the names in a folder to disk, if the system supports that.
fn sync(folder: &Path) -> Result<(), JobError> {
    match cfg!(unix) {
        true => File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| JobError::io(folder, source)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a job whose parts all contain `before`, and a state to restore, whose parts all contain `then`. The job has no added
    /// seeds.
    fn make_job_with_new_state(job: &Path) {
        let growing = begin_restoring(job).unwrap();
        for (at, content) in [(job, "before"), (&*growing, "then")] {
            for folder in FOLDERS {
                fs::create_dir_all(at.join(folder)).unwrap();
                fs::write(at.join(folder).join(content), content).unwrap();
            }
            for file in FILES {
                fs::write(at.join(file), content).unwrap();
            }
        }
        fs::remove_file(growing.join(ADDED_SEEDS)).unwrap();
    }

    #[track_caller]
    fn check(job: &Path, content: &str) {
        for folder in FOLDERS {
            let entries = fs::read_dir(job.join(folder)).unwrap();
            let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, [content], "{folder}");
        }
        for file in FILES {
            match (file, content) {
                (ADDED_SEEDS, "then") => assert!(!job.join(file).exists()),
                _ => assert_eq!(
                    fs::read_to_string(job.join(file)).unwrap(),
                    content,
                    "{file}"
                ),
            }
        }
        assert!(!job.join(GROWING).exists() && !job.join(WHOLE).exists());
    }

    #[test]
    fn an_incomplete_state_has_no_effect() {
        let job = tempfile::tempdir().unwrap();
        make_job_with_new_state(job.path());
        complete_restore_unheld(job.path()).unwrap();
        complete_restore(job.path()).unwrap();
        check(job.path(), "before");
    }

    #[test]
    fn an_interrupted_replacement_is_completed_from_any_point() {
        // Each step is a crash after this many parts were put in place and the next part was removed.
        for crash in 0..=FOLDERS.len() {
            let home = tempfile::tempdir().unwrap();
            let job = home.path();
            make_job_with_new_state(job);
            fs::rename(job.join(GROWING), job.join(WHOLE)).unwrap();
            for folder in &FOLDERS[..crash] {
                fs::remove_dir_all(job.join(folder)).unwrap();
                fs::rename(job.join(WHOLE).join(folder), job.join(folder)).unwrap();
            }
            if let Some(folder) = FOLDERS.get(crash) {
                fs::remove_dir_all(job.join(folder)).unwrap();
            }
            fs::remove_file(job.join(FILES[crash])).unwrap();
            complete_restore_unheld(job).unwrap();
            complete_restore(job).unwrap();
            check(job, "then");
        }
    }

    /// Puts the parts of a checkpoint into a folder.
    fn fill(folder: &Path) -> Result<(), JobError> {
        for part in FOLDERS {
            fs::create_dir(folder.join(part)).unwrap();
            fs::write(folder.join(part).join("new"), "new").unwrap();
        }
        for file in ["profile.toml", "seeds.txt", known_stacks::FILE, DESCRIPTION] {
            fs::write(folder.join(file), "new").unwrap();
        }
        Ok(())
    }

    #[test]
    fn creation_from_a_checkpoint_starts_again_after_an_interruption_at_any_point() {
        let parts = [
            "state",
            "changes",
            "components",
            "profile.toml",
            "seeds.txt",
        ];
        // Each step is a kill: this many parts were in place, and the folder held the others.
        for crash in 0..=parts.len() {
            let home = tempfile::tempdir().unwrap();
            let job = home.path().join("job");
            fs::create_dir(&job).unwrap();
            let growing = begin_restoring(&job).unwrap();
            fill(&growing).unwrap();
            for part in &parts[..crash] {
                fs::rename(growing.join(part), job.join(part)).unwrap();
            }
            // An older attempt may have had other parts.
            fs::write(job.join(ADDED_SEEDS), "old").unwrap();
            make_restored(&job, fill).unwrap();
            let mut all = names(&job).unwrap();
            all.sort();
            let mut expected = vec![DESCRIPTION, LOCK, known_stacks::FILE];
            expected.extend(parts);
            expected.sort_unstable();
            assert_eq!(all, expected, "{crash}");
            assert!(job.join("state/new").exists());
            let again = make_restored(&job, fill).unwrap_err();
            assert!(matches!(again, JobError::NotEmpty { .. }), "{again:?}");
        }
    }

    #[test]
    fn a_new_job_is_not_created_in_a_directory_with_foreign_files() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("thesis.doc"), "").unwrap();
        begin_restoring(home.path()).unwrap();
        let refused = make_restored(home.path(), fill).unwrap_err();
        assert!(matches!(refused, JobError::NotEmpty { .. }), "{refused:?}");
        assert!(home.path().join("thesis.doc").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_restored_state_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("job");
        fs::create_dir(&job).unwrap();
        make_job_with_new_state(&job);
        fs::rename(job.join(GROWING), job.join(WHOLE)).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        let seeds = job.join(WHOLE).join("seeds.txt");
        fs::remove_file(&seeds).unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), seeds).unwrap();
        assert!(matches!(complete_restore(&job), Err(JobError::Link(_))));
        let text = fs::read_to_string(job.join("seeds.txt")).unwrap();
        assert_eq!(text, "before");
    }
}
