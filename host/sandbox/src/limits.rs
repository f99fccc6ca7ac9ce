//! Limits of one plugin call. Every limit has a default; the profile may set each.

use std::time::Duration;

/// Limits of one call. Exceeding `memory`, `time`, `output_bytes`, `fingerprint_bytes`, `observer_memory_bytes` or `files` is a
/// plugin error. At the other limits, items are dropped and counted, except `instances`: there calls wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of linear memory, all memories of the instance together. Asking for more is a plugin error of kind `Memory`. Default
    /// 128 MiB: a 20 MB document as text, a working copy of it, and the links.
    pub memory: u64,
    /// Wall-clock time of a call, instantiation included. At the limit the call is stopped: a plugin error of kind `Timeout`.
    /// Default 10 s, three orders of magnitude above a large page; header-stage filters want far less.
    pub time: Duration,
    /// Bytes of an answer in the host; lists count by the size of their records. The same limit applies to the arguments of each
    /// import call. More is a plugin error of kind `Output`. Default 32 MiB.
    pub output_bytes: usize,
    /// Links of one document that are used; the rest is dropped and counted in
    /// [`Extraction::links_dropped`](crate::Extraction::links_dropped). Default 6,000, as in Heritrix.
    pub links: usize,
    /// Fragments of one document that are used; the rest is dropped and counted. Default 6,000.
    pub fragments: usize,
    /// Bytes of log messages of one call; the rest is dropped and counted. Default 16 KiB.
    pub log_bytes: usize,
    /// Notes of one visit, all plugins together; more are dropped and counted. Default 64.
    pub notes: usize,
    /// Bytes of a note, name and value together; a longer one is dropped and counted. Default 4 KiB.
    pub note_bytes: usize,
    /// Annotations of one visit; more are dropped and counted. Default 32.
    pub annotations: usize,
    /// Names of a plugin's own counters. Counts under further names go to `other`. Default 64.
    pub counters: usize,
    /// Bytes of a value that a plugin keeps with a URI; a longer one is dropped and counted. Default 1 KiB.
    pub kept_uri_bytes: usize,
    /// Bytes of a value that a plugin keeps for a site; a longer one is dropped and counted. Default 4 KiB.
    pub kept_site_bytes: usize,
    /// Values that a plugin keeps with one URI, and as many for one site; more are dropped and counted. Default 16.
    pub kept_values: usize,
    /// Bytes of a change evaluator's fingerprint; more are a plugin error of kind `Output`. Default 4 KiB.
    pub fingerprint_bytes: usize,
    /// Bytes of the memory that an observer gets with the next batch; more are a plugin error of kind `Output`. Default 1 MiB.
    pub observer_memory_bytes: usize,
    /// Files that an observer's lines or reports of one answer name; more are a plugin error of kind `Output`. Default 16.
    pub files: usize,
    /// Calls of this plugin at once, all threads together; further ones wait. Default: the maximum of the engine,
    /// [`EngineConfig::instances_max`](crate::EngineConfig::instances_max).
    pub instances: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            time: Duration::from_secs(10),
            output_bytes: 32 << 20,
            links: 6_000,
            fragments: 6_000,
            log_bytes: 16 << 10,
            notes: 64,
            note_bytes: 4 << 10,
            annotations: 32,
            counters: 64,
            kept_uri_bytes: 1 << 10,
            kept_site_bytes: 4 << 10,
            kept_values: 16,
            fingerprint_bytes: 4 << 10,
            observer_memory_bytes: 1 << 20,
            files: 16,
            instances: usize::MAX,
        }
    }
}
