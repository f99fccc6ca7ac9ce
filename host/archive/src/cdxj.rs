//! CDXJ, the index for the look-ups of replay tools: one line for each capture, `key timestamp {"url":…}`, sorted by bytes.
//!
//! The choice of records and fields follows cdxj-indexer: responses, revisits, and resources and metadata other than
//! `application/warc-fields`. [`index`] lists the records of a file; [`crate::Writer`] lists them while it writes them. Responses
//! to requests other than GET have method and body of the request in their key (`request_query.rs`), as with cdxj-indexer's
//! `--post-append`.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use opilio_uri::cdx_key;
use serde::{Deserialize, Serialize};

use crate::arc::timestamp14;
use crate::digest::{Algorithm, Hasher};
use crate::headers::Headers;
use crate::http_head::{HEAD_BYTES, HttpHead, bare, head_of, http_head};
use crate::http_payload::{BodyPart, HttpPayload};
use crate::name::OPEN_SUFFIX;
use crate::reader::{Extent, ReadError, Reader, StoredRecord};
use crate::record::{Block, Record, RecordKind, WARC_FIELDS};
use crate::request_query::{BODY_UNINDEXED, REQUEST_BYTES_MAX, RequestQuery};

/// Maximum bytes of a line of an index: more than two URIs of the largest size.
pub(crate) const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Suffix of an index until it is complete.
const DRAFT_SUFFIX: &str = ".draft";

/// Media type of revisits in indexes, by which readers recognise them.
const REVISIT: &str = "warc/revisit";

/// A capture in the index. Its `Display` form is its line without the line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdxjEntry {
    /// The key of the look-up: `org,example)/path`.
    pub key: String,
    /// The time in fourteen digits.
    pub timestamp: String,
    /// The JSON part of the line.
    pub capture: CdxjCapture,
}

/// The JSON part of a line. Numbers are texts, as other indexers write them; real numbers are read too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdxjCapture {
    /// The URI as fetched.
    pub url: String,
    /// The type that the server sent, without parameters; `warc/revisit` for a revisit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub status: Option<String>,
    /// The labelled digest of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Bytes of the record in its file.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub length: Option<String>,
    /// The offset of the record in the file.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub offset: Option<String>,
    /// The file, without its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The body of the request as a query, if its method is in the key.
    #[serde(rename = "requestBody", skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
    /// The method of the request, if it is in the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// An invalid line of an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a line of a CDXJ index: {0:?}")]
pub struct CdxjError(pub String);

/// The entries of a file's records, sorted.
///
/// # Errors
/// The file cannot be read, or is damaged. Entries before the damage are not returned: repair the file first.
pub fn index(file: impl AsRef<Path>) -> Result<Vec<CdxjEntry>, ReadError> {
    let file = file.as_ref();
    index_as(
        file,
        &file.file_name().unwrap_or_default().to_string_lossy(),
    )
}

/// The entries of a file's records, sorted, under another file name.
pub(crate) fn index_as(file: &Path, name: &str) -> Result<Vec<CdxjEntry>, ReadError> {
    let mut reader = Reader::open(file)?;
    let mut entries: Vec<CdxjEntry> = Vec::new();
    // The previous record, which may be the other half of an exchange.
    let mut last: Option<Exchanged> = None;
    while let Some(mut record) = reader.next_record()? {
        let about = Exchanged::of(record.headers());
        let is_of_last = last.as_ref().is_some_and(|last| about.is_of(last));
        let is_asked = about.is_request && record.headers().first(BODY_UNINDEXED).is_none();
        let query = match is_asked {
            true => RequestQuery::of(&record.block(REQUEST_BYTES_MAX)?),
            false => None,
        };
        let listed = entry_of_stored_record(&mut record)?;
        let extent = record.finish()?;
        let is_listed = listed.is_some();
        entries.extend(listed.map(|entry| entry.at(extent, name)));
        if let Some(last) = last.filter(|_| is_of_last) {
            // A response may be before its request, or after it.
            let sent = query.as_ref().filter(|_| last.is_listed);
            let sent = sent.or(last.query.as_ref().filter(|_| is_listed));
            if let Some((sent, entry)) = sent.zip(entries.last_mut()) {
                entry.append(sent);
            }
        }
        last = Some(Exchanged {
            is_listed,
            query,
            ..about
        });
    }
    sort(&mut entries);
    Ok(entries)
}

/// A record that may be one half of an exchange.
struct Exchanged {
    is_request: bool,
    is_response: bool,
    id: Option<String>,
    concurrent_to: Option<String>,
    uri: Option<String>,
    /// `true` if the index lists the record.
    is_listed: bool,
    /// For a request: the text that is appended to the key of its response.
    query: Option<RequestQuery>,
}

impl Exchanged {
    fn of(headers: &Headers) -> Exchanged {
        let text = |name: &str| headers.first(name).map(str::to_owned);
        Exchanged {
            is_request: headers.kind() == "request",
            is_response: matches!(headers.kind(), "response" | "revisit"),
            id: text("WARC-Record-ID"),
            concurrent_to: text("WARC-Concurrent-To"),
            uri: headers.target_uri().map(str::to_owned),
            is_listed: false,
            query: None,
        }
    }

    /// Returns `true` if this record and the previous one are the two halves of an exchange.
    fn is_of(&self, last: &Exchanged) -> bool {
        let are_halves = self.is_request && last.is_response || self.is_response && last.is_request;
        let names = |of: &Exchanged, other: &Exchanged| {
            of.concurrent_to.is_some() && of.concurrent_to == other.id
        };
        are_halves && self.uri == last.uri && (names(self, last) || names(last, self))
    }
}

/// The path of a file's index: beside it, with `.cdxj` in place of its own endings.
pub fn index_path(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = [".gz", ".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(&name);
    let stem = [".warc", ".arc"]
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .unwrap_or(stem);
    file.with_file_name(format!("{stem}.cdxj"))
}

/// The path of a file's index while the file is being written. Its lines are in the order of the records.
pub(crate) fn open_index_path(file: &Path) -> PathBuf {
    let mut path = index_path(file).into_os_string();
    path.push(OPEN_SUFFIX);
    path.into()
}

/// Writes sorted entries to a file ([`index_path`]). The file is either complete or unchanged.
///
/// # Errors
/// The file or the draft beside it cannot be written.
pub fn write(path: &Path, entries: &[CdxjEntry]) -> io::Result<()> {
    let mut draft = path.to_owned().into_os_string();
    draft.push(DRAFT_SUFFIX);
    let mut out = io::BufWriter::new(File::create(&draft)?);
    for entry in entries {
        writeln!(out, "{entry}")?;
    }
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    fs::rename(draft, path)
}

/// Sorts entries by the bytes of their lines.
pub(crate) fn sort(entries: &mut [CdxjEntry]) {
    entries.sort_by_cached_key(ToString::to_string);
}

/// Reads the entries of an index in plain text. Blank lines and headers (lines that begin with `!` or a blank) are skipped.
/// For a packed index pass its unpacked stream.
pub fn read(
    source: impl BufRead,
) -> impl Iterator<Item = io::Result<Result<CdxjEntry, CdxjError>>> {
    let mut source = source;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        loop {
            line.clear();
            let got = io::Read::take(&mut source, LINE_BYTES_MAX).read_until(b'\n', &mut line);
            match got {
                Err(e) => return Some(Err(e)),
                Ok(0) => return None,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']);
            if !text.is_empty() && !text.starts_with(['!', ' ']) {
                return Some(Ok(text.parse()));
            }
        }
    })
}

/// Returns the entry of a record that is about to be written, without its place. `capture` has all records of its capture.
pub(crate) fn entry_of_written_record(record: &Record, capture: &[Record]) -> Option<CdxjEntry> {
    let kind = record.kind.name();
    if !is_listed(kind, &record.content_type) {
        return None;
    }
    let head = head_of(record);
    let digest = record.payload_digest.map(|digest| digest.to_string());
    let mut entry = entry(
        kind,
        &crate::fields::safe_uri(&record.target_uri),
        timestamp14(record.date),
        &record.content_type,
        head,
        digest,
    );
    if let Some(query) = request_query(record, capture) {
        entry.append(&query);
    }
    Some(entry)
}

/// Returns the part of a response's key that comes from its request, which is among the records of its capture.
fn request_query(record: &Record, capture: &[Record]) -> Option<RequestQuery> {
    let is_response = matches!(record.kind, RecordKind::Response | RecordKind::Revisit(_));
    let request = capture.iter().find(|other| {
        matches!(other.kind, RecordKind::Request) && other.concurrent_to.contains(&record.id)
    });
    let request = request.filter(|_| is_response)?;
    let is_unindexed = request.extra.iter().any(|(name, _)| name == BODY_UNINDEXED);
    match &request.block {
        Block::Bytes(bytes) if !is_unindexed => RequestQuery::of(bytes),
        _ => None,
    }
}

fn entry_of_stored_record(record: &mut StoredRecord<'_>) -> Result<Option<CdxjEntry>, ReadError> {
    let headers = record.headers().clone();
    let content_type = headers.first("Content-Type").unwrap_or_default().to_owned();
    let (Some(uri), Some(date)) = (headers.target_uri(), headers.date()) else {
        return Ok(None);
    };
    if !is_listed(headers.kind(), &content_type) {
        return Ok(None);
    }
    let is_http = content_type
        .to_ascii_lowercase()
        .starts_with("application/http");
    let digest = headers.first("WARC-Payload-Digest").map(str::to_owned);
    let (head, computed) = read_block(record, &headers, is_http, digest.is_none())?;
    let head = if is_http { head } else { HttpHead::default() };
    Ok(Some(entry(
        headers.kind(),
        uri,
        timestamp14(date),
        &content_type,
        head,
        digest.or(computed),
    )))
}

/// Reads the HTTP head, and computes the payload digest if a payload exists and its digest is not stated.
fn read_block(
    record: &mut StoredRecord<'_>,
    headers: &Headers,
    is_http: bool,
    wants_digest: bool,
) -> Result<(HttpHead, Option<String>), ReadError> {
    let start = record.block(HEAD_BYTES)?;
    let head = http_head(&start);
    if !wants_digest || headers.kind() == "revisit" {
        return Ok((head, None));
    }
    let mut message = HttpPayload::new();
    let mut hasher = Hasher::new(Algorithm::Sha1);
    let mut feed = |bytes: &[u8]| match is_http {
        true => message.feed(bytes, |part| {
            if let BodyPart::Payload(bytes) = part {
                hasher.update(bytes);
            }
        }),
        false => hasher.update(bytes),
    };
    feed(&start);
    let mut buffer = vec![0; HEAD_BYTES];
    loop {
        match record.read_block(&mut buffer)? {
            0 => break,
            got => feed(&buffer[..got]),
        }
    }
    Ok((head, Some(hasher.finish().to_string())))
}

fn is_listed(kind: &str, content_type: &str) -> bool {
    match kind {
        "response" | "revisit" => true,
        "resource" | "metadata" => content_type != WARC_FIELDS,
        _ => false,
    }
}

fn entry(
    kind: &str,
    uri: &str,
    timestamp: String,
    content_type: &str,
    head: HttpHead,
    digest: Option<String>,
) -> CdxjEntry {
    let mime = match kind {
        "revisit" => Some(REVISIT.to_owned()),
        "response" => head.media_type,
        _ => Some(bare(content_type)),
    };
    CdxjEntry {
        // A blank would end the key, so it is encoded.
        key: cdx_key(uri).replace(' ', "%20"),
        timestamp,
        capture: CdxjCapture {
            url: uri.to_owned(),
            mime: mime.filter(|mime| !mime.is_empty()),
            status: head.status,
            digest,
            ..CdxjCapture::default()
        },
    }
}

impl CdxjEntry {
    /// Adds method and body of the request to the key.
    fn append(&mut self, query: &RequestQuery) {
        let uri = query.appended_to(&self.capture.url);
        self.key = cdx_key(&uri).replace(' ', "%20");
        self.capture.request_body = Some(query.body.clone());
        self.capture.method = Some(query.method.clone());
    }

    /// Sets offset, length and file name of the record.
    pub(crate) fn at(mut self, extent: Extent, file: &str) -> CdxjEntry {
        self.capture.length = Some(extent.length.to_string());
        self.capture.offset = Some(extent.offset.to_string());
        self.capture.filename = Some(file.to_owned());
        self
    }
}

impl CdxjCapture {
    /// Returns `true` if the payload is in another record.
    pub fn is_revisit(&self) -> bool {
        self.mime.as_deref() == Some(REVISIT)
    }
}

impl fmt::Display for CdxjEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capture = serde_json::to_string(&self.capture).map_err(|_| fmt::Error)?;
        write!(f, "{} {} {capture}", self.key, self.timestamp)
    }
}

impl FromStr for CdxjEntry {
    type Err = CdxjError;

    fn from_str(line: &str) -> Result<CdxjEntry, CdxjError> {
        let shown = || CdxjError(line.chars().take(100).collect());
        let mut words = line.splitn(3, ' ');
        let (Some(key), Some(timestamp), Some(capture)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(shown());
        };
        let digits = timestamp.bytes().all(|b| b.is_ascii_digit());
        if key.is_empty() || !digits || !(4..=17).contains(&timestamp.len()) {
            return Err(shown());
        }
        Ok(CdxjEntry {
            key: key.to_owned(),
            timestamp: timestamp.to_owned(),
            capture: serde_json::from_str(capture).map_err(|_| shown())?,
        })
    }
}

/// Deserialises a text, or a number as text.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrNumber {
        Text(String),
        Number(u64),
        Signed(i64),
    }
    let value = Option::<TextOrNumber>::deserialize(deserializer)?;
    Ok(value.map(|value| match value {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
        TextOrNumber::Signed(number) => number.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_tools_are_read() {
        let numbers = r#"org,example)/ 20220106150849 {"url":"https://example.org/","mime":"image/png","status":200,"digest":"sha-256:a8","offset":283,"length":2269,"filename":"a.warc.gz","languages":["en"]}"#;
        let entry: CdxjEntry = numbers.parse().unwrap();
        assert_eq!(entry.capture.status.as_deref(), Some("200"));
        assert_eq!(entry.capture.offset.as_deref(), Some("283"));
        let text = "!OpenWayback-CDXJ 1.0\n\n".to_owned() + numbers + "\nnonsense\n";
        let read: Vec<_> = read(text.as_bytes()).map(|line| line.unwrap()).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], Ok(entry));
        assert_eq!(read[1], Err(CdxjError("nonsense".to_owned())));
    }

    #[test]
    fn an_index_is_beside_its_file() {
        let check = |file: &str, index: &str| {
            assert_eq!(index_path(Path::new(file)), Path::new(index));
        };
        check("/a/b.warc.gz", "/a/b.cdxj");
        check("b.warc.zst", "b.cdxj");
        check("b.arc", "b.cdxj");
        check("b", "b.cdxj");
    }
}
