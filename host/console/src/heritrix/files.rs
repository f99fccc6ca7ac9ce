//! Files of a job: its configuration, profile, logs, reports and archive. No other file is shown. Only configurations can be
//! written, and only before a job was made of them.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::mpsc;

use super::drafts::{BYTES_MAX, is_editable};
use crate::api::jobs::blocking;
use crate::api::logs::places;
use crate::daemon::Daemon;
use crate::input::{Place, Whole};
use crate::problem::Problem;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Maximum chunks that wait for the client.
const CHUNKS_MAX: usize = 4;

/// Endings of visible files in a job's own folder.
const SHOWN: [&str; 5] = [".cxml", ".xml", ".txt", ".toml", ".log"];

/// Endings of archive files and their indexes.
const ARCHIVED: [&str; 6] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".cdxj"];

/// Lists the visible files, one name a line.
pub(super) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Place(name): Place<String>,
) -> Result<Response, Problem> {
    let case = daemon.case(&name).await?;
    let names = blocking(move || {
        let mut names = Vec::new();
        let draft = case.draft.map(|draft| draft.folder);
        let job = case.known.map(|known| known.directory);
        for folder in draft.iter().chain(&job) {
            names.extend(shown_in(folder, "", is_shown)?);
        }
        if let Some(job) = &job {
            for folder in folders(job)? {
                let before = format!("{}/", folder.called);
                names.extend(shown_in(&folder.at, &before, folder.shows)?);
            }
        }
        names.sort();
        names.dedup();
        Ok(names.join("\n") + "\n")
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, names.await?).into_response())
}

fn shown_in(
    folder: &Path,
    before: &str,
    is_shown: fn(&str) -> bool,
) -> Result<Vec<String>, Problem> {
    let unreadable = |problem: io::Error| {
        Problem::failure(format!("cannot list {}: {problem}", folder.display()))
    };
    let entries = match fs::read_dir(folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_file && is_shown(&name) {
            names.push(format!("{before}{name}"));
        }
    }
    Ok(names)
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|end| name.ends_with(end))
}

/// Whether a file is one of an archive, finished or not, or the index of one.
fn is_archived(name: &str) -> bool {
    let name = name.strip_suffix(".open").unwrap_or(name);
    ARCHIVED.iter().any(|end| name.ends_with(end))
}

/// A visible folder of a job.
struct Seen {
    /// Its name in this interface.
    called: &'static str,
    at: PathBuf,
    /// Test for visible file names: a folder of archive files may have files that are not the job's.
    shows: fn(&str) -> bool,
}

fn folders(job: &Path) -> Result<Vec<Seen>, Problem> {
    let places = places(job)?;
    let own = |called, at| Seen {
        called,
        at,
        shows: |_| true,
    };
    let mut folders = vec![
        own("logs", places.logs),
        own("reports", job.join("reports")),
    ];
    folders.extend(places.archives.into_iter().map(|at| Seen {
        called: "warcs",
        at,
        shows: is_archived,
    }));
    Ok(folders)
}

/// Sends a file of the job.
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    Place((name, path)): Place<(String, String)>,
) -> Result<Response, Problem> {
    let case = daemon.case(&name).await?;
    let (file, length) = blocking(move || {
        // Heritrix has a folder for each launch; a job here has only one.
        let path = path.strip_prefix("latest/").unwrap_or(&path);
        let found = match path.split('/').collect::<Vec<_>>()[..] {
            [file] if is_shown(file) => {
                let folders = [
                    case.draft.map(|draft| draft.folder),
                    case.known.map(|known| known.directory),
                ];
                folders
                    .into_iter()
                    .flatten()
                    .find_map(|folder| within(&folder, file))
            }
            [folder, file] => match &case.known {
                Some(known) => folders(&known.directory)?
                    .into_iter()
                    .filter(|seen| seen.called == folder && (seen.shows)(file))
                    .find_map(|seen| within(&seen.at, file)),
                None => None,
            },
            _ => None,
        };
        found.ok_or_else(|| {
            Problem::not_found(format!("{path:?} not found; jobdir/ lists the files"))
        })
    })
    .await?;
    respond(
        file,
        length,
        headers
            .get(header::RANGE)
            .and_then(|range| range.to_str().ok()),
    )
}

/// Opens a file directly in this folder.
fn within(folder: &Path, name: &str) -> Option<(File, u64)> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let path = folder.join(name);
    let metadata = is_plain.then(|| path.symlink_metadata().ok())??;
    if !metadata.is_file() {
        return None;
    }
    Some((File::open(path).ok()?, metadata.len()))
}

/// Sends a file by its path on this machine, if it belongs to a job.
pub(super) async fn any_path(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    Place(path): Place<String>,
) -> Result<Response, Problem> {
    let outside = || {
        Problem::forbidden(format!(
            "only files of jobs, which are in {}, can be read",
            daemon.folder.path().display()
        ))
    };
    let path = format!("/{}", path.trim_start_matches('/'));
    let within = Path::new(&path)
        .strip_prefix(daemon.folder.path())
        .map_err(|_| outside())?;
    let within = within.to_str().ok_or_else(outside)?;
    let within = within.strip_prefix(".opilio/heritrix/").unwrap_or(within);
    let (name, rest) = within.split_once('/').ok_or_else(outside)?;
    let place = Place((name.to_owned(), rest.to_owned()));
    show(State(daemon.clone()), headers, place).await
}

/// Writes a file of a configuration, before a job was made of it.
pub(super) async fn put(
    State(daemon): State<Arc<Daemon>>,
    Place((name, file)): Place<(String, String)>,
    Whole(body): Whole,
) -> Result<StatusCode, Problem> {
    let case = daemon.case(&name).await?;
    if case.known.is_some() {
        return Err(Problem::conflict(
            "the configuration cannot be changed, because a job was built from it; tear the job down if it has not started, or copy it",
        ));
    }
    if !is_editable(&file) {
        return Err(Problem::forbidden(
            "configurations are text files (.cxml, .xml, .txt) and not in a folder",
        ));
    }
    if body.len() as u64 > BYTES_MAX {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the file is larger than {BYTES_MAX} bytes, the maximum for a configuration"),
        ));
    }
    let draft = case
        .draft
        .ok_or_else(|| Problem::not_found("its configuration no longer exists"))?;
    blocking(move || {
        let path = draft.folder.join(&file);
        crate::own_file::write(&path, &body)
            .map_err(|problem| Problem::failure(format!("cannot write {file}: {problem}")))
    })
    .await?;
    Ok(StatusCode::OK)
}

/// Sends the whole file, or the requested range (RFC 9110 §14).
fn respond(file: File, length: u64, range: Option<&str>) -> Result<Response, Problem> {
    let Some((from, to)) = range.and_then(|range| part(range, length)) else {
        if length == 0 || range.is_none_or(|range| !range.starts_with("bytes=")) {
            return Ok(response(StatusCode::OK, file, 0, length, None));
        }
        return Err(Problem::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            format!("the file has {length} bytes"),
        ));
    };
    let told = format!("bytes {from}-{}/{length}", to - 1);
    let status = StatusCode::PARTIAL_CONTENT;
    Ok(response(status, file, from, to, Some(told)))
}

/// Parses a range into start and end, the end exclusive.
fn part(range: &str, length: u64) -> Option<(u64, u64)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (from, to) {
        ("", last) => (length.saturating_sub(last.parse().ok()?), length),
        (from, "") => (from.parse().ok()?, length),
        (from, to) => (
            from.parse().ok()?,
            to.parse::<u64>().ok()?.saturating_add(1).min(length),
        ),
    };
    (from < to).then_some((from, to))
}

fn response(status: StatusCode, file: File, from: u64, to: u64, range: Option<String>) -> Response {
    let mut response = (status, Body::from_stream(Chunks::read(file, from, to))).into_response();
    let headers = response.headers_mut();
    let kind = "application/octet-stream";
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_LENGTH, (to - from).into());
    let bytes = header::HeaderValue::from_static("bytes");
    headers.insert(header::ACCEPT_RANGES, bytes);
    if let Some(range) = range.and_then(|range| range.parse().ok()) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    response
}

/// A part of a file, read while it is sent: archive files are large.
struct Chunks(mpsc::Receiver<io::Result<Bytes>>);

impl Chunks {
    fn read(mut file: File, from: u64, to: u64) -> Chunks {
        let (send, receive) = mpsc::channel(CHUNKS_MAX);
        tokio::task::spawn_blocking(move || {
            let mut left = to - from;
            let mut sought = file.seek(SeekFrom::Start(from)).map(drop);
            while left > 0 {
                let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
                let read = std::mem::replace(&mut sought, Ok(()))
                    .and_then(|()| file.read_exact(&mut chunk));
                left -= chunk.len() as u64;
                let is_over = read.is_err();
                // The client may have disconnected.
                if send.blocking_send(read.map(|()| chunk.into())).is_err() || is_over {
                    return;
                }
            }
        });
        Chunks(receive)
    }
}

impl futures_core::Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        for (range, expected) in [
            ("bytes=0-", Some((0, 10))),
            ("bytes=3-5", Some((3, 6))),
            ("bytes=3-99", Some((3, 10))),
            ("bytes=-4", Some((6, 10))),
            ("bytes=10-", None),
            ("bytes=5-3", None),
            ("lines=1-2", None),
            ("bytes=a-b", None),
        ] {
            assert_eq!(part(range, 10), expected, "{range}");
        }
    }
}
