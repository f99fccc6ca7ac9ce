//! What the operator may turn: politeness, retries, revisiting. The frontier reads no profile; whoever does builds a
//! [`Config`] from it. Nothing here is written to the store except what a queue was given of its own, so every value
//! may differ when the store is opened again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything the frontier is told at [`Frontier::open`](crate::Frontier::open).
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// For every queue that was given none of its own.
    pub politeness: Politeness,
    /// How often a URI is tried again after [`Outcome::Retry`](crate::Outcome::Retry). The retry after that is a failure.
    pub max_retries: u32,
    /// How long a queue waits after its first failure in a row. Doubles with each further one.
    pub retry_delay: Duration,
    /// Where the doubling ends.
    pub retry_delay_max: Duration,
    /// How often a URI may be put back for its prerequisites, one time after the other, before it fails with
    /// [`PREREQUISITE_FAILED`](crate::PREREQUISITE_FAILED).
    pub max_deferrals: u32,
    /// A URI found by this many embeds in a row, or fewer, goes before the links of its queue (directive medium).
    /// 0 lets embeds queue up like any link.
    pub embed_preference_hops: u32,
    /// When a URI under [`Strategy::Revisit`](crate::Strategy::Revisit) is probed again that failed or was disregarded.
    pub max_wait: Duration,
    /// How many past visits a record keeps.
    pub history_length: usize,
    /// Precedence of queues, 0 first. Queues of a lower number go before all others that are ready.
    pub queue_precedence: u8,
    /// Bytes of the store's blocks held in memory.
    pub cache_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            politeness: Politeness::default(),
            // With doubling from half a minute to an hour, ten retries spread over three and a half hours.
            max_retries: 10,
            retry_delay: Duration::from_secs(30),
            retry_delay_max: Duration::from_secs(3600),
            // DNS, robots.txt, a login, each expiring once on the way, and room for what plugins add.
            max_deferrals: 10,
            embed_preference_hops: 1,
            // Four weeks: the thesis' longest wait.
            max_wait: Duration::from_secs(28 * 24 * 3600),
            history_length: 10,
            queue_precedence: 3,
            cache_bytes: 128 * 1024 * 1024,
        }
    }
}

/// How long a queue rests between the end of one fetch and the start of the next:
/// `delay_factor` × the time the fetch took, held between `min_delay` and `max_delay`, and never less than the
/// crawl-delay of its robots.txt or the `Retry-After` of its last response, as far as these are respected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Politeness {
    /// Multiplies the duration of the last fetch. Negative or not a number counts as 0.
    pub delay_factor: f64,
    /// Shortest rest.
    pub min_delay: Duration,
    /// Longest rest that the factor alone can bring. Where it is below `min_delay`, `min_delay` holds.
    pub max_delay: Duration,
    /// A longer crawl-delay is cut to this.
    pub crawl_delay_max: Duration,
    /// A longer `Retry-After` is cut to this.
    pub retry_after_max: Duration,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            delay_factor: 5.0,
            min_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(5),
            crawl_delay_max: Duration::from_secs(300),
            retry_after_max: Duration::from_secs(3600),
        }
    }
}
