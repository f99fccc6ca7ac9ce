//! Sets of SURT prefixes, and the parsers of SURT prefixes (glossary, "SURT prefix") and hosts in settings.

use crate::parts::SurtServer;

/// A set of SURT prefixes, in which the prefix of a SURT form can be looked up.
#[derive(Debug, Clone, Default)]
pub struct Prefixes {
    /// Sorted. No entry is a prefix of another, because the longer one would be redundant.
    sorted: Vec<String>,
}

impl FromIterator<String> for Prefixes {
    fn from_iter<I: IntoIterator<Item = String>>(prefixes: I) -> Self {
        let mut sorted: Vec<String> = prefixes.into_iter().collect();
        sorted.sort_unstable();
        // Every string with a prefix sorts directly after that prefix.
        sorted.dedup_by(|later, kept| later.starts_with(kept.as_str()));
        Self { sorted }
    }
}

impl Prefixes {
    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the entry that is a prefix of `surt`. No entry is a prefix of another, so it can only be the last entry that does
    /// not sort after `surt`.
    #[must_use]
    pub fn prefix_of(&self, surt: &str) -> Option<&str> {
        let after = self
            .sorted
            .partition_point(|prefix| prefix.as_str() <= surt);
        let last = self.sorted.get(after.checked_sub(1)?)?;
        surt.starts_with(last.as_str()).then_some(last)
    }
}

/// Parses a prefix of a setting: a SURT prefix (`http://(org,example,`, `(org,example,`), or a URI, which implies a prefix. A
/// leading `+` is ignored. An error describes the fault.
pub fn parse_prefix(text: &str) -> Result<String, String> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text).trim_start();
    if text.is_empty() {
        return Err("an empty prefix would accept everything; write one like `http://(org,example,` or a URI".to_owned());
    }
    if text.contains(char::is_whitespace) {
        return Err(format!("`{text}` contains whitespace"));
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let scheme = scheme.to_ascii_lowercase();
    let scheme = if scheme == "https" { "http" } else { &scheme };
    if rest.starts_with('(') {
        return Ok(format!("{scheme}://{rest}").to_ascii_lowercase());
    }
    implied_prefix(scheme, rest)
}

/// Host and port of a setting, in the form of SURTs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// `org,example,www,`, or an IP address in its usual form.
    pub labels: String,
    /// The port; empty for any port.
    pub port: String,
}

impl From<SurtServer<'_>> for Host {
    fn from(server: SurtServer<'_>) -> Self {
        Self {
            labels: server.host.to_owned(),
            port: server.port.to_owned(),
        }
    }
}

/// Parses the host of a setting: `www.example.org`, `example.org:8080`, `[::1]`. An error describes the fault.
pub fn parse_host(text: &str) -> Result<Host, String> {
    let text = text.trim();
    if text.contains(['/', '(', ',', '?', '#', '@', '*']) || text.contains(char::is_whitespace) {
        return Err(format!(
            "`{text}` is not a host; write it like `www.example.org`"
        ));
    }
    let (host, port) = host_and_port(text)?;
    Ok(Host {
        labels: reverse_labels(host).to_ascii_lowercase(),
        port: port.to_owned(),
    })
}

/// Returns the prefix implied by a URI. `rest` is the URI without its scheme.
fn implied_prefix(scheme: &str, rest: &str) -> Result<String, String> {
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let server = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = host_and_port(server).map_err(|problem| match server {
        "" => format!(
            "`{rest}` has no host; write a SURT prefix like `http://(org,example,` or a URI"
        ),
        _ => problem,
    })?;

    let mut prefix = format!("{scheme}://({}", reverse_labels(host));
    if !port.is_empty() {
        prefix.push(':');
        prefix.push_str(port);
    }
    match path.rfind('/') {
        // A path with a slash implies its folder.
        Some(slash) => {
            prefix.push(')');
            prefix.push_str(&path[..=slash]);
        }
        None if !path.is_empty() => prefix.push_str(")/"),
        // A URI without a path implies the domain with all its subdomains.
        None => {}
    }
    Ok(prefix.to_ascii_lowercase())
}

/// Splits `example.org:8080`. The port is empty if it is 80 or 443.
fn host_and_port(server: &str) -> Result<(&str, &str), String> {
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (host, port)
        }
        _ => (server, ""),
    };
    if host.is_empty() {
        return Err(format!(
            "`{server}` has no host; write it like `www.example.org`"
        ));
    }
    if !host.is_ascii() {
        return Err(format!(
            "the host `{host}` is not ASCII; write it in its ASCII form, `xn--…`"
        ));
    }
    let port = if matches!(port, "80" | "443") {
        ""
    } else {
        port
    };
    Ok((host, port))
}

/// Reverses the labels: `www.example.org` becomes `org,example,www,`. Addresses stay unchanged.
fn reverse_labels(host: &str) -> String {
    let address = host.starts_with('[')
        || host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if address {
        return host.to_owned();
    }
    host.trim_end_matches('.')
        .rsplit('.')
        .map(|label| format!("{label},"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, prefix: &str) {
        assert_eq!(parse_prefix(text).as_deref(), Ok(prefix));
    }

    #[test]
    fn a_uri_implies_a_prefix() {
        check("http://www.archive.org/", "http://(org,archive,www,)/");
        check("http://www.archive.org", "http://(org,archive,www,");
        check(
            "http://example.org/main/subsection/",
            "http://(org,example,)/main/subsection/",
        );
        check(
            "http://example.org/main/subsection",
            "http://(org,example,)/main/",
        );
        check(
            "https://yone.two.three/a/b/c",
            "http://(three,two,yone,)/a/b/",
        );
        check("example.org", "http://(org,example,");
        check("http://example.org?q", "http://(org,example,)/");
        check("http://127.2.34.5/foo", "http://(127.2.34.5)/");
        check("http://[::1]:8080/", "http://([::1]:8080)/");
        check(
            "http://user@Example.ORG:8080/A/",
            "http://(org,example,:8080)/a/",
        );
        check("ftp://example.org/pub/x", "ftp://(org,example,)/pub/");
    }

    #[test]
    fn a_surt_prefix_is_normalised() {
        check("http://(org,archive,", "http://(org,archive,");
        check(
            "https://(org,archive,www,)/Movies",
            "http://(org,archive,www,)/movies",
        );
        check("(is,", "http://(is,");
        check(" + http://(is,", "http://(is,");
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        for text in [
            "",
            "  ",
            "+",
            "http://",
            "http:///path",
            "http://eins zwei/",
            "http://dæmi.is/",
        ] {
            assert!(parse_prefix(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_shortest_prefix_is_found() {
        let lines = [
            "http://(org,archive,",
            "http://(org,example,www,)",
            "http://(is,bok,",
            "http://(is,",
            "http://(is,bok,www",
        ];
        let prefixes: Prefixes = lines.map(str::to_owned).into_iter().collect();
        assert_eq!(
            prefixes.sorted,
            [
                "http://(is,",
                "http://(org,archive,",
                "http://(org,example,www,)"
            ]
        );
        assert_eq!(
            prefixes.prefix_of("http://(is,example,)/foo"),
            Some("http://(is,")
        );
        assert_eq!(
            prefixes.prefix_of("http://(org,archive,"),
            Some("http://(org,archive,")
        );
        assert_eq!(prefixes.prefix_of("http://(org,archivex,)/"), None);
        assert_eq!(prefixes.prefix_of("http://(aa,)/"), None);
        assert_eq!(prefixes.prefix_of("http://(zz,)/"), None);
        assert_eq!(Prefixes::default().prefix_of("http://(zz,)/"), None);
    }
}
