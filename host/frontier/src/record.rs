//! What the store keeps of one URI, from discovery to its last visit.

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::HopPath;
use serde::{Deserialize, Serialize};

use crate::{Directive, Fingerprint, KeptChange, KeptValues, PastVisit, Strategy, instant};

/// One URI's record. Times are kept to the millisecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UriRecord {
    /// The exact normalised URI.
    #[serde(skip)]
    pub uri: String,
    /// The queue it stands or stood in.
    pub queue: String,
    /// The hops from the seed; empty for a seed.
    pub hop_path: HopPath,
    /// The page it was first found on.
    pub via: Option<String>,
    /// Where on that page.
    pub context: String,
    /// The seed it descends from, where that is kept.
    pub source: Option<String>,
    /// It is a seed, or counts as one.
    pub seed: bool,
    /// Once, or again and again.
    pub strategy: Strategy,
    /// Within a directive, 0 first.
    pub precedence: u8,
    /// What its queue's budgets are charged for it.
    pub cost: u8,
    /// When it was first scheduled.
    #[serde(with = "instant::serialised")]
    pub discovered: Timestamp,
    /// Where it stands.
    pub place: Place,
    /// How its last completed turn ended.
    pub standing: Standing,
    /// Fetch status of its last completed turn or attempt; 0 before.
    pub status: i32,
    /// Attempts that failed since the last completed turn.
    pub attempts: u32,
    /// Times it was put back for prerequisites since it was last fetched.
    pub deferrals: u32,
    /// The wait that leads, or led, to its next visit.
    pub wait: Option<Duration>,
    /// Successful visits.
    pub visits: u64,
    /// Visits that found it new or changed.
    pub versions: u64,
    /// Completed turns, newest first, failures included; as many as [`Config::history_length`](crate::Config::history_length).
    pub history: Vec<PastVisit>,
    /// Of the last version that came with any.
    pub digests: Digests,
    /// Of the last version that came with any.
    pub validators: Validators,
    /// Where its last archived version is.
    pub archived: Option<WarcLocation>,
    /// Hash of the extractor stack that last extracted it.
    pub extractor: Option<u64>,
    /// Links found when it was last extracted.
    pub outlinks: u64,
    /// Lower-case, without parameters; empty before the first success.
    pub media_type: String,
    /// Of the last version that came with digests, where a change evaluator made one.
    pub fingerprint: Option<Fingerprint>,
    /// What plugins keep with the URI.
    pub kept: KeptValues,
    /// Hash of the scope that let it in, as the caller has it; 0 where none did.
    pub scope: u64,
    /// Pages of other domains that embed it, as far as they are visited again.
    pub referrers: u32,
    /// Why its last turn ended without a fetch: the filter, the limit; empty where it did not.
    pub reason: String,
    /// Key of the canonical form in the index of known ones.
    pub(crate) canonical: CanonicalKey,
    /// The index leads to this record. Others of the same form may have been forced, or redirected to.
    pub(crate) owns_canonical: bool,
}

/// See [`crate::keys::canonical`].
pub(crate) type CanonicalKey = [u8; 16];

/// Where a URI stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In its queue: among those that are ready, or among those that wait until `due`; in process, it stays where it
    /// was until it is finished.
    Queued {
        /// The order it takes once it is due.
        directive: Directive,
        /// When it may be fetched, politeness aside.
        #[serde(with = "instant::serialised")]
        due: Timestamp,
        /// Breaks ties, in the order of arrival.
        arrival: u64,
    },
    /// Nowhere: it will not be fetched unless forced.
    Done,
    /// Nowhere, by the operator's hand; it stays known.
    Deleted,
    /// Nowhere: an embed that no page has linked to for long. It is back when it is found again.
    Faded,
}

/// How a URI's last completed turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Standing {
    /// It has not had one.
    #[default]
    Open,
    /// A response came.
    Succeeded,
    /// It could not be fetched.
    Failed,
    /// It was not to be fetched.
    Disregarded,
}

/// State of the content against the last archived version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ContentState {
    /// First visit.
    New,
    /// Differs from the last archived version.
    Changed,
    /// The same, by digest, change evaluator or the server's word (304).
    Unchanged,
    /// Nothing to compare with.
    #[default]
    Unknown,
}

/// A successful visit as its record shall keep it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visit {
    /// HTTP status, or a code of the glossary.
    pub status: i32,
    /// Against the last archived version. New and changed count as a version.
    pub state: ContentState,
    /// Another URI has brought the same payload: it counts as nothing novel, whatever its state.
    pub duplicate: bool,
    /// Size of the content in bytes; none where no body was fetched.
    pub size: Option<u64>,
    /// Lower-case, without parameters; empty leaves what is known.
    pub media_type: String,
    /// Of a version that later ones shall be compared with; none leaves what is known.
    pub digests: Option<Digests>,
    /// Of a completely archived body; none leaves what is known.
    pub validators: Option<Validators>,
    /// Where it was archived; none leaves what is known.
    pub archived: Option<WarcLocation>,
    /// Hash of the extractor stack, where it was extracted.
    pub extractor: Option<u64>,
    /// Links found, where it was extracted.
    pub outlinks: Option<u64>,
    /// Of a version that comes with digests; where these come without one, the one before is gone too.
    pub fingerprint: Option<Fingerprint>,
    /// What plugins keep with the URI from now on.
    pub kept: Vec<KeptChange>,
}

/// Digests of one version. They are never compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Digests {
    /// SHA-1 of the payload as WARC means it: transfer coding removed.
    pub payload: Option<[u8; 20]>,
    /// What is left when the strippers are done.
    pub stripped: Option<StrippedDigest>,
}

/// A digest and what it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrippedDigest {
    /// SHA-1 of the stripped content.
    pub digest: [u8; 20],
    /// Hash of the strippers and their settings. Digests under different ones are not comparable.
    pub stripper: u64,
}

/// What a conditional request is made with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Validators {
    /// As received, quotes and `W/` included.
    pub etag: Option<String>,
    /// As received.
    pub last_modified: Option<String>,
}

/// Where a record of the archive is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcLocation {
    /// File name without folder, and without `.open`.
    pub file: String,
    /// Of the record's first byte in the file.
    pub offset: u64,
    /// `WARC-Record-ID`, without angle brackets.
    pub record_id: String,
    /// `WARC-Date`.
    #[serde(with = "instant::serialised")]
    pub date: Timestamp,
}
