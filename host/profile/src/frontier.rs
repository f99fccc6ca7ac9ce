//! Which queue a URI stands in, and what goes first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which queue a URI stands in, and what goes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FrontierFile {
    /// URIs at most this many embed hops from their page go before ordinary links. Default `1`: images and style
    /// sheets are fetched close in time to the page that shows them; 0 turns it off.
    #[schemars(range(max = 50))]
    pub embed_preference_hops: u8,

    /// What URIs of one queue share; a queue is fetched by one connection at a time, politely. Defines identity: frozen
    /// when a job is made. Default `"surt-authority"`: one queue for each host name and port.
    pub queue_key: QueueKey,
}

/// What URIs of one queue share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKey {
    /// The authority in SURT form, port included: `org,example,www,:8080`.
    SurtAuthority,
    /// The host name, whatever the port.
    Host,
    /// The registered domain by the public suffix list: all hosts of `example.co.uk` together.
    Domain,
}

/// Which queue a URI stands in, and what goes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontier {
    /// URIs at most this many embed hops from their page go first; 0 for never.
    pub embed_preference_hops: u8,
    /// What URIs of one queue share.
    pub queue_key: QueueKey,
}

impl Default for FrontierFile {
    fn default() -> Self {
        Self {
            embed_preference_hops: 1,
            queue_key: QueueKey::SurtAuthority,
        }
    }
}

impl FrontierFile {
    pub(crate) fn check(&self) -> Frontier {
        Frontier {
            embed_preference_hops: self.embed_preference_hops,
            queue_key: self.queue_key,
        }
    }
}
