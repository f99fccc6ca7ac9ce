//! Why there is no complete response, and the glossary's status code for it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::addresses::AddressClass;

/// Why a fetch gave no complete response. What was received all the same is in the exchange.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchFailure {
    /// The name has no address; −1. The name servers said so: asking again soon is of little use.
    #[error("no address for {host}: {reason}")]
    NoAddress {
        /// The name asked for.
        host: String,
        /// What the name server, or the resolver, said.
        reason: String,
        /// How long that holds, where a name server said so.
        ttl: Option<Duration>,
    },
    /// The name could not be looked up; −1. The name servers did not answer, or there are none.
    #[error("cannot look up {host}: {reason}")]
    Lookup {
        /// The name asked for.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No address took the connection; −2. The last one's reason.
    #[error("cannot connect to {address} port {port}")]
    Connect {
        /// The address tried last.
        address: IpAddr,
        /// TCP port.
        port: u16,
        /// What the operating system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The connection ended where more had to come; −3. What came is recorded.
    #[error("connection lost during {phase}: {reason}")]
    Lost {
        /// How far the exchange had come.
        phase: Phase,
        /// What the stream or the HTTP parser said.
        reason: String,
    },
    /// What came is no HTTP response, or its framing is; −3. The bytes are recorded.
    #[error("not HTTP in {phase}: {reason}")]
    NotHttp {
        /// How far the exchange had come.
        phase: Phase,
        /// What the HTTP parser said.
        reason: String,
    },
    /// Nothing came for too long; −4. What came is recorded.
    #[error("timeout during {phase} after {after:?}")]
    Timeout {
        /// How far the exchange had come.
        phase: Phase,
        /// The limit that was hit.
        after: Duration,
    },
    /// The scratch directory failed us; −5. Not the site's fault: the crawl should pause.
    #[error("cannot write to the scratch directory")]
    Scratch(#[source] Arc<io::Error>),
    /// A URI that this fetcher cannot ask for; −7.
    #[error("cannot fetch {uri}: {reason}")]
    Unfetchable {
        /// The URI.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No TLS session; −9. The certificate is not trusted, or the two sides have nothing in common.
    #[error("no TLS session with {host}: {reason}")]
    Tls {
        /// The host asked for.
        host: String,
        /// What rustls said.
        reason: String,
    },
    /// The server speaks TLS, but with no protocol that we do; −9.
    #[error("{host} does not speak HTTP/1.1")]
    NoHttp1 {
        /// The host asked for.
        host: String,
    },
    /// The proxy that the profile names does not take us there; −2. Often ours to mend, not the site's.
    #[error("proxy {proxy}: {reason}")]
    Proxy {
        /// Where it is.
        proxy: String,
        /// What it, or the operating system, said.
        reason: String,
    },
    /// The crawl stops and waits no longer; 0. The URI has not been fetched, through nobody's fault.
    #[error("the crawl was stopped")]
    Stopped,
    /// The server closed the connection without a byte; −404.
    #[error("empty response")]
    Empty,
    /// Every address is of a class that the profile does not allow; −5001. Never retried.
    #[error("{address} is a {class} address, which the profile does not allow")]
    AddressRefused {
        /// The address refused last.
        address: IpAddr,
        /// Why.
        class: AddressClass,
    },
    /// The URI names a port of another service, which the profile does not allow; −5001. Never retried.
    #[error("port {port} belongs to another service: add it to fetch.allow-ports to fetch from it")]
    PortRefused {
        /// The port.
        port: u16,
    },
}

/// How far an exchange had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// TCP connection and TLS session.
    Connecting,
    /// The request was being sent, or nothing had come back.
    Request,
    /// The response head was coming.
    Head,
    /// The response body was coming.
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

    /// Whether the server cannot be found or connected to, so that no other URI of it can be had either. A failure after
    /// that may be the URI's own.
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
