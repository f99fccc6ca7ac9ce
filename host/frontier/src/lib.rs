//! The frontier of a crawl: it decides which URI is fetched next, and when.
//!
//! A deterministic state machine over a store on disk. It has no clock, no socket and no thread of its own; only the store
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
mod bandwidth;
mod caller_values;
mod candidate;
mod change;
mod check;
mod checkpoint;
mod config;
mod counters;
mod embeds;
mod frontier;
mod groups;
mod in_passing;
mod in_process;
mod keys;
mod memory;
mod operator_commands;
mod outbox;
mod outcome;
mod outcome_effects;
mod probe;
mod queue;
mod queue_order;
mod queue_report;
mod reconsideration;
mod record;
mod rejection;
mod report;
mod settings;
mod shared;
mod signal;
mod site;
mod statistics;
mod store;
mod takeover;
mod tally;
mod visit;
mod window;

#[cfg(test)]
mod format;

use opilio_model::instant;
pub use opilio_model::{
    ContentState, GroupSettings, KeptChange, KeptValue, KeptValues, PastVisit, Politeness,
    PrecedencePolicy, QueueSettings, Quota, SHORT_DIGEST_BYTES, STATUS_WORDS, Strategy,
    is_error_response, is_fetched, labelled_status, status_remedy, status_words,
};

pub use candidate::{
    Candidate, Directive, LinkAttribute, QUEUE_NAME_BYTES_MAX, RECORD_KEY_BYTES_MAX, Refusal,
    ScheduleResult,
};
pub use check::{CheckSummary, Inconsistency, InconsistencyKind};
pub use checkpoint::{CheckpointSummary, FrontierCheckpoint};
pub use config::FrontierConfig;
pub use frontier::Frontier;
pub use in_passing::RequestInPassing;
pub use operator_commands::{ImportedUri, SweepAction, SweepStep, WakeResult};
pub use outbox::OutboxEntry;
pub use outcome::{
    Disposition, FinishResult, Issue, Next, OutOfScopeLink, Outcome, PREREQUISITE_FAILED,
    PREREQUISITE_UNSCHEDULABLE, Success, Ticket, Transfer, UNTIL_CHANGED,
};
pub use queue::RetiredBy;
pub use queue_report::{QueueReport, QueueState};
pub use record::{
    Digests, Fingerprint, LastOutcome, Oscillation, PlannedReconsideration, StrippedDigest,
    UriRecord, UriState, Validators, VisitUpdate, WaitDirection, WarcLocation,
};
pub use rejection::Rejection;
pub use report::{FetchExplanation, QueuedUri, UriFacts};
pub use settings::{CrawlPart, Resolver, WaitLimits, WaitResolver};
pub use shared::SharedFrontier;
pub use signal::{Signal, SignalSource};
pub use site::{GroupFigures, SiteRecord};
pub use statistics::{BytesByContentState, Overdue, Revisits, Statistics};
pub use store::{FORMAT_VERSION, FrontierError};
pub use tally::{OverQuota, Tally, TallyKind};
