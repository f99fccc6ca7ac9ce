//! Settings of the engine, and the configuration of wasmtime for compiling and running components.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

use crate::function_cache::Functions;
use crate::lane::WASM_STACK_BYTES_MAX;
use crate::log_line::{LogSink, to_tracing};

/// Linear memories of one component. The pool reserves address space (4 GiB and a guard) for each, not memory.
const MEMORIES_PER_COMPONENT_MAX: u32 = 4;
/// Tables of one component; toolchains make one or two for each core module.
const TABLES_PER_COMPONENT_MAX: u32 = 16;
/// Core modules of one component. A few adapters are usual; Python's components have a dozen modules.
const MODULES_PER_COMPONENT_MAX: u32 = 32;
/// Linear memory of one instance: all that a plugin can address. The profile's limits are lower or the same.
const MEMORY_BYTES_MAX: usize = 4 << 30;
/// Elements of one table: room for the functions of Python.
const TABLE_ELEMENTS_MAX: usize = 32 * 1024;
/// Bytes that the runtime keeps of one instance, without its memory.
const INSTANCE_BYTES_MAX: usize = 4 << 20;
/// Memory of a slot that is cleared by copying. Asking the kernel for fresh pages costs more for small memories and less for
/// large ones.
const RESIDENT_BYTES: usize = 512 * 1024;

/// Settings of an [`Engine`](crate::Engine). The default suits one crawl on one machine.
#[derive(Clone)]
pub struct EngineConfig {
    /// Directory of compiled components; `None` compiles at every start. It is made if it is missing. It must be writable by the
    /// operator alone, because its content is run as machine code.
    pub cache_dir: Option<PathBuf>,
    /// Instances that may live at once; further calls wait. Use fewer if address space is limited (`ulimit -v`). Default: twice
    /// the processors, and 8 for calls of the host's other threads.
    pub instances_max: usize,
    /// `true` if answers are remembered: a plugin is not called again with the same input. Use it if the same documents are
    /// evaluated again and again. It costs up to a hundred megabytes for each plugin and kind of call, and a look-up before each
    /// call. Default: `false`.
    pub remember: bool,
    /// `true` if a plugin's snapshot is compiled in the background, after some dozens of calls. Until then its calls run
    /// `configure`, unless that takes long. Use it if a fast start matters and there may be few calls. Default: `false`.
    pub snapshots_later: bool,
    /// Sink of plugins' log lines.
    pub log_sink: LogSink,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            cache_dir: None,
            instances_max: 2 * processors + 8,
            remember: false,
            snapshots_later: false,
            log_sink: to_tracing(),
        }
    }
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConfig")
            .field("cache_dir", &self.cache_dir)
            .field("instances_max", &self.instances_max)
            .field("remember", &self.remember)
            .field("snapshots_later", &self.snapshots_later)
            .finish_non_exhaustive()
    }
}

/// The engine, and the number of instances in its pool. It is the configured number, or as many as fit into a limited address
/// space (`ulimit -v`).
pub(crate) fn pooled(
    config: &EngineConfig,
    functions: &Arc<Functions>,
) -> wasmtime::Result<(wasmtime::Engine, usize)> {
    let mut fewer = config.clone();
    loop {
        let instances = fewer.instances_max;
        match wasmtime::Engine::new(&wasmtime_config(&fewer, functions)?) {
            Ok(engine) => {
                if instances < config.instances_max {
                    tracing::warn!(
                        "address space is limited (ulimit -v): at most {instances} plugins run at the same time, not {}",
                        config.instances_max
                    );
                }
                return Ok((engine, instances));
            }
            Err(problem) if instances == 1 => return Err(problem),
            Err(_) => fewer.instances_max = instances / 2,
        }
    }
}

/// An engine that compiles for instances of [`Engine`](crate::Engine) and runs nothing. It has no pool, which does not affect its
/// output.
pub(crate) fn compiling(functions: &Arc<Functions>) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = wasmtime_config(&EngineConfig::default(), functions)?;
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    wasmtime::Engine::new(&config)
}

fn wasmtime_config(
    settings: &EngineConfig,
    functions: &Arc<Functions>,
) -> wasmtime::Result<Config> {
    let instances = u32::try_from(settings.instances_max).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(MODULES_PER_COMPONENT_MAX))
        .total_memories(instances.saturating_mul(MEMORIES_PER_COMPONENT_MAX))
        .total_tables(instances.saturating_mul(TABLES_PER_COMPONENT_MAX))
        .max_core_instances_per_component(MODULES_PER_COMPONENT_MAX)
        .max_memories_per_component(MEMORIES_PER_COMPONENT_MAX)
        .max_tables_per_component(TABLES_PER_COMPONENT_MAX)
        .max_memories_per_module(MEMORIES_PER_COMPONENT_MAX)
        .max_tables_per_module(TABLES_PER_COMPONENT_MAX)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_memory_size(MEMORY_BYTES_MAX)
        // Slots for all plugins of a stack: if a slot was last used by another plugin, its memory must be mapped again.
        .max_unused_warm_slots(instances.saturating_mul(MEMORIES_PER_COMPONENT_MAX))
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        // Asks the kernel which pages were written, so that only those are cleared. It is used if the kernel supports it (Linux
        // 6.7).
        .pagemap_scan(Enabled::Auto);

    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .memory_init_cow(true)
        // Halves the cost of every call. Calls here are synchronous.
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES_MAX)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        .cranelift_opt_level(OptLevel::Speed)
        // The same answer on every machine: a recorded call must be repeatable elsewhere.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .enable_incremental_compilation(functions.clone())?;
    Ok(config)
}
