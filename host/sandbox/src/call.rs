//! One call: an instance of its own, the imports it is given, the limits it is held to, and what is left of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{Instance, InstancePre, Linker, Resource, ResourceTable};
use wasmtime::{ResourceLimiter, Store, Trap, WasmBacktrace};

use crate::bindings::opilio::plugin::{counters, documents, log, types};
use crate::document::Document;
use crate::engine::Shared;
use crate::fault::{Fault, FaultKind};
use crate::limits::Limits;
use crate::log_line::{LogLevel, LogLine, LogSink};
use crate::notes::clip;
use crate::ticker::ticks;
use crate::visit::{Visit, instant, millis};

/// Elements of all tables of an instance; components hold their functions in them.
const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Frames of a backtrace that are kept.
const FRAMES_MAX: usize = 64;
/// Longest message of a fault, in bytes; it may quote the guest.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// Different counters that are summed up within a call before they reach the statistics.
const COUNTS_MAX: usize = 256;

/// Who is called, for what, within which limits.
#[derive(Clone, Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) plugin: Arc<str>,
    /// The URI worked on, or what else is being done.
    pub(crate) uri: Arc<str>,
    pub(crate) limits: &'a Limits,
}

/// What a call used, whatever became of it.
#[derive(Debug, Default)]
pub(crate) struct Used {
    pub(crate) time: Duration,
    pub(crate) memory: usize,
    pub(crate) counts: Vec<(String, u64)>,
    pub(crate) log_bytes_dropped: u64,
}

/// What may go wrong within a call.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The engine stopped it.
    Engine(wasmtime::Error),
    /// The answer makes no sense.
    Nonsense(String),
    /// The instance could not be configured.
    Unconfigured(String),
}

impl From<wasmtime::Error> for Problem {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}

/// Makes an instance, lets `work` call it, throws it away. Waits for a free place in the pool first.
pub(crate) fn call<R>(
    shared: &Shared,
    program: &InstancePre<CallState>,
    occasion: &Occasion<'_>,
    work: impl FnOnce(&mut Store<CallState>, Instance) -> Result<R, Problem>,
) -> (Result<R, Fault>, Used) {
    let _permit = shared.permits.acquire();
    let began = Instant::now();
    let mut store = Store::new(&shared.engine, CallState::new(shared, occasion));
    store.limiter(|state| &mut state.memory);
    store.set_epoch_deadline(ticks(occasion.limits.time));
    store.set_hostcall_fuel(occasion.limits.output_bytes);
    let answer = match program.instantiate(&mut store) {
        Ok(instance) => {
            work(&mut store, instance).map_err(|problem| (problem, FaultKind::Nonsense))
        }
        Err(error) => Err((Problem::Engine(error), FaultKind::Instantiate)),
    };
    let state = store.into_data();
    let answer =
        answer.map_err(|(problem, otherwise)| fault(problem, otherwise, occasion, state.log));
    let used = Used {
        time: began.elapsed(),
        memory: state.memory.most,
        counts: state.counts,
        log_bytes_dropped: state.log_bytes_dropped,
    };
    (answer, used)
}

/// `otherwise` is the kind of what is neither a trap nor a limit.
fn fault(
    problem: Problem,
    otherwise: FaultKind,
    occasion: &Occasion<'_>,
    log: Vec<LogLine>,
) -> Fault {
    let mut backtrace = Vec::new();
    let (kind, message) = match problem {
        Problem::Nonsense(message) => (FaultKind::Nonsense, message),
        Problem::Unconfigured(message) => (FaultKind::Instantiate, message),
        Problem::Engine(error) => {
            if let Some(frames) = error.downcast_ref::<WasmBacktrace>() {
                backtrace = frames.frames().iter().take(FRAMES_MAX).map(frame).collect();
            }
            let limits = occasion.limits;
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
                    _ => (
                        FaultKind::Trap,
                        cause.trim_start_matches("wasm trap: ").to_owned(),
                    ),
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
        plugin: occasion.plugin.clone(),
        uri: occasion.uri.clone(),
        kind,
        message: one_line(&message),
        backtrace,
        log,
    }
}

fn one_line(message: &str) -> String {
    clip(message, MESSAGE_BYTES_MAX)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn frame(frame: &wasmtime::FrameInfo) -> String {
    use fmt::Write as _;

    let mut line = match frame
        .symbols()
        .first()
        .and_then(wasmtime::FrameSymbol::name)
        .or(frame.func_name())
    {
        Some(name) => wasmtime_name(name),
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

/// Rust's mangled names end in a hash that says nothing.
fn wasmtime_name(name: &str) -> String {
    let end = name.len().saturating_sub(19);
    match name.get(end..) {
        Some(hash)
            if hash.starts_with("::h") && hash[3..].bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            name[..end].to_owned()
        }
        _ => name.to_owned(),
    }
}

/// What the store of a call holds.
pub(crate) struct CallState {
    pub(crate) table: ResourceTable,
    memory: Memory,
    limits: Limits,
    plugin: Arc<str>,
    uri: Arc<str>,
    sink: LogSink,
    log: Vec<LogLine>,
    log_bytes: usize,
    log_bytes_dropped: u64,
    counts: Vec<(String, u64)>,
}

impl CallState {
    fn new(shared: &Shared, occasion: &Occasion<'_>) -> Self {
        let max = usize::try_from(occasion.limits.memory)
            .unwrap_or(usize::MAX)
            .min(shared.memory_max);
        Self {
            table: ResourceTable::new(),
            memory: Memory {
                max,
                has: 0,
                most: 0,
            },
            limits: occasion.limits.clone(),
            plugin: occasion.plugin.clone(),
            uri: occasion.uri.clone(),
            sink: shared.sink.clone(),
            log: Vec::new(),
            log_bytes: 0,
            log_bytes_dropped: 0,
            counts: Vec::new(),
        }
    }

    /// Defines the imports of the contract.
    pub(crate) fn link(linker: &mut Linker<Self>) -> wasmtime::Result<()> {
        type Own = wasmtime::component::HasSelf<CallState>;
        types::add_to_linker::<_, Own>(linker, |state| state)?;
        documents::add_to_linker::<_, Own>(linker, |state| state)?;
        log::add_to_linker::<_, Own>(linker, |state| state)?;
        counters::add_to_linker::<_, Own>(linker, |state| state)
    }
}

/// The memory of one instance, all its linear memories together.
#[derive(Debug)]
struct Memory {
    max: usize,
    has: usize,
    most: usize,
}

/// Raised where a guest asks for more memory than it may have. It traps rather than reads -1, since hardly any guest
/// survives that, and a report of the wish is worth more than one of the panic that follows.
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

impl types::Host for CallState {}
impl documents::Host for CallState {}

impl documents::HostDocument for CallState {
    fn uri(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self.table.get(&document)?.uri().to_owned())
    }

    fn base(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self.table.get(&document)?.base())
    }

    fn status(&mut self, document: Resource<Document>) -> wasmtime::Result<i32> {
        Ok(self.table.get(&document)?.status())
    }

    fn headers(&mut self, document: Resource<Document>) -> wasmtime::Result<Vec<types::Header>> {
        Ok(self.table.get(&document)?.headers().to_vec())
    }

    fn header(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Vec<String>> {
        let headers = self.table.get(&document)?.headers().iter();
        Ok(headers
            .filter(|header| header.name.eq_ignore_ascii_case(&name))
            .map(|header| header.value.clone())
            .collect())
    }

    fn media_type(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self.table.get(&document)?.media_type().to_owned())
    }

    fn charset(&mut self, document: Resource<Document>) -> wasmtime::Result<Option<String>> {
        Ok(self
            .table
            .get(&document)?
            .charset()
            .map(|charset| charset.name().to_ascii_lowercase()))
    }

    fn fragment(&mut self, document: Resource<Document>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&document)?.fragment().map(str::to_owned))
    }

    fn length(&mut self, document: Resource<Document>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&document)?.content().len() as u64)
    }

    fn read(
        &mut self,
        document: Resource<Document>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Vec<u8>> {
        let content = self.table.get(&document)?.content();
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(content.len());
        let end = start.saturating_add(length as usize).min(content.len());
        Ok(content[start..end].to_vec())
    }

    fn text(&mut self, document: Resource<Document>) -> wasmtime::Result<String> {
        Ok(self.table.get(&document)?.text().to_owned())
    }

    fn note(
        &mut self,
        document: Resource<Document>,
        name: String,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&document)?.notes().get(&name))
    }

    fn set_note(
        &mut self,
        document: Resource<Document>,
        name: String,
        value: String,
    ) -> wasmtime::Result<()> {
        self.table
            .get(&document)?
            .notes()
            .set(name, value, &self.limits);
        Ok(())
    }

    fn annotate(
        &mut self,
        document: Resource<Document>,
        annotation: String,
    ) -> wasmtime::Result<()> {
        self.table
            .get(&document)?
            .notes()
            .annotate(&annotation, &self.limits);
        Ok(())
    }

    fn drop(&mut self, document: Resource<Document>) -> wasmtime::Result<()> {
        self.table.delete(document)?;
        Ok(())
    }
}

impl documents::HostVisit for CallState {
    fn candidate(&mut self, visit: Resource<Visit>) -> wasmtime::Result<types::Candidate> {
        Ok(self.table.get(&visit)?.candidate.clone())
    }

    fn now(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(instant(self.table.get(&visit)?.now))
    }

    fn status(&mut self, visit: Resource<Visit>) -> wasmtime::Result<i32> {
        Ok(self.table.get(&visit)?.status)
    }

    fn media_type(&mut self, visit: Resource<Visit>) -> wasmtime::Result<String> {
        Ok(self.table.get(&visit)?.media_type.clone())
    }

    fn state(&mut self, visit: Resource<Visit>) -> wasmtime::Result<types::ContentState> {
        Ok(self.table.get(&visit)?.state)
    }

    fn size(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&visit)?.size)
    }

    fn last_wait(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&visit)?.last_wait.map(millis))
    }

    fn overdue(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(millis(self.table.get(&visit)?.overdue))
    }

    fn visits(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&visit)?.visits)
    }

    fn versions(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&visit)?.versions)
    }

    fn history(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Vec<types::PastVisit>> {
        Ok(self.table.get(&visit)?.history.clone())
    }

    fn validator(
        &mut self,
        visit: Resource<Visit>,
        name: String,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self
            .table
            .get(&visit)?
            .validators
            .get(&name.to_ascii_lowercase())
            .cloned())
    }

    fn outlinks(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&visit)?.outlinks)
    }

    fn inlinks(&mut self, visit: Resource<Visit>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&visit)?.inlinks)
    }

    fn signals(&mut self, visit: Resource<Visit>) -> wasmtime::Result<Vec<types::Signal>> {
        Ok(self.table.get(&visit)?.signals.clone())
    }

    fn neighbourhood(
        &mut self,
        visit: Resource<Visit>,
    ) -> wasmtime::Result<Vec<types::Neighbourhood>> {
        Ok(self.table.get(&visit)?.neighbourhood.clone())
    }

    fn measure(&mut self, visit: Resource<Visit>, name: String) -> wasmtime::Result<Option<f64>> {
        Ok(self.table.get(&visit)?.measures.get(&name).copied())
    }

    fn drop(&mut self, visit: Resource<Visit>) -> wasmtime::Result<()> {
        self.table.delete(visit)?;
        Ok(())
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: LogLevel, message: String) -> wasmtime::Result<()> {
        // A line costs at least one byte of the limit, or empty ones would cost nothing and be kept by the million.
        let room = self.limits.log_bytes - self.log_bytes;
        let kept = clip(&message, room);
        self.log_bytes_dropped += (message.len() - kept.len()) as u64;
        if room == 0 || (kept.is_empty() && !message.is_empty()) {
            self.log_bytes = self.limits.log_bytes;
            return Ok(());
        }
        self.log_bytes += kept.len().max(1);
        let printable = |c: char| {
            if c.is_control() && c != '\n' && c != '\t' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        };
        let line = LogLine {
            plugin: self.plugin.clone(),
            uri: self.uri.clone(),
            level,
            message: kept.chars().map(printable).collect(),
        };
        (self.sink)(&line);
        self.log.push(line);
        Ok(())
    }
}

impl counters::Host for CallState {
    fn count(&mut self, name: String, n: u64) -> wasmtime::Result<()> {
        if let Some((_, sum)) = self.counts.iter_mut().find(|(known, _)| *known == name) {
            *sum = sum.saturating_add(n);
        } else if self.counts.len() < COUNTS_MAX {
            self.counts.push((name, n));
        } else if let Some((last, sum)) = self.counts.last_mut() {
            last.clear();
            last.push_str(crate::statistics::OTHER_COUNTER);
            *sum = sum.saturating_add(n);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_mangled_name_is_dropped() {
        assert_eq!(
            wasmtime_name("core::panicking::panic::h0123456789abcdef"),
            "core::panicking::panic"
        );
        assert_eq!(wasmtime_name("run"), "run");
        assert_eq!(wasmtime_name("ä::h0123456789abcde"), "ä::h0123456789abcde");
    }

    #[test]
    fn memories_of_an_instance_count_together() {
        let mut memory = Memory {
            max: 100,
            has: 0,
            most: 0,
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
    }
}
