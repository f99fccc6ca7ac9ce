//! One call: a fresh instance, its limits, and its results. Host functions available to the guest are in `imports`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wasmtime::component::{Instance, InstancePre, ResourceTable};
use wasmtime::{ResourceLimiter, Store, Trap, WasmBacktrace};

use crate::Keep;
use crate::answer_cache::Trace;
use crate::engine::Shared;
use crate::fault::{Fault, FaultKind, Problem};
use crate::kept_values::Owner;
use crate::limits::Limits;
use crate::log_line::{LogLevel, LogLine, LogSink};
use crate::notes::{clip, one_line};
use crate::table::{TableMap, Tables};
use crate::ticker::ticks;
use crate::wasi::Wasi;

/// Elements of all tables of an instance; components hold their functions in them.
const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Name of the task of a call that asks a component for its plugins. It stands in place of a URI.
pub(crate) const DESCRIBE: &str = "describe";
/// Name of the task of a call that configures a plugin.
pub(crate) const CONFIGURE: &str = "configure";
/// Frames of a backtrace that are kept.
const FRAMES_MAX: usize = 64;
/// Longest quotation of the guest in that message, in bytes. The log has all of it.
const WORDS_BYTES_MAX: usize = 400;

/// The called plugin: its limits, and its resources in the host.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    /// The name that the profile gives the plugin.
    pub(crate) name: Arc<str>,
    /// Its own name and version; `None` before it has described itself.
    pub(crate) described: Option<Arc<str>>,
    pub(crate) limits: Limits,
    pub(crate) keeps: Vec<Keep>,
    pub(crate) tables: Tables,
}

impl Callee {
    /// Makes a callee that is not a plugin yet: it has only limits.
    pub(crate) fn unready(name: &str, described: Option<Arc<str>>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            described,
            limits,
            keeps: Vec::new(),
            tables: Tables::default(),
        })
    }

    /// The owner of the kept values that are read or set.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner {
            plugin: &self.name,
            keeps: &self.keeps,
            limits: &self.limits,
        }
    }
}

/// The plugin being called and the URI it is called for.
#[derive(Clone, Debug)]
pub(crate) struct CallTarget {
    pub(crate) callee: Arc<Callee>,
    /// The URI in work, or the name of another task.
    pub(crate) uri: Arc<str>,
}

impl CallTarget {
    /// Returns `true` if the call is for the plugin itself and not for a document.
    fn is_setup(&self) -> bool {
        matches!(&*self.uri, DESCRIBE | CONFIGURE)
    }
}

/// Returns `true` if a line is a warning or an error. The sink gets it after a call that has succeeded; others it gets at once.
pub(crate) fn is_warning(line: &LogLine) -> bool {
    matches!(line.level, LogLevel::Warn | LogLevel::Error)
}

/// Resources that a call used, whatever its result.
#[derive(Debug, Default)]
pub(crate) struct Used {
    pub(crate) time: Duration,
    pub(crate) memory: usize,
    pub(crate) counts: Vec<(String, u64)>,
    pub(crate) log_bytes_dropped: u64,
    pub(crate) kept_dropped: u64,
    /// Questions of the guest, if they were noted and are complete.
    pub(crate) trace: Option<Trace>,
    /// See [`CallState::by_uri`].
    pub(crate) by_uri: bool,
}

/// Makes an instance, lets `work` call it, and drops it. Waits for a free place in the pool first.
pub(crate) fn call<R>(
    shared: &Shared,
    program: &InstancePre<CallState>,
    target: &CallTarget,
    work: impl FnOnce(&mut Store<CallState>, Instance) -> Result<R, Problem>,
) -> (Result<R, Fault>, Used) {
    let _permit = shared.permits.acquire();
    let _ticking = shared.ticker.ticking();
    let began = Instant::now();
    let mut store = Store::new(&shared.engine, CallState::new(shared, target));
    store.limiter(|state| &mut state.memory);
    store.set_epoch_deadline(ticks(target.callee.limits.time));
    store.set_hostcall_fuel(target.callee.limits.output_bytes);
    let answer = match program.instantiate(&mut store) {
        Ok(instance) => {
            work(&mut store, instance).map_err(|problem| (problem, FaultKind::Nonsense))
        }
        Err(error) => Err((Problem::Engine(error), FaultKind::Instantiate)),
    };
    let mut state = store.into_data();
    state.print_unfinished();
    // The error of a failed call has its lines. Before any document the reader may have nothing else.
    if answer.is_ok() || target.is_setup() {
        let warnings = state.log.iter().filter(|line| is_warning(line));
        warnings.for_each(|line| (state.sink)(line));
    }
    let answer =
        answer.map_err(|(problem, otherwise)| fault(problem, otherwise, target, state.log));
    let used = Used {
        time: began.elapsed(),
        memory: state.memory.most,
        counts: state.counts,
        log_bytes_dropped: state.log_bytes_dropped,
        kept_dropped: state.kept_dropped,
        trace: state.trace,
        by_uri: state.by_uri,
    };
    (answer, used)
}

/// Makes a plugin error. `otherwise` is the kind of problems that are neither a trap nor a limit.
fn fault(problem: Problem, otherwise: FaultKind, target: &CallTarget, log: Vec<LogLine>) -> Fault {
    let mut backtrace = Vec::new();
    let (kind, message) = match problem {
        Problem::Nonsense(message) => (FaultKind::Nonsense, message),
        Problem::Excess(message) => (FaultKind::Output, message),
        Problem::Unconfigured(message) => (FaultKind::Instantiate, message),
        Problem::Engine(error) => {
            if let Some(frames) = error.downcast_ref::<WasmBacktrace>() {
                backtrace = frames.frames().iter().take(FRAMES_MAX).map(frame).collect();
            }
            let limits = &target.callee.limits;
            let cause = error.root_cause().to_string();
            if let Some(exceeded) = error.downcast_ref::<MemoryExceeded>() {
                (FaultKind::Memory, exceeded.to_string())
            } else if let Some(trap) = error.downcast_ref::<Trap>() {
                match trap {
                    Trap::Interrupt => (
                        FaultKind::Timeout,
                        format!("stopped after its time of {:?}", limits.time),
                    ),
                    Trap::AllocationTooLarge => (FaultKind::Memory, cause),
                    _ => {
                        let cause = cause.trim_start_matches("wasm trap: ");
                        let message = match last_words(&log) {
                            Some(words) => format!("{words} ({cause})"),
                            None => cause.to_owned(),
                        };
                        (FaultKind::Trap, message)
                    }
                }
            } else if cause.contains("fuel allocated for hostcalls") {
                (
                    FaultKind::Output,
                    format!(
                        "handed the host more than {} bytes at once",
                        limits.output_bytes
                    ),
                )
            } else if backtrace.is_empty() {
                (otherwise, cause)
            } else {
                (FaultKind::Trap, cause)
            }
        }
    };
    Fault {
        plugin: target.callee.name.clone(),
        described: target.callee.described.clone(),
        uri: target.uri.clone(),
        kind,
        message: one_line(&message),
        backtrace: backtrace.into(),
        log,
    }
}

fn frame(frame: &wasmtime::FrameInfo) -> String {
    use fmt::Write as _;

    let mut line = match frame
        .symbols()
        .first()
        .and_then(wasmtime::FrameSymbol::name)
        .or(frame.func_name())
    {
        Some(name) => plain(name),
        None => format!("function {}", frame.func_index()),
    };
    if let Some(symbol) = frame.symbols().first()
        && let Some(file) = symbol.file()
    {
        // Writing to a string cannot fail.
        let _ = write!(line, " at {file}:{}", symbol.line().unwrap_or(0));
    } else if let Some(offset) = frame.module_offset() {
        let _ = write!(line, " at 0x{offset:x}");
    }
    one_line(&line)
}

/// A function's name as its author wrote it: Rust's demangled in either scheme, without the hash.
fn plain(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// The guest's last error message, such as the message of its panic; or its last warning, such as the text of an exception that
/// it printed. The stack that a panic of Go logs with its message is left out.
fn last_words(log: &[LogLine]) -> Option<&str> {
    let last = |level| {
        let is_at_level = |line: &&LogLine| line.level == level && !line.message.trim().is_empty();
        log.iter().rfind(is_at_level)
    };
    let line = last(LogLevel::Error).or_else(|| last(LogLevel::Warn))?;
    let message = line.message.split("\ngoroutine ").next();
    Some(clip(message.unwrap_or_default().trim(), WORDS_BYTES_MAX))
}

/// State in the store of a call.
pub(crate) struct CallState {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: Wasi,
    pub(crate) callee: Arc<Callee>,
    pub(crate) uri: Arc<str>,
    pub(crate) sink: LogSink,
    pub(crate) log: Vec<LogLine>,
    pub(crate) log_bytes: usize,
    pub(crate) log_bytes_dropped: u64,
    pub(crate) kept_dropped: u64,
    pub(crate) counts: Vec<(String, u64)>,
    /// Questions of the guest so far. `None` if they are not noted, or do not cover all inputs and effects of its answer.
    pub(crate) trace: Option<Trace>,
    /// `true` if the guest has read nothing of its candidates but URIs, hop paths and seed flags, and has left nothing behind. Its
    /// ruling on one of them then holds wherever the same URI is found again over the same hop path.
    pub(crate) by_uri: bool,
    memory: Memory,
    /// The tables, once the guest has used them.
    tables: Option<Arc<TableMap>>,
}

impl CallState {
    fn new(shared: &Shared, target: &CallTarget) -> Self {
        let max = usize::try_from(target.callee.limits.memory)
            .unwrap_or(usize::MAX)
            .min(shared.memory_max);
        Self {
            table: ResourceTable::new(),
            wasi: Wasi::default(),
            callee: target.callee.clone(),
            uri: target.uri.clone(),
            sink: shared.sink.clone(),
            log: Vec::new(),
            log_bytes: 0,
            log_bytes_dropped: 0,
            kept_dropped: 0,
            counts: Vec::new(),
            trace: None,
            by_uri: true,
            memory: Memory {
                max,
                has: 0,
                most: 0,
                all: shared.plugin_memory.clone(),
            },
            tables: None,
        }
    }

    /// Prepares for `configure` in an instance whose plugin has been configured before: it gets no tables and kept values, and its
    /// log lines are not passed on. Returns the state for the call.
    pub(crate) fn begin_setup(&mut self) -> (Arc<Callee>, LogSink) {
        let Callee {
            name,
            described,
            limits,
            ..
        } = &*self.callee;
        let unready = Callee::unready(name, described.clone(), limits.clone());
        let callee = std::mem::replace(&mut self.callee, unready);
        (callee, std::mem::replace(&mut self.sink, Arc::new(|_| {})))
    }

    /// Forgets the log lines and counters of `configure`, and goes on with the call.
    pub(crate) fn end_setup(&mut self, (callee, sink): (Arc<Callee>, LogSink)) {
        (self.callee, self.sink) = (callee, sink);
        self.log.clear();
        self.counts.clear();
        (self.log_bytes, self.log_bytes_dropped, self.kept_dropped) = (0, 0, 0);
        (self.tables, self.by_uri) = (None, true);
    }

    /// Notes that the call has read or left something that no later call can be compared by.
    pub(crate) fn is_unrepeatable(&mut self) {
        self.trace = None;
        self.by_uri = false;
    }

    /// All tables as they were at the first look of the call. Even if tables are reloaded meanwhile, the call sees one state.
    pub(crate) fn tables(&mut self) -> &TableMap {
        self.is_unrepeatable();
        self.tables
            .get_or_insert_with(|| self.callee.tables.snapshot())
    }
}

/// Memory of one instance, all its linear memories together.
#[derive(Debug)]
struct Memory {
    max: usize,
    has: usize,
    most: usize,
    /// Memory of all instances of the engine.
    all: Arc<AtomicUsize>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.all.fetch_sub(self.has, Ordering::Relaxed);
    }
}

/// Error for a guest that asks for more memory than allowed. It traps instead of returning -1, since hardly any guest survives
/// that. A report of the request is worth more than one of the panic that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asked for {wanted} bytes of memory, {max} are allowed")]
struct MemoryExceeded {
    wanted: usize,
    max: usize,
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.has.saturating_sub(current).saturating_add(desired);
        if wanted > self.max {
            return Err(MemoryExceeded {
                wanted,
                max: self.max,
            }
            .into());
        }
        // Memories never shrink.
        self.all
            .fetch_add(wanted.saturating_sub(self.has), Ordering::Relaxed);
        self.has = wanted;
        self.most = self.most.max(wanted);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_as_their_author_wrote_them() {
        assert_eq!(
            plain("_ZN4core9panicking5panic17h0123456789abcdefE"),
            "core::panicking::panic"
        );
        assert_eq!(plain("_RNvC7mycrate3foo"), "mycrate::foo");
        assert_eq!(plain("run"), "run");
    }

    #[test]
    fn memories_of_an_instance_count_together() {
        let mut memory = Memory {
            max: 100,
            has: 0,
            most: 0,
            all: Arc::default(),
        };
        assert!(memory.memory_growing(0, 60, None).is_ok_and(|may| may));
        assert!(memory.memory_growing(0, 30, None).is_ok_and(|may| may));
        assert!(memory.memory_growing(60, 70, None).is_ok_and(|may| may));
        let refused = memory.memory_growing(30, 31, None).err();
        let exceeded = refused
            .as_ref()
            .and_then(|error| error.downcast_ref::<MemoryExceeded>());
        assert_eq!(
            exceeded,
            Some(&MemoryExceeded {
                wanted: 101,
                max: 100
            })
        );
        assert_eq!(memory.most, 100);
        let all = memory.all.clone();
        assert_eq!(all.load(Ordering::Relaxed), 100);
        drop(memory);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
