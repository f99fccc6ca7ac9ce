//! A capture, replayed: the payload as it was archived, in a sandbox. Nothing in it runs, and nothing else is loaded for it: it
//! comes from a hostile web and is shown under the daemon's own name.

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use opilio_archive::{HttpPayload, Part, Reader};
use opilio_crawl::Places;
use opilio_crawl::control::{Answer, Command};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shared;
use super::jobs::blocking;
use crate::access::Caller;
use crate::input::{Params, Place};
use crate::problem::Problem;

/// Longest payload that is shown; of a longer one the beginning.
const BYTES_MAX: usize = 32 << 20;

/// Read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// No script, no form, no origin; styles that stand in the page, and pictures within it.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline' data:; img-src data:; font-src data:; media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// Codings that browsers take off themselves.
const CODINGS: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];

/// Which capture.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The URI.
    uri: String,
}

/// Where a capture is.
struct Location {
    file: String,
    offset: u64,
    date: Option<Timestamp>,
}

/// A payload, as it is shown.
struct Payload {
    headers: HeaderMap,
    bytes: Vec<u8>,
}

/// The last archived version of a URI: its payload, with its media type, under a policy that lets nothing in it run or load
/// anything.
#[utoipa::path(get, path = "/jobs/{job}/capture", tag = "frontier", params(("job" = String, Path, description = "Its name"), Wanted), responses((status = 200, description = "The payload, under its own media type", content_type = "*/*", body = Vec<u8>)))]
pub(crate) async fn capture(
    State(daemon): Shared,
    caller: Caller,
    Place(job): Place<String>,
    Params(Wanted { uri }): Params<Wanted>,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let found = daemon.one(&job, &caller, Command::Why { uri }, |answer| match answer {
        Answer::Why(why) => Some(why.uri),
        _ => None,
    });
    let location = found.await?.as_ref().and_then(archived);
    let location = location.ok_or_else(|| Problem::not_found("nothing of it is archived"))?;
    let payload = blocking(move || read(&directory, &location));
    let Payload { headers, bytes } = payload.await?;
    let mut response = Body::from(bytes).into_response();
    *response.headers_mut() = headers;
    Ok(response)
}

/// The place that a URI's record names.
fn archived(record: &serde_json::Value) -> Option<Location> {
    let archived = record.get("archived")?;
    let date = archived.get("date").and_then(|date| date.as_str());
    Some(Location {
        file: archived.get("file")?.as_str()?.to_owned(),
        offset: archived.get("offset")?.as_u64()?,
        date: date.and_then(|date| date.parse().ok()),
    })
}

fn read(job: &Path, location: &Location) -> Result<Payload, Problem> {
    let places = Places::of(job).map_err(|problem| {
        Problem::conflict(format!("the job's profile cannot be read: {problem}"))
    })?;
    let file = find(&places.archives, &location.file).ok_or_else(|| {
        Problem::not_found(format!(
            "{} is not where the job writes its archive; it may have been handed over",
            location.file
        ))
    })?;
    let unreadable = |problem: &dyn std::fmt::Display| {
        Problem::conflict(format!("{} cannot be read: {problem}", file.display()))
    };
    let mut reader =
        Reader::open_at(&file, location.offset).map_err(|problem| unreadable(&problem))?;
    let record = reader
        .next_record()
        .map_err(|problem| unreadable(&problem))?;
    let mut record = record.ok_or_else(|| unreadable(&"there is no record at that place"))?;
    let is_http = record
        .headers()
        .first("content-type")
        .is_some_and(|kind| kind.starts_with("application/http"));
    let mut payload = Payload {
        headers: HeaderMap::new(),
        bytes: Vec::new(),
    };
    let mut machine = HttpPayload::new();
    let mut piece = vec![0; PIECE_BYTES];
    while payload.bytes.len() < BYTES_MAX {
        let length = record
            .read_block(&mut piece)
            .map_err(|problem| unreadable(&problem))?;
        if length == 0 {
            break;
        }
        match is_http {
            true => machine.feed(&piece[..length], |part| {
                if let Part::Payload(bytes) = part {
                    payload.bytes.extend_from_slice(bytes);
                }
            }),
            false => payload.bytes.extend_from_slice(&piece[..length]),
        }
    }
    if is_http {
        payload.take_headers(machine.head());
    }
    payload.restrain(location.date);
    Ok(payload)
}

/// A file of the archive, finished or not.
fn find(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    // Names come from the job's own store; one that leads elsewhere is a defect there, and stays without effect.
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
    /// Of what the server said only what the payload is.
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

    fn restrain(&mut self, date: Option<Timestamp>) {
        let headers = &mut self.headers;
        headers
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/octet-stream"));
        let policy = HeaderValue::from_static(POLICY);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        let date = date.and_then(|date| {
            let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            HeaderValue::try_from(date).ok()
        });
        if let Some(date) = date {
            headers.insert(HeaderName::from_static("memento-datetime"), date);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn nothing_of_what_a_server_said_loosens_the_sandbox() {
        let mut payload = Payload {
            headers: HeaderMap::new(),
            bytes: Vec::new(),
        };
        payload.take_headers(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: script-src *\r\nSet-Cookie: a=b\r\nContent-Encoding: evil\r\nClear-Site-Data: *\r\n\r\n",
        );
        payload.restrain(None);
        let mut names: Vec<&str> = payload.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "content-security-policy",
                "content-type",
                "x-content-type-options"
            ]
        );
        assert_eq!(payload.headers["content-security-policy"], POLICY);
    }

    #[test]
    fn no_name_of_a_file_leads_out_of_the_archive() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("secret"), "").unwrap();
        let archive = home.path().join("warcs");
        std::fs::create_dir(&archive).unwrap();
        assert_eq!(find(&[archive], "../secret"), None);
    }
}
