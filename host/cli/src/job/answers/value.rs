//! Formatting of one value for people: a time, a size, a count, or a missing value.

use indicatif::{HumanBytes, HumanCount};
use jiff::Timestamp;
use opilio_control::labelled_status;
use opilio_sandbox::is_unprintable;
use serde_json::Value;

/// The sign for a missing value.
pub(super) const NOTHING: &str = "-";

pub(super) fn text(object: &Value, name: &str) -> String {
    match &object[name] {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        // Control characters are replaced, so that a terminal does not interpret them.
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

pub(super) fn bytes(object: &Value, name: &str) -> String {
    HumanBytes(object[name].as_u64().unwrap_or(0)).to_string()
}

/// Formats a time in UTC, to the second.
pub(super) fn time(object: &Value, name: &str) -> String {
    let at = object[name].as_str().and_then(|at| at.parse().ok());
    at.map_or_else(
        || NOTHING.to_owned(),
        |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Formats the fetch status of a URI or of a visit, with its words; missing before the first visit.
pub(super) fn status(of: &Value) -> String {
    let status = of["status"].as_i64();
    match status.and_then(|status| status.try_into().ok()) {
        None | Some(0) => NOTHING.to_owned(),
        Some(status) => labelled_status(status),
    }
}

/// Formats a queue's state, with the reason for retirement.
pub(super) fn queue_state(queue: &Value) -> String {
    match text(queue, "retired_by") {
        by if by == NOTHING => text(queue, "state"),
        by => format!("{} by {by}", text(queue, "state")),
    }
}
