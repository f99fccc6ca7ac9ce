//! Parts of a URI and of a SURT form that filters examine. The host has normalised both.

/// Path and query of a URI. The fragment belongs to neither, because it is not fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parts<'a> {
    /// Scheme and authority, `http://example.org:8080`; for `dns:example.org` only the scheme.
    pub server: &'a str,
    /// The path with its first slash; may be empty.
    pub path: &'a str,
    /// The query without its question mark; empty if the URI has none.
    pub query: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a URI (RFC 3986 §3).
    #[must_use]
    pub fn of(uri: &'a str) -> Self {
        let uri = uri.split_once('#').map_or(uri, |(uri, _)| uri);
        let start = match uri.split_once(':') {
            Some((scheme, rest)) if rest.starts_with("//") => {
                let authority = scheme.len() + 3;
                uri[authority..]
                    .find(['/', '?'])
                    .map_or(uri.len(), |at| authority + at)
            }
            Some((scheme, _)) => scheme.len() + 1,
            None => 0,
        };
        let (server, rest) = uri.split_at(start);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Self {
            server,
            path,
            query,
        }
    }

    /// The extension of the last path segment, without its dot: `jpg` for `/a/b.jpg;v=1`.
    #[must_use]
    pub fn extension(&self) -> Option<&'a str> {
        let name = self.path.rsplit('/').next()?;
        let name = name.split(';').next()?;
        let (stem, extension) = name.rsplit_once('.')?;
        (!stem.is_empty() && !extension.is_empty()).then_some(extension)
    }

    /// Names and values of the query, unchanged. A name without `=` has an empty value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.query
            .split(['&', ';'])
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }
}

/// Host and port, as in a SURT form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurtServer<'a> {
    /// `org,example,www,`, or an IP address in its usual form.
    pub host: &'a str,
    /// The port; empty for the scheme's default.
    pub port: &'a str,
}

impl<'a> SurtServer<'a> {
    /// Returns the server of a SURT form, or of a prefix that ends within or after its authority. `None` without a host.
    #[must_use]
    pub fn of(surt: &'a str) -> Option<Self> {
        let (_, rest) = surt.split_once("://(")?;
        let authority = rest
            .split_once(')')
            .map_or(rest, |(authority, _)| authority);
        let server = authority
            .split_once('@')
            .map_or(authority, |(server, _)| server);
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (server, ""),
        };
        (!host.is_empty()).then_some(Self { host, port })
    }

    /// The host in its usual form.
    #[must_use]
    pub fn name(&self) -> String {
        let Some(labels) = self.host.strip_suffix(',') else {
            return self.host.to_owned();
        };
        let mut labels: Vec<&str> = labels.split(',').collect();
        labels.reverse();
        labels.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, server: &str, path: &str, query: &str) {
        assert_eq!(
            Parts::of(uri),
            Parts {
                server,
                path,
                query
            }
        );
    }

    #[test]
    fn a_uri_is_split() {
        check("http://e.org/a/b?c=d#e", "http://e.org", "/a/b", "c=d");
        check("http://e.org:8080?q", "http://e.org:8080", "", "q");
        check("http://e.org", "http://e.org", "", "");
        check("dns:e.org", "dns:", "e.org", "");
    }

    #[test]
    fn the_extension_is_taken_from_the_last_segment() {
        let of = |uri| Parts::of(uri).extension();
        assert_eq!(of("http://e.org/a.b/c.JPG;v=1.0?d.png"), Some("JPG"));
        assert_eq!(of("http://e.org/a.b/c"), None);
        assert_eq!(of("http://e.org/.htaccess"), None);
        assert_eq!(of("http://e.org/a."), None);
    }

    #[test]
    fn a_surt_contains_its_server() {
        let of = |surt| SurtServer::of(surt).map(|server| (server.name(), server.port.to_owned()));
        let is = |name: &str, port: &str| Some((name.to_owned(), port.to_owned()));
        assert_eq!(of("http://(org,example,www,)/a"), is("www.example.org", ""));
        assert_eq!(of("http://(org,example,"), is("example.org", ""));
        assert_eq!(of("http://(org,e,:8080@u:p)/a"), is("e.org", "8080"));
        assert_eq!(of("http://([::1]:8080)/a"), is("[::1]", "8080"));
        assert_eq!(of("http://([::1])/a"), is("[::1]", ""));
        assert_eq!(of("http://(127.0.0.1)/"), is("127.0.0.1", ""));
        assert_eq!(of("dns:e.org"), None);
    }
}
