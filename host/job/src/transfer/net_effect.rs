//! The net effect of all lines about one URI.
//!
//! A journal has a line for a URI when it was found, issued, put back and finished. A crawl log has a further line, with more
//! details of the finish. If any line reports a URI as finished, the URI is finished, in any order of lines and files. Its data is
//! gathered from all lines; data of the last finish takes precedence. Each URI is returned once, in the order of first mentions, so
//! that queues are filled in the order of the other crawl.

use std::io;
use std::path::Path;

use opilio_frontier::{LastOutcome, is_error_response};

use super::sorter::{Sorted, Sorter};
use super::{Finish, ImportedRecord};

/// A collector of lines, which must be added in their order.
pub(super) struct Lines {
    folder: std::path::PathBuf,
    by_uri: Sorter,
    count: u64,
}

impl Lines {
    /// Creates a collector that sorts in this folder.
    pub(super) fn new(folder: &Path) -> io::Result<Lines> {
        Ok(Lines {
            folder: folder.to_owned(),
            by_uri: Sorter::new(folder)?,
            count: 0,
        })
    }

    pub(super) fn push(&mut self, line: &ImportedRecord) -> io::Result<()> {
        // URIs contain no NUL, so it ends a URI before another one that begins with it.
        let mut record = line.uri.as_str().as_bytes().to_vec();
        record.push(0);
        record.extend_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        let record = postcard::to_extend(line, record).map_err(io::Error::other)?;
        self.by_uri.push(&record)
    }

    /// Returns each URI once.
    pub(super) fn merged(self) -> io::Result<NetEffect> {
        let mut by_number = Sorter::new(&self.folder)?;
        let mut gathered: Option<(LineNumber, ImportedRecord)> = None;
        for record in self.by_uri.sorted()? {
            let (number, line) = read(&record?)?;
            match &mut gathered {
                Some((_, known)) if known.uri == line.uri => merge_line(known, line),
                _ => {
                    if let Some((number, known)) = gathered.replace((number, line)) {
                        by_number.push(&sort_record(number, &known)?)?;
                    }
                }
            }
        }
        if let Some((number, known)) = gathered {
            by_number.push(&sort_record(number, &known)?)?;
        }
        Ok(NetEffect(by_number.sorted()?))
    }
}

/// A line's number, most significant byte first.
type LineNumber = [u8; 8];

/// Each URI once, in the order in which they were first named.
pub(super) struct NetEffect(Sorted);

impl Iterator for NetEffect {
    type Item = io::Result<ImportedRecord>;

    fn next(&mut self) -> Option<io::Result<ImportedRecord>> {
        Some(self.0.next()?.and_then(|record| Ok(read(&record)?.1)))
    }
}

/// Encodes a record so that the sorter orders it by the number of its line.
fn sort_record(number: LineNumber, line: &ImportedRecord) -> io::Result<Vec<u8>> {
    // The URI before the NUL is empty, so that records are sorted by the number only.
    let mut record = vec![0];
    record.extend_from_slice(&number);
    postcard::to_extend(line, record).map_err(io::Error::other)
}

fn read(record: &[u8]) -> io::Result<(LineNumber, ImportedRecord)> {
    record
        .iter()
        .position(|byte| *byte == 0)
        .and_then(|nul| record[nul + 1..].split_first_chunk())
        .ok_or_else(|| io::Error::other("a sorted record without its line number"))
        .and_then(|(number, line)| {
            let line = postcard::from_bytes(line).map_err(io::Error::other)?;
            Ok((*number, line))
        })
}

/// Adds the data of a later line.
fn merge_line(known: &mut ImportedRecord, later: ImportedRecord) {
    known.seed |= later.seed;
    if known.hop_path.is_none() && later.hop_path.is_some() {
        known.hop_path = later.hop_path;
        known.via = later.via;
    }
    if known.context.is_empty() {
        known.context = later.context;
    }
    known.source = known.source.take().or(later.source);
    known.finished = match (known.finished.take(), later.finished) {
        (Some(first), Some(second)) if first.at > second.at && second.at.is_some() => {
            Some(with_earlier(first, second))
        }
        (Some(first), Some(second)) => Some(with_earlier(second, first)),
        (first, second) => first.or(second),
    };
}

/// Returns the last finish, with missing data from the finish before it: a journal has no statuses, and a failure has no digest.
fn with_earlier(mut last: Finish, before: Finish) -> Finish {
    // In a journal of Heritrix, every response is a success.
    let is_response =
        last.last_outcome == LastOutcome::Succeeded && before.status.is_some_and(is_error_response);
    if last.status.is_none() && (last.last_outcome == before.last_outcome || is_response) {
        last.last_outcome = before.last_outcome;
        last.status = before.status;
        last.at = before.at.or(last.at);
        last.size = last.size.or(before.size);
    }
    if last.media_type.is_empty() {
        last.media_type = before.media_type;
    }
    last.payload_digest = last.payload_digest.or(before.payload_digest);
    last
}

#[cfg(test)]
mod tests {
    use super::super::{crawl_log, journal};
    use super::*;

    /// Checks URI, hop path, via, last outcome, status and digest. Lines that begin with a digit are a crawl log's.
    #[track_caller]
    fn check(lines: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let mut gathered = Lines::new(folder.path()).unwrap();
        for line in lines {
            let imported = if line.starts_with('2') {
                crawl_log::parse(line.as_bytes()).unwrap()
            } else {
                journal::parse(line.as_bytes(), &mut journal::Clock::default())
                    .unwrap()
                    .unwrap()
            };
            gathered.push(&imported).unwrap();
        }
        let net: Vec<String> = gathered
            .merged()
            .unwrap()
            .map(|imported| {
                let imported = imported.unwrap();
                let how = imported.finished.map_or("pending".to_owned(), |finish| {
                    format!(
                        "{:?} {} {}{}",
                        finish.last_outcome,
                        finish.status.unwrap_or_default(),
                        finish.media_type,
                        if finish.payload_digest.is_some() {
                            " digest"
                        } else {
                            ""
                        },
                    )
                });
                format!(
                    "{} {} {} {how}",
                    imported.uri,
                    imported.hop_path.as_ref().map_or("?", |path| path.as_str()),
                    imported.via.as_deref().unwrap_or("-"),
                )
            })
            .collect();
        assert_eq!(net, expected);
    }

    const FETCHED: &str = "2026-11-20T12:00:00.000Z 200 9 http://a.org/z L http://a.org/ text/html #1 \
                           20261120120000000+1 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - -";
    const GONE: &str = "2026-11-20T12:00:00.000Z 404 9 http://a.org/z L http://a.org/ text/html #1 \
                        20261120120000000+1 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - -";
    const LOST: &str = "2026-11-21T12:00:00.000Z -2 - http://a.org/z L http://a.org/ - #1 - - - -";

    #[test]
    fn each_uri_is_returned_once_at_its_first_mention() {
        check(
            &[
                "F+ http://a.org/z L http://a.org/",
                "F+ http://a.org/y L http://a.org/",
                "F+ http://a.org/ya L http://a.org/",
                "Fe http://a.org/z",
                "F+ http://a.org/x L http://a.org/",
                "Fs http://a.org/y L http://a.org/",
            ],
            &[
                "http://a.org/z L http://a.org/ pending",
                "http://a.org/y L http://a.org/ Succeeded 0 ",
                "http://a.org/ya L http://a.org/ pending",
                "http://a.org/x L http://a.org/ pending",
            ],
        );
        check(&[], &[]);
    }

    #[test]
    fn a_finished_uri_stays_finished_in_any_order_of_lines() {
        let expected = ["http://a.org/z L http://a.org/ Disregarded 0 "];
        check(
            &["F+ http://a.org/z L http://a.org/", "Fd http://a.org/z"],
            &expected,
        );
        check(
            &["Fd http://a.org/z", "F+ http://a.org/z L http://a.org/"],
            &expected,
        );
        check(
            &["Fe http://a.org/z", "F+ http://a.org/z L http://a.org/"],
            &["http://a.org/z L http://a.org/ pending"],
        );
    }

    #[test]
    fn a_journal_and_a_crawl_log_complete_each_other() {
        let expected = ["http://a.org/z L http://a.org/ Succeeded 200 text/html digest"];
        let finished = "Fs http://a.org/z L http://a.org/";
        check(
            &["F+ http://a.org/z L http://a.org/", finished, FETCHED],
            &expected,
        );
        check(
            &[FETCHED, "F+ http://a.org/z L http://a.org/", finished],
            &expected,
        );
        let expected = ["http://a.org/z L http://a.org/ Failed 404 text/html digest"];
        check(&[GONE, finished], &expected);
        check(&[finished, GONE], &expected);
    }

    #[test]
    fn the_last_finish_counts_and_keeps_the_last_digest() {
        let expected = ["http://a.org/z L http://a.org/ Failed -2 text/html digest"];
        check(&[FETCHED, LOST], &expected);
        check(&[LOST, FETCHED], &expected);
    }
}
