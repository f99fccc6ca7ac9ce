//! A new job with the profile, seeds and components of another one.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::{Copies, FrozenProfile, Job, JobError, read};
use crate::changes;
use crate::fetched_files::{FETCHED_FOLDER, FetchedFiles};
use crate::symlinks::{files_stay_inside, stays_inside};
use opilio_stacks::components;

/// Makes a job in `directory` with the profile of the job in `from`, including changes, its seeds and its plugins. Files that are
/// links to other places are not copied: the copy would expose their content as a regular file.
///
/// # Errors
/// See [`JobError`]; the directory is new or empty.
pub fn copy_job(from: &Path, directory: &Path) -> Result<Job, JobError> {
    files_stay_inside(from).map_err(JobError::Link)?;
    let frozen = FrozenProfile::read(from)?;
    let layers = changes::layers(from).map_err(|source| JobError::io(from, source))?;
    let copies = Copies {
        profile: &read(&frozen.profile)?,
        name: &frozen.name,
        seeds: &frozen.seeds.lines().map(str::to_owned).collect::<Vec<_>>(),
        base: &frozen.base,
        layers: &layers,
        origin: frozen.origin.as_ref(),
        files: &FetchedFiles::read(from).map_err(|source| JobError::io(from, source))?,
    };
    Job::open_with(directory, &copies, Timestamp::now(), || {
        copy(
            &from.join(components::LIST),
            &directory.join(components::LIST),
        )?;
        for folder in [components::COMPONENTS, changes::CHANGES, FETCHED_FOLDER] {
            let (folder, into) = (from.join(folder), directory.join(folder));
            if !folder.exists() {
                continue;
            }
            fs::create_dir_all(&into).map_err(|source| JobError::io(&into, source))?;
            let entries = fs::read_dir(&folder).map_err(|source| JobError::io(&folder, source))?;
            for entry in entries {
                let entry = entry.map_err(|source| JobError::io(&folder, source))?;
                stays_inside(from, &entry.path()).map_err(JobError::Link)?;
                copy(&entry.path(), &into.join(entry.file_name()))?;
            }
        }
        Ok(())
    })
}

/// Copies a file, if it exists.
fn copy(from: &Path, to: &Path) -> Result<(), JobError> {
    match fs::copy(from, to) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
            Err(JobError::io(from, problem))
        }
        _ => Ok(()),
    }
}
