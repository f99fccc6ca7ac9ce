//! The state of a document: comparison with the last archived version.

use opilio_frontier::{ContentState, StrippedDigest};
use opilio_sandbox::{Document, Visit};
use opilio_stacks::guards::Guards;

use super::{Reading, ReadingTask};
use crate::change;
use crate::digest::{self, Stripped};

impl ReadingTask {
    /// Compares the page as a browser showed it with the last version. The payload is not compared: it can stay the same while the
    /// page shows something else.
    pub(super) fn judge_rendered_state(
        &self,
        shown: &Document,
        whole: bool,
        visit: &Visit,
        reading: &mut Reading,
    ) {
        // Answers of guards about the plain document do not apply to the rendered document.
        let guards = Guards::default();
        let stacks = &self.stacks;
        let digest = digest::rendered(&stacks.digest, stacks.digest_hash, shown, visit, &guards);
        reading.is_rendered = true;
        reading.state = digest::rendered_state(self.last.as_ref(), digest.digest);
        reading.stripped = digest.digest;
        if reading.state != ContentState::Unchanged {
            let declined = digest.declined;
            let declined = declined.map(|why| format!("unstripped:{why}"));
            reading.annotations.extend(declined);
            if self.is_complete(whole) {
                self.compare(shown, visit, &guards, reading);
            }
        }
        let failure = digest.failure.map(|failure| *failure);
        reading.failures.extend(failure);
        reading.failures.extend(guards.take_failures());
    }

    /// Returns `true` if the response was received completely and the document contains all of it.
    fn is_complete(&self, whole: bool) -> bool {
        whole && self.exchange.truncated.is_none() && self.exchange.failure.is_none()
    }

    /// Compares the document as the server sent it with the last version.
    pub(super) fn judge_state(
        &self,
        document: &Document,
        whole: bool,
        visit: &Visit,
        reading: &mut Reading,
    ) {
        if let Some(digest) = self.stripped_before().filter(|_| whole) {
            reading.state = ContentState::Unchanged;
            reading.stripped = Some(digest);
            return;
        }
        let mut stripped = digest::stripped(
            &self.stacks.digest,
            self.stacks.digest_hash,
            document,
            visit,
            &reading.guards,
        );
        if !whole && matches!(stripped, Stripped::Digest(_)) {
            // The content beyond the cut may have changed.
            stripped = Stripped::Declined {
                why: "content-cut".to_owned(),
            };
        }
        reading.state = digest::state(
            self.last.as_ref(),
            self.exchange.payload_digest.0,
            &stripped,
        );
        match stripped {
            Stripped::Digest(digest) => reading.stripped = Some(digest),
            Stripped::Declined { why } if reading.state != ContentState::Unchanged => {
                reading.annotations.push(format!("unstripped:{why}"));
            }
            Stripped::Declined { .. } => {}
            Stripped::Failed { why, failure } => {
                tracing::debug!(uri = self.uri, %why, "no stripped digest");
                reading.failures.extend(failure.map(|failure| *failure));
            }
            Stripped::NotCalled => {}
        }
        if self.is_complete(whole) && reading.state != ContentState::Unchanged {
            let guards = std::mem::take(&mut reading.guards);
            self.compare(document, visit, &guards, reading);
            reading.guards = guards;
        }
    }

    /// Returns the stripped digest of the last archived version, if this version has the same bytes and the strippers are the same.
    /// The result would be equal, so the strippers are not called. Most visits of a continuous crawl are of this kind.
    fn stripped_before(&self) -> Option<StrippedDigest> {
        let last = self.last.as_ref()?;
        let is_same = last.payload == Some(self.exchange.payload_digest.0);
        let stripped = last.stripped.filter(|_| is_same)?;
        let now = StrippedDigest::stripper_of(self.stacks.digest_hash);
        (stripped.stripper == now).then_some(stripped)
    }

    /// Calls change evaluators to decide whether different bytes are a new version.
    fn compare(&self, document: &Document, visit: &Visit, guards: &Guards, reading: &mut Reading) {
        let last = self.last_fingerprint.as_ref();
        let stack = &self.stacks.change;
        let compared = change::compare(stack, document, visit, reading.state, last, guards);
        reading.state = compared.state.unwrap_or(reading.state);
        reading.fingerprint = compared.fingerprint;
        if let Some(by) = &compared.by {
            reading
                .annotations
                .push(annotation_of(by, &compared.because));
        }
        reading.compared_by = compared.by;
        reading.compared_because = compared.because;
        reading.failures.extend(compared.failures);
    }
}

/// A plugin and its reason, as an annotation.
fn annotation_of(name: &str, reason: &str) -> String {
    match reason {
        "" => name.to_owned(),
        reason => format!("{name}:{reason}"),
    }
}
