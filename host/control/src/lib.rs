//! Operator commands on a job, whether or not a process runs the job.
//!
//! ```text
//! Command ─► JobAdmin::perform ─► CommandResponse …
//!              │ frontier, profile, log of the job; where it runs, its pause, fetches in flight, scope
//! running:     socket.rs takes commands from the job's socket
//! not running: carry_out opens the job for one command
//! ```
//! Both paths carry out commands in the same way. Each command that changes something gets a line in the job's `job.log`.
//! A command locks the frontier for one bounded part at a time, and never while an answer is being sent.

mod action_lines;
mod actions;
mod admin;
mod answer;
mod checkpoint;
mod cluster_file;
mod command;
mod compare;
mod delivery;
mod error;
mod explain;
mod explain_uri;
mod handover;
mod hosts;
mod job_commands;
mod metrics;
mod overrides;
mod part_snapshots;
mod parts;
mod perform;
mod periodic;
mod plugins;
mod queries;
mod replace;
mod report;
mod restore;
mod run;
mod secret_file;
mod seed;
mod seeds;
mod settings;
mod settings_in_force;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;
mod submitted_change;
mod sweep;
mod takeover;
mod touched;
mod transfers;
mod user_name;
mod verify;

pub use answer::{
    AddedSeeds, ChangedSettings, CheckedStore, Checkpoint, CommandResponse, FaultFound, HostReport,
    HostTotals, ImportResult, LastRefusal, ListedOverride, ListedUri, OverrideSetting, SeedReport,
    SettingChanged, SettingInForce, SourceRead, Status, SweepResult, TouchedUri, TouchedUris,
    TouchedValue, WhyAnswer,
};
pub use cluster_file::{ClusterFile, ClusterTlsFiles};
pub use command::{
    Author, Command, CommandRequest, DoneElsewhere, ExportFormat, HostSelection, HostSort,
    OverrideChange, QueueAction, QueueSort, ReportKind, UriSelection, no_uri,
};
pub use compare::{
    ComparedCrawl, ComparedHost, ComparedStatus, ComparedType, ComparedVisit, CrawlComparison,
    DifferentUri, UriDifference, compare,
};
pub use delivery::{carry_out, is_reachable, log_file, note};
pub use error::{ControlError, ErrorKind};
pub use explain_uri::{
    ExplainRequest, ExplainedSetting, ExplainedStack, ExplainedUri, ExplainedWait, FilterAnswer,
    WaitAnswer, explain,
};
pub use handover::{HandoverAtRest, HandoverList, handover_list};
pub use job_commands::stop_other_nodes;
pub use metrics::{Figures, metrics};
pub use opilio_crawl::JobState;
pub use opilio_crawl::live::FetchInFlight;
pub use opilio_crawl::render_board::{BrowsersStatus, PageActivity, PageInBrowser};
pub use opilio_crawl::render_figures::RenderFigures;
pub use opilio_crawl::settings::Effect;
pub use opilio_frontier::{
    Overdue, QueueState, STATUS_WORDS, Statistics, is_fetched, labelled_status, status_words,
};
pub use opilio_job::history::{Change, Changed, OverrideAction};
pub use opilio_job::transfer::StateSelector;
pub use opilio_job::{exposition, figures};
pub use opilio_stacks::{KnownStack, StackedPlugin, chain};
pub use overrides::EditedOverrideText;
pub use part_snapshots::SnapshotError;
pub use parts::{
    FailedTakeover, ListedPart, ListedSnapshot, PartState, PartTakeover, is_worked_on,
    listed_parts, total_figures,
};
pub use restore::{KeptCheckpoint, checkpoint_named, checkpoints, reset_to_checkpoint, restore};
pub use run::run;
pub use secret_file::read_secret_file;
pub use settings::changing;
pub use takeover::{PartToTake, take_over, take_over_fetched};
pub use user_name::user_name;
pub use verify::{Discrepancy, DiscrepancyKind, VerificationTotals, verify};

use admin::{JobAdmin, Running};
use checkpoint::remove_unfinished;
use job_commands::JobCommands;
use opilio_job::job_log::JobLog;
use report::write_all as write_reports;
use socket::Server;
