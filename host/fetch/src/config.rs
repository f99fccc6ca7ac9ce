//! The configuration of a fetcher. Every limit is a named field; [`FetcherConfig::new`] has the defaults.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opilio_model::{AddressFamily, NameServer};
use rustls_pki_types::CertificateDer;

use crate::addresses::AddressPolicy;
use crate::proxy::Proxy;

/// Settings of a fetcher. A crawl has one, and one more for each group of URIs with other settings
/// ([`Fetcher::with`](crate::Fetcher::with)). Values of a single URI are in the [`Request`](crate::Request).
#[derive(Clone, Debug)]
pub struct FetcherConfig {
    /// `User-Agent`, as sent.
    pub user_agent: String,
    /// `From`: the operator's e-mail address.
    pub from: Option<String>,
    /// Further request headers, in order, such as `Accept`. Names are sent in Title-Case.
    pub headers: Vec<(String, String)>,
    /// `Accept-Encoding`, as sent. `None` sends no such header; servers then send plain bodies.
    pub accept_encoding: Option<String>,
    /// Limit for the TCP connection to one address, for a proxy to connect, and again for the TLS handshake. Default 20 s.
    pub connect_timeout: Duration,
    /// Longest time in which no byte is read or written. Default 20 s.
    pub response_timeout: Duration,
    /// Longest time before the first byte of the answer. Default `None`: `response_timeout` applies.
    pub first_byte_timeout: Option<Duration>,
    /// Limit for the whole exchange. Default 20 min.
    pub total_timeout: Duration,
    /// Limit from the first byte of a response to the end of its head, and for an FTP server's reply. Default 1 min.
    pub header_timeout: Duration,
    /// Minimum bytes a second of a body, on average over `rate_window`. A slower body is truncated. Default `None`: no minimum.
    pub rate_min: Option<u64>,
    /// Time over which the rate is averaged. Default 1 min.
    pub rate_window: Duration,
    /// Longest response head. A longer one is truncated; its status line is kept. Default 64 KiB.
    pub header_bytes_max: usize,
    /// Maximum number of headers of a response. More are treated like a head that is too long. Default 512.
    pub headers_max: usize,
    /// Longest payload. A longer one is truncated. Default `None`: only time limits apply.
    pub body_bytes_max: Option<u64>,
    /// Recorded bytes of one stream that stay in memory. A longer stream goes to a file in `scratch_dir`. Default 1 MiB.
    pub spool_memory_max: usize,
    /// Recorded bytes of all streams together that stay in memory. Beyond it streams go to files early. Default 256 MiB.
    pub spool_memory_total_max: usize,
    /// Directory for large bodies. It must exist.
    pub scratch_dir: PathBuf,
    /// Maximum bytes of all streams together in `scratch_dir`. Beyond it exchanges wait. If all others wait too, the last one to
    /// ask is truncated. Default `None`: the space on the disk.
    pub scratch_bytes_max: Option<u64>,
    /// Policy for the addresses that may be connected to.
    pub addresses: AddressPolicy,
    /// Ports that may be connected to although the Fetch Standard blocks them. Default: empty.
    pub allow_ports: Vec<u16>,
    /// Static table of names and addresses, asked before any other source. The address policy applies to its addresses too.
    pub hosts: HostTable,
    /// Name servers to ask for addresses. Default: those of the system.
    pub name_servers: Vec<NameServer>,
    /// Address families that are tried, and their order.
    pub family: AddressFamily,
    /// Local addresses to connect from: the first of the remote address's family. If none fits, the system chooses.
    pub bind: Vec<IpAddr>,
    /// Proxy to connect through.
    pub proxy: Option<Arc<Proxy>>,
    /// Certificates to trust.
    pub trust: Trust,
    /// Keep connections open for the next exchange with the same server. Default true; false sends `Connection: close`.
    pub keep_alive: bool,
}

/// The reason why no fetcher could be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetcherBuildError {
    /// A root certificate is invalid, or rustls does not work with its own provider.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// A header that the profile sets cannot be sent.
    #[error("header {name:?} with value {value:?} cannot be sent")]
    Header {
        /// As configured.
        name: String,
        /// As configured.
        value: String,
    },
}

/// Certificates that are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that the operating system trusts. Others end the exchange with −9.
    #[default]
    Platform,
    /// Those that these roots have signed, and no others.
    Roots(Vec<CertificateDer<'static>>),
    /// All. [`TlsInfo::verified`](crate::TlsInfo) records the operating system's judgement.
    Record,
}

/// A static host table. The first entry that matches answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTable {
    entries: Vec<(HostPattern, IpAddr)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exact(String),
    /// A suffix with its leading dot.
    Suffix(String),
}

impl FetcherConfig {
    /// Creates a configuration with the defaults.
    pub fn new(user_agent: impl Into<String>, scratch_dir: impl Into<PathBuf>) -> Self {
        FetcherConfig {
            user_agent: user_agent.into(),
            from: None,
            // Heritrix has sent this for years. Servers that negotiate content give archives the same page.
            headers: vec![(
                "Accept".to_owned(),
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
            )],
            accept_encoding: None,
            connect_timeout: Duration::from_secs(20),
            response_timeout: Duration::from_secs(20),
            first_byte_timeout: None,
            total_timeout: Duration::from_secs(20 * 60),
            header_timeout: Duration::from_secs(60),
            rate_min: None,
            rate_window: Duration::from_secs(60),
            header_bytes_max: 64 * 1024,
            headers_max: 512,
            body_bytes_max: None,
            spool_memory_max: 1024 * 1024,
            spool_memory_total_max: 256 * 1024 * 1024,
            scratch_dir: scratch_dir.into(),
            scratch_bytes_max: None,
            addresses: AddressPolicy::default(),
            allow_ports: Vec::new(),
            hosts: HostTable::default(),
            name_servers: vec![NameServer::System],
            family: AddressFamily::default(),
            bind: Vec::new(),
            proxy: None,
            trust: Trust::default(),
            keep_alive: true,
        }
    }
}

/// The addresses in the order in which they are tried.
pub(crate) fn in_order(family: AddressFamily, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv4());
    let (first, second) = match family {
        AddressFamily::Ipv4First => (v4, v6),
        AddressFamily::Ipv6First => (v6, v4),
        AddressFamily::Ipv4Only => return v4,
        AddressFamily::Ipv6Only => return v6,
    };
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

impl HostTable {
    /// Adds an exact name, or `*.suffix` for every name below the suffix (not the suffix itself). Case is ignored.
    pub fn insert(&mut self, pattern: &str, address: IpAddr) {
        let pattern = pattern.trim_end_matches('.').to_ascii_lowercase();
        let pattern = match pattern.strip_prefix('*') {
            Some(suffix) if suffix.starts_with('.') => HostPattern::Suffix(suffix.to_owned()),
            _ => HostPattern::Exact(pattern),
        };
        self.entries.push((pattern, address));
    }

    /// Addresses of the first pattern that matches, from all entries of that pattern. Empty if no pattern matches.
    pub fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let Some(first) = self.entries.iter().position(|(p, _)| p.matches(&host)) else {
            return Vec::new();
        };
        let pattern = self.entries[first].0.as_str();
        let same = self.entries[first..]
            .iter()
            .filter(|(p, _)| p.as_str() == pattern);
        same.map(|(_, address)| *address).collect()
    }
}

impl<P: AsRef<str>> FromIterator<(P, IpAddr)> for HostTable {
    fn from_iter<I: IntoIterator<Item = (P, IpAddr)>>(entries: I) -> Self {
        let mut table = HostTable::default();
        for (pattern, address) in entries {
            table.insert(pattern.as_ref(), address);
        }
        table
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            HostPattern::Exact(name) => host == name,
            HostPattern::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        }
    }

    /// The exact name, or the suffix with its dot. Names never begin with a dot, so the two do not clash.
    fn as_str(&self) -> &str {
        match self {
            HostPattern::Exact(text) | HostPattern::Suffix(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate() {
        let given = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"].map(parse);
        let order = |family: AddressFamily| -> Vec<String> {
            let ordered = in_order(family, &given);
            ordered.iter().map(IpAddr::to_string).collect()
        };
        assert_eq!(
            order(AddressFamily::Ipv4First),
            ["192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3"]
        );
        assert_eq!(
            order(AddressFamily::Ipv6First),
            ["2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
        );
        assert_eq!(
            order(AddressFamily::Ipv4Only),
            ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
        );
        assert_eq!(order(AddressFamily::Ipv6Only), ["2001:db8::1"]);
    }

    fn parse(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[track_caller]
    fn check(host: &str, expected: &[&str]) {
        let table: HostTable = [
            ("www.a.example", "10.0.0.1"),
            ("*.A.example", "10.0.0.2"),
            ("www.a.example.", "::1"),
            ("b.example", "10.0.0.3"),
        ]
        .map(|(pattern, address)| (pattern, address.parse().unwrap()))
        .into_iter()
        .collect();
        let expected: Vec<IpAddr> = expected.iter().map(|a| a.parse().unwrap()).collect();
        assert_eq!(table.addresses(host), expected, "{host}");
    }

    #[test]
    fn exact_names_and_suffixes_match() {
        check("www.a.example", &["10.0.0.1", "::1"]);
        check("WWW.a.example.", &["10.0.0.1", "::1"]);
        check("deep.www.a.example", &["10.0.0.2"]);
        check("a.example", &[]);
        check("xa.example", &[]);
        check("b.example", &["10.0.0.3"]);
        check("c.b.example", &[]);
        check("", &[]);
    }
}
