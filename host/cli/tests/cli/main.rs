//! The `opilio` binary, from the outside: what it prints, how it exits, what it leaves behind.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod command;
mod crawling;
#[cfg(unix)]
mod frontier;
mod full_disk;
#[cfg(unix)]
mod job;
mod killed;
mod plugin;
mod plugin_store;
mod profile;
#[cfg(unix)]
mod replace;
mod robots;
#[cfg(unix)]
mod seen;
mod selftest;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod settings;
mod uri;
mod warc;
