//! The engine: sets up the pool of instances, the imports, the compiler and the epoch clock, and loads components.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compiler::Compiler;
use crate::component::{Component, LoadError};
use crate::engine_config::{EngineConfig, pooled};
use crate::function_cache::Functions;
use crate::imports;
use crate::permits::Permits;
use crate::shared::Shared;
use crate::snapshot_queue::SnapshotQueue;
use crate::ticker::Ticker;
use crate::{v0_1, v0_2};

/// Cache generation. It changes whenever older cached components must not be used.
const CACHE_GENERATION: &str = "3";

/// Reason for which the engine cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime cannot run here as configured: usually because address space is limited or the processor is not supported.
    #[error(
        "cannot set up the WebAssembly engine; it reserves address space (not memory), some 17 GiB for each plugin that runs at \
         the same time: raise the limit where there is one (ulimit -v unlimited)"
    )]
    Engine(#[source] wasmtime::Error),
    /// The thread of the epoch clock cannot be started.
    #[error("cannot start the epoch clock's thread")]
    Ticker(#[source] io::Error),
    /// The thread that compiles snapshots cannot be started.
    #[error("cannot start the thread that compiles snapshots")]
    Snapshots(#[source] io::Error),
    /// The directory for compiled components can neither be used nor made.
    #[error("cannot use the directory {} for compiled components", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// An invalid setting.
    #[error("{0}")]
    Setting(&'static str),
}

/// Compiles and runs components. Clones are the same engine; it ends with the last clone and the last plugin.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Shared>);

impl Engine {
    /// Sets up the engine: reserves the pool's address space and starts the epoch clock.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        if config.instances_max == 0 {
            return Err(EngineError::Setting("instances-max must be at least 1"));
        }
        let cache = match &config.cache_dir {
            Some(path) => Some(Cache::open(path).map_err(|source| EngineError::Cache {
                path: path.clone(),
                source,
            })?),
            None => None,
        };
        let functions = Arc::new(Functions::in_directory(config.cache_dir.as_deref()));
        let (engine, instances) = pooled(&config, &functions).map_err(EngineError::Engine)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).map_err(EngineError::Engine)?;
        v0_1::link(&mut linker).map_err(EngineError::Engine)?;
        v0_2::link(&mut linker).map_err(EngineError::Engine)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let compatibility = format!("{CACHE_GENERATION} {:016x}", hasher.finish());
        let ticker = Ticker::start(engine.clone()).map_err(EngineError::Ticker)?;
        let snapshots = config.snapshots_later.then(SnapshotQueue::start);
        let snapshots = snapshots.transpose().map_err(EngineError::Snapshots)?;
        Ok(Self(Arc::new(Shared {
            engine,
            linker,
            permits: Permits::new(instances),
            cache,
            compiler: Compiler::new(functions),
            compatibility,
            plugin_memory: Arc::default(),
            remembers: config.remember,
            snapshots,
            sink: config.log_sink,
            ticker,
        })))
    }

    /// Checks and compiles a component, and calls `describe`. `origin` is its name in messages: a path, or `builtin:html`.
    /// Takes seconds for large components that are not cached.
    pub fn load(&self, bytes: &[u8], origin: &str) -> Result<Component, LoadError> {
        Component::load(self.0.clone(), bytes, origin)
    }

    /// Linear memory of all instances now, in bytes.
    pub fn plugin_memory(&self) -> u64 {
        self.0.plugin_memory.load(Ordering::Relaxed) as u64
    }

    /// Stops the current compilation in a child ([`crate::compile_in_child`]) and refuses further ones. Hosts call it when they are
    /// about to exit.
    pub fn stop_compiling(&self) {
        self.0.compiler.stop();
    }
}
