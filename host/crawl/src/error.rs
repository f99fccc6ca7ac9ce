//! Errors that prevent a crawl, and errors that halt one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use opilio_archive::PayloadsError;
use opilio_profile::Diagnostics;

use crate::fetchers::FetcherError;
use crate::lanes::LanePanic;
use opilio_job::directory::JobError;
use opilio_job::profile::ProfileError;
use opilio_job::remedy::with_remedy;

/// Error that prevents a crawl.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The profile or a component has errors. Nothing has been created.
    #[error("{0}")]
    Profile(Diagnostics),
    /// The job directory cannot be used.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The plugin engine cannot be set up.
    #[error(transparent)]
    Engine(#[from] opilio_sandbox::EngineError),
    /// The frontier cannot be opened.
    #[error(transparent)]
    Frontier(#[from] opilio_frontier::FrontierError),
    /// The job's profile has other settings for the names of URIs or queues than when the job was made.
    #[error(
        "settings that define identity ([canonicalization], frontier.queue-key, frontier.parallel-queues, queue.name) differ from those at the creation of the job; restore them, or create a new job; they were {then}"
    )]
    Identity {
        /// The settings at that time, as JSON.
        then: String,
    },
    /// Stored payloads cannot be looked up.
    #[error("cannot look up payloads")]
    Payloads(#[from] PayloadsError),
    /// The archive cannot be opened.
    #[error(transparent)]
    Archive(#[from] opilio_archive::WriteError),
    /// The job's list of plugins, or its copies of their components, cannot be used.
    #[error("{0}")]
    Kept(String),
    /// The job cannot be shared with other nodes.
    #[error(transparent)]
    Cluster(#[from] opilio_cluster::ClusterError),
    /// The job was made for another part, or for other nodes.
    #[error(
        "job {} was made for other nodes ({nodes}): name the same job, nodes and part as then, or make another job with --job", job.display()
    )]
    OtherNodes {
        /// The job's directory.
        job: std::path::PathBuf,
        /// The nodes at that time.
        nodes: String,
    },
    /// A snapshot needs a store.
    #[error("the job has no archive.store: set archive.store.url")]
    NoStore,
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
        source: io::Error,
    },
}

pub(crate) fn io_error(path: &Path, source: io::Error) -> CrawlError {
    CrawlError::Io {
        path: path.display().to_string(),
        source,
    }
}

impl From<ProfileError> for CrawlError {
    fn from(problem: ProfileError) -> CrawlError {
        match problem {
            ProfileError::Faults(faults) => CrawlError::Profile(faults),
            ProfileError::Job(problem) => CrawlError::Job(problem),
        }
    }
}

/// Error that halts a crawl. Nothing is lost: the URI in process is put back at the next start.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The frontier's store failed.
    #[error("the frontier's store failed")]
    Frontier(#[from] opilio_frontier::FrontierError),
    /// The archive cannot be written, usually because the disk is full.
    #[error("cannot write the archive")]
    Archive(#[from] opilio_archive::WriteError),
    /// Stored payloads cannot be looked up.
    #[error("cannot look up payloads")]
    Payloads(#[from] PayloadsError),
    /// A log cannot be written, usually because the disk is full.
    #[error("cannot write a log")]
    Log(#[from] io::Error),
    /// Large bodies cannot be spooled, usually because the disk is full.
    #[error("cannot write the scratch directory")]
    Scratch(#[source] Arc<io::Error>),
    /// The fetch settings of an override cannot be used.
    #[error("invalid override: {0}; correct it, then run the same command again")]
    Fetcher(String),
    /// The crawl is being stopped, and the fetch had received nothing yet. The URI is found in process at the next start, as after
    /// a crash. This is not the reason of the crawl's end.
    #[error("the crawl was stopped")]
    Stopped,
    /// A plugin fails too often, and the profile ends the crawl in this case, by default for filters of the scope.
    #[error(
        "plugin {plugin} failed too often, last with {message}; fix it, replace it with `opilio plugin replace JOB {plugin} COMPONENT`, and run the same command again"
    )]
    Plugin {
        /// The plugin.
        plugin: String,
        /// Its last error.
        message: String,
    },
    /// The scope could not be widened to a redirected seed.
    #[error("cannot configure the scope with a redirected seed: {0}")]
    Seed(String),
    /// The frontier waits for a URI that no worker has: a defect of Opilio.
    #[error(
        "the frontier waits for a URI that no worker processes; please report it, then run the same command again"
    )]
    NobodyAtWork,
    /// A worker panicked: a defect of Opilio.
    #[error("a worker panicked: {0}; please report it, then run the same command again")]
    Worker(String),
    /// A plugin lane panicked: a defect of Opilio.
    #[error(transparent)]
    Lane(#[from] LanePanicked),
}

/// A plugin lane panicked: a defect of Opilio.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LanePanicked(LanePanic);

impl From<LanePanic> for Halt {
    fn from(panic: LanePanic) -> Halt {
        Halt::Lane(LanePanicked(panic))
    }
}

impl Halt {
    /// Returns the error, its cause, and the remedy.
    pub(crate) fn message(&self) -> String {
        let message = with_remedy(self);
        match self {
            Halt::Frontier(_)
            | Halt::Archive(_)
            | Halt::Payloads(_)
            | Halt::Log(_)
            | Halt::Scratch(_) => format!("{message}, then run the same command again"),
            _ => message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_has_its_own_remedy() {
        let expected = [
            (28, "free space"),
            (122, "disk quota"),
            (27, "ulimit -f"),
            (30, "mount"),
            (13, "allow the user"),
            (1, "immutable"),
            (5, "dmesg"),
            (24, "ulimit -n"),
            (23, "file-max"),
        ];
        for (code, words) in expected {
            let io = || io::Error::from_raw_os_error(code);
            let archive = || opilio_archive::WriteError::Write {
                file: std::path::PathBuf::from("a.warc.gz"),
                offset: 7,
                source: io(),
            };
            for halt in [Halt::Log(io()), Halt::Archive(archive())] {
                let message = halt.message();
                assert!(message.contains(words), "{code}: {message}");
                assert!(
                    message.ends_with("then run the same command again"),
                    "{message}"
                );
                let is_about_space = matches!(code, 28 | 122);
                assert_eq!(message.contains("free space"), is_about_space, "{message}");
                assert!(!message.contains("checkpoint"), "{message}");
            }
        }
    }
}
