//! The control plane in virtual time, and the crate over real `nats-server` processes on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot continue")]

mod bad_input;
mod control;
mod disturbances;
mod full;
mod jobs;
mod losses;
mod membership;
#[path = "../../examples/control_plane/network.rs"]
mod network;
mod parts;
mod replicas;
mod rest;
mod server;
mod takeover;
#[path = "../../examples/control_plane/takeovers.rs"]
mod takeovers;
