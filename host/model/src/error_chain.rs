//! The text of an error with its causes. No domain type; it is here because crates without another common dependency print
//! errors the same way.

use std::error::Error;

/// Formats an error with its causes on one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
