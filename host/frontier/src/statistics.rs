//! The crawl in numbers. They are written in the batch of the state that they count, so that they agree with it after a
//! crash; only what is in process is counted in memory.

use serde::{Deserialize, Serialize};

/// Counters of one frontier, over all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// URIs known.
    pub discovered: u64,
    /// URIs that stand in a queue, those in process not counted.
    pub queued: u64,
    /// URIs issued and not yet finished.
    pub in_process: u64,
    /// URIs whose last completed turn succeeded.
    pub succeeded: u64,
    /// URIs whose last completed turn failed.
    pub failed: u64,
    /// URIs whose last completed turn ended in not being fetched.
    pub disregarded: u64,
    /// Successful visits, first ones included.
    pub visits: u64,
    /// Of these, visits to what had been visited before.
    pub revisits: Revisits,
    /// Content received by successful visits.
    pub bytes: BytesByNovelty,
    /// Attempts that are tried again.
    pub retries: u64,
    /// Times a URI was put back for its prerequisites.
    pub deferrals: u64,
}

/// Visits to what had been visited before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Revisits {
    /// Found changed, or new after all.
    pub changed: u64,
    /// Found the same by its content.
    pub unchanged: u64,
    /// The server said so (304).
    pub not_modified: u64,
    /// Could not be compared.
    pub unknown: u64,
}

/// Content in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BytesByNovelty {
    /// Of visits found new or changed.
    pub novel: u64,
    /// Of visits found unchanged.
    pub unchanged: u64,
    /// Of visits that could not be compared.
    pub unknown: u64,
}

impl Statistics {
    /// URIs that have completed a turn. Under revisit they stand in a queue all the same.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded
    }
}
