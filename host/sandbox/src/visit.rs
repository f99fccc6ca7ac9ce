//! A visit as filters and wait evaluators see it. The host fills it in; plugins only read it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::kept_values::SharedKeptValues;
use crate::notes::Notes;
use crate::{Candidate, ContentState, Neighbourhood, PastVisit, Signal};

/// One visit of a URI. [`Visit::of`] makes a first visit without further facts; set those that are known.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The candidate in the form that filters got when the URI was found.
    pub candidate: Candidate,
    /// The time of this visit, which is the only clock of a plugin. Times before 1970 read as 1970.
    pub now: Timestamp,
    /// Fetch status; 0 before the fetch.
    pub status: i32,
    /// Media type of the response; empty before the fetch. At a reconsideration, that of the last visit.
    pub media_type: String,
    /// State of the content; unknown before it has been judged.
    pub state: ContentState,
    /// Size of the content in bytes; `None` before the fetch, or if no body was fetched.
    pub size: Option<u64>,
    /// The wait before this visit; `None` at the first.
    pub last_wait: Option<Duration>,
    /// Time between its due time and its beginning.
    pub overdue: Duration,
    /// Completed visits, plus this one. At a reconsideration: completed visits only.
    pub visits: u64,
    /// Versions so far, including this one if it is new or changed.
    pub versions: u64,
    /// Earlier visits, newest first, those that failed for good included.
    pub history: Vec<PastVisit>,
    /// Headers of the last archived version, under their lower-case names: `etag`, `last-modified`.
    pub validators: BTreeMap<String, String>,
    /// Links found on the document when it was last extracted.
    pub outlinks: u64,
    /// Pages of other registrable domains that embed the document, if the profile has `revisit.fade-after`; otherwise 0.
    pub inlinks: u64,
    /// Signals since the last visit, newest first.
    pub signals: Vec<Signal>,
    /// Figures of the document's neighbourhood.
    pub neighbourhood: Vec<Neighbourhood>,
    /// Values that the host computes, under their names, such as `budget-price`.
    pub measures: BTreeMap<String, f64>,
    /// Notes, shared with the documents of the visit.
    pub notes: Notes,
    /// Kept values, shared with the documents of the visit.
    pub kept: SharedKeptValues,
}

impl Visit {
    /// Makes the first visit of a candidate, before the fetch.
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
            kept: SharedKeptValues::default(),
        }
    }

    /// A header of the last archived version, whatever the case of its name.
    pub(crate) fn validator(&self, name: &str) -> Option<&String> {
        self.validators.get(&name.to_ascii_lowercase())
    }
}

/// A time in the unit of the contract: milliseconds since 1970; earlier times become 0.
pub(crate) fn instant(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// A duration in the unit of the contract: milliseconds; longer ones become the longest.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
