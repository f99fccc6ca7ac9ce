//! Sources of addresses, and the family that is tried first.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments are descriptions in the JSON Schema of profiles. Both families alternate from the second address on
// (RFC 8305 §4).
/// Addresses of a host that are tried, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamily {
    /// IPv4, then IPv6.
    #[default]
    Ipv4First,
    /// IPv6, then IPv4.
    Ipv6First,
    /// Only IPv4.
    Ipv4Only,
    /// Only IPv6.
    Ipv6Only,
}

/// A source of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameServer {
    /// The name servers of the system's configuration.
    System,
    /// A name server by UDP, and by TCP if an answer is too long for UDP.
    At(SocketAddr),
    /// A name server by HTTPS (RFC 8484). Its certificate must be trusted, whatever the profile sets for other certificates.
    Https {
        /// Name or address, IPv6 in brackets. The system looks a name up.
        host: String,
        /// TCP port.
        port: u16,
        /// Path of the query URI, such as `/dns-query`.
        path: String,
    },
}
