//! A synthetic changing web in virtual time around the real frontier, profile and plugins.
//!
//! ```text
//! scenario ─► web: sites, pages, changes, servers ◄── run ──► crawl: frontier, profile, plugins, opilio_visit
//!      ▲                └ measure ─► report ◄─ oracle
//!     fit ◄── crawl.log               ├─► compare
//!                                     └─► plot
//! ```
//! The web knows the true changes and the crawl does not. The content that the crawl's archive would have is compared with the
//! web from event to event. docs/SIMULATION.md has the language of scenarios and every measure's formula.

mod compare;
mod crawl;
mod fit;
mod measure;
pub mod oracle;
mod plot;
mod plugin_log;
mod process;
mod report;
mod run;
mod scenario;
mod server_answer;
mod web;

pub use compare::{Comparison, Estimate, Measure, Row};
pub use crawl::{EndKind, PageRequest, SimulatedCrawl, SimulationError, VisitEnd, VisitStart};
pub use fit::{FitError, FitResult, fit};
pub use plot::{freshness_over_time, waits_by_rate};
pub use process::{Process, Rates};
pub use report::{HostVisits, Oracle, PageWait, Report, Visits};
pub use run::{Simulation, SimulationProgress};
pub use scenario::{
    ClosedPeriods, HeaderAccuracy, Lists, PageKind, Recurrence, Scenario, ScenarioChanges,
    SiteGroup, SlowPeriods,
};
pub use server_answer::ServerAnswer;
