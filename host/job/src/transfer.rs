//! Import of URIs from other crawls and export to other tools: files on one side, the frontier on the other.
//!
//! ```text
//! journal ─┐
//! crawl log ─┼► UriReader ─► ImportedRecord ─► net effect ─► include | schedule ─► frontier ─┬► JSON lines
//! JSON lines ─┘                                                                           ├► CDXJ
//!                                                                                         └► journal
//! ```
//! `docs/TRANSFER.md` describes the files and the treatment of each line. This module does not decide scope, queues or revisits:
//! the caller supplies the profile's answers.

mod cdxj;
mod crawl_log;
mod export;
mod import;
mod input;
mod journal;
mod json_lines;
mod line;
mod net_effect;
mod reader;
mod sorter;

#[cfg(test)]
mod test_frontier;

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use opilio_frontier::{LastOutcome, QueueReport, UriRecord};
use opilio_uri::{HopPath, Uri};
use serde::{Deserialize, Serialize};

pub use cdxj::write_cdxj;
pub use export::{Outcomes, Selection, StateSelector, write_json_lines, write_queues};
pub use import::{
    BAD_LINES_SHOWN, DoneUris, Import, ImportProgress, ImportReport, MergedUris, SourceReport,
    import,
};
pub use input::{InputDamage, LINE_BYTES_MAX};
pub use journal::write_journal;
pub use line::LineProblem;
pub(crate) use line::time as logged_time;
pub use reader::{BadLine, ImportFormat, InputSummary, UriReader};
pub use sorter::{Sorted, Sorter};

/// Returns a URI in the form of an export line.
pub fn uri_as_json(record: &UriRecord) -> serde_json::Value {
    // The frontier's own types always serialise.
    serde_json::to_value(json_lines::UriLine(record)).unwrap_or_default()
}

/// Returns a queue in the form of an export line.
pub fn queue_as_json(report: &QueueReport) -> serde_json::Value {
    serde_json::to_value(json_lines::QueueLine(report)).unwrap_or_default()
}

/// The content of one line, or of all lines about one URI together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRecord {
    /// The URI, normalised.
    pub uri: Uri,
    /// The hop path; `None` if the line does not state it.
    pub hop_path: Option<HopPath>,
    /// The page on which it was found.
    pub via: Option<String>,
    /// The context of the link on that page, such as `a/@href`; empty if the line does not state it.
    pub context: String,
    /// The seed it descends from.
    pub source: Option<String>,
    /// `true` if it is a seed: the line states it, or gives an empty hop path.
    pub seed: bool,
    /// The finish; `None` for a URI that is still to be fetched.
    pub finished: Option<Finish>,
}

/// The finish of a URI in another crawl, as far as the line states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// The last outcome; never [`LastOutcome::Open`].
    pub last_outcome: LastOutcome,
    /// HTTP status, or a code of the glossary.
    pub status: Option<i32>,
    /// Time of the finish.
    pub at: Option<Timestamp>,
    /// Media type in lower case, without parameters; empty if unknown.
    pub media_type: String,
    /// SHA-1 of the payload.
    pub payload_digest: Option<[u8; 20]>,
    /// Size of the content in bytes.
    pub size: Option<u64>,
}

impl ImportedRecord {
    /// Returns a URI about which only its discovery is known.
    fn found(uri: Uri) -> ImportedRecord {
        ImportedRecord {
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
    /// Returns a finish about which only the outcome is known.
    fn of(last_outcome: LastOutcome) -> Finish {
        Finish {
            last_outcome,
            status: None,
            at: None,
            media_type: String::new(),
            payload_digest: None,
            size: None,
        }
    }
}

/// The reason that a transfer ended early. Unreadable lines do not end a transfer: they are counted and shown.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The first line does not match any of the formats.
    #[error(
        "{} is not a recovery journal, crawl log or JSON lines; name its format if its first line is damaged",
        path.display()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
    },
    /// Sorting failed. It needs about as much room as the uncompressed lines; name a folder with more.
    #[error("cannot sort in {}", folder.display())]
    Sort {
        /// The folder for temporary files.
        folder: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the export")]
    Write(#[source] io::Error),
    /// The frontier failed.
    #[error("the frontier fails")]
    Frontier(#[from] opilio_frontier::FrontierError),
}
