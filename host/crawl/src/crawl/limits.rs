//! Limits of the profile, for this process and for the whole crawl. `shared_limits.rs` has those of a crawl that several nodes share.

use std::sync::atomic::Ordering;
use std::time::Duration;

use opilio_frontier::{Quota, Tally};

use super::Crawl;
use opilio_job::End;

impl Crawl {
    pub(super) fn limit_reached(&self) -> Option<End> {
        let profile = self.context.current();
        let limits = &profile.limits;
        let counters = &self.context.figures.counters;
        if self.time_left_of_process().is_zero() {
            return Some(End::TimeLimit);
        }
        if let Some(membership) = &self.context.membership {
            // Times are those of each node.
            let is_spent = |limit: Duration| self.run_time() >= limit;
            return match self.quota().run_time.is_some_and(is_spent) {
                true => Some(End::Quota("run-time")),
                false => membership.limits.reached(&self.context.counted_limits()),
            };
        }
        let documents = counters.documents.load(Ordering::Relaxed);
        if limits.documents.is_some_and(|limit| documents >= limit) {
            return Some(End::DocumentLimit);
        }
        let bytes = counters.bytes.load(Ordering::Relaxed);
        if limits.bytes.is_some_and(|limit| bytes >= limit.bytes()) {
            return Some(End::ByteLimit);
        }
        let archive = &profile.archive;
        let written = self.context.outputs.writers.bytes();
        if archive
            .max_total_bytes
            .is_some_and(|max| written >= max.bytes())
        {
            return Some(End::ArchiveLimit);
        }
        if let Some(quota) = self.quota_reached(0) {
            return Some(End::Quota(quota));
        }
        let counted = [limits.fetched, limits.succeeded, limits.novel_documents];
        if counted.iter().all(Option::is_none) && limits.novel_bytes.is_none() {
            return None;
        }
        let since = self.since_begin();
        let counts = [since.fetched, since.succeeded, since.novel];
        let is_reached =
            |(limit, count): (&Option<u64>, u64)| limit.is_some_and(|limit| count >= limit);
        if counted.iter().zip(counts).any(is_reached) {
            return Some(End::DocumentLimit);
        }
        let is_full = |limit: opilio_profile::ByteSize| since.novel_bytes >= limit.bytes();
        limits
            .novel_bytes
            .is_some_and(is_full)
            .then_some(End::ByteLimit)
    }

    /// Returns how long the crawl may continue; the maximum if the profile sets no limit.
    pub(super) fn time_left(&self) -> Duration {
        let quota = self.quota().run_time;
        let of_job = quota.map_or(Duration::MAX, |quota| quota.saturating_sub(self.run_time()));
        of_job.min(self.time_left_of_process())
    }

    fn time_left_of_process(&self) -> Duration {
        let limit = self.context.current().limits.time;
        limit.map_or(Duration::MAX, |limit| {
            limit.saturating_sub(self.began.elapsed())
        })
    }

    /// Returns `true` if one more document may begin, if all that are in process succeed: the limit is never exceeded.
    pub(super) fn room_for_a_document(&self, at_work: usize) -> bool {
        if let Some(membership) = &self.context.membership {
            let limits = self.context.counted_limits();
            return membership.limits.has_room(&limits, at_work);
        }
        let profile = self.context.current();
        let limits = &profile.limits;
        let at_work = at_work as u64;
        let documents = self
            .context
            .figures
            .counters
            .documents
            .load(Ordering::Relaxed);
        let room =
            |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count + at_work < limit);
        if !room(limits.documents, documents) || self.quota_reached(at_work).is_some() {
            return false;
        }
        if limits.fetched.is_none() && limits.succeeded.is_none() {
            return true;
        }
        let since = self.since_begin();
        room(limits.fetched, since.fetched) && room(limits.succeeded, since.succeeded)
    }

    /// Leaves the rest of this node's shares of limits to other nodes. Nothing may be in process.
    pub(super) fn release_shares(&self) {
        if let Some(membership) = &self.context.membership {
            membership.limits.release(&self.context.counted_limits());
        }
    }

    /// Returns the run time of the crawl over all its processes. The frontier's statistics are updated only at intervals.
    fn run_time(&self) -> Duration {
        self.baseline.run_time + self.began.elapsed()
    }

    /// Returns the quota of the whole crawl.
    fn quota(&self) -> Quota {
        self.context.current().quotas.crawl
    }

    /// Returns the quota of the whole crawl that is reached if so many more documents come in. Counts and run time cover all
    /// processes of the crawl.
    fn quota_reached(&self, at_work: u64) -> Option<&'static str> {
        let quota = self.quota();
        if !quota.is_some() {
            return None;
        }
        let statistics = self.context.frontier().statistics();
        let ran = Tally {
            run_time: self.run_time(),
            ..statistics.tally
        };
        ran.reached(&quota, at_work)
    }

    /// Returns the tally of this process.
    fn since_begin(&self) -> Tally {
        let now = self.context.frontier().statistics().tally;
        let before = self.baseline.tally;
        Tally {
            fetched: now.fetched - before.fetched,
            succeeded: now.succeeded - before.succeeded,
            novel: now.novel - before.novel,
            bytes: now.bytes - before.bytes,
            novel_bytes: now.novel_bytes - before.novel_bytes,
            run_time: now.run_time.saturating_sub(before.run_time),
        }
    }
}
