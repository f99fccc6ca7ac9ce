//! Settings of a queue and of a server group. The profile resolves those of a queue from its name. The frontier stores them with
//! the queue, so that a restart has them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Politeness, Quota};

/// The behaviour of a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Politeness delay between its fetches.
    pub politeness: Politeness,
    /// Retries of a URI after a failed attempt. One more makes it a failure.
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
    /// Quota of each host. URIs past it are issued as over quota, and not fetched.
    pub host_quota: Quota,
    /// Quota of each registrable domain, with the same effect.
    pub domain_quota: Quota,
}

/// For tests and tools that use a frontier without a profile. A crawl takes every value from its profile.
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
            // A middle number, which leaves lower ones for queues that go first.
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

impl QueueSettings {
    /// The back-off after the last of `failures` in a row, counted from 1.
    #[must_use]
    pub fn back_off(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.retry_delay
            .saturating_mul(factor)
            .min(self.retry_delay_max)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_limit() {
        let settings = QueueSettings {
            retry_delay: Duration::from_secs(30),
            retry_delay_max: Duration::from_secs(3600),
            ..QueueSettings::default()
        };
        for (failures, seconds) in [
            (1, 30),
            (2, 60),
            (3, 120),
            (7, 1920),
            (8, 3600),
            (40, 3600),
            (u32::MAX, 3600),
        ] {
            assert_eq!(
                settings.back_off(failures),
                Duration::from_secs(seconds),
                "{failures}"
            );
        }
    }
}
