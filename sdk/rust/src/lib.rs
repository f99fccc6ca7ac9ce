//! Write Opilio plugins in Rust: a settings struct, a trait or two, one `export!` line.
//!
//! [`Plugin`] says who a plugin is; [`Extractor`], [`Filter`], [`DigestStripper`] and [`WaitEvaluator`] are what it
//! can do; [`export!`] makes a component of one or several. The same crate runs natively: [`testing`] has documents
//! and visits to call plugins with, and runs cases written in JSON. `README.md` beside this crate has a whole plugin.

// The bindings' export macros name this crate by its name, also from within.
extern crate self as opilio_plugin;

mod document;
mod export;
mod faults;
mod log;
mod period;
mod plugin;
mod records;
mod registry;

#[doc(hidden)]
pub mod bindings;
#[cfg(not(target_arch = "wasm32"))]
mod native;

pub use bindings::common::opilio::plugin::types::{
    Candidate, ContentState, DateSignal, Fragment, FragmentContent, Header, Hop, Link, LinkDetails,
    NamedValue, Neighbourhood, PastVisit, Signal, Span, Submission,
};
pub use bindings::digest_stripper::exports::opilio::plugin::digest_stripper::StripProblem;
pub use bindings::extractor::exports::opilio::plugin::extractor::Extraction;
pub use bindings::filter::exports::opilio::plugin::filter::{Ruling, Stage, Verdict};
pub use bindings::setup::exports::opilio::plugin::setup::{
    Description, Handles, Kind, SettingsFault,
};
pub use bindings::wait_evaluator::exports::opilio::plugin::wait_evaluator::Wait;

#[cfg(target_arch = "wasm32")]
pub use bindings::common::opilio::plugin::documents::{Document, Visit};
#[cfg(not(target_arch = "wasm32"))]
pub use native::double::{Document, Visit};
#[cfg(not(target_arch = "wasm32"))]
pub use native::testing;

#[doc(hidden)]
pub use export::{lines, lines_length};
pub use faults::none_or;
pub use log::{Level, count, debug, error, info, log, warn};
pub use period::Period;
pub use plugin::{DigestStripper, Extractor, Filter, Plugin, WaitEvaluator};
pub use registry::{Component, Configured, NoSettings, Plugins};

pub use schemars;
pub use schemars::JsonSchema;
pub use serde;

/// What a plugin's file needs: `use opilio_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Candidate, ContentState, DateSignal, DigestStripper, Document, Extraction, Extractor,
        Filter, Fragment, FragmentContent, Handles, Header, Hop, Link, LinkDetails, NamedValue,
        Period, Plugin, Ruling, SettingsFault, Span, Stage, StripProblem, Submission, Verdict,
        Visit, Wait, WaitEvaluator, count,
    };
    pub use crate::{NoSettings, none_or};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}
