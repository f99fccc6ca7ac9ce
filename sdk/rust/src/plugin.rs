//! What an author writes: who a plugin is, and what it does.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::candidates::with_candidate;
use crate::{
    CandidateView, Candidates, Comparison, Document, Extraction, Finished, Handles, Keep,
    NamedValue, Observation, Queue, Report, Ruling, SettingsFault, Span, Stage, StripProblem,
    Visit, Wait,
};

/// Who a plugin is, and its settings. The implementing type is the configured plugin.
pub trait Plugin: Sized + 'static {
    /// Lower-case words joined by hyphens, such as `repeating-path`.
    const NAME: &'static str;
    /// One sentence for the operator.
    const SUMMARY: &'static str;
    /// Semantic version; none: the version of the crate that exports the plugin.
    const VERSION: Option<&'static str> = None;

    /// What the profile may set. Derive [`JsonSchema`] and `Deserialize` with
    /// `#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]`; the fields' doc comments are what
    /// operators read, and `Serialize` puts the defaults into the schema. [`NoSettings`](crate::NoSettings)
    /// where there are none: `()` is not an object.
    type Settings: DeserializeOwned + JsonSchema;

    /// Becomes the plugin with these settings, or says what is wrong with them. Called once, before any other call.
    fn new(settings: Self::Settings) -> Result<Self, Vec<SettingsFault>>;

    /// What the plugin wants to be called for; anything, unless said otherwise.
    #[must_use]
    fn handles() -> Handles {
        Handles::default()
    }

    /// Values that the plugin keeps with URIs and sites from visit to visit (`document.attribute`,
    /// `document.site_value`); only these are kept.
    #[must_use]
    fn keeps() -> Vec<Keep> {
        Vec::new()
    }

    /// Anything more for the description that later contract versions know how to read.
    #[must_use]
    fn attributes() -> Vec<NamedValue> {
        Vec::new()
    }
}

/// Finds links.
pub trait Extractor: Plugin {
    /// What one document, or one fragment, gives.
    fn extract(&self, document: &Document) -> Extraction;

    /// Answers for documents of one type, in their order: one whole document, or all fragments of a page.
    fn extract_all(&self, documents: &[Document]) -> Vec<Extraction> {
        documents
            .iter()
            .map(|document| self.extract(document))
            .collect()
    }
}

/// Says yes or no. What is not implemented passes.
pub trait Filter: Plugin {
    /// Rules on one candidate, at the stages scope, pre-fetch and plugin.
    fn judge_candidate(&self, stage: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let _ = (stage, candidate);
        Ruling::pass()
    }

    /// Rules on all outlinks of a page, in their order.
    fn judge_candidates(&self, stage: &Stage, candidates: &Candidates<'_>) -> Vec<Ruling> {
        candidates
            .iter()
            .map(|candidate| self.judge_candidate(stage, candidate))
            .collect()
    }

    /// Rules on a response. Unless implemented, it is judged as the candidate it came from, so that a filter of URIs
    /// serves at every stage.
    fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        let _ = document;
        with_candidate(visit, |candidate| self.judge_candidate(stage, candidate))
    }
}

/// Says which parts of a document do not count as content when it is compared with its last version.
pub trait DigestStripper: Plugin {
    /// Spans of the document's bytes, in any order; overlaps count once.
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem>;
}

/// Says how long to wait before the next visit.
pub trait WaitEvaluator: Plugin {
    /// None leaves the answer to the next evaluator of the stack.
    fn evaluate(&self, visit: &Visit) -> Option<Wait>;
}

/// Says whether a document differs from its last archived version, where the bytes do.
pub trait ChangeEvaluator: Plugin {
    /// `last` is the fingerprint that this plugin made of that version; none at the first visit, and where another
    /// plugin or other settings made it.
    fn compare(&self, document: &Document, visit: &Visit, last: Option<&[u8]>) -> Comparison;
}

/// Says what comes first: 1 is the highest precedence, 255 the lowest. What is not implemented leaves the answer to the
/// next plugin of the stack, and at last to the profile.
pub trait Precedence: Plugin {
    /// Ranks one candidate. The document is the page that it was found on; none for a seed.
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

/// Watches what becomes of URIs, for statistics, indexes and reports of its own.
pub trait Observer: Plugin {
    /// A batch, in the order finished. `memory` is that of the last observation; empty at the first.
    fn observe(&self, memory: &[u8], events: &[Finished]) -> Observation;

    /// Reports on what has been seen so far; `now` is in milliseconds since 1970.
    fn report(&self, memory: &[u8], now: u64) -> Vec<Report> {
        let _ = (memory, now);
        Vec::new()
    }
}
