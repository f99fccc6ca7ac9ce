//! Stories of whole crawls, against real servers and real files.

#![allow(clippy::unwrap_used, reason = "tests")]

mod snapshot;
