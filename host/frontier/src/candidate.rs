//! What may become part of the crawl, and what became of it.

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::{HopPath, Uri};
use serde::{Deserialize, Serialize};

use crate::KeptValues;

/// A URI that passed the scope filters: a seed, an outlink, a prerequisite, or what an operator adds.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What would be fetched. Its exact form is its identity.
    pub uri: Uri,
    /// Its canonical form by the profile's rules: two URIs with the same one count as the same document in the seen
    /// test. Not fetched, and kept as a hash.
    pub canonical: String,
    /// The queue it shall stand in, by default [`Uri::surt_authority`]. At most [`QUEUE_NAME_BYTES_MAX`] bytes, not
    /// empty, no NUL.
    pub queue: String,
    /// The hops from the seed, this one included; empty for a seed.
    pub hop_path: HopPath,
    /// The page it was found on.
    pub via: Option<String>,
    /// Where on that page, such as `a/@href`.
    pub context: String,
    /// The seed it descends from, where that is kept.
    pub source: Option<String>,
    /// It is a seed, or counts as one.
    pub seed: bool,
    /// How urgent. Raised to [`Directive::Medium`] for redirects and near embeds; [`Directive::Highest`] is lowered to
    /// [`Directive::High`] unless the last hop is a prerequisite.
    pub directive: Directive,
    /// Within a directive, 0 first.
    pub precedence: u8,
    /// What its queue's budgets are charged for it.
    pub cost: u8,
    /// Not before this time, where it is new; where it is known and waits for longer, no longer than this. None: now, where
    /// it is new.
    pub due: Option<Timestamp>,
    /// When it changed, as a feed or a sitemap says: where it is known, waits, and was last visited before then, it is due
    /// now. A date in the future counts as now.
    pub modified: Option<Timestamp>,
    /// No such news brings it nearer to its last visit than this.
    pub min_wait: Duration,
    /// Hash of the scope that let it in, for the record.
    pub scope: u64,
    /// Fetch it now even if it is known, waits, or is done.
    pub force: bool,
    /// Once, or again and again.
    pub strategy: Strategy,
    /// What is kept with it from its discovery on, where it is new; as what plugins keep.
    pub kept: KeptValues,
}

/// Longest name of a queue. SURT authorities of real hosts stay below 260.
pub const QUEUE_NAME_BYTES_MAX: usize = 1024;

/// Longest record key, so that it fits into a key of the store (64 KiB) beside a queue's name.
pub const RECORD_KEY_BYTES_MAX: usize = 60 * 1024;

impl Candidate {
    /// A candidate with nothing but what it cannot do without: its own canonical form, in the queue of its authority,
    /// a link of normal urgency.
    #[must_use]
    pub fn new(uri: Uri, hop_path: HopPath, strategy: Strategy) -> Self {
        Self {
            canonical: uri.as_str().to_owned(),
            queue: uri.surt_authority(),
            hop_path,
            via: None,
            context: String::new(),
            source: None,
            seed: false,
            directive: Directive::Normal,
            precedence: 1,
            cost: 1,
            due: None,
            modified: None,
            min_wait: Duration::ZERO,
            scope: 0,
            force: false,
            kept: KeptValues::default(),
            strategy,
            uri,
        }
    }
}

/// Whether a queue may have this name.
pub(crate) fn is_queue_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= QUEUE_NAME_BYTES_MAX && !name.as_bytes().contains(&0)
}

/// The first thing that orders URIs within a queue. It holds for one fetch; after it the URI is normal again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Directive {
    /// Most URIs.
    #[default]
    Normal,
    /// Redirects and the embeds of a page, so that they are fetched near the page in time.
    Medium,
    /// What the caller wants soon. Moves a waiting URI to those that are ready.
    High,
    /// Prerequisites, which other URIs of the queue depend on. Fetched again even when done.
    Highest,
}

/// What happens after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Strategy {
    /// Visited once.
    #[default]
    Snapshot,
    /// Visited again after the wait that comes with each success; probed sooner and then less and less often after failures,
    /// see [`Config::waits`](crate::Config::waits).
    Revisit,
    /// Visited again after a wait that is always the same. To the frontier, which is told the wait, it is a revisit.
    Fixed,
}

impl Strategy {
    /// Whether it is visited more than once.
    #[must_use]
    pub fn revisits(self) -> bool {
        self != Self::Snapshot
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheduled {
    /// It was unknown and stands in its queue now.
    New,
    /// It, or one with its canonical form, is known. Nothing moved.
    Known,
    /// It was known and goes before others now.
    Raised(Directive),
    /// It was forced into its queue.
    Forced,
    /// It cannot be held; note the reason.
    Refused(Refusal),
}

/// Why a candidate cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Its record key is longer than [`RECORD_KEY_BYTES_MAX`].
    #[error("the URI is longer than a record key may be")]
    UriTooLong,
    /// The name of its queue is empty, longer than [`QUEUE_NAME_BYTES_MAX`], or holds a NUL.
    #[error("the queue's name is empty, too long, or holds a NUL")]
    QueueName,
}
