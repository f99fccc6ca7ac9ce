//! The `opilio` binary, from the outside: what it prints, how it exits, what it leaves behind.

#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(unix)]
mod actions;
#[cfg(unix)]
mod attacks;
mod bad_input;
#[cfg(unix)]
mod certificates;
#[cfg(unix)]
mod checkpoints;
mod command;
mod crawling;
#[cfg(unix)]
mod frontier;
mod full_disk;
#[cfg(unix)]
mod heritrix;
mod io_errors;
#[cfg(unix)]
mod job;
#[cfg(unix)]
mod jobs;
mod killed;
#[cfg(unix)]
mod live;
mod plugin;
mod plugin_store;
mod profile;
#[cfg(unix)]
mod replace;
mod revisiting;
mod robots;
#[cfg(unix)]
mod seen;
mod selftest;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod settings;
#[cfg(unix)]
mod shares;
mod simulate;
mod simulate_fit;
#[cfg(unix)]
mod traces;
#[cfg(unix)]
mod unattended;
mod uri;
mod verify;
mod warc;
