//! An index of what is archived, as replay tools read it: one line per URI with an archived version, its last one.
//!
//! `org,example)/path 20261120123456 {"url":"http://www.example.org/path","mime":"text/html","status":"200",…}`. Such
//! tools look keys up by bisection, so lines stand in the order of their bytes. That is not the order of the frontier's
//! keys: an index has no scheme and no `www`, writes everything lower-case and sorts parameters. So they are sorted here.

use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_frontier::{ContentState, UriRecord, WarcLocation};
use opilio_uri::cdx_key;
use serde::Serialize;

use super::json_lines::sha1_text;
use super::sorter::Sorter;
use super::{Selection, TransferError};

/// Values are texts, as other indexers write them. `length` is not among them: the frontier does not keep it, and replay
/// does without.
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

/// Writes a line per URI with an archived version, sorted. Sorting needs room for the whole index in `folder` where it
/// does not fit into 64 MiB. Returns how many lines.
///
/// # Errors
/// [`TransferError`]; where it is [`TransferError::Write`] the lines written before are in order.
pub fn write_cdxj(
    records: impl IntoIterator<Item = Result<UriRecord, opilio_frontier::Error>>,
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
        // A blank would end the key. No URI that is normalised has one.
        cdx_key(&record.uri).replace(' ', "%20"),
        timestamp14(location.date),
        serde_json::to_string(&capture)?,
    ))
}

/// The HTTP status of the archived version. A visit that failed since, or found it unchanged, has left another one; and
/// what is no HTTP has none.
fn status(record: &UriRecord) -> Option<String> {
    record
        .history
        .iter()
        .find(|visit| matches!(visit.state, ContentState::New | ContentState::Changed))
        .map_or(Some(record.status), |visit| Some(visit.status))
        .filter(|status| (100..1000).contains(status))
        .map(|status| status.to_string())
}

/// `20261120123456`.
fn timestamp14(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%Y%m%d%H%M%S")
        .to_string()
}
