//! URIs as JSON, one object a line, for scripts and for import into another frontier.
//!
//! `docs/TRANSFER.md` documents the names. They are stable; new ones may be added. Missing values are omitted, not null. Times
//! are RFC 3339, digests `sha1:` and base32, hashes hexadecimal.

use std::collections::BTreeMap;

use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use opilio_archive::Digest;
use opilio_frontier::{
    Directive, KeptValues, LastOutcome, LinkAttribute, Oscillation, PastVisit,
    PlannedReconsideration, QueueReport, SHORT_DIGEST_BYTES, Signal, UriRecord, UriState,
    WaitDirection, WarcLocation, status_words,
};
use opilio_uri::HopPath;
use serde::{Deserialize, Serialize};

use super::line::{LineProblem, sha1, uri};
use super::{Finish, ImportedRecord};

/// Heritrix's status code for URIs that an operator deletes.
const DELETED_BY_OPERATOR: i32 = -6000;

/// One line of a JSON export: a [`UriRecord`] in a form for people and other programs. Names and units are those of
/// `docs/TRANSFER.md`. The frontier stores the record itself, in its own format.
#[derive(Debug, Serialize)]
pub(super) struct UriLine {
    uri: String,
    state: &'static str,
    #[serde(rename = "standing")]
    last_outcome: &'static str,
    status: i32,
    queue: String,
    hop_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    seed: bool,
    strategy: &'static str,
    precedence: u8,
    cost: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    directive: Option<&'static str>,
    discovered: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_s: Option<f64>,
    attempts: u32,
    deferrals: u32,
    visits: u64,
    versions: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stripped_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stripper: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<ArchivedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extractor: Option<String>,
    outlinks: u64,
    referrers: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<VisitLine>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    link_attributes: Vec<LinkAttributeLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<SignalLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reconsideration: Option<ReconsiderationLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oscillation: Option<OscillationLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_target: Option<String>,
}

#[derive(Debug, Serialize)]
struct LinkAttributeLine {
    name: String,
    value: String,
}

#[derive(Debug, Serialize)]
struct SignalLine {
    at: Timestamp,
    source: &'static str,
    modified: Timestamp,
}

#[derive(Debug, Serialize)]
struct ReconsiderationLine {
    at: Timestamp,
    visit: Timestamp,
}

#[derive(Debug, Serialize)]
struct OscillationLine {
    last: &'static str,
    in_a_row: u32,
}

#[derive(Debug, Serialize)]
struct ArchivedLine {
    file: String,
    offset: u64,
    record_id: String,
    date: Timestamp,
}

#[derive(Debug, Serialize)]
struct VisitLine {
    at: Timestamp,
    status: i32,
    content: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_s: Option<u64>,
}

impl From<UriRecord> for UriLine {
    fn from(record: UriRecord) -> UriLine {
        let (state, directive, due) = match record.place {
            UriState::Queued { directive, due, .. } => {
                ("queued", Some(directive_name(directive)), Some(due))
            }
            UriState::Done => ("done", None, None),
            UriState::Deleted => ("deleted", None, None),
            UriState::Faded => ("faded", None, None),
        };
        let stripped = record.digests.stripped;
        UriLine {
            uri: record.uri,
            state,
            last_outcome: match record.last_outcome {
                LastOutcome::Open => "open",
                LastOutcome::Succeeded => "succeeded",
                LastOutcome::Failed => "failed",
                LastOutcome::Disregarded => "disregarded",
                LastOutcome::Prerequisite => "prerequisite",
            },
            status: record.status,
            queue: record.queue,
            hop_path: record.hop_path.as_str().to_owned(),
            via: record.via,
            context: record.context,
            source: record.source,
            seed: record.seed,
            strategy: record.strategy.name(),
            precedence: record.precedence,
            cost: record.cost,
            directive,
            discovered: record.discovered,
            due,
            wait_s: record.wait.map(|wait| wait.as_secs_f64()),
            attempts: record.attempts,
            deferrals: record.deferrals,
            visits: record.visits,
            versions: record.versions,
            media_type: record.media_type,
            payload_digest: record.digests.payload.map(sha1_text),
            stripped_digest: stripped.map(|stripped| sha1_text(stripped.digest)),
            stripper: stripped.map(|stripped| format!("{:016x}", stripped.stripper)),
            etag: record.validators.etag,
            last_modified: record.validators.last_modified,
            archived: record.archived.map(ArchivedLine::from),
            extractor: record.extractor.map(|hash| format!("{hash:016x}")),
            outlinks: record.outlinks,
            referrers: record.referrers,
            history: record.history.iter().map(VisitLine::from).collect(),
            attributes: attributes(&record.kept),
            link_attributes: record
                .link_attributes
                .into_iter()
                .map(|LinkAttribute { name, value }| LinkAttributeLine { name, value })
                .collect(),
            failures: (record.failures > 0).then_some(record.failures),
            signals: record.signals.into_iter().map(SignalLine::from).collect(),
            reconsideration: record
                .reconsideration
                .map(|PlannedReconsideration { at, visit }| ReconsiderationLine { at, visit }),
            oscillation: record.oscillation.map(OscillationLine::from),
            redirect_target: record.redirect_target,
        }
    }
}

/// Returns the attributes by plugin and name.
fn attributes(kept: &KeptValues) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut attributes = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (plugin, name, kept) in kept.iter() {
        attributes
            .entry(plugin.to_owned())
            .or_default()
            .insert(name.to_owned(), kept.value.clone());
    }
    attributes
}

impl From<WarcLocation> for ArchivedLine {
    fn from(location: WarcLocation) -> ArchivedLine {
        ArchivedLine {
            file: location.file,
            offset: location.offset,
            record_id: location.record_id,
            date: location.date,
        }
    }
}

impl From<Signal> for SignalLine {
    fn from(signal: Signal) -> SignalLine {
        SignalLine {
            at: signal.at,
            source: signal.source.name(),
            modified: signal.modified,
        }
    }
}

impl From<Oscillation> for OscillationLine {
    fn from(oscillation: Oscillation) -> OscillationLine {
        OscillationLine {
            last: match oscillation.last {
                WaitDirection::Up => "up",
                WaitDirection::Down => "down",
            },
            in_a_row: oscillation.in_a_row,
        }
    }
}

impl From<&PastVisit> for VisitLine {
    fn from(visit: &PastVisit) -> VisitLine {
        VisitLine {
            at: visit.at,
            status: visit.status,
            content: visit.state.name(),
            size: visit.size,
            digest: visit.digest.map(short_text),
            wait_s: visit.wait.map(|wait| wait.as_secs()),
        }
    }
}

fn directive_name(directive: Directive) -> &'static str {
    match directive {
        Directive::Normal => "normal",
        Directive::Medium => "medium",
        Directive::High => "high",
        Directive::Highest => "highest",
    }
}

/// Returns a digest in WARC's form.
pub(super) fn sha1_text(digest: [u8; 20]) -> String {
    Digest::Sha1(digest).to_string()
}

/// Returns the first characters of [`sha1_text`].
fn short_text(digest: [u8; SHORT_DIGEST_BYTES]) -> String {
    format!("sha1:{}", BASE32_NOPAD.encode(&digest))
}

/// One queue as a report shows it.
#[derive(Debug, Serialize)]
pub(super) struct QueueLine {
    queue: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_by: Option<&'static str>,
    ready: u64,
    waiting: u64,
    in_process: u64,
    precedence: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_ready: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake: Option<Timestamp>,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure_words: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl_delay_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    finished: u64,
    fetched: u64,
    succeeded: u64,
    novel: u64,
    bytes: u64,
    novel_bytes: u64,
    run_time_s: f64,
    spent: u64,
}

impl From<QueueReport> for QueueLine {
    fn from(report: QueueReport) -> QueueLine {
        QueueLine {
            queue: report.queue,
            state: report.state.name(),
            retired_by: report.retired_by.map(|by| by.name()),
            ready: report.ready,
            waiting: report.waiting,
            in_process: report.in_process,
            precedence: report.precedence,
            next_ready: report.next_ready,
            wake: report.wake,
            failures: report.failures,
            last_failure: report.last_failure,
            last_failure_words: report.last_failure.map(status_words),
            crawl_delay_s: report.crawl_delay.map(|delay| delay.as_secs_f64()),
            group: report.group,
            finished: report.finished,
            fetched: report.tally.fetched,
            succeeded: report.tally.succeeded,
            novel: report.tally.novel,
            bytes: report.tally.bytes,
            novel_bytes: report.tally.novel_bytes,
            run_time_s: report.tally.run_time.as_secs_f64(),
            spent: report.spent,
        }
    }
}

/// The fields that are imported from a line. A line may have further fields. All fields but the URI may be missing, so that lines
/// are easy to write by hand.
#[derive(Deserialize)]
struct ImportLine {
    uri: String,
    #[serde(default)]
    state: State,
    #[serde(rename = "standing", default)]
    last_outcome: ImportOutcome,
    status: Option<i32>,
    hop_path: Option<String>,
    via: Option<String>,
    #[serde(default)]
    context: String,
    source: Option<String>,
    seed: Option<bool>,
    #[serde(default)]
    media_type: String,
    payload_digest: Option<String>,
    #[serde(default)]
    history: Vec<ImportVisit>,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    Queued,
    Deleted,
    #[serde(other)]
    Elsewhere,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum ImportOutcome {
    #[default]
    Open,
    Succeeded,
    Failed,
    Disregarded,
    Prerequisite,
}

#[derive(Deserialize)]
struct ImportVisit {
    at: Timestamp,
    size: Option<u64>,
}

pub(super) fn parse(line: &[u8]) -> Result<ImportedRecord, LineProblem> {
    let line: ImportLine = serde_json::from_slice(line).map_err(LineProblem::Json)?;
    let last_outcome = match line.last_outcome {
        // The URI was deleted before its first fetch. It becomes known here and is not fetched.
        ImportOutcome::Open if line.state == State::Deleted => Some(LastOutcome::Disregarded),
        ImportOutcome::Open => None,
        // The status decides: other crawlers count error responses as successes.
        ImportOutcome::Succeeded => match line.status {
            Some(status @ 1..) => Some(LastOutcome::of(status, false)),
            _ => Some(LastOutcome::Succeeded),
        },
        ImportOutcome::Prerequisite => Some(LastOutcome::Prerequisite),
        ImportOutcome::Failed => Some(LastOutcome::Failed),
        ImportOutcome::Disregarded => Some(LastOutcome::Disregarded),
    };
    let hop_path = line
        .hop_path
        .map(|letters| HopPath::parse(&letters).map_err(LineProblem::HopPath))
        .transpose()?;
    let newest = line.history.first();
    Ok(ImportedRecord {
        uri: uri(&line.uri)?,
        seed: line
            .seed
            .unwrap_or_else(|| hop_path.as_ref().is_some_and(HopPath::is_empty)),
        hop_path,
        via: line.via,
        context: line.context,
        source: line.source,
        finished: last_outcome.map(|last_outcome| Finish {
            last_outcome,
            status: match line.status {
                None | Some(0) if line.state == State::Deleted => Some(DELETED_BY_OPERATOR),
                status => status,
            },
            at: newest.map(|visit| visit.at),
            media_type: line.media_type,
            payload_digest: line.payload_digest.as_deref().and_then(sha1),
            size: newest.and_then(|visit| visit.size),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_frontier::Trial;
    use super::*;

    #[test]
    fn a_queue_line_describes_its_failure() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        let queue = trial.frontier.queue("org,example,", trial.now).unwrap();
        let failing = QueueReport {
            failures: 3,
            last_failure: Some(-2),
            ..queue.unwrap()
        };
        let line = serde_json::to_value(QueueLine::from(failing)).unwrap();
        assert_eq!(line["last_failure"], -2);
        assert_eq!(line["last_failure_words"], "no connection to the server");
    }

    #[track_caller]
    fn check(line: &str, last_outcome: Option<LastOutcome>, status: Option<i32>, seed: bool) {
        let imported = parse(line.as_bytes()).unwrap();
        let finish = imported.finished.as_ref();
        assert_eq!(
            finish.map(|finish| finish.last_outcome),
            last_outcome,
            "{line}"
        );
        assert_eq!(finish.and_then(|finish| finish.status), status, "{line}");
        assert_eq!(imported.seed, seed, "{line}");
    }

    #[test]
    fn all_fields_but_the_uri_may_be_missing() {
        check(r#"{"uri":"http://a.org/"}"#, None, None, false);
        check(r#"{"uri":"http://a.org/","hop_path":""}"#, None, None, true);
        check(
            r#"{"uri":"http://a.org/","hop_path":"R","seed":true,"new":[1]}"#,
            None,
            None,
            true,
        );
        check(
            r#"{"uri":"http://a.org/","standing":"failed","status":-2,"state":"queued"}"#,
            Some(LastOutcome::Failed),
            Some(-2),
            false,
        );
        check(
            r#"{"uri":"http://a.org/","standing":"open","status":0,"state":"deleted"}"#,
            Some(LastOutcome::Disregarded),
            Some(-6000),
            false,
        );
        check(
            r#"{"uri":"http://a.org/","state":"retired"}"#,
            None,
            None,
            false,
        );
    }

    #[test]
    fn invalid_lines_have_a_reason() {
        for (line, expected) in [
            ("{}", "not a line of an export"),
            ("[1]", "not a line of an export"),
            (
                r#"{"uri":"http://a.org/","standing":"lost"}"#,
                "not a line of an export",
            ),
            (r#"{"uri":"a.org"}"#, "\"a.org\" cannot be crawled"),
            (r#"{"uri":"http://a.org/","hop_path":"Q"}"#, "no hop path"),
        ] {
            let problem = parse(line.as_bytes()).unwrap_err();
            assert_eq!(problem.to_string(), expected, "{line}");
        }
    }
}
