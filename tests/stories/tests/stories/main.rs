//! Stories of whole crawls, against real servers and real files.

#![allow(clippy::unwrap_used, reason = "tests")]

mod content;
mod embeds;
mod failures;
mod identity;
mod limits;
mod many;
mod overrides;
mod plugins;
mod politeness;
mod precedence;
mod queues;
mod quotas;
mod redirects;
mod resume;
mod review;
mod revisits;
mod scope;
mod snapshot;
mod wire;
