//! Marks of settings: for experts, and with another level of errors than usual. The schema of a profile has them for editors.

use serde_json::{Map, Value};

use crate::diagnostic::Level;
use crate::document::child;

/// Settings that few operators change: internals and safety limits. A table stands for all settings in it.
const EXPERT: &[&str] = &[
    "/record",
    "/dns/negative-expires",
    "/fetch/header-max",
    "/fetch/headers-max",
    "/fetch/spool-memory",
    "/fetch/spool-memory-total",
    "/fetch/scratch-max",
    "/fetch/family",
    "/fetch/bind",
    "/fetch/referer",
    "/fetch/keep-alive",
    "/fetch/accept-encoding",
    "/fetch/header-timeout",
    "/fetch/min-rate",
    "/fetch/slow-after",
    "/fetch/slow-fetches",
    "/fetch/allow-ports",
    "/fetch/first-byte-timeout",
    "/cookies/per-host",
    "/browser/page-steps",
    "/browser/page-requests",
    "/browser/requests-per-server",
    "/browser/pages-per-process",
    "/revisit/history",
    "/revisit/fade-after",
    "/frontier/queue-key",
    "/frontier/parallel-queues",
    "/frontier/ageing",
    "/frontier/session-budget",
    "/frontier/error-penalty",
    "/frontier/cache",
    "/queue/precedence-steps",
    "/uri/cost-policy",
    "/archive/writers",
    "/archive/compression-level",
    "/archive/more-directories",
    "/archive/on-close-timeout",
    "/archive/store/read-back",
    "/archive/store/uploads",
    "/archive/store/retry-min",
    "/archive/store/retry-max",
    "/archive/store/finish-within",
    "/limits/outlinks",
    "/limits/plugin-content",
    "/limits/memory",
    "/limits/plugin-variants",
];

/// Settings with values that are accepted but reported: with a warning, which keeps a job from starting, or with a note.
const LEVELS: [(&str, Level); 6] = [
    ("/operator/contact-url", Level::Warning),
    ("/politeness/min-delay", Level::Info),
    ("/robots/policy", Level::Info),
    ("/fetch/allow-addresses", Level::Info),
    ("/revisit", Level::Info),
    ("/plugins", Level::Info),
];

/// Returns `true` if few operators change the setting at this pointer.
pub(crate) fn is_expert(pointer: &str) -> bool {
    EXPERT.iter().any(|table| is_within(pointer, table))
}

/// The level of an error in this setting.
pub(crate) fn level(pointer: &str) -> Level {
    LEVELS
        .iter()
        .find(|(table, _)| is_within(pointer, table))
        .map_or(Level::Error, |(_, level)| *level)
}

fn is_within(pointer: &str, table: &str) -> bool {
    pointer
        .strip_prefix(table)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Marks expert settings and levels of errors in a profile's schema.
pub(crate) fn mark(schema: &mut Value) {
    let mut marks: Vec<(String, String, Map<String, Value>)> = Vec::new();
    let tables = schema.get("properties").and_then(Value::as_object);
    for (table, node) in tables.into_iter().flatten() {
        let mut marked = |at: String, pointer: &str| {
            let mut keywords = Map::new();
            if is_expert(pointer) {
                keywords.insert("x-opilio-expert".to_owned(), Value::Bool(true));
            }
            let level = level(pointer);
            if level != Level::Error {
                keywords.insert("x-opilio-level".to_owned(), level.as_str().into());
            }
            if !keywords.is_empty() {
                marks.push((at, pointer.to_owned(), keywords));
            }
        };
        let table_pointer = child("", table);
        marked(child("/properties", table), &table_pointer);
        let target = resolved(schema, node);
        let place = ["allOf", "anyOf"]
            .iter()
            .find_map(|key| node.get(key)?.as_array()?.first())
            .unwrap_or(node)
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix('#'))
            .map_or_else(|| child("/properties", table), str::to_owned);
        let keys = target.get("properties").and_then(Value::as_object);
        for key in keys.into_iter().flatten().map(|(key, _)| key) {
            let at = child(&format!("{place}/properties"), key);
            marked(at, &child(&table_pointer, key));
        }
    }
    for (at, _, keywords) in marks {
        if let Some(Value::Object(node)) = schema.pointer_mut(&at) {
            node.extend(keywords);
        }
    }
}

/// The node to which a node refers.
pub(crate) fn resolved<'s>(schema: &'s Value, node: &'s Value) -> &'s Value {
    let alternatives = ["anyOf", "allOf"]
        .iter()
        .find_map(|key| node.get(key)?.as_array()?.first());
    let node = alternatives.unwrap_or(node);
    let target = node.get("$ref").and_then(Value::as_str);
    target
        .and_then(|target| schema.pointer(target.strip_prefix('#')?))
        .unwrap_or(node)
}
