//! One call: a fresh instance, its limits, and its results. Host functions available to the guest are in `imports`.

use std::fmt;
use std::time::{Duration, Instant};

use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, Trap, WasmBacktrace};

use crate::answer_cache::Trace;
use crate::call_state::{CallState, is_warning};
use crate::callee::CallTarget;
use crate::fault::{Fault, FaultKind, Problem};
use crate::log_line::{LogLevel, LogLine};
use crate::memory::{Memory, MemoryExceeded};
use crate::notes::{clip, one_line};
use crate::shared::Shared;
use crate::ticker::ticks;

/// Frames of a backtrace that are kept.
const FRAMES_MAX: usize = 64;
/// Longest quotation of the guest in that message, in bytes. The log has the full text.
const WORDS_BYTES_MAX: usize = 400;

/// Resources that a call used, whatever its result.
#[derive(Debug, Default)]
pub(crate) struct CallUsage {
    pub(crate) time: Duration,
    pub(crate) memory: usize,
    pub(crate) counts: Vec<(String, u64)>,
    pub(crate) log_bytes_dropped: u64,
    pub(crate) kept_dropped: u64,
    /// The values that the guest has read, if they were noted and are complete.
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
) -> (Result<R, Fault>, CallUsage) {
    let _permit = shared.permits.acquire();
    let _ticking = shared.ticker.ticking();
    let began = Instant::now();
    let memory_max = usize::try_from(target.callee.limits.memory).unwrap_or(usize::MAX);
    let memory = Memory::new(memory_max, shared.plugin_memory.clone());
    let state = CallState::new(target, shared.sink.clone(), memory);
    let mut store = Store::new(&shared.engine, state);
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
    // If a call fails, its error has the log lines. While a component is loaded, the log may be the only place for them.
    if answer.is_ok() || target.is_setup() {
        let warnings = state.log.iter().filter(|line| is_warning(line));
        warnings.for_each(|line| (state.sink)(line));
    }
    let answer =
        answer.map_err(|(problem, otherwise)| fault(problem, otherwise, target, state.log));
    let used = CallUsage {
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
                        let message = match last_error_message(&log) {
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
        Some(name) => demangled(name),
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
fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// The guest's last error message, such as the message of its panic; or its last warning, such as the text of an exception that
/// it printed. The stack that a panic of Go logs with its message is left out.
fn last_error_message(log: &[LogLine]) -> Option<&str> {
    let last = |level| {
        let is_at_level = |line: &&LogLine| line.level == level && !line.message.trim().is_empty();
        log.iter().rfind(is_at_level)
    };
    let line = last(LogLevel::Error).or_else(|| last(LogLevel::Warn))?;
    let message = line.message.split("\ngoroutine ").next();
    Some(clip(message.unwrap_or_default().trim(), WORDS_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_are_demangled() {
        assert_eq!(
            demangled("_ZN4core9panicking5panic17h0123456789abcdefE"),
            "core::panicking::panic"
        );
        assert_eq!(demangled("_RNvC7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangled("run"), "run");
    }
}
