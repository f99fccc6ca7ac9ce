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
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::line::{LineProblem, sha1, uri};
use super::{Finish, ImportedRecord};

/// Heritrix's status code for URIs that an operator deletes.
const DELETED_BY_OPERATOR: i32 = -6000;

/// One line of a JSON export: a [`UriRecord`] in a form for people and other programs. Names and units are those of
/// `docs/TRANSFER.md`. The frontier stores the record itself, in its own format, in which no field may be missing.
pub(super) struct UriLine<'r>(pub(super) &'r UriRecord);

impl Serialize for UriLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.0;
        let (state, directive, due) = match record.state {
            UriState::Queued { directive, due, .. } => ("queued", Some(directive), Some(due)),
            UriState::Done => ("done", None, None),
            UriState::Deleted => ("deleted", None, None),
            UriState::Faded => ("faded", None, None),
        };
        let (payload, stripped) = (record.digests.payload, record.digests.stripped);
        let attributes = attributes(&record.kept);
        let mut line = Object::new(serializer)?;
        line.put("uri", &record.uri)?;
        line.put("state", state)?;
        line.put("last_outcome", outcome_name(record.last_outcome))?;
        line.put("status", &record.status)?;
        line.put("queue", &record.queue)?;
        line.put("hop_path", record.hop_path.as_str())?;
        line.put_some("via", record.via.as_ref())?;
        line.put_some("context", nonempty(&record.context))?;
        line.put_some("source", record.source.as_ref())?;
        line.put("seed", &record.seed)?;
        line.put("strategy", record.strategy.name())?;
        line.put("precedence", &record.precedence)?;
        line.put("cost", &record.cost)?;
        line.put_some("directive", directive.map(directive_name))?;
        line.put("discovered", &record.discovered)?;
        line.put_some("due", due)?;
        line.put_some("wait_s", record.wait.map(|wait| wait.as_secs_f64()))?;
        line.put("attempts", &record.attempts)?;
        line.put("deferrals", &record.deferrals)?;
        line.put("visits", &record.visits)?;
        line.put("versions", &record.versions)?;
        line.put_some("media_type", nonempty(&record.media_type))?;
        line.put_some("payload_digest", payload.map(sha1_text))?;
        line.put_some("stripped_digest", stripped.map(|it| sha1_text(it.digest)))?;
        line.put_some("stripper", stripped.map(|it| hash_text(it.stripper)))?;
        line.put_some("etag", record.validators.etag.as_ref())?;
        line.put_some("last_modified", record.validators.last_modified.as_ref())?;
        line.put_some("archived", record.archived.as_ref().map(ArchivedLine::from))?;
        line.put_some("extractor", record.extractor.map(hash_text))?;
        line.put("outlinks", &record.outlinks)?;
        line.put("referrers", &record.referrers)?;
        line.put_list("history", record.history.iter().map(VisitLine::from))?;
        line.put_some("attributes", (!attributes.is_empty()).then_some(attributes))?;
        let links = record.link_attributes.iter();
        line.put_list("link_attributes", links.map(LinkAttributeLine::from))?;
        line.put_some("failures", (record.failures > 0).then_some(record.failures))?;
        line.put_list("signals", record.signals.iter().map(SignalLine::from))?;
        let reconsideration = record.reconsideration.map(ReconsiderationLine::from);
        line.put_some("reconsideration", reconsideration)?;
        line.put_some("oscillation", record.oscillation.map(OscillationLine::from))?;
        line.put_some("redirect_target", record.redirect_target.as_ref())?;
        line.end()
    }
}

#[derive(Serialize)]
struct LinkAttributeLine<'r> {
    name: &'r str,
    value: &'r str,
}

#[derive(Serialize)]
struct SignalLine {
    at: Timestamp,
    source: &'static str,
    modified: Timestamp,
}

#[derive(Serialize)]
struct ReconsiderationLine {
    at: Timestamp,
    visit: Timestamp,
}

#[derive(Serialize)]
struct OscillationLine {
    last: &'static str,
    in_a_row: u32,
}

#[derive(Serialize)]
struct ArchivedLine<'r> {
    file: &'r str,
    offset: u64,
    record_id: &'r str,
    date: Timestamp,
}

#[derive(Serialize)]
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

/// Returns the attributes by plugin and name.
fn attributes(kept: &KeptValues) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let mut attributes = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (plugin, name, kept) in kept.iter() {
        attributes
            .entry(plugin)
            .or_default()
            .insert(name, kept.value.as_str());
    }
    attributes
}

impl<'r> From<&'r LinkAttribute> for LinkAttributeLine<'r> {
    fn from(attribute: &'r LinkAttribute) -> Self {
        Self {
            name: &attribute.name,
            value: &attribute.value,
        }
    }
}

impl<'r> From<&'r WarcLocation> for ArchivedLine<'r> {
    fn from(location: &'r WarcLocation) -> Self {
        Self {
            file: &location.file,
            offset: location.offset,
            record_id: &location.record_id,
            date: location.date,
        }
    }
}

impl From<&Signal> for SignalLine {
    fn from(signal: &Signal) -> Self {
        Self {
            at: signal.at,
            source: signal.source.name(),
            modified: signal.modified,
        }
    }
}

impl From<PlannedReconsideration> for ReconsiderationLine {
    fn from(planned: PlannedReconsideration) -> Self {
        Self {
            at: planned.at,
            visit: planned.visit,
        }
    }
}

impl From<Oscillation> for OscillationLine {
    fn from(oscillation: Oscillation) -> Self {
        Self {
            last: match oscillation.last {
                WaitDirection::Up => "up",
                WaitDirection::Down => "down",
            },
            in_a_row: oscillation.in_a_row,
        }
    }
}

impl From<&PastVisit> for VisitLine {
    fn from(visit: &PastVisit) -> Self {
        Self {
            at: visit.at,
            status: visit.status,
            content: visit.state.name(),
            size: visit.size,
            digest: visit.digest.map(short_text),
            wait_s: visit.wait.map(|wait| wait.as_secs()),
        }
    }
}

fn outcome_name(outcome: LastOutcome) -> &'static str {
    match outcome {
        LastOutcome::Open => "open",
        LastOutcome::Succeeded => "succeeded",
        LastOutcome::Failed => "failed",
        LastOutcome::Disregarded => "disregarded",
        LastOutcome::Prerequisite => "prerequisite",
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

fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

fn nonempty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// One queue as a report shows it.
pub(super) struct QueueLine<'r>(pub(super) &'r QueueReport);

impl Serialize for QueueLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.0;
        let tally = &report.tally;
        let mut line = Object::new(serializer)?;
        line.put("queue", &report.queue)?;
        line.put("state", report.state.name())?;
        line.put_some("retired_by", report.retired_by.map(|by| by.name()))?;
        line.put("ready", &report.ready)?;
        line.put("waiting", &report.waiting)?;
        line.put("in_process", &report.in_process)?;
        line.put("precedence", &report.precedence)?;
        line.put_some("next_ready", report.next_ready)?;
        line.put_some("wake", report.wake)?;
        line.put("failures", &report.failures)?;
        line.put_some("last_failure", report.last_failure)?;
        line.put_some("last_failure_words", report.last_failure.map(status_words))?;
        let crawl_delay = report.crawl_delay.map(|delay| delay.as_secs_f64());
        line.put_some("crawl_delay_s", crawl_delay)?;
        line.put_some("group", report.group.as_ref())?;
        line.put("finished", &report.finished)?;
        line.put("fetched", &tally.fetched)?;
        line.put("succeeded", &tally.succeeded)?;
        line.put("novel", &tally.novel)?;
        line.put("bytes", &tally.bytes)?;
        line.put("novel_bytes", &tally.novel_bytes)?;
        line.put("run_time_s", &tally.run_time.as_secs_f64())?;
        line.put("spent", &report.spent)?;
        line.end()
    }
}

/// A JSON object, written value by value.
struct Object<M>(M);

impl<M: SerializeMap> Object<M> {
    fn new<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    fn put(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    /// Writes a value, or nothing if it is missing.
    fn put_some(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) => self.put(name, &value),
            None => Ok(()),
        }
    }

    /// Writes a list, or nothing if it is empty.
    fn put_list(
        &mut self,
        name: &str,
        values: impl Iterator<Item = impl Serialize>,
    ) -> Result<(), M::Error> {
        let values: Vec<_> = values.collect();
        self.put_some(name, (!values.is_empty()).then_some(values))
    }

    fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }
}

/// The fields that are imported from a line. A line may have further fields. All fields but the URI may be missing, so that lines
/// are easy to write by hand.
#[derive(Deserialize)]
struct ImportLine {
    uri: String,
    #[serde(default)]
    state: State,
    #[serde(default)]
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
    use std::time::Duration;

    use opilio_frontier::{QueueState, RetiredBy};

    use super::super::test_frontier::Trial;
    use super::*;

    #[test]
    fn a_queue_line_has_all_fields_and_describes_the_failure() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        let queue = trial.frontier.queue("org,example,", trial.now).unwrap();
        let failing = QueueReport {
            state: QueueState::Retired,
            retired_by: Some(RetiredBy::Operator),
            next_ready: Some(trial.now),
            wake: None,
            failures: 3,
            last_failure: Some(-2),
            crawl_delay: Some(Duration::from_millis(1_500)),
            group: Some("192.0.2.1".to_owned()),
            ..queue.unwrap()
        };
        assert_eq!(
            serde_json::to_string(&QueueLine(&failing)).unwrap(),
            concat!(
                r#"{"queue":"org,example,","state":"retired","retired_by":"operator","ready":1,"waiting":0,"#,
                r#""in_process":0,"precedence":3,"next_ready":"2026-11-20T12:00:00Z","failures":3,"#,
                r#""last_failure":-2,"last_failure_words":"no connection to the server","#,
                r#""crawl_delay_s":1.5,"group":"192.0.2.1","finished":0,"#,
                r#""fetched":0,"succeeded":0,"novel":0,"bytes":0,"novel_bytes":0,"run_time_s":0.0,"spent":0}"#,
            )
        );
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
            r#"{"uri":"http://a.org/","last_outcome":"failed","status":-2,"state":"queued"}"#,
            Some(LastOutcome::Failed),
            Some(-2),
            false,
        );
        check(
            r#"{"uri":"http://a.org/","last_outcome":"open","status":0,"state":"deleted"}"#,
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
                r#"{"uri":"http://a.org/","last_outcome":"lost"}"#,
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
