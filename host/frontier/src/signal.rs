//! Signals: news of a document between two visits, from a feed or a sitemap that gives a date after its last visit. They are
//! stored among the values that plugins keep with the URI, under a name that no plugin can have, until the next visit.

use jiff::Timestamp;
use opilio_uri::Hop;
use serde::{Deserialize, Serialize};

use crate::{Candidate, KeptChange, KeptValue, UriRecord};

/// Owner of the kept value. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":signals";

/// Name of the only value.
const NAME: &str = "signals";

/// Version of the value's form.
const VERSION: u32 = 1;

/// Most signals of a document; the latest are kept.
const SIGNALS_MAX: usize = 8;

/// News of a document: a date of change after its last visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Time at which the news was read.
    pub at: Timestamp,
    /// Source of the news: `sitemap` for lists made for crawlers, `feed` for any other page that dates its links.
    pub source: String,
    /// The date of change.
    pub modified: Timestamp,
}

impl UriRecord {
    /// News since the last visit, latest first.
    #[must_use]
    pub fn signals(&self) -> Vec<Signal> {
        let kept = self
            .kept
            .get(OWNER, NAME)
            .filter(|kept| kept.version == VERSION);
        let lines = kept.map_or("", |kept| kept.value.as_str()).lines();
        lines.filter_map(read).collect()
    }
}

/// Adds the news of a candidate, unless it is known. Returns whether the record has changed.
pub(crate) fn remember(record: &mut UriRecord, candidate: &Candidate, now: Timestamp) -> bool {
    let Some(modified) = candidate.modified else {
        return false;
    };
    let source = match candidate.hop_path.last() {
        Some(Hop::Manifest) => "sitemap",
        _ => "feed",
    };
    let mut signals = record.signals();
    let is_known = |known: &Signal| known.source == source && known.modified == modified;
    if signals.iter().any(is_known) {
        return false;
    }
    let signal = Signal {
        at: now,
        source: source.to_owned(),
        modified,
    };
    signals.insert(0, signal);
    signals.truncate(SIGNALS_MAX);
    let lines = signals.iter().map(|signal| {
        let Signal {
            at,
            source,
            modified,
        } = signal;
        format!("{at} {source} {modified}\n")
    });
    record.kept.apply(change(Some(lines.collect())));
    true
}

/// Removes the signals after a visit.
pub(crate) fn forget(record: &mut UriRecord) {
    record.kept.apply(change(None));
}

fn change(value: Option<String>) -> KeptChange {
    KeptChange {
        plugin: OWNER.to_owned(),
        name: NAME.to_owned(),
        value: value.map(|value| KeptValue {
            version: VERSION,
            value,
        }),
    }
}

fn read(line: &str) -> Option<Signal> {
    let mut words = line.split(' ');
    let (at, source, modified) = (words.next()?, words.next()?, words.next()?);
    Some(Signal {
        at: at.parse().ok()?,
        source: source.to_owned(),
        modified: modified.parse().ok()?,
    })
}
