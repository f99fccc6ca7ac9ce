//! Signals: news of a document between two visits, from a feed or a sitemap that gives a date after its last visit. The record of
//! the URI has them until the next visit.

use jiff::Timestamp;
use opilio_uri::Hop;
use serde::{Deserialize, Serialize};

use crate::{Candidate, UriRecord, instant};

/// Most signals of a document; the latest are kept.
const SIGNALS_MAX: usize = 8;

/// News of a document: a date of change after its last visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Time at which the news was read.
    #[serde(with = "instant::serialised")]
    pub at: Timestamp,
    /// Source of the news.
    pub source: SignalSource,
    /// The date of change.
    #[serde(with = "instant::serialised")]
    pub modified: Timestamp,
}

/// Source of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalSource {
    /// A list made for crawlers.
    Sitemap,
    /// Any other page that dates its links.
    Feed,
}

impl SignalSource {
    /// Its name in the plugin contract and in exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sitemap => "sitemap",
            Self::Feed => "feed",
        }
    }
}

/// Adds the news of a candidate, unless it is known. Returns whether the record has changed.
pub(crate) fn remember(record: &mut UriRecord, candidate: &Candidate, now: Timestamp) -> bool {
    let Some(modified) = candidate.modified else {
        return false;
    };
    // As precise as the stored signals with which it is compared.
    let modified = instant::timestamp(instant::floor(modified));
    let source = match candidate.hop_path.last() {
        Some(Hop::Manifest) => SignalSource::Sitemap,
        _ => SignalSource::Feed,
    };
    let is_known = |known: &Signal| known.source == source && known.modified == modified;
    if record.signals.iter().any(is_known) {
        return false;
    }
    let signal = Signal {
        at: now,
        source,
        modified,
    };
    record.signals.insert(0, signal);
    record.signals.truncate(SIGNALS_MAX);
    true
}
