//! Filters of a response: mid-fetch, post-fetch, pre-extract and archive stages.

use std::time::Duration;

use opilio_sandbox::{Document, Stage, Verdict, Visit};
use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;

use crate::status;

/// A post-fetch filter's verdict `retry`.
pub struct RetryWanted {
    /// Time until the next attempt.
    pub after: Duration,
    /// The filter and its reason.
    pub because: String,
}

/// A filter's verdict `reject`.
pub struct FilterRejection {
    /// The fetch status.
    pub status: i32,
    /// The filter and its reason.
    pub because: String,
}

/// The verdict of document filters on a response.
pub(crate) struct DocumentVerdict {
    pub(crate) verdict: Verdict,
    /// The filter that decided and its reason; empty if all filters passed.
    pub(crate) reason: String,
    /// The fetch status, if the verdict is to reject.
    pub(crate) status: i32,
    /// Calls that failed.
    pub(crate) failures: Vec<Failure>,
}

/// Calls document filters. The last filter that does not pass decides. If all pass, the document is accepted. A filter that fails
/// does not decide, unless the profile sets a verdict for its errors.
pub(crate) fn judge_document(
    stack: &[Staged],
    stage: &Stage,
    document: &Document,
    visit: &Visit,
    guards: &Guards,
) -> DocumentVerdict {
    let mut judged = DocumentVerdict {
        verdict: Verdict::Pass,
        reason: String::new(),
        status: status::BLOCKED,
        failures: Vec::new(),
    };
    for staged in stack {
        if !staged.plugin.handles(document.media_type(), document.uri())
            || !guards.admit(staged, document, visit)
        {
            continue;
        }
        let (verdict, reason) = match staged.judge_document(stage, document, visit) {
            Ok(ruling) => (ruling.verdict, ruling.reason),
            Err(unanswered) => {
                let verdict = match unanswered.stands_for() {
                    Some(true) => Verdict::Accept,
                    Some(false) => Verdict::Reject,
                    None => Verdict::Pass,
                };
                let reason = unanswered.reason();
                judged.failures.extend(unanswered.failure());
                (verdict, reason)
            }
        };
        if verdict != Verdict::Pass {
            if verdict == Verdict::Reject {
                judged.status = status::of_refusal(staged);
            }
            judged.verdict = verdict;
            judged.reason = format!("{}:{reason}", staged.name);
        }
    }
    judged
}
