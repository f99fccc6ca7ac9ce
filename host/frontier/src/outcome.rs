//! What the frontier hands out, and what comes back.

use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{Candidate, KeptChange, OverQuota, Scheduled, Strategy, UriRecord, Visit};

/// Fetch status of a URI that was put back for its prerequisites more often than
/// [`Config::max_deferrals`](crate::Config::max_deferrals) allows.
pub const PREREQUISITE_FAILED: i32 = -62;

/// Fetch status of a URI whose prerequisite cannot be held: its URI or the name of its queue is too long.
pub const PREREQUISITE_UNSCHEDULABLE: i32 = -63;

/// The wait of a URI that was refused: it may be otherwise once somebody has changed what refused it. It is looked at again
/// after the longest wait.
pub const UNTIL_CHANGED: Duration = Duration::MAX;

/// Names one issued URI until it is finished. Tickets of an earlier process are unknown to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// The answer of [`Frontier::next`](crate::Frontier::next).
#[derive(Debug)]
pub enum Next {
    /// Fetch this.
    Issue(Box<Issue>),
    /// Nothing before this time, unless something is scheduled or finished.
    WaitUntil(Timestamp),
    /// Nothing until something in process is finished.
    InProcess,
    /// Nothing is in process, and no queue has a URI to give: none is queued, or those that hold some are frozen, retired
    /// or at the precedence floor.
    Empty,
}

/// A URI to fetch. It stays in its queue until [`Frontier::finished`](crate::Frontier::finished) is called with its
/// ticket, or the store is opened again.
#[derive(Debug, Clone)]
pub struct Issue {
    /// To be given back with the outcome.
    pub ticket: Ticket,
    /// What to fetch.
    pub uri: Uri,
    /// All that is known of it.
    pub record: UriRecord,
    /// Where it stood.
    pub queue: String,
    /// When it should have been fetched: when it was found, or when its wait was over.
    pub due: Timestamp,
    /// How long ago that was.
    pub overdue: Duration,
    /// A wait evaluator wanted to be asked about it now, and this is when it is to be visited if nothing has changed. Not to
    /// be fetched: [`Outcome::Considered`].
    pub visit_after: Option<Timestamp>,
    /// The server group that limits its queue.
    pub group: Option<String>,
    /// A limit of its host, domain or source has been reached: not to be fetched. Its queue's own limits retire the
    /// queue instead.
    pub over_quota: Option<OverQuota>,
}

/// What became of an issued URI.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A response came, 404 included, and has reached the archive as far as it is kept.
    Succeeded(Box<Success>),
    /// It was issued to be considered, and was: nothing was sent. Costs nothing.
    Considered {
        /// From now until its visit; none leaves the time that it was given.
        wait: Option<Duration>,
        /// When to ask about it again, where that is before.
        ask_again: Option<Duration>,
    },
    /// It cannot be fetched before these. It goes back at once, behind them; they stand in its queue with directive
    /// highest, whatever queue they name. Costs no politeness delay. Too many in a row fail the URI.
    Deferred {
        /// Usually one: the host's DNS or its robots.txt.
        prerequisites: Vec<Candidate>,
    },
    /// No usable response: the connection failed, or a status that the profile wants tried again. Counts an attempt. The URI
    /// backs off alone, doubling with each attempt, or the whole queue does, doubling with each retry in a row, so that a
    /// host that is down costs one probe at a time.
    Retry {
        /// Fetch status.
        status: i32,
        /// Different URIs of the queue, this one included, that must have failed in a row for the whole queue to back off; 1
        /// where the failure is the server's. What others of the queue wait for, and a queue that is backing off and has not
        /// succeeded since, always has the whole queue back off.
        queue_after: u32,
        /// `Retry-After` of the response.
        after: Option<Duration>,
        /// None where no request was sent.
        transfer: Option<Transfer>,
    },
    /// Not to be fetched: robots.txt, scope, a filter, an operator.
    Disregarded {
        /// Fetch status.
        status: i32,
        /// The filter or the limit that decided, for [`Frontier::why`](crate::Frontier::why).
        reason: String,
        /// Until that may be otherwise, where it is known: when a robots.txt expires, or [`UNTIL_CHANGED`]. None where it may
        /// be at any time, as after a plugin's fault: it is probed as after a failure. It is not looked at later than after the
        /// longest wait ([`Config::waits`](crate::Config::waits)), and not at all under [`Strategy::Snapshot`].
        wait: Option<Duration>,
        /// None where no request was sent, which costs no politeness delay.
        transfer: Option<Transfer>,
    },
    /// Cannot be fetched, and trying again at once is no use. Under revisit it is probed after the shortest wait, and less and
    /// less often ([`Config::waits`](crate::Config::waits)).
    Failed {
        /// Fetch status.
        status: i32,
        /// None where no request was sent, which costs no politeness delay.
        transfer: Option<Transfer>,
    },
    /// It does not belong to the crawl any more, and nothing was sent. It is forgotten, so that it may be found again on
    /// a way that leads to it; a seed never is, and counts as disregarded.
    OutOfScope {
        /// Fetch status, where it is a seed.
        status: i32,
        /// The filter that decided, for [`Frontier::why`](crate::Frontier::why).
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
pub struct Refused {
    /// What was found.
    pub uri: Uri,
    /// The filter that decided, and its reason.
    pub reason: String,
}

/// A successful visit with all that it brought.
#[derive(Debug, Clone, Default)]
pub struct Success {
    /// The visit itself, for the record.
    pub visit: Visit,
    /// Until the next visit. None: never again.
    pub wait: Option<Duration>,
    /// Until it is issued to be considered anew, where that is before the visit.
    pub ask_again: Option<Duration>,
    /// The strategy that holds for the URI now; none leaves what its record says.
    pub strategy: Option<Strategy>,
    /// Hash of the scope that let it in; none leaves what its record says.
    pub scope: Option<u64>,
    /// What the page linked to. Scheduled in the same batch.
    pub outlinks: Vec<Candidate>,
    /// Embeds among the outlinks that are known and wait are due now: the page has changed, and its parts with it.
    pub refresh_embeds: bool,
    /// What the scope refused of the page's links.
    pub refused: Vec<Refused>,
    /// What plugins keep for the URI's site from now on. What others finish later stands over it.
    pub kept_for_site: Vec<KeptChange>,
    /// What was sent and received.
    pub transfer: Transfer,
}

/// What the frontier made of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Where the URI stands now.
    pub disposition: Disposition,
    /// What became of each outlink or prerequisite, in the order given.
    pub scheduled: Vec<Scheduled>,
    /// When the queue may be asked again, were it to have anything ready.
    pub queue_ready: Timestamp,
}

/// Where a finished URI stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Done for good.
    Done,
    /// It will be visited again at this time.
    Waiting(Timestamp),
    /// No longer known.
    Forgotten,
    /// Back in its queue, behind its prerequisites.
    Deferred,
    /// Back in its queue, for another attempt.
    Retrying {
        /// Attempts that have failed in a row, this one included.
        attempts: u32,
    },
    /// The attempts or deferrals are used up: it failed, with this status, after this many.
    GivenUp {
        /// The status of the last attempt, or [`PREREQUISITE_FAILED`] or
        /// [`PREREQUISITE_UNSCHEDULABLE`].
        status: i32,
        /// Attempts or deferrals in a row.
        tries: u32,
        /// When it is probed again, under [`Strategy::Revisit`](crate::Strategy::Revisit).
        again: Option<Timestamp>,
    },
}
