//! Statistics of the crawl. They are written in the batch of the state that they count, so that they agree with it after a crash.
//! Only URIs in process are counted in memory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Tally;

/// Counters of one frontier, over all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Statistics {
    // First, because the counters of early stores lack it: see `Counters::stored`.
    /// Prerequisites whose last visit was answered: DNS look-ups, robots.txt files and logins.
    #[serde(default)]
    pub prerequisites: u64,
    /// URIs known.
    pub discovered: u64,
    /// URIs in a queue, without those in process.
    pub queued: u64,
    /// URIs issued and not yet finished.
    pub in_process: u64,
    /// URIs whose last completed visit got a response other than an error response, without prerequisites.
    pub succeeded: u64,
    /// URIs whose last completed visit failed, or got an error response (4xx, 5xx).
    pub failed: u64,
    /// URIs whose last completed visit was disregarded.
    pub disregarded: u64,
    /// Successful visits, first ones included.
    pub visits: u64,
    /// Of these, visits to URIs that had been visited before.
    pub revisits: Revisits,
    /// Bytes of content received by successful visits.
    pub bytes: BytesByContentState,
    /// Retries.
    pub retries: u64,
    /// Number of times a URI was put back to wait for a prerequisite.
    pub deferrals: u64,
    /// Revisits by delay after their due time.
    pub overdue: Overdue,
    /// Candidates that the scope refused, each time they were found.
    pub refused: u64,
    /// URIs that have faded (`revisit.fade-after`).
    pub faded: u64,
    /// Time spent crawling, as the caller reports it, over all processes.
    #[serde(rename = "run_time_s", with = "opilio_model::seconds")]
    #[schema(value_type = f64)]
    pub run_time: Duration,
    /// Tally of the crawl, as quotas count: without prerequisites, and each URI with a response is a success.
    pub tally: Tally,
}

/// Revisits by delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Overdue {
    /// Counts for the bounds of a second, a minute, ten minutes, an hour, six hours, a day, a week, four weeks, and one for
    /// longer delays. Each class counts the visits that are later than the bound before and no later than its own
    /// ([`Overdue::BOUNDS`]).
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

/// Visits to URIs that had been visited before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Revisits {
    /// Found changed, or new after all.
    pub changed: u64,
    /// Found unchanged by their content.
    pub unchanged: u64,
    /// Answered with 304 by the server.
    pub not_modified: u64,
    /// Could not be compared.
    pub unknown: u64,
}

/// Bytes of content by content state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BytesByContentState {
    /// Of visits found new or changed.
    pub novel: u64,
    /// Of visits found unchanged.
    pub unchanged: u64,
    /// Of visits that could not be compared.
    pub unknown: u64,
}

impl Statistics {
    /// URIs that have completed a visit. Under revisit they are in a queue all the same.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded + self.prerequisites
    }
}
