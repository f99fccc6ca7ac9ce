//! One crawl: the job, the controller, the way each URI goes, and what is written about it.
//!
//! ```text
//! plan ──► begin ──► run ──► summary
//! profile, seeds,    job, frontier,    frontier.next ─► preconditions ─► fetch ─► digest ─► extract ─► scope
//! components         archive, logs       ─► archive ─► wait ─► frontier.finished
//! ```
//! Plugins decide; this crate asks them, in the order the profile says, and keeps the promises that no plugin can break:
//! politeness, robots.txt, what is recorded, and that every URI comes back to the frontier.

mod archive;
mod around;
mod ask;
mod batch;
mod breaker;
mod chain;
mod change;
mod components;
mod context;
pub mod control;
mod cookies;
mod crawl;
mod crawl_log;
mod credentials;
mod digest;
mod duplicates;
mod extraction;
mod fetchers;
mod found;
mod guards;
mod handover;
mod job;
mod lanes;
mod logins;
mod logs;
mod observers;
mod places;
mod plugin_report;
mod policy;
mod precedence;
mod progress;
mod recorder;
mod records;
mod replace;
pub mod sample;
mod scope;
mod servers;
mod stacks;
mod standing;
mod tables;
pub mod transfer;

pub use context::Halt;
pub use crawl::{Crawl, CrawlError, Order, Plan, ProfileSource, Stop, View, check_plugins, plan};
pub use crawl_log::{LogLine, revisit_annotations};
pub use fetchers::FetcherError;
pub use job::{JOB_VERSION, Job, JobError, is_job};
pub use opilio_archive::Repaired;
pub use opilio_profile::{Faults, Level};
pub use places::Places;
pub use plugin_report::{CallTimes, PluginReport, plugin_table};
pub use progress::{End, Progress, QueueTally, Summary};
pub use tables::TableReport;
