//! Tallies: counts of queues, hosts, domains and sources, with which quotas are compared.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Quota;

/// Documents, bytes and time so far. Prerequisites do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tally {
    /// Responses of any status, without those that are retried.
    pub fetched: u64,
    /// URIs that have succeeded, each once.
    pub succeeded: u64,
    /// Documents found new or changed.
    pub novel: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes of content found new or changed.
    pub novel_bytes: u64,
    /// Total duration of exchanges, including those that failed or are retried.
    #[serde(rename = "run_time_s", with = "opilio_model::seconds")]
    #[schema(value_type = f64)]
    pub run_time: Duration,
}

impl Tally {
    /// The limit of the quota that the tally reaches if `in_process` more documents come in, each a new success.
    #[must_use]
    pub fn reached(&self, quota: &Quota, in_process: u64) -> Option<&'static str> {
        let is_reached = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        [
            ("fetched", quota.fetched, self.fetched + in_process),
            ("succeeded", quota.succeeded, self.succeeded + in_process),
            ("novel", quota.novel, self.novel),
            ("bytes", quota.bytes, self.bytes),
            ("novel-bytes", quota.novel_bytes, self.novel_bytes),
        ]
        .into_iter()
        .find(|(_, limit, count)| is_reached(*limit, *count))
        .map(|(name, ..)| name)
        .or_else(|| {
            let is_spent = |limit: Duration| self.run_time >= limit;
            quota.run_time.is_some_and(is_spent).then_some("run-time")
        })
    }

    /// Counts a success: whether it is the URI's first, whether its content is new or changed, and its size.
    pub(crate) fn succeed(&mut self, is_first: bool, is_novel: bool, bytes: u64) {
        self.fetched += 1;
        self.succeeded += u64::from(is_first);
        self.novel += u64::from(is_novel);
        self.bytes = self.bytes.saturating_add(bytes);
        if is_novel {
            self.novel_bytes = self.novel_bytes.saturating_add(bytes);
        }
    }
}

/// The kind of object that a tally counts for. Queues keep theirs in their record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TallyKind {
    /// A host.
    Host,
    /// A registrable domain.
    Domain,
    /// A source seed.
    Source,
}

impl TallyKind {
    /// Its name in keys and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Source => "source",
        }
    }
}

/// A limit that was reached before a URI was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// Kind of the tally that reached it.
    pub kind: TallyKind,
    /// Its name: the host, the domain, the source seed.
    pub name: String,
    /// The limit, by its name in [`Quota`](crate::Quota).
    pub limit: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_quotas_count_uris_in_process_and_byte_quotas_do_not() {
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
                tally(fetched, bytes).reached(&quota, in_process),
                expected,
                "{fetched} {bytes} {in_process}"
            );
        }
        assert_eq!(
            tally(u64::MAX, u64::MAX).reached(&Quota::default(), 0),
            None
        );
    }
}
