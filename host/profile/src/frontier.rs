//! Frontier settings: the assignment of URIs to queues, and the order of the queues.

use std::time::Duration;

use opilio_model::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, MEMORY_MAX, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Assignment of URIs to queues, and order of the queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FrontierFile {
    /// Property that the URIs of one queue share; a queue is fetched by one connection at a time, politely. Defines identity:
    /// frozen when a job is made. Default `"surt-authority"`: one queue for each host name and port.
    pub queue_key: QueueKey,

    /// Number of queues over which one key is spread, by path and query. Each has its own politeness delay, so the server sees as
    /// many connections. Defines identity: frozen when a job is made. Default `1`: one queue for each key.
    #[schemars(range(min = 1, max = 64))]
    pub parallel_queues: u32,

    /// Most embed hops from their page at which URIs go before ordinary links; 0 for none. No default: 1 where a document is
    /// fetched once, so that its images and style sheets are fetched soon after it; 0 where it is visited again, because embeds
    /// before due pages would delay these at every change.
    #[schemars(range(max = 50))]
    pub embed_preference_hops: Option<u8>,

    /// Floor: queues of this precedence or a higher number collect URIs but issue none, and the crawl ends without them.
    /// Default `255`: all queues issue URIs.
    #[schemars(range(min = 1, max = 255))]
    pub precedence_floor: u8,

    /// Time after which a ready queue counts as one precedence better, and as one more for each such time again; `"none"` for
    /// never. Default `"24h"`: queues of low rank are served within days, however many are before them.
    pub ageing: DurationWritten,

    /// Cost that a queue may spend before it goes behind the queues that wait for a session; only for documents that are
    /// fetched once. Default `"none"`: no rotation is needed, because the queue that has been ready longest goes first.
    pub session_budget: CountWritten,

    /// Cost of a failed URI to its queue, in addition to its own cost. Default `100`: a site of dead links soon uses up its
    /// budget.
    #[schemars(range(max = 1_000_000))]
    pub error_penalty: u32,

    /// Memory for the cache of the frontier's store, 256 GiB at most. Default `"128MiB"`: enough for the active queues of a
    /// crawl of tens of millions of URIs.
    pub cache: SizeWritten,
}

/// Property that the URIs of one queue share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKey {
    /// The authority in SURT form, port included: `org,example,www,#8080`.
    SurtAuthority,
    /// The host name, whatever the port.
    Host,
    /// The registered domain by the public suffix list: all hosts of `example.co.uk` together.
    Domain,
}

/// Assignment of URIs to queues, and order of the queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierSettings {
    /// Property that the URIs of one queue share.
    pub queue_key: QueueKey,
    /// Number of queues over which one key is spread; 1 to 64.
    pub parallel_queues: u32,
    /// The number as written; [`FrontierSettings::embed_preference`] gives the effective one.
    pub embed_preference_hops: Option<u8>,
    /// Floor: queues of this precedence or a higher number issue no URIs; at least 1. `None`: no floor.
    pub precedence_floor: Option<u8>,
    /// Time after which a ready queue counts as one precedence better; `None`: never.
    pub ageing: Option<Duration>,
    /// Cost that a queue may spend before others get their session; `None`: no rotation.
    pub session_budget: Option<u32>,
    /// Cost of a failed URI in addition to its own cost.
    pub error_penalty: u32,
    /// Memory for the cache of the store.
    pub cache: ByteSize,
}

impl FrontierSettings {
    /// Most embed hops from their page at which URIs go first, for documents of this strategy; 0 for none.
    pub fn embed_preference(&self, strategy: Strategy) -> u8 {
        self.embed_preference_hops.unwrap_or(match strategy {
            Strategy::Snapshot => 1,
            Strategy::Revisit | Strategy::Fixed => 0,
        })
    }
}

impl Default for FrontierFile {
    fn default() -> Self {
        Self {
            queue_key: QueueKey::SurtAuthority,
            parallel_queues: 1,
            embed_preference_hops: None,
            precedence_floor: 255,
            ageing: "24h".into(),
            session_budget: "none".into(),
            error_penalty: 100,
            cache: "128MiB".into(),
        }
    }
}

impl FrontierFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> FrontierSettings {
        FrontierSettings {
            queue_key: self.queue_key,
            parallel_queues: self.parallel_queues,
            embed_preference_hops: self.embed_preference_hops,
            precedence_floor: Some(self.precedence_floor).filter(|floor| *floor < u8::MAX),
            ageing: part.duration_limit("ageing", &self.ageing),
            session_budget: part
                .count_limit("session-budget", &self.session_budget)
                .map(|budget| u32::try_from(budget).unwrap_or(u32::MAX)),
            error_penalty: self.error_penalty,
            cache: part.positive_memory_size("cache", &self.cache, MEMORY_MAX),
        }
    }
}
