//! Answers of a job. A command receives any number of them. The last one is [`CommandResponse::End`] or
//! [`CommandResponse::Refused`].

mod settings;

use std::path::PathBuf;

use jiff::Timestamp;
use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use settings::{
    ChangedSettings, FaultFound, ListedOverride, OverrideSetting, SettingChanged, SettingInForce,
    TouchedUri, TouchedUris, TouchedValue,
};

use super::{ControlError, ErrorKind};
use crate::explain_uri::ExplainedUri;
use opilio_crawl::JobState;
use opilio_crawl::live::FetchInFlight;
use opilio_crawl::render_board::BrowsersStatus;
use opilio_crawl::tables::TableReport;
use opilio_job::alerts::Alert;
use opilio_job::breakdown::Breakdown;
use opilio_job::census::{Census, HostPages};
use opilio_job::history::Change;
use opilio_job::ledger::{HostCounts, VisitCounts};
use opilio_job::part_status::PartStatus;
use opilio_job::plugin_report::PluginReport;
use opilio_job::process_record::ProcessEnd;
use opilio_job::series::Sample;
use opilio_job::share::{Share, ShareTaken};
use opilio_stacks::KnownStack;

/// One line of the control socket, from the job to the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum CommandResponse {
    /// State of the job.
    Status(Box<Status>),
    /// Statistics of the crawl.
    Statistics {
        /// Statistics over all processes of the job.
        statistics: Box<Statistics>,
    },
    /// Reports on each plugin's calls, in the order of the stages.
    Plugins {
        /// One report for each plugin.
        plugins: Vec<PluginReport>,
    },
    /// Tables of plugins, sorted by name.
    Tables {
        /// One report for each table.
        tables: Vec<TableReport>,
    },
    /// Time series of the crawl.
    Series {
        /// Samples, the oldest first.
        samples: Vec<Sample>,
    },
    /// Amounts that the job has fetched.
    Breakdown(Box<Breakdown>),
    /// Host with its counts.
    Host(Box<HostReport>),
    /// Sums over all hosts of a selection.
    HostTotals(HostTotals),
    /// Single figures of a report.
    Facts {
        /// Figures by name.
        facts: Value,
    },
    /// Row of a report.
    Row {
        /// Values by the names of their columns.
        row: Value,
    },
    /// Alerts for the operator.
    Alerts {
        /// Active alerts, most severe first; then cleared alerts, latest first.
        alerts: Vec<Alert>,
    },
    /// Report of an observer.
    Report {
        /// Name of the observer in the profile.
        observer: String,
        /// Name of the report.
        file: String,
        /// Content of the report.
        content: String,
    },
    /// Result of an action, in one sentence.
    Done {
        /// Sentence without a full stop.
        result: String,
    },
    /// Queue, with the names of `docs/TRANSFER.md`.
    Queue {
        /// The queue.
        queue: Value,
    },
    /// URI, with the names of `docs/TRANSFER.md`.
    Uri(ListedUri),
    /// Cursor: the list continues after this answer.
    More {
        /// Cursor for the next command; empty if the list cannot be continued.
        after: String,
    },
    /// Progress of a long command.
    Progress {
        /// Number of URIs or lines examined so far.
        examined: u64,
        /// Number of them that matched.
        meant: u64,
    },
    /// Result of a sweep over URIs.
    Swept(SweepResult),
    /// Explanation of a URI's state: the reason why it was fetched or not.
    Why(Box<WhyAnswer>),
    /// Piece of an export.
    Text {
        /// Whole lines.
        text: String,
    },
    /// File that was read for an import.
    Source(SourceRead),
    /// Result of an import.
    Imported(ImportResult),
    /// Error found in the store.
    Problem {
        /// Description of the error, one sentence.
        problem: String,
    },
    /// Result of a check of the store.
    Checked(CheckedStore),
    /// Settings of the job, sorted by name.
    Settings {
        /// One entry for each setting.
        settings: Vec<SettingInForce>,
    },
    /// Errors in a change. Nothing was changed. [`CommandResponse::Refused`] follows.
    Faults {
        /// All errors found.
        faults: Vec<FaultFound>,
    },
    /// Result of a change of settings, or of the check of one.
    Set(Box<ChangedSettings>),
    /// Override of the job. Overrides come in the order in which they apply.
    Override(Box<ListedOverride>),
    /// Entry of the job's history.
    Change(Box<Change>),
    /// Result of adding seeds.
    SeedsAdded(AddedSeeds),
    /// Seed with its outcome.
    Seed(Box<SeedReport>),
    /// Explanation of a URI: its settings and the answers of filters.
    Explained(Box<ExplainedUri>),
    /// Checkpoint that was made.
    Checkpoint(Checkpoint),
    /// End of the answers: the command was carried out.
    End,
    /// Refusal: the command was not carried out, or not completed.
    Refused {
        /// Cause of the refusal.
        kind: ErrorKind,
        /// Message, one sentence.
        message: String,
    },
}

/// Sends an answer to the client. Returns false if the client has disconnected.
pub(super) type Respond<'s> = &'s mut dyn FnMut(CommandResponse) -> bool;

/// Answers that an action is done. Returns its result.
pub(super) fn done(result: &str, respond: Respond<'_>) -> String {
    respond(CommandResponse::Done {
        result: result.to_owned(),
    });
    result.to_owned()
}

/// Fails if the client has disconnected.
pub(super) fn listened(is_heard: bool) -> Result<(), ControlError> {
    match is_heard {
        true => Ok(()),
        false => Err(ControlError::new(ErrorKind::State, "client disconnected")),
    }
}

/// URI in a queue.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = QueuedUri)]
pub struct ListedUri {
    /// Record of the URI.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub uri: Value,
    /// `true` if the URI is ready to be issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_ready: Option<bool>,
    /// `true` if the URI is being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_process: Option<bool>,
}

/// Result of a sweep over URIs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepResult {
    /// Action: `count`, `delete` or `forget`.
    pub action: String,
    /// Number of URIs examined.
    pub examined: u64,
    /// Number of URIs that matched, without those in process.
    pub meant: u64,
    /// Number of URIs that matched and are in process. They stay.
    pub in_process: u64,
}

/// File that was read for an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceRead {
    /// The file.
    pub file: PathBuf,
    /// Format that the file was read as.
    pub format: String,
    /// Number of lines read.
    pub lines: u64,
    /// Number of invalid lines.
    pub bad_lines: u64,
    /// First invalid lines and damages, one sentence each.
    pub problems: Vec<String>,
}

/// Result of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportResult {
    /// Number of URIs that were queued.
    pub scheduled: u64,
    /// Number of URIs that were recorded as done.
    pub included: u64,
    /// Number of URIs that were known before.
    pub known: u64,
    /// Number of prerequisites, which were left out.
    pub prerequisites: u64,
    /// Number of URIs that were left out.
    pub left_out: u64,
    /// Number of URIs that the frontier cannot store.
    pub refused: u64,
    /// First of these refusals, one sentence each.
    pub refusals: Vec<String>,
}

/// Result of adding seeds.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AddedSeeds {
    /// Number of the change in the job's history; not set if nothing was added.
    pub number: Option<u64>,
    /// Number of new seeds.
    pub added: u64,
    /// Number of new SURT prefixes in the scope.
    pub prefixes: u64,
    /// Number of seeds that were known already.
    pub known: u64,
    /// Warnings about the accepted change.
    pub notices: Vec<FaultFound>,
}

/// Seed with its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SeedReport {
    /// The URI.
    pub uri: String,
    /// Origin: `job` if the job was created with the seed, `added` if it was added later.
    pub origin: String,
    /// `true` if a version of it is archived.
    pub captured: bool,
    /// Time of its last fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Timestamp>,
    /// Fetch status of its last visit; 0 before the first.
    pub status: i32,
    /// Reason why its last visit did not fetch it, or the target of its redirects: the status in words, the error, and the
    /// operator's remedy. Not set if the seed was fetched or not visited yet. After the end of a process, errors are known for
    /// 1,000 seeds of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `true` if its last visit succeeded, possibly with a redirect. An error response is a failure.
    pub crawled: bool,
    /// Last URI of the chain of redirects at the last visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// Fetch status of the redirect's target; not set if it was not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_status: Option<i32>,
    /// Time of its first capture. Reports do not have it for seeds with more visits than `revisit.history`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_captured: Option<Timestamp>,
    /// Time of the first capture of the redirect's target, with the same condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_first_captured: Option<Timestamp>,
    /// Number of responses with status 2xx and 3xx to URIs found from the seed. While the job runs, the count lags some seconds
    /// behind.
    pub pages: u64,
    /// Number of successful visits.
    pub visits: u64,
    /// Time at which it was last found new or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// Time of its next visit, if it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// Host with its counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HostReport {
    /// Host name; `dns:` and `whois:` for look-ups.
    pub host: String,
    /// Responses to requests for documents, without error responses.
    pub documents: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Error responses (status 4xx and 5xx) and failed visits.
    pub errors: u64,
    /// All counts.
    #[serde(flatten)]
    pub counts: HostCounts,
    /// Counts of the host's pages; not set for look-ups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<HostPages>,
}

/// Sums over all hosts that match a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HostTotals {
    /// Number of hosts.
    pub hosts: u64,
    /// Documents.
    pub documents: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Errors.
    pub errors: u64,
}

/// Checkpoint as described in its `checkpoint.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Checkpoint {
    /// Version of its layout.
    pub version: u32,
    /// Directory in which it was made.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// Directory of the job.
    #[schema(value_type = String)]
    pub job: PathBuf,
    /// Time of the saved state.
    pub made: Timestamp,
    /// `true` if the crawl made the checkpoint by itself. It removes such checkpoints when newer ones exist.
    #[serde(default)]
    pub is_periodic: bool,
    /// Number of known URIs.
    pub uris: u64,
    /// Bytes of the frontier before compression.
    pub bytes: u64,
    /// WARC files. All captures that the frontier knows are within these sizes.
    pub warcs: Vec<WarcFile>,
}

/// WARC file at the time of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WarcFile {
    /// Name; ends in `.open` if the file was being written.
    pub file: String,
    /// Size in bytes at that time.
    pub bytes: u64,
}

/// Status of a job.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Status {
    /// Directory of the job.
    #[schema(value_type = String)]
    pub job: PathBuf,
    /// State of the job.
    pub state: JobState,
    /// End of the last process, if no process runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<ProcessEnd>,
    /// Id of the process that runs the job.
    pub pid: Option<u32>,
    /// Time since this process began to crawl, in seconds.
    pub elapsed_s: Option<f64>,
    /// Number of visits finished by this process.
    pub uris: u64,
    /// Bytes of content received by this process.
    pub bytes: u64,
    /// Statistics over all processes of the job.
    pub statistics: Statistics,
    /// Finished visits by outcome, over all processes of the job; not set if the job was not opened to count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<VisitCounts>,
    /// URIs in process, longest first; at most 100.
    pub in_flight: Vec<FetchInFlight>,
    /// Current pages of browsers, and counts; not set if no page was rendered so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browsers: Option<BrowsersStatus>,
    /// Part of a shared crawl that the job has; not set if the crawl is on one machine, or no process runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartStatus>,
    /// Active alerts, most severe first.
    #[serde(default)]
    pub alerts: Vec<Alert>,
    /// Latest counts of queues by state, and freshness of pages.
    #[serde(default)]
    pub census: Census,
    /// Share of the bandwidth and connections of this machine.
    #[serde(default)]
    pub share: Share,
    /// Used part of the share.
    #[serde(default)]
    pub taken: ShareTaken,
}

/// Explanation why a URI was or was not fetched.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WhyAnswer {
    /// The URI, normalised.
    pub asked: String,
    /// Part of the crawl that has the URI, if several nodes share the crawl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Canonical form of the URI.
    pub canonical: String,
    /// `known`, `same-as`, `refused` or `unknown`.
    pub known: String,
    /// The explanation as a sentence.
    pub sentence: String,
    /// Record of the URI; for `same-as`, the record of the URI with the same canonical form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Value>,
    /// Queue of that record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Value>,
    /// `true` if its record allows a fetch now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_ready: Option<bool>,
    /// `true` if it is being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_process: Option<bool>,
    /// Filter that refused the URI, the page on which the URI was found, and the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Value>,
    /// Reason why the last visit was not kept, if a filter or a limit decided so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<LastRefusal>,
    /// Extractors of the record's `extractor` that are called for its media type; not set if the job has no note of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<KnownStack>,
    /// Digest strippers of the record's `stripper`; not set if the job has no note of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripped_by: Option<KnownStack>,
}

/// Reason why the last visit of a URI was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LastRefusal {
    /// Source and reason of the decision, as in `crawl.log`.
    pub reason: String,
    /// Name of the deciding filter in the profile; not set if no filter decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Current stages of that filter, among the stages that can refuse a visit: pre-fetch, mid-fetch, post-fetch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
}

/// Result of a check of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckedStore {
    /// Number of URIs checked.
    pub uris: u64,
    /// Of these, URIs in a queue.
    pub queued: u64,
    /// Number of queues checked.
    pub queues: u64,
    /// Number of problems found.
    pub problems: u64,
    /// Number of problems repaired.
    pub repaired: u64,
}
