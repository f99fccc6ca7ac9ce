//! The sandbox: loads, checks, pre-initialises, limits and calls plugins, which are WebAssembly components of the contract in
//! `wit/`. The crawl and the tools use it. It does not depend on frontier, network or profile.
//!
//! ```text
//! Engine ── load(bytes) ──► Component ── configure(settings, limits) ──► Plugin ── extract, judge, strip, step …
//! one per process           checked, described                          a fresh instance for every call
//! ```
//!
//! Rules for every call:
//! - It starts from the memory that `configure` left, in a fresh instance that is dropped afterwards. No state crosses calls, and
//!   nothing is reused after a trap.
//! - It blocks the calling thread, at most for [`Limits::time`] and a tick or two of the epoch clock. Any number of threads may
//!   call at once. Beyond [`EngineConfig::instances_max`] they wait for one another.
//! - The calling thread's stack must be larger than [`WASM_STACK_BYTES_MAX`] by a good margin. Otherwise a guest's deep recursion
//!   kills the process instead of trapping. [`spawn_lane`] starts such threads.
//! - A trap, a timeout or an invalid answer is a [`Fault`]: returned, and counted in [`PluginStatistics`].

mod answer_cache;
mod answers;
#[expect(
    missing_docs,
    reason = "generated: the contract documents what needs it"
)]
mod bindings;
mod cache;
mod call;
mod call_state;
mod callee;
mod candidates;
mod case;
mod compiler;
mod component;
mod configure;
mod contract;
mod describe;
mod document;
mod engine;
mod engine_config;
mod exports;
mod fault;
mod function_bounds;
mod function_cache;
mod handles;
mod imports;
mod interface;
mod kept_values;
mod lane;
mod limits;
mod log_line;
mod lookups;
mod memory;
mod model;
mod notes;
mod owner;
mod page;
mod page_imports;
mod page_steps;
mod permits;
mod plugin;
mod preparation;
mod queue;
mod settings;
mod settings_schema;
mod shared;
mod snapshot;
mod snapshot_queue;
mod statistics;
mod table;
mod ticker;
mod times;
#[expect(
    missing_docs,
    reason = "generated: the contract documents what needs it"
)]
mod types;
mod v0_1;
mod v0_2;
mod visit;
mod wasi;
mod wasi_state;

pub use answers::{Extraction, Wait};
pub use bindings::exports::opilio::plugin::change_evaluator::{Comparison, Difference};
pub use bindings::exports::opilio::plugin::digest_stripper::StripProblem;
pub use bindings::exports::opilio::plugin::filter::{Ruling, Stage, Verdict};
pub use bindings::exports::opilio::plugin::observer::{
    Finished, Line, Observation, ReportFile as Report,
};
pub use bindings::exports::opilio::plugin::page_behavior::{
    Action as BehaviorAction, Click, ScrollTarget as ScrollPosition, SelectorWait, StepPlan,
};
pub use bindings::exports::opilio::plugin::setup::{Description, Handles, Kind, SettingsFault};
pub use candidates::Candidates;
pub use case::{
    Call, CallOutcome, CallProblem, CallResult, CandidateFacts, Case, CaseFile, CaseProblem,
    CasesError, Difference as AnswerDifference, DocumentFacts, Examiner, FaultWritten,
    FinishedFacts, KeptFacts, LimitsWritten, PageFacts, QueueFacts, Recording, RecordingError,
    Replay, StageName, VisitFacts,
};
pub use compiler::{compile_in_child, run_compiler};
pub use component::{COMPONENT_BYTES_MAX, Component, LoadError};
pub use configure::{ConfigureError, PluginConfig};
pub use contract::CONTRACT;
pub use describe::DescriptionProblem;
pub use document::{Document, DocumentParts, FragmentProblem};
pub use engine::{Engine, EngineError};
pub use engine_config::EngineConfig;
pub use fault::{Fault, FaultKind};
pub use handles::{HandlesProblem, handles};
pub use kept_values::{KeptChanges, SharedKeptValues};
pub use lane::{LANE_STACK_BYTES, WASM_STACK_BYTES_MAX, spawn_lane};
pub use limits::Limits;
pub use log_line::{LogLevel, LogLine, LogSink};
pub use lookups::{TableFacts, looking_up};
pub use notes::{Annotation, Notes, is_unprintable};
pub use opilio_model::{ContentState, KeptChange, KeptValue, KeptValues, PastVisit};
pub use owner::{Keep, Keeper};
pub use page::{BehaviorResult, LoadedPage};
pub use plugin::{Plugin, Start};
pub use preparation::{Preparation, PreparationObserver, observe_preparation, report_preparation};
pub use queue::Queue;
pub use statistics::PluginStatistics;
pub use table::{Row, Table, TableKind, TableProblem, Tables};
pub use times::DurationHistogram;
pub use types::opilio::plugin::types::{
    Candidate, DateSignal, Fragment, FragmentContent, Header, Hop, Link, LinkDetails, NamedValue,
    Neighbourhood, Signal, Span, Submission,
};
pub use visit::Visit;
