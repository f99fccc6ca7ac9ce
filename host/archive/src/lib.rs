//! Reads and writes WARC/1.1 and ARC files.
//!
//! [`Writer`] appends the records of one capture to a file, whose name ends in `.open` until it is finished. It also repairs the
//! files of a killed process. [`Reader`] reads records, and [`check`] checks a whole file. The caller determines the content of
//! records: identifiers and times are arguments, so that the same calls write the same bytes. This crate uses no network and no
//! clock.
//!
//! Words and header names are those of ISO 28500:2017 (WARC/1.1).

mod arc;
mod captures;
mod catalogue;
pub mod cdxj;
mod check;
mod digest;
mod fields;
mod headers;
mod http_head;
mod http_payload;
mod merged_index;
mod name;
mod payloads;
mod reader;
mod record;
pub mod redact;
mod repair;
mod request_query;
mod serialize;
mod sorted_lines;
pub mod wacz;
mod warcinfo;
mod write_error;
mod writer;
mod zst;

pub use opilio_model::ArchiveFormat;

pub use crate::captures::{Captures, captures};
pub use crate::catalogue::{catalogue, forget_catalogues};
pub use crate::cdxj::{CdxjCapture, CdxjEntry, CdxjError, index, index_path, write as write_index};
pub use crate::check::{CheckReport, FAULTS_MAX, RecordError, RecordErrorKind, check};
pub use crate::digest::{Algorithm, Digest, DigestError, Hasher};
pub use crate::fields::Fields;
pub use crate::headers::Headers;
pub use crate::http_payload::{BodyPart, HTTP_HEAD_BYTES_MAX, HttpPayload};
pub use crate::merged_index::MergedIndex;
pub use crate::name::{NameTemplate, TemplateError, is_archive};
pub use crate::payloads::{HistoryRead, Payloads, PayloadsError, StoredPayload};
pub use crate::reader::{
    Damage, Extent, HEADER_BYTES_MAX, Packing, ReadError, Reader, StoredRecord,
};
pub use crate::record::{
    Block, HTTP_REQUEST, HTTP_RESPONSE, OpenSpool, Record, RecordId, RecordIdError, RecordKind,
    RefersTo, RevisitProfile, TEXT_DNS, Truncation, WARC_FIELDS,
};
pub use crate::repair::{RepairedFile, RescuedRecords, complete_indexes, is_abandoned_index};
pub use crate::request_query::BODY_UNINDEXED;
pub use crate::serialize::{Compression, HeaderError};
pub use crate::warcinfo::{CrawlDocument, PluginInForce, WarcInfo};
pub use crate::write_error::WriteError;
pub use crate::writer::{Durability, Location, Writer, WriterConfig, Writers, archives};
pub use crate::zst::DICTIONARY_BYTES_MAX;
