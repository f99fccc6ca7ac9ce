//! Tests of the sandbox with well-behaved and hostile guests.

#![allow(clippy::unwrap_used, reason = "tests")]

mod answer_cache;
mod answers;
mod builtin;
mod cache;
mod cases;
mod configure;
mod contract;
mod faults;
mod guest;
mod hostile;
mod hostile_loads;
mod imports;
mod isolation;
mod kinds;
mod load;
mod recording;
mod rubbish;
mod state;
mod support;
mod wasi;
