//! Quotas of a queue, host, domain or seed, and of the crawl.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Quotas of each queue, host, domain or source seed, and of the crawl; robots.txt and DNS do not count. Document quotas apply
/// before a fetch. Quotas of bytes, novelty and time may be exceeded by one document. `[limits]` count only for one process of a
/// crawl.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QuotasFile {
    /// Quota of each queue. It is retired when it has reached one of them.
    pub queue: QuotaFile,
    /// Quota of each host name, whatever the port.
    pub host: QuotaFile,
    /// Quota of each registered domain with all hosts below it.
    pub domain: QuotaFile,
    /// Quota of each seed, with all URIs that were found from it.
    pub source: QuotaFile,
    /// Quota of the crawl as a whole, counted over all its processes. Its time is the time for which it ran.
    pub crawl: QuotaFile,
}

/// Limits of one quota.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QuotaFile {
    /// Answers of any status, without those that are retried. Default `"none"`: no limit; sites are fetched completely.
    pub fetched: CountWritten,
    /// URIs that have succeeded, each once. Default `"none"`: no limit; sites are fetched completely.
    pub succeeded: CountWritten,
    /// Documents whose content was new or changed. Default `"none"`: no limit; sites are fetched completely.
    pub novel: CountWritten,
    /// Bytes of content. Default `"none"`: no limit; sites are fetched completely.
    pub bytes: SizeWritten,
    /// Bytes of documents whose content was new or changed. Default `"none"`: no limit; sites are fetched completely.
    pub novel_bytes: SizeWritten,
    /// Total duration of fetches, including those that failed. Default `"none"`: no limit; sites are fetched completely.
    pub run_time: DurationWritten,
}

/// Quotas of each queue, host, domain or source seed, and of the crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Quota of each queue.
    pub queue: Quota,
    /// Quota of each host name.
    pub host: Quota,
    /// Quota of each registered domain.
    pub domain: Quota,
    /// Quota of each seed, with all URIs that were found from it. The same for every queue.
    pub source: Quota,
    /// Quota of the crawl as a whole, over all its processes.
    pub crawl: Quota,
}

/// Limits of one quota; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Answers of any status, without those that are retried.
    pub fetched: Option<u64>,
    /// URIs that have succeeded, each once.
    pub succeeded: Option<u64>,
    /// Documents whose content was new or changed.
    pub novel: Option<u64>,
    /// Bytes of content.
    pub bytes: Option<ByteSize>,
    /// Bytes of documents whose content was new or changed.
    pub novel_bytes: Option<ByteSize>,
    /// Total duration of fetches, including those that failed.
    pub run_time: Option<Duration>,
}

impl Default for QuotaFile {
    fn default() -> Self {
        Self {
            fetched: "none".into(),
            succeeded: "none".into(),
            novel: "none".into(),
            bytes: "none".into(),
            novel_bytes: "none".into(),
            run_time: "none".into(),
        }
    }
}

impl QuotasFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Quotas {
        Quotas {
            queue: self.queue.check(part.part("queue")),
            host: self.host.check(part.part("host")),
            domain: self.domain.check(part.part("domain")),
            source: self.source.check(part.part("source")),
            crawl: self.crawl.check(part.part("crawl")),
        }
    }
}

impl QuotaFile {
    fn check(&self, mut part: Part<'_, '_>) -> Quota {
        Quota {
            fetched: part.count_limit("fetched", &self.fetched),
            succeeded: part.count_limit("succeeded", &self.succeeded),
            novel: part.count_limit("novel", &self.novel),
            bytes: part.size_limit("bytes", &self.bytes),
            novel_bytes: part.size_limit("novel-bytes", &self.novel_bytes),
            run_time: part.duration_limit("run-time", &self.run_time),
        }
    }
}

impl Quota {
    /// Whether there is any limit.
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }
}
