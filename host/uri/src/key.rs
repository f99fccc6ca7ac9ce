//! The record key: the exact URI in SURT order.
//!
//! `org,example,www,)/path?query#https` consists of the queue key of the default policy (see [`Uri::surt_authority`]), `)`,
//! path and query with their case, and `#`. Then follow the parts that SURT order lacks: the scheme, a `.` for a host with the
//! root's dot, `@` and the userinfo. `dns:` and `whois:` have a `:` after the scheme.
//!
//! - The key is injective, and [`Uri::from_key`] reads it back: a host has no `)`, a normalised URI no `#`.
//! - A host is one range, `org,example,www,` + (`#port`) + `)`. A domain with all hosts below it is the range of the
//!   prefix `org,example,`. http and https of one path are adjacent, and so are a path and its sub-paths.
//! - `#` and `)` sort below every character of a label, so a host, with its ports, comes before its sub-domains.

use crate::host::{push_restored, push_reversed};
use crate::scheme::Scheme;
use crate::uri::{Uri, UriError};

/// The reason why a text is not a record key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text does not have the form `authority)path#scheme`.
    #[error("{0:?} is not a record key")]
    Shape(String),
    /// The text has the form, but not a valid URI.
    #[error("record key {key:?} does not contain a valid URI")]
    Uri {
        /// The key.
        key: String,
        /// The reason why the URI is refused.
        #[source]
        source: UriError,
    },
}

impl Uri {
    /// The record key: see the head of `key.rs`, and [`Uri::from_key`] for the inverse.
    /// `https://www.example.org:8080/Path?q` → `org,example,www,#8080)/Path?q#https`.
    #[must_use]
    pub fn key(&self) -> String {
        let mut key = String::with_capacity(self.as_str().len() + 4);
        if let Some(host) = self.host() {
            push_reversed(&mut key, host);
            self.push_port(&mut key, '#');
        }
        key.push(')');
        if self.scheme() != "dns" {
            key.push_str(self.path_and_query());
        }
        key.push('#');
        key.push_str(self.scheme());
        if self.is_opaque() {
            key.push(':');
        } else {
            if self.host().is_some_and(|host| host.ends_with('.')) {
                key.push('.');
            }
            if let Some(userinfo) = self.userinfo() {
                key.push('@');
                key.push_str(userinfo);
            }
        }
        key
    }

    /// The URI of a record key.
    ///
    /// # Errors
    /// [`KeyError`] if the text was not made by [`Uri::key`].
    pub fn from_key(key: &str) -> Result<Uri, KeyError> {
        let text = uri_text(key).ok_or_else(|| KeyError::Shape(key.to_owned()))?;
        let uri = Uri::parse(&text).map_err(|source| KeyError::Uri {
            key: key.to_owned(),
            source,
        })?;
        if uri.key() == key {
            return Ok(uri);
        }
        // Stores of 0.1.0 have paths with an unencoded `^`. A stored URI is fetched as it was found.
        let (path, _) = key
            .split_once(')')
            .and_then(|(_, rest)| rest.split_once(['?', '#']))
            .unwrap_or_default();
        Some(uri)
            .filter(|uri| uri.path() == path.replace('^', "%5E"))
            .map(|uri| uri.with_path(path))
            .filter(|uri| uri.key() == key)
            .ok_or_else(|| KeyError::Shape(key.to_owned()))
    }
}

/// Writes the URI of a key, without checking it.
fn uri_text(key: &str) -> Option<String> {
    let (authority, rest) = key.split_once(')')?;
    let (path, tail) = rest.rsplit_once('#')?;
    let (tail, userinfo) = match tail.split_once('@') {
        Some((tail, userinfo)) => (tail, Some(userinfo)),
        None => (tail, None),
    };
    let (tail, rooted) = match tail.strip_suffix('.') {
        Some(tail) => (tail, true),
        None => (tail, false),
    };
    let (host, port) = match authority.split_once('#') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };

    let mut text = String::with_capacity(key.len() + 4);
    if let Some(scheme) = tail.strip_suffix(':') {
        text.push_str(Scheme::named(scheme)?.as_str());
        text.push(':');
        push_restored(&mut text, host);
        text.push_str(path);
        return Some(text);
    }
    text.push_str(Scheme::named(tail)?.as_str());
    text.push_str("://");
    if let Some(userinfo) = userinfo {
        text.push_str(userinfo);
        text.push('@');
    }
    push_restored(&mut text, host);
    if rooted {
        text.push('.');
    }
    if let Some(port) = port {
        text.push(':');
        text.push_str(port);
    }
    text.push_str(path);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, key: &str) {
        let uri = Uri::parse(uri).unwrap();
        assert_eq!(uri.key(), key);
        assert_eq!(Uri::from_key(key).unwrap(), uri);
    }

    #[test]
    fn a_key_is_the_uri_in_surt_order() {
        check(
            "https://www.example.org/Path?q=1",
            "org,example,www,)/Path?q=1#https",
        );
        check("http://example.org:8080/", "org,example,#8080)/#http");
        check("http://example.org./a)b", "org,example,)/a)b#http.");
        check("http://u:p@example.org/", "org,example,)/#http@u:p");
        check("http://127.0.0.1:81/x", "127.0.0.1#81)/x#http");
        check("http://[::1]:81/x", "[::1]#81)/x#http");
        check("ftps://example.org:21/x", "org,example,#21)/x#ftps");
        check("dns:www.example.org", "org,example,www,)#dns:");
        check("whois:example.org", ")example.org#whois:");
        check("whois://whois.example.org/a", "org,example,whois,)/a#whois");
    }

    #[test]
    fn a_key_of_the_first_release_can_still_be_read() {
        let key = "org,a,)/b^%5E)?c^d#http@u";
        let uri = Uri::from_key(key).unwrap();
        assert_eq!(uri.as_str(), "http://u@a.org/b^%5E)?c^d");
        assert_eq!(uri.key(), key);
    }

    #[test]
    fn text_that_is_not_a_record_key_is_refused() {
        for key in [
            "org,a,)/%c3#http",
            "org,a,)/b/../^#http",
            "",
            "org,example",
            "org,example,)/",
            "org,example,)/#gopher",
            "org,,)/#http",
            "org,EXAMPLE,)/#http",
        ] {
            assert!(Uri::from_key(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn a_host_comes_before_its_subdomains_and_stays_together() {
        let ordered = [
            "dns:example.org",
            "http://example.org/",
            "https://example.org/",
            "http://example.org/a",
            "http://example.org/a/b",
            "http://0.example.org/",
            "http://a.example.org/",
            "http://a-b.example.org/",
            "http://exampleb.org/",
        ];
        let keys: Vec<_> = ordered
            .iter()
            .map(|uri| Uri::parse(uri).unwrap().key())
            .collect();
        assert!(keys.is_sorted(), "{keys:#?}");
        let port = Uri::parse("http://example.org:8080/").unwrap().key();
        assert!(port < keys[0] && port > Uri::parse("http://exampla.org/").unwrap().key());
    }
}
