//! Comparison of the archive with `crawl.log`. Each capture has one line, identified by its URI and the millisecond in which its
//! fetch began. A process that dies between the two writes leaves a capture without a line. The next start writes the line from the
//! archive's records, with the annotation `recovered`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use opilio_archive::{
    BodyPart, Fields, Headers, HttpPayload, ReadError, Reader, RecordId, WriterConfig, archives,
};
use opilio_fetch::ResponseHead;

use crate::records::IN_PASSING;
use opilio_job::crawl_log::{CrawlLogLine, ExtraInfo, timestamp17};
use opilio_job::logs::{self, JobLogs, read};
use opilio_job::process_record::{ProcessEndKind, ProcessRecord};
use opilio_visit::status;

/// Annotation of a line that was made from the archive's records.
pub(crate) const RECOVERED: &str = "recovered";

/// Period before the last update of a process record. A file that was finished in this period may contain a capture without a line.
/// The period is far longer than the calls of wait evaluators take.
const LATE: Duration = Duration::from_secs(10 * 60);

/// Maximum time by which the clock may have been set back between a fetch and its line.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// Longest metadata record that is read for a line, in bytes.
const METADATA_BYTES_MAX: usize = 16 << 20;

/// Maximum of records of a capture after its first.
const FURTHER_RECORDS: usize = 3;

/// Identity that a capture and its line have in common. Texts are replaced by hashes: among a hundred million captures, an equal
/// hash of two captures occurs once in thousands of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaptureKey(u64);

/// The first record of a capture.
pub struct FoundCapture {
    /// Identity of the capture and of its line.
    pub key: CaptureKey,
    /// URI of the capture.
    pub uri: String,
    /// Start of its fetch.
    pub date: Timestamp,
    /// Offset of the record in its file.
    pub offset: u64,
}

/// Parts of a `crawl.log` line that are compared.
pub struct LoggedLine<'l> {
    /// URI of the line.
    pub uri: &'l str,
    /// Fetch status of the line.
    pub status: i32,
    /// Start of the fetch, in 17 digits.
    begun: Option<&'l str>,
    annotations: &'l str,
}

impl CaptureKey {
    /// Makes the key. `digits` are 17 for a WARC, which has milliseconds, and 14 for an ARC.
    fn of(uri: &str, digits: &str) -> CaptureKey {
        let mut hasher = DefaultHasher::new();
        (uri, digits).hash(&mut hasher);
        CaptureKey(hasher.finish())
    }
}

impl FoundCapture {
    /// Returns the capture that begins with this record. Returns `None` for other records: requests, descriptions of the crawl,
    /// and fetches in passing.
    fn of(headers: &Headers, offset: u64) -> Option<FoundCapture> {
        let (uri, date) = (headers.target_uri()?, headers.date()?);
        let is_first = match headers.kind() {
            "response" | "revisit" => true,
            "resource" => !uri.starts_with("metadata:"),
            "metadata" => headers.first("WARC-Concurrent-To").is_none(),
            _ => false,
        };
        if !is_first || headers.first(IN_PASSING).is_some() {
            return None;
        }
        let digits = timestamp17(date);
        let precision = if headers.is_arc() { 14 } else { 17 };
        Some(FoundCapture {
            key: CaptureKey::of(uri, &digits[..precision]),
            uri: uri.to_owned(),
            date,
            offset,
        })
    }
}

impl<'l> LoggedLine<'l> {
    /// Parses a line; `None` if it is not a whole line of this log.
    pub fn read(text: &'l str) -> Option<LoggedLine<'l>> {
        let mut columns = text.split_ascii_whitespace();
        let _logged = columns.next()?;
        let status = columns.next()?.parse().ok()?;
        let _size = columns.next()?;
        let uri = columns.next()?;
        let fetch = columns.nth(4)?;
        let annotations = columns.nth(2)?;
        let begun = fetch.split('+').next().filter(|begun| begun.len() == 17);
        Some(LoggedLine {
            uri,
            status,
            begun,
            annotations,
        })
    }

    /// Returns the keys for a capture in a WARC and for one in an ARC.
    pub fn keys(&self) -> Option<[CaptureKey; 2]> {
        let begun = self.begun?;
        Some([begun, begun.get(..14)?].map(|digits| CaptureKey::of(self.uri, digits)))
    }

    /// Returns `true` if the line means that the archive has a record of the visit. For unchanged content, the profile may disable
    /// records.
    pub fn claims_record(&self) -> bool {
        let has = |beginning: &str| {
            let mut words = self.annotations.split(',');
            words.any(|word| word.starts_with(beginning))
        };
        let is_kept = has("warcRevisit:") || !has("unchanged");
        self.status > 0 && self.begun.is_some() && is_kept && !has("unwritten")
    }
}

/// Calls `each` with each capture of an archive file, which may be open. Damaged parts are skipped.
///
/// # Errors
/// The file cannot be read.
pub fn captures(file: &Path, mut each: impl FnMut(FoundCapture)) -> Result<(), ReadError> {
    let mut reader = Reader::open(file)?;
    loop {
        let capture = match reader.next_record() {
            Ok(None) => return Ok(()),
            Ok(Some(record)) => {
                let capture = FoundCapture::of(record.headers(), record.offset());
                record.finish().map(|_| capture)
            }
            Err(problem) => Err(problem),
        };
        match capture {
            Ok(capture) => capture.into_iter().for_each(&mut each),
            Err(ReadError::Damaged { .. }) => {
                if reader.resync()?.is_none() {
                    return Ok(());
                }
            }
            Err(problem) => return Err(problem),
        }
    }
}

/// Calls `each` with each line of `crawl.log` and its rotated files that was written then or later.
///
/// # Errors
/// A log cannot be read.
pub fn lines(
    directory: &Path,
    since: Option<Timestamp>,
    mut each: impl FnMut(&str),
) -> io::Result<()> {
    for file in log_files(directory)? {
        let mut log = match File::open(&file) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => continue,
            log => log?,
        };
        if since.is_some() {
            let first = read::page(
                &file,
                &read::LogQuery {
                    since,
                    lines: Some(1),
                    ..read::LogQuery::default()
                },
            )?;
            log.seek(SeekFrom::Start(first.start))?;
        }
        let mut log = BufReader::new(log);
        let mut line = Vec::new();
        loop {
            line.clear();
            log.read_until(b'\n', &mut line)?;
            let Some(whole) = line.strip_suffix(b"\n") else {
                break;
            };
            each(&String::from_utf8_lossy(whole));
        }
    }
    Ok(())
}

/// Returns the files of `crawl.log`, the oldest first.
fn log_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let current = directory.join(logs::CRAWL);
    let mut files = read::rotated(&current)?;
    files.push(current);
    Ok(files)
}

/// Returns the time of the oldest line in a log whose older files may have been removed.
///
/// # Errors
/// A log cannot be read.
pub fn oldest_line(directory: &Path) -> io::Result<Option<Timestamp>> {
    for file in log_files(directory)? {
        let wanted = read::LogQuery {
            lines: Some(1),
            ..read::LogQuery::default()
        };
        let page = match read::page(&file, &wanted) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => continue,
            page => page?,
        };
        let first = page.lines.first();
        let logged = first.and_then(|line| line.text.split(' ').next()?.parse().ok());
        if logged.is_some() {
            return Ok(logged);
        }
    }
    Ok(None)
}

/// Archive files in which captures may have no line.
pub(crate) struct UnloggedCaptures<'u> {
    pub files: Vec<PathBuf>,
    /// Folder of the log.
    pub logs: &'u Path,
    /// Returns `true` for a file that certainly belongs to the job. Any other file counts as another job's if the log has none of
    /// its captures.
    pub of_job: &'u dyn Fn(&Path) -> bool,
    /// `true` if lines have a thirteenth column.
    pub with_extra: bool,
}

impl UnloggedCaptures<'_> {
    /// Writes the missing lines. Returns their number.
    ///
    /// # Errors
    /// A file or a log cannot be read, or the log cannot be written.
    pub(crate) fn complete(&self, logs: &JobLogs) -> io::Result<usize> {
        if self.files.is_empty() {
            return Ok(0);
        }
        let since = match logs.was_rotated() {
            true => oldest_line(self.logs)?,
            false => None,
        };
        let mut count = 0;
        for (file, offset) in self.captures(since)? {
            let line = line_of(&file, offset, self.with_extra).map_err(io::Error::other)?;
            if let Some(line) = line {
                logs.crawl(&line)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the captures without a line, by file and offset. `since` is the time of the oldest line in a log whose older files
    /// may have been removed. Older captures are not compared.
    fn captures(&self, since: Option<Timestamp>) -> io::Result<Vec<(PathBuf, u64)>> {
        let mut open: HashMap<CaptureKey, Vec<(usize, u64)>> = HashMap::new();
        let mut oldest: Option<Timestamp> = None;
        for (number, file) in self.files.iter().enumerate() {
            let read = captures(file, |capture| {
                if since.is_none_or(|since| capture.date >= since) {
                    oldest = Some(oldest.map_or(capture.date, |oldest| oldest.min(capture.date)));
                    let places = open.entry(capture.key).or_default();
                    places.push((number, capture.offset));
                }
            });
            read.map_err(io::Error::other)?;
        }
        let Some(oldest) = oldest else {
            return Ok(Vec::new());
        };
        let mut is_known: Vec<bool> = self.files.iter().map(|file| (self.of_job)(file)).collect();
        lines(self.logs, Some(oldest - CLOCK_SLACK), |text| {
            let keys = LoggedLine::read(text).and_then(|line| line.keys());
            for key in keys.into_iter().flatten() {
                if let Some(places) = open.get_mut(&key).filter(|places| !places.is_empty()) {
                    let (number, _) = places.remove(0);
                    is_known[number] = true;
                    break;
                }
            }
        })?;
        let mut left: Vec<(usize, u64)> = open.into_values().flatten().collect();
        left.retain(|(number, _)| is_known[*number]);
        left.sort_unstable();
        let name = |(number, offset): (usize, u64)| (self.files[number].clone(), offset);
        Ok(left.into_iter().map(name).collect())
    }
}

/// Makes the line of the capture at this offset from its records. Returns `None` if there is no record.
///
/// # Errors
/// The record cannot be read.
pub fn line_of(
    file: &Path,
    offset: u64,
    with_extra: bool,
) -> Result<Option<CrawlLogLine>, ReadError> {
    let mut reader = Reader::open_at(file, offset)?;
    let Some(mut record) = reader.next_record()? else {
        return Ok(None);
    };
    let headers = record.headers().clone();
    let (Some(uri), Some(date)) = (headers.target_uri(), headers.date()) else {
        return Ok(None);
    };
    let content_type = headers.first("Content-Type").unwrap_or_default();
    let is_http = content_type.starts_with("application/http");
    let (mut message, mut payload_bytes, mut block_bytes) = (HttpPayload::new(), 0, 0);
    let mut block = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let piece = match record.read_block(&mut buffer)? {
            0 => break,
            got => &buffer[..got],
        };
        block_bytes += piece.len() as u64;
        match (is_http, headers.kind()) {
            (true, _) => message.feed(piece, |part| {
                if let BodyPart::Payload(bytes) = part {
                    payload_bytes += bytes.len() as u64;
                }
            }),
            (false, "metadata") if block.len() < METADATA_BYTES_MAX => block.extend(piece),
            (false, _) => payload_bytes += piece.len() as u64,
        }
    }
    record.finish()?;
    let record_fields = match headers.kind() {
        "metadata" => Fields::parse(&block),
        _ => fields_behind(&mut reader, headers.record_id()),
    };
    let field = |name: &str| {
        let mut fields = record_fields.iter();
        fields
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    };
    let head = ResponseHead::of_recording(message.head());
    let is_dns = uri.starts_with("dns:");
    let status = match &head {
        Some(head) => i32::from(head.status),
        None if is_dns => status::DNS_OK,
        None => {
            let mut statuses = record_fields
                .iter()
                .filter(|(name, _)| name.ends_with("-status"));
            statuses
                .next()
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(0)
        }
    };
    let media_type = match &head {
        Some(head) => head.media_type(),
        None if headers.kind() == "resource" => Some(content_type.to_owned()),
        None => None,
    };
    let digest = headers.first("WARC-Payload-Digest");
    let of_block = || headers.first("WARC-Block-Digest").filter(|_| is_dns);
    let mut annotations: Vec<String> = field("annotations")
        .map(|words| words.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    annotations.push(RECOVERED.to_owned());
    let took = field("fetchTimeMs").and_then(|took| took.parse().ok());
    let file_name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(Some(CrawlLogLine {
        logged: Timestamp::now(),
        status,
        // A revisit record contains only the headers.
        size: matches!(headers.kind(), "response" | "resource").then_some(payload_bytes),
        uri: uri.to_owned(),
        hop_path: match field("hopsFromSeed") {
            Some(hops) => hops.to_owned(),
            None if is_dns => "P".to_owned(),
            None => String::new(),
        },
        via: field("via").map(str::to_owned),
        media_type,
        worker: 0,
        fetch: Some((date, Duration::from_millis(took.unwrap_or(0)))),
        digest: digest.or_else(of_block).map(str::to_owned),
        source: field("sourceTag").map(str::to_owned),
        annotations,
        extra: with_extra.then(|| ExtraInfo {
            received: Some(block_bytes),
            file: Some(file_name.into_owned()),
            offset: Some(offset),
        }),
    }))
}

/// Returns the fields of the metadata record after the first record of a capture; empty if the process was killed before it was
/// written.
fn fields_behind(reader: &mut Reader, of: Option<RecordId>) -> Fields {
    for _ in 0..FURTHER_RECORDS {
        let Ok(Some(mut record)) = reader.next_record() else {
            break;
        };
        let headers = record.headers();
        let belongs_to = headers.first("WARC-Concurrent-To");
        let belongs = of.is_some() && belongs_to.and_then(|id| id.parse().ok()) == of;
        let are_fields = headers.first("Content-Type") == Some(opilio_archive::WARC_FIELDS);
        if headers.kind() == "metadata" && belongs && are_fields {
            return record
                .block(METADATA_BYTES_MAX)
                .map(|block| Fields::parse(&block))
                .unwrap_or_default();
        }
        if record.finish().is_err() {
            break;
        }
    }
    Fields::new()
}

/// Returns the archive files that may contain captures without a line: files that a process left open, or was writing when it last
/// updated its process record. After a normal end only files left open are returned.
///
/// # Errors
/// A directory of the archive cannot be read.
pub(crate) fn suspects(
    before: Option<&ProcessRecord>,
    repaired: impl Iterator<Item = PathBuf>,
    config: &WriterConfig,
) -> Result<Vec<PathBuf>, opilio_archive::WriteError> {
    let mut suspects: Vec<PathBuf> = repaired.collect();
    let in_order = |process_record: &ProcessRecord| {
        let ended = process_record.ended.as_ref();
        ended.is_some_and(|ended| ended.how != ProcessEndKind::Halted)
    };
    if let Some(process_record) = before.filter(|process_record| !in_order(process_record)) {
        let since = SystemTime::from(process_record.at - LATE);
        for (file, _) in archives(config)? {
            let modified = fs::metadata(&file).and_then(|file| file.modified());
            if modified.is_ok_and(|modified| modified >= since) {
                suspects.push(file);
            }
        }
    }
    suspects.sort();
    suspects.dedup();
    Ok(suspects)
}

#[cfg(test)]
mod tests {
    use opilio_archive::{Compression, Digest, Record, WarcInfo, Writer};

    use super::*;

    const PAGE: &str = "http://a.org/page";

    /// Writes the records of some captures to a file and closes it.
    fn archive(directory: &Path, captures: &[Vec<Record>]) -> PathBuf {
        let config = WriterConfig {
            compression: Compression::Gzip(6),
            index: true,
            ..WriterConfig::new(directory)
        };
        let (mut writer, _) = Writer::open(config, WarcInfo::new("opilio")).unwrap();
        for capture in captures {
            writer.write(capture, Timestamp::UNIX_EPOCH).unwrap();
        }
        writer.close().unwrap().unwrap()
    }

    /// Makes the records of a page, as a crawl writes them.
    fn page(at: Timestamp) -> Vec<Record> {
        let id = RecordId::random();
        let message = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        let response = Record {
            payload_digest: Some(Digest::sha1(b"hello")),
            ..Record::response(id, at, PAGE, message.as_bytes().to_vec().into())
        };
        let request = Record {
            concurrent_to: vec![id],
            ..Record::request(RecordId::random(), at, PAGE, b"GET".to_vec().into())
        };
        let mut fields = Fields::new();
        fields
            .push("via", "http://a.org/")
            .push("hopsFromSeed", "L");
        fields
            .push("fetchTimeMs", "42")
            .push("annotations", "2t,x:y");
        let metadata = Record::metadata(RecordId::random(), at, PAGE, id, &fields);
        vec![response, request, metadata]
    }

    fn in_passing(at: Timestamp) -> Vec<Record> {
        let block = b"203.0.113.1".to_vec();
        let record = Record::resource(
            RecordId::random(),
            at,
            "dns:a.org",
            "text/dns",
            block.into(),
        );
        crate::records::in_passing(vec![record], &opilio_uri::Uri::parse(PAGE).unwrap())
    }

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    /// Writes the missing lines, and returns their number.
    fn complete(logs: &JobLogs, directory: &Path, files: &[PathBuf], with_extra: bool) -> usize {
        let unlogged = UnloggedCaptures {
            files: files.to_vec(),
            logs: directory,
            of_job: &|_| true,
            with_extra,
        };
        unlogged.complete(logs).unwrap()
    }

    fn logs(directory: &Path) -> JobLogs {
        let settings = opilio_profile::Logs::default();
        JobLogs::open(directory, &settings, std::sync::Arc::default()).unwrap()
    }

    #[test]
    fn a_missing_log_line_is_written_from_the_records_of_the_capture() {
        let home = tempfile::tempdir().unwrap();
        let captures = [page(at(1_000)), in_passing(at(1_500)), page(at(2_007))];
        let files = [archive(home.path(), &captures)];
        let logs = logs(home.path());
        let mut offset = 0;
        super::captures(&files[0], |capture| {
            if capture.date == at(1_000) {
                offset = capture.offset;
            }
        })
        .unwrap();
        let known = line_of(&files[0], offset, false).unwrap().unwrap();
        logs.crawl(&known).unwrap();

        assert_eq!(complete(&logs, home.path(), &files, true), 1);
        let text = fs::read_to_string(home.path().join(logs::CRAWL)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let sha1 = Digest::sha1(b"hello");
        let expected = format!(
            "   200          5 {PAGE} L http://a.org/ text/html #000 19700101000002007+42 {sha1} - 2t,x:y,recovered {{"
        );
        assert!(lines[1][24..].starts_with(&expected), "{}", lines[1]);
        // A capture with a line gets no second line.
        assert_eq!(complete(&logs, home.path(), &files, true), 0);
        let lines = text.lines().map(|line| LoggedLine::read(line).unwrap());
        assert!(lines.into_iter().all(|line| line.claims_record()));
    }

    #[test]
    fn a_capture_with_only_its_first_record_gets_a_line_with_its_fields() {
        let home = tempfile::tempdir().unwrap();
        let first = page(at(1_000)).into_iter().take(1).collect();
        let files = [archive(home.path(), &[first])];
        let logs = logs(home.path());
        assert_eq!(complete(&logs, home.path(), &files, false), 1);
        let text = fs::read_to_string(home.path().join(logs::CRAWL)).unwrap();
        assert!(
            text.contains(" 200          5 http://a.org/page - - text/html"),
            "{text}"
        );
        assert!(text.ends_with(" - recovered\n"), "{text}");
    }

    #[test]
    fn a_file_without_any_logged_capture_gets_no_lines() {
        let home = tempfile::tempdir().unwrap();
        let files = vec![archive(home.path(), &[page(at(1_000))])];
        let logs = logs(home.path());
        let unlogged = UnloggedCaptures {
            files,
            logs: home.path(),
            of_job: &|_| false,
            with_extra: false,
        };
        assert_eq!(unlogged.complete(&logs).unwrap(), 0);
    }

    #[test]
    fn captures_older_than_the_remaining_log_files_get_no_lines() {
        let home = tempfile::tempdir().unwrap();
        let now = at(Timestamp::now().as_millisecond());
        let old = now - Duration::from_secs(3600);
        let files = [archive(home.path(), &[page(old), page(now + LATE)])];
        let logs = logs(home.path());
        let other = CrawlLogLine {
            uri: "http://b.org/".to_owned(),
            ..line_of_any()
        };
        logs.crawl(&other).unwrap();
        for file in logs.rotate().unwrap() {
            fs::remove_file(home.path().join(file)).unwrap();
        }
        logs.crawl(&other).unwrap();
        assert_eq!(complete(&logs, home.path(), &files, false), 1);
    }

    fn line_of_any() -> CrawlLogLine {
        CrawlLogLine {
            logged: Timestamp::now(),
            status: -2,
            size: None,
            uri: String::new(),
            hop_path: String::new(),
            via: None,
            media_type: None,
            worker: 1,
            fetch: None,
            digest: None,
            source: None,
            annotations: Vec::new(),
            extra: None,
        }
    }

    #[test]
    fn a_line_claims_a_record_only_if_a_record_was_written() {
        let line = |status: i32, fetch: &str, annotations: &str| {
            let text = format!(
                "2026-11-20T12:34:56.789Z {status} 4 http://a.org/ - - text/html #001 {fetch} sha1:X - {annotations}"
            );
            LoggedLine::read(&text).unwrap().claims_record()
        };
        let fetch = "20261120123455001+42";
        assert!(line(200, fetch, "-") && line(404, fetch, "3t"));
        assert!(line(
            304,
            fetch,
            "unchanged,duplicate:server-not-modified,warcRevisit:notModified"
        ));
        assert!(!line(200, fetch, "unwritten:noarchive") && !line(200, fetch, "unchanged"));
        assert!(!line(503, "-", "3t") && !line(-4, fetch, "-"));
    }
}
