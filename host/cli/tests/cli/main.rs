//! Tests of the `opilio` binary: its output, exit codes and files.

#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(unix)]
mod actions;
#[cfg(unix)]
mod attacks;
mod bad_input;
mod behaviors;
#[cfg(unix)]
mod certificates;
#[cfg(unix)]
mod checkpoints;
mod command;
mod crawling;
#[cfg(unix)]
mod doctor;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod frontier;
mod full_disk;
#[cfg(unix)]
mod handover;
#[cfg(unix)]
mod heritrix;
mod io_errors;
#[cfg(unix)]
mod job;
#[cfg(unix)]
mod jobs;
#[cfg(unix)]
mod joining;
mod killed;
#[cfg(unix)]
mod live;
#[cfg(unix)]
mod lost_messages;
#[cfg(unix)]
mod nodes;
mod outcome;
#[cfg(unix)]
mod overrides;
mod plugin;
mod plugin_store;
mod profile;
mod profiles;
#[cfg(unix)]
mod projects;
#[cfg(unix)]
mod reading;
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
mod shared_crawl;
#[cfg(unix)]
mod shares;
mod simulate;
mod simulate_fit;
#[cfg(unix)]
mod takeover;
#[cfg(unix)]
mod traces;
#[cfg(unix)]
mod unattended;
mod uri;
mod verify;
mod warc;
#[cfg(unix)]
mod webhooks;
