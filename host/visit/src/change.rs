//! Change evaluators. They are called if the stripped digests differ, and decide whether the different bytes are a new version.
//!
//! The first evaluator that answers decides. A fingerprint is passed only to the evaluator that made it, with the same settings.
//! Another evaluator, or one with other settings, starts without a fingerprint.

use std::sync::Arc;

use opilio_frontier::{ContentState, Fingerprint};
use opilio_sandbox::{Difference, Document, Visit};

use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;
use opilio_stacks::{Staged, hash_of};

/// The evaluators' answer about a version.
#[derive(Default)]
pub(crate) struct ChangeAnswer {
    /// The content state; `None` if no evaluator answered or handles such documents. Then the state by the digests applies.
    pub(crate) state: Option<ContentState>,
    /// The fingerprint to keep with this version, if the version is archived in full.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Name in the profile of the evaluator that decided; `None` if the digests decided.
    pub(crate) by: Option<Arc<str>>,
    /// The evaluator's reason; may be empty.
    pub(crate) because: String,
    /// Calls that ended in a plugin error.
    pub(crate) failures: Vec<Failure>,
}

/// Calls the evaluators on a document whose state by its digests is `state`. A new document, or one that cannot be compared, keeps
/// its state. The evaluators are called even then, for the fingerprint that the next visit needs. Blocks; call it on a document
/// lane.
pub(crate) fn compare(
    stack: &[Staged],
    document: &Document,
    visit: &Visit,
    state: ContentState,
    last: Option<&Fingerprint>,
    guards: &Guards,
) -> ChangeAnswer {
    let mut compared = ChangeAnswer::default();
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
                // The failed evaluator might have decided otherwise. So the version is archived in full and visited again after the
                // constant wait.
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
            // The deciding evaluator needs its own fingerprint at the next visit.
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
