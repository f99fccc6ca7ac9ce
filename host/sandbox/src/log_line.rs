//! Log lines of plugins, and their sink.

use std::fmt;
use std::sync::Arc;

pub use crate::bindings::opilio::plugin::log::Level as LogLevel;

/// One line that a plugin wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The URI in work; `describe` or `configure` outside of documents.
    pub uri: Arc<str>,
    /// Its level.
    pub level: LogLevel,
    /// The message. Control characters other than line feeds and tabs become U+FFFD.
    pub message: String,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        write!(f, "{level} {} {}: {}", self.plugin, self.uri, self.message)
    }
}

/// The sink of log lines. It is called on the thread of the call, so it must be quick. Lines of the levels debug and info come at
/// once. Warnings and errors come after the call; if the call fails, they are in its [`Fault`](crate::Fault) instead. The default
/// passes lines to `tracing` under the target `opilio::plugin`.
pub type LogSink = Arc<dyn Fn(&LogLine) + Send + Sync>;

/// The default sink.
pub(crate) fn to_tracing() -> LogSink {
    Arc::new(|line: &LogLine| {
        let LogLine {
            plugin,
            uri,
            message,
            ..
        } = line;
        match line.level {
            LogLevel::Debug => {
                tracing::debug!(target: "opilio::plugin", %plugin, %uri, "{message}")
            }
            LogLevel::Info => tracing::info!(target: "opilio::plugin", %plugin, %uri, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "opilio::plugin", %plugin, %uri, "{message}"),
            LogLevel::Error => {
                tracing::error!(target: "opilio::plugin", %plugin, %uri, "{message}")
            }
        }
    })
}
