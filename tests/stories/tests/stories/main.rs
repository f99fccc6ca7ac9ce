//! Stories of whole crawls, against real servers and real files.

#![allow(clippy::unwrap_used, reason = "tests")]

mod alerts;
mod archiving;
mod changes;
mod content;
mod cookies;
mod embeds;
mod failures;
mod filters;
mod forms;
mod guards;
mod hostile;
mod identity;
mod kept;
mod limits;
mod lists;
mod logins;
mod many;
mod observers;
mod overrides;
mod plugins;
mod politeness;
mod precedence;
mod proxies;
mod queues;
mod quotas;
mod ranks;
mod record;
mod redirects;
mod replace;
mod reports;
mod resume;
mod review;
mod revisits;
mod robots;
mod schemes;
mod scope;
mod signals;
mod snapshot;
mod tables;
mod traps;
mod unchanged;
mod variants;
mod walls;
mod wire;
