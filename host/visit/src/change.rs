//! Whether different bytes are a new version: change evaluators, asked where the stripped digests differ.
//!
//! The first that answers decides. What it keeps of a version, its fingerprint, counts for that evaluator with those
//! settings alone: another one, or another setting, begins anew.

use std::sync::Arc;

use opilio_frontier::{ContentState, Fingerprint};
use opilio_sandbox::{Difference, Document, Visit};

use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;
use opilio_stacks::{Staged, hash_of};

/// What the evaluators made of a version.
#[derive(Default)]
pub(crate) struct Compared {
    /// None of them answered, or none handles such documents: what the digests say stands.
    pub(crate) state: Option<ContentState>,
    /// To be kept with this version, should it be archived in full.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The evaluator that decided, by its name in the profile; none where the digests did.
    pub(crate) by: Option<Arc<str>>,
    /// Its reason; may be empty.
    pub(crate) because: String,
    /// Calls that failed.
    pub(crate) failures: Vec<Failure>,
}

/// Asks the evaluators about a document whose digests say `state`. What is new or cannot be compared stays so; they are
/// asked all the same, for the fingerprint that the next visit is compared with. Blocks; call it on a document lane.
pub(crate) fn compare(
    stack: &[Staged],
    document: &Document,
    visit: &Visit,
    state: ContentState,
    last: Option<&Fingerprint>,
    guards: &Guards,
) -> Compared {
    let mut compared = Compared::default();
    for staged in stack {
        if !staged.plugin.handles(document.media_type(), document.uri())
            || !guards.admit(staged, document, visit)
        {
            continue;
        }
        let evaluator = hash_of(std::slice::from_ref(staged));
        let own = last.filter(|last| last.evaluator == evaluator);
        let answer = staged.compare(document, visit, own.map(|last| last.bytes.as_slice()));
        let comparison = match answer {
            Ok(comparison) => comparison,
            Err(unanswered) => {
                compared.failures.extend(unanswered.failure());
                if state != ContentState::Changed {
                    continue;
                }
                // It may have known better: archived in full, and visited again after the constant wait.
                compared.state = Some(ContentState::Unknown);
                return compared;
            }
        };
        let made = comparison
            .fingerprint
            .map(|bytes| Fingerprint { evaluator, bytes });
        let decided = comparison
            .difference
            .filter(|_| state == ContentState::Changed);
        if let Some(difference) = decided {
            compared.state = Some(match difference {
                Difference::Changed => ContentState::Changed,
                Difference::Unchanged => ContentState::Unchanged,
            });
            compared.by = Some(staged.name.clone());
            compared.because = comparison.reason;
            // Of the one that decides, so that it can do so the next time.
            compared.fingerprint = made.or(compared.fingerprint);
            return compared;
        }
        compared.fingerprint = compared.fingerprint.or(made);
        if compared.fingerprint.is_some() && state != ContentState::Changed {
            return compared;
        }
    }
    compared
}
