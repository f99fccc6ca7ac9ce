//! Reasons for an incomplete response, with their status codes, which `docs/OPERATING.md` lists.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::addresses::AddressClass;

/// The reason why a fetch gave no complete response. Received bytes are in the exchange all the same.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchFailure {
    /// The name has no address; −1. This is an answer of the name servers, so an early retry is of little use.
    #[error("no address for {host}: {reason}")]
    NoAddress {
        /// The name asked for.
        host: String,
        /// The answer of the name server or the resolver.
        reason: String,
        /// Validity of the answer, if a name server gave one.
        ttl: Option<Duration>,
    },
    /// The look-up failed; −1. The name servers did not answer, or none are configured.
    #[error("cannot look up {host}: {reason}")]
    Lookup {
        /// The name asked for.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// No address accepted the connection; −2. The error is that of the last address.
    #[error("cannot connect to {address} port {port}")]
    Connect {
        /// The address tried last.
        address: IpAddr,
        /// TCP port.
        port: u16,
        /// The operating system's error.
        #[source]
        source: Arc<io::Error>,
    },
    /// The connection ended before the message did; −3. Received bytes are recorded.
    #[error("connection lost during {phase}: {reason}")]
    Lost {
        /// Progress of the exchange.
        phase: Phase,
        /// The error of the stream or the HTTP parser.
        reason: String,
    },
    /// The response, or its framing, is not HTTP; −3. The bytes are recorded.
    #[error("not HTTP in {phase}: {reason}")]
    NotHttp {
        /// Progress of the exchange.
        phase: Phase,
        /// The HTTP parser's error.
        reason: String,
    },
    /// No byte came for too long; −4. Received bytes are recorded.
    #[error("timeout during {phase} after {after:?}")]
    Timeout {
        /// Progress of the exchange.
        phase: Phase,
        /// The limit that was reached.
        after: Duration,
    },
    /// A write to the scratch directory failed; −5. The site is not the cause: the crawl should pause.
    #[error("cannot write to the scratch directory")]
    Scratch(#[source] Arc<io::Error>),
    /// A URI that this fetcher cannot request; −7.
    #[error("cannot fetch {uri}: {reason}")]
    Unfetchable {
        /// The URI.
        uri: String,
        /// The error in the URI.
        reason: String,
    },
    /// No TLS session; −9. The certificate is not trusted, or the two sides have nothing in common.
    #[error("no TLS session with {host}: {reason}")]
    Tls {
        /// The host asked for.
        host: String,
        /// The error of rustls.
        reason: String,
    },
    /// The server speaks TLS, but none of our protocols over it; −9.
    #[error("{host} does not speak HTTP/1.1")]
    NoHttp1 {
        /// The host asked for.
        host: String,
    },
    /// The profile's proxy does not connect to the server; −2. Often the operator has to fix it, not the site.
    #[error("proxy {proxy}: {reason}")]
    Proxy {
        /// Address of the proxy.
        proxy: String,
        /// The error of the proxy or the operating system.
        reason: String,
    },
    /// The crawl stops and no longer waits; 0. The URI has not been fetched, and has not failed.
    #[error("the crawl was stopped")]
    Stopped,
    /// The server closed the connection without a byte; −404.
    #[error("empty response")]
    Empty,
    /// All addresses are of a class that the profile does not allow; −5001. Never retried.
    #[error(
        "{address} is a {class} address, which the profile does not allow (fetch.allow-addresses)"
    )]
    AddressRefused {
        /// The address refused last.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// The URI names a port of another service, which the profile does not allow; −5001. Never retried.
    #[error("port {port} belongs to another service: add it to fetch.allow-ports to fetch from it")]
    PortRefused {
        /// The port.
        port: u16,
    },
}

/// Progress of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// TCP connection and TLS session.
    Connecting,
    /// The request was being sent, or no byte of the response had come.
    Request,
    /// The response head was being received.
    Head,
    /// The response body was being received.
    Body,
}

impl FetchFailure {
    /// The status code of the glossary ("Status codes") that the crawl log shows.
    pub fn status(&self) -> i32 {
        match self {
            FetchFailure::NoAddress { .. } | FetchFailure::Lookup { .. } => -1,
            FetchFailure::Connect { .. } | FetchFailure::Proxy { .. } => -2,
            FetchFailure::Lost { .. } | FetchFailure::NotHttp { .. } => -3,
            FetchFailure::Timeout { .. } => -4,
            FetchFailure::Scratch(_) => -5,
            FetchFailure::Unfetchable { .. } => -7,
            FetchFailure::Tls { .. } | FetchFailure::NoHttp1 { .. } => -9,
            FetchFailure::Stopped => 0,
            FetchFailure::Empty => -404,
            FetchFailure::AddressRefused { .. } | FetchFailure::PortRefused { .. } => -5001,
        }
    }

    /// Returns `true` if the server cannot be found or connected to, so that its other URIs cannot be fetched either. A later
    /// failure may concern only the URI.
    pub fn is_of_server(&self) -> bool {
        match self {
            FetchFailure::NoAddress { .. }
            | FetchFailure::Lookup { .. }
            | FetchFailure::Connect { .. }
            | FetchFailure::Proxy { .. }
            | FetchFailure::Tls { .. }
            | FetchFailure::NoHttp1 { .. } => true,
            FetchFailure::Lost { phase, .. } | FetchFailure::Timeout { phase, .. } => {
                *phase == Phase::Connecting
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Connecting => "connecting",
            Phase::Request => "request",
            Phase::Head => "response head",
            Phase::Body => "response body",
        })
    }
}
