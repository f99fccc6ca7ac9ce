//! Lists the captures of a URI, and replays one in a sandbox, with the payload as archived. The payload may be hostile and is sent
//! under the daemon's own host name. So its scripts do not run, and no other resource is loaded.
//!
//! The frontier only has the place of the last version. Earlier versions are found in the indexes beside the archive files.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use opilio_archive::{BodyPart, Captures, CdxjEntry, HttpPayload, ReadError, Reader, captures};
use opilio_control::{Command, CommandResponse};
use opilio_crawl::{only_in_store, stays_inside};
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::files::Binary;
use super::job_folders::places;
use super::jobs::blocking;
use super::{Shared, checked_limit, page};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Maximum bytes of a payload that are shown. A longer payload is cut.
const BYTES_MAX: usize = 32 << 20;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Policy of a replayed page: no scripts, forms or origin; only inline styles and embedded images.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline' data:; img-src data:; font-src data:; media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// Content codings that browsers decode themselves.
const CODINGS: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];

/// Selection of a capture.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaptureSelector {
    /// URI of the capture. `urn:thumbnail:URI`, `urn:view:URI`, `urn:text:URI` and `urn:pageinfo:URI` select what a browser showed
    /// of a page, with the URI as the job knows it.
    #[param(format = "uri")]
    pub(super) uri: String,
    /// Time: selects the last capture at or before it. Not set: the last archived version.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(super) at: Option<Timestamp>,
}

/// Selection of captures.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// URI of the captures, or `urn:thumbnail:URI`, `urn:view:URI`, `urn:text:URI` or `urn:pageinfo:URI` for a rendered page.
    #[param(format = "uri")]
    uri: String,
    /// Start after this capture: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of captures.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Captures of a URI.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedCaptures {
    /// Captures of this page, newest first.
    captures: Vec<ListedCapture>,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
    /// Archive files without an index. Their captures are not listed. `opilio warc index --beside` writes the missing indexes.
    unlisted: Vec<String>,
}

/// A capture.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedCapture {
    /// Time of the capture, to the second.
    #[schema(value_type = String, format = DateTime)]
    date: Timestamp,
    /// HTTP status.
    status: Option<u16>,
    /// Media type as sent by the server; not set for a revisit record.
    media_type: Option<String>,
    /// Payload digest.
    digest: Option<String>,
    /// `true` if this is a revisit record: the payload is that of an earlier capture.
    is_revisit: bool,
    /// Name of the archive file.
    file: String,
    /// Offset of the record in the file.
    offset: u64,
}

/// The place of a capture.
#[derive(Clone, Debug, PartialEq)]
struct Location {
    file: String,
    offset: u64,
    /// Time of the capture; to the second if it is from an index.
    date: Timestamp,
}

/// The frontier's information on the requested URI.
pub(super) struct Known {
    /// The URI in the form known to the job.
    pub(super) uri: String,
    /// The last archived version.
    last: Option<Location>,
}

/// A payload for display.
pub(super) struct Payload {
    pub(super) headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
}

/// Returns the payload of a capture with its media type. A content security policy keeps it from running or loading anything.
#[utoipa::path(get, path = "/jobs/{job}/capture", operation_id = "show_capture", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), CaptureSelector), responses((status = 200, description = "The payload, with its own media type", content_type = "*/*", body = inline(Binary))))]
pub(crate) async fn capture(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(CaptureSelector { uri, at }): Params<CaptureSelector>,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let known = known(&daemon, &job, &caller, uri).await?;
    let payload = blocking(move || Archive::of(&directory)?.version(&known, at));
    Ok(payload.await?.into_response())
}

/// Lists the captures of a URI, as far as the archive has indexes.
#[utoipa::path(get, path = "/jobs/{job}/captures", operation_id = "list_captures", tag = "frontier", params(("job" = String, Path, description = "Name of the job"), Listed), responses((status = 200, body = ListedCaptures)))]
pub(crate) async fn list(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Params(Listed { uri, after, limit }): Params<Listed>,
) -> Result<Json<ListedCaptures>, Problem> {
    let directory = daemon.directory(&job)?;
    let limit = usize::try_from(checked_limit(limit)?).unwrap_or(usize::MAX);
    let known = known(&daemon, &job, &caller, uri).await?;
    let found = blocking(move || Archive::of(&directory)?.captures(&known.uri));
    let Captures { entries, unlisted } = found.await?;
    let mut youngest_first = entries.iter().rev();
    if let Some(after) = &after
        && !youngest_first.any(|entry| cursor(entry) == *after)
    {
        return Err(Problem::not_found(format!(
            "invalid cursor {after:?}; pass the `after` of an earlier page"
        )));
    }
    let page: Vec<&CdxjEntry> = youngest_first.by_ref().take(limit).collect();
    let more = youngest_first.next().is_some();
    let names = unlisted.iter().filter_map(|file| file.file_name());
    Ok(Json(ListedCaptures {
        captures: page
            .iter()
            .filter_map(|entry| listed_capture(entry))
            .collect(),
        after: page.last().map(|last| cursor(last)).filter(|_| more),
        unlisted: names
            .map(|name| name.to_string_lossy().into_owned())
            .collect(),
    }))
}

/// Returns a position in the list of captures that stays valid when captures are added.
fn cursor(entry: &CdxjEntry) -> String {
    let capture = &entry.capture;
    format!(
        "{}/{}/{}",
        entry.timestamp,
        capture.offset.as_deref().unwrap_or_default(),
        capture.filename.as_deref().unwrap_or_default()
    )
}

fn listed_capture(entry: &CdxjEntry) -> Option<ListedCapture> {
    let Location { file, offset, date } = location(entry)?;
    let capture = &entry.capture;
    let is_revisit = capture.is_revisit();
    Some(ListedCapture {
        date,
        status: capture.status.as_deref().and_then(|it| it.parse().ok()),
        media_type: capture.mime.clone().filter(|_| !is_revisit),
        digest: capture.digest.clone(),
        is_revisit,
        file,
        offset,
    })
}

fn location(entry: &CdxjEntry) -> Option<Location> {
    let date = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", &entry.timestamp).ok()?;
    Some(Location {
        file: entry.capture.filename.clone()?,
        offset: entry.capture.offset.as_deref()?.parse().ok()?,
        date: date.to_zoned(TimeZone::UTC).ok()?.timestamp(),
    })
}

/// Looks up the form of a URI that the job knows, and the place of its last version. A URI unknown to the job may still be
/// archived.
pub(super) async fn known(
    daemon: &Daemon,
    job: &str,
    caller: &Caller,
    asked: String,
) -> Result<Known, Problem> {
    // A record about a rendered page. The frontier does not know it.
    if asked.starts_with("urn:") {
        return Ok(Known {
            uri: asked,
            last: None,
        });
    }
    let uri = asked.clone();
    let why = daemon.one(job, caller, Command::Why { uri }, |answer| match answer {
        CommandResponse::Why(why) => Some(why.uri),
        _ => None,
    });
    let record = why.await?;
    let name = record
        .as_ref()
        .and_then(|record| record.get("uri")?.as_str());
    let normalised =
        || Uri::parse_seed(&asked).map_or_else(|_| asked.clone(), |uri| uri.as_str().to_owned());
    Ok(Known {
        uri: name.map_or_else(normalised, str::to_owned),
        last: record.as_ref().and_then(archived),
    })
}

/// The place of a capture in a URI's record.
fn archived(record: &serde_json::Value) -> Option<Location> {
    let archived = record.get("archived")?;
    Some(Location {
        file: archived.get("file")?.as_str()?.to_owned(),
        offset: archived.get("offset")?.as_u64()?,
        date: archived.get("date")?.as_str()?.parse().ok()?,
    })
}

/// The archive directories of a job.
pub(super) struct Archive {
    pub(super) directories: Vec<PathBuf>,
    /// Archive files that are only in the store, with their URLs.
    pub(super) moved: Vec<(PathBuf, String)>,
}

impl Archive {
    pub(super) fn of(job: &Path) -> Result<Archive, Problem> {
        let moved = only_in_store(job).map_err(|problem| {
            Problem::failure(format!("cannot read handed-over.jsonl: {problem}"))
        })?;
        let moved = moved.into_iter().map(|file| {
            let path = file.path(job);
            (path, file.url.unwrap_or_default())
        });
        Ok(Archive {
            directories: places(job)?.archives,
            moved: moved.collect(),
        })
    }

    /// The version of a URI at a time; the last one without a time.
    pub(super) fn version(&self, known: &Known, at: Option<Timestamp>) -> Result<Payload, Problem> {
        let location = match (at, &known.last) {
            (None, Some(last)) => last.clone(),
            (at, last) => self.at(&known.uri, at.unwrap_or(Timestamp::MAX), last.clone())?,
        };
        self.payload(&location)
    }

    /// The capture of a URI closest to a time, before or after it; `None` if no readable one is archived.
    pub(super) fn nearest(&self, uri: &str, moment: Timestamp) -> Option<Payload> {
        let found = self.captures(uri).ok()?;
        let is_whole = |entry: &&CdxjEntry| {
            let status = entry.capture.status.as_deref();
            entry.capture.is_revisit() || status.is_none_or(|status| status == "200")
        };
        let places = found.entries.iter().filter(is_whole).filter_map(location);
        let distance = |place: &Location| moment.duration_since(place.date).abs();
        let nearest = places.min_by_key(distance)?;
        self.payload(&nearest).ok()
    }

    fn captures(&self, uri: &str) -> Result<Captures, Problem> {
        let moved: Vec<_> = self.moved.iter().map(|(path, _)| path.clone()).collect();
        captures(&self.directories, &moved, uri).map_err(|problem| {
            Problem::conflict(format!("cannot read an index of the archive: {problem}"))
        })
    }

    /// The last capture at or before `at`.
    fn at(&self, uri: &str, at: Timestamp, last: Option<Location>) -> Result<Location, Problem> {
        let found = self.captures(uri)?;
        let mut places: Vec<Location> = found.entries.iter().filter_map(location).collect();
        if let Some(last) = last
            && !places.iter().any(|one| one.is_at(&last))
        {
            places.push(last);
            places.sort_by_key(|one| one.date);
        }
        let begun = |one: &&Location| one.date <= at;
        for place in places.iter().rev().filter(begun) {
            // In an index, the order of two captures within the same second is unknown.
            let is_close = at.duration_since(place.date) < SignedDuration::from_secs(1);
            if !is_close || self.date(place)? <= at {
                return Ok(place.clone());
            }
        }
        Err(Problem::not_found(
            match (places.first(), found.unlisted.len()) {
                (None, 0) => "no capture found".to_owned(),
                (Some(first), 0) => format!("the first capture is of {}", first.date),
                (_, unlisted) => format!(
                    "no index of the archive lists a capture that old; {unlisted} files have no index (`opilio warc index --beside JOB` writes them)"
                ),
            },
        ))
    }

    /// The exact time of a capture.
    fn date(&self, place: &Location) -> Result<Timestamp, Problem> {
        let (mut reader, file) = self.open(place)?;
        let record = reader.next_record().map_err(unreadable(&file))?;
        let date = record.and_then(|record| record.headers().date());
        Ok(date.unwrap_or(place.date))
    }

    fn open(&self, place: &Location) -> Result<(Reader, PathBuf), Problem> {
        let file = find(&self.directories, &place.file).ok_or_else(|| {
            let file = &place.file;
            let mut moved = self.moved.iter();
            let moved = moved.find(|(path, _)| path.file_name().is_some_and(|it| *it == **file));
            Problem::not_found(match moved {
                Some((path, url)) => format!(
                    "{file} was deleted from the job after it was stored as {url}; copy it to {} to show its captures",
                    path.parent().unwrap_or(path).display()
                ),
                None => format!(
                    "{file} is not in the archive folders of the job; it may have been handed over"
                ),
            })
        })?;
        let folder = file.parent().unwrap_or(&file);
        stays_inside(folder, &file).map_err(|problem| Problem::conflict(problem.to_string()))?;
        let reader = Reader::open_at(&file, place.offset).map_err(unreadable(&file))?;
        Ok((reader, file))
    }

    /// Reads the payload as a browser would have shown it. The payload of a revisit record is that of the capture it refers to.
    fn payload(&self, place: &Location) -> Result<Payload, Problem> {
        match self.read(place)? {
            Stored::Payload(payload) => Ok(payload.restrained(place.date)),
            Stored::Elsewhere { uri, date } => {
                let nowhere = || {
                    Problem::not_found(format!(
                        "the capture is a revisit record; its payload is in the capture of {uri} of {date}, which no index of this archive lists"
                    ))
                };
                let found = self.captures(&uri)?;
                let second = date.strftime("%Y%m%d%H%M%S").to_string();
                let same = found
                    .entries
                    .iter()
                    .filter(|entry| entry.timestamp == second && !entry.capture.is_revisit())
                    .filter_map(location);
                for original in same {
                    if self.date(&original)? != date {
                        continue;
                    }
                    if let Stored::Payload(payload) = self.read(&original)? {
                        return Ok(payload.restrained(place.date));
                    }
                }
                Err(nowhere())
            }
        }
    }

    fn read(&self, place: &Location) -> Result<Stored, Problem> {
        let (mut reader, file) = self.open(place)?;
        let record = reader.next_record().map_err(unreadable(&file))?;
        let mut record = record.ok_or_else(|| {
            Problem::conflict(format!(
                "cannot read {}: no record at {}",
                file.display(),
                place.offset
            ))
        })?;
        let headers = record.headers();
        if headers.kind() == "revisit"
            && let Some(uri) = headers
                .first("WARC-Refers-To-Target-URI")
                .or_else(|| headers.target_uri())
            && let Some(date) = headers.first("WARC-Refers-To-Date")
            && let Ok(date) = date.parse()
        {
            let uri = uri.to_owned();
            return Ok(Stored::Elsewhere { uri, date });
        }
        let is_http = headers
            .first("content-type")
            .is_some_and(|kind| kind.starts_with("application/http"));
        let content_type = headers.first("content-type").unwrap_or_default();
        let mut payload = Payload {
            headers: HeaderMap::new(),
            bytes: Vec::new(),
        };
        if !is_http && let Ok(kind) = HeaderValue::from_str(content_type) {
            payload.headers.insert(header::CONTENT_TYPE, kind);
        }
        let mut machine = HttpPayload::new();
        let mut piece = vec![0; PIECE_BYTES];
        while payload.bytes.len() < BYTES_MAX {
            let length = record.read_block(&mut piece).map_err(unreadable(&file))?;
            if length == 0 {
                break;
            }
            match is_http {
                true => machine.feed(&piece[..length], |part| {
                    if let BodyPart::Payload(bytes) = part {
                        payload.bytes.extend_from_slice(bytes);
                    }
                }),
                false => payload.bytes.extend_from_slice(&piece[..length]),
            }
        }
        if is_http {
            payload.take_headers(machine.head());
        }
        Ok(Stored::Payload(payload))
    }
}

/// The content of a record.
enum Stored {
    Payload(Payload),
    /// The document was unchanged: the payload is in another capture.
    Elsewhere {
        uri: String,
        date: Timestamp,
    },
}

fn unreadable(file: &Path) -> impl Fn(ReadError) -> Problem {
    move |problem| Problem::conflict(format!("cannot read {}: {problem}", file.display()))
}

impl Location {
    fn is_at(&self, other: &Location) -> bool {
        (&self.file, self.offset) == (&other.file, other.offset)
    }
}

/// Finds a file of the archive, finished or not.
fn find(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    // Names come from the job's own store. A name with a path would be an error there, and is not found.
    if name.contains(['/', '\\']) {
        return None;
    }
    let open = format!("{name}.open");
    let places = folders
        .iter()
        .flat_map(|folder| [folder.join(name), folder.join(&open)]);
    places.into_iter().find(|file| file.is_file())
}

impl Payload {
    /// Keeps only the headers that describe the payload.
    fn take_headers(&mut self, head: &[u8]) {
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let Ok(value) = HeaderValue::from_bytes(value) else {
                continue;
            };
            if name.eq_ignore_ascii_case(b"content-type") {
                self.headers.insert(header::CONTENT_TYPE, value);
            } else if name.eq_ignore_ascii_case(b"content-encoding") {
                let known = value.to_str().is_ok_and(|value| {
                    CODINGS
                        .iter()
                        .any(|known| value.trim().eq_ignore_ascii_case(known))
                });
                if known {
                    self.headers.insert(header::CONTENT_ENCODING, value);
                }
            }
        }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Body::from(self.bytes).into_response();
        *response.headers_mut() = self.headers;
        response
    }

    fn restrained(mut self, date: Timestamp) -> Payload {
        let headers = &mut self.headers;
        headers
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/octet-stream"));
        let policy = HeaderValue::from_static(POLICY);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if let Ok(date) = HeaderValue::try_from(date) {
            headers.insert(HeaderName::from_static("memento-datetime"), date);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_server_do_not_weaken_the_sandbox() {
        let mut payload = Payload {
            headers: HeaderMap::new(),
            bytes: Vec::new(),
        };
        payload.take_headers(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: script-src *\r\nSet-Cookie: a=b\r\nContent-Encoding: evil\r\nClear-Site-Data: *\r\n\r\n",
        );
        let payload = payload.restrained(Timestamp::UNIX_EPOCH);
        let mut names: Vec<&str> = payload.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "content-security-policy",
                "content-type",
                "memento-datetime",
                "x-content-type-options"
            ]
        );
        assert_eq!(payload.headers["content-security-policy"], POLICY);
    }

    #[test]
    fn names_with_paths_are_not_archive_files() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("secret"), "").unwrap();
        let archive = home.path().join("warcs");
        std::fs::create_dir(&archive).unwrap();
        assert_eq!(find(&[archive], "../secret"), None);
    }
}
