//! A CDXJ index for replay tools: one line for the last archived version of each URI.
//!
//! `org,example)/path 20261120123456 {"url":"http://www.example.org/path","mime":"text/html","status":"200",…}`. Replay tools look
//! keys up by bisection, so lines are in the order of their bytes. That differs from the order of the frontier's keys: a CDX key
//! has no scheme and no `www`, is in lower case and has sorted parameters. This module therefore sorts the lines.

use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_frontier::{UriRecord, WarcLocation};
use opilio_uri::cdx_key;
use serde::Serialize;

use super::json_lines::sha1_text;
use super::sorter::Sorter;
use super::{Selection, TransferError};

/// The fields of a line. Values are strings, as other indexers write them. `length` is left out: the frontier does not keep it,
/// and replay works without it.
#[derive(Serialize)]
struct Capture<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    mime: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    offset: String,
    filename: &'a str,
}

/// Writes a sorted index with a line per URI with an archived version. If the index exceeds 64 MiB, sorting needs room for the
/// whole index in `folder`. Returns the number of lines.
///
/// # Errors
/// Returns [`TransferError`]. For [`TransferError::Write`], the lines written before are in order.
pub fn write_cdxj(
    records: impl IntoIterator<Item = Result<UriRecord, opilio_frontier::FrontierError>>,
    selection: &Selection,
    folder: &Path,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let sort = |source| TransferError::Sort {
        folder: folder.to_owned(),
        source,
    };
    let mut lines = Sorter::new(folder).map_err(sort)?;
    for record in records {
        let record = record?;
        if let Some(location) = &record.archived
            && selection.takes(&record)
        {
            let line = line(&record, location).map_err(TransferError::Write)?;
            lines.push(line.as_bytes()).map_err(sort)?;
        }
    }
    let mut count = 0;
    for line in lines.sorted().map_err(sort)? {
        out.write_all(&line.map_err(sort)?)
            .map_err(TransferError::Write)?;
        count += 1;
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

fn line(record: &UriRecord, location: &WarcLocation) -> std::io::Result<String> {
    let capture = Capture {
        url: &record.uri,
        mime: &record.media_type,
        status: status(record),
        digest: record.digests.payload.map(sha1_text),
        offset: location.offset.to_string(),
        filename: &location.file,
    };
    Ok(format!(
        "{} {} {}\n",
        // A blank would end the key. Normalised URIs contain no blanks.
        cdx_key(&record.uri).replace(' ', "%20"),
        timestamp14(location.date),
        serde_json::to_string(&capture)?,
    ))
}

/// Returns the HTTP status of the archived version. A later visit that failed, or found the document unchanged, has another
/// status. Documents of other protocols have none.
fn status(record: &UriRecord) -> Option<String> {
    record
        .history
        .iter()
        .find(|visit| visit.state.is_version())
        .map_or(Some(record.status), |visit| Some(visit.status))
        .filter(|status| (100..1000).contains(status))
        .map(|status| status.to_string())
}

/// Formats a time as `20261120123456`.
fn timestamp14(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%Y%m%d%H%M%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::super::test_frontier::{Trial, archived};
    use super::*;

    fn index(trial: &Trial, selection: &Selection) -> Vec<String> {
        let mut out = Vec::new();
        let folder = tempfile::tempdir().unwrap();
        let records = trial.frontier.records(selection.key_prefix());
        let count = write_cdxj(records, selection, folder.path(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len() as u64, count);
        lines
    }

    #[test]
    fn a_line_has_the_form_of_other_indexers() {
        let mut trial = Trial::new();
        trial.fetch(
            "https://www.example.org/Path/?b=1&a=2",
            archived(200, "text/html"),
        );
        assert_eq!(
            index(&trial, &Selection::default()),
            [
                "org,example)/path?a=2&b=1 20261120123456 {\"url\":\"https://www.example.org/Path/?b=1&a=2\",\
                 \"mime\":\"text/html\",\"status\":\"200\",\"digest\":\"sha1:AEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIB\",\
                 \"offset\":\"9\",\"filename\":\"a.warc.gz\"}"
            ]
        );
    }

    #[test]
    fn lines_are_sorted_in_index_order() {
        let mut trial = Trial::new();
        // The URIs are in the order of their record keys.
        for uri in [
            "dns:example.org",
            "http://example.org/B",
            "http://example.org/c",
            "http://www.example.org/a",
            "http://example.org:8080/",
        ] {
            let status = if uri.starts_with("dns") { 1 } else { 404 };
            trial.fetch(uri, archived(status, "text/plain"));
        }
        trial.schedule("http://example.org/waiting");
        let lines = index(&trial, &Selection::default());
        assert!(lines.is_sorted(), "{lines:#?}");
        let keys: Vec<_> = lines
            .iter()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert_eq!(
            keys,
            [
                "dns:example.org",
                "org,example)/a",
                "org,example)/b",
                "org,example)/c",
                "org,example:8080)/",
            ]
        );
        assert!(!lines[0].contains("status"), "a name has no HTTP status");
        assert!(lines[1].contains("\"status\":\"404\""));
    }

    #[test]
    fn a_later_failure_keeps_the_status_of_the_archived_version() {
        let mut trial = Trial::new();
        trial.fetch("http://example.org/", archived(200, "text/html"));
        trial.fail("http://example.org/", -2);
        let lines = index(&trial, &Selection::default());
        assert!(lines[0].contains("\"status\":\"200\""), "{lines:?}");
    }

    #[test]
    fn a_selection_matches_by_prefix_and_expression() {
        let mut trial = Trial::new();
        for uri in [
            "http://a.org/1.png",
            "https://a.org/1.html",
            "http://b.org/1.png",
        ] {
            trial.fetch(uri, archived(200, "image/png"));
        }
        let selection = Selection::new("http://(org,a,", regex::Regex::new(r"\.png$").ok());
        let lines = index(&trial, &selection);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("http://a.org/1.png"));
    }
}
