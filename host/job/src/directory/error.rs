//! Why a job directory cannot be used.

use std::io;
use std::path::Path;

use super::JOB_VERSION;

/// Why a job directory cannot be used. Nothing has been changed in it.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Another process runs the job.
    #[error(
        "job {directory} is in use by process {process}; stop it, or name another directory with --job"
    )]
    InUse {
        /// The job's directory.
        directory: String,
        /// What the lock file says of its holder.
        process: String,
    },
    /// Made by a version with another layout.
    #[error(
        "job {directory} has layout version {found}, this build reads {JOB_VERSION}; use the version that made it, or name another directory with --job"
    )]
    Version {
        /// The job's directory.
        directory: String,
        /// The version found.
        found: u32,
    },
    /// There is something in the directory that no job left there.
    #[error(
        "{directory} is not empty and holds no job (no job.json); name another directory with --job"
    )]
    NotAJob {
        /// The directory.
        directory: String,
    },
    /// A job cannot be made of a checkpoint where there is something already.
    #[error("{directory} is there already; name a new directory, or go back with --in-place")]
    NotEmpty {
        /// The directory.
        directory: String,
    },
    /// `job.json` cannot be understood.
    #[error("{file} is damaged")]
    Damaged {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// What the job knows has gone, though it has crawled.
    #[error(
        "{state} is missing or empty, though the job has crawled: bring it back (is a disk not mounted?), or make a job of a checkpoint with opilio job restore; without it everything would be fetched again"
    )]
    StateGone {
        /// Where the frontier's store should be.
        state: String,
    },
    /// A file of its own leads elsewhere by a link.
    #[error(transparent)]
    Link(io::Error),
    /// The file system refused.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

pub(super) fn io_error(path: &Path, source: io::Error) -> JobError {
    JobError::Io {
        path: path.display().to_string(),
        source,
    }
}
