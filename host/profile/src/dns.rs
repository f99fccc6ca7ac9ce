//! How long an address is good for, and addresses that are not looked up.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// How long an address is good for, and addresses that are not looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DnsFile {
    /// An address is used at least this long, however short its TTL. Default `"6h"`: a crawl need not follow load
    /// balancing, and each look-up is a record in the archive.
    pub min_expires: DurationWritten,

    /// An address is used at most this long, however long its TTL. Default `"24h"`: a site that moves is found again within
    /// a day.
    pub max_expires: DurationWritten,

    /// Addresses that are not looked up: a host name, or `*.` and a domain for all hosts below it (not the domain itself).
    /// The longest match holds. Default `{}`: everything is looked up.
    #[schemars(extend("examples" = [{"*.example.test": "127.0.0.1"}]))]
    pub hosts: BTreeMap<String, String>,
}

/// How long an address is good for, and addresses that are not looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    /// An address is used at least this long.
    pub min_expires: Duration,
    /// An address is used at most this long; not less than `min_expires`.
    pub max_expires: Duration,
    /// Addresses that are not looked up.
    pub hosts: Hosts,
}

/// Addresses by host name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The most specific first.
    entries: Vec<(HostPattern, IpAddr)>,
}

/// What host names an address is for. Lower-case, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This name alone.
    Host(String),
    /// All names that end in a dot and this one.
    Below(String),
}

impl Hosts {
    /// The address of a host; none where it has to be looked up.
    pub fn address(&self, host: &str) -> Option<IpAddr> {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.entries
            .iter()
            .find(|(pattern, _)| pattern.matches(&host))
            .map(|(_, address)| *address)
    }

    /// All, the most specific first.
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

    /// Exact names first, then the longer domain.
    fn rank(&self) -> (bool, std::cmp::Reverse<usize>) {
        match self {
            Self::Host(name) => (false, std::cmp::Reverse(name.len())),
            Self::Below(domain) => (true, std::cmp::Reverse(domain.len())),
        }
    }
}

impl Default for DnsFile {
    fn default() -> Self {
        Self {
            min_expires: "6h".into(),
            max_expires: "24h".into(),
            hosts: BTreeMap::new(),
        }
    }
}

impl DnsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Dns {
        Dns {
            min_expires: part.duration("min-expires", &self.min_expires),
            max_expires: part.duration("max-expires", &self.max_expires),
            hosts: self.check_hosts(&mut part.part("hosts")),
        }
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
    #![allow(clippy::unwrap_used, reason = "tests")]
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
    fn most_specific_name_holds() {
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
    fn what_is_no_host_name_is_refused() {
        for name in ["", "*", "*.", "a..b", "*.*.test", "http://a", "a b", "a/b"] {
            assert_eq!(HostPattern::parse(name), None, "{name:?}");
        }
    }
}
