//! Quotas: limits of documents, bytes and time. The frontier has the tallies that they are compared with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    /// Returns `true` if there is any limit.
    #[must_use]
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the quota with a share of each limit. `share` gives the share of a number; times are in milliseconds.
    #[must_use]
    pub fn shared(self, share: impl Fn(u64) -> u64) -> Self {
        let time = |whole: Duration| {
            let milliseconds = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
            Duration::from_millis(share(milliseconds))
        };
        Self {
            fetched: self.fetched.map(&share),
            succeeded: self.succeeded.map(&share),
            novel: self.novel.map(&share),
            bytes: self.bytes.map(&share),
            novel_bytes: self.novel_bytes.map(&share),
            run_time: self.run_time.map(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_shared_and_none_is_added() {
        let whole = Quota {
            fetched: Some(10),
            succeeded: Some(9),
            novel: Some(8),
            bytes: Some(7),
            novel_bytes: None,
            run_time: Some(Duration::from_secs(3)),
        };
        let expected = Quota {
            fetched: Some(5),
            succeeded: Some(4),
            novel: Some(4),
            bytes: Some(3),
            novel_bytes: None,
            run_time: Some(Duration::from_millis(1_500)),
        };
        assert_eq!(whole.shared(|number| number / 2), expected);
    }
}
