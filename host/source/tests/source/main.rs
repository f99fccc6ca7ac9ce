//! Tests of all sources of components: a registry on loopback, files, folders, and the store.

#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

mod authorization;
mod folders;
mod pins;
mod pulling;
mod pushing;
mod store;
