//! Log entries about a URI: its visits in `crawl.log`, with annotations of plugins and the crawler, and lines of the other logs
//! that name it.
//!
//! Logs are searched from their ends, up to a limit, so that the latest entries are found even in long logs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use opilio_crawl::logs::filter::LogFilter;
use opilio_crawl::logs::read::{self, LogFile};
use opilio_uri::Uri;
use regex::Regex;
use serde::Serialize;
use utoipa::ToSchema;

use super::Shared;
use super::job_folders::places;
use super::jobs::blocking;
use super::uris::{UriQuery, seed};
use crate::input::{Params, PathParams};
use crate::problem::Problem;

/// The log with a line for each visit.
const CRAWL: &str = "crawl.log";
/// The log with the same lines as JSON.
const CRAWL_AGAIN: &str = "crawl.jsonl";

/// Maximum visits listed, and maximum lines of each other log.
const VISITS_MAX: usize = 50;
const LINES_MAX: usize = 20;

/// Bytes of a log, with its rotated files, after which no further page of it is searched.
const LOOKED_AT_MAX: u64 = 256 << 20;

/// Log entries about a URI.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Mentions {
    /// The normalised URI, as in logs.
    uri: String,
    /// Visits in `crawl.log`, newest first.
    visits: Vec<MentionedVisit>,
    /// Lines of other logs that contain the URI, newest of each log first.
    lines: Vec<LoggedLine>,
    /// `true` if all logs were searched to their beginnings. Otherwise there may be earlier entries.
    is_whole: bool,
}

/// Visit in `crawl.log`.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct MentionedVisit {
    /// Time of the log line.
    at: Timestamp,
    /// HTTP status, or a status code of the glossary.
    status: i32,
    /// Annotations of the crawl and of plugins.
    annotations: Vec<String>,
    /// Name of the log file.
    log: String,
}

/// Line of a log.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct LoggedLine {
    /// Name of the log file.
    log: String,
    /// Offset of the line in the file.
    at: u64,
    /// Text of the line.
    text: String,
}

/// Returns the log entries about a URI: its visits with their annotations, and other lines that contain the URI.
#[utoipa::path(get, path = "/jobs/{job}/mentions", operation_id = "list_mentions", tag = "watch", params(("job" = String, Path, description = "Name of the job"), UriQuery), responses((status = 200, body = Mentions)))]
pub(crate) async fn mentions(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
    Params(asked): Params<UriQuery>,
) -> Result<Json<Mentions>, Problem> {
    let directory = daemon.directory(&job)?;
    let uri = seed(&asked.uri)?;
    let found = blocking(move || {
        let logs = places(&directory)?.logs;
        Mentions::of(&uri, &logs)
            .map_err(|problem| Problem::failure(format!("cannot read the logs: {problem}")))
    });
    Ok(Json(found.await?))
}

impl Mentions {
    /// Searches a folder of logs. Blocks.
    fn of(uri: &Uri, folder: &Path) -> io::Result<Mentions> {
        let quoted = regex::escape(uri.as_str());
        let visit = expression(&format!(r"^\S+ +-?\d+ +(?:\d+|-) {quoted} "))?;
        // The URI must not be the beginning of a longer one.
        let named = expression(&format!(r#"(?:^|[\s"'(<\[=,]){quoted}(?:$|[\s"')>\],;])"#))?;
        let mut found = Mentions {
            uri: uri.to_string(),
            visits: Vec::new(),
            lines: Vec::new(),
            is_whole: true,
        };
        let mut logs = by_log(read::files(folder)?);
        logs.remove(CRAWL_AGAIN);
        for (log, files) in logs {
            let (expression, max) = match log == CRAWL {
                true => (&visit, VISITS_MAX),
                false => (&named, LINES_MAX),
            };
            let (lines, is_whole) = search(folder, &files, expression, max)?;
            found.is_whole &= is_whole;
            match log == CRAWL {
                true => found.visits = lines.iter().filter_map(LoggedLine::visit).collect(),
                false => found.lines.extend(lines),
            }
        }
        Ok(found)
    }
}

impl LoggedLine {
    /// Parses the visit of a line of `crawl.log`.
    fn visit(&self) -> Option<MentionedVisit> {
        let mut columns = self.text.split_ascii_whitespace();
        let at = columns.next()?.parse().ok()?;
        let status = columns.next()?.parse().ok()?;
        let annotations = columns.nth(9).filter(|noted| *noted != "-");
        let annotations = annotations.into_iter().flat_map(|noted| noted.split(','));
        Some(MentionedVisit {
            at,
            status,
            annotations: annotations.map(str::to_owned).collect(),
            log: self.log.clone(),
        })
    }
}

fn expression(text: &str) -> io::Result<Regex> {
    Regex::new(text).map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// The files of each log by its name, the latest first.
fn by_log(files: Vec<LogFile>) -> BTreeMap<String, Vec<String>> {
    let mut logs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Names of rotated files end in the time, so in the order of names they follow the current file, the latest last.
    for LogFile { name, .. } in files.into_iter().rev() {
        let stamp = |it: &str| it.len() == 17 && it.bytes().all(|byte| byte.is_ascii_digit());
        let log = name.rsplit_once('.').filter(|(_, end)| stamp(end));
        let (log, is_rotated) = match log {
            Some((log, _)) => (log.to_owned(), true),
            None => (name.clone(), false),
        };
        let of_log = logs.entry(log).or_default();
        match is_rotated {
            true => of_log.push(name),
            false => of_log.insert(0, name),
        }
    }
    logs
}

/// The last matching lines, the latest first, and whether the search reached the beginning.
fn search(
    folder: &Path,
    files: &[String],
    expression: &Regex,
    max: usize,
) -> io::Result<(Vec<LoggedLine>, bool)> {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for log in files {
        let mut before = None;
        loop {
            if found.len() >= max || looked_at >= LOOKED_AT_MAX {
                return Ok((found, false));
            }
            let wanted = read::LogQuery {
                tail: true,
                before,
                filter: LogFilter {
                    text: Some(expression.clone()),
                    ..LogFilter::default()
                },
                lines: Some(max - found.len()),
                ..read::LogQuery::default()
            };
            let page = read::page(&folder.join(log), &wanted)?;
            looked_at += page.end - page.start;
            let lines = page.lines.into_iter().rev();
            found.extend(lines.map(|line| LoggedLine {
                log: log.clone(),
                at: line.at,
                text: line.text,
            }));
            // Without this check, a line longer than a page would be read again and again.
            if page.start == 0 || before == Some(page.start) {
                break;
            }
            before = Some(page.start);
        }
    }
    Ok((found, true))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use opilio_crawl::CrawlLogLine;

    use super::*;

    /// A line of `crawl.log`, as crawls write it.
    fn visit(second: u8, status: i32, uri: &str, annotations: &[&str]) -> String {
        let logged = format!("2026-11-22T10:00:{second:02}Z");
        let line = CrawlLogLine {
            logged: logged.parse().unwrap(),
            status,
            size: (status > 0).then_some(9),
            uri: uri.to_owned(),
            hop_path: "L".to_owned(),
            via: Some("http://a.org/page".to_owned()),
            media_type: None,
            worker: 1,
            fetch: None,
            digest: None,
            source: None,
            annotations: annotations.iter().map(|it| (*it).to_owned()).collect(),
            extra: None,
        };
        format!("{line}\n")
    }

    fn mentions(folder: &Path) -> Mentions {
        let uri = Uri::parse_seed("http://a.org/page").unwrap();
        Mentions::of(&uri, folder).unwrap()
    }

    #[test]
    fn visits_of_rotated_files_are_found_with_their_annotations() {
        let home = tempfile::tempdir().unwrap();
        let write = |file: &str, text: String| fs::write(home.path().join(file), text).unwrap();
        let page = "http://a.org/page";
        write("crawl.log.20261122100001000", visit(1, 200, page, &["new"]));
        write("crawl.log.20261122100002000", visit(2, 404, page, &[]));
        // URIs that were found on the page, or that begin like its URI, do not match.
        let others = visit(3, 200, "http://a.org/page2", &["other"]);
        let last = visit(4, -5004, page, &["botblock:cloudflare", "3t"]);
        write("crawl.log", others + &last);
        // The JSON log repeats the visits.
        write("crawl.jsonl", format!("{{\"uri\":\"{page}\"}}\n"));
        let found = mentions(home.path());
        let visits: Vec<_> = found
            .visits
            .iter()
            .map(|visit| (visit.status, visit.annotations.join(" "), &*visit.log))
            .collect();
        let expected = [
            (-5004, "botblock:cloudflare 3t".to_owned(), "crawl.log"),
            (404, String::new(), "crawl.log.20261122100002000"),
            (200, "new".to_owned(), "crawl.log.20261122100001000"),
        ];
        assert_eq!(visits, expected);
        assert!(found.is_whole && found.lines.is_empty(), "{found:?}");
    }

    #[test]
    fn lines_of_other_logs_match_the_whole_uri_only() {
        let home = tempfile::tempdir().unwrap();
        let text = "1 http://a.org/page \"no\"\n2 http://a.org/page/2\n3 x=<http://a.org/page>\n4 http://a.org/pagehttp\n";
        fs::write(home.path().join("uri-errors.log"), text).unwrap();
        let found = mentions(home.path());
        let begin = |line: &LoggedLine| line.text[..1].to_owned();
        let lines: Vec<String> = found.lines.iter().map(begin).collect();
        assert_eq!(lines, ["3", "1"]);
    }

    #[test]
    fn the_list_is_cut_to_the_latest_lines_and_marked() {
        let home = tempfile::tempdir().unwrap();
        let lines: String = (0..=LINES_MAX)
            .map(|n| format!("{n} http://a.org/page\n"))
            .collect();
        fs::write(home.path().join("uri-errors.log"), lines).unwrap();
        let found = mentions(home.path());
        assert_eq!(found.lines.len(), LINES_MAX);
        assert!(found.lines[0].text.starts_with("20 "), "{found:?}");
        assert!(!found.is_whole);
    }
}
