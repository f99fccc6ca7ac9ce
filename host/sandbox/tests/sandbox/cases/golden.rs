//! Calls and answers: the format in `sdk/rust/README.md`. Answers are written as JSON under the contract's names and
//! compared as the native runner compares them: whole, fields that are left out having their defaults, except that
//! reasons of rulings and words of faults count only where they are given. One thing differs: a stripper may give its
//! spans in any order, and the sandbox hands them on sorted, with overlapping ones joined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidate, ConfigureError, ContentState, Document, DocumentParts, Extraction, Fragment,
    FragmentContent, Header, Hop, Kept, Link, LinkDetails, NamedValue, Neighbourhood, Notes,
    PastVisit, Ruling, Signal, Span, Stage, StripProblem, Verdict, Visit,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Bench;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) plugin: String,
    #[serde(default = "no_settings")]
    settings: Value,
    pub(super) call: Call,
    expected: Value,
    #[serde(default, rename = "note")]
    _note: String,
}

fn no_settings() -> Value {
    json!({})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Call {
    Configure {},
    Extract {
        documents: Vec<DocumentFacts>,
    },
    JudgeCandidates {
        stage: String,
        candidates: Vec<CandidateFacts>,
    },
    JudgeDocument {
        stage: String,
        #[serde(default)]
        document: Box<DocumentFacts>,
        #[serde(default)]
        visit: Box<VisitFacts>,
    },
    Strip {
        document: Box<DocumentFacts>,
    },
    Evaluate {
        visit: Box<VisitFacts>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DocumentFacts {
    uri: Option<String>,
    base: Option<String>,
    status: Option<i32>,
    headers: Vec<Header>,
    media_type: Option<String>,
    charset: Option<String>,
    fragment: Option<String>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    file: Option<PathBuf>,
    notes: Vec<NamedValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CandidateFacts {
    uri: String,
    surt: String,
    hop_path: String,
    via: Option<String>,
    via_surt: Option<String>,
    context: String,
    seed: bool,
    source: Option<String>,
    address: Option<String>,
    attributes: Vec<NamedValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VisitFacts {
    candidate: CandidateFacts,
    now: i64,
    status: i32,
    media_type: String,
    state: StateFacts,
    size: Option<u64>,
    last_wait: Option<u64>,
    overdue: u64,
    visits: u64,
    versions: u64,
    history: Vec<PastVisitFacts>,
    validators: Vec<NamedValue>,
    outlinks: u64,
    inlinks: u64,
    signals: Vec<SignalFacts>,
    neighbourhood: Vec<NeighbourhoodFacts>,
    measures: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StateFacts {
    New,
    Changed,
    Unchanged,
    #[default]
    Unknown,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct PastVisitFacts {
    at: u64,
    status: i32,
    state: StateFacts,
    size: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct SignalFacts {
    at: u64,
    source: String,
    modified: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct NeighbourhoodFacts {
    shares: String,
    documents: u64,
    visits: u64,
    changes: u64,
    observed: u64,
}

impl Case {
    /// Configures the plugin, calls it, and says what differs.
    pub(super) fn check(
        &self,
        bench: &mut Bench,
        folder: &str,
        beside: &Path,
    ) -> Result<(), String> {
        let answer = self.ask(bench, folder, beside)?;
        let (mut expected, mut answer) = (self.expected.clone(), answer);
        match self.call {
            Call::Configure {} => forgive(&expected, &mut answer, "problem"),
            Call::JudgeCandidates { .. } | Call::JudgeDocument { .. } => {
                forgive(&expected, &mut answer, "reason");
            }
            Call::Strip { .. } => put_in_order(&mut expected),
            _ => {}
        }
        drop_defaults(&mut expected);
        drop_defaults(&mut answer);
        if expected == answer {
            return Ok(());
        }
        Err(format!(
            "expected {expected:#}\nthe component answered {answer:#}"
        ))
    }

    fn ask(&self, bench: &mut Bench, folder: &str, beside: &Path) -> Result<Value, String> {
        let plugin = match (
            bench.plugin(folder, &self.plugin, &self.settings),
            &self.call,
        ) {
            (Ok(_), Call::Configure {}) => return Ok(json!([])),
            (Err(ConfigureError::Settings { faults, .. }), Call::Configure {}) => {
                let faults = faults
                    .iter()
                    .map(|fault| json!({"pointer": fault.pointer, "problem": fault.problem}));
                return Ok(faults.collect());
            }
            (Ok(plugin), _) => plugin,
            (Err(error), _) => return Err(error.to_string()),
        };
        let answer = match &self.call {
            Call::Configure {} => Ok(json!([])),
            Call::Extract { documents } => {
                let documents = documents
                    .iter()
                    .map(|facts| facts.document(beside))
                    .collect::<Result<_, _>>()?;
                plugin
                    .extract(documents)
                    .map(|answers| answers.iter().map(of_extraction).collect())
            }
            Call::JudgeCandidates { stage, candidates } => {
                let candidates = candidates.iter().map(CandidateFacts::candidate).collect();
                plugin
                    .judge_candidates(stage_named(stage)?, &candidates)
                    .map(|answers| answers.iter().map(of_ruling).collect())
            }
            Call::JudgeDocument {
                stage,
                document,
                visit,
            } => plugin
                .judge_document(
                    stage_named(stage)?,
                    &document.document(beside)?,
                    &visit.visit()?,
                )
                .map(|answer| of_ruling(&answer)),
            Call::Strip { document } => plugin.strip(&document.document(beside)?).map(|answer| {
                match answer {
                    Ok(spans) => json!({"ok": spans.iter().map(of_span).collect::<Value>()}),
                    Err(StripProblem::TooLarge(bytes)) => json!({"error": {"too-large": bytes}}),
                    Err(StripProblem::Other(problem)) => json!({"error": {"other": problem}}),
                }
            }),
            Call::Evaluate { visit } => plugin.evaluate(&visit.visit()?).map(|answer| {
                json!(answer.map(|wait| {
                    json!({"next-visit": millis(wait.next_visit), "ask-again": wait.ask_again.map(millis)})
                }))
            }),
        };
        answer.map_err(|fault| format!("{fault}\n{fault:#?}"))
    }
}

impl Call {
    /// Files that hold the content of its documents.
    pub(super) fn contents(&self, beside: &Path) -> Vec<PathBuf> {
        let documents: Vec<&DocumentFacts> = match self {
            Self::Extract { documents } => documents.iter().collect(),
            Self::JudgeDocument { document, .. } | Self::Strip { document } => vec![document],
            Self::Configure {} | Self::JudgeCandidates { .. } | Self::Evaluate { .. } => Vec::new(),
        };
        let files = documents.iter().filter_map(|facts| facts.file.as_ref());
        files.map(|file| beside.join(file)).collect()
    }
}

impl DocumentFacts {
    fn document(&self, beside: &Path) -> Result<Document, String> {
        let content = match (&self.text, &self.bytes, &self.file) {
            (None, None, None) => Vec::new(),
            (Some(text), None, None) => text.clone().into_bytes(),
            (None, Some(bytes), None) => bytes.clone(),
            (None, None, Some(file)) => {
                std::fs::read(beside.join(file)).map_err(|error| error.to_string())?
            }
            _ => return Err("a document has one of `text`, `bytes` and `file`".to_owned()),
        };
        let charset = match &self.charset {
            Some(label) => Some(
                encoding_rs::Encoding::for_label(label.as_bytes())
                    .ok_or_else(|| format!("charset {label} is unknown"))?,
            ),
            None => None,
        };
        // The sandbox decodes the content, so text in another encoding would be read as something else.
        if self.text.is_some() && charset.is_some_and(|charset| charset != encoding_rs::UTF_8) {
            return Err("a document that is not in UTF-8 needs its content as `bytes`".to_owned());
        }
        let notes = Notes::new();
        for note in &self.notes {
            notes.set(note.name.clone(), note.value.clone(), &Default::default());
        }
        let uri = self.uri.as_deref().unwrap_or("http://example.com/");
        Ok(Document::new(DocumentParts {
            uri: uri.to_owned(),
            base: self.base.as_deref().unwrap_or(uri).to_owned(),
            status: self.status.unwrap_or(200),
            headers: Arc::from(self.headers.as_slice()),
            media_type: self
                .media_type
                .as_deref()
                .unwrap_or("application/octet-stream")
                .to_owned(),
            charset,
            fragment: self.fragment.clone(),
            content: Bytes::from(content),
            notes,
            kept: Kept::default(),
        }))
    }
}

impl CandidateFacts {
    fn candidate(&self) -> Candidate {
        Candidate {
            uri: self.uri.clone(),
            surt: self.surt.clone(),
            hop_path: self.hop_path.clone(),
            via: self.via.clone(),
            via_surt: self.via_surt.clone(),
            context: self.context.clone(),
            seed: self.seed,
            source: self.source.clone(),
            address: self.address.clone(),
            attributes: self.attributes.clone(),
        }
    }
}

impl VisitFacts {
    fn visit(&self) -> Result<Visit, String> {
        let now = Timestamp::from_millisecond(self.now).map_err(|error| error.to_string())?;
        Ok(Visit {
            status: self.status,
            media_type: self.media_type.clone(),
            state: self.state.into(),
            size: self.size,
            last_wait: self.last_wait.map(Duration::from_millis),
            overdue: Duration::from_millis(self.overdue),
            visits: self.visits,
            versions: self.versions,
            history: self.history.iter().map(PastVisitFacts::past).collect(),
            validators: self
                .validators
                .iter()
                .map(|header| (header.name.to_ascii_lowercase(), header.value.clone()))
                .collect(),
            outlinks: self.outlinks,
            inlinks: self.inlinks,
            signals: self.signals.iter().map(SignalFacts::signal).collect(),
            neighbourhood: self
                .neighbourhood
                .iter()
                .map(NeighbourhoodFacts::neighbourhood)
                .collect(),
            measures: self.measures.clone(),
            ..Visit::of(self.candidate.candidate(), now)
        })
    }
}

impl From<StateFacts> for ContentState {
    fn from(state: StateFacts) -> Self {
        match state {
            StateFacts::New => Self::New,
            StateFacts::Changed => Self::Changed,
            StateFacts::Unchanged => Self::Unchanged,
            StateFacts::Unknown => Self::Unknown,
        }
    }
}

impl PastVisitFacts {
    fn past(&self) -> PastVisit {
        PastVisit {
            at: self.at,
            status: self.status,
            state: self.state.into(),
            size: self.size,
        }
    }
}

impl SignalFacts {
    fn signal(&self) -> Signal {
        Signal {
            at: self.at,
            source: self.source.clone(),
            modified: self.modified,
        }
    }
}

impl NeighbourhoodFacts {
    fn neighbourhood(&self) -> Neighbourhood {
        Neighbourhood {
            shares: self.shares.clone(),
            documents: self.documents,
            visits: self.visits,
            changes: self.changes,
            observed: self.observed,
        }
    }
}

fn stage_named(name: &str) -> Result<Stage, String> {
    Ok(match name {
        "scope" => Stage::Scope,
        "pre-fetch" => Stage::PreFetch,
        "mid-fetch" => Stage::MidFetch,
        "post-fetch" => Stage::PostFetch,
        "extract" => Stage::Extract,
        "archive" => Stage::Archive,
        "plugin" => Stage::Plugin,
        other => return Err(format!("there is no stage {other}")),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

fn of_ruling(ruling: &Ruling) -> Value {
    let verdict = match &ruling.verdict {
        Verdict::Accept => json!("accept"),
        Verdict::Reject => json!("reject"),
        Verdict::Pass => json!("pass"),
        Verdict::Unchanged => json!("unchanged"),
        Verdict::Retry(after) => json!({"retry": after}),
        Verdict::Other(name) => json!({"other": name}),
    };
    json!({"verdict": verdict, "reason": ruling.reason})
}

/// What was cut off stands in it too: no case expects that.
fn of_extraction(extraction: &Extraction) -> Value {
    json!({
        "links": extraction.links.iter().map(of_link).collect::<Value>(),
        "links cut off": extraction.links_dropped,
        "fragments": extraction.fragments.iter().map(of_fragment).collect::<Value>(),
        "fragments cut off": extraction.fragments_dropped,
        "base": extraction.base,
        "finished": extraction.finished,
        "problem": extraction.problem,
    })
}

fn of_link(link: &Link) -> Value {
    let hop = match &link.hop {
        Hop::Link => json!("link"),
        Hop::Embed => json!("embed"),
        Hop::Speculative => json!("speculative"),
        Hop::Redirect => json!("redirect"),
        Hop::Prerequisite => json!("prerequisite"),
        Hop::Inferred => json!("inferred"),
        Hop::Manifest => json!("manifest"),
        Hop::Submit => json!("submit"),
        Hop::Other(name) => json!({"other": name}),
    };
    json!({
        "uri": link.uri,
        "hop": hop,
        "context": link.context,
        "base": link.base,
        "details": link.details.as_ref().map(of_details),
    })
}

fn of_details(details: &LinkDetails) -> Value {
    json!({
        "submission": details.submission.as_ref().map(|submission| json!({
            "method": submission.method,
            "content-type": submission.content_type,
            "body": submission.body,
        })),
        "dates": details.dates.as_ref().map(|dates| json!({
            "published": dates.published,
            "modified": dates.modified,
        })),
        "attributes": details
            .attributes
            .iter()
            .map(|attribute| json!({"name": attribute.name, "value": attribute.value}))
            .collect::<Value>(),
    })
}

fn of_fragment(fragment: &Fragment) -> Value {
    let content = match &fragment.content {
        FragmentContent::BytesAt(span) => json!({"bytes-at": of_span(span)}),
        FragmentContent::TextAt(span) => json!({"text-at": of_span(span)}),
        FragmentContent::Text(text) => json!({"text": text}),
        FragmentContent::Bytes(bytes) => json!({"bytes": bytes}),
    };
    json!({
        "media-type": fragment.media_type,
        "content": content,
        "context": fragment.context,
        "base": fragment.base,
    })
}

fn of_span(span: &Span) -> Value {
    json!({"offset": span.offset, "length": span.length})
}

/// Spans as the sandbox hands them on: in order, without empty ones, overlapping ones joined, touching ones apart.
fn put_in_order(expected: &mut Value) {
    let Some(spans) = expected.get_mut("ok").and_then(Value::as_array_mut) else {
        return;
    };
    let bytes = |span: &Value, field: &str| span.get(field).and_then(Value::as_u64).unwrap_or(0);
    let mut ends: Vec<(u64, u64)> = spans
        .iter()
        .map(|span| (bytes(span, "offset"), bytes(span, "length")))
        .filter(|(_, length)| *length > 0)
        .map(|(offset, length)| (offset, offset + length))
        .collect();
    ends.sort_unstable();
    ends.dedup_by(|next, last| {
        let overlaps = next.0 < last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    *spans = ends
        .iter()
        .map(|(start, end)| json!({"offset": start, "length": end - start}))
        .collect();
}

/// Takes `field` out of an answer, or out of each answer of a list, where nothing is expected of it.
fn forgive(expected: &Value, answer: &mut Value, field: &str) {
    match (expected, answer) {
        (Value::Array(expected), Value::Array(answers)) => {
            for (expected, answer) in expected.iter().zip(answers) {
                forgive(expected, answer, field);
            }
        }
        (Value::Object(expected), Value::Object(answer)) if !expected.contains_key(field) => {
            answer.remove(field);
        }
        _ => {}
    }
}

/// Variants with a value, which stand for themselves however empty the value is.
const VARIANTS: [&str; 9] = [
    "ok",
    "error",
    "other",
    "too-large",
    "retry",
    "bytes-at",
    "text-at",
    "text",
    "bytes",
];

/// Takes fields out of records that have their defaults, so that leaving them out and writing them means the same.
fn drop_defaults(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_defaults),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .for_each(|(_, value)| drop_defaults(value));
            if !is_variant(fields) {
                fields.retain(|name, value| !is_default(name, value));
            }
        }
        _ => {}
    }
}

fn is_variant(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|name| VARIANTS.contains(&name.as_str()))
}

fn is_default(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty() || (name == "hop" && text == "link"),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[test]
fn defaults_are_the_same_written_or_left_out() {
    #[track_caller]
    fn check(one: Value, other: Value, same: bool) {
        let (mut first, mut second) = (one.clone(), other.clone());
        drop_defaults(&mut first);
        drop_defaults(&mut second);
        assert_eq!(first == second, same, "{one} {other}");
    }
    check(
        json!([{"links": [{"uri": "a", "hop": "link", "base": null}], "finished": false}]),
        json!([{"links": [{"uri": "a"}]}]),
        true,
    );
    check(json!([{}]), json!([{"finished": true}]), false);
    check(json!([]), json!([{}]), false);
    check(
        json!([{"uri": "a", "hop": "embed"}]),
        json!([{"uri": "a"}]),
        false,
    );
    check(
        json!({"ok": [{"offset": 0, "length": 1}]}),
        json!({"ok": [{"length": 1}]}),
        true,
    );
    check(json!({"ok": []}), json!({}), false);
    check(
        json!({"error": {"too-large": 0}}),
        json!({"error": {"other": ""}}),
        false,
    );
    check(json!(null), json!({"next-visit": 0}), false);
}

#[test]
fn expected_spans_are_put_in_order() {
    #[track_caller]
    fn check(spans: &[(u64, u64)], ordered: &[(u64, u64)]) {
        let answer = |spans: &[(u64, u64)]| {
            let spans = spans
                .iter()
                .map(|(at, n)| json!({"offset": at, "length": n}));
            json!({"ok": spans.collect::<Value>()})
        };
        let mut expected = answer(spans);
        put_in_order(&mut expected);
        assert_eq!(expected, answer(ordered));
    }
    check(&[(1, 1), (3, 1), (0, 1)], &[(0, 1), (1, 1), (3, 1)]);
    check(&[(5, 5), (0, 6), (7, 9)], &[(0, 16)]);
    check(&[(0, 9), (2, 3)], &[(0, 9)]);
    check(&[(4, 0)], &[]);
}

#[test]
fn reasons_count_where_they_are_given() {
    #[track_caller]
    fn check(expected: Value, answer: Value, same: bool) {
        let mut forgiven = answer.clone();
        forgive(&expected, &mut forgiven, "reason");
        assert_eq!(expected == forgiven, same, "{expected} {answer}");
    }
    let far = json!([{"verdict": "reject", "reason": "too far"}]);
    check(json!([{"verdict": "reject"}]), far.clone(), true);
    check(far.clone(), far.clone(), true);
    check(
        json!([{"verdict": "reject", "reason": ""}]),
        far.clone(),
        false,
    );
    check(json!([{"verdict": "accept"}]), far.clone(), false);
    check(json!([]), far, false);
    check(
        json!({"verdict": "reject"}),
        json!({"verdict": "reject", "reason": "x"}),
        true,
    );
}
