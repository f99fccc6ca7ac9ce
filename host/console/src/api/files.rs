//! Files of a job, to list and to download: archive files and their indexes, packages, logs, reports and recordings. Also one index
//! and one list of pages for the whole archive.
//!
//! No other file is shown. Names are looked up in these folders only, and links are not followed.

use std::collections::{BTreeMap, HashMap};
use std::fs::FileType;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use opilio_archive::wacz::{PackagePage as ArchivedPage, pages_header};
use opilio_archive::{CdxjEntry, MergedIndex, is_archive};
use opilio_control::is_reachable;
use opilio_crawl::{HandedOver, handed_over, only_in_store};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tower_http::services::ServeFile;
use utoipa::{IntoParams, ToSchema};

use super::job_folders::{RECORDINGS, names, places, plain_file};
use super::jobs::blocking;
use super::{Shared, checked_limit, page};
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// Bytes of an index that are sent at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Maximum chunks that wait for the client.
const CHUNKS_MAX: usize = 4;

/// Kind of a job's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileKind {
    /// A WARC or ARC file.
    Archive,
    /// The index (CDXJ) of an archive file.
    Index,
    /// A WACZ package in the job's folder, or in a folder of its archive.
    Wacz,
    /// A log.
    Log,
    /// A report: from the end of the last process, or from an observer.
    Report,
    /// A recorded plugin call.
    Recording,
}

/// Selection of files.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesWanted {
    /// Select files of this kind.
    kind: Option<FileKind>,
    /// Start after this file: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of files.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Files of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobFiles {
    /// Files of this page, by kind and name.
    files: Vec<JobFile>,
    /// Number of files on all pages.
    total: usize,
    /// Start of the next page; not set on the last page.
    after: Option<String>,
}

/// File of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobFile {
    /// Kind of the file.
    kind: FileKind,
    /// Name of the file. The report of an observer has the observer's name and `/` before it.
    name: String,
    /// Size in bytes.
    size: u64,
    /// Time of the last write. Of a file that is only in the store, the time at which it was stored.
    modified: Timestamp,
    /// `true` if the crawl is writing the file. A download has the bytes that were written so far.
    is_open: bool,
    /// `sha256:` and hexadecimal digits. Known for files that were handed over and have not changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// URL of the verified copy in `archive.store`. Not set if the file is not there, or has changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_at: Option<String>,
    /// `true` if the file is in the job. An archive file that is only in the store cannot be downloaded here.
    is_local: bool,
}

/// Content of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes the body for OpenAPI")]
pub(crate) struct Binary(Vec<u8>);

/// A folder with files of a job.
pub(crate) struct FilesFolder {
    path: PathBuf,
    /// Beginning of the names of its files.
    prefix: String,
    /// Kind of a file by its name, if the file is shown: a folder of archive files may have files that are not the job's.
    kind_of: fn(&str) -> Option<FileKind>,
}

/// The folders of a job's files.
pub(crate) fn folders(job: &Path) -> Result<Vec<FilesFolder>, Problem> {
    let places = places(job)?;
    let folder = |path: PathBuf, kind_of| FilesFolder {
        path,
        prefix: String::new(),
        kind_of,
    };
    let report = |_: &str| Some(FileKind::Report);
    let reports = job.join("reports");
    let mut folders = vec![
        folder(places.logs, |_| Some(FileKind::Log)),
        folder(job.to_owned(), packaged),
        folder(job.join(RECORDINGS), recorded),
    ];
    for observer in names(&reports, FileType::is_dir)? {
        folders.push(FilesFolder {
            path: reports.join(&observer),
            prefix: format!("{observer}/"),
            kind_of: report,
        });
    }
    folders.push(folder(reports, report));
    folders.extend(
        places
            .archives
            .into_iter()
            .map(|path| folder(path, archived)),
    );
    Ok(folders)
}

fn archived(name: &str) -> Option<FileKind> {
    let finished = name.strip_suffix(".open").unwrap_or(name);
    match finished.ends_with(".cdxj") {
        true => Some(FileKind::Index),
        false if is_archive(finished) => Some(FileKind::Archive),
        false => packaged(name),
    }
}

fn recorded(name: &str) -> Option<FileKind> {
    name.ends_with(".json").then_some(FileKind::Recording)
}

fn packaged(name: &str) -> Option<FileKind> {
    name.ends_with(".wacz").then_some(FileKind::Wacz)
}

impl FilesFolder {
    /// The files in the folder, with the names that they are shown under.
    pub(crate) fn files(&self) -> Result<impl Iterator<Item = (FileKind, String)>, Problem> {
        let names = names(&self.path, FileType::is_file)?.into_iter();
        Ok(names
            .filter_map(|name| Some(((self.kind_of)(&name)?, format!("{}{name}", self.prefix)))))
    }

    /// A file directly in this folder, if it is shown.
    pub(crate) fn find(&self, name: &str) -> Option<(FileKind, PathBuf)> {
        let name = name.strip_prefix(&self.prefix)?;
        Some(((self.kind_of)(name)?, plain_file(&self.path, name)?))
    }
}

/// Lists the files of a job: archive files, indexes, packages, logs, reports and recorded plugin calls.
#[utoipa::path(get, path = "/jobs/{job}/files", operation_id = "list_files", tag = "files", params(("job" = String, Path, description = "Name of the job"), FilesWanted), responses((status = 200, body = JobFiles)))]
pub(crate) async fn list(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Params(FilesWanted { kind, after, limit }): Params<FilesWanted>,
) -> Result<Json<JobFiles>, Problem> {
    let directory = daemon.directory(&job)?;
    let limit = usize::try_from(checked_limit(limit)?).unwrap_or(usize::MAX);
    let after = after.map(|after| position(&after)).transpose()?;
    let files = blocking(move || {
        let mut files = all(&directory)?;
        for moved in moved_files(&directory)? {
            let path = moved.path(&directory);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let key = (FileKind::Archive, name.into_owned());
            files.entry(key).or_insert(path);
        }
        files.retain(|(of, _), _| kind.is_none_or(|kind| kind == *of));
        let total = files.len();
        let mut left = match &after {
            Some(after) => files.split_off(after),
            None => files,
        };
        if let Some(first) = left
            .first_entry()
            .filter(|it| Some(it.key()) == after.as_ref())
        {
            first.remove();
        }
        let has_more = left.len() > limit;
        let shown: Vec<_> = left.into_iter().take(limit).collect();
        let last = shown.last().filter(|_| has_more);
        let after = last.map(|((kind, name), _)| format!("{}/{name}", word(*kind)));
        let is_running = is_reachable(&directory);
        let taken = handed_over(&directory).map_err(unreadable_record)?;
        // If a file has two entries, the later one is about the store.
        let taken = taken
            .into_iter()
            .map(|taken| (taken.path(&directory), taken));
        let taken: HashMap<PathBuf, HandedOver> = taken.collect();
        let files = shown.into_iter().filter_map(|((kind, name), path)| {
            let taken = taken.get(&path);
            let Ok(metadata) = path.symlink_metadata() else {
                // Other missing files were finished, rotated or moved after their folder was read.
                return JobFile::only_stored(kind, name, taken?);
            };
            let written = metadata.modified().ok()?;
            let taken = taken.filter(|taken| taken.is_of(metadata.len(), written));
            let is_log = |path: &Path| path.extension().is_some_and(|it| it == "log");
            Some(JobFile {
                kind,
                size: metadata.len(),
                modified: Timestamp::try_from(written).ok()?,
                is_open: name.ends_with(".open")
                    || is_running && kind == FileKind::Log && is_log(&path),
                digest: taken.map(|taken| taken.digest.clone()),
                stored_at: taken.and_then(|taken| taken.url.clone()),
                is_local: true,
                name,
            })
        });
        Ok(JobFiles {
            files: files.collect(),
            total,
            after,
        })
    });
    Ok(Json(files.await?))
}

/// Returns all files of a job. Of two files with the same name, the one of the first folder is listed, because it is the one that a
/// download sends.
fn all(job: &Path) -> Result<BTreeMap<(FileKind, String), PathBuf>, Problem> {
    let mut files = BTreeMap::new();
    for folder in folders(job)? {
        for (kind, name) in folder.files()? {
            let path = folder.path.join(&name[folder.prefix.len()..]);
            files.entry((kind, name)).or_insert(path);
        }
    }
    Ok(files)
}

/// Parses the position in the list from the `after` of a request.
fn position(after: &str) -> Result<(FileKind, String), Problem> {
    let position = after.split_once('/').and_then(|(kind, name)| {
        let kind = serde_json::from_value(kind.into()).ok()?;
        Some((kind, name.to_owned()))
    });
    position.ok_or_else(|| {
        Problem::not_found(format!(
            "invalid cursor {after:?}; pass the `after` of an earlier page"
        ))
    })
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Archive => "archive",
        FileKind::Index => "index",
        FileKind::Wacz => "wacz",
        FileKind::Log => "log",
        FileKind::Report => "report",
        FileKind::Recording => "recording",
    }
}

impl JobFile {
    /// A file that is in the store and not in the job.
    fn only_stored(kind: FileKind, name: String, stored: &HandedOver) -> Option<JobFile> {
        Some(JobFile {
            kind,
            name,
            size: stored.size,
            modified: stored.at,
            is_open: false,
            digest: Some(stored.digest.clone()),
            stored_at: Some(stored.url.clone()?),
            is_local: false,
        })
    }
}

/// The archive files of a job that are only in the store.
fn moved_files(job: &Path) -> Result<Vec<HandedOver>, Problem> {
    only_in_store(job).map_err(unreadable_record)
}

fn unreadable_record(problem: io::Error) -> Problem {
    Problem::failure(format!("cannot read handed-over.jsonl: {problem}"))
}

/// Returns a file of a job, or a part of it. For a file that is being written, returns the bytes that were written so far. To
/// continue a download, send the `ETag` of the earlier answer in `If-Range`: the part is sent only if the earlier bytes are still
/// the same.
#[utoipa::path(get, path = "/jobs/{job}/files/{kind}/{name}", operation_id = "download_file", tag = "files", params(("job" = String, Path, description = "Name of the job"), ("kind" = FileKind, Path, description = "Kind of the file"), ("name" = String, Path, description = "Name of the file, as in the list; `/` is written as `%2F`"), ("range" = Option<String>, Header, description = "Part of the file", pattern = "^bytes=([0-9]{1,15}-[0-9]{0,15}|-[0-9]{1,15})$"), ("if-range" = Option<String>, Header, description = "Send the part only if the file has this `ETag`, else the whole file", pattern = "^\"[!#-~]*\"$")), responses((status = 200, description = "The file", content_type = "application/octet-stream", body = inline(Binary)), (status = 206, description = "The part of the file", content_type = "application/octet-stream", body = inline(Binary)), (status = 304, description = "The file has the `ETag` of `If-None-Match`")))]
pub(crate) async fn download(
    State(daemon): Shared,
    PathParams((job, kind, name)): PathParams<(String, FileKind, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let directory = daemon.directory(&job)?;
    let wanted = name.clone();
    let path = blocking(move || {
        let folders = folders(&directory)?.into_iter();
        let mut found = folders.filter_map(|folder| folder.find(&wanted));
        let found = found.find(|(of, _)| *of == kind);
        match found {
            Some((_, path)) => Ok(path),
            None => Err(not_here(&job, &directory, kind, &wanted)?),
        }
    });
    let mut response = send(&path.await?, &headers).await?;
    let attachment = attachment(name.rsplit('/').next().unwrap_or_default());
    response
        .headers_mut()
        .insert(header::CONTENT_DISPOSITION, attachment);
    Ok(response)
}

/// Returns the reason for which a file cannot be downloaded.
fn not_here(job: &str, directory: &Path, kind: FileKind, name: &str) -> Result<Problem, Problem> {
    let is_it = |file: &&HandedOver| Path::new(&file.file).file_name() == Some(name.as_ref());
    if let Some(HandedOver { url: Some(url), .. }) = moved_files(directory)?.iter().find(is_it) {
        return Ok(Problem::not_found(format!(
            "{name} was deleted from the job after it was stored; download it from {url}"
        )));
    }
    let kind = word(kind);
    Ok(Problem::not_found(format!(
        "{kind} {name:?} not found; GET {}/jobs/{job}/files?kind={kind} lists the files",
        super::BASE
    )))
}

/// Tells browsers to save the answer under this name.
fn attachment(name: &str) -> HeaderValue {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-._~".contains(c) => c,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    let value = format!("attachment; filename=\"{name}\"");
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment"))
}

/// Sends a file, or the part that the headers ask for (RFC 9110 §13 and §14).
pub(crate) async fn send(path: &Path, headers: &HeaderMap) -> Result<Response, Problem> {
    let mut headers = headers.clone();
    // ServeFile does not support this header.
    let version = headers.remove(header::IF_RANGE);
    let mut response = serve(path, &headers).await?;
    if let Some(version) = version
        && headers.remove(header::RANGE).is_some()
        // A modification time is not exact enough to distinguish versions.
        && response.headers().get(header::ETAG) != Some(&version)
    {
        response = serve(path, &headers).await?;
    }
    let problem = match response.status() {
        StatusCode::RANGE_NOT_SATISFIABLE => {
            "the file has no such range; Content-Range has its size"
        }
        StatusCode::PRECONDITION_FAILED => "the file has changed; request it again",
        _ => return Ok(response),
    };
    let mut refused = Problem::new(response.status(), problem).into_response();
    if let Some(size) = response.headers_mut().remove(header::CONTENT_RANGE) {
        refused.headers_mut().insert(header::CONTENT_RANGE, size);
    }
    Ok(refused)
}

async fn serve(path: &Path, headers: &HeaderMap) -> Result<Response, Problem> {
    let mut request = Request::new(Body::empty());
    *request.headers_mut() = headers.clone();
    let mut file = ServeFile::new(path).ignore_multi_range_requests(true);
    let served = file.try_call(request).await.map_err(|problem| {
        let message = format!("cannot read {}: {problem}", path.display());
        match problem.kind() {
            io::ErrorKind::NotFound => Problem::not_found(message),
            _ => Problem::failure(message),
        }
    });
    let mut response = served?.map(Body::new);
    if let header::Entry::Occupied(mut kind) = response.headers_mut().entry(header::CONTENT_TYPE) {
        // Browsers must not interpret the file as a page of this daemon.
        kind.insert(HeaderValue::from_static("application/octet-stream"));
    }
    Ok(response)
}

/// Returns one index of the whole archive of a job, in CDXJ: the sorted lines of all indexes, also of files that are being
/// written.
#[utoipa::path(get, path = "/jobs/{job}/cdxj", operation_id = "download_cdxj", tag = "files", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, description = "The index", content_type = "text/plain", body = String)))]
pub(crate) async fn cdxj(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Response, Problem> {
    let index = merged(daemon.directory(&job)?).await?;
    let body = streamed_body(|out| index.each_line(|line| writeln!(out, "{line}")));
    Ok(as_download(body.await?, &format!("{job}.cdxj")))
}

/// Returns the list of pages of a job (`pages.jsonl` in json-pages-1.0, as in WACZ files): captures of HTML documents with
/// status 200. It is made of the indexes, which have no titles; `opilio warc pages` adds them.
#[utoipa::path(get, path = "/jobs/{job}/pages", operation_id = "download_pages", tag = "files", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, description = "The pages, one JSON object a line", content_type = "text/plain", body = String)))]
pub(crate) async fn pages(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Response, Problem> {
    let index = merged(daemon.directory(&job)?).await?;
    let body = streamed_body(|out| {
        writeln!(out, "{}", pages_header("pages", "Pages"))?;
        index.each_line(|line| {
            let entry = line.parse::<CdxjEntry>().ok();
            match entry.as_ref().and_then(ArchivedPage::of) {
                Some(page) => writeln!(out, "{page}"),
                None => Ok(()),
            }
        })
    });
    Ok(as_download(body.await?, &format!("{job}-pages.jsonl")))
}

/// Returns the indexes of all archive files of a job. Fails if a file has no index, because captures would be missing.
async fn merged(job: PathBuf) -> Result<MergedIndex, Problem> {
    blocking(move || {
        let mut files = all(&job)?;
        files.retain(|(kind, _), _| *kind == FileKind::Archive);
        let (mut index, total) = (MergedIndex::new(&job), files.len());
        for moved in moved_files(&job)? {
            index.add_index_of(&moved.path(&job));
        }
        files.retain(|_, archive| !index.add_index_of(archive));
        match files.first_key_value() {
            None => Ok(index),
            Some(((_, name), _)) => Err(Problem::conflict(format!(
                "{} of {total} archive files have no index, such as {name}; `opilio warc index --beside JOB` writes the indexes",
                files.len()
            ))),
        }
    })
    .await
}

fn as_download(body: Body, name: &str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, attachment(name)),
    ];
    (headers, body).into_response()
}

/// Returns a body that a separate thread writes while it is sent. An error before its first bytes is answered with a problem
/// document; a later one aborts the answer.
async fn streamed_body(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Result<Body, Problem> {
    let (send, mut chunks) = mpsc::channel(CHUNKS_MAX);
    tokio::task::spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(CHUNK_BYTES, ChunkSender(send));
        let done = write(&mut out).and_then(|()| out.flush());
        // An error after the client has disconnected is ignored.
        if let (Err(problem), Ok(ChunkSender(send))) = (done, out.into_inner()) {
            let _ = send.blocking_send(Err(problem));
        }
    });
    let first = match chunks.recv().await {
        Some(Err(problem)) => return Err(Problem::failure(problem.to_string())),
        first => first,
    };
    Ok(Body::from_stream(Chunks { first, chunks }))
}

/// The writer's end of a body.
struct ChunkSender(mpsc::Sender<io::Result<Bytes>>);

impl Write for ChunkSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = Ok(Bytes::copy_from_slice(bytes));
        // The client may have disconnected.
        let sent = self.0.blocking_send(chunk);
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sender's end of a body.
struct Chunks {
    first: Option<io::Result<Bytes>>,
    chunks: mpsc::Receiver<io::Result<Bytes>>,
}

impl futures_core::Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.chunks.poll_recv(context),
        }
    }
}
