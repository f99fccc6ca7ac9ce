//! Settings of a queue. The reader of the profile resolves them from the queue's name. They are stored with the queue, so that a
//! restart has them.

use std::{fmt, sync::Arc, time::Duration};

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::{Tally, UriRecord};

/// The behaviour of a queue. It is the same for every queue unless a [`Resolver`] gives other settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Politeness delay between its fetches.
    pub politeness: Politeness,
    /// Retries of a URI after [`Outcome::Retry`](crate::Outcome::Retry). One more makes it a failure.
    pub max_retries: u32,
    /// Wait of a URI, or of the queue, after its first failure in a row. It doubles with each further one.
    pub retry_delay: Duration,
    /// Upper limit of the doubling.
    pub retry_delay_max: Duration,
    /// URIs that may be in process at once, at least 1. Each has a slot with its own delay (the thesis' host valence). It is 1
    /// while the queue is failing, or a prerequisite of its URIs is in process.
    pub valence: u16,
    /// Bytes a second that its fetches may average. A fetch in flight is never cut, so the bytes in flight may exceed the limit.
    pub bandwidth: Option<u64>,
    /// Its base precedence: queues of a lower number go first.
    pub precedence: u8,
    /// Policy for the number that is added to [`QueueSettings::precedence`].
    pub precedence_policy: PrecedencePolicy,
    /// Cost that it may spend in all. Then it is retired, until the budget is raised.
    pub budget: Option<u64>,
    /// Its server group, if the operator names one. See [`GroupSettings`].
    pub group: Option<String>,
    /// Quota of the queue. When it is reached, the queue is retired until the quota is raised.
    pub quota: Quota,
    /// Quota of each host. URIs past it are issued with [`Issue::over_quota`](crate::Issue::over_quota).
    pub host_quota: Quota,
    /// Quota of each registrable domain, with the same effect.
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
            // A middle number, with room for better ones.
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

/// Policy by which a queue's precedence follows from its content and history (precedence notes; queue policies of BdbFrontier).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PrecedencePolicy {
    /// Nothing is added.
    #[default]
    Base,
    /// The precedence of its best ready URI is added.
    HighestUri,
    /// One is added for each completed step of successes. The first number is the first step, the second the second, and the last
    /// step repeats. A revisit does not count as a new success. Steps of 0 are left out.
    SuccessCounts(Vec<u64>),
}

/// Limits of documents, bytes and time; `None` means no limit. Prerequisites do not count. Numbers of documents are checked
/// before the fetch that would exceed them. Bytes, novelty and time are known only after it, so the document that exceeds them is
/// the last.
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
    /// The limit that `tally` reaches if `in_process` more documents come in, each a new success.
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

/// Limits that the queues of a server group share. The queues are on one IP address, or an operator put them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSettings {
    /// URIs of all its queues that may be in process at once, at least 1.
    pub valence: u16,
    /// Shortest delay between the end of a fetch and the start of the next of the group, for each slot of its valence.
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

/// Resolves the settings of a queue from its name. The answer must be the same while
/// [`Config::settings_hash`](crate::Config::settings_hash) is the same.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(&str) -> QueueSettings + Send + Sync>);

impl Resolver {
    /// Makes a resolver from this function.
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

/// Limits of a URI's wait between two visits, and after a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// The wait after the first failure. It doubles with each further one in a row.
    pub min: Duration,
    /// Upper limit of the doubling. No wait is longer.
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

/// Resolves the wait limits of a URI. It is called when a visit has failed.
#[derive(Clone)]
pub struct WaitResolver(Arc<ResolveWaits>);

type ResolveWaits = dyn Fn(&Uri, &UriRecord) -> WaitLimits + Send + Sync;

impl WaitResolver {
    /// Makes a resolver from this function.
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

/// Settings of a queue's politeness delay between the end of one fetch and the start of the next. The delay is `delay_factor` ×
/// the duration of the fetch, kept between `min_delay` and `max_delay`. It is never less than the crawl-delay of the queue's
/// robots.txt or the `Retry-After` of its last response, within their maxima.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Politeness {
    /// Factor of the duration of the last fetch. A negative factor, or one that is not a number, counts as 0.
    pub delay_factor: f64,
    /// Shortest delay.
    pub min_delay: Duration,
    /// Longest delay that the factor alone can cause. If it is below `min_delay`, `min_delay` applies.
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
