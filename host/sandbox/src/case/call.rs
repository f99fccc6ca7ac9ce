//! A call of the contract with its arguments, as JSON.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::document::DocumentFacts;
use super::finished::FinishedFacts;
use super::page::PageFacts;
use super::queue::QueueFacts;
use super::visit::{CandidateFacts, VisitFacts};
use crate::visit::instant;
use crate::{Candidates, Document, Finished, LoadedPage, Plugin, Queue, Stage, Visit};

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

/// Constructors that record a call. Record a call with documents and visits before it is made, because it may leave notes in them.
/// Contents are not copied.
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
