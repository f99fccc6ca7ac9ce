//! Log lines and counters for the operator. Components pass them to the host. Native builds capture them for
//! [`testing`](crate::testing).

#[cfg(target_arch = "wasm32")]
use crate::bindings::common::opilio::plugin::{counters, log as host};
#[cfg(not(target_arch = "wasm32"))]
use crate::native::double::{counters, log as host};

pub use crate::bindings::common::opilio::plugin::log::Level;

/// Writes a line to the plugin's log. The host adds the URI being processed.
pub fn log(level: Level, message: impl AsRef<str>) {
    host::write(level, message.as_ref());
}

/// Writes a line for the plugin's author.
pub fn debug(message: impl AsRef<str>) {
    log(Level::Debug, message);
}

/// Writes a line of information.
pub fn info(message: impl AsRef<str>) {
    log(Level::Info, message);
}

/// Writes a warning.
pub fn warn(message: impl AsRef<str>) {
    log(Level::Warn, message);
}

/// Writes an error.
pub fn error(message: impl AsRef<str>) {
    log(Level::Error, message);
}

/// Adds `n` to the plugin's counter `name` (lower-case words joined by hyphens), shown in reports and metrics.
pub fn count(name: &str, n: u64) {
    counters::count(name, n);
}
