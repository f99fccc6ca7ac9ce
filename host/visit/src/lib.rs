//! One visit to one URI, from issue to outcome, without I/O.
//!
//! ```text
//! admit ──► fetch (the caller's) ──► judge_head at the headers ──► receive ──► finish
//! scope, addresses,                  mid-fetch filters             read, judge links,     outcome to the frontier,
//! robots.txt, login,                                               wait, store            ranks of links and queues
//! pre-fetch filters
//! ```
//! The stages are async functions over a [`Driver`]: everything that needs a socket, a store, a clock or a thread is asked of
//! it. The compiler makes the state machine. The crawl drives visits with tokio, the simulator in virtual time, one poll each.
//! Both take every decision here, so a simulated crawl decides as a real one does.

mod admission;
pub mod annotations;
pub mod around;
pub mod budget;
pub mod change;
pub mod consideration;
mod decisions;
pub mod digest;
mod driver;
mod exchange;
pub mod extraction;
mod finish;
pub mod found;
mod head;
mod keeping;
pub mod link_attributes;
mod links;
mod pipeline;
pub mod policy;
pub mod precedence;
pub mod redirect;
mod request;
pub mod robots;
pub mod scope;
mod settlement;
pub mod standing;
pub mod status;
pub mod swings;
pub mod synthetic;
mod waits;

pub use admission::{Admission, Permit, admit};
pub use decisions::Fields;
pub use driver::{Addresses, Driver, Ending, Lane, Login, RobotsAnswer, Step};
pub use finish::{comes_again, finish};
pub use head::{HeadVerdict, MidFetch, judge_head};
pub use keeping::{Body, Capture, Keep, Previous, Stored};
pub use pipeline::{Conclusion, LogEntry, Pipeline, redirect_of};
pub use request::RequestHeaders;
pub use settlement::{ScratchFailed, receive};
pub use waits::{consider, memory};
