//! What queues, hosts, domains and sources have brought in: what quotas are held against.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Documents, bytes and time so far. Prerequisites do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tally {
    /// Responses of any status, those that are tried again left out.
    pub fetched: u64,
    /// URIs that have succeeded, each once.
    pub succeeded: u64,
    /// Documents found new or changed.
    pub novel: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes of content found new or changed.
    pub novel_bytes: u64,
    /// What exchanges took, added up, those included that failed or are tried again.
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

/// What a tally is kept of. Queues keep theirs with their record.
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
    /// The word for it in keys and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Source => "source",
        }
    }
}

/// A limit that has been reached before a URI was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// Of what.
    pub kind: TallyKind,
    /// Its name: the host, the domain, the source seed.
    pub name: String,
    /// Which limit, by its name in [`Quota`](crate::Quota).
    pub limit: &'static str,
}
