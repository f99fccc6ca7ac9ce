//! DNS settings: the lifetime of addresses, name servers, and addresses that are not looked up.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use opilio_model::NameServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::DurationWritten;
use crate::fnv::fnv;

const DNS_PORT: u16 = 53;

/// Lifetime of addresses, name servers, and addresses that are not looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DnsFile {
    /// Shortest time for which an address is used, however short its TTL. Default `"6h"`: a crawl need not follow load
    /// balancing, and each look-up makes a record in the archive.
    pub min_expires: DurationWritten,

    /// Longest time for which an address is used, however long its TTL. Default `"24h"`: the crawl follows a site to a new
    /// address within a day.
    pub max_expires: DurationWritten,

    /// Longest time for which a name without an address counts as such; name servers may give a shorter time. Default `"1h"`:
    /// errors in zones are often fixed within hours, and a thousand links need not cause a thousand look-ups.
    pub negative_expires: DurationWritten,

    /// Name servers, in order of preference. Each is `"system"` for the name servers of this machine, an address, with `:` and
    /// port if that is not 53, or the `https:` URL of a server with DNS over HTTPS (RFC 8484). Default `["system"]`: the same
    /// as for other programs on this machine.
    #[schemars(extend("examples" = [["192.0.2.53", "https://dns.example/dns-query"]]))]
    pub servers: Vec<String>,

    /// Addresses that are not looked up: a host name, or `*.` and a domain for all hosts below it (not the domain itself). The
    /// longest match applies. Default `{}`: all names are looked up.
    #[schemars(extend("examples" = [{"*.example.test": "127.0.0.1"}]))]
    pub hosts: BTreeMap<String, String>,
}

/// Lifetime of addresses, name servers, and addresses that are not looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    /// Shortest time for which an address is used.
    pub min_expires: Duration,
    /// Longest time for which an address is used; not less than `min_expires`.
    pub max_expires: Duration,
    /// Longest time for which a name without an address counts as such.
    pub negative_expires: Duration,
    /// Name servers; at least one.
    pub servers: Vec<NameServer>,
    /// Addresses that are not looked up.
    pub hosts: Hosts,
    /// A hash of `servers` and `hosts`. An address that was found under another hash is looked up again.
    pub fingerprint: u64,
}

/// Addresses by host name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Entries, the most specific first.
    entries: Vec<(HostPattern, IpAddr)>,
}

/// The host names to which an address applies. Lower-case, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Only this name.
    Host(String),
    /// All names that end in a dot and this one.
    Below(String),
}

impl Hosts {
    /// The address of a host; `None` if it must be looked up.
    pub fn address(&self, host: &str) -> Option<IpAddr> {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.entries
            .iter()
            .find(|(pattern, _)| pattern.matches(&host))
            .map(|(_, address)| *address)
    }

    /// Iterates over all entries, the most specific first.
    pub fn iter(&self) -> impl Iterator<Item = &(HostPattern, IpAddr)> {
        self.entries.iter()
    }
}

impl HostPattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (domain, below) = match text.strip_prefix("*.") {
            Some(domain) => (domain, true),
            None => (text.as_str(), false),
        };
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        let label = |label: &str| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        };
        if !domain.split('.').all(label) {
            return None;
        }
        Some(if below {
            Self::Below(domain.to_owned())
        } else {
            Self::Host(domain.to_owned())
        })
    }

    pub(crate) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Host(name) => host == name,
            Self::Below(domain) => host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        }
    }

    /// Sort key: exact names first, then the longer domain.
    fn rank(&self) -> (bool, std::cmp::Reverse<usize>) {
        match self {
            Self::Host(name) => (false, std::cmp::Reverse(name.len())),
            Self::Below(domain) => (true, std::cmp::Reverse(domain.len())),
        }
    }
}

fn parse_name_server(text: &str) -> Option<NameServer> {
    if text == "system" {
        return Some(NameServer::System);
    }
    if let Ok(address) = text.parse() {
        return Some(NameServer::At(address));
    }
    if let Ok(address) = text.parse() {
        return Some(NameServer::At(SocketAddr::new(address, DNS_PORT)));
    }
    let uri = opilio_uri::Uri::parse(text).ok()?;
    (uri.scheme() == "https" && uri.userinfo().is_none()).then(|| NameServer::Https {
        host: uri.host().unwrap_or_default().to_owned(),
        port: uri.port_or_default(),
        path: uri.path_and_query().to_owned(),
    })
}

impl Default for DnsFile {
    fn default() -> Self {
        Self {
            min_expires: "6h".into(),
            max_expires: "24h".into(),
            negative_expires: "1h".into(),
            servers: vec!["system".to_owned()],
            hosts: BTreeMap::new(),
        }
    }
}

impl DnsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Dns {
        let (servers, hosts) = (
            self.check_servers(&mut part),
            self.check_hosts(&mut part.part("hosts")),
        );
        Dns {
            fingerprint: fnv(0, format!("{:?} {:?}", self.servers, self.hosts).as_bytes()),
            min_expires: part.duration("min-expires", &self.min_expires),
            max_expires: part.duration("max-expires", &self.max_expires),
            negative_expires: part.positive_duration("negative-expires", &self.negative_expires),
            servers,
            hosts,
        }
    }

    fn check_servers(&self, part: &mut Part<'_, '_>) -> Vec<NameServer> {
        const RIGHT: &str = "write \"system\", an address such as \"192.0.2.53\", or \"https://dns.example/dns-query\"";
        if self.servers.is_empty() {
            part.refuse("servers", "no name server".to_owned(), RIGHT);
        }
        let mut servers = Vec::new();
        for text in &self.servers {
            match parse_name_server(text) {
                Some(server) => servers.push(server),
                None => part.refuse(
                    "servers",
                    format!("not a name server: {}", quote(text)),
                    RIGHT,
                ),
            }
        }
        servers
    }

    fn check_hosts(&self, part: &mut Part<'_, '_>) -> Hosts {
        let mut entries = Vec::new();
        for (name, address) in &self.hosts {
            let pattern = HostPattern::parse(name);
            if pattern.is_none() {
                let problem = format!("not a host name: {}", quote(name));
                part.refuse_key(
                    name,
                    problem,
                    "write \"www.example.org\", or \"*.example.org\" for all below it",
                );
            }
            let parsed = address.parse::<IpAddr>();
            if parsed.is_err() {
                let problem = format!("not an IP address: {}", quote(address));
                part.refuse(name, problem, "write one such as \"127.0.0.1\" or \"::1\"");
            }
            if let (Some(pattern), Ok(address)) = (pattern, parsed) {
                entries.push((pattern, address));
            }
        }
        entries.sort_by_key(|(pattern, _)| pattern.rank());
        Hosts { entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expected: Option<&str>) {
        let entry = |name: &str, address: &str| {
            (HostPattern::parse(name).unwrap(), address.parse().unwrap())
        };
        let mut entries = vec![
            entry("*.example.test", "10.0.0.1"),
            entry("*.www.example.test", "10.0.0.2"),
            entry("www.Example.test", "10.0.0.3"),
            entry("*.localhost", "::1"),
        ];
        entries.sort_by_key(|(pattern, _)| pattern.rank());
        let hosts = Hosts { entries };
        assert_eq!(
            hosts.address(host),
            expected.map(|address| address.parse().unwrap()),
            "{host}"
        );
    }

    #[test]
    fn the_most_specific_name_applies() {
        check("a.example.test", Some("10.0.0.1"));
        check("a.b.example.test", Some("10.0.0.1"));
        check("a.www.example.test", Some("10.0.0.2"));
        check("WWW.example.TEST", Some("10.0.0.3"));
        check("www.example.test.", Some("10.0.0.3"));
        check("example.test", None);
        check("notexample.test", None);
        check("news.localhost", Some("::1"));
        check("", None);
    }

    #[test]
    fn name_servers_are_addresses_or_urls() {
        let at = |address: &str| Some(NameServer::At(address.parse().unwrap()));
        assert_eq!(parse_name_server("192.0.2.53"), at("192.0.2.53:53"));
        assert_eq!(parse_name_server("192.0.2.53:5353"), at("192.0.2.53:5353"));
        assert_eq!(parse_name_server("2001:db8::53"), at("[2001:db8::53]:53"));
        let over = NameServer::Https {
            host: "dns.example".to_owned(),
            port: 443,
            path: "/dns-query".to_owned(),
        };
        assert_eq!(
            parse_name_server("https://dns.example/dns-query"),
            Some(over)
        );
        for text in ["", "dns.example", "http://dns.example/", "udp://192.0.2.53"] {
            assert_eq!(parse_name_server(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_invalid_host_name_is_refused() {
        for name in ["", "*", "*.", "a..b", "*.*.test", "http://a", "a b", "a/b"] {
            assert_eq!(HostPattern::parse(name), None, "{name:?}");
        }
    }
}
