//! Rows of tables: of queues, of the URIs in one queue, and of URIs in any queue.

use opilio_control::ListedUri;
use serde_json::Value;

use super::value::{NOTHING, bytes, count, queue_state, status, text, time};

pub(super) const QUEUE_COLUMNS: [&str; 9] = [
    "queue",
    "state",
    "ready",
    "waiting",
    "in process",
    "precedence",
    "next URI at",
    "fetched",
    "received",
];

pub(super) const QUEUED_COLUMNS: [&str; 5] = ["due", "directive", "precedence", STATUS, "URI"];

pub(super) const URI_COLUMNS: [&str; 4] = ["state", STATUS, "when", "URI"];

/// Names of columns of numbers.
pub(super) const RIGHT: [&str; 6] = [
    "ready",
    "waiting",
    "in process",
    "precedence",
    "fetched",
    "received",
];

/// Name of the column of fetch statuses: numbers with words, aligned as words are.
pub(super) const STATUS: &str = "status";

pub(super) fn queue_row(queue: &Value) -> Vec<String> {
    vec![
        text(queue, "queue"),
        queue_state(queue),
        count(queue, "ready"),
        count(queue, "waiting"),
        count(queue, "in_process"),
        text(queue, "precedence"),
        time(queue, "wake"),
        count(queue, "fetched"),
        bytes(queue, "bytes"),
    ]
}

pub(super) fn queued_row(queued: &ListedUri) -> Vec<String> {
    let uri = &queued.uri;
    let place = match (queued.in_process, queued.is_ready) {
        (Some(true), _) => "in process".to_owned(),
        (_, Some(true)) => "ready".to_owned(),
        _ => time(uri, "due"),
    };
    vec![
        place,
        text(uri, "directive"),
        text(uri, "precedence"),
        status(uri),
        text(uri, "uri"),
    ]
}

pub(super) fn uri_row(uri: &Value) -> Vec<String> {
    let last = uri["history"].get(0).map(|last| time(last, "at"));
    let (state, when) = match text(uri, "state").as_str() {
        "queued" => ("queued".to_owned(), time(uri, "due")),
        "done" => (
            text(uri, "last_outcome"),
            last.unwrap_or_else(|| NOTHING.to_owned()),
        ),
        other => (other.to_owned(), last.unwrap_or_else(|| NOTHING.to_owned())),
    };
    vec![state, status(uri), when, text(uri, "uri")]
}
