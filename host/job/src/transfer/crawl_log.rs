//! `crawl.log` of Heritrix or Opilio: finished URIs. Its columns are those of [`CrawlLogLine`](crate::crawl_log::CrawlLogLine). A
//! thirteenth column, which Heritrix writes on request, and further columns from annotations with blanks are not read.

use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::LastOutcome;
use opilio_uri::HopPath;

use super::line::{LineProblem, sha1, time, uri};
use super::{Finish, ImportedRecord};

/// Minimum number of columns of a crawl log. Heritrix 1 wrote no source tag.
const COLUMNS_MIN: usize = 11;

pub(super) fn parse(line: &[u8]) -> Result<ImportedRecord, LineProblem> {
    let line = String::from_utf8_lossy(line);
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[
        logged,
        status,
        size,
        address,
        hop_path,
        via,
        media_type,
        _lane,
        fetch,
        digest,
        source,
        ..,
    ] = columns.as_slice()
    else {
        return Err(LineProblem::Columns(columns.len()));
    };
    debug_assert!(columns.len() >= COLUMNS_MIN);
    let status: i32 = status
        .parse()
        .map_err(|_| LineProblem::Status(status.chars().take(20).collect()))?;
    let hop_path = match hop_path {
        "-" => HopPath::new(),
        letters => HopPath::parse(letters).map_err(LineProblem::HopPath)?,
    };
    let present = |column: &str| (column != "-").then(|| column.to_owned());
    Ok(ImportedRecord {
        uri: uri(address)?,
        seed: hop_path.is_empty(),
        hop_path: Some(hop_path),
        via: present(via),
        context: String::new(),
        // The last of eleven columns holds the annotations.
        source: present(source).filter(|_| columns.len() > COLUMNS_MIN),
        finished: last_outcome(status).map(|last_outcome| Finish {
            last_outcome,
            status: Some(status),
            at: fetched(fetch).or_else(|| time(logged)),
            media_type: match media_type {
                "-" | "no-type" | "unknown" => String::new(),
                media_type => media_type.to_ascii_lowercase(),
            },
            payload_digest: sha1(digest),
            size: size.parse().ok(),
        }),
    })
}

/// Returns the last outcome for a code of the glossary; `None` if the URI was not finished.
fn last_outcome(status: i32) -> Option<LastOutcome> {
    match status {
        // The URI was not attempted, or was deferred. Deferred URIs are logged by mistake only.
        0 | -50 => None,
        // Prerequisites are not imported.
        _ => Some(LastOutcome::of(status, false)),
    }
}

/// Parses the end of a fetch from `20261120123456789+42`, its start and its duration in milliseconds.
fn fetched(column: &str) -> Option<Timestamp> {
    let (start, milliseconds) = column.split_once('+')?;
    let duration = Duration::from_millis(milliseconds.parse().ok()?);
    time(start)?.checked_add(duration).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl_log::CrawlLogLine;

    #[track_caller]
    fn check(line: &str, expected: Result<ImportedRecord, &str>) {
        let parsed = parse(line.as_bytes()).map_err(|problem| problem.to_string());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{line}");
    }

    fn page() -> ImportedRecord {
        ImportedRecord {
            uri: "http://example.org/".parse().unwrap(),
            hop_path: Some("LE".parse().unwrap()),
            via: Some("http://example.org/via".to_owned()),
            context: String::new(),
            source: None,
            seed: false,
            finished: Some(Finish {
                last_outcome: LastOutcome::Succeeded,
                status: Some(200),
                at: "2026-11-20T12:34:55.043Z".parse().ok(),
                media_type: "text/html".to_owned(),
                payload_digest: sha1("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
                size: Some(1234),
            }),
        }
    }

    const PAGE: &str = "2026-11-20T12:34:56.789Z   200       1234 http://example.org/ LE http://example.org/via text/html \
                        #007 20261120123455001+42 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    #[test]
    fn columns_of_all_log_versions_are_read() {
        assert!(page().finished.unwrap().payload_digest.is_some());
        check(&format!("{PAGE} - 3t,err=a__b"), Ok(page()));
        let tagged = ImportedRecord {
            source: Some("http://seed.org/".to_owned()),
            ..page()
        };
        check(
            &format!("{PAGE} http://seed.org/ - {{\"contentSize\":1300}}"),
            Ok(tagged),
        );
        check(&format!("{PAGE} 3t"), Ok(page()));
        check(PAGE, Err("10 columns instead of the 12 of a crawl log"));
    }

    #[test]
    fn our_own_lines_are_read() {
        let line = CrawlLogLine {
            logged: "2026-11-20T12:34:56.789Z".parse().unwrap(),
            status: 200,
            size: Some(1234),
            uri: "http://example.org/".to_owned(),
            hop_path: "LE".to_owned(),
            via: Some("http://example.org/via".to_owned()),
            media_type: Some("Text/HTML; charset=utf-8".to_owned()),
            worker: 1234,
            fetch: Some((
                "2026-11-20T12:34:55.001Z".parse().unwrap(),
                Duration::from_millis(42),
            )),
            digest: Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned()),
            source: None,
            annotations: Vec::new(),
            extra: None,
        };
        check(&line.to_string(), Ok(page()));
    }

    #[test]
    fn dashes_are_read_as_missing_values() {
        let seed = ImportedRecord {
            hop_path: Some(HopPath::new()),
            via: None,
            seed: true,
            finished: Some(Finish {
                status: Some(-9998),
                at: "2026-11-20T12:34:56.789Z".parse().ok(),
                ..Finish::of(LastOutcome::Disregarded)
            }),
            ..page()
        };
        check(
            "2026-11-20T12:34:56.789Z -9998          - http://example.org/ - - unknown #007 - - - -",
            Ok(seed),
        );
    }

    #[test]
    fn invalid_columns_have_a_reason() {
        for (line, expected) in [
            ("", "0 columns instead of the 12 of a crawl log"),
            ("a b c d e f g h i j k l", "invalid fetch status \"b\""),
            (
                "a 99999999999 c d e f g h i j k l",
                "invalid fetch status \"99999999999\"",
            ),
            ("a 1 c d e f g h i j k l", "no hop path"),
            ("a 1 c d L f g h i j k l", "\"d\" cannot be crawled"),
        ] {
            check(line, Err(expected));
        }
        let odd = parse(
            b"never 200 -1 http://a.org/ L - - # 99999999999999999+99999999999999999999 sha1:short - -",
        )
        .unwrap();
        let finish = odd.finished.unwrap();
        assert_eq!(
            (finish.at, finish.size, finish.payload_digest),
            (None, None, None)
        );
    }

    #[test]
    fn status_codes_map_to_outcomes() {
        for (status, expected) in [
            (200, Some(LastOutcome::Succeeded)),
            (404, Some(LastOutcome::Failed)),
            (1, Some(LastOutcome::Succeeded)),
            (0, None),
            (-50, None),
            (-2, Some(LastOutcome::Failed)),
            (-404, Some(LastOutcome::Failed)),
            (-3000, Some(LastOutcome::Failed)),
            (-7000, Some(LastOutcome::Failed)),
            (-4000, Some(LastOutcome::Disregarded)),
            (-4002, Some(LastOutcome::Disregarded)),
            (-5003, Some(LastOutcome::Disregarded)),
            (-6000, Some(LastOutcome::Disregarded)),
            (-9998, Some(LastOutcome::Disregarded)),
        ] {
            assert_eq!(last_outcome(status), expected, "{status}");
        }
    }
}
