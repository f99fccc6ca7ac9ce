//! What an operator may set for a queue. Resolved from the queue's name by whoever reads profiles, and kept with the
//! queue, so that a restart knows it.

use std::{fmt, sync::Arc, time::Duration};

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::{Tally, UriRecord};

/// How a queue behaves. The same for every queue unless a [`Resolver`] says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// How long it rests between fetches.
    pub politeness: Politeness,
    /// How often a URI is tried again after [`Outcome::Retry`](crate::Outcome::Retry). The retry after that is a failure.
    pub max_retries: u32,
    /// How long a URI, or the queue, waits after its first failure in a row. Doubles with each further one.
    pub retry_delay: Duration,
    /// Where the doubling ends.
    pub retry_delay_max: Duration,
    /// URIs that may be in process at the same time, at least 1; each has a slot with a rest of its own (the thesis' host
    /// valence). While the queue is failing, or a prerequisite of its URIs is in process, it is 1.
    pub valence: u16,
    /// Bytes a second that its fetches may average. A fetch that is under way is never cut, so this overshoots by as
    /// much as is in flight.
    pub bandwidth: Option<u64>,
    /// Queues of a lower number go first.
    pub precedence: u8,
    /// What is added to [`QueueSettings::precedence`].
    pub precedence_policy: PrecedencePolicy,
    /// Cost it may spend in all; then it is retired, until this is raised.
    pub budget: Option<u64>,
    /// The server group it belongs to, where the operator names one. See [`GroupSettings`].
    pub group: Option<String>,
    /// What it may fetch in all; then it is retired, until this is raised.
    pub quota: Quota,
    /// The same for each host; URIs past it are issued with [`Issue::over_quota`](crate::Issue::over_quota).
    pub host_quota: Quota,
    /// The same for each registrable domain.
    pub domain_quota: Quota,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            politeness: Politeness::default(),
            // With doubling from half a minute to an hour, ten retries spread over three and a half hours.
            max_retries: 10,
            retry_delay: Duration::from_secs(30),
            retry_delay_max: Duration::from_secs(3600),
            valence: 1,
            bandwidth: None,
            // In the middle of the numbers that people use, with room for better ones.
            precedence: 3,
            precedence_policy: PrecedencePolicy::Base,
            budget: None,
            group: None,
            quota: Quota::default(),
            host_quota: Quota::default(),
            domain_quota: Quota::default(),
        }
    }
}

/// How a queue's precedence follows from what it holds and has done (precedence notes; queue policies of BdbFrontier).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PrecedencePolicy {
    /// Nothing is added.
    #[default]
    Base,
    /// The precedence of its best URI that is ready is added.
    HighestUri,
    /// One is added for each step of successes taken: the first so many, then the second so many, and the last step again
    /// and again. A revisit is no new success. Steps of 0 are left out.
    SuccessCounts(Vec<u64>),
}

/// Limits of documents, bytes and time; none is no limit. Prerequisites do not count. Numbers of documents are kept before
/// the fetch that would exceed them; bytes, novelty and time are known after it, so the document that crosses the line is
/// the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Responses of any status, those that are tried again left out.
    pub fetched: Option<u64>,
    /// URIs that have succeeded, each once.
    pub succeeded: Option<u64>,
    /// Documents found new or changed.
    pub novel: Option<u64>,
    /// Bytes of content.
    pub bytes: Option<u64>,
    /// Bytes of content found new or changed.
    pub novel_bytes: Option<u64>,
    /// What exchanges may take, added up, those included that failed or are tried again.
    pub run_time: Option<Duration>,
}

impl Quota {
    /// Which limit `tally` has reached, were `in_process` more documents to come in, each a new success.
    #[must_use]
    pub fn reached(&self, tally: &Tally, in_process: u64) -> Option<&'static str> {
        let is_reached = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        [
            ("fetched", self.fetched, tally.fetched + in_process),
            ("succeeded", self.succeeded, tally.succeeded + in_process),
            ("novel", self.novel, tally.novel),
            ("bytes", self.bytes, tally.bytes),
            ("novel-bytes", self.novel_bytes, tally.novel_bytes),
        ]
        .into_iter()
        .find(|(_, limit, count)| is_reached(*limit, *count))
        .map(|(name, ..)| name)
        .or_else(|| {
            let is_spent = |limit: Duration| tally.run_time >= limit;
            self.run_time.is_some_and(is_spent).then_some("run-time")
        })
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What limits the queues of a server group together: those on one IP address, or those an operator put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSettings {
    /// URIs of all its queues that may be in process at the same time, at least 1.
    pub valence: u16,
    /// Shortest rest between the end of a fetch and the start of the next of the group, for each slot of its valence.
    pub min_delay: Duration,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            valence: 1,
            min_delay: Duration::ZERO,
        }
    }
}

/// Says what is set for a queue of this name. Must answer the same as long as
/// [`Config::settings_hash`](crate::Config::settings_hash) is the same.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(&str) -> QueueSettings + Send + Sync>);

impl Resolver {
    /// A resolver that asks this function.
    pub fn new(resolve: impl Fn(&str) -> QueueSettings + Send + Sync + 'static) -> Self {
        Self(Arc::new(resolve))
    }

    pub(crate) fn resolve(&self, queue: &str) -> QueueSettings {
        (self.0)(queue)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Resolver")
    }
}

/// How long a URI may wait between two visits, and after one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// The wait after the first failure; doubles with each further one in a row.
    pub min: Duration,
    /// Where the doubling ends. No wait is longer.
    pub max: Duration,
}

impl Default for WaitLimits {
    fn default() -> Self {
        Self {
            // An hour to four weeks: the profile's defaults.
            min: Duration::from_secs(3600),
            max: Duration::from_secs(28 * 24 * 3600),
        }
    }
}

/// Says how long a URI may wait. Asked when a visit has failed.
#[derive(Clone)]
pub struct WaitResolver(Arc<ResolveWaits>);

type ResolveWaits = dyn Fn(&Uri, &UriRecord) -> WaitLimits + Send + Sync;

impl WaitResolver {
    /// A resolver that asks this function.
    pub fn new(resolve: impl Fn(&Uri, &UriRecord) -> WaitLimits + Send + Sync + 'static) -> Self {
        Self(Arc::new(resolve))
    }

    pub(crate) fn resolve(&self, uri: &Uri, record: &UriRecord) -> WaitLimits {
        (self.0)(uri, record)
    }
}

impl fmt::Debug for WaitResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WaitResolver")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_reserve_what_is_in_process_and_volumes_do_not() {
        let quota = Quota {
            fetched: Some(10),
            bytes: Some(1000),
            ..Quota::default()
        };
        let tally = |fetched, bytes| Tally {
            fetched,
            bytes,
            ..Tally::default()
        };
        for (fetched, bytes, in_process, expected) in [
            (0, 0, 0, None),
            (9, 999, 0, None),
            (9, 999, 1, Some("fetched")),
            (10, 0, 0, Some("fetched")),
            (3, 1000, 0, Some("bytes")),
        ] {
            assert_eq!(
                quota.reached(&tally(fetched, bytes), in_process),
                expected,
                "{fetched} {bytes} {in_process}"
            );
        }
        assert_eq!(
            Quota::default().reached(&tally(u64::MAX, u64::MAX), 0),
            None
        );
    }
}
