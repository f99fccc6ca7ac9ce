//! Hand-over of the files of a job without a running crawl, and the list of all files with their state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_archive::index_path;
use opilio_job::handover::{HandedOver, Receiver, handed_over};
use opilio_profile::Profile;
use serde::Serialize;

use super::{Handover, finished, other_files};
use crate::error::{CrawlError, io_error};
use opilio_job::progress::HandoverTotals;

/// Step of handing over the files of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverStep {
    /// Files are handed over from now on. Not reported if there are no files to hand over.
    Begun,
    /// A file was handed over, or the hand-over failed. The error message names the file.
    File(Result<HandedOver, String>),
    /// All archive files and indexes were handed over. Logs, reports and packages follow.
    ArchiveDone,
}

/// State of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverState {
    /// The file was handed over to the store or the command in its present state.
    Done,
    /// The file was handed over to the store or the command, and is no longer in the job.
    Moved,
    /// The file was not handed over yet, or has changed since.
    Waiting,
}

/// File of a job, with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandoverFile {
    /// Path of the file in the job's directory; an absolute path if it is elsewhere.
    pub file: String,
    /// State of the file.
    pub state: HandoverState,
    /// Size in bytes.
    pub size: u64,
    /// `sha256:` and hexadecimal digits. Not set before the hand-over.
    pub digest: Option<String>,
    /// URL of the copy in the store. Not set before the hand-over, and for the command `archive.on-close`.
    pub url: Option<String>,
    /// Time of the hand-over.
    pub at: Option<Timestamp>,
}

/// Hands over all files of a job that were not handed over yet, with one attempt each, to the command and the store of its profile.
/// `report` is called with each step. The caller holds the job.
///
/// # Errors
/// The profile names neither a command nor a store, a key of the store is missing, or files of the job cannot be read.
pub async fn hand_over_job(
    profile: &Profile,
    job: &Path,
    report: &mut dyn FnMut(HandoverStep),
) -> Result<Vec<HandoverTotals>, CrawlError> {
    let handovers = super::open(profile, job, None)?;
    let waits = |it: &Handover| it.totals().left > 0 || !it.missing_others(profile).is_empty();
    if handovers.iter().any(|it| waits(it)) {
        report(HandoverStep::Begun);
    }
    for handover in &handovers {
        let each = |_: &Path, result| report(HandoverStep::File(result));
        handover.hand_over_each(each).await;
    }
    if handovers.iter().all(|it| it.totals().left == 0) {
        report(HandoverStep::ArchiveDone);
    }
    for handover in &handovers {
        let each = |result| {
            report(HandoverStep::File(result));
            true
        };
        handover.put_other_files(profile, each).await;
    }
    Ok(handovers.iter().map(|it| it.totals()).collect())
}

/// Lists the files of a job that are handed over, with their state, by name. With a store these are archive files, indexes, logs,
/// reports and packages; with a command alone, archive files.
///
/// # Errors
/// Files of the job cannot be read.
pub fn handover_files(profile: &Profile, job: &Path) -> Result<Vec<HandoverFile>, CrawlError> {
    let store = profile.archive.store.as_ref();
    let receiver = match store {
        Some(_) => Receiver::Store,
        None => Receiver::Command,
    };
    let base = store.map(|store| store.place.url());
    let known = handed_over(job).map_err(|source| io_error(job, source))?;
    let mut known: BTreeMap<PathBuf, HandedOver> = known
        .into_iter()
        .filter(|it| it.receiver() == receiver)
        .map(|it| (it.path(job), it))
        .collect();
    let mut local = Vec::new();
    if store.is_some() || !profile.archive.on_close.is_empty() {
        let finished = finished(profile, job)?;
        local = finished.archives;
        if store.is_some() {
            let indexes: Vec<_> = local.iter().map(|file| index_path(file)).collect();
            local.extend(indexes);
            local.extend(finished.indexes);
            local.extend(other_files(profile, job));
        }
    }
    let mut files = Vec::new();
    for path in local {
        let Ok(now) = fs::metadata(&path) else {
            continue;
        };
        let taken = known.remove(&path).filter(|taken| {
            let in_store = base.as_ref().zip(taken.url.as_ref());
            let is_here = in_store.is_none_or(|(base, url)| {
                let rest = url.strip_prefix(base.as_str());
                rest.is_some_and(|rest| rest.starts_with('/'))
            });
            is_here && now.modified().is_ok_and(|at| taken.is_of(now.len(), at))
        });
        let inside = path.strip_prefix(job).unwrap_or(&path);
        files.push(match taken {
            Some(taken) => HandoverFile::of(taken, HandoverState::Done),
            None => HandoverFile {
                file: inside.to_string_lossy().into_owned(),
                state: HandoverState::Waiting,
                size: now.len(),
                digest: None,
                url: None,
                at: None,
            },
        });
    }
    let moved = known.into_values();
    files.extend(moved.map(|taken| HandoverFile::of(taken, HandoverState::Moved)));
    files.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(files)
}

impl HandoverFile {
    fn of(taken: HandedOver, state: HandoverState) -> HandoverFile {
        HandoverFile {
            file: taken.file,
            state,
            size: taken.size,
            digest: Some(taken.digest),
            url: taken.url,
            at: Some(taken.at),
        }
    }
}
