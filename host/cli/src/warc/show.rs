//! `opilio warc show`: one record, found by offset, record id or URI.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_archive::{Extent, Headers, Reader, StoredRecord};
use opilio_fetch::ResponseHead;
use serde_json::{Value, json};

use super::row::{Row, bare};
use super::{Content, archives, each_record, note, payload, row};
use crate::usage_error::UsageError;
use crate::{exit, terminal};

/// Bytes of a block read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the header and the block of the record as stored, unpacked. A URI selects its last capture; a URI with a date selects
the capture nearest to the date: http://example.org/@2026, http://example.org/@20261122010203.

Exit codes: 0 printed, 1 not found or damaged, 2 error in the command line, or a file cannot be read.")]
pub(super) struct ShowArgs {
    /// Offset, record id (urn:uuid:…), or URI, optionally with @DATE.
    #[arg(value_name = "OFFSET|ID|URI[@DATE]")]
    which: String,
    /// Archives: files, directories of archives, or jobs; for an offset, one file.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct PartArgs {
    /// Print only the headers: those of the record and those of HTTP.
    #[arg(long)]
    headers: bool,
    /// Print only the block, as stored.
    #[arg(long)]
    block: bool,
    /// Print only the payload, decoded. The payload of a revisit record is looked up in the given archives.
    #[arg(long)]
    payload: bool,
    /// Print only the payload, with its content coding (gzip).
    #[arg(long)]
    raw_payload: bool,
    /// Print one JSON object: the facts of `opilio warc ls`, and the headers of the record and of an HTTP response.
    #[arg(long)]
    json: bool,
}

/// The position of a record. Several records may share a gzip member, and an offset.
#[derive(Clone, Debug)]
struct RecordPosition {
    file: PathBuf,
    offset: u64,
    before: usize,
}

/// The record that was requested.
#[derive(Debug, PartialEq, Eq)]
enum Which {
    Offset(u64),
    Id(String),
    Uri(String, Option<Timestamp>),
}

/// Runs the command.
pub(super) fn run(args: &ShowArgs) -> Result<u8> {
    let files = archives(&args.files)?;
    let position = match Which::parse(&args.which)? {
        Which::Offset(offset) => {
            let [file] = &files[..] else {
                let problem = format!("an offset needs exactly one file, got {}", files.len());
                return Err(UsageError::new(problem).into());
            };
            RecordPosition {
                file: file.clone(),
                offset,
                before: 0,
            }
        }
        Which::Id(id) => by_id(&files, &id)?.with_context(|| format!("record {id} not found"))?,
        Which::Uri(uri, date) => by_uri(&files, &uri, date)?,
    };
    let mut reader = Reader::open_at(&position.file, position.offset)?;
    let mut record = position.record(&mut reader)?;
    if args.part.json {
        let (row, start) = Row::with_start(&mut record)?;
        let extent = record.finish()?;
        let object = as_json(&row, &start, &position.file, extent);
        terminal::outln!("{}", terminal::lines(&object.to_string()));
        return Ok(exit::OK);
    }
    let mut out = Content::to_stdout();
    if args.part.payload || args.part.raw_payload {
        write_payload(&files, &mut record, args.part.raw_payload, &mut out)?;
    } else {
        if !args.part.block {
            out.write(header_text(record.headers()).as_bytes())?;
        }
        if args.part.headers {
            let (_, start) = Row::with_start(&mut record)?;
            out.write(&http_head(&start))?;
        } else {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match record.read_block(&mut piece)? {
                    0 => break,
                    length => out.write(&piece[..length])?,
                }
            }
        }
    }
    record.finish()?;
    out.finish()?;
    Ok(exit::OK)
}

impl Which {
    fn parse(text: &str) -> Result<Which> {
        if text.bytes().all(|c| c.is_ascii_digit()) {
            return Ok(Which::Offset(row::offset(text)?));
        }
        // Records about a rendered page have its URI within their own, such as urn:view:http://example.org/.
        if bare(text).starts_with("urn:") && !text.contains("://") {
            return Ok(Which::Id(bare(text).to_owned()));
        }
        // Only a suffix that looks like a date counts: user@host has an @ as well.
        let date = text
            .rsplit_once('@')
            .filter(|(_, date)| date.starts_with(|c: char| c.is_ascii_digit()))
            .and_then(|(uri, date)| Some((uri, moment(date)?)));
        Ok(match date {
            Some((uri, date)) => Which::Uri(uri.to_owned(), Some(date)),
            None => Which::Uri(text.to_owned(), None),
        })
    }
}

/// Parses a date of any precision: a beginning of YYYYMMDDhhmmss, or of the format of `WARC-Date`.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(exact) = text.parse() {
        return Some(exact);
    }
    let known = |c: char| c.is_ascii_digit() || "-:TZ".contains(c);
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !text.chars().all(known) || digits.len() < 4 || digits.len() > 14 {
        return None;
    }
    let full = format!("{digits}{}", &"00000101000000"[digits.len()..]);
    let at = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", &full).ok()?;
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

impl RecordPosition {
    fn record<'r>(&self, reader: &'r mut Reader) -> Result<StoredRecord<'r>> {
        for _ in 0..self.before {
            if let Some(record) = reader.next_record()? {
                record.finish()?;
            }
        }
        reader
            .next_record()?
            .with_context(|| format!("{} ends before offset {}", self.file.display(), self.offset))
    }
}

/// Passes the header and the position of every record on. Damage has been reported.
fn each_position(files: &[PathBuf], mut take: impl FnMut(&Headers, RecordPosition)) -> Result<()> {
    let mut last: Option<RecordPosition> = None;
    each_record(files, |file, record| {
        let before = match &last {
            Some(last) if last.file == file && last.offset == record.offset() => last.before + 1,
            _ => 0,
        };
        let position = RecordPosition {
            file: file.to_owned(),
            offset: record.offset(),
            before,
        };
        last = Some(position.clone());
        take(record.headers(), position);
        record.finish()?;
        Ok(())
    })?;
    Ok(())
}

fn by_id(files: &[PathBuf], id: &str) -> Result<Option<RecordPosition>> {
    let mut found = None;
    each_position(files, |headers, position| {
        let this = headers.first("WARC-Record-ID").map(bare);
        if this == Some(id) && found.is_none() {
            found = Some(position);
        }
    })?;
    Ok(found)
}

/// Returns the capture of a URI: the server's response rather than the request or metadata.
fn by_uri(files: &[PathBuf], uri: &str, date: Option<Timestamp>) -> Result<RecordPosition> {
    let mut captures = 0;
    let mut best: Option<((bool, i128), RecordPosition)> = None;
    each_position(files, |headers, position| {
        if headers.target_uri() != Some(uri) {
            return;
        }
        let is_about_capture = matches!(headers.kind(), "request" | "metadata" | "warcinfo");
        captures += u64::from(!is_about_capture);
        let at = headers.date().unwrap_or(Timestamp::UNIX_EPOCH);
        let rank = match date {
            Some(date) => (at.as_nanosecond() - date.as_nanosecond()).abs(),
            None => -at.as_nanosecond(),
        };
        let rank = (is_about_capture, rank);
        if best.as_ref().is_none_or(|(known, _)| rank < *known) {
            best = Some((rank, position));
        }
    })?;
    let (_, position) = best.with_context(|| {
        format!("no record of {uri} found (`opilio warc ls --uri 'PATTERN*' FILE` lists records)")
    })?;
    if captures > 1 && date.is_none() {
        note(&format!(
            "this is the last of {captures} captures, in {} at offset {}; URI@DATE selects another",
            position.file.display(),
            position.offset
        ));
    }
    Ok(position)
}

/// Prints the payload; for a revisit record, that of the record to which it refers.
fn write_payload(
    files: &[PathBuf],
    record: &mut StoredRecord<'_>,
    raw: bool,
    out: &mut Content,
) -> Result<()> {
    if record.headers().kind() != "revisit" {
        return payload::each_piece(record, &[], raw, &mut |bytes| out.write(bytes));
    }
    let headers = record.headers().clone();
    let position = referred(files, &headers)?;
    note(&format!(
        "the record is a revisit record; its payload is from {} at offset {}",
        position.file.display(),
        position.offset
    ));
    let mut reader = Reader::open_at(&position.file, position.offset)?;
    let mut record = position.record(&mut reader)?;
    payload::each_piece(&mut record, &[], raw, &mut |bytes| out.write(bytes))?;
    record.finish()?;
    Ok(())
}

/// Returns the record to which a revisit record refers.
fn referred(files: &[PathBuf], revisit: &Headers) -> Result<RecordPosition> {
    let id = revisit.first("WARC-Refers-To").map(bare);
    let uri = revisit.first("WARC-Refers-To-Target-URI").map(bare);
    let date: Option<Timestamp> = revisit
        .first("WARC-Refers-To-Date")
        .and_then(|date| date.parse().ok());
    ensure!(
        id.is_some() || (uri.is_some() && date.is_some()),
        "the revisit record does not name the record it refers to"
    );
    let mut found = None;
    each_position(files, |headers, position| {
        let by_id = id.is_some() && headers.first("WARC-Record-ID").map(bare) == id;
        let by_uri = uri.is_some()
            && date.is_some()
            && headers.target_uri() == uri
            && headers.date() == date
            && matches!(headers.kind(), "response" | "resource");
        if (by_id || by_uri) && found.is_none() {
            found = Some(position);
        }
    })?;
    found.with_context(|| {
        let what = id.or(uri).unwrap_or_default();
        format!("the revisit record refers to {what}, which is not in the given archives; pass the archive with it, too")
    })
}

/// Returns a record as a JSON object, without its block. `start` is the beginning of the block.
fn as_json(row: &Row, start: &[u8], file: &Path, extent: Extent) -> Value {
    let header = |name: &str, value: &str| json!({ "name": name, "value": value });
    let headers = row.headers.iter();
    let headers: Vec<Value> = headers.map(|(name, value)| header(name, value)).collect();
    let http = ResponseHead::of_recording(&http_head(start)).map(|head| {
        let headers = head.headers.iter();
        let headers: Vec<Value> = headers.map(|(name, value)| header(name, value)).collect();
        json!({ "version": head.version, "status": head.status, "reason": head.reason, "headers": headers })
    });
    let mut object = row.as_json(file, extent);
    object["headers"] = json!(headers);
    object["http"] = json!(http);
    object
}

fn header_text(headers: &Headers) -> String {
    let mut text = format!("{}\r\n", headers.version());
    for (name, value) in headers.iter() {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text
}

/// Returns the part of the beginning of a block that belongs to the header of a message.
fn http_head(start: &[u8]) -> Vec<u8> {
    let mut machine = opilio_archive::HttpPayload::new();
    machine.feed(start, |_| {});
    machine.head().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Which) {
        assert_eq!(Which::parse(text).ok(), Some(expected));
    }

    fn at(text: &str) -> Option<Timestamp> {
        text.parse().ok()
    }

    #[test]
    fn the_form_of_the_argument_selects_offset_id_or_uri() {
        check("1234", Which::Offset(1234));
        check("<urn:uuid:1>", Which::Id("urn:uuid:1".into()));
        check("http://a/", Which::Uri("http://a/".into(), None));
        check(
            "urn:view:http://a/@2026",
            Which::Uri("urn:view:http://a/".into(), at("2026-01-01T00:00:00Z")),
        );
        check("http://u@a/", Which::Uri("http://u@a/".into(), None));
        check(
            "http://u@a/@2026",
            Which::Uri("http://u@a/".into(), at("2026-01-01T00:00:00Z")),
        );
        check(
            "http://a/@20260203040506",
            Which::Uri("http://a/".into(), at("2026-02-03T04:05:06Z")),
        );
        check(
            "http://a/@2026-02-03T04:05:06.789Z",
            Which::Uri("http://a/".into(), at("2026-02-03T04:05:06.789Z")),
        );
        check(
            "http://a/@2026x",
            Which::Uri("http://a/@2026x".into(), None),
        );
    }
}
