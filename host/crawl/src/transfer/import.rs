//! What files say of URIs, brought into a frontier.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_frontier::{Candidate, Frontier, Refusal, Scheduled};
use opilio_uri::{Hop, HopPath, Uri};

use super::net::{Lines, Net};
use super::reader::{BadLine, Extent, Format, Reader};
use super::{Finish, Imported, TransferError};

/// Bad lines, and refused URIs, that a report shows. All are counted.
pub const BAD_LINES_SHOWN: usize = 20;

/// URIs that go to the frontier in one batch.
const BATCH_URIS: usize = 2_000;

/// Lines, or URIs, between two words about how far it is.
const PROGRESS_EVERY: u64 = 10_000;

/// What is done with URIs that were finished elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DoneUris {
    /// They are known here, with what is known of them, and not fetched again by a snapshot crawl.
    #[default]
    Included,
    /// They are to be fetched here, too.
    Scheduled,
    /// They are left out, so that they may be found and fetched again.
    LeftOut,
}

/// The files of another crawl, read together: its journal, say, and its crawl log, of which each knows what the other
/// does not. Their order does not matter.
#[derive(Clone, Debug)]
pub struct Import {
    /// The files, and their formats where these cannot be recognised by the first line.
    pub sources: Vec<(PathBuf, Option<Format>)>,
    /// Where lines are sorted; needs room for about twice the uncompressed files.
    pub folder: PathBuf,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProgress<'a> {
    /// So many lines of this file were read.
    Read(&'a Path, u64),
    /// So many URIs were brought to the frontier.
    Brought(u64),
}

/// How one file was read.
#[derive(Debug)]
pub struct SourceReport {
    /// The file.
    pub path: PathBuf,
    /// What it was read as.
    pub format: Format,
    /// How much of it was read, and what could not be.
    pub extent: Extent,
    /// Lines that could not be understood.
    pub bad_lines: u64,
    /// The first [`BAD_LINES_SHOWN`] of them.
    pub shown: Vec<BadLine>,
}

/// Each URI of the files once, in the order in which they were first named.
pub struct Gathered {
    /// How the files were read.
    pub sources: Vec<SourceReport>,
    net: Net,
    folder: PathBuf,
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Gathered")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

/// What became of the URIs of an import. Each is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Stand in their queues now.
    pub scheduled: u64,
    /// Known as done now.
    pub included: u64,
    /// Were known here before, or another with their canonical form was.
    pub known: u64,
    /// Prerequisites: names and robots.txt are asked for here when they are needed, and their age counts.
    pub prerequisites: u64,
    /// Finished elsewhere, and left out as [`DoneUris::LeftOut`] says; or the caller made no candidate of them.
    pub left_out: u64,
    /// Cannot be held.
    pub refused: u64,
    /// The first [`BAD_LINES_SHOWN`] of these.
    pub refusals: Vec<(Uri, Refusal)>,
}

impl Import {
    /// Reads all files. Lines that cannot be understood and files that end too early are reported, and end nothing.
    ///
    /// # Errors
    /// [`TransferError::Read`], [`TransferError::Unrecognised`], [`TransferError::Sort`].
    pub fn gather(
        &self,
        mut progress: impl FnMut(ImportProgress<'_>),
    ) -> Result<Gathered, TransferError> {
        let mut lines = Lines::new(&self.folder).map_err(|error| sort(&self.folder, error))?;
        let mut sources = Vec::with_capacity(self.sources.len());
        for (path, format) in &self.sources {
            sources.push(self.read(path, *format, &mut lines, &mut progress)?);
        }
        Ok(Gathered {
            sources,
            net: lines.net().map_err(|error| sort(&self.folder, error))?,
            folder: self.folder.clone(),
        })
    }

    fn read(
        &self,
        path: &Path,
        format: Option<Format>,
        lines: &mut Lines,
        progress: &mut impl FnMut(ImportProgress<'_>),
    ) -> Result<SourceReport, TransferError> {
        let mut reader = Reader::open(path, format)?;
        let mut bad_lines = 0;
        let mut shown = Vec::new();
        let mut told = 0;
        while let Some(line) = reader.next() {
            match line {
                Ok(imported) => lines
                    .push(&imported)
                    .map_err(|error| sort(&self.folder, error))?,
                Err(bad) => {
                    bad_lines += 1;
                    if shown.len() < BAD_LINES_SHOWN {
                        shown.push(bad);
                    }
                }
            }
            if reader.lines() >= told + PROGRESS_EVERY {
                told = reader.lines();
                progress(ImportProgress::Read(path, told));
            }
        }
        Ok(SourceReport {
            path: path.to_owned(),
            format: reader.format(),
            extent: reader.finish().map_err(|source| TransferError::Read {
                path: path.to_owned(),
                source,
            })?,
            bad_lines,
            shown,
        })
    }
}

impl Iterator for Gathered {
    type Item = Result<Imported, TransferError>;

    fn next(&mut self) -> Option<Result<Imported, TransferError>> {
        let next = self.net.next()?;
        Some(next.map_err(|error| sort(&self.folder, error)))
    }
}

/// Brings URIs into a frontier. `candidate` gives the profile's answer for a URI with this hop path: its canonical form,
/// queue, strategy and precedence, with everything else as in [`Candidate::new`]; none leaves it out, such as one that is
/// out of scope here. Importing the same again changes nothing.
///
/// # Errors
/// [`TransferError::Frontier`], and what the stream of URIs says. What was brought before stays.
pub fn import(
    uris: impl IntoIterator<Item = Result<Imported, TransferError>>,
    done: DoneUris,
    frontier: &mut Frontier,
    mut candidate: impl FnMut(Uri, HopPath) -> Option<Candidate>,
    now: Timestamp,
    mut progress: impl FnMut(ImportProgress<'_>),
) -> Result<ImportReport, TransferError> {
    let mut report = ImportReport::default();
    let mut pending = Vec::new();
    let mut finished = Vec::new();
    let mut brought = 0;
    for imported in uris {
        let imported = imported?;
        brought += 1;
        if is_prerequisite(&imported) {
            report.prerequisites += 1;
        } else if imported.finished.is_some() && done == DoneUris::LeftOut {
            report.left_out += 1;
        } else {
            let hop_path = imported.hop_path.clone().unwrap_or_default();
            match candidate(imported.uri.clone(), hop_path) {
                None => report.left_out += 1,
                Some(made) => match completed(made, imported) {
                    (made, Some(finish)) if done == DoneUris::Included => {
                        finished.push((made, finish));
                    }
                    (made, _) => pending.push(made),
                },
            }
        }
        if pending.len() >= BATCH_URIS {
            schedule(frontier, std::mem::take(&mut pending), now, &mut report)?;
        }
        if finished.len() >= BATCH_URIS {
            include(frontier, std::mem::take(&mut finished), now, &mut report)?;
        }
        if brought % PROGRESS_EVERY == 0 {
            progress(ImportProgress::Brought(brought));
        }
    }
    include(frontier, finished, now, &mut report)?;
    schedule(frontier, pending, now, &mut report)?;
    Ok(report)
}

/// Names and robots.txt, which this crawl asks for itself. A robots.txt that a page links to is a page like others.
fn is_prerequisite(imported: &Imported) -> bool {
    imported.uri.scheme() == "dns"
        || imported
            .hop_path
            .as_ref()
            .is_some_and(|path| path.last() == Some(Hop::Prerequisite))
}

/// A candidate with what the files say of it.
fn completed(candidate: Candidate, imported: Imported) -> (Candidate, Option<Finish>) {
    let candidate = Candidate {
        via: imported.via,
        context: imported.context,
        source: imported.source,
        seed: imported.seed,
        ..candidate
    };
    (candidate, imported.finished)
}

fn schedule(
    frontier: &mut Frontier,
    candidates: Vec<Candidate>,
    now: Timestamp,
    report: &mut ImportReport,
) -> Result<(), TransferError> {
    if candidates.is_empty() {
        return Ok(());
    }
    let uris: Vec<Uri> = candidates.iter().map(|made| made.uri.clone()).collect();
    let answers = frontier.schedule(candidates, now)?;
    for (uri, answer) in uris.into_iter().zip(answers) {
        report.note(uri, answer, |report| &mut report.scheduled);
    }
    Ok(())
}

/// Makes URIs known without queueing them.
fn include(
    frontier: &mut Frontier,
    finished: Vec<(Candidate, Finish)>,
    now: Timestamp,
    report: &mut ImportReport,
) -> Result<(), TransferError> {
    let candidates: Vec<Candidate> = finished.into_iter().map(|(made, _)| made).collect();
    let uris: Vec<Uri> = candidates.iter().map(|made| made.uri.clone()).collect();
    let answers = frontier.schedule(candidates, now)?;
    for (uri, answer) in uris.into_iter().zip(answers) {
        if answer == Scheduled::New {
            frontier.delete(&uri, now)?;
        }
        report.note(uri, answer, |report| &mut report.included);
    }
    Ok(())
}

impl ImportReport {
    fn note(
        &mut self,
        uri: Uri,
        answer: Scheduled,
        counter: impl FnOnce(&mut ImportReport) -> &mut u64,
    ) {
        match answer {
            Scheduled::New | Scheduled::Forced => *counter(self) += 1,
            Scheduled::Known | Scheduled::Raised(_) => self.known += 1,
            Scheduled::Refused(refusal) => {
                self.refused += 1;
                if self.refusals.len() < BAD_LINES_SHOWN {
                    self.refusals.push((uri, refusal));
                }
            }
        }
    }
}

fn sort(folder: &Path, source: std::io::Error) -> TransferError {
    TransferError::Sort {
        folder: folder.to_owned(),
        source,
    }
}
