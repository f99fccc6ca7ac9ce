//! Fetching: DNS, HTTP, TLS and robots.txt with the exact bytes of every exchange; FTP and WHOIS.
//!
//! [`Fetcher`] resolves names and runs one exchange for each call. It follows no redirects and keeps no history; the crawl
//! decides what is fetched next. The modules [`robots`] (RFC 9309), [`charset`] and [`coding`] interpret responses and use no
//! sockets.

mod abort;
mod addresses;
mod body_record;
mod config;
mod dial;
mod dns;
mod exchange;
mod failure;
mod fetcher;
mod ftp;
mod h2;
mod head;
mod http;
mod http1;
mod http2_servers;
mod parts;
mod payload_tap;
mod pool;
mod ports;
mod proxy;
mod proxy_tunnel;
mod recording_stream;
mod request;
mod scratch;
mod spool;
mod stream;
mod throttle;
mod tls;
mod transfer;
mod whois;
mod wire;

pub mod auth;
pub mod charset;
pub mod coding;
pub mod cookies;
pub mod forms;
pub mod robots;
pub mod robots_tag;

pub use abort::Abort;
pub use addresses::{AddressClass, AddressPolicy};
pub use config::{FetcherBuildError, FetcherConfig, HostTable, Trust};
pub use dial::CONNECT_ADDRESSES_MAX;
pub use dns::{ADDRESSES_MAX, Resolution, ResolutionSource, TTL_MAX, TTL_WITHOUT_DNS};
pub use exchange::{Exchange, HeadVerdict, PayloadDigest, Request, RequestBody, TruncationCause};
pub use failure::{FetchFailure, Phase};
pub use fetcher::Fetcher;
pub use ftp::FTP_LISTING;
pub use head::ResponseHead;
pub use opilio_model::{AddressFamily, NameServer};
pub use payload_tap::PayloadTap;
pub use ports::is_bad_port;
pub use proxy::{Proxy, ProxyKind};
pub use recording_stream::{ExchangeProgress, ServerTime};
pub use spool::{Spool, SpoolReader, SpoolWriter};
pub use throttle::{Allowance, Throttle, ThrottleUsage};
pub use tls::TlsInfo;
pub use whois::{WHOIS_OK, WHOIS_SERVER, whois_host};
