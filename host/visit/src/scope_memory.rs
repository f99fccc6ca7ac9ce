//! A cache of recent decisions of the scope. Pages of a site link to the same URIs again and again.
//!
//! A decision is kept if it depends on the filters, the URI, its hop path and its seed flag alone: see [`judge_by_uri`]. Filters
//! that read more are called each time.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use opilio_stacks::Staged;
use quick_cache::sync::Cache;

use crate::scope::{ScopeDecision, ScopeJudgement};

/// Maximum of decisions kept; each takes some hundred bytes.
const DECISIONS_MAX: usize = 1 << 15;

/// Recent decisions of the scope, of all visits of a crawl.
pub struct ScopeMemory {
    decisions: Cache<Key, Arc<ScopeDecision>>,
    /// A hash function with two secret keys, so that no page can contain a link that collides with another link.
    hashers: [RandomState; 2],
}

type Key = [u64; 2];

/// The input of a decision.
#[derive(Clone, Copy, Debug, Hash)]
pub struct ScopeQuestion<'q> {
    /// Hash of the filters ([`opilio_stacks::Stacks::scope_identity`]).
    pub filters: u64,
    /// The URI.
    pub uri: &'q str,
    /// The hop path of the URI.
    pub hop_path: &'q str,
    /// `true` if the URI is a seed.
    pub seed: bool,
}

impl Default for ScopeMemory {
    fn default() -> ScopeMemory {
        ScopeMemory {
            decisions: Cache::new(DECISIONS_MAX),
            hashers: Default::default(),
        }
    }
}

impl fmt::Debug for ScopeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeMemory")
            .field("decisions", &self.decisions.len())
            .finish_non_exhaustive()
    }
}

impl ScopeMemory {
    /// Returns the decision, if it is in the cache.
    #[must_use]
    pub fn get(&self, question: ScopeQuestion<'_>) -> Option<Arc<ScopeDecision>> {
        self.decisions.get(&self.key(question))
    }

    /// Stores the decisions on some questions, in the same order, if they depend on these questions alone.
    pub fn keep<'q>(
        &self,
        stack: &[Staged],
        questions: impl Iterator<Item = ScopeQuestion<'q>>,
        judged: &ScopeJudgement,
    ) {
        let is_whole = judged.failures.is_empty() && judged.unjudged.is_empty();
        if !is_whole || !judge_by_uri(stack) {
            return;
        }
        for (question, decision) in questions.zip(&judged.decisions) {
            self.decisions
                .insert(self.key(question), Arc::new(decision.clone()));
        }
    }

    fn key(&self, question: ScopeQuestion<'_>) -> Key {
        self.hashers
            .each_ref()
            .map(|hasher| hasher.hash_one(question))
    }
}

/// Returns `true` if the decisions of these filters depend on URI, hop path and seed flag alone. That is the case if each filter
/// has been called, none has read anything else ([`opilio_sandbox::Plugin::judges_by_uri`]), and none has guards.
pub(crate) fn judge_by_uri(stack: &[Staged]) -> bool {
    let by_uri = |staged: &Staged| staged.guards.is_empty() && staged.plugin.judges_by_uri();
    stack.iter().all(by_uri)
}
