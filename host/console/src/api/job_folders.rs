//! The folders of a job's files, and look-ups in them.

use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use opilio_crawl::{JobFolders, stays_inside};

use super::own_files;
use crate::problem::Problem;

/// Folder of the recordings in a job.
pub(super) const RECORDINGS: &str = "recordings";

/// Returns the directories of a job's files. They are inside the job's folder, unless its profile sets others.
pub(crate) fn places(job: &Path) -> Result<JobFolders, Problem> {
    let inside = |path: &Path| {
        stays_inside(job, path).map_err(|problem| Problem::conflict(problem.to_string()))
    };
    own_files(job)?;
    let places = JobFolders::of(job).map_err(|problem| {
        Problem::conflict(format!("cannot read the job's profile: {problem}"))
    })?;
    inside(&places.logs)?;
    inside(&job.join("reports"))?;
    inside(&job.join(RECORDINGS))?;
    // A folder of archive files may be a link, for example to a larger disk. Only archive files in it are shown.
    Ok(places)
}

/// The names in a folder that are of this type, except hidden ones. Links are of neither type.
pub(crate) fn names(
    folder: &Path,
    is_wanted: fn(&FileType) -> bool,
) -> Result<Vec<String>, Problem> {
    let unreadable = |problem: io::Error| {
        Problem::failure(format!("cannot list {}: {problem}", folder.display()))
    };
    let entries = match fs::read_dir(folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let is_wanted = entry.file_type().is_ok_and(|kind| is_wanted(&kind));
        if let (true, Ok(name)) = (is_wanted, entry.file_name().into_string())
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// The path of a file directly in a folder. A link is not a file.
pub(crate) fn plain_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let path = folder.join(name);
    let is_file = is_plain && path.symlink_metadata().is_ok_and(|it| it.is_file());
    is_file.then_some(path)
}
