//! Issued URIs, and the outcomes that the caller reports for them.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, FrontierError, GroupFigures, KeptChange, OverQuota, ScheduleResult, Strategy,
    UriRecord, UriState, VisitUpdate,
};

/// Fetch status of a URI that was put back for its prerequisites more often than
/// [`FrontierConfig::max_deferrals`](crate::FrontierConfig::max_deferrals) allows.
pub const PREREQUISITE_FAILED: i32 = -62;

/// Fetch status of a URI whose prerequisite cannot be held: its URI or the name of its queue is too long.
pub const PREREQUISITE_UNSCHEDULABLE: i32 = -63;

/// The wait of a URI whose refusal lasts until its cause is changed, such as a setting of the profile. It is considered again
/// after the longest wait.
pub const UNTIL_CHANGED: Duration = Duration::MAX;

/// Longest name of a plugin, of a value or of a group of documents, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The name of an issued URI until it is finished. Tickets of an earlier process are unknown to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// The answer of [`Frontier::next`](crate::Frontier::next).
#[derive(Debug)]
pub enum Next {
    /// Fetch this.
    Issue(Box<Issue>),
    /// Nothing to fetch before this time, unless a URI is scheduled or finished.
    WaitUntil(Timestamp),
    /// Nothing to fetch until a URI in process is finished.
    InProcess,
    /// Nothing is in process, and no queue has a URI to issue. Either no URI is queued, or their queues are frozen, retired or at
    /// the precedence floor.
    Empty,
}

/// A URI to fetch. It stays in its queue until [`Frontier::finished`](crate::Frontier::finished) is called with its
/// ticket, or the store is opened again.
#[derive(Debug, Clone)]
pub struct Issue {
    /// The ticket to return with the outcome.
    pub ticket: Ticket,
    /// The URI to fetch.
    pub uri: Uri,
    /// Its record.
    pub record: UriRecord,
    /// Its queue.
    pub queue: String,
    /// Time at which it should have been fetched: when it was found, or when its wait was over.
    pub due: Timestamp,
    /// Time that has passed since then.
    pub overdue: Duration,
    /// Time of its visit if nothing has changed. If set, a wait evaluator asked to be called now. Do not fetch the URI; answer
    /// with [`Outcome::Considered`].
    pub visit_after: Option<Timestamp>,
    /// The server group that limits its queue.
    pub group: Option<String>,
    /// A limit of its host, domain or source that has been reached. If set, do not fetch it. The limits of its queue retire the
    /// queue instead.
    pub over_quota: Option<OverQuota>,
}

impl Issue {
    /// Creates an issue that no frontier made, for questions to plugins about a URI that is not visited now. It is asked about at
    /// `now`, for a visit that is due then or was due before. No frontier accepts an outcome for it.
    pub fn unissued(uri: Uri, record: UriRecord, now: Timestamp) -> Issue {
        let due = match record.state {
            UriState::Queued { due, .. } => due.min(now),
            _ => now,
        };
        Issue {
            ticket: Ticket(u64::MAX),
            uri,
            queue: record.queue.clone(),
            record,
            due,
            overdue: Duration::try_from(now - due).unwrap_or_default(),
            visit_after: None,
            group: None,
            over_quota: None,
        }
    }
}

/// The result of an issued URI.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A response came, error responses included. The archive has as much of it as is kept.
    Succeeded(Box<Success>),
    /// The URI was reconsidered, without a visit. No request was sent, and the call costs nothing.
    Considered {
        /// The wait from now until its visit; `None` keeps the planned time.
        wait: Option<Duration>,
        /// The time until its next reconsideration, if that is before the visit.
        ask_again: Option<Duration>,
    },
    /// The URI cannot be fetched before these prerequisites. It goes back at once, behind them. They go into its queue with
    /// directive highest, whatever queue they name. A deferral costs no politeness delay. Too many in a row fail the URI.
    Deferred {
        /// Usually one: the host's DNS or its robots.txt.
        prerequisites: Vec<Candidate>,
    },
    /// There was no usable response: the connection failed, or the profile retries the status. It counts as an attempt. Either
    /// the URI alone backs off, doubling with each attempt, or the whole queue does, doubling with each retry in a row. So a host
    /// that is down costs one probe at a time.
    Retry {
        /// Fetch status.
        status: i32,
        /// Different URIs of the queue that must fail in a row before the whole queue backs off, this one included. It is 1 if
        /// the failure is the server's. In two cases the whole queue always backs off. Other URIs of the queue wait for this one,
        /// or the queue backs off already and has not succeeded since.
        queue_after: u32,
        /// `Retry-After` of the response.
        after: Option<Duration>,
        /// The request and its response; `None` if no request was sent.
        transfer: Option<Transfer>,
    },
    /// The URI is not to be fetched: robots.txt, scope, a filter, an operator.
    Disregarded {
        /// Fetch status.
        status: i32,
        /// The filter or the limit that decided, for [`Frontier::explain`](crate::Frontier::explain).
        reason: String,
        /// The time until the decision may change, if it is known: when a robots.txt expires, or [`UNTIL_CHANGED`]. `None` if it
        /// may change at any time, as after a plugin error: the URI is then probed as after a failure. It is considered after the
        /// longest wait at the latest ([`FrontierConfig::waits`](crate::FrontierConfig::waits)), and never under
        /// [`Strategy::Snapshot`].
        wait: Option<Duration>,
        /// The request and its response. `None` if no request was sent, which costs no politeness delay.
        transfer: Option<Transfer>,
    },
    /// The URI cannot be fetched, and a retry at once would not help. Under revisit it is probed after the shortest wait, and
    /// then less and less often ([`FrontierConfig::waits`](crate::FrontierConfig::waits)).
    Failed {
        /// Fetch status.
        status: i32,
        /// The request and its response. `None` if no request was sent, which costs no politeness delay.
        transfer: Option<Transfer>,
    },
    /// The URI does not belong to the crawl any more, and no request was sent. It is forgotten, so that it may be found again on
    /// another path. A seed is never forgotten, and counts as disregarded.
    OutOfScope {
        /// Fetch status, if it is a seed.
        status: i32,
        /// The filter that decided, for [`Frontier::explain`](crate::Frontier::explain).
        reason: String,
    },
}

/// A request and its response on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfer {
    /// From the first byte sent to the last byte received.
    pub duration: Duration,
    /// Bytes received, headers included.
    pub bytes: u64,
}

/// A link that the scope did not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfScopeLink {
    /// The URI of the link.
    pub uri: Uri,
    /// The filter that decided, and its reason.
    pub reason: String,
}

/// A successful visit with all its results.
#[derive(Debug, Clone, Default)]
pub struct Success {
    /// The visit itself, for the record.
    pub visit: VisitUpdate,
    /// Wait until the next visit. `None`: no further visit.
    pub wait: Option<Duration>,
    /// Time until its next reconsideration, if that is before the visit.
    pub ask_again: Option<Duration>,
    /// The strategy of the URI from now on; `None` keeps the record's.
    pub strategy: Option<Strategy>,
    /// Hash of the scope that accepted it; `None` keeps the record's.
    pub scope: Option<u64>,
    /// The outlinks of the page. They are scheduled in the same batch.
    pub outlinks: Vec<Candidate>,
    /// `true` if embeds among the outlinks that are known and wait become due now: the page has changed, and its parts with it.
    pub refresh_embeds: bool,
    /// Links of the page that the scope refused.
    pub refused: Vec<OutOfScopeLink>,
    /// Values that plugins keep for the URI's site from now on. URIs that finish later overwrite them.
    pub kept_for_site: Vec<KeptChange>,
    /// New figures on groups of the site's documents. URIs that finish later overwrite them.
    pub site_figures: BTreeMap<String, GroupFigures>,
    /// The request and its response.
    pub transfer: Transfer,
}

impl Success {
    /// Checks that keys can be made of the names under which the visit keeps values. The caller decides on the meaning of the
    /// values, and on their limits.
    pub(crate) fn check_names(&self) -> Result<(), FrontierError> {
        let changes = self.visit.kept.iter().chain(&self.kept_for_site);
        let names = changes.flat_map(|change| [&change.plugin, &change.name]);
        for name in names.chain(self.site_figures.keys()) {
            if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
                return Err(FrontierError::Name { bytes: name.len() });
            }
        }
        Ok(())
    }
}

/// The effect of an outcome on the frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishResult {
    /// The state of the URI now.
    pub disposition: Disposition,
    /// The result of scheduling each outlink or prerequisite, in the order given.
    pub scheduled: Vec<ScheduleResult>,
    /// Time at which the queue may issue again, if it had a ready URI.
    pub queue_ready: Timestamp,
}

/// The state of a finished URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Done for good.
    Done,
    /// The URI will be visited again at this time.
    Waiting(Timestamp),
    /// The URI is not known any more.
    Forgotten,
    /// Back in its queue, behind its prerequisites.
    Deferred,
    /// Back in its queue, for another attempt.
    Retrying {
        /// Attempts that have failed in a row, this one included.
        attempts: u32,
    },
    /// The attempts or deferrals are used up: it failed.
    GivenUp {
        /// The status of the last attempt, or [`PREREQUISITE_FAILED`] or
        /// [`PREREQUISITE_UNSCHEDULABLE`].
        status: i32,
        /// Attempts or deferrals in a row.
        tries: u32,
        /// Time of its next probe, under [`Strategy::Revisit`](crate::Strategy::Revisit).
        again: Option<Timestamp>,
    },
}
