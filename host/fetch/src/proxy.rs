//! Proxies: HTTP proxies, which tunnel https and forward http, and SOCKS5.
//!
//! An exchange records what the origin server receives. No request record has a proxy's form of the request line or its
//! credentials.

use data_encoding::BASE64;

use crate::failure::FetchFailure;

/// A proxy, and the hosts that bypass it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Protocol of the proxy.
    pub kind: ProxyKind,
    /// Name or address; IPv6 in brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    /// Send names to the proxy, rather than addresses that we have resolved and checked. An HTTP proxy gets names anyway.
    pub remote_names: bool,
    /// Hosts that are connected to directly: names, addresses, or `.suffix` for all names below one.
    pub except: Vec<String>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyKind {
    /// HTTP: CONNECT for https, requests with the whole URI for http.
    Http,
    /// SOCKS5 (RFC 1928), with user name and password (RFC 1929) or without.
    Socks5,
}

impl Proxy {
    /// Returns `true` if connections to this host use the proxy.
    pub fn serves(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let named = |except: &String| match except.starts_with('.') {
            true => host.ends_with(except.as_str()),
            false => host == *except,
        };
        !self.except.iter().any(named)
    }

    /// The header line with the credentials for an HTTP proxy; empty without credentials.
    pub(crate) fn authorization(&self) -> String {
        let Some((user, password)) = &self.credentials else {
            return String::new();
        };
        let pair = BASE64.encode(format!("{user}:{password}").as_bytes());
        format!("Proxy-Authorization: Basic {pair}\r\n")
    }

    pub(crate) fn failed(&self, reason: impl Into<String>) -> FetchFailure {
        FetchFailure::Proxy {
            proxy: self.to_string(),
            reason: reason.into(),
        }
    }
}

/// Formats the proxy as in the profile, without credentials.
impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match self.kind {
            ProxyKind::Http => "http",
            ProxyKind::Socks5 => "socks5",
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// Leaves out the password.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self} except {:?}", self.except)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expected: bool) {
        let proxy = Proxy {
            kind: ProxyKind::Http,
            host: "proxy.example".to_owned(),
            port: 3128,
            credentials: Some(("user".to_owned(), "secret".to_owned())),
            remote_names: false,
            except: [".inside.example", "localhost", "[::1]"]
                .map(str::to_owned)
                .to_vec(),
        };
        assert_eq!(proxy.serves(host), expected, "{host}");
        assert!(!format!("{proxy:?} {proxy}").contains("secret"));
    }

    #[test]
    fn exceptions_are_names_and_suffixes() {
        check("www.example", true);
        check("a.INSIDE.example.", false);
        check("inside.example", true);
        check("Localhost", false);
        check("a.localhost", true);
        check("[::1]", false);
    }
}
