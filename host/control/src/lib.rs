//! Operator commands on a job, whether or not a process runs the job.
//!
//! ```text
//! Command ─► JobAdmin::perform ─► Answer …
//!              │ frontier, profile, log of the job; where it runs, its pause, fetches in flight, scope
//! running:     socket.rs takes commands from the job's socket
//! not running: carry_out opens the job for one command
//! ```
//! Commands do not depend on the way they arrived. Each command that changes something gets a line in the job's `job.log`.
//! Nothing here holds the frontier for longer than one bounded part of a command. Nothing holds the frontier while an answer is
//! being sent.

mod action_lines;
mod actions;
mod admin;
mod answer;
mod command;
mod explain;
mod explain_uri;
mod metrics;
mod perform;
mod periodic;
mod plugins;
mod queries;
mod reach;
mod replace;
mod report;
mod restore;
mod run;
mod seed;
mod seeds;
mod set;
mod snapshot;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;
mod sweep;
mod transfers;
mod verify;

pub use admin::{ControlError, ErrorKind};
pub use answer::{
    AddedSeeds, Answer, ChangedSettings, CheckedStore, ImportResult, LastRefusal, ListedUri,
    SourceRead, Status, SweepResult, WhyAnswer,
};
pub use command::{
    Author, Command, CommandRequest, DoneElsewhere, ExportFormat, QueueAction, QueueSort, Which,
};
pub use explain_uri::{
    ExplainRequest, ExplainedSetting, ExplainedStack, ExplainedUri, ExplainedWait, FilterAnswer,
    WaitAnswer, explain,
};
pub use metrics::{Figures, metrics};
pub use opilio_crawl::live::{FetchInFlight, Standing};
pub use opilio_crawl::settings::Effect;
pub use opilio_frontier::{Overdue, QueueState, Statistics};
pub use opilio_job::history::{Change, Changed};
pub use opilio_job::{exposition, figures};
pub use opilio_stacks::{KnownStack, StackedPlugin, chain};
pub use perform::no_uri;
pub use reach::{carry_out, is_reachable, log_file, note};
pub use report::ReportKind;
pub use restore::{KeptCheckpoint, checkpoint_named, checkpoints, go_back, restore};
pub use run::run;
pub use seeds::SeedReport;
pub use set::{FaultFound, SettingChanged, SettingInForce, changing};
pub use snapshot::Checkpoint;
pub use verify::{Discrepancy, DiscrepancyKind, Verified, verify};

use action_lines::ActionLine;
use admin::{JobAdmin, Running};
use opilio_job::job_log::JobLog;
use report::write_all as write_reports;
use snapshot::remove_unfinished;
use socket::Server;
