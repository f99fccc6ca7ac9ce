//! What a job answers. A command is answered by any number of these; the last one is [`Answer::End`] or
//! [`Answer::Refused`].

use std::path::PathBuf;

use jiff::Timestamp;
use opilio_frontier::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, Checkpoint, Fault, FaultFound, SeedReport, SettingChanged, SettingInForce};
use crate::alerts::Alert;
use crate::census::Census;
use crate::explain::ExplainedUri;
use crate::plugin_report::PluginReport;
use crate::series::Sample;
use crate::share::{Share, ShareTaken};
use crate::tables::TableReport;
use opilio_job::breakdown::Breakdown;
use opilio_stacks::KnownStack;
use opilio_visit::Step;

/// One line of the control socket's other direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// What the job is doing.
    Status(Box<Status>),
    /// The crawl in numbers.
    Statistics {
        /// Over all processes of the job.
        statistics: Box<Statistics>,
    },
    /// What was seen of each plugin, in the order of a URI's way.
    Plugins {
        /// One entry for each.
        plugins: Vec<PluginReport>,
    },
    /// The lists that plugins look things up in, in the order of their names.
    Tables {
        /// One entry for each.
        tables: Vec<TableReport>,
    },
    /// The course of the crawl.
    Series {
        /// The oldest first.
        samples: Vec<Sample>,
    },
    /// What the job has brought in.
    Breakdown(Box<Breakdown>),
    /// Single figures of a report.
    Facts {
        /// By their names.
        facts: Value,
    },
    /// A row of a report.
    Row {
        /// By the names of its columns.
        row: Value,
    },
    /// What the operator should know.
    Alerts {
        /// Those that hold, the worst first, then those that are over, the latest first.
        alerts: Vec<Alert>,
    },
    /// A report of an observer.
    Report {
        /// Its name in the profile.
        observer: String,
        /// The report's name.
        file: String,
        /// What it says.
        content: String,
    },
    /// What was done, in one sentence.
    Done {
        /// The sentence, without a full stop.
        result: String,
    },
    /// A queue, with the names of `docs/TRANSFER.md`.
    Queue {
        /// The queue.
        queue: Value,
    },
    /// A URI, with the names of `docs/TRANSFER.md`.
    Uri {
        /// The URI.
        uri: Value,
        /// It is among those of its queue that are ready; none where that was not looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_ready: Option<bool>,
        /// It is being fetched; none where that was not looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_process: Option<bool>,
    },
    /// There is more behind this.
    More {
        /// To be given with the next command; empty where it cannot be gone on with.
        after: String,
    },
    /// How far a long command is.
    Progress {
        /// URIs or lines looked at.
        examined: u64,
        /// Those that were meant.
        meant: u64,
    },
    /// What a sweep over URIs came to.
    Swept {
        /// `count`, `delete` or `forget`.
        action: String,
        /// URIs looked at.
        examined: u64,
        /// URIs that were meant, those in process left out.
        meant: u64,
        /// URIs that were meant and are in process: they stay.
        in_process: u64,
    },
    /// Why a URI was, or was not, fetched.
    Why(Box<WhyAnswer>),
    /// A piece of an export.
    Text {
        /// Whole lines.
        text: String,
    },
    /// A file that was read for an import.
    Source {
        /// The file.
        file: PathBuf,
        /// What it was read as.
        format: String,
        /// Lines read.
        lines: u64,
        /// Lines that could not be understood.
        bad_lines: u64,
        /// The first of these, and damages, a sentence each.
        problems: Vec<String>,
    },
    /// What became of the URIs of an import.
    Imported {
        /// Stand in their queues now.
        scheduled: u64,
        /// Known as done now.
        included: u64,
        /// Were known before.
        known: u64,
        /// Prerequisites, left out.
        prerequisites: u64,
        /// Left out.
        left_out: u64,
        /// Cannot be held.
        refused: u64,
        /// The first of these, a sentence each.
        refusals: Vec<String>,
    },
    /// What was found wrong in the store.
    Problem {
        /// A sentence.
        problem: String,
    },
    /// The store was looked through.
    Checked(CheckedStore),
    /// The settings of the job, in the order of their names.
    Settings {
        /// One entry for each.
        settings: Vec<SettingInForce>,
    },
    /// What is wrong with a change; nothing of it was done. [`Answer::Refused`] follows.
    Faults {
        /// All of it.
        faults: Vec<FaultFound>,
    },
    /// Settings were changed, or would be.
    Set {
        /// The change's number in the job's history; none where it was only checked.
        number: Option<u64>,
        /// What has another value now.
        changed: Vec<SettingChanged>,
        /// What is accepted, and said nevertheless.
        notices: Vec<FaultFound>,
    },
    /// An entry of the job's history.
    Change(Box<Change>),
    /// Seeds were added.
    SeedsAdded {
        /// The change's number in the job's history; none where there was nothing new.
        number: Option<u64>,
        /// Seeds that were none before.
        added: u64,
        /// SURT prefixes that are in the scope now and were not written before.
        prefixes: u64,
        /// Seeds that were known.
        known: u64,
        /// What is accepted, and said nevertheless.
        #[serde(default)]
        notices: Vec<FaultFound>,
    },
    /// A seed, and what became of it.
    Seed(Box<SeedReport>),
    /// What the job makes of a URI.
    Explained(Box<ExplainedUri>),
    /// A copy of the job's state was kept.
    Checkpoint(Checkpoint),
    /// Everything has been said.
    End,
    /// The command was not carried out, or not to its end.
    Refused {
        /// Whose fault it is.
        fault: Fault,
        /// A sentence.
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

/// What a job is doing, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It crawls.
    Running,
    /// It begins nothing new, and waits for what is in flight.
    Pausing,
    /// Nothing is in flight, and nothing begins.
    Paused,
    /// It was asked to stop, and waits for what is in flight.
    Ending,
    /// No process runs it.
    Idle,
}

/// A URI on its way.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FetchInFlight {
    /// The URI.
    pub uri: String,
    /// Since when.
    pub since: Timestamp,
    /// The number of the worker that is at it, as in `crawl.log`.
    #[serde(default)]
    pub worker: usize,
    /// What is being done about it.
    #[serde(default)]
    pub step: Step,
    /// Since when that is.
    #[serde(default)]
    pub step_since: Timestamp,
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

impl Standing {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Pausing => "pausing",
            Standing::Paused => "paused",
            Standing::Ending => "ending",
            Standing::Idle => "idle",
        }
    }
}
