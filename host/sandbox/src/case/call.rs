//! A call of the contract with its arguments, as JSON: documents, visits and queues under the names of the contract. A missing
//! field has its default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use encoding_rs::{Encoding, UTF_8};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::CallResult;
use super::page::PageFacts;
use crate::visit::{instant, millis};
use crate::{
    Candidate, Candidates, ContentState, Document, DocumentParts, Fault, Finished, Header,
    KeptValue, KeptValues, LoadedPage, NamedValue, Neighbourhood, Notes, PastVisit, Plugin, Queue,
    SharedKeptValues, Signal, Stage, TableProblem, Visit,
};

/// The URI of a document without one.
pub(super) const SOME_URI: &str = "http://example.com/";
/// The media type of a document without one.
const SOME_TYPE: &str = "application/octet-stream";

/// A call of the contract.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Call {
    /// `setup.configure`, for settings that must be refused. The answer is the list of errors.
    Configure {},
    /// `extractor.extract`. The answer is a list of extractions.
    Extract {
        /// The documents, or fragments of a page.
        documents: Vec<DocumentFacts>,
    },
    /// `filter.judge-candidates`. The answer is a list of rulings.
    JudgeCandidates {
        /// The stage.
        stage: StageName,
        /// The candidates.
        candidates: Vec<CandidateFacts>,
    },
    /// `filter.judge-document`. The answer is a ruling.
    JudgeDocument {
        /// The stage.
        stage: StageName,
        /// The response.
        #[serde(default)]
        document: Box<DocumentFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
    },
    /// `digest-stripper.strip`. The answer is `{"ok": spans}` or `{"error": problem}`.
    Strip {
        /// The response.
        document: Box<DocumentFacts>,
    },
    /// `change-evaluator.compare`. The answer is a comparison.
    Compare {
        /// The response.
        #[serde(default)]
        document: Box<DocumentFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
        /// The fingerprint of the last archived version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Vec<u8>>,
    },
    /// `wait-evaluator.evaluate`. The answer is a wait or null.
    Evaluate {
        /// The visit.
        visit: Box<VisitFacts>,
    },
    /// `precedence.rank-candidates`. The answer is a list of precedences and nulls.
    RankCandidates {
        /// The candidates.
        candidates: Vec<CandidateFacts>,
        /// The page on which they were found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        document: Option<Box<DocumentFacts>>,
    },
    /// `precedence.rank-queue`. The answer is a precedence or null.
    RankQueue {
        /// The queue.
        queue: QueueFacts,
    },
    /// `observer.observe`. The answer is an observation.
    Observe {
        /// Memory of the last observation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<u8>,
        /// Finished URIs.
        events: Vec<FinishedFacts>,
    },
    /// `observer.report`. The answer is a list of reports.
    Report {
        /// Memory of the last observation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<u8>,
        /// The time of the call.
        #[serde(default)]
        now: u64,
    },
    /// `page-behavior.step`. The answer is a plan.
    Step {
        /// The page.
        #[serde(default)]
        page: Box<PageFacts>,
        /// Its visit.
        #[serde(default)]
        visit: Box<VisitFacts>,
        /// Memory of the last step.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<u8>,
    },
}

/// Reason for which arguments are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallProblem {
    /// A document has its content in several forms.
    #[error("a document has one of `text`, `bytes`, `base64` and `file`")]
    Contents,
    /// The host decodes the content, so text in another encoding would be misread.
    #[error("a document in {0} needs its content as `base64`, `bytes` or `file`, not as `text`")]
    TextInCharset(String),
    /// The encoding does not exist.
    #[error("charset {0} is unknown")]
    Charset(String),
    /// Invalid base64.
    #[error("the `base64` of a document is not Base64: {0}")]
    Base64(String),
    /// The content is in a file that has not been read.
    #[error("the content in {} has not been read", .0.display())]
    Unread(PathBuf),
    /// A time out of range.
    #[error("{0} is not a time in milliseconds since 1970")]
    Time(u64),
    /// The rows of a table are invalid.
    #[error("table {name}: {problem}")]
    Table {
        /// The table.
        name: String,
        /// The error in the rows.
        problem: TableProblem,
    },
}

/// Reason for which a call has no answer.
#[derive(Debug)]
pub(crate) enum Refused {
    Call(CallProblem),
    Fault(Box<Fault>),
}

impl From<CallProblem> for Refused {
    fn from(problem: CallProblem) -> Self {
        Self::Call(problem)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }
}

impl Plugin {
    /// Performs a call that was written down.
    pub(crate) fn perform(&self, call: &Call) -> Result<CallResult, Refused> {
        let own = self.instance();
        let candidates =
            |facts: &[CandidateFacts]| facts.iter().map(CandidateFacts::candidate).collect();
        Ok(match call {
            Call::Configure {} => CallResult::settings_faults(&[]),
            Call::Extract { documents } => {
                let documents = documents.iter().map(|facts| facts.document(own));
                CallResult::extractions(&self.extract(documents.collect::<Result<_, _>>()?)?)
            }
            Call::JudgeCandidates {
                stage,
                candidates: facts,
            } => {
                let candidates: Candidates = candidates(facts);
                CallResult::rulings(&self.judge_candidates((*stage).into(), &candidates)?)
            }
            Call::JudgeDocument {
                stage,
                document,
                visit,
            } => {
                let (document, visit) = together(document, visit, own)?;
                CallResult::ruling(&self.judge_document((*stage).into(), &document, &visit)?)
            }
            Call::Strip { document } => {
                CallResult::stripped(&self.strip(&document.document(own)?)?)
            }
            Call::Compare {
                document,
                visit,
                last,
            } => {
                let (document, visit) = together(document, visit, own)?;
                CallResult::comparison(&self.compare(&document, &visit, last.as_deref())?)
            }
            Call::Evaluate { visit } => CallResult::wait(self.evaluate(&visit.visit(own)?)?),
            Call::RankCandidates {
                candidates: facts,
                document,
            } => {
                let document = document.as_ref().map(|facts| facts.document(own));
                let candidates: Candidates = candidates(facts);
                CallResult::ranks(
                    &self.rank_candidates(&candidates, document.transpose()?.as_ref())?,
                )
            }
            Call::RankQueue { queue } => CallResult::rank(self.rank_queue(&queue.queue()?)?),
            Call::Observe { memory, events } => {
                let events: Vec<Finished> = events.iter().map(FinishedFacts::finished).collect();
                CallResult::observation(&self.observe(memory, &events)?)
            }
            Call::Report { memory, now } => CallResult::reports(&self.report(memory, at(*now)?)?),
            Call::Step {
                page,
                visit,
                memory,
            } => CallResult::step_plan(&self.step(&page.page(), &visit.visit(own)?, memory)?),
        })
    }
}

/// Makes a document and its visit, which share kept values and notes.
fn together(
    document: &DocumentFacts,
    visit: &VisitFacts,
    own: &str,
) -> Result<(Document, Visit), CallProblem> {
    let document = document.document(own)?;
    let mut visit = visit.visit(own)?;
    visit.notes = document.notes().clone();
    if !document.kept().is_empty() {
        visit.kept = document.kept().clone();
    }
    Ok((document, visit))
}

/// Constructors that write a call down. With documents and visits, do it before the call, because the call may leave notes in
/// them. Contents are not copied.
impl Call {
    /// A call of [`Plugin::extract`].
    pub fn extract(plugin: &Plugin, documents: &[Document]) -> Self {
        let documents = documents
            .iter()
            .map(|document| DocumentFacts::of(document, plugin.instance()));
        Self::Extract {
            documents: documents.collect(),
        }
    }

    /// A call of [`Plugin::judge_candidates`].
    pub fn judge_candidates(stage: &Stage, candidates: &Candidates) -> Self {
        Self::JudgeCandidates {
            stage: stage.into(),
            candidates: candidates.iter().map(CandidateFacts::of).collect(),
        }
    }

    /// A call of [`Plugin::judge_document`].
    pub fn judge_document(
        plugin: &Plugin,
        stage: &Stage,
        document: &Document,
        visit: &Visit,
    ) -> Self {
        Self::JudgeDocument {
            stage: stage.into(),
            document: Box::new(DocumentFacts::of(document, plugin.instance())),
            visit: Box::new(VisitFacts::of(visit, plugin.instance())),
        }
    }

    /// A call of [`Plugin::strip`].
    pub fn strip(plugin: &Plugin, document: &Document) -> Self {
        Self::Strip {
            document: Box::new(DocumentFacts::of(document, plugin.instance())),
        }
    }

    /// A call of [`Plugin::compare`].
    pub fn compare(
        plugin: &Plugin,
        document: &Document,
        visit: &Visit,
        last: Option<&[u8]>,
    ) -> Self {
        Self::Compare {
            document: Box::new(DocumentFacts::of(document, plugin.instance())),
            visit: Box::new(VisitFacts::of(visit, plugin.instance())),
            last: last.map(<[u8]>::to_vec),
        }
    }

    /// A call of [`Plugin::evaluate`].
    pub fn evaluate(plugin: &Plugin, visit: &Visit) -> Self {
        Self::Evaluate {
            visit: Box::new(VisitFacts::of(visit, plugin.instance())),
        }
    }

    /// A call of [`Plugin::rank_candidates`].
    pub fn rank_candidates(
        plugin: &Plugin,
        candidates: &Candidates,
        document: Option<&Document>,
    ) -> Self {
        Self::RankCandidates {
            candidates: candidates.iter().map(CandidateFacts::of).collect(),
            document: document
                .map(|document| Box::new(DocumentFacts::of(document, plugin.instance()))),
        }
    }

    /// A call of [`Plugin::rank_queue`].
    pub fn rank_queue(queue: &Queue) -> Self {
        Self::RankQueue {
            queue: QueueFacts::of(queue),
        }
    }

    /// A call of [`Plugin::observe`].
    pub fn observe(memory: &[u8], events: &[Finished]) -> Self {
        Self::Observe {
            memory: memory.to_vec(),
            events: events.iter().map(FinishedFacts::of).collect(),
        }
    }

    /// A call of [`Plugin::report`].
    pub fn report(memory: &[u8], now: Timestamp) -> Self {
        Self::Report {
            memory: memory.to_vec(),
            now: instant(now),
        }
    }

    /// A call of [`Plugin::step`].
    pub fn step(plugin: &Plugin, page: &LoadedPage, visit: &Visit, memory: &[u8]) -> Self {
        Self::Step {
            page: Box::new(PageFacts::of(page)),
            visit: Box::new(VisitFacts::of(visit, plugin.instance())),
            memory: memory.to_vec(),
        }
    }

    /// Its name in the contract.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Configure {} => "configure",
            Self::Extract { .. } => "extract",
            Self::JudgeCandidates { .. } => "judge-candidates",
            Self::JudgeDocument { .. } => "judge-document",
            Self::Strip { .. } => "strip",
            Self::Compare { .. } => "compare",
            Self::Evaluate { .. } => "evaluate",
            Self::RankCandidates { .. } => "rank-candidates",
            Self::RankQueue { .. } => "rank-queue",
            Self::Observe { .. } => "observe",
            Self::Report { .. } => "report",
            Self::Step { .. } => "step",
        }
    }

    /// The URI it is about, or the URI of the first document. For several candidates it is the URI of their page, for a queue its
    /// name. `None` for reports and settings.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Configure {} | Self::Report { .. } => None,
            Self::Extract { documents } => documents.first().map(|document| document.uri.as_str()),
            Self::JudgeCandidates { candidates, .. } | Self::RankCandidates { candidates, .. } => {
                let is_alone = candidates.len() == 1;
                candidates.first().map(|first| {
                    let page = first.via.as_ref().filter(|_| !is_alone);
                    page.unwrap_or(&first.uri).as_str()
                })
            }
            Self::JudgeDocument { document, .. }
            | Self::Strip { document }
            | Self::Compare { document, .. } => Some(&document.uri),
            Self::Evaluate { visit } | Self::Step { visit, .. } => Some(&visit.candidate.uri),
            Self::RankQueue { queue } => Some(&queue.name),
            Self::Observe { events, .. } => events.first().map(|event| event.uri.as_str()),
        }
    }

    /// Its documents.
    pub fn documents(&self) -> Vec<&DocumentFacts> {
        match self {
            Self::Extract { documents } => documents.iter().collect(),
            Self::JudgeDocument { document, .. }
            | Self::Strip { document }
            | Self::Compare { document, .. } => vec![document],
            Self::RankCandidates { document, .. } => document.iter().map(Box::as_ref).collect(),
            _ => Vec::new(),
        }
    }

    /// Its documents, mutable.
    pub fn documents_mut(&mut self) -> Vec<&mut DocumentFacts> {
        match self {
            Self::Extract { documents } => documents.iter_mut().collect(),
            Self::JudgeDocument { document, .. }
            | Self::Strip { document }
            | Self::Compare { document, .. } => vec![document],
            Self::RankCandidates { document, .. } => document.iter_mut().map(Box::as_mut).collect(),
            _ => Vec::new(),
        }
    }
}

/// The stage at which a filter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageName {
    /// Decides whether a found URI belongs to the crawl.
    Scope,
    /// Decides whether it may be fetched now.
    PreFetch,
    /// Decides whether the body is received.
    MidFetch,
    /// Rules on the complete response.
    PostFetch,
    /// Decides whether links are extracted.
    Extract,
    /// Decides whether a browser renders it.
    Render,
    /// Decides whether it is archived.
    Archive,
    /// Decides whether the guarded plugin is called.
    Plugin,
}

impl From<StageName> for Stage {
    fn from(name: StageName) -> Self {
        match name {
            StageName::Scope => Self::Scope,
            StageName::PreFetch => Self::PreFetch,
            StageName::MidFetch => Self::MidFetch,
            StageName::PostFetch => Self::PostFetch,
            StageName::Extract => Self::Extract,
            StageName::Render => Self::Render,
            StageName::Archive => Self::Archive,
            StageName::Plugin => Self::Plugin,
        }
    }
}

impl From<&Stage> for StageName {
    fn from(stage: &Stage) -> Self {
        match stage {
            Stage::Scope => Self::Scope,
            Stage::PreFetch => Self::PreFetch,
            Stage::MidFetch => Self::MidFetch,
            Stage::PostFetch => Self::PostFetch,
            Stage::Extract => Self::Extract,
            Stage::Render => Self::Render,
            Stage::Archive => Self::Archive,
            // The host calls filters at no other stage.
            Stage::Plugin | Stage::Other(_) => Self::Plugin,
        }
    }
}

/// A document, or a fragment of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "DocumentWritten", into = "DocumentWritten")]
pub struct DocumentFacts {
    uri: String,
    base: Option<String>,
    status: i32,
    headers: Arc<[Header]>,
    media_type: String,
    charset: Option<&'static Encoding>,
    fragment: Option<String>,
    content: Content,
    notes: BTreeMap<String, String>,
    kept: KeptFacts,
}

#[derive(Clone, Debug)]
enum Content {
    Here(Bytes),
    /// The content is in a file next to the case.
    InFile(PathBuf),
}

/// A document in the form of the JSON.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct DocumentWritten {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fragment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NamedValue>,
    #[serde(skip_serializing_if = "KeptFacts::is_empty")]
    kept: KeptFacts,
}

impl TryFrom<DocumentWritten> for DocumentFacts {
    type Error = CallProblem;

    fn try_from(written: DocumentWritten) -> Result<Self, CallProblem> {
        let charset = match written.charset {
            Some(label) => match Encoding::for_label(label.as_bytes()) {
                Some(charset) => Some(charset),
                None => return Err(CallProblem::Charset(label)),
            },
            None => None,
        };
        let foreign = charset.filter(|charset| *charset != UTF_8);
        let content = match (written.text, written.bytes, written.base64, written.file) {
            (None, None, None, None) => Content::Here(Bytes::new()),
            (Some(_), None, None, None) if foreign.is_some() => {
                let name = foreign.map_or("another encoding", Encoding::name);
                return Err(CallProblem::TextInCharset(name.to_owned()));
            }
            (Some(text), None, None, None) => Content::Here(text.into()),
            (None, Some(bytes), None, None) => Content::Here(bytes.into()),
            (None, None, Some(text), None) => Content::Here(
                BASE64
                    .decode(text.as_bytes())
                    .map_err(|problem| CallProblem::Base64(problem.to_string()))?
                    .into(),
            ),
            (None, None, None, Some(file)) => Content::InFile(file),
            _ => return Err(CallProblem::Contents),
        };
        Ok(Self {
            uri: written.uri.unwrap_or_else(|| SOME_URI.to_owned()),
            base: written.base,
            status: written.status.unwrap_or(200),
            headers: written.headers.into(),
            media_type: written.media_type.unwrap_or_else(|| SOME_TYPE.to_owned()),
            charset,
            fragment: written.fragment,
            content,
            notes: written
                .notes
                .into_iter()
                .map(|note| (note.name, note.value))
                .collect(),
            kept: written.kept,
        })
    }
}

impl From<DocumentFacts> for DocumentWritten {
    fn from(facts: DocumentFacts) -> Self {
        let is_text = facts.is_text();
        let mut written = Self {
            base: facts.base.filter(|base| *base != facts.uri),
            uri: Some(facts.uri),
            status: (facts.status != 200).then_some(facts.status),
            headers: facts.headers.to_vec(),
            media_type: Some(facts.media_type),
            charset: facts
                .charset
                .map(|charset| charset.name().to_ascii_lowercase()),
            fragment: facts.fragment,
            notes: facts
                .notes
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
            kept: facts.kept,
            ..Self::default()
        };
        match facts.content {
            Content::InFile(file) => written.file = Some(file),
            Content::Here(bytes) if bytes.is_empty() => {}
            Content::Here(bytes) if is_text => {
                written.text = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Content::Here(bytes) => written.base64 = Some(BASE64.encode(&bytes)),
        }
        written
    }
}

impl Default for DocumentFacts {
    fn default() -> Self {
        Self {
            uri: SOME_URI.to_owned(),
            base: None,
            status: 200,
            headers: Arc::from([]),
            media_type: SOME_TYPE.to_owned(),
            charset: None,
            fragment: None,
            content: Content::Here(Bytes::new()),
            notes: BTreeMap::new(),
            kept: KeptFacts::default(),
        }
    }
}

impl DocumentFacts {
    fn of(document: &Document, own: &str) -> Self {
        Self {
            uri: document.uri().to_owned(),
            base: Some(document.base()),
            status: document.status(),
            headers: document.headers().into(),
            media_type: document.media_type().to_owned(),
            charset: document.charset(),
            fragment: document.fragment().map(str::to_owned),
            content: Content::Here(document.content().clone()),
            notes: document.notes().all(),
            kept: KeptFacts::of(document.kept(), own),
        }
    }

    fn document(&self, own: &str) -> Result<Document, CallProblem> {
        let content = match &self.content {
            Content::Here(content) => content.clone(),
            Content::InFile(file) => return Err(CallProblem::Unread(file.clone())),
        };
        Ok(Document::new(DocumentParts {
            uri: self.uri.clone(),
            base: self.base.as_ref().unwrap_or(&self.uri).clone(),
            status: self.status,
            headers: self.headers.clone(),
            media_type: self.media_type.clone(),
            charset: self.charset,
            fragment: self.fragment.clone(),
            content,
            notes: Notes::of(self.notes.clone()),
            kept: self.kept.kept(own),
        }))
    }

    /// The file next to the case that has its content, if it has not been read.
    pub fn file(&self) -> Option<&Path> {
        match &self.content {
            Content::Here(_) => None,
            Content::InFile(file) => Some(file),
        }
    }

    /// Its content, if it has been read.
    pub fn content(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Here(content) => Some(content),
            Content::InFile(_) => None,
        }
    }

    /// Returns `true` if its content has been read and can be written as text.
    pub(super) fn is_text(&self) -> bool {
        let decodes = self.charset.is_none_or(|charset| charset == UTF_8);
        self.content()
            .is_some_and(|content| decodes && std::str::from_utf8(content).is_ok())
    }

    /// Sets its content.
    pub fn set_content(&mut self, content: impl Into<Bytes>) {
        self.content = Content::Here(content.into());
    }

    /// Makes it refer to a file next to the case for its content.
    pub fn refer_to(&mut self, file: PathBuf) {
        self.content = Content::InFile(file);
    }
}

/// Values that the plugin has kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeptFacts {
    /// Values of the URI.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    uri: BTreeMap<String, KeptValue>,
    /// Values of the site.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    site: BTreeMap<String, KeptValue>,
}

impl KeptFacts {
    fn is_empty(&self) -> bool {
        self.uri.is_empty() && self.site.is_empty()
    }

    fn of(kept: &SharedKeptValues, own: &str) -> Self {
        let (uri, site) = kept.seen_by(own);
        Self { uri, site }
    }

    fn kept(&self, own: &str) -> SharedKeptValues {
        let values = |values: &BTreeMap<_, _>| KeptValues::of_plugin(own, values.clone());
        SharedKeptValues::new(values(&self.uri), values(&self.site))
    }
}

/// A candidate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CandidateFacts {
    uri: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    surt: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hop_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via_surt: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    #[serde(skip_serializing_if = "is_false")]
    seed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<NamedValue>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl CandidateFacts {
    fn of(candidate: &Candidate) -> Self {
        let Candidate {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        } = candidate.clone();
        Self {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        }
    }

    fn candidate(&self) -> Candidate {
        let Self {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        } = self.clone();
        Candidate {
            uri,
            surt,
            hop_path,
            via,
            via_surt,
            context,
            seed,
            source,
            address,
            attributes,
        }
    }
}

/// A visit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct VisitFacts {
    candidate: CandidateFacts,
    #[serde(skip_serializing_if = "is_zero")]
    now: u64,
    status: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    media_type: String,
    state: ContentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_wait: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    overdue: u64,
    #[serde(skip_serializing_if = "is_zero")]
    visits: u64,
    #[serde(skip_serializing_if = "is_zero")]
    versions: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<PastVisitFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    validators: Vec<NamedValue>,
    #[serde(skip_serializing_if = "is_zero")]
    outlinks: u64,
    #[serde(skip_serializing_if = "is_zero")]
    inlinks: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<SignalFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    neighbourhood: Vec<NeighbourhoodFacts>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    measures: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NamedValue>,
    #[serde(skip_serializing_if = "KeptFacts::is_empty")]
    kept: KeptFacts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct PastVisitFacts {
    at: u64,
    status: i32,
    state: ContentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl PastVisitFacts {
    fn of(past: &PastVisit) -> Self {
        Self {
            at: instant(past.at),
            status: past.status,
            state: past.state,
            size: past.size,
        }
    }

    fn past_visit(&self) -> Result<PastVisit, CallProblem> {
        Ok(PastVisit {
            at: at(self.at)?,
            status: self.status,
            state: self.state,
            size: self.size,
            digest: None,
            wait: None,
        })
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct SignalFacts {
    at: u64,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct NeighbourhoodFacts {
    shares: String,
    documents: u64,
    visits: u64,
    changes: u64,
    observed: u64,
}

impl VisitFacts {
    fn of(visit: &Visit, own: &str) -> Self {
        let validators = visit.validators.iter();
        Self {
            candidate: CandidateFacts::of(&visit.candidate),
            now: instant(visit.now),
            status: visit.status,
            media_type: visit.media_type.clone(),
            state: visit.state,
            size: visit.size,
            last_wait: visit.last_wait.map(millis),
            overdue: millis(visit.overdue),
            visits: visit.visits,
            versions: visit.versions,
            history: visit.history.iter().map(PastVisitFacts::of).collect(),
            validators: validators
                .map(|(name, value)| NamedValue::new(name, value))
                .collect(),
            outlinks: visit.outlinks,
            inlinks: visit.inlinks,
            signals: visit
                .signals
                .iter()
                .map(|signal| SignalFacts {
                    at: signal.at,
                    source: signal.source.clone(),
                    modified: signal.modified,
                })
                .collect(),
            neighbourhood: visit
                .neighbourhood
                .iter()
                .map(|around| NeighbourhoodFacts {
                    shares: around.shares.clone(),
                    documents: around.documents,
                    visits: around.visits,
                    changes: around.changes,
                    observed: around.observed,
                })
                .collect(),
            measures: visit.measures.clone(),
            notes: visit
                .notes
                .all()
                .into_iter()
                .map(|(name, value)| NamedValue { name, value })
                .collect(),
            kept: KeptFacts::of(&visit.kept, own),
        }
    }

    fn visit(&self, own: &str) -> Result<Visit, CallProblem> {
        let notes = self.notes.iter();
        Ok(Visit {
            status: self.status,
            media_type: self.media_type.clone(),
            state: self.state,
            size: self.size,
            last_wait: self.last_wait.map(Duration::from_millis),
            overdue: Duration::from_millis(self.overdue),
            visits: self.visits,
            versions: self.versions,
            history: self
                .history
                .iter()
                .map(PastVisitFacts::past_visit)
                .collect::<Result<_, _>>()?,
            validators: self
                .validators
                .iter()
                .map(|header| (header.name.to_ascii_lowercase(), header.value.clone()))
                .collect(),
            outlinks: self.outlinks,
            inlinks: self.inlinks,
            signals: self
                .signals
                .iter()
                .map(|signal| Signal {
                    at: signal.at,
                    source: signal.source.clone(),
                    modified: signal.modified,
                })
                .collect(),
            neighbourhood: self
                .neighbourhood
                .iter()
                .map(|around| Neighbourhood {
                    shares: around.shares.clone(),
                    documents: around.documents,
                    visits: around.visits,
                    changes: around.changes,
                    observed: around.observed,
                })
                .collect(),
            measures: self.measures.clone(),
            notes: Notes::of(
                notes
                    .map(|note| (note.name.clone(), note.value.clone()))
                    .collect(),
            ),
            kept: self.kept.kept(own),
            ..Visit::of(self.candidate.candidate(), at(self.now)?)
        })
    }
}

/// A queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueFacts {
    name: String,
    queued: u64,
    succeeded: u64,
    failed: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<u8>,
    base: u8,
    now: u64,
}

impl QueueFacts {
    fn of(queue: &Queue) -> Self {
        Self {
            name: queue.name.clone(),
            queued: queue.queued,
            succeeded: queue.succeeded,
            failed: queue.failed,
            bytes: queue.bytes,
            best: queue.best,
            base: queue.base,
            now: instant(queue.now),
        }
    }

    fn queue(&self) -> Result<Queue, CallProblem> {
        Ok(Queue {
            name: self.name.clone(),
            queued: self.queued,
            succeeded: self.succeeded,
            failed: self.failed,
            bytes: self.bytes,
            best: self.best,
            base: self.base,
            now: at(self.now)?,
        })
    }
}

/// A URI whose visit is completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FinishedFacts {
    at: u64,
    uri: String,
    status: i32,
    media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<u64>,
    state: ContentState,
    hop_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    queue: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<NamedValue>,
}

impl FinishedFacts {
    fn of(event: &Finished) -> Self {
        Self {
            at: event.at,
            uri: event.uri.clone(),
            status: event.status,
            media_type: event.media_type.clone(),
            size: event.size,
            took: event.took,
            state: event.state.into(),
            hop_path: event.hop_path.clone(),
            via: event.via.clone(),
            source: event.source.clone(),
            queue: event.queue.clone(),
            digest: event.digest.clone(),
            annotations: event.annotations.clone(),
            attributes: event.attributes.clone(),
        }
    }

    fn finished(&self) -> Finished {
        Finished {
            at: self.at,
            uri: self.uri.clone(),
            status: self.status,
            media_type: self.media_type.clone(),
            size: self.size,
            took: self.took,
            state: self.state.into(),
            hop_path: self.hop_path.clone(),
            via: self.via.clone(),
            source: self.source.clone(),
            queue: self.queue.clone(),
            digest: self.digest.clone(),
            annotations: self.annotations.clone(),
            attributes: self.attributes.clone(),
        }
    }
}

fn at(millis: u64) -> Result<Timestamp, CallProblem> {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok())
        .ok_or(CallProblem::Time(millis))
}
