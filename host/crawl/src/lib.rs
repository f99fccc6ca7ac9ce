//! A running crawl: dispatcher, workers, plugin lanes, servers, archive, and the operator's commands.
//!
//! ```text
//! plan ──► begin ──► run ──► summary
//! profile, seeds,    job, frontier,    frontier.next ─► visit (opilio_visit decides, `visit` does) ─► frontier.finished
//! components         archive, logs
//! ```
//! Plugins decide crawl policies. This crate carries out their decisions. It keeps the promises that no plugin can break:
//! politeness, robots.txt, complete records, and the return of every URI to the frontier.

mod alerts;
mod archive;
mod census;
mod context;
pub mod control;
mod cookies;
mod crawl;
mod credentials;
mod duplicates;
mod error;
mod explain;
mod exposition;
mod fetchers;
mod handover;
mod job_log;
mod lanes;
mod live;
mod load;
mod logins;
mod metrics;
mod observers;
mod plugin_report;
mod progress;
mod progress_log;
mod pulse;
mod reconcile;
mod records;
mod replace;
pub mod sample;
mod series;
mod servers;
mod settings;
mod share;
mod stop;
mod tables;
mod visit;
mod workshop;

pub use alerts::{
    Acknowledged, Alert, AlertKind, Severity, free_space, give_up, http_client, kept_alerts,
};
pub use census::{Census, PageCensus, QueueCensus, QueueStates};
pub use crawl::{Crawl, Order, Plan, ProfileSource, View, plan};
pub use error::{CrawlError, Halt};
pub use explain::{Asked, explain};
pub use fetchers::FetcherError;
pub use load::{LoadedPlugins, check_plugins, settings_schemas};
pub use metrics::{Figures, metrics};
pub use opilio_archive::Repaired;
pub use opilio_job::breakdown::{Breakdown, HostAmount, StatusAmount, TypeAmount};
pub use opilio_job::course::{Course, EndWord, Ended};
pub use opilio_job::crawl_log::{ExtraInfo, LogLine};
pub use opilio_job::directory::{
    Hold, JOB_VERSION, Job, JobError, Made, copy_job, hold, holder, is_held, is_job,
    is_made_halfway, made, name_of,
};
pub use opilio_job::inside::{files_stay_inside, stays_inside};
pub use opilio_job::ledger::{Amount, HostCounts, Totals};
pub use opilio_job::remedy::remedy;
pub use opilio_job::{End, logs, transfer};
pub use opilio_job::{JobFolders, component_cache};
pub use opilio_profile::{Faults, Level};
pub use opilio_stacks::builtin_plugins;
pub use plugin_report::{CallTimes, PluginReport, plugin_table};
pub use progress::{Progress, QueueTally, Summary};
pub use series::Sample;
pub use share::{Share, ShareTaken};
pub use stop::Stop;
pub use tables::TableReport;
