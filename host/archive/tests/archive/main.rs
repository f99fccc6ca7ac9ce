//! Tests of writing, reading, repairing, checking and redacting records.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod fixture;
mod formats;
mod literal;
mod process;
mod redacting;
mod repairing;
mod rotation;
mod round_trip;
mod verifying;
