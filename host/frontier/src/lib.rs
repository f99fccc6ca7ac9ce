//! The frontier of a crawl: it decides which URI is fetched next, and when.
//!
//! It is a deterministic state machine over a store on disk. It has no clock, no socket and no thread of its own; only the store
//! compacts itself in the background, which changes no answer. Its caller passes the time, fetches the URIs that it issues, and
//! reports the outcomes. So a simulator can run a year in minutes with the frontier of the real crawl, and a test can replay any
//! history exactly.
//!
//! - [`Frontier::schedule`] puts unknown URIs into their queues.
//! - [`Frontier::next`] returns the URI to fetch now, or the time at which to ask again.
//! - [`Frontier::finished`] records the outcome, and schedules outlinks in the same batch.
//!
//! Invariants:
//! - A URI that was issued is finished or issued again; it never leaves its queue in between.
//! - A queue has one URI in process, and waits after it; no restart shortens the wait.
//! - Finding a known URI again never moves its due time.
//! - Statistics are written in the batch of the state that they count.

mod admission;
mod caller_values;
mod candidate;
mod change;
mod check;
mod checkpoint;
mod config;
mod embeds;
mod frontier;
mod groups;
mod hand;
mod kept;
mod keys;
mod line;
mod memory;
mod outcome;
mod politeness;
mod probe;
mod queue;
mod reconsideration;
mod record;
mod rejection;
mod report;
mod settings;
mod settle;
mod shared;
mod signal;
mod site;
mod statistics;
mod store;
mod tally;
mod visit;
mod window;

#[cfg(test)]
mod format;

use opilio_model::instant;
pub use opilio_model::{
    ContentState, GroupSettings, KeptChange, KeptValue, KeptValues, PastVisit, Politeness,
    PrecedencePolicy, QueueSettings, Quota, SHORT_DIGEST_BYTES, Strategy,
};

pub use candidate::{
    Candidate, Directive, QUEUE_NAME_BYTES_MAX, RECORD_KEY_BYTES_MAX, Refusal, Scheduled,
};
pub use check::{CheckSummary, Fault, Finding};
pub use checkpoint::{Checkpoint, CheckpointSummary};
pub use config::Config;
pub use frontier::Frontier;
pub use hand::{Known, SweepAction, Swept, Woken};
pub use kept::Fingerprint;
pub use outcome::{
    Disposition, Finished, Issue, Next, Outcome, PREREQUISITE_FAILED, PREREQUISITE_UNSCHEDULABLE,
    Refused, Success, Ticket, Transfer, UNTIL_CHANGED,
};
pub use queue::{QueueReport, QueueState, RetiredBy};
pub use reconsideration::PlannedReconsideration;
pub use record::{
    Digests, LinkAttribute, Oscillation, Place, Standing, StrippedDigest, Swing, UriRecord,
    Validators, Visit, WarcLocation,
};
pub use rejection::Rejection;
pub use report::{QueuedUri, Reason, Why};
pub use settings::{Resolver, WaitLimits, WaitResolver};
pub use shared::SharedFrontier;
pub use signal::{Signal, SignalSource};
pub use site::{GroupFigures, SiteRecord};
pub use statistics::{BytesByNovelty, Overdue, Revisits, Statistics};
pub use store::{Error, FORMAT_VERSION};
pub use tally::{OverQuota, Tally, TallyKind};
