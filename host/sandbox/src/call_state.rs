//! The state in the store of a call, which host functions read and change.

use std::sync::Arc;

use wasmtime::component::ResourceTable;

use crate::answer_cache::Trace;
use crate::callee::{CallTarget, Callee};
use crate::log_line::{LogLevel, LogLine, LogSink};
use crate::memory::Memory;
use crate::notes::{clip, is_unprintable};
use crate::table::TableMap;
use crate::wasi_state::Wasi;

/// Returns `true` if a line is a warning or an error. The sink gets it after a call that has succeeded; others it gets at once.
pub(crate) fn is_warning(line: &LogLine) -> bool {
    matches!(line.level, LogLevel::Warn | LogLevel::Error)
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
    /// Reads of the guest so far. `None` if they are not noted, or do not cover all inputs and effects of its answer.
    pub(crate) trace: Option<Trace>,
    /// `true` if the guest has read nothing of its candidates but URIs, hop paths and seed flags, and has had no side effect. Its
    /// ruling on a candidate then applies whenever the same URI is found again over the same hop path.
    pub(crate) by_uri: bool,
    pub(crate) memory: Memory,
    /// The tables, once the guest has used them.
    tables: Option<Arc<TableMap>>,
}

impl CallState {
    pub(crate) fn new(target: &CallTarget, sink: LogSink, memory: Memory) -> Self {
        Self {
            table: ResourceTable::new(),
            wasi: Wasi::default(),
            callee: target.callee.clone(),
            uri: target.uri.clone(),
            sink,
            log: Vec::new(),
            log_bytes: 0,
            log_bytes_dropped: 0,
            kept_dropped: 0,
            counts: Vec::new(),
            trace: None,
            by_uri: true,
            memory,
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
        let not_configured = Callee::not_configured(name, described.clone(), limits.clone());
        let callee = std::mem::replace(&mut self.callee, not_configured);
        (callee, std::mem::replace(&mut self.sink, Arc::new(|_| {})))
    }

    /// Drops the log lines and counters of `configure`, and continues with the call.
    pub(crate) fn end_setup(&mut self, (callee, sink): (Arc<Callee>, LogSink)) {
        (self.callee, self.sink) = (callee, sink);
        self.log.clear();
        self.counts.clear();
        (self.log_bytes, self.log_bytes_dropped, self.kept_dropped) = (0, 0, 0);
        (self.tables, self.by_uri) = (None, true);
    }

    /// Marks the call as not comparable with later calls: it has read or changed something that is different each time.
    pub(crate) fn mark_unrepeatable(&mut self) {
        self.trace = None;
        self.by_uri = false;
    }

    /// All tables as they were at the first look-up of the call. If tables are reloaded during the call, it still sees the old
    /// ones.
    pub(crate) fn tables(&mut self) -> &TableMap {
        self.mark_unrepeatable();
        self.tables
            .get_or_insert_with(|| self.callee.tables.snapshot())
    }

    /// Adds a log line, within the limit on log messages.
    pub(crate) fn log_line(&mut self, level: LogLevel, message: &str) {
        self.mark_unrepeatable();
        // A line costs at least one byte of the limit. Otherwise empty lines would cost nothing and be kept by the million.
        let remaining = self.callee.limits.log_bytes - self.log_bytes;
        let kept = clip(message, remaining);
        self.log_bytes_dropped += (message.len() - kept.len()) as u64;
        if remaining == 0 || (kept.is_empty() && !message.is_empty()) {
            self.log_bytes = self.callee.limits.log_bytes;
            return;
        }
        self.log_bytes += kept.len().max(1);
        let printable = |c: char| {
            if is_unprintable(c) && c != '\n' && c != '\t' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        };
        let line = LogLine {
            plugin: self.callee.name.clone(),
            uri: self.uri.clone(),
            level,
            message: kept.chars().map(printable).collect(),
        };
        if !is_warning(&line) {
            (self.sink)(&line);
        }
        self.log.push(line);
    }
}
