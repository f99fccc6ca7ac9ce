//! The effects of a successful visit on the record and the statistics.

use jiff::Timestamp;

use crate::{ContentState, PastVisit, Statistics, UriRecord, VisitUpdate};

const NOT_MODIFIED: i32 = 304;

/// Records a successful visit with the URI and in the statistics.
pub(crate) fn note(
    record: &mut UriRecord,
    statistics: &mut Statistics,
    visit: VisitUpdate,
    at: Timestamp,
    history_length: usize,
) {
    statistics.visits += 1;
    let bytes = visit.size.unwrap_or(0);
    let (revisits, volume) = (&mut statistics.revisits, &mut statistics.bytes);
    let (count, sum) = match visit.state {
        ContentState::New | ContentState::Changed if visit.duplicate => {
            (&mut revisits.changed, &mut volume.unchanged)
        }
        ContentState::New | ContentState::Changed => (&mut revisits.changed, &mut volume.novel),
        ContentState::Unchanged if visit.status == NOT_MODIFIED => {
            (&mut revisits.not_modified, &mut volume.unchanged)
        }
        ContentState::Unchanged => (&mut revisits.unchanged, &mut volume.unchanged),
        ContentState::Unknown => (&mut revisits.unknown, &mut volume.unknown),
    };
    *sum = sum.saturating_add(bytes);
    *count += u64::from(record.visits > 0);
    record.note_visit(visit, at, history_length);
}

impl UriRecord {
    /// Records a successful visit at `at`. The history keeps at most `history_length` visits.
    pub fn note_visit(&mut self, visit: VisitUpdate, at: Timestamp, history_length: usize) {
        let VisitUpdate {
            status,
            state,
            duplicate: _,
            size,
            media_type,
            digests,
            validators,
            archived,
            extractor,
            outlinks,
            fingerprint,
            kept,
            oscillation,
            redirect_target,
        } = visit;
        self.visits += 1;
        if state.is_version() {
            self.versions += 1;
        }
        let past = PastVisit {
            at,
            status,
            state,
            size,
            digest: digests
                .and_then(|digests| digests.payload)
                .map(PastVisit::short_digest),
            wait: None,
        };
        remember(self, past, history_length);
        self.status = status;
        if !media_type.is_empty() {
            self.media_type = media_type;
        }
        if let Some(digests) = digests {
            self.digests = digests;
            self.fingerprint = fingerprint;
        }
        if let Some(validators) = validators {
            self.validators = validators;
        }
        self.archived = archived.or_else(|| self.archived.take());
        self.extractor = extractor.or(self.extractor);
        self.outlinks = outlinks.unwrap_or(self.outlinks);
        self.signals.clear();
        self.failures = 0;
        self.oscillation = oscillation;
        self.redirect_target = redirect_target;
        for change in kept {
            self.kept.apply(change);
        }
    }
}

/// Adds a visit to the front of the history. The oldest visits beyond `history_length` are dropped.
pub(crate) fn remember(record: &mut UriRecord, past: PastVisit, history_length: usize) {
    record.history.insert(0, past);
    record.history.truncate(history_length);
}
