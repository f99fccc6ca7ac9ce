//! Traits that a plugin implements: its description and its kinds.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::candidates::with_candidate;
use crate::{
    CandidateView, Candidates, Comparison, Document, Extraction, Finished, Handles, Keep,
    NamedValue, Observation, Page, Queue, Report, Ruling, SettingsFault, Span, Stage, StepPlan,
    StripProblem, Visit, Wait,
};

/// Description and settings of a plugin. The implementing type is the configured plugin.
pub trait Plugin: Sized + 'static {
    /// Lower-case words joined by hyphens, such as `repeating-path`.
    const NAME: &'static str;
    /// One sentence for the operator.
    const SUMMARY: &'static str;
    /// Semantic version. `None`: the version of the crate that exports the plugin.
    const VERSION: Option<&'static str> = None;

    /// Settings in the profile. Derive [`JsonSchema`] and `Deserialize` with
    /// `#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]`. Operators read the fields' doc comments;
    /// `Serialize` puts the defaults into the schema. A plugin without settings uses [`NoSettings`](crate::NoSettings), because
    /// `()` is not an object.
    type Settings: DeserializeOwned + JsonSchema;

    /// Configures the plugin with these settings, or returns their faults. The host may repeat this before each call.
    fn new(settings: Self::Settings) -> Result<Self, Vec<SettingsFault>>;

    /// Media types and URIs that the plugin handles; by default all.
    #[must_use]
    fn handles() -> Handles {
        Handles::default()
    }

    /// Values that the plugin keeps with URIs and sites from visit to visit (`document.attribute`, `document.site_value`).
    /// Undeclared values are not kept.
    #[must_use]
    fn keeps() -> Vec<Keep> {
        Vec::new()
    }

    /// Additional parts of the description, for later contract versions.
    #[must_use]
    fn attributes() -> Vec<NamedValue> {
        Vec::new()
    }
}

/// Finds links.
pub trait Extractor: Plugin {
    /// Extracts one document or one fragment.
    fn extract(&self, document: &Document) -> Extraction;

    /// Extracts documents of one type: one whole document, or all fragments of a page. The results are in the same order.
    fn extract_all(&self, documents: &[Document]) -> Vec<Extraction> {
        documents
            .iter()
            .map(|document| self.extract(document))
            .collect()
    }
}

/// Accepts or rejects URIs and responses. By default a filter passes.
pub trait Filter: Plugin {
    /// Judges one candidate, at the stages scope, pre-fetch and plugin.
    fn judge_candidate(&self, stage: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let _ = (stage, candidate);
        Ruling::pass()
    }

    /// Judges all outlinks of a page, in their order.
    fn judge_candidates(&self, stage: &Stage, candidates: &Candidates<'_>) -> Vec<Ruling> {
        candidates
            .iter()
            .map(|candidate| self.judge_candidate(stage, candidate))
            .collect()
    }

    /// Judges a response. By default the candidate of its visit is judged, so that a filter of URIs works at every stage.
    fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        let _ = document;
        with_candidate(visit, |candidate| self.judge_candidate(stage, candidate))
    }
}

/// Names the parts of a document that do not count as content in comparisons with its last version.
pub trait DigestStripper: Plugin {
    /// Spans of the document's bytes, in any order. Overlaps count once.
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem>;
}

/// Decides the wait until the next visit.
pub trait WaitEvaluator: Plugin {
    /// The wait; `None` leaves the answer to the next evaluator of the stack.
    fn evaluate(&self, visit: &Visit) -> Option<Wait>;
}

/// Decides whether a document with different bytes differs from its last archived version.
pub trait ChangeEvaluator: Plugin {
    /// Compares a document with its last archived version. `last` is the fingerprint that this plugin made of that version. It
    /// is `None` at the first visit, or if another plugin or other settings made it.
    fn compare(&self, document: &Document, visit: &Visit, last: Option<&[u8]>) -> Comparison;
}

/// Ranks candidates and queues: 1 is the highest precedence, 255 the lowest. By default the answer is left to the next plugin
/// of the stack, and finally to the profile.
pub trait Precedence: Plugin {
    /// Ranks one candidate. The document is the page it was found on; `None` for a seed.
    fn rank_candidate(
        &self,
        candidate: CandidateView<'_>,
        document: Option<&Document>,
    ) -> Option<u8> {
        let _ = (candidate, document);
        None
    }

    /// Ranks all outlinks of a page, in their order.
    fn rank_candidates(
        &self,
        candidates: &Candidates<'_>,
        document: Option<&Document>,
    ) -> Vec<Option<u8>> {
        candidates
            .iter()
            .map(|candidate| self.rank_candidate(candidate, document))
            .collect()
    }

    /// Ranks a queue.
    fn rank_queue(&self, queue: &Queue) -> Option<u8> {
        let _ = queue;
        None
    }
}

/// Receives the outcomes of URIs, for statistics, indexes and reports.
pub trait Observer: Plugin {
    /// Observes a batch of outcomes, in the order finished. `memory` is that of the last observation; empty at the first.
    fn observe(&self, memory: &[u8], events: &[Finished]) -> Observation;

    /// Reports on all observations so far; `now` is in milliseconds since 1970.
    fn report(&self, memory: &[u8], now: u64) -> Vec<Report> {
        let _ = (memory, now);
        Vec::new()
    }
}

/// Operates a page in a browser, step by step, before its links, text and pictures are taken.
pub trait PageBehavior: Plugin {
    /// Plans the next actions. Each step runs in a fresh instance: `memory` is that of the last step on this page, empty at the
    /// first. [`StepPlan::then`] and [`StepPlan::finish`] make plans; [`StepPlan::remember`] and [`recall`](crate::recall) turn
    /// a value into memory and back.
    fn step(&self, page: &Page, visit: &Visit, memory: &[u8]) -> StepPlan;
}
