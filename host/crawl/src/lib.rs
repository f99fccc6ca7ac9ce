//! A running crawl: dispatcher, workers, plugin lanes, servers, archive. It knows no commands of operators.
//!
//! ```text
//! plan ──► begin ──► run ──► summary
//! profile, seeds,    job, frontier,    frontier.next ─► visit (opilio_visit decides, `visit` does) ─► frontier.finished
//! components         archive, logs
//! ```
//! Plugins decide crawl policies. This crate carries out their decisions. It keeps the promises that no plugin can break:
//! politeness, robots.txt, complete records, and the return of every URI to the frontier.

pub mod archive;
pub mod context;
mod cookies;
pub mod crawl;
mod credentials;
mod duplicates;
mod error;
pub mod fetchers;
mod handover;
mod lanes;
pub mod live;
pub mod load;
mod logins;
pub mod observers;
mod progress_log;
mod pulse;
pub mod reconcile;
mod records;
mod replace;
pub mod sample;
mod servers;
pub mod settings;
mod stop;
pub mod tables;
mod visit;
pub mod workshop;

pub use crawl::{Crawl, Order, Plan, ProfileSource, View, plan};
pub use error::{CrawlError, Halt};
pub use fetchers::FetcherError;
pub use load::{LoadedPlugins, check_plugins, settings_schemas};
pub use opilio_archive::Repaired;
pub use opilio_job::alerts::{
    Acknowledged, Alert, AlertKind, Severity, free_space, give_up, http_client, kept_alerts,
};
pub use opilio_job::breakdown::{Breakdown, HostAmount, StatusAmount, TypeAmount};
pub use opilio_job::census::{Census, PageCensus, QueueCensus, QueueStates};
pub use opilio_job::course::{Course, EndWord, Ended};
pub use opilio_job::crawl_log::{ExtraInfo, LogLine};
pub use opilio_job::directory::{
    Hold, JOB_VERSION, Job, JobError, Made, copy_job, hold, holder, is_held, is_job,
    is_made_halfway, made, name_of,
};
pub use opilio_job::inside::{files_stay_inside, stays_inside};
pub use opilio_job::ledger::{Amount, HostCounts, Totals};
pub use opilio_job::plugin_report::{CallTimes, PluginReport, plugin_table};
pub use opilio_job::progress::{Progress, QueueTally, Summary};
pub use opilio_job::remedy::remedy;
pub use opilio_job::series::Sample;
pub use opilio_job::share::{Share, ShareTaken};
pub use opilio_job::{End, logs, transfer};
pub use opilio_job::{JobFolders, component_cache};
pub use opilio_profile::{Faults, Level};
pub use opilio_stacks::builtin_plugins;
pub use stop::Stop;
pub use tables::TableReport;
