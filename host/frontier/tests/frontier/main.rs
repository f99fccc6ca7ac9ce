//! The frontier from outside: stories, comparison with a naive model, sudden deaths, stores that cannot be opened.

#![allow(clippy::unwrap_used, reason = "tests")]

mod check;
mod checkpoint;
mod death;
mod failing;
mod model;
mod naive;
mod opening;
mod operator;
mod parts;
mod queues;
mod revisiting;
mod site;
mod stories;
mod takeover;
