//! Errors that prevent a crawl.

use std::path::Path;

use opilio_archive::PayloadsError;
use opilio_profile::Faults;

use crate::fetchers::FetcherError;
use opilio_job::directory::JobError;

/// Error that prevents a crawl.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The profile or a component has errors. Nothing has been created.
    #[error("{0}")]
    Profile(Faults),
    /// The job directory cannot be used.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The plugin engine cannot be set up.
    #[error(transparent)]
    Engine(#[from] opilio_sandbox::EngineError),
    /// The frontier cannot be opened.
    #[error(transparent)]
    Frontier(#[from] opilio_frontier::Error),
    /// The job's profile names URIs or queues in another way than when the job was made.
    #[error(
        "settings that define identity ([canonicalization], frontier.queue-key, frontier.parallel-queues, queue.name) differ from those at the creation of the job; restore them, or create a new job; they were {then}"
    )]
    Identity {
        /// The settings at that time, as JSON.
        then: String,
    },
    /// Stored cannot look up payloads.
    #[error("cannot look up payloads")]
    Payloads(#[from] PayloadsError),
    /// The archive cannot be opened.
    #[error(transparent)]
    Archive(#[from] opilio_archive::Error),
    /// The job's list of plugins, or its copies of their components, cannot be used.
    #[error("{0}")]
    Kept(String),
    /// The fetcher cannot be set up.
    #[error(transparent)]
    Fetch(#[from] FetcherError),
    /// The file system returned an error.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

pub(super) fn io_error(path: &Path, source: std::io::Error) -> CrawlError {
    CrawlError::Io {
        path: path.display().to_string(),
        source,
    }
}
