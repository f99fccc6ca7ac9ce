//! Selections of URIs, and export of URIs and queues as JSON lines.

use std::io::Write;
use std::ops::RangeInclusive;

use opilio_frontier::{LastOutcome, QueueReport, UriRecord, UriState};
use opilio_uri::Uri;
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::TransferError;
use super::json_lines::{QueueLine, UriLine};

/// Name of a missing media type, as in `crawl.log`.
const NO_TYPE: &str = "no-type";

/// A selection of URIs. All conditions must match.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    key_prefix: String,
    uri: Option<Regex>,
    host: Option<String>,
    outcome: Outcomes,
}

/// Conditions on the last outcome of URIs. An empty list accepts every value.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Fetch statuses.
    pub statuses: Vec<RangeInclusive<i32>>,
    /// State; `None` accepts every state.
    pub state: Option<StateSelector>,
    /// Media type without parameters, lower-case; `image/*` accepts all images, `no-type` URIs without a media type.
    pub media_type: Option<String>,
}

/// State of a URI: its place, or the result of its last completed visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateSelector {
    /// The URI is in a queue.
    Queued,
    /// The URI is in no queue. It is not fetched unless an operator forces it.
    Done,
    /// An operator deleted the URI.
    Deleted,
    /// The URI has faded: no page has named it for a long time.
    Faded,
    /// The URI has not had a visit.
    Open,
    /// The last visit got a response other than an error response.
    Succeeded,
    /// The last visit failed, or got an error response (4xx, 5xx).
    Failed,
    /// The URI was disregarded: robots.txt, a filter, a quota or an operator excludes it.
    Disregarded,
    /// A prerequisite was answered: a DNS look-up, a robots.txt or a login.
    Prerequisite,
}

impl StateSelector {
    /// All states.
    pub const ALL: [StateSelector; 9] = [
        StateSelector::Queued,
        StateSelector::Done,
        StateSelector::Deleted,
        StateSelector::Faded,
        StateSelector::Open,
        StateSelector::Succeeded,
        StateSelector::Failed,
        StateSelector::Disregarded,
        StateSelector::Prerequisite,
    ];

    /// Returns the state's name.
    pub fn name(self) -> &'static str {
        match self {
            StateSelector::Queued => "queued",
            StateSelector::Done => "done",
            StateSelector::Deleted => "deleted",
            StateSelector::Faded => "faded",
            StateSelector::Open => "open",
            StateSelector::Succeeded => "succeeded",
            StateSelector::Failed => "failed",
            StateSelector::Disregarded => "disregarded",
            StateSelector::Prerequisite => "prerequisite",
        }
    }

    fn is_of(self, record: &UriRecord) -> bool {
        match self {
            StateSelector::Queued => matches!(record.state, UriState::Queued { .. }),
            StateSelector::Done => record.state == UriState::Done,
            StateSelector::Deleted => record.state == UriState::Deleted,
            StateSelector::Faded => record.state == UriState::Faded,
            StateSelector::Open => record.last_outcome == LastOutcome::Open,
            StateSelector::Succeeded => record.last_outcome == LastOutcome::Succeeded,
            StateSelector::Failed => record.last_outcome == LastOutcome::Failed,
            StateSelector::Disregarded => record.last_outcome == LastOutcome::Disregarded,
            StateSelector::Prerequisite => record.last_outcome == LastOutcome::Prerequisite,
        }
    }
}

impl Outcomes {
    /// Parses fetch statuses, separated by commas: `404`, `5xx`, `500-599`, `-2`.
    ///
    /// # Errors
    /// The part that is not a status.
    pub fn statuses(text: &str) -> Result<Vec<RangeInclusive<i32>>, String> {
        let parts = text.split(',').map(str::trim);
        parts
            .map(|part| status_range(part).ok_or_else(|| part.to_owned()))
            .collect()
    }

    fn accept(&self, record: &UriRecord) -> bool {
        let statuses = &self.statuses;
        let of_type = |wanted: &String| match wanted.strip_suffix('*') {
            Some(kind) => record.media_type.starts_with(kind),
            None if wanted == NO_TYPE => record.media_type.is_empty(),
            None => record.media_type == *wanted,
        };
        (statuses.is_empty() || statuses.iter().any(|range| range.contains(&record.status)))
            && self.state.is_none_or(|state| state.is_of(record))
            && self.media_type.as_ref().is_none_or(of_type)
    }
}

/// Parses a status, a class of statuses such as `4xx`, or a range.
fn status_range(text: &str) -> Option<RangeInclusive<i32>> {
    if let Ok(status) = text.parse() {
        return Some(status..=status);
    }
    if let Some(class) = text.strip_suffix("xx") {
        let first = class
            .parse::<i32>()
            .ok()
            .filter(|class| (1..=9).contains(class))?
            * 100;
        return Some(first..=first + 99);
    }
    // The first character may be the sign of the lower bound.
    let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-')?.0;
    let (from, to) = (text[..dash].parse().ok()?, text[dash + 1..].parse().ok()?);
    (from <= to).then_some(from..=to)
}

impl Selection {
    /// Selects URIs whose key begins with this prefix and that contain a match of the expression. The prefix is written as a SURT
    /// prefix or without the scheme (`org,example,www,)/path`). In a SURT prefix (`http://(org,example,`) the scheme does not
    /// matter, since URIs of all schemes are next to each other. An empty prefix selects all.
    #[must_use]
    pub fn new(surt_prefix: &str, uri: Option<Regex>) -> Selection {
        Selection {
            key_prefix: key_prefix(surt_prefix),
            uri,
            ..Selection::default()
        }
    }

    /// Selects only URIs with these outcomes.
    #[must_use]
    pub fn with_outcomes(self, outcome: Outcomes) -> Selection {
        Selection { outcome, ..self }
    }

    /// Selects only URIs of this host, without its subdomains. Returns `None` if the host is not a host name.
    #[must_use]
    pub fn with_host(mut self, host: &str) -> Option<Selection> {
        let uri = Uri::parse(&format!("http://{host}/")).ok()?;
        if uri.path_and_query() != "/" || uri.port().is_some() || uri.userinfo().is_some() {
            return None;
        }
        if self.key_prefix.is_empty() {
            // Records of the host are next to each other, with those of its subdomains.
            self.key_prefix = key_prefix(uri.surt().trim_end_matches(")/"));
        }
        self.host = Some(uri.host()?.to_owned());
        Some(self)
    }

    /// Returns the prefix for [`Frontier::records`](opilio_frontier::Frontier::records).
    #[must_use]
    pub fn key_prefix(&self) -> &str {
        &self.key_prefix
    }

    /// Returns `true` if the rest of the selection accepts the URI.
    pub fn takes(&self, record: &UriRecord) -> bool {
        let is_host = |host: &String| {
            let uri = Uri::parse(&record.uri);
            uri.is_ok_and(|uri| uri.host() == Some(host))
        };
        self.outcome.accept(record)
            && self
                .uri
                .as_ref()
                .is_none_or(|expression| expression.is_match(&record.uri))
            && self.host.as_ref().is_none_or(is_host)
    }
}

/// Converts a SURT prefix to a record key's form: without scheme and bracket, and with `#` instead of a colon before a port.
fn key_prefix(surt_prefix: &str) -> String {
    let prefix = match surt_prefix.split_once("://(") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest,
        _ => surt_prefix.strip_prefix('(').unwrap_or(surt_prefix),
    };
    let (authority, path) = prefix.split_at(prefix.find(')').unwrap_or(prefix.len()));
    match authority.rsplit_once(':') {
        // The other colons of an IPv6 address are within brackets.
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (host.ends_with(']') || !host.starts_with('[')) =>
        {
            format!("{host}#{port}{path}")
        }
        _ => prefix.to_owned(),
    }
}

/// Writes a line of JSON per URI, in the order of the records. Returns the number of lines.
///
/// # Errors
/// Returns [`TransferError::Write`] or [`TransferError::Frontier`]; the output so far consists of complete lines.
pub fn write_json_lines(
    records: impl IntoIterator<Item = Result<UriRecord, opilio_frontier::FrontierError>>,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut count = 0;
    for record in records {
        let record = record?;
        if selection.takes(&record) {
            write_line(&UriLine(&record), out)?;
            count += 1;
        }
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

/// Writes a line of JSON per queue. Returns the number of lines.
///
/// # Errors
/// [`TransferError::Write`]
pub fn write_queues(
    queues: impl IntoIterator<Item = QueueReport>,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut count = 0;
    for queue in queues {
        write_line(&QueueLine(&queue), out)?;
        count += 1;
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

fn write_line(line: &impl Serialize, out: &mut impl Write) -> Result<(), TransferError> {
    let mut text = serde_json::to_vec(line).map_err(|error| TransferError::Write(error.into()))?;
    text.push(b'\n');
    out.write_all(&text).map_err(TransferError::Write)
}

#[cfg(test)]
mod tests {
    use super::super::test_frontier::{Trial, archived};
    use super::*;
    use opilio_frontier::{
        LinkAttribute, Oscillation, PlannedReconsideration, Signal, SignalSource, WaitDirection,
    };

    fn exported(trial: &Trial) -> Vec<String> {
        let mut out = Vec::new();
        let count = write_json_lines(trial.frontier.records(""), &Selection::default(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count() as u64, count.unwrap());
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_has_all_values_under_their_documented_names() {
        let mut trial = Trial::new();
        trial.fetch_again_and_again("http://example.org/", archived(200, "text/html"));
        assert_eq!(
            exported(&trial),
            [concat!(
                r#"{"uri":"http://example.org/","state":"queued","last_outcome":"succeeded","status":200,"#,
                r#""queue":"org,example,","hop_path":"LL","via":"http://via.org/","context":"a/@href","#,
                r#""source":"http://seed.org/","seed":false,"strategy":"revisit","precedence":1,"cost":1,"#,
                r#""directive":"normal","discovered":"2026-11-20T12:00:00Z","due":"2026-12-01T12:00:00Z","#,
                r#""wait_s":864000.0,"attempts":0,"deferrals":0,"visits":1,"versions":1,"media_type":"text/html","#,
                r#""payload_digest":"sha1:AEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIB","#,
                r#""stripped_digest":"sha1:AIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQC","stripper":"0000000000000abc","#,
                r#""etag":"\"e\"","archived":{"file":"a.warc.gz","offset":9,"record_id":"urn:uuid:1","#,
                r#""date":"2026-11-20T12:34:56.789Z"},"extractor":"0000000000000def","outlinks":3,"referrers":0,"#,
                r#""history":[{"at":"2026-11-21T12:00:00Z","status":200,"content":"new","size":1234,"#,
                r#""digest":"sha1:AEAQCAIB","wait_s":864000}],"#,
                r#""attributes":{"plugin":{"name":"value"}}}"#,
            )]
        );
    }

    #[test]
    fn missing_values_are_omitted() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        assert_eq!(
            exported(&trial),
            [concat!(
                r#"{"uri":"http://example.org/","state":"queued","last_outcome":"open","status":0,"#,
                r#""queue":"org,example,","hop_path":"LL","via":"http://via.org/","context":"a/@href","#,
                r#""source":"http://seed.org/","seed":false,"strategy":"snapshot","precedence":1,"cost":1,"#,
                r#""directive":"normal","discovered":"2026-11-20T12:00:00Z","due":"2026-11-20T12:00:00Z","#,
                r#""attempts":0,"deferrals":0,"visits":0,"versions":0,"outlinks":0,"referrers":0}"#,
            )]
        );
    }

    #[test]
    fn values_that_only_the_frontier_uses_have_their_own_names() {
        let mut trial = Trial::new();
        trial.fetch_again_and_again("http://example.org/", archived(200, "text/html"));
        let mut record = trial.frontier.records("").next().unwrap().unwrap();
        let at = |text: &str| text.parse().unwrap();
        record.link_attributes = vec![LinkAttribute {
            name: "rel".to_owned(),
            value: "ugc".to_owned(),
        }];
        record.failures = 2;
        record.signals = vec![Signal {
            at: at("2026-11-22T00:00:00Z"),
            source: SignalSource::Sitemap,
            modified: at("2026-11-21T18:00:00Z"),
        }];
        record.reconsideration = Some(PlannedReconsideration {
            at: at("2026-11-25T00:00:00Z"),
            visit: at("2026-12-01T12:00:00Z"),
        });
        record.oscillation = Some(Oscillation {
            last: WaitDirection::Down,
            in_a_row: 3,
        });
        record.validators.last_modified = Some("Fri, 20 Nov 2026 12:00:00 GMT".to_owned());
        record.redirect_target = Some("http://www.example.org/".to_owned());
        let mut out = Vec::new();
        write_json_lines([Ok(record)], &Selection::default(), &mut out).unwrap();
        let line = String::from_utf8(out).unwrap();
        let (start, end) = line.split_once(r#""attributes":"#).unwrap();
        let validators =
            r#""etag":"\"e\"","last_modified":"Fri, 20 Nov 2026 12:00:00 GMT","archived":"#;
        assert!(start.contains(validators), "{start}");
        assert_eq!(
            end,
            concat!(
                r#"{"plugin":{"name":"value"}},"link_attributes":[{"name":"rel","value":"ugc"}],"failures":2,"#,
                r#""signals":[{"at":"2026-11-22T00:00:00Z","source":"sitemap","modified":"2026-11-21T18:00:00Z"}],"#,
                r#""reconsideration":{"at":"2026-11-25T00:00:00Z","visit":"2026-12-01T12:00:00Z"},"#,
                r#""oscillation":{"last":"down","in_a_row":3},"redirect_target":"http://www.example.org/"}"#,
                "\n"
            )
        );
        let imported = super::super::json_lines::parse(line.trim().as_bytes()).unwrap();
        assert_eq!(imported.uri.as_str(), "http://example.org/");
    }

    #[test]
    fn queues_are_exported_one_a_line() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        let queues = trial.frontier.queues(None, 10, trial.now).unwrap();
        let mut out = Vec::new();
        assert_eq!(write_queues(queues, &mut out).unwrap(), 1);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"queue":"org,example,","state":"ready","ready":1,"waiting":0,"in_process":0,"precedence":3,"#,
                r#""wake":"2026-11-20T12:00:00Z","failures":0,"finished":0,"#,
                r#""fetched":0,"succeeded":0,"novel":0,"bytes":0,"novel_bytes":0,"run_time_s":0.0,"spent":0}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_selection_matches_by_host_and_outcome() {
        let mut trial = Trial::new();
        trial.fetch_again_and_again("http://a.org/", archived(200, "text/html"));
        trial.fetch_again_and_again("http://a.org/gone", archived(404, "text/html"));
        trial.fetch_again_and_again("http://www.a.org/x.png", archived(200, "image/png"));
        trial.schedule("http://www.a.org/new");
        let selected = |selection: Selection| -> Vec<String> {
            let records = trial.frontier.records(selection.key_prefix());
            let records = records
                .map(Result::unwrap)
                .filter(|record| selection.takes(record));
            records.map(|record| record.uri).collect()
        };
        let by = |statuses: &str, state: Option<StateSelector>, media_type: Option<&str>| {
            let statuses = match statuses {
                "" => Vec::new(),
                text => Outcomes::statuses(text).unwrap(),
            };
            selected(Selection::default().with_outcomes(Outcomes {
                statuses,
                state,
                media_type: media_type.map(str::to_owned),
            }))
        };
        assert_eq!(by("404", None, None), ["http://a.org/gone"]);
        assert_eq!(by("4xx, 500-599", None, None), ["http://a.org/gone"]);
        let gone = by("404", Some(StateSelector::Failed), None);
        assert_eq!(gone, ["http://a.org/gone"]);
        let succeeded = by("", Some(StateSelector::Succeeded), None);
        assert_eq!(succeeded, ["http://a.org/", "http://www.a.org/x.png"]);
        assert_eq!(by("200", None, Some("image/*")), ["http://www.a.org/x.png"]);
        assert_eq!(by("-5--1", None, None), [""; 0]);
        assert_eq!(
            by("", Some(StateSelector::Open), None),
            ["http://www.a.org/new"]
        );
        assert_eq!(by("", None, Some("no-type")), ["http://www.a.org/new"]);
        assert_eq!(by("", Some(StateSelector::Queued), None).len(), 4);
        let host = |host: &str| Selection::default().with_host(host);
        assert_eq!(
            selected(host("A.org").unwrap()),
            ["http://a.org/", "http://a.org/gone"]
        );
        assert!(host("a.org/x").is_none() && host("a.org:81").is_none());
        for (bad, part) in [("404,x", "x"), ("0xx", "0xx"), ("9-1", "9-1"), ("", "")] {
            assert_eq!(Outcomes::statuses(bad), Err(part.to_owned()));
        }
    }

    #[track_caller]
    fn check(surt_prefix: &str, expected: &str) {
        assert_eq!(key_prefix(surt_prefix), expected);
    }

    #[test]
    fn a_surt_prefix_is_read_as_a_prefix_of_keys() {
        check("", "");
        check("http://(org,example,", "org,example,");
        check("https://(org,example,www,)/a:b", "org,example,www,)/a:b");
        check("http://(org,example,:8080)/", "org,example,#8080)/");
        check("(org,example,", "org,example,");
        check("org,example,)/?u=http://(x", "org,example,)/?u=http://(x");
        check("http://([fe80::1", "[fe80::1");
        check("http://([::1]:81)/", "[::1]#81)/");
        check("http://(127.0.0.1:81)/", "127.0.0.1#81)/");
    }
}
