//! What there is instead of the host where a plugin runs natively: in tests and benchmarks. Nothing in here ends up in
//! a component, so the folder does not count as a component's source.

pub(crate) mod cases;
pub(crate) mod double;
pub mod testing;
