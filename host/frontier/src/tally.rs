//! Tallies: counts of queues, hosts, domains and sources, with which quotas are compared.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    #[schema(value_type = Object)]
    pub run_time: Duration,
}

impl Tally {
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
