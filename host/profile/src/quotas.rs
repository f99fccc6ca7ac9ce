//! Quotas of a queue, host, domain or seed, and of the crawl.

use opilio_model::Quota;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Quotas of each queue, host, domain or source seed, and of the crawl; robots.txt and DNS do not count. Document quotas apply
/// before a fetch. Quotas of bytes, new content and time may be exceeded by one document. `[limits]` count only for one process
/// of a crawl.
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
    /// Total duration of fetches, including those that failed. In `quotas.crawl`, the time for which the crawl has run, pauses
    /// included. Default `"none"`: no limit; sites are fetched completely.
    pub run_time: DurationWritten,
}

/// Quotas that are the same for all queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobQuotas {
    /// Quota of each seed, with all URIs that were found from it.
    pub source: Quota,
    /// Quota of the crawl as a whole, over all its processes.
    pub crawl: Quota,
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
    /// Checks the quotas of each queue, host and domain.
    pub(crate) fn check_queue(&self, mut part: Part<'_, '_>) -> [Quota; 3] {
        [
            self.queue.check(part.part("queue")),
            self.host.check(part.part("host")),
            self.domain.check(part.part("domain")),
        ]
    }

    pub(crate) fn check_job(&self, mut part: Part<'_, '_>) -> JobQuotas {
        JobQuotas {
            source: self.source.check(part.part("source")),
            crawl: self.crawl.check(part.part("crawl")),
        }
    }
}

impl QuotaFile {
    fn check(&self, mut part: Part<'_, '_>) -> Quota {
        let bytes = part.size_limit("bytes", &self.bytes);
        let novel_bytes = part.size_limit("novel-bytes", &self.novel_bytes);
        Quota {
            fetched: part.count_limit("fetched", &self.fetched),
            succeeded: part.count_limit("succeeded", &self.succeeded),
            novel: part.count_limit("novel", &self.novel),
            bytes: bytes.map(ByteSize::bytes),
            novel_bytes: novel_bytes.map(ByteSize::bytes),
            run_time: part.duration_limit("run-time", &self.run_time),
        }
    }
}
