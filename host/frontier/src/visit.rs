//! The effects of a successful visit on the record and the statistics.

use jiff::Timestamp;

use crate::{ContentState, PastVisit, Statistics, UriRecord, Visit};

const NOT_MODIFIED: i32 = 304;

pub(crate) fn note(
    record: &mut UriRecord,
    statistics: &mut Statistics,
    visit: Visit,
    at: Timestamp,
    history_length: usize,
) {
    let is_revisit = record.visits > 0;
    let Visit {
        status,
        state,
        duplicate,
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

    record.visits += 1;
    statistics.visits += 1;
    if state.is_version() {
        record.versions += 1;
    }
    let bytes = size.unwrap_or(0);
    let (revisits, volume) = (&mut statistics.revisits, &mut statistics.bytes);
    let (count, sum) = match state {
        ContentState::New | ContentState::Changed if duplicate => {
            (&mut revisits.changed, &mut volume.unchanged)
        }
        ContentState::New | ContentState::Changed => (&mut revisits.changed, &mut volume.novel),
        ContentState::Unchanged if status == NOT_MODIFIED => {
            (&mut revisits.not_modified, &mut volume.unchanged)
        }
        ContentState::Unchanged => (&mut revisits.unchanged, &mut volume.unchanged),
        ContentState::Unknown => (&mut revisits.unknown, &mut volume.unknown),
    };
    *sum = sum.saturating_add(bytes);
    *count += u64::from(is_revisit);

    remember(
        record,
        PastVisit {
            at,
            status,
            state,
            size,
            digest: digests
                .and_then(|digests| digests.payload)
                .map(PastVisit::short_digest),
            wait: None,
        },
        history_length,
    );
    record.status = status;
    if !media_type.is_empty() {
        record.media_type = media_type;
    }
    if let Some(digests) = digests {
        record.digests = digests;
        record.fingerprint = fingerprint;
    }
    if let Some(validators) = validators {
        record.validators = validators;
    }
    record.archived = archived.or_else(|| record.archived.take());
    record.extractor = extractor.or(record.extractor);
    record.outlinks = outlinks.unwrap_or(record.outlinks);
    record.signals.clear();
    record.failures = 0;
    record.oscillation = oscillation;
    record.redirect_target = redirect_target;
    for change in kept {
        record.kept.apply(change);
    }
}

/// Adds a visit to the front of the history. The oldest visits beyond `history_length` are dropped.
pub(crate) fn remember(record: &mut UriRecord, past: PastVisit, history_length: usize) {
    record.history.insert(0, past);
    record.history.truncate(history_length);
}
