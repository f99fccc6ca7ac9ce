//! Takedown: records whose content must go are replaced by tombstones, in place, and all other bytes of the file stay
//! what they are.
//!
//! [`survey`] finds what must go: the records that were chosen, the others of the same captures (the request has its
//! cookies, the metadata its outlinks), and revisits that stand for the same payload. [`redact`] rewrites one file
//! beside itself and puts it in its place only when it is whole. docs/ARCHIVING.md describes a tombstone.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use jiff::Timestamp;

use crate::arc::timestamp14;
use crate::digest::{Algorithm, Digest};
use crate::fields::{Fields, one_line, safe_uri};
use crate::payloads::StoredPayload;
use crate::reader::{Damage, Extent, Headers, ReadError, Reader};
use crate::repair::{OPEN_SUFFIX, sync_directory_of};
use crate::serialize::TRAILER;
use crate::zst;

/// Header of a tombstone: when the record was redacted.
pub const REDACTED: &str = "Opilio-Redacted";
/// Header of a tombstone: why.
const REASON: &str = "Opilio-Redaction-Reason";
/// Header of a tombstone: what `WARC-Type` it had, where it has another now.
const FORMER_TYPE: &str = "Opilio-Redacted-Type";
/// Header of a tombstone: the payload digest of what was removed, where it was to be kept.
const FORMER_DIGEST: &str = "Opilio-Redacted-Payload-Digest";

/// What of a header goes over to the tombstone. Headers that are not known may hold anything, titles and cookies too.
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

/// Most faults of reading that a survey lists.
const DAMAGED_MAX: usize = 1000;

/// What must go, found in a number of files.
#[derive(Debug, Default)]
pub struct Survey {
    /// The records, file after file and by offset.
    pub targets: Vec<Target>,
    /// Places that cannot be read: what should go may be there too.
    pub damaged: Vec<ReadError>,
    /// Other captures with the payload of one that goes, and they stay: file and offset.
    pub copies: Vec<(PathBuf, u64)>,
    /// Chosen revisits of a payload that stays where it is.
    pub payload_elsewhere: u64,
    /// Records among the chosen that are tombstones already.
    pub already: u64,
    /// Records read.
    pub records: u64,
}

/// A record that must go.
#[derive(Clone, Debug)]
pub struct Target {
    /// The file.
    pub file: PathBuf,
    /// Where it stands in the file.
    pub extent: Extent,
    /// Why it must go.
    pub why: Why,
    /// Its header.
    pub headers: Headers,
}

/// Why a record must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was chosen.
    Chosen,
    /// It is about the same exchange as one that goes.
    SameCapture,
    /// It stands for a payload that goes.
    Revisit,
}

/// What a tombstone says.
#[derive(Clone, Copy, Debug)]
pub struct Tombstone<'a> {
    /// Why the content is not there any more, on one line.
    pub reason: &'a str,
    /// When it was removed.
    pub at: Timestamp,
    /// Whether the payload digest of what was removed stays. Whoever has a copy can tell by it what was there.
    pub keep_digests: bool,
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// Records replaced.
    pub records: u64,
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes_after: u64,
}

/// A file was not redacted. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The file or its replacement cannot be read or written.
    #[error("cannot rewrite {}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The crawl writes it.
    #[error("{} is being written; stop the crawl first", .0.display())]
    Open(PathBuf),
    /// Somebody else rewrites it.
    #[error("{} is being rewritten by another process", .0.display())]
    Busy(PathBuf),
    /// A record that shares its gzip member with others.
    #[error("{}: the record at offset {offset} shares its gzip member with others; write the file anew with a member per record first", file.display())]
    Shared {
        /// The file.
        file: PathBuf,
        /// Where the member begins.
        offset: u64,
    },
    /// A record of a kind that cannot have a tombstone.
    #[error("{}: the record at offset {offset} is {kind} and cannot be redacted", file.display())]
    Kind {
        /// The file.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What it is.
        kind: String,
    },
    /// The file changed since it was surveyed.
    #[error("{} has changed since it was looked through; begin again", .0.display())]
    Changed(PathBuf),
    /// The file, or what was to take its place, cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Stands for a text among millions.
type Key = [u8; 16];

/// What is remembered of each record while all files are looked through.
struct Note {
    file: usize,
    extent: Extent,
    id: Option<Key>,
    /// Target URI and date, as revisits name them.
    place: Option<Key>,
    concurrent_to: Vec<Key>,
    /// What a revisit refers to: a record, or a URI at a time, or where it names neither, a payload.
    refers_to: Vec<Key>,
    refers_to_payload: Option<Key>,
    payload: Option<Key>,
    is_revisit: bool,
    why: Option<Why>,
}

/// Looks through files for what must go when the `chosen` records go.
pub fn survey(
    files: &[PathBuf],
    mut chosen: impl FnMut(&Headers) -> bool,
) -> Result<Survey, ReadError> {
    let mut survey = Survey::default();
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
                        note.why = Some(Why::Chosen);
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
        // In a shared member the first record is not the one meant; `redact` refuses those anyway.
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

/// Makes go what must go with those that go already, until nothing more is found.
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
                (_, true) => Some(Why::Revisit),
                (true, false) => Some(Why::SameCapture),
                (false, false) => None,
            };
            more |= note.why.is_some();
        }
        if !more {
            return;
        }
    }
}

/// Records that stay and hold a payload that goes elsewhere.
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

/// Revisits that go, and what they stand for stays.
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

/// The payload digest of nothing, which half of all redirects have: no sign that two have the same content.
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

/// Replaces records of one file by tombstones. The file is written anew beside itself, read through, and put in its
/// place in one step; whatever goes wrong before leaves it as it was.
pub fn redact(
    file: &Path,
    targets: &[Target],
    tombstone: Tombstone<'_>,
) -> Result<Redacted, RedactError> {
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
        // A file system without locks: then nobody can hold one.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let done = rewrite(file, &mut to, targets, tombstone).and_then(|redacted| {
        let before = records_of(file)?;
        let after = records_of(&draft)?;
        if before != after {
            return Err(RedactError::Changed(file.to_owned()));
        }
        fs::rename(&draft, file).map_err(fault)?;
        // A bare name has no directory in it.
        let absolute = std::path::absolute(file).map_err(fault)?;
        sync_directory_of(&absolute).map_err(fault)?;
        Ok(redacted)
    });
    if done.is_err() {
        // What is wrong has been said already.
        let _ = fs::remove_file(&draft);
    }
    done
}

/// Where a file is written anew.
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
) -> Result<Redacted, RedactError> {
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
    Ok(Redacted {
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

/// How many records can be read in a file, and how many places cannot.
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

/// How the record that is replaced was packed.
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
            // Without the file's dictionary: a frame that names none is unpacked without.
            Packing::Zstd => zstd::bulk::compress(record, zstd::DEFAULT_COMPRESSION_LEVEL),
        }
    }
}

impl Tombstone<'_> {
    /// The whole record that takes the place of another.
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
            // A revisit would lead to a payload that may be elsewhere.
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
            // An invented request would be one that nobody made, and an empty one of HTTP is a fault to readers.
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

/// The same in ARC, which has no place for more than the content.
fn arc_record(headers: &Headers, content: &Content) -> Vec<u8> {
    let uri = safe_uri(headers.target_uri().unwrap_or_default());
    let ip = headers.first("WARC-IP-Address").unwrap_or("0.0.0.0");
    let date = headers.date().map(timestamp14).unwrap_or_default();
    let block = &content.block;
    let length = block.len();
    format!("{uri} {ip} {date} text/plain {length}\n{block}\n").into_bytes()
}

/// What stands in a tombstone.
struct Content {
    kind: &'static str,
    content_type: &'static str,
    block: String,
    payload: Option<String>,
}

impl Survey {
    /// The files with something that must go, each once.
    pub fn files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = self.targets.iter().map(|target| &*target.file).collect();
        files.dedup();
        files
    }

    /// Whether a payload that an index of digests knows is one of those that go. By URI and second, which is what all such
    /// indexes have: a payload too many that is forgotten is stored once more, nothing else.
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

    /// What was damaged, in the words of the check.
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
