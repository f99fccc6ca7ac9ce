//! Limits of the crawl on documents: the number of documents that may still begin, on the assumption that all in process succeed.
//!
//! Two parts of the crawl begin documents: the dispatcher, with each issued URI, and rendered pages, with each request. Both
//! reserve a place here, one at a time, so that the same place is not used twice.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opilio_frontier::{Quota, Tally};
use opilio_job::End;
use opilio_profile::ByteSize;

use super::CrawlContext;
use crate::shared_limits::CountedLimit;

/// Longest wait of a request for this node's share of a limit. NATS answers sooner, unless the other nodes have all of the limit.
const SHARE_WAIT_MAX: Duration = Duration::from_secs(5);

/// The documents in process.
#[derive(Default)]
pub(crate) struct DocumentsInProcess(Mutex<InProcess>);

/// Numbers of documents in process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InProcess {
    /// Issued URIs.
    issued: u64,
    /// Requests of rendered pages.
    in_passing: u64,
}

/// A document that is to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextDocument {
    /// An issued URI, which may count as a success.
    Issued,
    /// A request of a rendered page.
    InPassing,
}

/// The place of a request of a rendered page under the limits. It must be kept until the request has been counted.
pub(crate) struct RequestPlace(Arc<DocumentsInProcess>);

impl DocumentsInProcess {
    /// Reserves a place for one more URI in addition to `at_work` URIs, if `has_room` returns `true`.
    fn issue(&self, at_work: u64, has_room: impl FnOnce(InProcess) -> bool) -> bool {
        let mut in_process = self.lock();
        in_process.issued = at_work;
        let has_room = has_room(*in_process);
        in_process.issued += u64::from(has_room);
        has_room
    }

    /// Reserves a place for one more request, if `has_room` returns `true`.
    fn begin_request(
        self: &Arc<Self>,
        has_room: impl FnOnce(InProcess) -> bool,
    ) -> Option<RequestPlace> {
        let mut in_process = self.lock();
        if !has_room(*in_process) {
            return None;
        }
        in_process.in_passing += 1;
        drop(in_process);
        Some(RequestPlace(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, InProcess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.0.lock().in_passing -= 1;
    }
}

impl CrawlContext {
    /// Returns `true` and reserves a place if one more URI may be issued in addition to `at_work` URIs.
    pub(crate) fn may_issue(&self, at_work: usize) -> bool {
        let has_room = |in_process| self.has_room(NextDocument::Issued, in_process);
        self.figures.in_process.issue(at_work as u64, has_room)
    }

    /// Records that no URI is issued in addition to `at_work` URIs.
    pub(crate) fn nothing_issued(&self, at_work: usize) {
        self.figures.in_process.issue(at_work as u64, |_| false);
    }

    /// Reserves the place of one more request of a rendered page. Returns `None` if the request could exceed a limit of the crawl.
    /// In a shared crawl, it waits for this node's share.
    pub(crate) async fn place_for_request(&self) -> Option<RequestPlace> {
        if let Some(place) = self.free_place() {
            return Some(place);
        }
        let membership = self.membership.as_ref()?;
        let wait = async {
            loop {
                // Registered before the check, so that no change is missed.
                let changed = membership.limits.changed();
                if let Some(place) = self.free_place() {
                    return Some(place);
                }
                if self.reached_limit().is_some() {
                    return None;
                }
                changed.await;
            }
        };
        tokio::time::timeout(SHARE_WAIT_MAX, wait).await.ok()?
    }

    fn free_place(&self) -> Option<RequestPlace> {
        let has_room = |in_process| {
            self.reached_limit().is_none() && self.has_room(NextDocument::InPassing, in_process)
        };
        self.figures.in_process.begin_request(has_room)
    }

    /// Returns the reason to end if a limit of the crawl is reached. Times are not among these limits.
    pub(crate) fn reached_limit(&self) -> Option<End> {
        if let Some(membership) = &self.membership {
            return membership.limits.reached(&self.counted_limits());
        }
        let profile = self.current();
        let counters = &self.figures.counters;
        let limits = &profile.limits;
        let is_reached = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        let bytes = |limit: Option<ByteSize>| limit.map(|limit| limit.bytes());
        if is_reached(limits.documents, counters.documents.load(Ordering::Relaxed)) {
            return Some(End::DocumentLimit);
        }
        if is_reached(bytes(limits.bytes), counters.bytes.load(Ordering::Relaxed)) {
            return Some(End::ByteLimit);
        }
        let written = self.outputs.writers.bytes();
        if is_reached(bytes(profile.archive.max_total_bytes), written) {
            return Some(End::ArchiveLimit);
        }
        if let Some(quota) = self.reached_quota(&self.quota(), InProcess::default()) {
            return Some(End::Quota(quota));
        }
        let counted = [limits.fetched, limits.succeeded, limits.novel_documents];
        if counted.iter().all(Option::is_none) && limits.novel_bytes.is_none() {
            return None;
        }
        let since = self.tally_of_process();
        let counts = [since.fetched, since.succeeded, since.novel];
        if counted
            .into_iter()
            .zip(counts)
            .any(|(limit, count)| is_reached(limit, count))
        {
            return Some(End::DocumentLimit);
        }
        is_reached(bytes(limits.novel_bytes), since.novel_bytes).then_some(End::ByteLimit)
    }

    /// Returns `true` if this document may begin, on the assumption that it and all in process succeed. Otherwise, in a shared
    /// crawl, a larger share is requested.
    fn has_room(&self, next: NextDocument, in_process: InProcess) -> bool {
        let is_request = next == NextDocument::InPassing;
        if let Some(membership) = &self.membership {
            let mut limits = self.counted_limits();
            if is_request {
                limits.retain(CountedLimit::counts_requests);
            }
            for limit in &mut limits {
                limit.count_in_passing(in_process.in_passing);
            }
            let issued = usize::try_from(in_process.issued).unwrap_or(usize::MAX);
            return membership.limits.has_room(&limits, issued);
        }
        let profile = self.current();
        let limits = &profile.limits;
        let room = |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count < limit);
        let InProcess { issued, in_passing } = in_process;
        let documents = &self.figures.counters.documents;
        let documents = documents.load(Ordering::Relaxed) + issued + in_passing;
        // Requests of pages do not count as successes, so the last page under a limit on successes can load all its parts.
        let of_successes = |limit: Option<u64>| limit.filter(|_| !is_request);
        let quota = self.quota();
        let quota = Quota {
            succeeded: of_successes(quota.succeeded),
            ..quota
        };
        if !room(limits.documents, documents) || self.reached_quota(&quota, in_process).is_some() {
            return false;
        }
        let succeeded = of_successes(limits.succeeded);
        if limits.fetched.is_none() && succeeded.is_none() {
            return true;
        }
        let since = self.tally_of_process();
        room(limits.fetched, since.fetched + issued + in_passing)
            && room(succeeded, since.succeeded + issued)
    }

    /// Returns the quota of the whole crawl, without its time.
    fn quota(&self) -> Quota {
        Quota {
            run_time: None,
            ..self.current().quotas.crawl
        }
    }

    /// Returns the limit of a quota of the whole crawl that is reached with the documents in process. The counts cover all
    /// processes of the crawl.
    fn reached_quota(&self, quota: &Quota, in_process: InProcess) -> Option<&'static str> {
        if !quota.is_some() {
            return None;
        }
        let mut tally = self.frontier().statistics().tally;
        tally.fetched += in_process.in_passing;
        tally.reached(quota, in_process.issued)
    }

    /// Returns the tally of this process.
    fn tally_of_process(&self) -> Tally {
        let now = self.frontier().statistics().tally;
        let before = self.figures.tally_before;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a check of a limit with this many documents left.
    fn left(documents: u64) -> impl Fn(InProcess) -> bool {
        move |InProcess { issued, in_passing }| issued + in_passing < documents
    }

    #[test]
    fn uris_and_requests_of_pages_do_not_use_the_same_place_under_a_limit() {
        let documents = Arc::<DocumentsInProcess>::default();
        // Places for the page itself and the next URI.
        assert!(documents.issue(1, left(5)));
        let places: Vec<_> = (0..5)
            .map_while(|_| documents.begin_request(left(5)))
            .collect();
        assert_eq!(places.len(), 3);
        assert!(!documents.issue(2, left(5)));
        // No URI was issued.
        documents.issue(1, |_| false);
        let last = documents.begin_request(left(5));
        assert!(last.is_some());
        assert!(documents.begin_request(left(5)).is_none());
        assert!(!documents.issue(1, left(5)));
        // All requests end without a response.
        drop((last, places));
        assert!(documents.issue(1, left(5)));
        let expected = InProcess {
            issued: 2,
            in_passing: 0,
        };
        assert_eq!(*documents.lock(), expected);
    }
}
