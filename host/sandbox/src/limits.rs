//! What one call of a plugin may use. Every limit has a default; the profile may set each.

use std::time::Duration;

/// Limits of one call. Hitting `memory`, `time` or `output_bytes` is a fault; the others cut and count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of linear memory, all memories of the instance together. Asking for more is a fault of kind `Memory`.
    /// Never more than [`EngineConfig::memory_max`](crate::EngineConfig::memory_max). Default 128 MiB: a 20 MB
    /// document as text, a working copy of it, and the links.
    pub memory: u64,
    /// Wall-clock time of a call, instantiation included. Past it the call is stopped: a fault of kind `Timeout`.
    /// Default 10 s, three orders of magnitude above a large page; header-stage filters want far less.
    pub time: Duration,
    /// Bytes that an answer may take in the host, lists counted by the size of their records; the same holds for
    /// the arguments of each import call. More is a fault of kind `Output`. Default 32 MiB.
    pub output_bytes: usize,
    /// Links of one document that are used; the rest is dropped and counted in
    /// [`Extraction::links_dropped`](crate::Extraction::links_dropped). Default 6,000, as the predecessor had it.
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
    /// Names of a plugin's own counters; what is counted under further names goes to `other`. Default 64.
    pub counters: usize,
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
        }
    }
}
