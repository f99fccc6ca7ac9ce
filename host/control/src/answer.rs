//! Answers of a job. A command receives any number of them. The last one is [`Answer::End`] or [`Answer::Refused`].

use std::path::PathBuf;

use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, Checkpoint, Fault, FaultFound, SeedReport, SettingChanged, SettingInForce};
use crate::explain_uri::ExplainedUri;
use opilio_crawl::live::{FetchInFlight, Standing};
use opilio_crawl::tables::TableReport;
use opilio_job::alerts::Alert;
use opilio_job::breakdown::Breakdown;
use opilio_job::census::Census;
use opilio_job::plugin_report::PluginReport;
use opilio_job::series::Sample;
use opilio_job::share::{Share, ShareTaken};
use opilio_stacks::KnownStack;

/// One line of the control socket, from the job to the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
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
        /// Alerts that hold, the worst first; then alerts that are over, the latest first.
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
    Uri {
        /// The URI.
        uri: Value,
        /// Whether the URI is among the ready URIs of its queue; none if that was not examined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_ready: Option<bool>,
        /// Whether the URI is in process; none if that was not examined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_process: Option<bool>,
    },
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
    Swept {
        /// Action: `count`, `delete` or `forget`.
        action: String,
        /// Number of URIs examined.
        examined: u64,
        /// Number of URIs that matched, without those in process.
        meant: u64,
        /// Number of URIs that matched and are in process. They stay.
        in_process: u64,
    },
    /// Explanation of a URI's state: the reason why it was fetched or not.
    Why(Box<WhyAnswer>),
    /// Piece of an export.
    Text {
        /// Whole lines.
        text: String,
    },
    /// File that was read for an import.
    Source {
        /// The file.
        file: PathBuf,
        /// Format that the file was read as.
        format: String,
        /// Number of lines read.
        lines: u64,
        /// Number of invalid lines.
        bad_lines: u64,
        /// First invalid lines and damages, one sentence each.
        problems: Vec<String>,
    },
    /// Result of an import.
    Imported {
        /// Number of URIs that were queued.
        scheduled: u64,
        /// Number of URIs that were recorded as done.
        included: u64,
        /// Number of URIs that were known before.
        known: u64,
        /// Number of prerequisites, which were left out.
        prerequisites: u64,
        /// Number of URIs that were left out.
        left_out: u64,
        /// Number of URIs that the frontier cannot hold.
        refused: u64,
        /// First of these refusals, one sentence each.
        refusals: Vec<String>,
    },
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
    /// Errors in a change. Nothing was changed. [`Answer::Refused`] follows.
    Faults {
        /// All errors found.
        faults: Vec<FaultFound>,
    },
    /// Result of a change of settings, or of the check of one.
    Set {
        /// Number of the change in the job's history; none if the change was only checked.
        number: Option<u64>,
        /// Settings whose value is new.
        changed: Vec<SettingChanged>,
        /// Notices on accepted settings.
        notices: Vec<FaultFound>,
    },
    /// Entry of the job's history.
    Change(Box<Change>),
    /// Result of adding seeds.
    SeedsAdded {
        /// Number of the change in the job's history; none if nothing was new.
        number: Option<u64>,
        /// Number of new seeds.
        added: u64,
        /// Number of SURT prefixes that joined the scope and were not written before.
        prefixes: u64,
        /// Number of seeds that were known.
        known: u64,
        /// Notices on accepted seeds.
        #[serde(default)]
        notices: Vec<FaultFound>,
    },
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
        fault: Fault,
        /// Message, one sentence.
        message: String,
    },
}

/// What a job is doing.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Status {
    /// The job's directory.
    #[schema(value_type = String)]
    pub job: PathBuf,
    /// In a word.
    pub state: Standing,
    /// The process that runs it.
    pub pid: Option<u32>,
    /// Since this process began to crawl, in seconds.
    pub elapsed_s: Option<f64>,
    /// URIs finished by this process.
    pub uris: u64,
    /// Content received by this process, in bytes.
    pub bytes: u64,
    /// Over all processes of the job.
    pub statistics: Statistics,
    /// What is in process, the oldest first; at most 100.
    pub in_flight: Vec<FetchInFlight>,
    /// What the operator should know: alerts that hold, the worst first.
    #[serde(default)]
    pub alerts: Vec<Alert>,
    /// Queues by state, and how fresh pages are, as last counted.
    #[serde(default)]
    pub census: Census,
    /// What it may take of what all crawls of the machine have together.
    #[serde(default)]
    pub share: Share,
    /// What it has taken.
    #[serde(default)]
    pub taken: ShareTaken,
}

/// Why a URI was, or was not, fetched.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WhyAnswer {
    /// The URI as normalised.
    pub asked: String,
    /// Its canonical form.
    pub canonical: String,
    /// `known`, `same-as`, `refused` or `unknown`.
    pub known: String,
    /// For people.
    pub sentence: String,
    /// The record that decides; under `same-as` that of the URI which stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Value>,
    /// The queue of that record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Value>,
    /// Its record says nothing against fetching it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_ready: Option<bool>,
    /// It is being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_process: Option<bool>,
    /// What refused it, on which page, when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Value>,
    /// Why its last turn ended without being kept, where a filter or a limit said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<LastRefusal>,
    /// The extractors of the record's `extractor`; none where the job has no note of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<KnownStack>,
    /// The digest strippers of the record's `stripper`; none where the job has no note of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripped_by: Option<KnownStack>,
}

/// Why a URI's last turn ended without being kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LastRefusal {
    /// What said so and why, as `crawl.log` has it.
    pub reason: String,
    /// The filter that said so, by its name in the profile; none where it was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Where that filter stands by now, of the stages that refuse: before the fetch, at the headers, at the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
}

/// What a look through the store came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckedStore {
    /// URIs looked at.
    pub uris: u64,
    /// Of these, URIs that stand in a queue.
    pub queued: u64,
    /// Queues looked at.
    pub queues: u64,
    /// What was wrong.
    pub problems: u64,
    /// What was mended of that.
    pub repaired: u64,
}
