//! Errors in writing a capture or finishing a file.

use std::io;
use std::path::PathBuf;

use crate::reader::ReadError;
use crate::record::RecordId;
use crate::serialize::HeaderError;

/// Error in writing a capture or finishing a file. The writer stays usable after each of these errors. Nothing of the failed
/// capture is in a file, unless stated otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The directory cannot be created or listed.
    #[error("cannot use the directory {}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// No file can be created.
    #[error("cannot create {}", file.display())]
    Create {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written (a full disk). It was cut back to its last complete capture.
    #[error("cannot write {} at offset {offset}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Its length before and after.
        offset: u64,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The file can neither be written nor cut back. It keeps the suffix `.open`, and the next start repairs it. Further captures
    /// are written to a new file.
    #[error("cannot write {} at offset {offset}, nor cut it back ({cut}); it stays open for repair", file.display())]
    Abandoned {
        /// The file.
        file: PathBuf,
        /// The end of its last complete capture.
        offset: u64,
        /// The error in cutting it back.
        cut: io::Error,
        /// The error in writing it.
        #[source]
        source: io::Error,
    },
    /// A spooled block could not be read, or does not have the stated length.
    #[error("cannot read the block of record {record}")]
    Block {
        /// The record.
        record: RecordId,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The packer cannot be set up.
    #[error("cannot set up the compression of records")]
    Packer(#[source] io::Error),
    /// A header cannot be written.
    #[error("cannot write the header of record {record}")]
    Header {
        /// The record.
        record: RecordId,
        /// The header, and the error.
        #[source]
        source: HeaderError,
    },
    /// The file cannot be synced to disk or renamed. It is complete and keeps the suffix `.open`; the next start renames it.
    #[error("cannot finish {}", file.display())]
    Finish {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be repaired.
    #[error("cannot repair {}", file.display())]
    Repair {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be read.
    #[error("cannot repair a file that was left open")]
    Survey(#[from] ReadError),
}
