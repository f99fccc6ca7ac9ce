//! Quotas: limits of documents, bytes and time. The frontier has the tallies that they are compared with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of documents, bytes and time; `None` means no limit. Prerequisites do not count. Numbers of documents are checked before
/// the fetch that would exceed them. Bytes, new content and time are known only after a fetch, so the document that exceeds them
/// is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Responses of any status, without those that are retried.
    pub fetched: Option<u64>,
    /// URIs that have succeeded, each once.
    pub succeeded: Option<u64>,
    /// Documents found new or changed.
    pub novel: Option<u64>,
    /// Bytes of content.
    pub bytes: Option<u64>,
    /// Bytes of content found new or changed.
    pub novel_bytes: Option<u64>,
    /// Total duration of exchanges, including those that failed or are retried.
    pub run_time: Option<Duration>,
}

impl Quota {
    /// Returns `true` if there is any limit.
    #[must_use]
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }
}
