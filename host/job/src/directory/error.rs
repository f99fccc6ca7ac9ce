//! Errors of opening or making a job directory.

use std::io;
use std::path::Path;

/// Version of the directory's layout that this build reads and writes.
pub const JOB_VERSION: u32 = 1;

/// The reason why a job directory cannot be used. The directory has not been changed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Another process runs the job.
    #[error(
        "job {directory} is in use by process {process}; stop it, or name another directory with --job"
    )]
    InUse {
        /// Directory of the job.
        directory: String,
        /// The lock file's text about its holder.
        process: String,
    },
    /// The job was made by a version with another layout.
    #[error(
        "job {directory} has layout version {found}, this build reads {JOB_VERSION}; use the version that made it, or name another directory with --job"
    )]
    Version {
        /// Directory of the job.
        directory: String,
        /// The version found.
        found: u32,
    },
    /// The directory contains files that are not files of a job.
    #[error(
        "{directory} is not empty and not a job (no job.json); name another directory with --job"
    )]
    NotAJob {
        /// The directory.
        directory: String,
    },
    /// A job cannot be made from a checkpoint in a directory that is not empty.
    #[error("{directory} already exists; name a new directory, or restore with --in-place")]
    NotEmpty {
        /// The directory.
        directory: String,
    },
    /// `job.json` cannot be parsed.
    #[error("{file} is damaged")]
    Damaged {
        /// The file.
        file: String,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
    /// The frontier's store is missing, though the job has crawled.
    #[error(
        "{state} is missing or empty, though the job has crawled: restore it (is a disk not mounted?), or create a job from a checkpoint with `opilio job restore CHECKPOINT JOB`; without it everything would be fetched again"
    )]
    StateGone {
        /// The expected path of the frontier's store.
        state: String,
    },
    /// A file of the job is a link that leads out of the job directory.
    #[error(transparent)]
    Link(io::Error),
    /// The file system returned an error.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl JobError {
    /// Creates the error of a file or directory.
    pub(crate) fn io(path: &Path, source: io::Error) -> JobError {
        JobError::Io {
            path: path.display().to_string(),
            source,
        }
    }
}
