//! A running crawl: dispatcher, workers, plugin lanes, servers, archive. Commands of operators are in the crate `control`.
//!
//! ```text
//! plan ──► begin ──► run ──► summary
//! profile, seeds,    job, frontier,    frontier.next ─► visit (opilio_visit decides, `visit` does) ─► frontier.finished
//! components         archive, logs
//! ```
//! Plugins decide crawl policies. This crate carries out their decisions. It guarantees what no plugin can change: politeness,
//! robots.txt, complete records, and the return of every URI to the frontier.

pub mod archive;
mod behavior_steps;
mod browsers;
pub mod context;
mod cookies;
pub mod crawl;
mod credentials;
mod duplicates;
mod error;
mod events;
pub mod fetchers;
mod handover;
mod housekeeping;
mod job_part;
mod lanes;
pub mod live;
pub mod load;
mod logins;
mod membership;
pub mod observers;
pub mod page_trial;
mod part_snapshot;
pub mod plugin_factory;
mod progress_log;
pub mod reconcile;
mod records;
pub mod render_board;
pub mod render_figures;
mod rendered_captures;
mod replace;
pub mod sample;
mod servers;
pub mod settings;
mod shared_files;
mod shared_limits;
mod stop;
pub mod tables;
mod visit;

pub use browsers::check_browser;
pub use crawl::{Crawl, CrawlView, NamedProfile, Order, Plan, ProfileSource, plan};
pub use error::{CrawlError, Halt};
pub use fetchers::FetcherError;
pub use handover::{HandoverFile, HandoverState, HandoverStep, hand_over_job, handover_files};
pub use job_part::{
    JobPart, PartFigures, inbox_of_part, part_names, part_state, queues_of_job, takeover_attempts,
};
pub use load::{LoadedPlugins, check_plugins, settings_schemas, shipped_plugins};
pub use membership::{JobMembership, PublishedState};
pub use opilio_archive::RepairedFile;
pub use opilio_job::alerts::{
    Acknowledged, Alert, AlertKind, Severity, free_space, give_up, http_client, kept_alerts,
};
pub use opilio_job::breakdown::{Breakdown, HostAmount, StatusAmount, TypeAmount};
pub use opilio_job::census::{Census, PageCensus, QueueCensus, QueueStates};
pub use opilio_job::crawl_log::{CrawlLogLine, ExtraInfo};
pub use opilio_job::directory::{
    JOB_VERSION, Job, JobError, JobLock, JobOrigin, ProfileOrigin, copy_job, holder, is_held,
    is_job, is_made_halfway, lock_job, name_of, origin_of_job,
};
pub use opilio_job::handover::{HandedOver, handed_over, only_in_store};
pub use opilio_job::job_state::JobState;
pub use opilio_job::ledger::{Amount, HostCounts, Totals, VisitCounts};
pub use opilio_job::plugin_report::{CallTimes, PluginReport, plugin_table};
pub use opilio_job::process_record::{ProcessEnd, ProcessEndKind, ProcessRecord};
pub use opilio_job::progress::{HandoverTotals, Progress, Summary};
pub use opilio_job::queue_tally::QueueTally;
pub use opilio_job::remedy::remedy;
pub use opilio_job::seed_outcome::{SeedFailure, SeedOutcomes};
pub use opilio_job::series::Sample;
pub use opilio_job::share::{Share, ShareTaken};
pub use opilio_job::symlinks::{files_stay_inside, stays_inside};
pub use opilio_job::{End, events as crawl_events, logs, transfer};
pub use opilio_job::{JobFolders, component_cache};
pub use opilio_profile::{Diagnostics, Level};
pub use opilio_stacks::builtin_plugins;
pub use shared_files::{FetchedProfile, SharedFiles, parts_of_job};
pub use stop::Stop;
pub use tables::TableReport;
