//! URIs in from other crawls, and out to other tools: files on one side, the frontier on the other.
//!
//! ```text
//! journal ─┐
//! crawl log ─┼► Reader ─► Imported ─► net effect ─► include | schedule ─► frontier ─┬► JSON lines
//! JSON lines ─┘                                                                     ├► CDXJ
//!                                                                                   └► journal
//! ```
//! What the files look like, and what becomes of each line, is in `docs/TRANSFER.md`. Nothing here decides what is in
//! scope, which queue a URI stands in or how often it is visited: whoever calls brings the profile's answer.

mod cdxj;
mod crawl_log;
mod export;
mod import;
mod input;
mod journal;
mod json_lines;
mod net;
mod reader;
mod sorter;

#[cfg(test)]
mod trial;

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use opilio_frontier::{QueueReport, Standing, UriRecord};
use opilio_uri::{HopPath, Uri};
use serde::{Deserialize, Serialize};

pub use cdxj::write_cdxj;
pub use export::{Selection, write_json_lines, write_queues};
pub use import::{
    BAD_LINES_SHOWN, DoneUris, Gathered, Import, ImportProgress, ImportReport, SourceReport, import,
};
pub use input::{Damage, LINE_BYTES_MAX};
pub use journal::write_journal;
pub use reader::{BadLine, Extent, Format, Problem, Reader};
pub use sorter::{Sorted, Sorter};

/// A URI as a line of an export has it.
pub fn uri_as_json(record: UriRecord) -> serde_json::Value {
    // Our own types always serialise.
    serde_json::to_value(json_lines::UriLine::from(record)).unwrap_or_default()
}

/// A queue as a line of an export has it.
pub fn queue_as_json(report: QueueReport) -> serde_json::Value {
    serde_json::to_value(json_lines::QueueLine::from(report)).unwrap_or_default()
}

/// What one line, or all lines about one URI together, say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Normalised as every URI here is.
    pub uri: Uri,
    /// The hops from the seed; none where the line does not say.
    pub hop_path: Option<HopPath>,
    /// The page it was found on.
    pub via: Option<String>,
    /// Where on that page; empty where the line does not say.
    pub context: String,
    /// The seed it descends from.
    pub source: Option<String>,
    /// It is a seed: the line says so, or gives an empty hop path.
    pub seed: bool,
    /// How it was finished; none for one still to be fetched.
    pub finished: Option<Finish>,
}

/// How a URI was finished elsewhere, as far as the line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// In the frontier's words; never [`Standing::Open`].
    pub standing: Standing,
    /// HTTP status, or a code of the glossary.
    pub status: Option<i32>,
    /// When.
    pub at: Option<Timestamp>,
    /// Lower-case, without parameters; empty where unknown.
    pub media_type: String,
    /// SHA-1 of the payload.
    pub payload_digest: Option<[u8; 20]>,
    /// Size of the content in bytes.
    pub size: Option<u64>,
}

impl Imported {
    /// A URI of which nothing is known but that it was found.
    fn found(uri: Uri) -> Imported {
        Imported {
            uri,
            hop_path: None,
            via: None,
            context: String::new(),
            source: None,
            seed: false,
            finished: None,
        }
    }
}

impl Finish {
    /// A finish of which nothing more is known.
    fn of(standing: Standing) -> Finish {
        Finish {
            standing,
            status: None,
            at: None,
            media_type: String::new(),
            payload_digest: None,
            size: None,
        }
    }
}

/// Why a transfer ended early. Lines that cannot be read are no such reason: they are counted and shown.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Its first line has the shape of none of the formats.
    #[error(
        "{} is no recovery journal, crawl log or JSON lines; name its format if its first line is damaged",
        path.display()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
    },
    /// Sorting needs room for about as much as the uncompressed lines; name a folder with more.
    #[error("cannot sort in {}", folder.display())]
    Sort {
        /// The folder for temporary files.
        folder: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the export")]
    Write(#[source] io::Error),
    /// The frontier fails.
    #[error("the frontier fails")]
    Frontier(#[from] opilio_frontier::Error),
}
