//! When a crawl has had enough.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// When a crawl has had enough, and how much of one document is looked at. For hops see the filter `hops`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LimitsFile {
    /// The crawl ends after this many documents. Default `0`: no limit; most crawls end when nothing is left.
    pub documents: u64,

    /// The crawl ends after this many bytes have come over the wire.
    /// Default `"none"`: no limit; a full disk halts a crawl anyway.
    pub bytes: SizeWritten,

    /// The crawl ends after this long. Default `"none"`: no limit; operators stop a crawl.
    pub time: DurationWritten,

    /// Links used of one document; the rest is counted and noted. Default `6000`: a page with more is made by a machine.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub outlinks: u32,

    /// How much of a document plugins see, from its start; all of it is archived. Default `"64MiB"`: beyond it are
    /// films and data, not links.
    pub plugin_content: SizeWritten,
}

/// When a crawl has had enough, and how much of one document is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The crawl ends after this many documents; none: no limit.
    pub documents: Option<u64>,
    /// The crawl ends after this many bytes over the wire; none: no limit.
    pub bytes: Option<ByteSize>,
    /// The crawl ends after this long; none: no limit.
    pub time: Option<Duration>,
    /// Links used of one document; at least 1.
    pub outlinks: usize,
    /// How much of a document plugins see.
    pub plugin_content: ByteSize,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            documents: 0,
            bytes: "none".into(),
            time: "none".into(),
            outlinks: 6000,
            plugin_content: "64MiB".into(),
        }
    }
}

impl LimitsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Limits {
        Limits {
            documents: Some(self.documents).filter(|documents| *documents > 0),
            bytes: part.size_limit("bytes", &self.bytes),
            time: part.duration_limit("time", &self.time),
            outlinks: self.outlinks as usize,
            plugin_content: part.positive_size("plugin-content", &self.plugin_content),
        }
    }
}
