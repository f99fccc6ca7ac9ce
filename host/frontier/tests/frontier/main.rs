//! The frontier from outside: stories, a naive model beside it, sudden deaths, stores that do not open.

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
