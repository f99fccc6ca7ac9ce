//! Candidates, and the answers to them. Extraction, seeds, imports and operators make candidates;
//! [`Frontier::schedule`](crate::Frontier::schedule) takes them.

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::{HopPath, Uri};
use serde::{Deserialize, Serialize};

use crate::{Strategy, instant};

/// A URI that passed the scope filters: a seed, an outlink, a prerequisite, or what an operator adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The URI to fetch. Its normalised form is its identity.
    pub uri: Uri,
    /// Its canonical form by the profile's rules. URIs with one canonical form are one document in the seen test. It is not
    /// fetched, and is kept as a hash.
    pub canonical: String,
    /// The queue it belongs to, by default [`Uri::surt_authority`]. At most [`QUEUE_NAME_BYTES_MAX`] bytes, not empty, without
    /// NUL.
    pub queue: String,
    /// The hops from the seed, this one included; empty for a seed.
    pub hop_path: HopPath,
    /// The page on which it was found.
    pub via: Option<String>,
    /// Its place on that page, such as `a/@href`.
    pub context: String,
    /// The seed from which it descends, if that is recorded.
    pub source: Option<String>,
    /// `true` if it is a seed, or counts as one.
    pub seed: bool,
    /// Its urgency. The frontier raises it to [`Directive::Medium`] for redirects and near embeds. It lowers
    /// [`Directive::Highest`] to [`Directive::High`] unless the last hop is a prerequisite.
    pub directive: Directive,
    /// Its precedence within a directive, 0 first.
    pub precedence: u8,
    /// Cost that it takes from the budgets of its queue.
    pub cost: u8,
    /// Due time. An unknown URI is due at this time; `None` means now. A known URI that waits for longer becomes due at this
    /// time.
    #[serde(with = "instant::serialised_option")]
    pub due: Option<Timestamp>,
    /// Date of change, as a feed or a sitemap gives it. A known URI that waits and was last visited before this date is due now.
    /// A date in the future counts as now.
    #[serde(with = "instant::serialised_option")]
    pub modified: Option<Timestamp>,
    /// Shortest time after its last visit at which such news can make it due.
    pub min_wait: Duration,
    /// Hash of the scope that accepted it, for the record.
    pub scope: u64,
    /// `true` to fetch it now even if it is known, waits, or is done.
    pub force: bool,
    /// Whether it is visited once, or again and again.
    pub strategy: Strategy,
    /// Attributes of the link by which it was found, for the record.
    pub link_attributes: Vec<LinkAttribute>,
}

/// An attribute of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAttribute {
    /// Its name, such as `rel`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Longest name of a queue. SURT authorities of real hosts stay below 260 bytes.
pub const QUEUE_NAME_BYTES_MAX: usize = 1024;

/// Longest record key. It must fit into a key of the store (64 KiB) next to a queue's name.
pub const RECORD_KEY_BYTES_MAX: usize = 60 * 1024;

impl Candidate {
    /// Makes a candidate with the necessary fields only: its own canonical form, in the queue of its authority, a link of normal
    /// urgency.
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
            link_attributes: Vec::new(),
            strategy,
            uri,
        }
    }
}

/// Returns `true` if a queue may have this name.
pub(crate) fn is_queue_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= QUEUE_NAME_BYTES_MAX && !name.as_bytes().contains(&0)
}

/// The first criterion that orders URIs within a queue. It applies to one fetch; afterwards the URI is normal again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Directive {
    /// Most URIs.
    #[default]
    Normal,
    /// Redirects and the embeds of a page, so that they are fetched soon after the page.
    Medium,
    /// URIs that the caller wants soon. The directive moves a waiting URI to the ready ones.
    High,
    /// Prerequisites, on which other URIs of the queue depend. They are fetched again even if done.
    Highest,
}

/// The result of scheduling a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScheduleResult {
    /// The URI was unknown, and is in its queue now.
    New,
    /// The URI, or one with its canonical form, is known. Nothing was moved.
    Known,
    /// The URI was known, and now goes before others.
    Raised(Directive),
    /// The URI was forced into its queue.
    Forced,
    /// The URI belongs to another part of the crawl, and waits in the outbox.
    Sent,
    /// The URI cannot be stored. Log the reason.
    Refused(Refusal),
}

/// Reason for which a candidate cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Its record key is longer than [`RECORD_KEY_BYTES_MAX`].
    #[error("the URI is longer than a record key may be")]
    UriTooLong,
    /// The name of its queue is empty, longer than [`QUEUE_NAME_BYTES_MAX`], or contains a NUL.
    #[error("the queue's name is empty, too long, or holds a NUL")]
    QueueName,
}
