//! Limits of the profile on time, for this process and for the whole crawl. `document_room.rs` has the limits on counts,
//! `shared_limits.rs` the limits of a crawl that several nodes share.

use std::time::Duration;

use super::Crawl;
use opilio_job::End;

impl Crawl {
    pub(super) fn limit_reached(&self) -> Option<End> {
        if self.time_left_of_process().is_zero() {
            return Some(End::TimeLimit);
        }
        // Limits on time of a shared crawl apply to each node.
        let quota = self.run_time_quota();
        if quota.is_some_and(|limit| self.run_time() >= limit) {
            return Some(End::Quota("run-time"));
        }
        self.context.reached_limit()
    }

    /// Returns the time for which the crawl may continue; the maximum if the profile sets no limit.
    pub(super) fn time_left(&self) -> Duration {
        let quota = self.run_time_quota();
        let of_job = quota.map_or(Duration::MAX, |quota| quota.saturating_sub(self.run_time()));
        of_job.min(self.time_left_of_process())
    }

    fn time_left_of_process(&self) -> Duration {
        let limit = self.context.current().limits.time;
        limit.map_or(Duration::MAX, |limit| {
            limit.saturating_sub(self.began.elapsed())
        })
    }

    /// Releases the rest of this node's shares of limits to other nodes. No URI may be in process.
    pub(super) fn release_shares(&self) {
        if let Some(membership) = &self.context.membership {
            membership.limits.release(&self.context.counted_limits());
        }
    }

    /// Returns the run time of the crawl over all its processes. The frontier's statistics are updated only at intervals.
    fn run_time(&self) -> Duration {
        self.baseline.run_time + self.began.elapsed()
    }

    /// Returns the run time after which the whole crawl ends.
    fn run_time_quota(&self) -> Option<Duration> {
        self.context.current().quotas.crawl.run_time
    }
}
