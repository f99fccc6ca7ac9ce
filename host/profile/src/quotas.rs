//! How much is fetched of one queue, host, domain or seed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// How much is fetched of each queue, host, domain or source seed, and in all; robots.txt and DNS do not count. Numbers are looked at
/// before a fetch that would exceed them, bytes, novelty and time with the document that crosses
/// them. `[limits]` count for one process of a crawl alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QuotasFile {
    /// Of each queue. It is retired when it has reached one of them.
    pub queue: QuotaFile,
    /// Of each host name, whatever the port.
    pub host: QuotaFile,
    /// Of each registered domain with all hosts below it.
    pub domain: QuotaFile,
    /// Of each seed, with all that was found from it.
    pub source: QuotaFile,
    /// Of the crawl as a whole, counted over all its processes; its time is that for which it ran.
    pub crawl: QuotaFile,
}

/// How much is fetched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QuotaFile {
    /// Answers of any status, those that are tried again left out. Default `"none"`: no limit; a site is fetched whole.
    pub fetched: CountWritten,
    /// URIs that have succeeded, each once. Default `"none"`: no limit; a site is fetched whole.
    pub succeeded: CountWritten,
    /// Documents whose content was new or changed. Default `"none"`: no limit; a site is fetched whole.
    pub novel: CountWritten,
    /// Bytes of content. Default `"none"`: no limit; a site is fetched whole.
    pub bytes: SizeWritten,
    /// Bytes of documents whose content was new or changed. Default `"none"`: no limit; a site is fetched whole.
    pub novel_bytes: SizeWritten,
    /// What fetches took, added up, those included that failed. Default `"none"`: no limit; a site is fetched whole.
    pub run_time: DurationWritten,
}

/// How much is fetched of each queue, host, domain or source seed, and in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Of each queue.
    pub queue: Quota,
    /// Of each host name.
    pub host: Quota,
    /// Of each registered domain.
    pub domain: Quota,
    /// Of each seed, with all that was found from it. The same for every queue.
    pub source: Quota,
    /// Of the crawl as a whole, over all its processes.
    pub crawl: Quota,
}

/// How much is fetched; none means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Answers of any status, those that are tried again left out.
    pub fetched: Option<u64>,
    /// URIs that have succeeded, each once.
    pub succeeded: Option<u64>,
    /// Documents whose content was new or changed.
    pub novel: Option<u64>,
    /// Bytes of content.
    pub bytes: Option<ByteSize>,
    /// Bytes of documents whose content was new or changed.
    pub novel_bytes: Option<ByteSize>,
    /// What fetches took, added up, those included that failed.
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
