//! Stories of whole crawls, against real servers and real files.

#![allow(clippy::unwrap_used, reason = "tests")]

mod content;
mod failures;
mod plugins;
mod redirects;
mod resume;
mod review;
mod revisits;
mod snapshot;
mod wire;
