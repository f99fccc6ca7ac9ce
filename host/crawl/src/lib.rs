//! One crawl: the job, the controller, the way each URI goes, and what is written about it.
//!
//! ```text
//! plan ──► begin ──► run ──► summary
//! profile, seeds,    job, frontier,    frontier.next ─► preconditions ─► fetch ─► digest ─► extract ─► scope
//! components         archive, logs       ─► archive ─► wait ─► frontier.finished
//! ```
//! Plugins decide; this crate asks them, in the order the profile says, and keeps the promises that no plugin can break:
//! politeness, robots.txt, what is recorded, and that every URI comes back to the frontier.

mod actions;
mod alerts;
mod archive;
mod breakdown;
mod census;
mod context;
pub mod control;
mod cookies;
mod course;
mod crawl;
mod crawl_log;
mod credentials;
mod duplicates;
mod explain;
mod fetchers;
mod handover;
mod history;
mod job;
mod lanes;
mod ledger;
mod logins;
pub mod logs;
mod metrics;
mod observers;
mod places;
mod plugin_report;
mod progress;
mod progress_log;
mod pulse;
mod reconcile;
mod records;
mod remedy;
mod replace;
pub mod sample;
mod series;
mod servers;
mod settings;
mod share;
mod tables;
pub mod transfer;
mod visit;

pub use alerts::{
    Acknowledged, Alert, AlertKind, Severity, free_space, give_up, http_client, kept_alerts,
};
pub use breakdown::{Breakdown, HostAmount, StatusAmount, TypeAmount};
pub use census::{Census, PageCensus, QueueCensus, QueueStates};
pub use context::Halt;
pub use course::{Course, EndWord, Ended};
pub use crawl::{
    Crawl, CrawlError, LoadedPlugins, Order, Plan, ProfileSource, Stop, View, builtin_plugins,
    check_plugins, plan, settings_schemas,
};
pub use crawl_log::{ExtraInfo, LogLine};
pub use explain::{Asked, explain};
pub use fetchers::FetcherError;
pub use job::{
    Hold, JOB_VERSION, Job, JobError, Made, copy_job, hold, holder, is_held, is_job,
    is_made_halfway, made, name_of,
};
pub use ledger::{Amount, HostCounts, Totals};
pub use metrics::{Figures, metrics};
pub use opilio_archive::Repaired;
pub use opilio_profile::{Faults, Level};
pub use places::{Places, component_cache, files_stay_inside, stays_inside};
pub use plugin_report::{CallTimes, PluginReport, plugin_table};
pub use progress::{End, Progress, QueueTally, Summary};
pub use remedy::remedy;
pub use series::Sample;
pub use share::{Share, ShareTaken};
pub use tables::TableReport;
