//! Files of a job: its configuration, profile, logs, reports and archive. No other file is shown. Only files of a configuration can
//! be written, and only before its job is built.

use std::fs::FileType;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::drafts::{BYTES_MAX, is_editable};
use crate::api::files::{FileKind, folders, send};
use crate::api::job_folders::{names, plain_file};
use crate::api::jobs::blocking;
use crate::daemon::Daemon;
use crate::input::{PathParams, RawBody};
use crate::problem::Problem;

/// Endings of visible files in a job's own folder.
const SHOWN: [&str; 5] = [".cxml", ".xml", ".txt", ".toml", ".log"];

/// Lists the visible files, one name a line.
pub(super) async fn list(
    State(daemon): State<Arc<Daemon>>,
    PathParams(name): PathParams<String>,
) -> Result<Response, Problem> {
    let case = daemon.case(&name).await?;
    let names = blocking(move || {
        let mut shown = Vec::new();
        let draft = case.draft.map(|draft| draft.folder);
        let job = case.known.map(|known| known.directory);
        for folder in draft.iter().chain(&job) {
            let names = names(folder, FileType::is_file)?.into_iter();
            shown.extend(names.filter(|name| is_shown(name)));
        }
        if let Some(job) = &job {
            for folder in folders(job)? {
                let files = folder.files()?;
                shown.extend(files.map(|(kind, name)| format!("{}/{name}", folder_of(kind))));
            }
        }
        shown.sort();
        shown.dedup();
        Ok(shown.join("\n") + "\n")
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, names.await?).into_response())
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|end| name.ends_with(end))
}

/// The name of a folder in this interface.
fn folder_of(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Log => "logs",
        FileKind::Report => "reports",
        FileKind::Recording => "recordings",
        FileKind::Archive | FileKind::Index | FileKind::Wacz => "warcs",
    }
}

/// Sends a file of the job.
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    PathParams((name, path)): PathParams<(String, String)>,
) -> Result<Response, Problem> {
    let case = daemon.case(&name).await?;
    let file = blocking(move || {
        // Heritrix has a folder for each launch; a job here has only one.
        let path = path.strip_prefix("latest/").unwrap_or(&path);
        let found = match (path.split_once('/'), &case.known) {
            (None, known) if is_shown(path) => {
                let draft = case.draft.iter().map(|draft| &draft.folder);
                let mut folders = draft.chain(known.iter().map(|known| &known.directory));
                folders.find_map(|folder| plain_file(folder, path))
            }
            (Some((folder, name)), Some(known)) => {
                let folders = folders(&known.directory)?.into_iter();
                let mut found = folders.filter_map(|it| it.find(name));
                let found = found.find(|(kind, _)| folder_of(*kind) == folder);
                found.map(|(_, file)| file)
            }
            _ => None,
        };
        found.ok_or_else(|| {
            Problem::not_found(format!("{path:?} not found; jobdir/ lists the files"))
        })
    });
    send(&file.await?, &headers).await
}

/// Sends a file by its path on this machine, if it belongs to a job.
pub(super) async fn any_path(
    State(daemon): State<Arc<Daemon>>,
    headers: HeaderMap,
    PathParams(path): PathParams<String>,
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
    let params = PathParams((name.to_owned(), rest.to_owned()));
    show(State(daemon.clone()), headers, params).await
}

/// Writes a file of a configuration, before a job was made of it.
pub(super) async fn put(
    State(daemon): State<Arc<Daemon>>,
    PathParams((name, file)): PathParams<(String, String)>,
    RawBody(body): RawBody,
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
