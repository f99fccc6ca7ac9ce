//! Plugin errors, for their authors.

use opilio_sandbox::Fault;
use serde_json::{Value, json};

use crate::terminal;

/// Indents further lines of a guest's text more than the text around it.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

/// Returns an error with everything that its author needs, for people.
pub(super) fn fault_as_text(fault: &Fault) -> String {
    let mut text = format!("  ERROR {}: {}\n", fault.kind, indented(&fault.message));
    if let Some(described) = &fault.described {
        text += &format!("    of {}\n", terminal::line(described));
    }
    for frame in &fault.backtrace {
        text += &format!("    at {}\n", terminal::line(frame));
    }
    for line in &fault.log {
        text += &format!("    log: {}\n", terminal::line(&line.message));
    }
    text
}

/// Returns an error as JSON.
pub(super) fn fault_as_json(fault: &Fault) -> Value {
    json!({
        "kind": fault.kind, "message": fault.message, "backtrace": fault.backtrace,
        "log": fault.log.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(),
    })
}
