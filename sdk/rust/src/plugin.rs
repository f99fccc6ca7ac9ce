//! What an author writes: who a plugin is, and what it does.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    Candidate, Document, Extraction, Handles, NamedValue, Ruling, SettingsFault, Span, Stage,
    StripProblem, Visit, Wait,
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
    /// Rules on one candidate, at the stages scope and pre-fetch.
    fn judge_candidate(&self, stage: &Stage, candidate: &Candidate) -> Ruling {
        let _ = (stage, candidate);
        Ruling::pass()
    }

    /// Rules on all outlinks of a page, in their order.
    fn judge_candidates(&self, stage: &Stage, candidates: &[Candidate]) -> Vec<Ruling> {
        candidates
            .iter()
            .map(|candidate| self.judge_candidate(stage, candidate))
            .collect()
    }

    /// Rules on a response. Unless implemented, it is judged as the candidate it came from, so that a filter of URIs
    /// serves at every stage.
    fn judge_document(&self, stage: &Stage, document: &Document, visit: &Visit) -> Ruling {
        let _ = document;
        self.judge_candidate(stage, &visit.candidate())
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
