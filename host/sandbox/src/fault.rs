//! Plugin errors: failed calls that the plugin caused, with everything that its author needs to find the cause.

use std::fmt;
use std::sync::Arc;

use crate::log_line::LogLine;

/// A plugin error. The instance is dropped with its results, and the host continues.
#[derive(Clone, Debug, thiserror::Error)]
#[error("plugin `{plugin}`{} at {uri}: {kind}: {message}", in_brackets(described.as_deref()))]
pub struct Fault {
    /// The plugin's name, or the component's origin before it has one.
    pub plugin: Arc<str>,
    /// Its own name and version, from its description; `None` before it has described itself.
    pub described: Option<Arc<str>>,
    /// The URI in work: that of the first document or candidate of the call. Outside of documents it is `describe` or
    /// `configure`.
    pub uri: Arc<str>,
    /// The kind of the error.
    pub kind: FaultKind,
    /// The message: one line, lower-case.
    pub message: String,
    /// The guest's frames at a trap, innermost first, one a line: function, and file and line if the component has debug
    /// information. Empty for errors other than traps.
    pub backtrace: Box<[String]>,
    /// Log lines of the plugin during the call. The sink does not get those that are warnings or errors.
    pub log: Vec<LogLine>,
}

fn in_brackets(described: Option<&str>) -> String {
    described.map_or_else(String::new, |described| format!(" ({described})"))
}

/// Kinds of plugin error, as they are counted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The guest trapped: a panic, unreachable code, an invalid access, a full stack.
    Trap,
    /// The call took longer than its limit.
    Timeout,
    /// The call requested more memory than its limit.
    Memory,
    /// The answer, or an argument of an import call, was larger than its limit.
    Output,
    /// The answer is invalid: misaligned lists, spans out of range, invalid media types, verdicts of another stage.
    Nonsense,
    /// No instance could be made. For a plugin that is configured in every instance, also a refusal by `configure`.
    Instantiate,
}

impl FaultKind {
    /// Every kind, in the order declared.
    pub const ALL: [Self; 6] = [
        Self::Trap,
        Self::Timeout,
        Self::Memory,
        Self::Output,
        Self::Nonsense,
        Self::Instantiate,
    ];
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trap => "trap",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Nonsense => "nonsense",
            Self::Instantiate => "instantiate",
        })
    }
}

/// Reasons for which a call fails.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The engine stopped it.
    Engine(wasmtime::Error),
    /// The answer is invalid.
    Nonsense(String),
    /// The answer is larger than allowed.
    Excess(String),
    /// The instance could not be configured.
    Unconfigured(String),
}

impl From<wasmtime::Error> for Problem {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}
