//! One value as people read it: a time, a size, a count, or that there is nothing.

use indicatif::{HumanBytes, HumanCount};
use jiff::Timestamp;
use opilio_sandbox::is_unprintable;
use serde_json::Value;

/// What stands where there is nothing.
pub(super) const NOTHING: &str = "-";

pub(super) fn text(object: &Value, name: &str) -> String {
    match &object[name] {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        // Such that no terminal takes it for an order.
        Value::String(text) => text
            .chars()
            .map(|c| if is_unprintable(c) { '\u{fffd}' } else { c })
            .collect(),
        other => other.to_string(),
    }
}

pub(super) fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

pub(super) fn count(object: &Value, name: &str) -> String {
    HumanCount(object[name].as_u64().unwrap_or(0)).to_string()
}

/// So many of something, in words that take an s.
pub(super) fn numbered(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", HumanCount(count))
}

pub(super) fn bytes(object: &Value, name: &str) -> String {
    HumanBytes(object[name].as_u64().unwrap_or(0)).to_string()
}

/// UTC, to the second.
pub(super) fn time(object: &Value, name: &str) -> String {
    let at = object[name].as_str().and_then(|at| at.parse().ok());
    at.map_or_else(
        || NOTHING.to_owned(),
        |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Fetch status; nothing before the first turn.
pub(super) fn status(uri: &Value) -> String {
    match uri["status"].as_i64() {
        None | Some(0) => NOTHING.to_owned(),
        Some(status) => status.to_string(),
    }
}

/// A queue's state, and what retired it.
pub(super) fn queue_state(queue: &Value) -> String {
    match text(queue, "retired_by") {
        by if by == NOTHING => text(queue, "state"),
        by => format!("{} by {by}", text(queue, "state")),
    }
}
