//! Filters of URIs in one component.
#![cfg_attr(
    target_arch = "wasm32",
    allow(unsafe_code, reason = "the component's exports")
)]

pub mod hops;

opilio_plugin::export!(filters: [hops::Hops]);
