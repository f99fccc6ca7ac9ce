//! The files of a job: their formats, and code that reads and writes them.
//!
//! ```text
//! JOB/job.json, profile.toml, seeds.txt   directory   what the job began with, its lock, copies of it
//! JOB/layers.json, changes/               changes     settings changed since; profile puts all together
//! JOB/history.jsonl, process.json         history, process_record, job_state
//! JOB/handed-over.jsonl                   handover
//! JOB/logs/                               crawl_log, logs, ledger, breakdown
//! ```
//! `transfer` reads and writes the URIs of a job in the formats of other tools. This crate does not depend on a running crawl.

pub mod alerts;
pub mod breakdown;
pub mod census;
pub mod changes;
pub mod crawl_log;
pub mod directory;
mod end;
pub mod events;
pub mod exposition;
pub mod fetched_files;
pub mod figures;
mod folders;
pub mod handover;
pub mod history;
pub mod job_log;
pub mod job_state;
pub mod ledger;
mod log_files;
pub mod logs;
pub mod overrides;
pub mod part_status;
pub mod plugin_report;
pub mod process_record;
pub mod profile;
pub mod progress;
pub mod queue_tally;
pub mod remedy;
pub mod seed_outcome;
pub mod series;
pub mod share;
pub mod symlinks;
pub mod text_file;
pub mod transfer;

pub use end::End;
pub use folders::{JobFolders, component_cache};
