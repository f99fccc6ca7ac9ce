//! The stored record of one URI, from its discovery to its last visit. The frontier owns it. Visits, reports and plugins read it.

use std::time::Duration;

use jiff::Timestamp;
use opilio_model::is_error_response;
use opilio_uri::{Hop, HopPath, Uri};
use serde::{Deserialize, Serialize};

use crate::{
    Candidate, ContentState, Directive, KeptChange, KeptValues, LinkAttribute, PastVisit, Signal,
    Strategy, instant,
};

/// Longest context that is kept.
const CONTEXT_BYTES_MAX: usize = 200;

/// Most signals of a document; the latest are kept.
const SIGNALS_MAX: usize = 8;

/// One URI's record, as the frontier stores it. Times are kept to the millisecond. Exports have a
/// form of their own: `UriLine` in `host/job/src/transfer/json_lines.rs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UriRecord {
    /// The exact normalised URI.
    #[serde(skip)]
    pub uri: String,
    /// Its queue, also after it has left it.
    pub queue: String,
    /// The hops from the seed; empty for a seed.
    pub hop_path: HopPath,
    /// The page it was first found on.
    pub via: Option<String>,
    /// Its place on that page.
    pub context: String,
    /// The seed from which it descends, if that is recorded.
    pub source: Option<String>,
    /// `true` if it is a seed, or counts as one.
    pub seed: bool,
    /// Whether it is visited once, or again and again.
    pub strategy: Strategy,
    /// Its precedence within a directive, 0 first.
    pub precedence: u8,
    /// Cost that it takes from the budgets of its queue.
    pub cost: u8,
    /// Time at which it was first scheduled.
    #[serde(with = "instant::serialised")]
    pub discovered: Timestamp,
    /// Its place in the crawl: queued with the time from which it may be fetched, or the reason for which it is not queued.
    pub state: UriState,
    /// Result of its last completed visit.
    pub last_outcome: LastOutcome,
    /// Fetch status of its last completed visit or attempt; 0 before.
    pub status: i32,
    /// Failed attempts since its last completed visit.
    pub attempts: u32,
    /// Times it was put back for prerequisites since it was last fetched.
    pub deferrals: u32,
    /// The wait before its next visit, or before its last one.
    pub wait: Option<Duration>,
    /// Successful visits.
    pub visits: u64,
    /// Visits that found it new or changed.
    pub versions: u64,
    /// Completed visits, newest first, failures included; at most
    /// [`FrontierConfig::history_length`](crate::FrontierConfig::history_length).
    pub history: Vec<PastVisit>,
    /// Digests of the last version that came with any.
    pub digests: Digests,
    /// Validators of the last version that came with any.
    pub validators: Validators,
    /// The place of its last archived version.
    pub archived: Option<WarcLocation>,
    /// Hash of the extractor stack that last extracted it.
    pub extractor: Option<u64>,
    /// Links found when it was last extracted.
    pub outlinks: u64,
    /// Media type, lower-case, without parameters; empty before the first success.
    pub media_type: String,
    /// Fingerprint of the last version that came with digests, if a change evaluator made one.
    pub fingerprint: Option<Fingerprint>,
    /// Values that plugins keep with the URI.
    pub kept: KeptValues,
    /// Attributes of the link by which it was found, such as `rel` = `nofollow`.
    pub link_attributes: Vec<LinkAttribute>,
    /// Visits in a row that ended without a response, while it is visited again. They lengthen the wait for the next probe.
    pub failures: u32,
    /// News since its last visit, latest first.
    pub signals: Vec<Signal>,
    /// Its next reconsideration, if a wait evaluator asked for one.
    pub reconsideration: Option<PlannedReconsideration>,
    /// The oscillation of its wait evaluator's answers, while they oscillate.
    pub oscillation: Option<Oscillation>,
    /// Target of its last redirect, if it is a seed or a seed redirected to it.
    pub redirect_target: Option<String>,
    /// Hash of the scope that accepted it, as the caller computes it; 0 if no scope did.
    pub scope: u64,
    /// Pages of other domains that embed it, if they are visited again.
    pub referrers: u32,
    /// Reason for which its last visit ended without a fetch: the filter or the limit. Empty if there was a fetch.
    pub reason: String,
    /// Key of the canonical form in the index of known ones.
    pub(crate) canonical: CanonicalKey,
    /// `true` if the index leads to this record. Other URIs of the same form may have been forced, or redirected to.
    pub(crate) owns_canonical: bool,
}

impl UriRecord {
    /// Creates the record of a candidate that is found at `now`. The record is in no queue and in no store: tools use it to call
    /// plugins about a URI, and the frontier sets its state.
    pub fn of(candidate: Candidate, now: Timestamp) -> UriRecord {
        let mut context = candidate.context;
        context.truncate(context.floor_char_boundary(CONTEXT_BYTES_MAX));
        UriRecord {
            uri: candidate.uri.as_str().to_owned(),
            queue: candidate.queue,
            hop_path: candidate.hop_path,
            via: candidate.via,
            context,
            source: candidate.source,
            seed: candidate.seed,
            strategy: candidate.strategy,
            precedence: candidate.precedence,
            cost: candidate.cost,
            discovered: now,
            state: UriState::Done,
            last_outcome: LastOutcome::Open,
            status: 0,
            attempts: 0,
            deferrals: 0,
            wait: None,
            visits: 0,
            versions: 0,
            history: Vec::new(),
            digests: Digests::default(),
            validators: Validators::default(),
            archived: None,
            extractor: None,
            outlinks: 0,
            media_type: String::new(),
            fingerprint: None,
            kept: KeptValues::default(),
            link_attributes: candidate.link_attributes,
            failures: 0,
            signals: Vec::new(),
            reconsideration: None,
            oscillation: None,
            redirect_target: None,
            scope: candidate.scope,
            referrers: 0,
            reason: String::new(),
            canonical: CanonicalKey::default(),
            owns_canonical: false,
        }
    }

    /// Adds news, unless it is known. Returns whether the record has changed.
    pub(crate) fn add_signal(&mut self, signal: Signal) -> bool {
        let is_known =
            |known: &Signal| known.source == signal.source && known.modified == signal.modified;
        if self.signals.iter().any(is_known) {
            return false;
        }
        self.signals.insert(0, signal);
        self.signals.truncate(SIGNALS_MAX);
        true
    }
}

/// Returns `true` if other URIs depend on a URI. A prerequisite counts against no quota and costs no budget.
pub(crate) fn is_prerequisite(uri: &Uri, record: &UriRecord) -> bool {
    is_free(uri.as_str()) || record.hop_path.last() == Some(Hop::Prerequisite)
}

/// Returns `true` if a fetch asks no web server, and so costs a queue no politeness delay.
pub(crate) fn is_free(uri: &str) -> bool {
    uri.starts_with("dns:")
}

/// Key of a canonical form, see [`crate::keys::canonical`].
pub(crate) type CanonicalKey = [u8; 16];

/// Queued URIs, and the reasons for which other URIs are not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UriState {
    /// In its queue: among the ready URIs, or among those that wait until `due`. A URI in process stays where it was until it is
    /// finished.
    Queued {
        /// The directive that orders it once it is due.
        directive: Directive,
        /// Time from which it may be fetched, politeness aside.
        #[serde(with = "instant::serialised")]
        due: Timestamp,
        /// Arrival number, which breaks ties.
        arrival: u64,
    },
    /// In no queue: it will not be fetched unless forced.
    Done,
    /// In no queue, because an operator deleted it. It stays known.
    Deleted,
    /// In no queue: an embed to which no page has linked for long. It is queued again when it is found again.
    Faded,
}

/// Result of a URI's last completed visit. Statistics, listings, reports and imports share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum LastOutcome {
    /// The URI has not had a visit.
    #[default]
    Open,
    /// A response came, other than an error response.
    Succeeded,
    /// The URI could not be fetched, or the response was an error response (4xx, 5xx).
    Failed,
    /// The URI was not to be fetched: robots.txt, the scope, a filter, a quota or an operator.
    Disregarded,
    /// A prerequisite was answered: a DNS look-up, a robots.txt or a login. A robots.txt with status 404 is an answer, too.
    Prerequisite,
}

impl LastOutcome {
    /// Returns the outcome of a finished visit by its fetch status; 0 stands for a URI without a visit.
    #[must_use]
    pub fn of(status: i32, is_prerequisite: bool) -> LastOutcome {
        match status {
            0 => LastOutcome::Open,
            1.. => LastOutcome::of_response(status, is_prerequisite),
            // Crawler trap, too many hops, out of scope, blocked, quota, time, deleted, robots.txt.
            -4999..=-4000 | -5999..=-5000 | -6999..=-6000 | -9998 => LastOutcome::Disregarded,
            _ => LastOutcome::Failed,
        }
    }

    /// Returns the outcome of a visit that got a response.
    pub(crate) fn of_response(status: i32, is_prerequisite: bool) -> LastOutcome {
        match (is_prerequisite, is_error_response(status)) {
            (true, _) => LastOutcome::Prerequisite,
            (false, true) => LastOutcome::Failed,
            (false, false) => LastOutcome::Succeeded,
        }
    }
}

/// A successful visit, with the values for the URI's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitUpdate {
    /// HTTP status, or a code of the glossary.
    pub status: i32,
    /// Content state against the last archived version. New and changed count as a version.
    pub state: ContentState,
    /// `true` if another URI has brought the same payload. Such a visit is not novel, whatever its state.
    pub duplicate: bool,
    /// Size of the content in bytes; `None` if no body was fetched.
    pub size: Option<u64>,
    /// Media type, lower-case, without parameters; empty keeps the record's.
    pub media_type: String,
    /// Digests of a version with which later ones are compared; `None` keeps the record's.
    pub digests: Option<Digests>,
    /// Validators of a completely archived body; `None` keeps the record's.
    pub validators: Option<Validators>,
    /// Place of its capture in the archive; `None` keeps the record's.
    pub archived: Option<WarcLocation>,
    /// Hash of the extractor stack, if it was extracted.
    pub extractor: Option<u64>,
    /// Links found, if it was extracted.
    pub outlinks: Option<u64>,
    /// Fingerprint of a version that comes with digests. Digests without a fingerprint remove the fingerprint of the record.
    pub fingerprint: Option<Fingerprint>,
    /// Values that plugins keep with the URI from now on.
    pub kept: Vec<KeptChange>,
    /// The oscillation of the wait evaluator's answers, this one included; `None` if they do not oscillate.
    pub oscillation: Option<Oscillation>,
    /// Target of the redirect, for the record; `None` removes the record's.
    pub redirect_target: Option<String>,
}

/// A planned reconsideration of a URI that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedReconsideration {
    /// Time at which the wait evaluators are called.
    #[serde(with = "instant::serialised")]
    pub at: Timestamp,
    /// Time of the visit if the call changes nothing.
    #[serde(with = "instant::serialised")]
    pub visit: Timestamp,
}

/// Oscillation of a wait evaluator's answers: each differs much from the one before, in the opposite direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oscillation {
    /// Direction of the last large change.
    pub last: WaitDirection,
    /// Large changes in alternating directions in a row, the last one included.
    pub in_a_row: u32,
}

/// Direction in which a wait changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitDirection {
    /// To a longer wait.
    Up,
    /// To a shorter wait.
    Down,
}

/// Digests of one version. They are never compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Digests {
    /// SHA-1 of the payload as WARC means it: transfer coding removed.
    pub payload: Option<[u8; 20]>,
    /// Digest of the content without the parts that strippers name.
    pub stripped: Option<StrippedDigest>,
}

impl Digests {
    /// Returns true if the version is known by its rendering in a browser.
    pub fn is_of_rendering(&self) -> bool {
        self.stripped.is_some_and(|it| it.is_of_rendering())
    }
}

/// A digest of the stripped content, with its strippers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrippedDigest {
    /// SHA-1 of the stripped content.
    pub digest: [u8; 20],
    /// Hash of the strippers and their settings. Digests under different ones are not comparable. Its highest bit says that the
    /// content is that of the rendered page.
    pub stripper: u64,
}

impl StrippedDigest {
    const OF_RENDERING: u64 = 1 << 63;

    /// Returns the value of [`Self::stripper`] for content that a server sent.
    pub const fn stripper_of(stack_hash: u64) -> u64 {
        stack_hash & !Self::OF_RENDERING
    }

    /// Returns the value of [`Self::stripper`] for content that a browser showed.
    pub const fn stripper_of_rendering(stack_hash: u64) -> u64 {
        stack_hash | Self::OF_RENDERING
    }

    /// Returns true if a browser showed the content.
    pub const fn is_of_rendering(self) -> bool {
        self.stripper & Self::OF_RENDERING != 0
    }
}

/// A change evaluator's fingerprint of the last archived version, to compare the next one with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The bytes that the evaluator gave.
    pub bytes: Vec<u8>,
    /// Hash of the evaluator and its settings. An evaluator cannot use the fingerprint of another.
    pub evaluator: u64,
}

/// Validators for a conditional request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Validators {
    /// `ETag` as received, quotes and `W/` included.
    pub etag: Option<String>,
    /// `Last-Modified` as received.
    pub last_modified: Option<String>,
}

/// The place of a record in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcLocation {
    /// File name without folder, and without `.open`.
    pub file: String,
    /// Offset of the record's first byte in the file.
    pub offset: u64,
    /// `WARC-Record-ID`, without angle brackets.
    pub record_id: String,
    /// `WARC-Date`.
    #[serde(with = "instant::serialised")]
    pub date: Timestamp,
}
