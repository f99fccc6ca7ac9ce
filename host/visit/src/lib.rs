//! One visit to one URI, from issue to outcome, without I/O.
//!
//! ```text
//! admit ──► fetch (the caller's) ──► judge_head at the headers ──► receive ──► finish
//! scope, addresses,                  mid-fetch filters             read, judge links,     outcome to the frontier,
//! robots.txt, login,                                               wait, store            ranks of links and queues
//! pre-fetch filters
//! ```
//! The stages are async functions over a [`Driver`], which has the sockets, the store, the clock and the threads. The compiler
//! makes the state machine. The crawl drives visits with tokio; the simulator drives them in virtual time, one poll each. Both take
//! every decision here, so a simulated crawl decides as a real one does.
//!
//! The stages do no I/O except that they read the body of a response, which can be in a scratch file. Outside the stages, the
//! crate has helpers for drivers and commands. Functions of [`budget`], [`precedence`] and [`redirect`] use the frontier that the
//! caller passes. [`precedence::QueueRanks`] has a lock of its own, because all visits of a crawl share it.

mod admission;
mod after_fetch;
mod annotations;
mod archiving;
mod behaviors;
pub mod budget;
mod capture;
mod change;
mod decisions;
mod digest;
mod document_filters;
mod driver;
pub mod evaluation;
mod exchange;
pub mod extraction;
mod finish;
mod head;
pub mod link_attributes;
mod links;
mod oscillation;
mod pipeline;
pub mod plugin_view;
pub mod policy;
pub mod precedence;
pub mod reading;
mod reconsider;
pub mod redirect;
mod rendering;
mod request;
mod response;
pub mod robots;
pub mod scope;
pub mod scope_memory;
pub mod site_figures;
pub mod status;
pub mod synthetic;
mod waits;

pub use admission::{Admission, Permit, ROBOTS_ADDRESS_REFUSED, admit};
pub use after_fetch::{ScratchFailed, receive};
pub use capture::{
    Body, CaptureForm, DecisionFields, EarlierCapture, PendingCapture, StoredCapture,
};
pub use driver::{
    Addresses, Driver, Lane, LoginNeed, OutcomeKind, PageToRender, RenderResult, Rendering,
    RobotsAnswer, Step,
};
pub use finish::{finish, will_be_reissued};
pub use head::{HeaderVerdict, MidFetch, judge_head};
pub use pipeline::{Conclusion, LogEntry, Pipeline, redirect_of};
pub use request::RequestHeaders;
pub use response::{KeptValueChanges, Response, notes_of};
pub use waits::format_as_heritrix;
pub use waits::{WaitRule, consider, memory};
