//! From a Rust plugin crate to a component: finds a compiler for WebAssembly, runs cargo, encodes the module.
//!
//! `opilio plugin build` builds crates of authors with it, `cargo xtask plugins` those that ship. It runs other
//! programs and knows nothing of the sandbox: whether a component is a good plugin, the sandbox says.

mod component;
mod crate_build;
mod toolchain;

pub use component::{ModuleProblem, encode, plugin_names};
pub use crate_build::{BuildError, Built, build, cargo};
pub use toolchain::{NoToolchain, Remap, TARGET, Toolchain};
