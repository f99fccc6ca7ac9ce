//! What a fetcher is built from. Every limit is a named field; its default is in [`Config::new`].

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rustls_pki_types::CertificateDer;

use crate::addresses::AddressPolicy;

/// How to fetch. One per crawl; what differs by URI comes with the [`Request`](crate::Request).
#[derive(Clone, Debug)]
pub struct Config {
    /// `User-Agent`, as sent.
    pub user_agent: String,
    /// `From`: the operator's e-mail address.
    pub from: Option<String>,
    /// More request headers, in order, such as `Accept`. Names are sent in Title-Case.
    pub headers: Vec<(String, String)>,
    /// `Accept-Encoding`, as sent; none sends no such header, and servers then send plain bodies.
    pub accept_encoding: Option<String>,
    /// For the TCP connection to one address, and again for the TLS handshake. Default 20 s.
    pub connect_timeout: Duration,
    /// Longest silence: no byte read or written for this long. Default 20 s.
    pub response_timeout: Duration,
    /// From the start of the exchange to its end. Default 20 min.
    pub total_timeout: Duration,
    /// Longest response head. Beyond: truncated, the status line stands. Default 64 KiB.
    pub header_bytes_max: usize,
    /// Longest payload; beyond: truncated. None, the default: unlimited but for the time.
    pub body_bytes_max: Option<u64>,
    /// Recorded bytes of one stream held in memory; beyond: a file in `scratch_dir`. Default 1 MiB.
    pub spool_memory_max: usize,
    /// Where large bodies are spooled: a directory that exists.
    pub scratch_dir: PathBuf,
    /// Which addresses may be connected to.
    pub addresses: AddressPolicy,
    /// Names with addresses of their own, asked before anything else. Policy holds for them too.
    pub hosts: HostTable,
    /// Who is asked for addresses. Default: the system's name servers.
    pub name_servers: Vec<NameServer>,
    /// Local address to connect from, used for remote addresses of the same family.
    pub bind: Option<IpAddr>,
    /// Which certificates are believed.
    pub trust: Trust,
    /// Keep connections open for the next exchange with the same server. Default true; false sends `Connection: close`.
    pub keep_alive: bool,
}

/// Who is asked for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameServer {
    /// Those of the system's configuration.
    System,
    /// One by UDP, and by TCP where an answer is too long for that.
    At(SocketAddr),
    /// One by HTTPS (RFC 8484). Its certificate has to be trusted whatever [`Trust`] says.
    Https {
        /// Name or address, IPv6 in brackets; a name is looked up by the system.
        host: String,
        /// TCP port.
        port: u16,
        /// Such as `/dns-query`.
        path: String,
    },
}

/// Which certificates are believed.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Those that the operating system trusts. Others end the exchange with −9.
    #[default]
    Platform,
    /// Those that these roots have signed, and no others.
    Roots(Vec<CertificateDer<'static>>),
    /// All; what the operating system would have said is recorded in [`TlsInfo::verified`](crate::TlsInfo).
    Record,
}

/// A static host table: the first entry that matches answers.
#[derive(Clone, Debug, Default)]
pub struct HostTable {
    entries: Vec<(HostPattern, IpAddr)>,
}

#[derive(Clone, Debug)]
enum HostPattern {
    Exact(String),
    /// With its leading dot.
    Suffix(String),
}

impl Config {
    /// Defaults around what has none.
    pub fn new(user_agent: impl Into<String>, scratch_dir: impl Into<PathBuf>) -> Self {
        Config {
            user_agent: user_agent.into(),
            from: None,
            // What the predecessor has sent for years, so that servers which negotiate give archives the same page.
            headers: vec![(
                "Accept".to_owned(),
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
            )],
            accept_encoding: None,
            connect_timeout: Duration::from_secs(20),
            response_timeout: Duration::from_secs(20),
            total_timeout: Duration::from_secs(20 * 60),
            header_bytes_max: 64 * 1024,
            body_bytes_max: None,
            spool_memory_max: 1024 * 1024,
            scratch_dir: scratch_dir.into(),
            addresses: AddressPolicy::default(),
            hosts: HostTable::default(),
            name_servers: vec![NameServer::System],
            bind: None,
            trust: Trust::default(),
            keep_alive: true,
        }
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

    /// Addresses of the first pattern that matches, all entries of that same pattern; empty where none matches.
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

    /// The exact name, or the suffix with its dot; names never begin with one, so the two do not mix.
    fn as_str(&self) -> &str {
        match self {
            HostPattern::Exact(text) | HostPattern::Suffix(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

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
