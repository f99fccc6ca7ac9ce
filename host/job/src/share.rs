//! Share of a crawl in the machine's bandwidth and connections, and its use of that share. `opilio serve` divides both among its
//! crawls, and sends each crawl its share by a command. A share applies at once, until the process ends.

use opilio_fetch::{Allowance, Throttle};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Share of the machine's bandwidth and connections for one crawl. `limits.bandwidth` of the profile applies in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Maximum bytes received per second; not set: no limit.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Maximum number of URIs in process and of open connections; not set: no limit.
    #[serde(default)]
    pub connections: Option<u64>,
}

/// Use of a share, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShareTaken {
    /// Bytes received, including bodies that were not archived.
    pub bytes: u64,
    /// Number of times that reading had to wait for bandwidth.
    pub waited_for_bytes: u64,
    /// URIs in process, or open connections if there are more.
    pub connections: u64,
    /// Number of times that a URI had to wait for a connection.
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
            Some(bytes) => write!(f, "{bytes} bytes per second")?,
            None => write!(f, "no bandwidth limit")?,
        }
        match self.connections {
            Some(connections) => write!(f, ", {connections} connections"),
            None => write!(f, ", no connection limit"),
        }
    }
}
