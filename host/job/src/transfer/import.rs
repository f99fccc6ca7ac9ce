//! Import of URIs from files into a frontier.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_frontier::{Candidate, Frontier, ImportedUri, Refusal, ScheduleResult};
use opilio_uri::{Hop, HopPath, Uri};

use super::net_effect::{Lines, NetEffect};
use super::reader::{BadLine, ImportFormat, InputSummary, UriReader};
use super::{Finish, ImportedRecord, TransferError};

/// Maximum of invalid lines, and of refused URIs, that a report shows. All are counted.
pub const BAD_LINES_SHOWN: usize = 20;

/// URIs that go to the frontier in one batch.
const BATCH_URIS: usize = 2_000;

/// Lines, or URIs, between two progress reports.
const PROGRESS_EVERY: u64 = 10_000;

/// The treatment of URIs that another crawl has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DoneUris {
    /// They are imported as known with their data, and a snapshot crawl does not fetch them again.
    #[default]
    Included,
    /// They are fetched here, too.
    Scheduled,
    /// They are not imported, so that they can be found and fetched again.
    LeftOut,
}

/// The files of another crawl, read together. A journal and a crawl log, for example, complete each other. Their order does not
/// matter.
#[derive(Clone, Debug)]
pub struct Import {
    /// The files, and their formats if the first line does not show them.
    pub sources: Vec<(PathBuf, Option<ImportFormat>)>,
    /// The folder in which lines are sorted. It needs room for about twice the uncompressed files.
    pub folder: PathBuf,
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProgress<'a> {
    /// The number of lines that were read from this file.
    Read(&'a Path, u64),
    /// The number of URIs that were passed to the frontier.
    Brought(u64),
}

/// The report on the reading of one file.
#[derive(Debug)]
pub struct SourceReport {
    /// The file.
    pub path: PathBuf,
    /// The format as which it was read.
    pub format: ImportFormat,
    /// The extent that was read, and the parts that could not be read.
    pub extent: InputSummary,
    /// Number of invalid lines.
    pub bad_lines: u64,
    /// The first [`BAD_LINES_SHOWN`] of them.
    pub shown: Vec<BadLine>,
}

/// Each URI of the files once, in the order in which they were first named.
pub struct MergedUris {
    /// The reports on the reading of the files.
    pub sources: Vec<SourceReport>,
    net: NetEffect,
    folder: PathBuf,
}

impl std::fmt::Debug for MergedUris {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MergedUris")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

/// The results for the URIs of an import. Each is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// URIs that were queued.
    pub scheduled: u64,
    /// URIs that are now known as done.
    pub included: u64,
    /// URIs that were known before, under the same normalised URI or canonical form.
    pub known: u64,
    /// Prerequisites, which are not imported: the crawl needs recent DNS look-ups and robots.txt files, and requests them itself.
    pub prerequisites: u64,
    /// URIs that another crawl has finished and that are left out by [`DoneUris::LeftOut`], and URIs without a candidate from the
    /// caller.
    pub left_out: u64,
    /// URIs that the frontier cannot hold.
    pub refused: u64,
    /// The first [`BAD_LINES_SHOWN`] of these.
    pub refusals: Vec<(Uri, Refusal)>,
}

impl Import {
    /// Reads all files. Invalid lines and truncated files are reported and do not end the import.
    ///
    /// # Errors
    /// [`TransferError::Read`], [`TransferError::Unrecognised`], [`TransferError::Sort`].
    pub fn gather(
        &self,
        mut progress: impl FnMut(ImportProgress<'_>),
    ) -> Result<MergedUris, TransferError> {
        let mut lines =
            Lines::new(&self.folder).map_err(|error| sort_error(&self.folder, error))?;
        let mut sources = Vec::with_capacity(self.sources.len());
        for (path, format) in &self.sources {
            sources.push(self.read(path, *format, &mut lines, &mut progress)?);
        }
        Ok(MergedUris {
            sources,
            net: lines
                .merged()
                .map_err(|error| sort_error(&self.folder, error))?,
            folder: self.folder.clone(),
        })
    }

    fn read(
        &self,
        path: &Path,
        format: Option<ImportFormat>,
        lines: &mut Lines,
        progress: &mut impl FnMut(ImportProgress<'_>),
    ) -> Result<SourceReport, TransferError> {
        let mut reader = UriReader::open(path, format)?;
        let mut bad_lines = 0;
        let mut shown = Vec::new();
        let mut reported = 0;
        while let Some(line) = reader.next() {
            match line {
                Ok(imported) => lines
                    .push(&imported)
                    .map_err(|error| sort_error(&self.folder, error))?,
                Err(bad) => {
                    bad_lines += 1;
                    if shown.len() < BAD_LINES_SHOWN {
                        shown.push(bad);
                    }
                }
            }
            if reader.lines() >= reported + PROGRESS_EVERY {
                reported = reader.lines();
                progress(ImportProgress::Read(path, reported));
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

impl Iterator for MergedUris {
    type Item = Result<ImportedRecord, TransferError>;

    fn next(&mut self) -> Option<Result<ImportedRecord, TransferError>> {
        let next = self.net.next()?;
        Some(next.map_err(|error| sort_error(&self.folder, error)))
    }
}

/// Imports URIs into a frontier. `candidate` returns the candidate for a URI with this hop path: canonical form, queue, strategy
/// and precedence by the profile, and otherwise the values of [`Candidate::new`]. If it returns `None`, the URI is left out, for
/// example because it is out of scope. Repeating an import changes nothing.
///
/// # Errors
/// Returns [`TransferError::Frontier`], and the errors of the stream of URIs. URIs imported before stay.
pub fn import(
    uris: impl IntoIterator<Item = Result<ImportedRecord, TransferError>>,
    done: DoneUris,
    frontier: &mut Frontier,
    mut candidate: impl FnMut(Uri, HopPath) -> Option<Candidate>,
    now: Timestamp,
    mut progress: impl FnMut(ImportProgress<'_>),
) -> Result<ImportReport, TransferError> {
    let mut report = ImportReport::default();
    let mut pending = Vec::new();
    let mut finished = Vec::new();
    let mut uri_count = 0;
    for imported in uris {
        let imported = imported?;
        uri_count += 1;
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
                        finished.push(known(made, finish, now));
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
        if uri_count % PROGRESS_EVERY == 0 {
            progress(ImportProgress::Brought(uri_count));
        }
    }
    include(frontier, finished, now, &mut report)?;
    schedule(frontier, pending, now, &mut report)?;
    Ok(report)
}

/// Returns `true` if the URI is a DNS look-up or a robots.txt, which this crawl requests itself. A robots.txt linked from a page is
/// an ordinary page.
fn is_prerequisite(imported: &ImportedRecord) -> bool {
    imported.uri.scheme() == "dns"
        || imported
            .hop_path
            .as_ref()
            .is_some_and(|path| path.last() == Some(Hop::Prerequisite))
}

/// Returns a candidate with the data of the files.
fn completed(candidate: Candidate, imported: ImportedRecord) -> (Candidate, Option<Finish>) {
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
        report.count(uri, answer, |report| &mut report.scheduled);
    }
    Ok(())
}

fn include(
    frontier: &mut Frontier,
    finished: Vec<ImportedUri>,
    now: Timestamp,
    report: &mut ImportReport,
) -> Result<(), TransferError> {
    if finished.is_empty() {
        return Ok(());
    }
    let uris: Vec<Uri> = finished
        .iter()
        .map(|known| known.candidate.uri.clone())
        .collect();
    let answers = frontier.include(finished, now)?;
    for (uri, answer) in uris.into_iter().zip(answers) {
        report.count(uri, answer, |report| &mut report.included);
    }
    Ok(())
}

/// Returns the frontier's data for a URI that another crawl has finished. If the lines have no time, the present time is used, so
/// that a revisit is late rather than early.
fn known(candidate: Candidate, finish: Finish, now: Timestamp) -> ImportedUri {
    ImportedUri {
        candidate,
        last_outcome: finish.last_outcome,
        status: finish.status.unwrap_or_default(),
        at: finish.at.unwrap_or(now),
        media_type: finish.media_type,
        payload_digest: finish.payload_digest,
        size: finish.size,
    }
}

impl ImportReport {
    fn count(
        &mut self,
        uri: Uri,
        answer: ScheduleResult,
        counter: impl FnOnce(&mut ImportReport) -> &mut u64,
    ) {
        match answer {
            ScheduleResult::New | ScheduleResult::Forced | ScheduleResult::Sent => {
                *counter(self) += 1;
            }
            ScheduleResult::Known | ScheduleResult::Raised(_) => self.known += 1,
            ScheduleResult::Refused(refusal) => {
                self.refused += 1;
                if self.refusals.len() < BAD_LINES_SHOWN {
                    self.refusals.push((uri, refusal));
                }
            }
        }
    }
}

fn sort_error(folder: &Path, source: std::io::Error) -> TransferError {
    TransferError::Sort {
        folder: folder.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use opilio_frontier::{LastOutcome, Strategy};

    use super::super::test_frontier::{Trial, archived};
    use super::super::{Selection, write_journal, write_json_lines};
    use super::*;

    const JOURNAL: &str = "\
F+ http://a.org/  
F+ http://b.org/  
F+ dns:a.org P http://a.org/
Fe dns:a.org
Fs dns:a.org P http://a.org/
F+ http://a.org/robots.txt P http://a.org/
Fe http://a.org/
Fs http://a.org/  
F+ http://a.org/z L http://a.org/
F+ http://a.org/lost L http://a.org/
F+ http://a.org/y L http://a.org/
F+ http://a.org/x LL http://a.org/y
T 2026-11-20T11:00:00Z
Fe http://a.org/x
Ff http://a.org/lost L http://a.org/
Fr http://a.org/x
Fd http://a.org/y
";

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// Imports files of this content into a frontier.
    fn imported(
        trial: &mut Trial,
        files: &[Vec<u8>],
        done: DoneUris,
    ) -> (ImportReport, Vec<SourceReport>) {
        let folder = tempfile::tempdir().unwrap();
        let sources = files
            .iter()
            .enumerate()
            .map(|(number, bytes)| {
                let path = folder.path().join(number.to_string());
                fs::write(&path, bytes).unwrap();
                (path, None)
            })
            .collect();
        let files = Import {
            sources,
            folder: folder.path().to_owned(),
        };
        let mut gathered = files.gather(|_| ()).unwrap();
        let report = import(
            &mut gathered,
            done,
            &mut trial.frontier,
            |uri, hop_path| {
                (uri.host() != Some("out.org"))
                    .then(|| Candidate::new(uri, hop_path, Strategy::Snapshot))
            },
            trial.now,
            |_| (),
        )
        .unwrap();
        (report, gathered.sources)
    }

    #[track_caller]
    fn check(done: DoneUris, counts: ImportReport, issued: &[&str]) {
        let mut trial = Trial::new();
        let (report, sources) = imported(&mut trial, &[gzip(JOURNAL)], done);
        assert_eq!(report, counts);
        assert_eq!((sources[0].bad_lines, sources[0].extent.lines), (0, 17));
        let (again, _) = imported(&mut trial, &[JOURNAL.into()], done);
        assert_eq!(
            (again.scheduled, again.included, again.known),
            (0, 0, counts.scheduled + counts.included)
        );
        // Known URIs are not found again.
        if done != DoneUris::LeftOut {
            trial.schedule("http://a.org/");
        }
        assert_eq!(trial.issued(), issued);
    }

    #[test]
    fn unfinished_uris_are_fetched_in_their_order() {
        let pending = ["http://b.org/", "http://a.org/z", "http://a.org/x"];
        let counts = ImportReport {
            scheduled: 3,
            included: 3,
            prerequisites: 2,
            ..ImportReport::default()
        };
        check(DoneUris::Included, counts, &pending);
        let counts = ImportReport {
            scheduled: 3,
            left_out: 3,
            prerequisites: 2,
            ..ImportReport::default()
        };
        check(DoneUris::LeftOut, counts, &pending);
    }

    #[test]
    fn finished_uris_can_be_fetched_again() {
        let counts = ImportReport {
            scheduled: 6,
            prerequisites: 2,
            ..ImportReport::default()
        };
        let all = [
            "http://a.org/",
            "http://b.org/",
            "http://a.org/z",
            "http://a.org/lost",
            "http://a.org/y",
            "http://a.org/x",
        ];
        check(DoneUris::Scheduled, counts, &all);
    }

    #[test]
    fn seeds_and_discovery_data_are_kept() {
        let mut trial = Trial::new();
        imported(&mut trial, &[JOURNAL.into()], DoneUris::Included);
        let record = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            trial.frontier.record(&uri).unwrap().unwrap()
        };
        assert!(record("http://b.org/").seed);
        let link = record("http://a.org/x");
        assert_eq!(link.hop_path.as_str(), "LL");
        assert_eq!(link.via.as_deref(), Some("http://a.org/y"));
        assert!(!link.seed);
    }

    #[test]
    fn damage_and_invalid_lines_are_reported_and_do_not_end_the_import() {
        let mut text = JOURNAL.to_owned();
        for number in 0..30 {
            text.push_str(&format!("nonsense {number}\n"));
        }
        text.push_str("F+ http://out.org/  \n");
        text.push_str(&format!("F+ http://a.org/{}  \n", "x".repeat(62_000)));
        let mut bytes = gzip(&text);
        bytes.truncate(bytes.len() - 3);
        let mut trial = Trial::new();
        let (report, sources) = imported(&mut trial, &[bytes, Vec::new()], DoneUris::Included);
        assert_eq!(
            (report.scheduled, report.left_out, report.refused),
            (3, 1, 1)
        );
        assert_eq!(report.refusals[0].1, Refusal::UriTooLong);
        let source = &sources[0];
        assert_eq!(
            (source.bad_lines, source.shown.len()),
            (30, BAD_LINES_SHOWN)
        );
        assert_eq!(source.shown[0].line, 18);
        assert_eq!(source.extent.damage_count, 1);
        assert_eq!(sources[1].extent, InputSummary::default());
    }

    #[test]
    fn an_export_can_be_imported_into_another_frontier() {
        let mut trial = Trial::new();
        trial.fetch("http://a.org/done", archived(200, "text/html"));
        trial.fail("http://a.org/failed", -2);
        trial.fetch_again_and_again("http://a.org/revisited", archived(404, "text/html"));
        trial.schedule("http://a.org/deleted");
        let deleted = "http://a.org/deleted".parse().unwrap();
        trial.frontier.delete(&deleted, trial.now).unwrap();
        trial.schedule("http://a.org/waiting");
        let mut lines = Vec::new();
        write_json_lines(
            trial.frontier.records(""),
            &Selection::default(),
            &mut lines,
        )
        .unwrap();

        let mut other = Trial::new();
        let (report, sources) = imported(&mut other, &[lines], DoneUris::Included);
        assert_eq!((report.scheduled, report.included), (1, 4), "{sources:?}");
        let waiting: Uri = "http://a.org/waiting".parse().unwrap();
        let before = trial.frontier.record(&waiting).unwrap().unwrap();
        let after = other.frontier.record(&waiting).unwrap().unwrap();
        assert_eq!(
            (
                after.hop_path,
                after.via,
                after.context,
                after.source,
                after.seed
            ),
            (
                before.hop_path,
                before.via,
                before.context,
                before.source,
                before.seed
            )
        );
        let taken = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            let record = other.frontier.record(&uri).unwrap().unwrap();
            let history: Vec<_> = record
                .history
                .iter()
                .map(|visit| (visit.at, visit.status, visit.size))
                .collect();
            (
                record.last_outcome,
                record.media_type,
                record.digests.payload,
                history,
            )
        };
        let day = |day: i8| {
            jiff::civil::date(2026, 11, day)
                .at(12, 0, 0, 0)
                .in_tz("UTC")
                .unwrap()
                .timestamp()
        };
        let html = "text/html".to_owned();
        assert_eq!(
            taken("http://a.org/done"),
            (
                LastOutcome::Succeeded,
                html.clone(),
                Some([1; 20]),
                vec![(day(21), 200, Some(1234))]
            )
        );
        assert_eq!(
            taken("http://a.org/failed"),
            (
                LastOutcome::Failed,
                String::new(),
                None,
                vec![(day(22), -2, None)]
            )
        );
        assert_eq!(
            taken("http://a.org/revisited"),
            (
                LastOutcome::Failed,
                html,
                Some([1; 20]),
                vec![(day(23), 404, Some(1234))]
            )
        );
        assert_eq!(taken("http://a.org/deleted").0, LastOutcome::Disregarded);
        assert_eq!(other.issued(), ["http://a.org/waiting"]);
    }

    #[test]
    fn a_journal_has_a_line_for_each_uri_and_can_be_imported() {
        let mut trial = Trial::new();
        trial.fetch("http://a.org/done", archived(200, "text/html"));
        trial.fail("http://a.org/failed", -2);
        trial.fetch_again_and_again("http://a.org/revisited", archived(404, "text/html"));
        trial.schedule("http://a.org/deleted");
        let deleted = "http://a.org/deleted".parse().unwrap();
        trial.frontier.delete(&deleted, trial.now).unwrap();
        trial.schedule("http://a.org/waiting");
        let now = trial.now;
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let seed = Candidate {
            seed: true,
            ..Candidate::new(uri("http://b.org/"), HopPath::new(), Strategy::Snapshot)
        };
        let hops = HopPath::parse("P").unwrap();
        let robots = Candidate::new(uri("http://b.org/robots.txt"), hops, Strategy::Snapshot);
        trial.frontier.schedule(vec![seed, robots], now).unwrap();
        let journal = |trial: &Trial| {
            let mut lines = Vec::new();
            write_journal(
                trial.frontier.records(""),
                &Selection::default(),
                &mut lines,
            )
            .unwrap();
            String::from_utf8(lines).unwrap()
        };
        let written = journal(&trial);
        let expected = [
            "Fd http://a.org/deleted",
            "Fs http://a.org/done LL http://via.org/",
            "Ff http://a.org/failed LL http://via.org/",
            "Fs http://a.org/revisited LL http://via.org/",
            "F+ http://a.org/waiting LL http://via.org/",
            "F+ http://b.org/  ",
            "",
        ];
        assert_eq!(written, expected.join("\n"));

        let mut other = Trial::new();
        let (report, sources) = imported(&mut other, &[gzip(&written)], DoneUris::Included);
        assert_eq!((report.scheduled, report.included), (2, 4), "{sources:?}");
        assert_eq!(journal(&other), written);
    }

    #[test]
    fn a_file_of_an_unknown_format_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seeds.txt");
        fs::write(&path, "http://a.org/\n").unwrap();
        for (path, expected) in [
            (&path, "seeds.txt is not a recovery journal"),
            (&folder.path().join("none"), "cannot read"),
        ] {
            let files = Import {
                sources: vec![(path.clone(), None)],
                folder: folder.path().to_owned(),
            };
            let error = files.gather(|_| ()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
