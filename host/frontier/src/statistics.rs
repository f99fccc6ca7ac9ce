//! The crawl in numbers. They are written in the batch of the state that they count, so that they agree with it after a
//! crash; only what is in process is counted in memory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Tally;

/// Counters of one frontier, over all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// How late revisits were, against when they were due.
    pub overdue: Overdue,
    /// Candidates that the scope refused, each time they were found.
    pub refused: u64,
    /// URIs that have faded, see [`Config::fade_after`](crate::Config::fade_after).
    pub faded: u64,
    /// Time spent crawling, as the caller tells it, over all processes.
    #[schema(value_type = Object)]
    pub run_time: Duration,
    /// What the crawl has brought in. Unlike [`Statistics::visits`] and [`Statistics::succeeded`] without prerequisites.
    pub tally: Tally,
}

/// How many revisits were how late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Overdue {
    /// One for each of [`Overdue::BOUNDS`], and one for those past the last: visits later than the bound before and no
    /// later than this one.
    pub counts: [u64; Overdue::BOUNDS.len() + 1],
}

impl Overdue {
    /// Upper ends of the classes: a second, a minute, ten minutes, an hour, six hours, a day, a week, four weeks.
    pub const BOUNDS: [Duration; 8] = [
        Duration::from_secs(1),
        Duration::from_secs(60),
        Duration::from_secs(600),
        Duration::from_secs(3600),
        Duration::from_secs(6 * 3600),
        Duration::from_secs(24 * 3600),
        Duration::from_secs(7 * 24 * 3600),
        Duration::from_secs(28 * 24 * 3600),
    ];

    pub(crate) fn count(&mut self, overdue: Duration) {
        let class = Self::BOUNDS.partition_point(|bound| *bound < overdue);
        self.counts[class] += 1;
    }
}

/// Visits to what had been visited before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
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
