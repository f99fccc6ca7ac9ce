//! Write Opilio plugins in Rust: a settings struct, one or two traits, and an `export!` line.
//!
//! [`Plugin`] describes a plugin. [`Extractor`], [`Filter`], [`DigestStripper`], [`ChangeEvaluator`], [`WaitEvaluator`],
//! [`Precedence`], [`Observer`] and [`PageBehavior`] are its kinds. [`export!`] makes a component of one or several plugins.
//!
//! The same crate runs natively: [`testing`] has documents and visits to call plugins with, and runs cases written in JSON.
//! The `README.md` of this crate has a complete plugin.

// The export macros of the bindings refer to this crate by its name, even inside the crate.
extern crate self as opilio_plugin;

mod candidates;
mod document;
mod export;
mod faults;
mod log;
mod page;
mod period;
mod plugin;
mod records;
mod registry;
mod table;

#[doc(hidden)]
pub mod bindings;
#[cfg(not(target_arch = "wasm32"))]
mod native;

pub use bindings::change_evaluator::exports::opilio::plugin::change_evaluator::{
    Comparison, Difference,
};
pub use bindings::common::opilio::plugin::documents::ActionResult;
pub use bindings::common::opilio::plugin::types::{
    Candidate, ContentState, DateSignal, Fragment, FragmentContent, Header, Hop, KeptValue, Link,
    LinkDetails, NamedValue, Neighbourhood, PastVisit, Signal, Span, Submission,
};
pub use bindings::digest_stripper::exports::opilio::plugin::digest_stripper::StripProblem;
pub use bindings::extractor::exports::opilio::plugin::extractor::Extraction;
pub use bindings::filter::exports::opilio::plugin::filter::{Ruling, Stage, Verdict};
pub use bindings::observer::exports::opilio::plugin::observer::{
    Finished, Line, Observation, ReportFile as Report,
};
pub use bindings::page_behavior::exports::opilio::plugin::page_behavior::{
    Action, Click, ScrollTarget, SelectorWait, StepPlan,
};
pub use bindings::setup::exports::opilio::plugin::setup::{
    Description, Handles, Keep, Keeper, Kind, SettingsFault,
};
pub use bindings::wait_evaluator::exports::opilio::plugin::wait_evaluator::Wait;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use bindings::common::opilio::plugin::documents::Candidates as CandidatesHandle;
#[cfg(target_arch = "wasm32")]
pub use bindings::common::opilio::plugin::documents::{Document, Page, Queue, Visit};
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub use native::double::Candidates as CandidatesHandle;
#[cfg(not(target_arch = "wasm32"))]
pub use native::double::{Document, Queue, Visit};
#[cfg(not(target_arch = "wasm32"))]
pub use native::page::Page;
#[cfg(not(target_arch = "wasm32"))]
pub use native::testing;

pub use candidates::{CandidateView, Candidates};
#[doc(hidden)]
pub use export::{lines, lines_length};
pub use faults::none_or;
pub use log::{Level, count, debug, error, info, log, warn};
pub use page::recall;
pub use period::Period;
pub use plugin::{
    ChangeEvaluator, DigestStripper, Extractor, Filter, Observer, PageBehavior, Plugin, Precedence,
    WaitEvaluator,
};
pub use registry::{Component, Configured, NoSettings, Plugins};
pub use table::{Row, Table, TableKind, table};

pub use schemars;
pub use schemars::JsonSchema;
pub use serde;

/// Imports for a plugin's file: `use opilio_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Action, ActionResult, Candidate, CandidateView, Candidates, ChangeEvaluator, Click,
        Comparison, ContentState, DateSignal, Difference, DigestStripper, Document, Extraction,
        Extractor, Filter, Finished, Fragment, FragmentContent, Handles, Header, Hop, Keep,
        KeptValue, Line, Link, LinkDetails, NamedValue, Observation, Observer, Page, PageBehavior,
        Period, Plugin, Precedence, Queue, Report, Ruling, ScrollTarget, SelectorWait,
        SettingsFault, Span, Stage, StepPlan, StripProblem, Submission, Verdict, Visit, Wait,
        WaitEvaluator, count, recall, table,
    };
    pub use crate::{NoSettings, none_or};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}
