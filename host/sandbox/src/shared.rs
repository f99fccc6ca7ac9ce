//! The part of the engine that components and plugins share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::call_state::CallState;
use crate::compiler::Compiler;
use crate::log_line::LogSink;
use crate::permits::Permits;
use crate::snapshot_queue::SnapshotQueue;
use crate::ticker::Ticker;

/// The part of the engine that components and plugins share.
pub(crate) struct Shared {
    pub(crate) engine: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) permits: Permits,
    pub(crate) cache: Option<Cache>,
    pub(crate) compiler: Compiler,
    /// Version and configuration of the engine, for the keys of the cache.
    pub(crate) compatibility: String,
    /// Memory of all instances now, in bytes.
    pub(crate) plugin_memory: Arc<AtomicUsize>,
    pub(crate) remembers: bool,
    /// Compiles snapshots in the background; `None` if each is compiled before its plugin is called.
    pub(crate) snapshots: Option<SnapshotQueue>,
    pub(crate) sink: LogSink,
    pub(crate) ticker: Ticker,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
