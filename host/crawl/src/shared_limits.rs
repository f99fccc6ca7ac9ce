//! Limits of a crawl that several nodes share. They count over the whole crawl, from its beginning.
//!
//! Each limit is an account in the job's bucket (`host/cluster/src/budget.rs`). A node takes shares of the remaining number, and
//! issues nothing beyond its shares. A node with nothing to do returns the rest of its shares. So documents never exceed their
//! limit, and bytes exceed it by the documents in flight at most. The limit is reached when all of it is spent. No message is
//! needed for a single document.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opilio_cluster::{BudgetChangeError, ClusterJob};
use opilio_frontier::Tally;
use opilio_profile::{ByteSize, Profile};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use opilio_job::End;

/// A limit of the whole crawl, with the count of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedLimit {
    /// Name of its account.
    name: &'static str,
    limit: u64,
    end: End,
    /// `true` if each URI in process may add one to the count.
    counts_documents: bool,
    /// Count of this node since the job was made.
    count: u64,
}

/// This node's shares of the limits.
#[derive(Default)]
pub(crate) struct SharedLimits {
    shares: Mutex<BTreeMap<&'static str, LimitShare>>,
    wanted: Notify,
    changed: Notify,
}

/// This node's share of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LimitShare {
    /// Count that this node may reach.
    taken: u64,
    /// `true` if this node needs a larger share to continue.
    is_wanted: bool,
    /// `true` if all nodes together have reached the limit.
    is_over: bool,
}

impl SharedLimits {
    /// Returns the reason to end if all nodes together have reached a limit.
    pub(crate) fn reached(&self, limits: &[CountedLimit]) -> Option<End> {
        let shares = self.lock();
        let is_over = |limit: &&CountedLimit| {
            let share = shares.get(limit.name);
            share.is_some_and(|share| share.is_over)
        };
        limits
            .iter()
            .find(is_over)
            .map(|reached| reached.end.clone())
    }

    /// Returns `true` if one more document may begin, on the assumption that all in process succeed. Otherwise a larger share is
    /// requested.
    ///
    /// Nodes take their shares of the limits in one order. A node that waits for its share of one limit and has nothing in process
    /// leaves its shares of the later ones to others, because two nodes could wait for each other.
    pub(crate) fn has_room(&self, limits: &[CountedLimit], at_work: usize) -> bool {
        let mut shares = self.lock();
        let mut has_room = true;
        for limit in limits {
            let share = shares.entry(limit.name).or_default();
            if !has_room {
                if at_work == 0 {
                    (share.taken, share.is_wanted) = (limit.count, false);
                }
                continue;
            }
            let in_process = if limit.counts_documents { at_work } else { 0 };
            if limit.count + in_process as u64 >= share.taken {
                share.is_wanted = true;
                has_room = false;
            }
        }
        drop(shares);
        if !has_room {
            self.wanted.notify_one();
        }
        has_room
    }

    /// Releases the rest of this node's shares to other nodes. No URI may be in process.
    pub(crate) fn release(&self, limits: &[CountedLimit]) {
        let mut shares = self.lock();
        for limit in limits {
            let share = shares.entry(limit.name).or_default();
            (share.taken, share.is_wanted) = (limit.count, false);
        }
    }

    /// Reports the counts of this node, and takes the requested shares. Returns `true` if the node may issue more than before, or
    /// must end. `part` has the name of this node's part and the number of parts.
    pub(crate) async fn update_shares(
        &self,
        job: &ClusterJob,
        (part, parts): (&str, u64),
        limits: &[CountedLimit],
    ) -> Result<bool, BudgetChangeError> {
        let mut is_changed = false;
        for limit in limits {
            let name = limit.name;
            let share = self.lock().get(name).copied().unwrap_or_default();
            let changed = job.change_budget(name, limit.limit, |account| {
                account.report(part, limit.count, share.taken);
                account.approach_total(limit.limit);
                let taken = account.taken(part);
                Ok(match share.is_wanted {
                    true => account.take(part, taken, u64::MAX, parts),
                    false => taken,
                })
            });
            let (account, taken) = changed.await?;
            let mut shares = self.lock();
            let now = shares.entry(name).or_default();
            let before = *now;
            // The limit was lowered: the unspent share is returned with the next report.
            now.taken = match account.total() > limit.limit {
                true => limit.count,
                false => taken,
            };
            now.is_over = account.spent() >= limit.limit;
            now.is_wanted &= now.taken <= before.taken;
            is_changed |= now.taken > before.taken || now.is_over;
        }
        if is_changed {
            self.changed.notify_waiters();
        }
        Ok(is_changed)
    }

    /// Resolves when this node may issue more than at the call, or must end.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until a larger share is requested.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, LimitShare>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names of the accounts.
const FETCHED: &str = "fetched";
const SUCCEEDED: &str = "succeeded";
const NOVEL: &str = "novel";
const BYTES: &str = "bytes";
const NOVEL_BYTES: &str = "novel-bytes";
const ARCHIVE: &str = "archive";

impl CountedLimit {
    /// Sets the count. `archived` is the size of the archive files.
    pub(crate) fn count(&mut self, tally: &Tally, archived: u64) {
        self.count = match self.name {
            FETCHED => tally.fetched,
            SUCCEEDED => tally.succeeded,
            NOVEL => tally.novel,
            BYTES => tally.bytes,
            NOVEL_BYTES => tally.novel_bytes,
            _ => archived,
        };
    }

    /// Returns `true` if requests of rendered pages count for this limit. They do not count as successes.
    pub(crate) fn counts_requests(&self) -> bool {
        self.name != SUCCEEDED
    }

    /// Adds requests in flight of rendered pages.
    pub(crate) fn count_in_passing(&mut self, requests: u64) {
        if self.name == FETCHED {
            self.count += requests;
        }
    }
}

/// Returns the limits of a profile, without counts. Of several limits on one count the smallest applies.
pub(crate) fn limits_of(profile: &Profile) -> Vec<CountedLimit> {
    let (limits, quota) = (&profile.limits, &profile.quotas.crawl);
    let bytes = |size: Option<ByteSize>| size.map(|size| size.bytes());
    let all = [
        (FETCHED, limits.documents, End::DocumentLimit),
        (FETCHED, limits.fetched, End::DocumentLimit),
        (FETCHED, quota.fetched, End::Quota("fetched")),
        (SUCCEEDED, limits.succeeded, End::DocumentLimit),
        (SUCCEEDED, quota.succeeded, End::Quota("succeeded")),
        (NOVEL, limits.novel_documents, End::DocumentLimit),
        (NOVEL, quota.novel, End::Quota("novel")),
        (BYTES, bytes(limits.bytes), End::ByteLimit),
        (BYTES, quota.bytes, End::Quota("bytes")),
        (NOVEL_BYTES, bytes(limits.novel_bytes), End::ByteLimit),
        (NOVEL_BYTES, quota.novel_bytes, End::Quota("novel-bytes")),
        (
            ARCHIVE,
            bytes(profile.archive.max_total_bytes),
            End::ArchiveLimit,
        ),
    ];
    let mut found: Vec<CountedLimit> = Vec::new();
    for (name, limit, end) in all {
        let Some(limit) = limit else { continue };
        let counted = CountedLimit {
            name,
            limit,
            end,
            counts_documents: [FETCHED, SUCCEEDED].contains(&name),
            count: 0,
        };
        match found.iter_mut().find(|known| known.name == name) {
            Some(known) if known.limit <= limit => {}
            Some(known) => *known = counted,
            None => found.push(counted),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use opilio_profile::ProfileContext;

    use super::*;

    fn limit(count: u64) -> [CountedLimit; 1] {
        [CountedLimit {
            name: FETCHED,
            limit: 100,
            end: End::DocumentLimit,
            counts_documents: true,
            count,
        }]
    }

    #[test]
    fn no_uri_is_issued_beyond_the_share_and_the_unused_share_is_returned() {
        let limits = SharedLimits::default();
        assert!(!limits.has_room(&limit(0), 0));
        limits.lock().get_mut(FETCHED).unwrap().taken = 3;
        assert!(limits.has_room(&limit(1), 1));
        assert!(!limits.has_room(&limit(1), 2));
        let mut with_requests = limit(1);
        with_requests[0].count_in_passing(1);
        assert!(!limits.has_room(&with_requests, 1));
        limits.release(&limit(1));
        assert!(!limits.has_room(&limit(1), 0));
        assert_eq!(limits.reached(&limit(1)), None);
        limits.lock().get_mut(FETCHED).unwrap().is_over = true;
        assert_eq!(limits.reached(&limit(1)), Some(End::DocumentLimit));
    }

    #[test]
    fn an_idle_node_that_waits_for_one_limit_releases_its_shares_of_later_limits() {
        let limits = SharedLimits::default();
        let [fetched] = limit(1);
        let succeeded = CountedLimit {
            name: SUCCEEDED,
            ..limit(0)[0].clone()
        };
        let both = [fetched, succeeded];
        assert!(!limits.has_room(&both, 0));
        for (name, taken) in [(FETCHED, 1), (SUCCEEDED, 5)] {
            limits.lock().get_mut(name).unwrap().taken = taken;
        }
        let share = |name| limits.lock()[name];
        // URIs in process may succeed.
        assert!(!limits.has_room(&both, 1));
        assert_eq!(share(SUCCEEDED).taken, 5);
        assert!(!limits.has_room(&both, 0));
        assert!(share(FETCHED).is_wanted);
        assert_eq!(
            (share(SUCCEEDED).taken, share(SUCCEEDED).is_wanted),
            (0, false)
        );
    }

    #[test]
    fn requests_of_rendered_pages_need_no_share_of_the_limit_on_successes() {
        let limits = SharedLimits::default();
        let [fetched] = limit(0);
        let succeeded = CountedLimit {
            name: SUCCEEDED,
            ..fetched.clone()
        };
        let mut both = vec![fetched, succeeded];
        assert!(!limits.has_room(&both, 1));
        // Only the page itself counts as a success.
        for (name, taken) in [(FETCHED, 9), (SUCCEEDED, 1)] {
            limits.lock().get_mut(name).unwrap().taken = taken;
        }
        assert!(!limits.has_room(&both, 1));
        both.retain(CountedLimit::counts_requests);
        assert!(limits.has_room(&both, 1));
    }

    #[test]
    fn of_two_limits_on_one_count_the_smaller_applies() {
        let given = ProfileContext {
            builtins: opilio_stacks::builtin_plugins(),
            ..ProfileContext::default()
        };
        let profile = |text: &str| {
            let text = format!("name = 'p'\nseeds = ['http://a.localhost/']\n{text}");
            Profile::parse("p.toml", &text, &given).unwrap()
        };
        let found = limits_of(&profile(
            "limits = { documents = 50, bytes = \"1MiB\" }\nquotas.crawl.fetched = 40\n",
        ));
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name, it.limit, &it.end))
            .collect();
        let expected = [
            (FETCHED, 40, &End::Quota("fetched")),
            (BYTES, 1 << 20, &End::ByteLimit),
        ];
        assert_eq!(found, expected);
        assert!(limits_of(&profile("")).is_empty());
    }
}
