//! Lanes: threads that may call plugins.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Stack that a guest may use, in bytes. It is twice wasmtime's default, since recursive-descent parsers are common in plugins.
/// Deeper recursion traps.
pub const WASM_STACK_BYTES_MAX: usize = 1 << 20;

/// Stack of a lane, in bytes: the guest's, and as much again for host functions that the guest calls and for the guest's caller.
/// Threads of 2 MiB, Rust's default, have little to spare; a main thread has 8 MiB.
pub const LANE_STACK_BYTES: usize = 4 << 20;

/// Starts a thread with a stack large enough for plugin calls. Debuggers and panic messages show `name`.
pub fn spawn_lane<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new()
        .name(name.to_owned())
        .stack_size(LANE_STACK_BYTES)
        .spawn(work)
}
