//! How documents are asked for, and when we stop waiting for them.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// Headers that the fetcher itself must decide about; a profile that sets one would make requests that lie.
const OWN_HEADERS: [&str; 13] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "from",
    "host",
    "if-modified-since",
    "if-none-match",
    "referer",
    "te",
    "transfer-encoding",
    "user-agent",
];

/// How documents are asked for, and when we stop waiting for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FetchFile {
    /// Longest wait for a connection, TLS included. Default `"20s"`: a server that answers at all does so by then.
    pub connect_timeout: DurationWritten,

    /// Longest silence of the server, before the first byte and between two. Default `"20s"`: as operators know it.
    pub response_timeout: DurationWritten,

    /// Longest time for one document as a whole; what has come by then is kept as truncated.
    /// Default `"20m"`: a large film over a slow line still comes through.
    pub total_timeout: DurationWritten,

    /// Largest body; what is longer is cut and kept as truncated. Default `"none"`: an archive wants the whole.
    pub body_max: SizeWritten,

    /// Largest header block of a response; a longer one is cut and the fetch fails. Default `"64KiB"`: several times what
    /// common servers send at most.
    pub header_max: SizeWritten,

    /// The Accept-Encoding header; empty to send none. Default `"gzip, br"`: less load for the server, and what tools
    /// that replay archives can decode.
    pub accept_encoding: String,

    /// More headers for every request, by name. They replace our own Accept; names we decide about are refused. An empty
    /// value takes a header out, in an override one that the profile has. Default `{}`: nothing beyond what every crawl sends.
    pub headers: BTreeMap<String, String>,

    /// Fetch from loopback, link-local and private addresses too. Default `false`: a link on the web must not make us
    /// archive the inside of the network we stand in.
    pub private_addresses: bool,

    /// Bodies larger than this are spooled to disk while they arrive. Default `"1MiB"`: nearly all pages stay in memory.
    pub spool_memory: SizeWritten,

    /// Send Referer: the page that the link was on. Default `true`: some servers refuse embeds without one.
    pub referer: bool,

    /// On a later visit ask with If-None-Match and If-Modified-Since. Default `true`: an unchanged document costs the
    /// server only a header.
    pub conditional: bool,

    /// Use a connection for several requests. Default `true`: it spares the server more than it costs it.
    pub keep_alive: bool,

    /// Whether a certificate that cannot be trusted stops a fetch. Default `"record"`: an expired certificate is no
    /// reason for a page to be lost to the archive.
    pub tls_trust: TlsTrust,
}

/// Whether a certificate that cannot be trusted stops a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsTrust {
    /// It does; trust is what the operating system trusts.
    Platform,
    /// It does not; that it could not be trusted is recorded with the capture.
    Record,
}

/// How documents are asked for, and when we stop waiting for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Longest wait for a connection, TLS included; not longer than `total_timeout`.
    pub connect_timeout: Duration,
    /// Longest silence of the server; not longer than `total_timeout`.
    pub response_timeout: Duration,
    /// Longest time for one document as a whole.
    pub total_timeout: Duration,
    /// Largest body; none: no limit.
    pub body_max: Option<ByteSize>,
    /// Largest header block of a response.
    pub header_max: ByteSize,
    /// The Accept-Encoding header; none: do not send it.
    pub accept_encoding: Option<String>,
    /// More headers for every request; names and values are valid as they stand.
    pub headers: Vec<(String, String)>,
    /// Fetch from loopback, link-local and private addresses too.
    pub private_addresses: bool,
    /// Bodies larger than this are spooled to disk.
    pub spool_memory: ByteSize,
    /// Send Referer.
    pub referer: bool,
    /// Ask with If-None-Match and If-Modified-Since on later visits.
    pub conditional: bool,
    /// Use a connection for several requests.
    pub keep_alive: bool,
    /// Whether a certificate that cannot be trusted stops a fetch.
    pub tls_trust: TlsTrust,
}

impl Default for FetchFile {
    fn default() -> Self {
        Self {
            connect_timeout: "20s".into(),
            response_timeout: "20s".into(),
            total_timeout: "20m".into(),
            body_max: "none".into(),
            header_max: "64KiB".into(),
            accept_encoding: "gzip, br".to_owned(),
            headers: BTreeMap::new(),
            private_addresses: false,
            spool_memory: "1MiB".into(),
            referer: true,
            conditional: true,
            keep_alive: true,
            tls_trust: TlsTrust::Record,
        }
    }
}

impl FetchFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Fetch {
        part.header_value("accept-encoding", &self.accept_encoding);
        self.check_headers(&mut part.part("headers"));
        Fetch {
            connect_timeout: part.positive_duration("connect-timeout", &self.connect_timeout),
            response_timeout: part.positive_duration("response-timeout", &self.response_timeout),
            total_timeout: part.positive_duration("total-timeout", &self.total_timeout),
            body_max: part.size_limit("body-max", &self.body_max),
            header_max: part.positive_size("header-max", &self.header_max),
            accept_encoding: Some(self.accept_encoding.clone()).filter(|value| !value.is_empty()),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            private_addresses: self.private_addresses,
            spool_memory: part.size("spool-memory", &self.spool_memory),
            referer: self.referer,
            conditional: self.conditional,
            keep_alive: self.keep_alive,
            tls_trust: self.tls_trust,
        }
    }

    fn check_headers(&self, part: &mut Part<'_, '_>) {
        for (name, value) in &self.headers {
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || !name.chars().all(token) {
                part.refuse_key(name, format!("not a header name: {}", quote(name)), "");
            } else if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let problem = format!("header that a profile may not set: {}", quote(name));
                part.refuse_key(
                    name,
                    problem,
                    "it has a setting of its own, or follows from the request",
                );
            }
            part.header_value(name, value);
        }
    }
}
