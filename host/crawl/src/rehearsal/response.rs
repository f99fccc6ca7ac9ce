//! A response that nobody sent: what is recorded of it, and what the frontier remembers of the visit.

use jiff::Timestamp;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{ContentState, Digests, Issue, Transfer, Validators, Visit, WarcLocation};
use opilio_profile::{Settings, StrippedEqual};

use opilio_visit::found;

/// A response on its way.
pub(super) struct Response {
    pub exchange: Exchange,
    pub head: ResponseHead,
    pub size: u64,
    pub transfer: Transfer,
    pub is_robots: bool,
}

/// Whether the body is written in full, as the chain decides it.
pub(super) fn is_archived_whole(
    issue: &Issue,
    reading: &found::Reading,
    same_bytes: bool,
    settings: &Settings,
) -> bool {
    let identical = reading.state == ContentState::Unchanged;
    let is_stored = issue.record.archived.is_some();
    match settings.revisit.stripped_equal {
        _ if !reading.archive => false,
        _ if !(is_stored && identical) => true,
        _ if same_bytes => false,
        StrippedEqual::Archive => true,
        StrippedEqual::Note | StrippedEqual::Drop => false,
    }
}

pub(super) fn remembered(
    issue: &Issue,
    head: &ResponseHead,
    reading: &found::Reading,
    payload: [u8; 20],
    is_whole: bool,
) -> Visit {
    let digests = Digests {
        payload: Some(payload),
        stripped: reading.stripped,
    };
    let validators = if head.status == 200 {
        Validators {
            etag: head.first("etag").map(str::to_owned),
            last_modified: head.first("last-modified").map(str::to_owned),
        }
    } else {
        Validators::default()
    };
    let at = WarcLocation {
        file: String::new(),
        offset: 0,
        record_id: String::new(),
        date: Timestamp::UNIX_EPOCH,
    };
    Visit {
        status: head.status.into(),
        state: reading.state,
        duplicate: false,
        size: reading.size,
        media_type: head
            .media_type()
            .unwrap_or_else(|| issue.record.media_type.clone()),
        digests: is_whole.then_some(digests),
        validators: is_whole.then_some(validators),
        archived: is_whole.then_some(at),
        extractor: reading.extracted_by,
        outlinks: reading
            .extracted_by
            .filter(|by| *by != found::NOT_EXTRACTED)
            .map(|_| reading.extracted.links.len() as u64),
        fingerprint: reading.fingerprint.clone().filter(|_| is_whole),
        kept: Vec::new(),
    }
}
