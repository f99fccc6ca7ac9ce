//! The URI's standing in the crawl, as filters and wait evaluators see it. The host fills it in; plugins only read.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::kept::Kept;
use crate::notes::Notes;
use crate::{Candidate, ContentState, Neighbourhood, PastVisit, Signal};

/// One visit of a URI. [`Visit::of`] gives a first visit of which nothing more is known; set what is.
#[derive(Clone, Debug)]
pub struct Visit {
    /// What was asked for, as filters saw it at discovery.
    pub candidate: Candidate,
    /// The time of this visit; the only clock a plugin has. Times before 1970 read as 1970.
    pub now: Timestamp,
    /// Fetch status; 0 before the fetch.
    pub status: i32,
    /// Media type of the response; empty before the fetch.
    pub media_type: String,
    /// State of the content; unknown before it has been judged.
    pub state: ContentState,
    /// Size of the content in bytes; none before the fetch or where no body was fetched.
    pub size: Option<u64>,
    /// The wait that led to this visit; none at the first.
    pub last_wait: Option<Duration>,
    /// How long past its due time this visit began.
    pub overdue: Duration,
    /// Completed visits, this one included once fetched.
    pub visits: u64,
    /// Versions seen, this one included once it is new or changed.
    pub versions: u64,
    /// Earlier visits, newest first.
    pub history: Vec<PastVisit>,
    /// Headers of the last archived version, under their lower-case names: `etag`, `last-modified`.
    pub validators: BTreeMap<String, String>,
    /// Links found on the document when it was last extracted.
    pub outlinks: u64,
    /// Times the document has been found linked.
    pub inlinks: u64,
    /// News since the last visit, newest first.
    pub signals: Vec<Signal>,
    /// What is known of the documents around it.
    pub neighbourhood: Vec<Neighbourhood>,
    /// Values the host computes, under their names, such as `budget-price`.
    pub measures: BTreeMap<String, f64>,
    /// Shared with the documents of the visit.
    pub notes: Notes,
    /// Shared with the documents of the visit as well.
    pub kept: Kept,
}

impl Visit {
    /// The first visit of a candidate, before the fetch.
    pub fn of(candidate: Candidate, now: Timestamp) -> Self {
        Self {
            candidate,
            now,
            status: 0,
            media_type: String::new(),
            state: ContentState::Unknown,
            size: None,
            last_wait: None,
            overdue: Duration::ZERO,
            visits: 0,
            versions: 0,
            history: Vec::new(),
            validators: BTreeMap::new(),
            outlinks: 0,
            inlinks: 0,
            signals: Vec::new(),
            neighbourhood: Vec::new(),
            measures: BTreeMap::new(),
            notes: Notes::new(),
            kept: Kept::default(),
        }
    }

    /// A header of the last archived version, whatever the case of its name.
    pub(crate) fn validator(&self, name: &str) -> Option<&String> {
        self.validators.get(&name.to_ascii_lowercase())
    }
}

/// As the contract counts time: milliseconds since 1970, nothing before.
pub(crate) fn instant(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// As the contract counts durations: milliseconds, the longest one for all that is longer.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
