//! Share of a crawl in the machine's bandwidth and connections, and its use of that share. `opilio serve` divides them among its
//! crawls, and sends each crawl its share by a command. A share applies at once, until the process ends.

use opilio_fetch::{Allowance, Throttle};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a crawl may take at most. `limits.bandwidth` of its profile holds besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Bytes received in a second; none: any.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// URIs fetched at the same time, and connections open; none: any.
    #[serde(default)]
    pub connections: Option<u64>,
}

/// What a crawl has made of its share. Counts are since its process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShareTaken {
    /// Bytes received, with those of bodies that were not kept.
    pub bytes: u64,
    /// Times that reading on had to wait, for want of bytes.
    pub waited_for_bytes: u64,
    /// URIs in process, or connections open where those are more.
    pub connections: u64,
    /// Times that a URI could not be begun, for want of connections.
    pub waited_for_connections: u64,
}

impl Share {
    /// Returns the share that a throttle allows.
    pub fn of(throttle: &Throttle) -> Share {
        let allowance = throttle.allowance();
        Share {
            bytes_per_second: allowance.bytes_per_second,
            connections: allowance.connections.map(|most| most as u64),
        }
    }

    /// Converts to what a throttle allows.
    pub fn allowance(self) -> Allowance {
        let connections = self.connections;
        Allowance {
            bytes_per_second: self.bytes_per_second,
            connections: connections.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.bytes_per_second {
            Some(bytes) => write!(f, "{bytes} bytes a second")?,
            None => write!(f, "any bytes")?,
        }
        match self.connections {
            Some(connections) => write!(f, ", {connections} connections"),
            None => write!(f, ", any connections"),
        }
    }
}
