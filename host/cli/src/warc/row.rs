//! Records as lines, and the selection of records.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use opilio_archive::{Extent, Headers, HttpPayload, StoredRecord};
use opilio_fetch::ResponseHead;
use opilio_uri::Uri;
use serde_json::{Value, json};

use crate::usage_error::UsageError;

/// Bytes of a block that are searched for the HTTP header at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Types of records.
const TYPES: [&str; 8] = [
    "warcinfo",
    "response",
    "resource",
    "request",
    "metadata",
    "revisit",
    "conversion",
    "continuation",
];

/// The summary of a record.
pub(crate) struct Row {
    pub(crate) headers: Headers,
    /// Status of the response, if it is an HTTP response.
    pub(crate) status: Option<u16>,
    pub(crate) media_type: Option<String>,
    /// The server's value, parameters included.
    pub(crate) content_type: Option<String>,
}

/// Selection of records.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Filter {
    /// Select records of this URI; `*` matches any text. All filters may be repeated; one value of each must match.
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,
    /// Select records of URIs with this SURT prefix: http://(org,example, matches example.org and its subdomains.
    #[arg(long, value_name = "PREFIX")]
    surt: Vec<String>,
    /// Select records of this WARC-Type.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    kind: Vec<String>,
    /// Select records with this HTTP status: 404, or 4xx.
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<String>,
    /// Select records with this media type: text/html, or text/*.
    #[arg(
        long,
        visible_alias = "mime",
        value_name = "TYPE",
        value_delimiter = ','
    )]
    media_type: Vec<String>,
}

impl Row {
    /// Reads the part of a record that the summary needs.
    pub(crate) fn of(record: &mut StoredRecord<'_>) -> Result<Row> {
        Ok(Row::with_start(record)?.0)
    }

    /// Reads the summary, and returns the part of the block that was read for it.
    pub(crate) fn with_start(record: &mut StoredRecord<'_>) -> Result<(Row, Vec<u8>)> {
        let headers = record.headers().clone();
        let mut start = Vec::new();
        let mut head = None;
        if is_http(&headers) && headers.kind() != "request" {
            let mut machine = HttpPayload::new();
            let mut piece = vec![0; PIECE_BYTES];
            while !machine.in_body() {
                let length = record.read_block(&mut piece)?;
                if length == 0 {
                    break;
                }
                machine.feed(&piece[..length], |_| {});
                start.extend_from_slice(&piece[..length]);
            }
            head = ResponseHead::of_recording(machine.head());
        }
        let media_type = match (&head, headers.kind()) {
            (Some(head), _) => head.media_type(),
            (None, "response" | "revisit" | "request") if is_http(&headers) => None,
            (None, _) => headers.first("Content-Type").map(essence),
        };
        let content_type = head
            .as_ref()
            .and_then(|head| head.first("Content-Type"))
            .map(str::to_owned);
        let row = Row {
            content_type,
            status: head.map(|head| head.status),
            media_type,
            headers,
        };
        Ok((row, start))
    }

    /// Returns the record as a JSON object.
    pub(crate) fn as_json(&self, file: &Path, extent: Extent) -> Value {
        let first = |name| self.headers.first(name);
        json!({
            "file": file.display().to_string(),
            "offset": extent.offset,
            "length": (!extent.shared).then_some(extent.length),
            "id": first("WARC-Record-ID").map(bare),
            "type": self.headers.kind(),
            "date": first("WARC-Date"),
            "uri": self.headers.target_uri(),
            "status": self.status,
            "media_type": self.media_type,
            "bytes": first("Content-Length").and_then(|length| length.parse::<u64>().ok()),
            "payload_digest": first("WARC-Payload-Digest"),
            "refers_to": first("WARC-Refers-To").map(bare),
            "truncated": first("WARC-Truncated"),
        })
    }
}

impl Filter {
    /// Refuses invalid filters before anything is read.
    pub(super) fn check(&self) -> Result<()> {
        for kind in &self.kind {
            ensure!(
                TYPES.contains(&kind.as_str()),
                "--type {kind}: unknown record type (expected one of {})",
                TYPES.join(", ")
            );
        }
        for status in &self.status {
            let fits = status.len() == 3
                && status.bytes().next().is_some_and(|c| c.is_ascii_digit())
                && status.bytes().all(|c| c.is_ascii_digit() || c == b'x');
            ensure!(
                fits,
                "--status {status}: invalid status; write a number such as 404, or 4xx"
            );
        }
        for prefix in &self.surt {
            check_surt(prefix)?;
        }
        Ok(())
    }

    /// Returns `true` if record types were named.
    pub(super) fn names_types(&self) -> bool {
        !self.kind.is_empty()
    }

    /// Returns `true` if a record is selected, as far as its header shows.
    pub(super) fn wants(&self, headers: &Headers) -> bool {
        let uri = headers.target_uri().unwrap_or_default();
        any(&self.kind, |kind| kind == headers.kind())
            && any(&self.uri, |pattern| fits(pattern, uri))
            && any(&self.surt, |prefix| has_surt(prefix, uri))
    }

    /// Returns `true` if a record is selected, by all filters.
    pub(super) fn wants_row(&self, row: &Row) -> bool {
        let status = row.status.map(|status| status.to_string());
        let status = status.unwrap_or_default();
        let media_type = row.media_type.as_deref().unwrap_or_default();
        any(&self.status, |wanted| {
            wanted.len() == status.len()
                && wanted
                    .bytes()
                    .zip(status.bytes())
                    .all(|(wanted, c)| wanted == b'x' || wanted == c)
        }) && any(&self.media_type, |pattern| {
            fits(&pattern.to_ascii_lowercase(), media_type)
        })
    }
}

/// Refuses a text that cannot be a SURT prefix.
pub(super) fn check_surt(prefix: &str) -> Result<()> {
    if !prefix.contains("://(") && !prefix.starts_with("dns:") {
        bail!(
            "--surt {prefix}: not a SURT prefix such as http://(org,example, (`opilio uri URI` shows the SURT of a URI)"
        );
    }
    Ok(())
}

/// Returns `true` if the SURT of a URI begins with a prefix. SURTs of https begin with http; prefixes may have either scheme.
pub(super) fn has_surt(prefix: &str, uri: &str) -> bool {
    let prefix = match prefix.strip_prefix("https://(") {
        Some(rest) => format!("http://({rest}"),
        None => prefix.to_owned(),
    };
    Uri::parse(uri).is_ok_and(|uri| uri.surt().starts_with(&prefix))
}

fn any(wanted: &[String], fits: impl Fn(&str) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| fits(wanted))
}

/// Returns `true` if a text matches a pattern. `*` matches any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

/// Returns `true` if the block is an HTTP message.
pub(super) fn is_http(headers: &Headers) -> bool {
    headers
        .first("Content-Type")
        .is_some_and(|value| essence(value) == "application/http")
}

/// Returns a record id without its angle brackets.
pub(super) fn bare(id: &str) -> &str {
    id.strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .unwrap_or(id)
}

fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Parses a number of bytes from a command line.
pub(super) fn offset(text: &str) -> Result<u64> {
    text.parse()
        .with_context(|| UsageError::new(format!("invalid offset {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }

    #[test]
    fn a_star_matches_any_text() {
        check("http://a/", "http://a/", true);
        check("http://a/", "http://a/b", false);
        check("http://a/*", "http://a/", true);
        check("*/b", "http://a/b", true);
        check("*/b", "http://a/b/c", false);
        check("http://*/b*c", "http://a/bc", true);
        check("http://*/b*c", "http://a/bd", false);
        check("a*a", "a", false);
        check("*", "", true);
        check("text/*", "text/html", true);
    }

    #[test]
    fn a_surt_prefix_matches_http_and_https() {
        assert!(has_surt("http://(org,example,", "https://www.example.org/"));
        assert!(has_surt("https://(org,example,", "http://example.org/a"));
        assert!(!has_surt(
            "http://(org,example,)",
            "http://www.example.org/"
        ));
        assert!(!has_surt("http://(org,example,", "urn:x"));
    }
}
