//! When a crawl has had enough.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, MEMORY_MAX, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Most that plugins may see of a document: it is held in memory, decoded.
const PLUGIN_CONTENT_MAX: ByteSize = ByteSize::from_gib(1);

/// When a crawl has had enough, and how much of one document is looked at. For hops see the filter `hops`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LimitsFile {
    /// The crawl ends after this many documents: what was fetched for its own sake, without robots.txt and DNS.
    /// Default `"none"`: no limit; most crawls end when nothing is left.
    pub documents: CountWritten,

    /// The crawl ends after this many answers of any status, those that are tried again left out.
    /// Default `"none"`: no limit; most crawls end when nothing is left.
    pub fetched: CountWritten,

    /// The crawl ends after this many URIs have succeeded, each counted once; a 404 is a success.
    /// Default `"none"`: no limit; most crawls end when nothing is left.
    pub succeeded: CountWritten,

    /// The crawl ends after this many documents whose content was new or changed.
    /// Default `"none"`: no limit; most crawls end when nothing is left.
    pub novel_documents: CountWritten,

    /// The crawl ends after this many bytes have come over the wire.
    /// Default `"none"`: no limit; a full disk halts a crawl anyway.
    pub bytes: SizeWritten,

    /// The crawl ends after this many bytes of documents whose content was new or changed.
    /// Default `"none"`: no limit; a full disk halts a crawl anyway.
    pub novel_bytes: SizeWritten,

    /// The most that all fetches together take in a second; what is in flight is finished.
    /// Default `"none"`: the line is there to be used.
    pub bandwidth: SizeWritten,

    /// The crawl ends after this long; what is in flight then has five seconds more, or `fetch.stop-grace` where that is
    /// shorter. Default `"none"`: no limit; operators stop a crawl.
    pub time: DurationWritten,

    /// Links used of one document; the rest is counted and noted. Default `6000`: a page with more is made by a machine.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub outlinks: u32,

    /// How much of a document plugins see, from its start, 1 GiB at most; all of it is archived. Default `"64MiB"`: beyond it are
    /// films and data, not links.
    pub plugin_content: SizeWritten,

    /// Memory for bodies that arrive (`fetch.spool-memory-total`, which is a part of it), for documents that plugins read, as
    /// bytes and as text, and for the plugins that read them, 256 GiB at most. A document waits until there is enough; one
    /// always may be read, however large. Frontier, compiled plugins and links come on top. Default `"512MiB"`: a hundred
    /// large pages at the same time, or three of 64 MiB.
    pub memory: SizeWritten,

    /// Variants of one plugin's settings, made by overrides, that start from a snapshot of their own; each takes time and
    /// memory. Others are configured anew for every call. Default `64`: as many as a crawl uses again and again.
    #[schemars(range(max = 10_000))]
    pub plugin_variants: u32,
}

/// When a crawl has had enough, and how much of one document is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The crawl ends after this many documents; none: no limit.
    pub documents: Option<u64>,
    /// The crawl ends after this many answered fetches; none: no limit.
    pub fetched: Option<u64>,
    /// The crawl ends after this many successes; none: no limit.
    pub succeeded: Option<u64>,
    /// The crawl ends after this many new or changed documents; none: no limit.
    pub novel_documents: Option<u64>,
    /// The crawl ends after this many bytes over the wire; none: no limit.
    pub bytes: Option<ByteSize>,
    /// The crawl ends after this many bytes of new or changed documents; none: no limit.
    pub novel_bytes: Option<ByteSize>,
    /// Bytes a second of all fetches together; none: no limit.
    pub bandwidth: Option<ByteSize>,
    /// The crawl ends after this long; none: no limit.
    pub time: Option<Duration>,
    /// Links used of one document; at least 1.
    pub outlinks: usize,
    /// How much of a document plugins see.
    pub plugin_content: ByteSize,
    /// Memory for bodies, documents and the plugins that read them.
    pub memory: ByteSize,
    /// Variants of one plugin's settings that start from a snapshot of their own.
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
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Limits {
        Limits {
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
