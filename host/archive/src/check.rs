//! Checks a WARC file: every record must be complete, have the headers that the standard requires, and have correct digests. Used
//! by `opilio warc check` and `opilio selftest`.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::digest::{Digest, DigestError, Hasher};
use crate::headers::Headers;
use crate::http_payload::{BodyPart, HttpPayload};
use crate::reader::{Damage, ReadError, Reader, StoredRecord};

/// Maximum errors listed in a report; further ones are only counted.
pub const FAULTS_MAX: usize = 10_000;

/// The result of checking one file.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The file.
    pub file: PathBuf,
    /// Complete records.
    pub records: u64,
    /// Complete records by `WARC-Type`.
    pub by_kind: BTreeMap<String, u64>,
    /// Block digests that match.
    pub block_digests: u64,
    /// Payload digests that match. Those of revisits describe a payload in another record and are not counted.
    pub payload_digests: u64,
    /// The first [`FAULTS_MAX`] errors, in the order of the file.
    pub faults: Vec<RecordError>,
    /// Number of all errors.
    pub faults_found: u64,
}

/// An error in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Offset of the record.
    pub offset: u64,
    /// Its `WARC-Record-ID`, if there is one.
    pub record_id: Option<String>,
    /// The kind of error.
    pub kind: RecordErrorKind,
}

/// Kinds of errors in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordErrorKind {
    /// The record is damaged. The check continued at the next place that looks like a record.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A header that the standard requires is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A header has an invalid value.
    #[error("{name} is {value:?}")]
    Header {
        /// The header.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Another record of this file has the same identifier.
    #[error("an earlier record has the same WARC-Record-ID")]
    SameId,
    /// Several records in one gzip member: it cannot be read from its offset alone.
    #[error("shares its gzip member with another record")]
    SharedMember,
    /// A digest has an unknown form.
    #[error("{name} cannot be verified: {fault}")]
    Digest {
        /// The header.
        name: &'static str,
        /// The error in it.
        fault: DigestError,
    },
    /// The block has another digest than stated.
    #[error("block digest is {found}, not {stated}")]
    BlockDigest {
        /// The digest in the header.
        stated: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// The payload has another digest than stated.
    #[error("payload digest is {found}, not {stated}{}", if *.raw { " (which is that of the body with its chunk framing)" } else { "" })]
    PayloadDigest {
        /// The digest in the header.
        stated: Digest,
        /// The digest of the bytes without transfer coding.
        found: Digest,
        /// `true` if the stated digest is that of the body with its chunk framing.
        raw: bool,
    },
}

impl CheckReport {
    /// Returns `true` if no error was found.
    pub fn is_sound(&self) -> bool {
        self.faults_found == 0
    }

    fn fault(&mut self, offset: u64, record_id: Option<&str>, kind: RecordErrorKind) {
        self.faults_found += 1;
        if self.faults.len() < FAULTS_MAX {
            let record_id = record_id.map(str::to_owned);
            self.faults.push(RecordError {
                offset,
                record_id,
                kind,
            });
        }
    }
}

/// Formats the error as `at offset 1234: block digest is …`.
impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}", self.offset)?;
        if let Some(id) = &self.record_id {
            write!(f, " {id}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

/// Checks every record of a file. `Err` means that the file cannot be read; errors in records are in the report.
pub fn check(file: impl AsRef<Path>) -> Result<CheckReport, ReadError> {
    let mut report = CheckReport {
        file: file.as_ref().to_owned(),
        ..CheckReport::default()
    };
    let mut reader = Reader::open(file.as_ref())?;
    let mut ids = HashSet::new();
    loop {
        let result = match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => check_record(record, &mut report, &mut ids),
            Err(e) => Err(e),
        };
        match result {
            Ok(()) => {}
            Err(ReadError::Damaged { offset, damage, .. }) => {
                report.fault(offset, None, damage.into());
                if reader.resync()?.is_none() {
                    break;
                }
            }
            Err(io) => return Err(io),
        }
    }
    Ok(report)
}

fn check_record(
    mut record: StoredRecord<'_>,
    report: &mut CheckReport,
    ids: &mut HashSet<String>,
) -> Result<(), ReadError> {
    let headers = record.headers().clone();
    let offset = record.offset();
    let id = headers.first("WARC-Record-ID");
    let mut faults = header_faults(&headers);
    if let Some(id) = id
        && !ids.insert(id.to_owned())
    {
        faults.push(RecordErrorKind::SameId);
    }

    let mut digests = Digests::new(&headers, &mut faults);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match record.read_block(&mut buffer)? {
            0 => break,
            got => digests.update(&buffer[..got]),
        }
    }
    if record.finish()?.shared {
        faults.push(RecordErrorKind::SharedMember);
    }
    digests.finish(report, &mut faults);

    report.records += 1;
    *report.by_kind.entry(headers.kind().to_owned()).or_default() += 1;
    for kind in faults {
        report.fault(offset, id, kind);
    }
    Ok(())
}

/// Checks the headers against the requirements of the standard (clauses 5 and 6).
fn header_faults(headers: &Headers) -> Vec<RecordErrorKind> {
    let mut faults = Vec::new();
    let mut require = |name: &'static str| {
        let value = headers.first(name);
        if value.is_none() {
            faults.push(RecordErrorKind::Missing(name));
        }
        value
    };
    let kind = require("WARC-Type").unwrap_or_default();
    // ARC has no identifiers.
    if !headers.is_arc() {
        require("WARC-Record-ID");
    }
    let date = require("WARC-Date");
    match kind {
        "response" | "resource" | "request" | "conversion" | "continuation" => {
            require("WARC-Target-URI");
        }
        "revisit" => {
            require("WARC-Target-URI");
            require("WARC-Profile");
        }
        _ => {}
    }
    if let Some(value) = date
        && headers.date().is_none()
    {
        faults.push(RecordErrorKind::Header {
            name: "WARC-Date",
            value: value.to_owned(),
        });
    }
    faults
}

/// The digests that a record states, with those computed from its bytes.
struct Digests {
    block: Vec<(Digest, Hasher)>,
    payload: Vec<PayloadDigest>,
}

/// Digests that [`crate::WriterConfig::further_digest`] adds: block and payload.
const FURTHER: [(&str, &str); 2] = [
    ("WARC-Block-Digest-SHA256", "WARC-Payload-Digest-SHA256"),
    ("WARC-Block-Digest-SHA1", "WARC-Payload-Digest-SHA1"),
];

enum PayloadDigest {
    /// `true` for a resource, whose block is its payload.
    Block(Digest, Hasher),
    Http {
        stated: Digest,
        message: HttpPayload,
        payload: Hasher,
        raw: Hasher,
    },
}

impl Digests {
    fn new(headers: &Headers, faults: &mut Vec<RecordErrorKind>) -> Digests {
        let mut known = |name, digest: Option<Result<Digest, DigestError>>| match digest? {
            Ok(digest) => Some(digest),
            Err(fault) => {
                faults.push(RecordErrorKind::Digest { name, fault });
                None
            }
        };
        let hasher = |digest: &Digest| Hasher::new(digest.algorithm());
        let mut all = |first: &'static str, further: [&'static str; 2]| -> Vec<Digest> {
            let names = std::iter::once(first).chain(further);
            let stated = names.filter_map(|name| known(name, headers.first(name).map(str::parse)));
            stated.collect()
        };
        let block = all("WARC-Block-Digest", FURTHER.map(|(block, _)| block));
        let payload = all("WARC-Payload-Digest", FURTHER.map(|(_, payload)| payload));
        let media_type = headers.first("Content-Type").unwrap_or_default();
        let http = media_type
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("application/http");
        let payload = payload
            .into_iter()
            .filter_map(|stated| match headers.kind() {
                "response" if http => Some(PayloadDigest::Http {
                    message: HttpPayload::new(),
                    payload: hasher(&stated),
                    raw: hasher(&stated),
                    stated,
                }),
                "response" | "resource" | "conversion" => {
                    Some(PayloadDigest::Block(stated, hasher(&stated)))
                }
                _ => None,
            });
        Digests {
            payload: payload.collect(),
            block: block
                .into_iter()
                .map(|stated| (stated, hasher(&stated)))
                .collect(),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        for (_, hasher) in &mut self.block {
            hasher.update(bytes);
        }
        for digest in &mut self.payload {
            match digest {
                PayloadDigest::Block(_, hasher) => hasher.update(bytes),
                PayloadDigest::Http {
                    message,
                    payload,
                    raw,
                    ..
                } => {
                    message.feed(bytes, |part| match part {
                        BodyPart::Raw(bytes) => raw.update(bytes),
                        BodyPart::Payload(bytes) => payload.update(bytes),
                    });
                }
            }
        }
    }

    fn finish(self, report: &mut CheckReport, faults: &mut Vec<RecordErrorKind>) {
        for (stated, hasher) in self.block {
            match hasher.finish() {
                found if found == stated => report.block_digests += 1,
                found => faults.push(RecordErrorKind::BlockDigest { stated, found }),
            }
        }
        for digest in self.payload {
            let (stated, found, raw) = match digest {
                PayloadDigest::Block(stated, hasher) => (stated, hasher.finish(), None),
                PayloadDigest::Http {
                    stated,
                    payload,
                    raw,
                    ..
                } => (stated, payload.finish(), Some(raw.finish())),
            };
            if found == stated {
                report.payload_digests += 1;
            } else {
                let raw = raw == Some(stated);
                faults.push(RecordErrorKind::PayloadDigest { stated, found, raw });
            }
        }
    }
}
