//! Directories of jobs on command lines: a path, or the name of a job in the folder `jobs`.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use opilio_crawl::is_job;

/// The folder of jobs that are given by name.
pub(crate) const JOBS: &str = "jobs";

/// Returns a parser for the directory of an existing job.
pub(crate) fn existing_job() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| known_job(&path).unwrap_or(path))
}

/// Returns a parser for the directory of a job that may be new. A new job that is given by name is in the folder `jobs`.
pub(crate) fn new_job() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| match known_job(&path) {
        Some(job) => job,
        None if is_name(&path) && !path.exists() => Path::new(JOBS).join(path),
        None => path,
    })
}

/// Returns the directory of the job with this path or name; `None` if there is no such job.
pub(crate) fn known_job(path: &Path) -> Option<PathBuf> {
    if is_job(path) {
        return Some(path.to_owned());
    }
    let in_jobs = Path::new(JOBS).join(path);
    (is_name(path) && is_job(&in_jobs)).then_some(in_jobs)
}

/// Returns `true` if a path is a single name, without a separator.
fn is_name(path: &Path) -> bool {
    path.file_name() == Some(path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_separator() {
        for (path, expected) in [
            ("news", true),
            ("./news", false),
            ("news/", false),
            ("jobs/news", false),
            ("..", false),
            ("", false),
        ] {
            assert_eq!(is_name(Path::new(path)), expected, "{path}");
        }
    }
}
