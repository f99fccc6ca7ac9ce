//! Limits at which a crawl ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, MEMORY_MAX, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Most bytes of a document that plugins may see, since it is held in memory, decoded.
const PLUGIN_CONTENT_MAX: ByteSize = ByteSize::from_gib(1);

/// Limits at which a crawl ends, and limits for one document. For hops see the filter `hops`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LimitsFile {
    /// Documents after which the crawl ends, without robots.txt and DNS. Default `"none"`: no limit; most crawls end when no
    /// URIs are left.
    pub documents: CountWritten,

    /// Answers of any status after which the crawl ends, without those that are retried. Default `"none"`: no limit; most
    /// crawls end when no URIs are left.
    pub fetched: CountWritten,

    /// URIs with a response after which the crawl ends, each counted once, whatever its status. Default `"none"`: no limit;
    /// most crawls end when no URIs are left.
    pub succeeded: CountWritten,

    /// Documents with new or changed content after which the crawl ends. Default `"none"`: no limit; most crawls end when no
    /// URIs are left.
    pub novel_documents: CountWritten,

    /// Bytes over the wire after which the crawl ends. Default `"none"`: no limit; the crawl pauses anyway when a disk is
    /// nearly full.
    pub bytes: SizeWritten,

    /// Bytes of documents with new or changed content after which the crawl ends. Default `"none"`: no limit; the crawl pauses
    /// anyway when a disk is nearly full.
    pub novel_bytes: SizeWritten,

    /// Most bytes that all fetches together receive in a second; fetches in flight are finished. Default `"none"`: the crawl
    /// may use the whole connection.
    pub bandwidth: SizeWritten,

    /// Time after which the crawl ends. Fetches in flight then have five more seconds, or `fetch.stop-grace` if that is shorter.
    /// Default `"none"`: no limit; operators stop a crawl.
    pub time: DurationWritten,

    /// Links of one document that are used; the rest is counted and noted. Default `6000`: pages with more links are generated
    /// by programs.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub outlinks: u32,

    /// Part of a document that plugins see, from its start, 1 GiB at most; all of it is archived. Default `"64MiB"`: larger
    /// documents are films and data without links.
    pub plugin_content: SizeWritten,

    /// Memory, 256 GiB at most, for arriving bodies, for documents that plugins read, as bytes and as text, and for these
    /// plugins. `fetch.spool-memory-total` is a part of it. A document waits until there is enough; one may always be read,
    /// however large. Frontier, compiled plugins and links need memory in addition. Default `"512MiB"`: enough for a hundred
    /// large pages at the same time, or three of 64 MiB.
    pub memory: SizeWritten,

    /// Variants of one plugin's settings, made by overrides, that start from their own snapshot; each takes time and memory.
    /// Others are configured for every call. Default `64`: more than the number of variants that a crawl uses repeatedly.
    #[schemars(range(max = 10_000))]
    pub plugin_variants: u32,
}

/// Limits at which a crawl ends, and limits for one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlLimits {
    /// Documents after which the crawl ends; `None`: no limit.
    pub documents: Option<u64>,
    /// Answered fetches after which the crawl ends; `None`: no limit.
    pub fetched: Option<u64>,
    /// Successes after which the crawl ends; `None`: no limit.
    pub succeeded: Option<u64>,
    /// New or changed documents after which the crawl ends; `None`: no limit.
    pub novel_documents: Option<u64>,
    /// Bytes over the wire after which the crawl ends; `None`: no limit.
    pub bytes: Option<ByteSize>,
    /// Bytes of new or changed documents after which the crawl ends; `None`: no limit.
    pub novel_bytes: Option<ByteSize>,
    /// Bytes a second of all fetches together; `None`: no limit.
    pub bandwidth: Option<ByteSize>,
    /// Time after which the crawl ends; `None`: no limit.
    pub time: Option<Duration>,
    /// Links of one document that are used; at least 1.
    pub outlinks: usize,
    /// Part of a document that plugins see.
    pub plugin_content: ByteSize,
    /// Memory for bodies, documents and the plugins that read them.
    pub memory: ByteSize,
    /// Variants of one plugin's settings that start from their own snapshot.
    pub plugin_variants: usize,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            documents: "none".into(),
            fetched: "none".into(),
            succeeded: "none".into(),
            novel_documents: "none".into(),
            bytes: "none".into(),
            novel_bytes: "none".into(),
            bandwidth: "none".into(),
            time: "none".into(),
            outlinks: 6000,
            plugin_content: "64MiB".into(),
            memory: "512MiB".into(),
            plugin_variants: 64,
        }
    }
}

impl LimitsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> CrawlLimits {
        CrawlLimits {
            documents: part.count_limit("documents", &self.documents),
            fetched: part.count_limit("fetched", &self.fetched),
            succeeded: part.count_limit("succeeded", &self.succeeded),
            novel_documents: part.count_limit("novel-documents", &self.novel_documents),
            bytes: part.size_limit("bytes", &self.bytes),
            novel_bytes: part.size_limit("novel-bytes", &self.novel_bytes),
            bandwidth: part.size_limit("bandwidth", &self.bandwidth),
            time: part.duration_limit("time", &self.time),
            outlinks: self.outlinks as usize,
            plugin_content: part.positive_memory_size(
                "plugin-content",
                &self.plugin_content,
                PLUGIN_CONTENT_MAX,
            ),
            memory: part.positive_memory_size("memory", &self.memory, MEMORY_MAX),
            plugin_variants: self.plugin_variants as usize,
        }
    }
}
