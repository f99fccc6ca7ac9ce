//! Replacement of the host in native tests and benchmarks. No component contains this code, so the folder does not count as a
//! component's source.

pub(crate) mod cases;
pub(crate) mod double;
pub(crate) mod page;
pub mod testing;
