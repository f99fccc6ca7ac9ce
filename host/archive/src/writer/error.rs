//! Why a capture could not be written, or a file not finished.

use std::io;
use std::path::PathBuf;

use crate::reader::ReadError;
use crate::record::RecordId;
use crate::serialize::HeaderError;

/// A capture could not be written, or a file not finished. After any of these the writer can be
/// used again; unless the text says otherwise, nothing of the failed capture is in a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be made or listed.
    #[error("cannot use the directory {}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No file can be created.
    #[error("cannot create {}", file.display())]
    Create {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written (a full disk). It was cut back to its last whole capture.
    #[error("cannot write {} at offset {offset}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Its length before and after.
        offset: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file can neither be written nor cut back. It was left with `.open`, to be repaired at
    /// the next start; further captures go to a new file.
    #[error("cannot write {} at offset {offset}, nor cut it back ({cut}); it stays open for repair", file.display())]
    Abandoned {
        /// The file.
        file: PathBuf,
        /// The end of its last whole capture.
        offset: u64,
        /// Why it could not be cut back.
        cut: io::Error,
        /// Why it could not be written.
        #[source]
        source: io::Error,
    },
    /// A block kept elsewhere could not be read, or has another length than stated.
    #[error("cannot read the block of record {record}")]
    Block {
        /// The record.
        record: RecordId,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The packer cannot be set up.
    #[error("cannot pack records as they should be")]
    Packer(#[source] io::Error),
    /// A header cannot be written.
    #[error("cannot write the header of record {record}")]
    Header {
        /// The record.
        record: RecordId,
        /// Which one, and why.
        #[source]
        source: HeaderError,
    },
    /// The file cannot be forced to disk or renamed. It stays with `.open`, whole; the next start
    /// gives it its name.
    #[error("cannot finish {}", file.display())]
    Finish {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be put in order.
    #[error("cannot repair {}", file.display())]
    Repair {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that was left open cannot be read.
    #[error("cannot repair what was left open")]
    Survey(#[from] ReadError),
}
