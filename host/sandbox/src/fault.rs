//! A call that went wrong by the plugin's doing, with all that its author needs to find out why.

use std::fmt;
use std::sync::Arc;

use crate::log_line::LogLine;

/// A plugin's fault. The instance is gone, nothing of it is used, and the host goes on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("plugin `{plugin}`{} at {uri}: {kind}: {message}", in_brackets(described.as_deref()))]
pub struct Fault {
    /// The plugin's name, or the component's origin before it has one.
    pub plugin: Arc<str>,
    /// Its own name and version, as it describes itself; none before it has.
    pub described: Option<Arc<str>>,
    /// The URI being worked on: of the first document or candidate of the call; `describe` or `configure` outside
    /// of documents.
    pub uri: Arc<str>,
    /// What sort of fault.
    pub kind: FaultKind,
    /// What happened: one line, lower-case.
    pub message: String,
    /// The guest's frames at a trap, innermost first, one a line: function, and file and line where the component
    /// has debug information. Empty for faults that are no trap.
    pub backtrace: Box<[String]>,
    /// What the plugin logged during the call. The sink got these lines as well.
    pub log: Vec<LogLine>,
}

fn in_brackets(described: Option<&str>) -> String {
    described.map_or_else(String::new, |described| format!(" ({described})"))
}

/// Sorts of fault, as they are counted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The guest trapped: a panic, unreachable code, a wild access, a stack that is full.
    Trap,
    /// The call took longer than its limit.
    Timeout,
    /// The call asked for more memory than its limit.
    Memory,
    /// The answer, or what an import was handed, was larger than its limit.
    Output,
    /// The answer makes no sense: misaligned lists, spans out of range, invalid media types, verdicts of another stage.
    Nonsense,
    /// No instance could be made, or, for plugins that are configured in every instance, `configure` refused.
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
