//! Redaction: replaces records in place by tombstones; all other bytes of the file stay unchanged.
//!
//! [`survey`] finds the records to redact: the chosen ones, the other records of the same captures, and revisits of the same
//! payload. The other records of a capture are included because they have data about it: the request has cookies, the metadata has
//! outlinks. [`redact`] writes a new file beside the old one, and replaces the old one only when the new one is complete.
//! docs/ARCHIVING.md describes tombstones.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use jiff::Timestamp;

use crate::arc::timestamp14;
use crate::digest::{Algorithm, Digest};
use crate::fields::{Fields, one_line, safe_uri};
use crate::headers::Headers;
use crate::name::OPEN_SUFFIX;
use crate::payloads::StoredPayload;
use crate::reader::{Damage, Extent, ReadError, Reader};
use crate::repair::sync_directory_of;
use crate::serialize::TRAILER;
use crate::zst;

/// Header of a tombstone: the time of the redaction.
pub const REDACTED: &str = "Opilio-Redacted";
/// Header of a tombstone: the reason.
const REASON: &str = "Opilio-Redaction-Reason";
/// Header of a tombstone: the former `WARC-Type`, if the tombstone has another type.
const FORMER_TYPE: &str = "Opilio-Redacted-Type";
/// Header of a tombstone: the payload digest of the removed content, if it is kept.
const FORMER_DIGEST: &str = "Opilio-Redacted-Payload-Digest";

/// Headers that the tombstone keeps. Unknown headers are removed, because they may have any content, such as titles and cookies.
const KEPT: [&str; 10] = [
    "WARC-Record-ID",
    "WARC-Date",
    "WARC-Target-URI",
    "WARC-Concurrent-To",
    "WARC-IP-Address",
    "WARC-Protocol",
    "WARC-Warcinfo-ID",
    "WARC-Segment-Number",
    "WARC-Segment-Origin-ID",
    "WARC-Segment-Total-Length",
];

/// Maximum read errors that a survey lists.
const DAMAGED_MAX: usize = 1000;

/// The records to redact, found in a number of files.
#[derive(Debug, Default)]
pub struct RedactionPlan {
    /// The records, by file and offset.
    pub targets: Vec<Target>,
    /// Places that cannot be read, where further records to redact may be.
    pub damaged: Vec<ReadError>,
    /// Captures outside the targets that have a redacted payload: file and offset.
    pub copies: Vec<(PathBuf, u64)>,
    /// Number of chosen revisits whose payload is in a record that stays.
    pub payload_elsewhere: u64,
    /// Number of chosen records that are tombstones already.
    pub already: u64,
    /// Number of records read.
    pub records: u64,
}

/// A record to redact.
#[derive(Clone, Debug)]
pub struct Target {
    /// The file.
    pub file: PathBuf,
    /// The place of the record in the file.
    pub extent: Extent,
    /// The reason for its redaction.
    pub why: RedactionReason,
    /// Header of the record.
    pub headers: Headers,
}

/// The reason why a record is redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactionReason {
    /// The record was chosen.
    Chosen,
    /// The record belongs to the exchange of a redacted record.
    SameCapture,
    /// The record is a revisit of a redacted payload.
    Revisit,
}

/// The content of a tombstone.
#[derive(Clone, Copy, Debug)]
pub struct Tombstone<'a> {
    /// The reason for the removal, on one line.
    pub reason: &'a str,
    /// Time of the removal.
    pub at: Timestamp,
    /// `true` to keep the payload digest of the removed content. Owners of a copy can identify the content by the digest.
    pub keep_digests: bool,
}

/// The result of redacting one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedactionResult {
    /// Records replaced.
    pub records: u64,
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes_after: u64,
}

/// An error that prevented a redaction. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The file or its replacement cannot be read or written.
    #[error("cannot rewrite {}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The crawl is writing the file.
    #[error("{} is being written; stop the crawl first", .0.display())]
    Open(PathBuf),
    /// Another process is rewriting the file.
    #[error("{} is being rewritten by another process", .0.display())]
    Busy(PathBuf),
    /// A record that shares its gzip member with others.
    #[error("{}: the record at offset {offset} shares its gzip member with others; write the file anew with a member per record first", file.display())]
    Shared {
        /// The file.
        file: PathBuf,
        /// Offset of the member.
        offset: u64,
    },
    /// A record of a kind that cannot have a tombstone.
    #[error("{}: the record at offset {offset} is {kind} and cannot be redacted", file.display())]
    Kind {
        /// The file.
        file: PathBuf,
        /// Offset of the record.
        offset: u64,
        /// Its kind.
        kind: String,
    },
    /// The file changed since it was surveyed.
    #[error("{} has changed since it was searched; run the command again", .0.display())]
    Changed(PathBuf),
    /// The file or its replacement cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A short digest of a text, to compare millions of texts in memory.
type Key = [u8; 16];

/// The facts about a record that are remembered while all files are read.
struct Note {
    file: usize,
    extent: Extent,
    id: Option<Key>,
    /// Target URI and date, by which revisits may refer to the record.
    place: Option<Key>,
    concurrent_to: Vec<Key>,
    /// The targets of a revisit: a record, or a URI at a time. If the revisit has neither, `refers_to_payload` applies.
    refers_to: Vec<Key>,
    refers_to_payload: Option<Key>,
    payload: Option<Key>,
    is_revisit: bool,
    why: Option<RedactionReason>,
}

/// Reads files and finds all records that must be redacted together with the `chosen` records.
pub fn survey(
    files: &[PathBuf],
    mut chosen: impl FnMut(&Headers) -> bool,
) -> Result<RedactionPlan, ReadError> {
    let mut survey = RedactionPlan::default();
    let mut notes = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut reader = Reader::open(file)?;
        loop {
            let noted = match reader.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    let headers = record.headers();
                    let mut note = Note::of(headers, index);
                    if chosen(headers) {
                        note.why = Some(RedactionReason::Chosen);
                        survey.already += u64::from(headers.first(REDACTED).is_some());
                    }
                    record.finish().map(|extent| (note, extent))
                }
                Err(e) => Err(e),
            };
            match noted {
                Ok((mut note, extent)) => {
                    survey.records += 1;
                    note.extent = extent;
                    notes.push(note);
                }
                Err(damage @ ReadError::Damaged { .. }) => {
                    if survey.damaged.len() < DAMAGED_MAX {
                        survey.damaged.push(damage);
                    }
                    if reader.resync()?.is_none() {
                        break;
                    }
                }
                Err(io) => return Err(io),
            }
        }
    }
    spread(&mut notes);
    survey.copies = copies(&notes)
        .map(|note| (files[note.file].clone(), note.extent.offset))
        .collect();
    survey.payload_elsewhere = payload_elsewhere(&notes);
    for note in notes {
        let Some(why) = note.why else { continue };
        let file = &files[note.file];
        let mut reader = Reader::open_at(file, note.extent.offset)?;
        let headers = match reader.next_record()? {
            Some(record) => record.headers().clone(),
            None => continue,
        };
        // In a shared member the record at this offset may be another one. `redact` refuses such records anyway.
        if headers.first(REDACTED).is_none() || note.extent.shared {
            survey.targets.push(Target {
                file: file.clone(),
                extent: note.extent,
                why,
                headers,
            });
        }
    }
    Ok(survey)
}

impl Note {
    fn of(headers: &Headers, file: usize) -> Note {
        let is_revisit = headers.kind() == "revisit";
        let id = headers.first("WARC-Record-ID").map(key);
        let place = match (headers.target_uri(), headers.date()) {
            (Some(uri), Some(date)) => Some(place(uri, date)),
            _ => None,
        };
        let mut refers_to = Vec::new();
        let mut refers_to_payload = None;
        let payload = headers.first("WARC-Payload-Digest").map(key);
        if is_revisit {
            refers_to.extend(headers.first("WARC-Refers-To").map(key));
            let uri = headers.first("WARC-Refers-To-Target-URI");
            let date = headers.first("WARC-Refers-To-Date");
            if let (Some(uri), Some(date)) = (uri, date.and_then(|date| date.parse().ok())) {
                refers_to.push(self::place(bare(uri), date));
            }
            if refers_to.is_empty() {
                refers_to_payload = payload;
            }
        }
        Note {
            file,
            extent: Extent {
                offset: 0,
                length: 0,
                shared: false,
            },
            id,
            place,
            concurrent_to: headers.all("WARC-Concurrent-To").map(key).collect(),
            refers_to,
            refers_to_payload,
            payload,
            is_revisit,
            why: None,
        }
    }
}

/// Marks the records that must be redacted together with marked ones, until no more are found.
fn spread(notes: &mut [Note]) {
    let mut gone = HashSet::new();
    let mut payloads = HashSet::new();
    let mut captures = HashSet::new();
    loop {
        for note in notes.iter().filter(|note| note.why.is_some()) {
            gone.extend(note.id);
            captures.extend(note.id);
            captures.extend(note.concurrent_to.iter().copied());
            if !note.is_revisit {
                gone.extend(note.place);
                payloads.extend(note.payload.filter(|payload| *payload != nothing()));
            }
        }
        let mut more = false;
        for note in notes.iter_mut().filter(|note| note.why.is_none()) {
            let same_capture = note
                .id
                .iter()
                .chain(&note.concurrent_to)
                .any(|id| captures.contains(id));
            let revisit = note.refers_to.iter().any(|to| gone.contains(to))
                || note
                    .refers_to_payload
                    .is_some_and(|payload| payloads.contains(&payload));
            note.why = match (same_capture, revisit) {
                (_, true) => Some(RedactionReason::Revisit),
                (true, false) => Some(RedactionReason::SameCapture),
                (false, false) => None,
            };
            more |= note.why.is_some();
        }
        if !more {
            return;
        }
    }
}

/// Records that stay and have the payload of a redacted record.
fn copies(notes: &[Note]) -> impl Iterator<Item = &Note> {
    let gone: HashSet<Key> = notes
        .iter()
        .filter(|note| note.why.is_some())
        .filter_map(|note| note.payload)
        .filter(|payload| *payload != nothing())
        .collect();
    notes.iter().filter(move |note| {
        note.why.is_none() && note.payload.is_some_and(|payload| gone.contains(&payload))
    })
}

/// Number of redacted revisits whose target stays.
fn payload_elsewhere(notes: &[Note]) -> u64 {
    let staying: HashSet<Key> = notes
        .iter()
        .filter(|note| note.why.is_none() && !note.is_revisit)
        .flat_map(|note| note.id.into_iter().chain(note.place))
        .collect();
    notes
        .iter()
        .filter(|note| note.why.is_some() && note.is_revisit)
        .filter(|note| note.refers_to.iter().any(|to| staying.contains(to)))
        .count() as u64
}

/// Returns the payload digest of empty content, which half of all redirects have. It does not show that two captures are the same.
fn nothing() -> Key {
    key(&Digest::sha1(b"").to_string())
}

fn key(text: &str) -> Key {
    let digest = Digest::of(Algorithm::Sha256, text.as_bytes());
    let mut key = [0; 16];
    for (to, from) in key.iter_mut().zip(digest.bytes()) {
        *to = *from;
    }
    key
}

fn place(uri: &str, date: Timestamp) -> Key {
    key(&format!("{uri} {date}"))
}

fn bare(uri: &str) -> &str {
    uri.strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .unwrap_or(uri)
}

/// Replaces records of one file by tombstones. A new file is written beside it, verified, and renamed over it in one step. If an
/// error occurs before the rename, the file is unchanged.
pub fn redact(
    file: &Path,
    targets: &[Target],
    tombstone: Tombstone<'_>,
) -> Result<RedactionResult, RedactError> {
    let fault = |source| RedactError::Io {
        file: file.to_owned(),
        source,
    };
    if file
        .as_os_str()
        .as_encoded_bytes()
        .ends_with(OPEN_SUFFIX.as_bytes())
    {
        return Err(RedactError::Open(file.to_owned()));
    }
    let draft = draft_of(file);
    let mut to = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&draft)
        .map_err(fault)?;
    match to.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(RedactError::Busy(file.to_owned())),
        // On a file system without locks, no process can have locked the file.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let done = rewrite(file, &mut to, targets, tombstone).and_then(|redacted| {
        let before = records_of(file)?;
        let after = records_of(&draft)?;
        if before != after {
            return Err(RedactError::Changed(file.to_owned()));
        }
        fs::rename(&draft, file).map_err(fault)?;
        // A bare file name has no directory part.
        let absolute = std::path::absolute(file).map_err(fault)?;
        sync_directory_of(&absolute).map_err(fault)?;
        Ok(redacted)
    });
    if done.is_err() {
        // The first error is reported, not an error of the clean-up.
        let _ = fs::remove_file(&draft);
    }
    done
}

/// The path of the new file.
fn draft_of(file: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".redacting");
    file.with_file_name(name)
}

fn rewrite(
    file: &Path,
    to: &mut File,
    targets: &[Target],
    tombstone: Tombstone<'_>,
) -> Result<RedactionResult, RedactError> {
    let fault = |source| RedactError::Io {
        file: file.to_owned(),
        source,
    };
    let mut from = File::open(file).map_err(fault)?;
    let metadata = from.metadata().map_err(fault)?;
    to.set_len(0).map_err(fault)?;
    to.set_permissions(metadata.permissions()).map_err(fault)?;
    let mut position = 0;
    let mut records = 0;
    for target in targets.iter().filter(|target| target.file == file) {
        let Extent {
            offset,
            length,
            shared,
        } = target.extent;
        if shared {
            return Err(RedactError::Shared {
                file: file.to_owned(),
                offset,
            });
        }
        if offset < position {
            return Err(RedactError::Changed(file.to_owned()));
        }
        let packing = packing_at(&mut from, offset).map_err(fault)?;
        let record = tombstone.of(target)?;
        copy(&mut from, position, offset - position, to).map_err(fault)?;
        to.write_all(&packing.pack(&record).map_err(fault)?)
            .map_err(fault)?;
        position = offset + length;
        records += 1;
    }
    let rest = metadata
        .len()
        .checked_sub(position)
        .ok_or_else(|| RedactError::Changed(file.to_owned()))?;
    copy(&mut from, position, rest, to).map_err(fault)?;
    to.sync_all().map_err(fault)?;
    let bytes_after = to.stream_position().map_err(fault)?;
    Ok(RedactionResult {
        records,
        bytes_before: metadata.len(),
        bytes_after,
    })
}

/// Copies exactly `length` bytes from `offset` on.
fn copy(from: &mut File, offset: u64, length: u64, to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(offset))?;
    let copied = io::copy(&mut from.take(length), to)?;
    if copied == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Returns the numbers of readable records and of damaged places in a file.
fn records_of(file: &Path) -> Result<(u64, u64), ReadError> {
    let (mut records, mut damages) = (0, 0);
    let mut reader = Reader::open(file)?;
    loop {
        let read = match reader.next_record() {
            Ok(None) => return Ok((records, damages)),
            Ok(Some(record)) => record.finish().map(drop),
            Err(e) => Err(e),
        };
        match read {
            Ok(()) => records += 1,
            Err(ReadError::Damaged { .. }) => {
                damages += 1;
                if reader.resync()?.is_none() {
                    return Ok((records, damages));
                }
            }
            Err(io) => return Err(io),
        }
    }
}

/// The packing of the replaced record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

fn packing_at(file: &mut File, offset: u64) -> io::Result<Packing> {
    let mut magic = [0; 2];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut magic)?;
    Ok(match magic {
        [0x1f, 0x8b] => Packing::Gzip,
        [first, second] if [first, second] == zst::FRAME[..2] => Packing::Zstd,
        _ => Packing::Plain,
    })
}

impl Packing {
    fn pack(self, record: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Packing::Plain => Ok(record.to_vec()),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
                encoder.write_all(record)?;
                encoder.finish()
            }
            // The frame does not use the file's dictionary. Frames that name no dictionary are decompressed without one.
            Packing::Zstd => zstd::bulk::compress(record, zstd::DEFAULT_COMPRESSION_LEVEL),
        }
    }
}

impl Tombstone<'_> {
    /// The complete record that replaces another.
    fn of(&self, target: &Target) -> Result<Vec<u8>, RedactError> {
        let headers = &target.headers;
        let kind = headers.kind();
        let content = self
            .content(kind, headers)
            .ok_or_else(|| RedactError::Kind {
                file: target.file.clone(),
                offset: target.extent.offset,
                kind: match kind {
                    "" => "of no known type".to_owned(),
                    kind => format!("a {kind} record"),
                },
            })?;
        if headers.version().starts_with("ARC/") {
            return Ok(arc_record(headers, &content));
        }
        let mut text = format!("{}\r\n", headers.version());
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("{name}: {}\r\n", one_line(value)));
        };
        line("WARC-Type", content.kind);
        for (name, value) in headers.iter() {
            let kept = |known: &&&str| known.eq_ignore_ascii_case(name);
            if let Some(known) = KEPT.iter().find(kept) {
                line(known, value);
            }
        }
        if content.kind != kind {
            line(FORMER_TYPE, kind);
        }
        line(REDACTED, &format!("{:.0}", self.at));
        line(REASON, self.reason);
        let former = headers.first("WARC-Payload-Digest");
        if let Some(former) = former.filter(|_| self.keep_digests) {
            line(FORMER_DIGEST, former);
        }
        let algorithm = match headers.block_digest().or(headers.payload_digest()) {
            Some(Ok(digest)) => digest.algorithm(),
            _ => Algorithm::Sha1,
        };
        let digest = |bytes: &[u8]| Digest::of(algorithm, bytes).to_string();
        if let Some(payload) = content.payload {
            line("WARC-Payload-Digest", &digest(payload.as_bytes()));
        }
        line("WARC-Block-Digest", &digest(content.block.as_bytes()));
        line("Content-Type", content.content_type);
        line("Content-Length", &content.block.len().to_string());
        let mut record = text.into_bytes();
        record.extend_from_slice(b"\r\n");
        record.extend_from_slice(content.block.as_bytes());
        record.extend_from_slice(TRAILER);
        Ok(record)
    }

    fn content(&self, kind: &str, headers: &Headers) -> Option<Content> {
        let (at, reason) = (format!("{:.0}", self.at), one_line(self.reason));
        let words = format!("This record was redacted on {at}: {reason}\n");
        let http = headers
            .first("Content-Type")
            .is_some_and(|media_type| media_type.trim_start().starts_with("application/http"));
        Some(match kind {
            // A revisit record would refer to a payload that may still be stored elsewhere.
            "response" | "revisit" if http || kind == "revisit" => Content {
                kind: "response",
                content_type: crate::record::HTTP_RESPONSE,
                block: format!(
                    "HTTP/1.1 451 Unavailable For Legal Reasons\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{words}",
                    words.len()
                ),
                payload: Some(words),
            },
            "response" | "resource" | "conversion" | "continuation" => Content {
                kind: match kind {
                    "response" => "response",
                    "resource" => "resource",
                    "conversion" => "conversion",
                    _ => "continuation",
                },
                content_type: "text/plain; charset=utf-8",
                block: words.clone(),
                payload: Some(words),
            },
            // Not an HTTP request: an invented one was never sent, and readers report an empty one as an error.
            "request" => Content {
                kind: "request",
                content_type: "text/plain; charset=utf-8",
                block: words,
                payload: None,
            },
            "metadata" => Content {
                kind: "metadata",
                content_type: crate::record::WARC_FIELDS,
                block: {
                    let mut fields = Fields::new();
                    fields.push("redacted", at).push("reason", reason);
                    String::from_utf8_lossy(&fields.to_bytes()).into_owned()
                },
                payload: None,
            },
            _ => return None,
        })
    }
}

/// Formats the tombstone in ARC, which has only the content.
fn arc_record(headers: &Headers, content: &Content) -> Vec<u8> {
    let uri = safe_uri(headers.target_uri().unwrap_or_default());
    let ip = headers.first("WARC-IP-Address").unwrap_or("0.0.0.0");
    let date = headers.date().map(timestamp14).unwrap_or_default();
    let block = &content.block;
    let length = block.len();
    format!("{uri} {ip} {date} text/plain {length}\n{block}\n").into_bytes()
}

/// The content of a tombstone.
struct Content {
    kind: &'static str,
    content_type: &'static str,
    block: String,
    payload: Option<String>,
}

impl RedactionPlan {
    /// The files with targets, each once.
    pub fn files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = self.targets.iter().map(|target| &*target.file).collect();
        files.dedup();
        files
    }

    /// Returns a test whether a payload in a digest index is among the redacted ones. It compares URI and second, which all such
    /// indexes have. If it removes a payload that is not redacted, that payload is only stored once more.
    pub fn takes(&self) -> impl Fn(&StoredPayload) -> bool {
        let moment = |uri: &str, date: Timestamp| (key(uri), date.as_second());
        let gone: HashSet<(Key, i64)> = self
            .targets
            .iter()
            .filter_map(|target| {
                let headers = &target.headers;
                Some(moment(headers.target_uri()?, headers.date()?))
            })
            .collect();
        move |stored| gone.contains(&moment(&stored.uri, stored.date))
    }

    /// Returns the damaged places, with the damage as reported by the check.
    pub fn damages(&self) -> impl Iterator<Item = (&Path, u64, &Damage)> {
        self.damaged.iter().filter_map(|fault| match fault {
            ReadError::Damaged {
                file,
                offset,
                damage,
            } => Some((&**file, *offset, damage)),
            ReadError::Io { .. } => None,
        })
    }
}
