//! CDX keys: the `urlkey` of CDX and CDXJ files, by which replay looks up a capture.
//!
//! A key is right if readers of the index compute the same one. pywb, cdxj-indexer and the tools of the Internet Archive agree
//! on the keys of the Python package `surt` (0.3.1). Therefore its rules apply here, odd ones included, and not those of
//! [`Uri`](crate::Uri). `cargo xtask judges replay` compares the keys of 5,000 fuzzed URIs with cdxj-indexer's.

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use regex::Regex;
use url::Host;

use crate::percent::{self, decoded_fully};

/// Session ids in a lower-case path: a segment of ASP.NET, before a page with the ending `.aspx`.
static PATH_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [r"\((?:[a-z]\([0-9a-z]{24}\))+\)", r"\([0-9a-z]{24}\)"]
        .iter()
        .filter_map(|id| Regex::new(&format!(r"^(.*/){id}/([^?]+\.aspx.*)$")).ok())
        .collect()
});

/// Session ids in a lower-case query. Each pattern is applied once, in this order, from the right. It also matches the end of
/// longer names: `xsid=` loses its `sid=`.
static QUERY_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    ]
    .iter()
    .filter_map(|id| Regex::new(&format!("^(.*){id}(?:&(.*))?$")).ok())
    .collect()
});

/// The key under which CDX files list a URI: `org,example)/path?a=1&b=2`.
///
/// | part | in the key |
/// |---|---|
/// | scheme | left out, except without a host: `dns:example.org` |
/// | userinfo, fragment | left out |
/// | host | lower-case, without one `www.` or `www2.`, reversed, IPv4 addresses too (`1,0,0,127`); IPv6 without brackets |
/// | port | kept, except 80 of http and 443 of https |
/// | path | fully decoded, encoded once, lower-case, without `.`, `..`, `//`, final slash and ASP.NET session |
/// | query | encoded like the path, lower-case, no session ids, parameters sorted |
///
/// Empty text is `-`. Text that cannot be read as a URI is its own key.
#[must_use]
pub fn cdx_key(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    if text.starts_with("filedesc") {
        return text.to_owned();
    }
    key(text).unwrap_or_else(|| text.to_owned())
}

fn key(text: &str) -> Option<String> {
    let mut text = text
        .trim_matches(|c| matches!(c, ' ' | '\t'..='\r'))
        .replace(['\t', '\n', '\r'], "");
    if text.is_empty() {
        return None;
    }
    if !has_scheme(&text) {
        text.insert_str(0, "http://");
    }
    let (scheme, rest) = last_scheme(&text).split_once(':')?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (mut host, port) = host_and_port(authority)?;
    let mut path = path.to_owned();
    if host.is_empty() && scheme.starts_with("http") && !path.is_empty() {
        // `http:////example.org/a` and `http:example.org/a`.
        let after = path.trim_start_matches('/');
        let (first, after) = after.split_once('/').unwrap_or((after, ""));
        host = first.to_owned();
        path = format!("/{after}");
    }
    let host = plain_host(&host);
    let host = match host.split_once('.') {
        Some((label, shorter)) if scheme != "dns" && is_www(label) => shorter,
        _ => &host,
    };

    let mut path = plain(&path);
    let mut key = if host.is_empty() {
        format!("{scheme}:")
    } else {
        path = normal_path(&path);
        let port = port.filter(|port| !is_default_port(scheme, *port));
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let labels: Vec<&str> = host.rsplit('.').collect();
        format!("{}{port})", labels.join(","))
    };
    path = without_sessions(path, &PATH_SESSIONS);
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    key.push_str(&path);
    let query = without_sessions(plain(query), &QUERY_SESSIONS);
    if !query.is_empty() {
        key.push_str(if path.is_empty() { "/?" } else { "?" });
        key.push_str(&sorted(&query));
    }
    Some(key)
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// The last of several schemes: `https://a` of `http://https://a`.
fn last_scheme(mut text: &str) -> &str {
    let is_web = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    while let Some((_, inner)) = text.split_once("://")
        && is_web(text)
        && is_web(inner)
    {
        text = inner;
    }
    text
}

/// The host of an authority as written, without the brackets of IPv6, and the port. `None` if the port is invalid.
fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let server = authority.trim_end_matches(':');
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    let (host, port) = match server.split_once('[') {
        Some((_, inside)) => {
            let (host, after) = inside.split_once(']').unwrap_or((inside, ""));
            (host, after.split_once(':').map_or("", |(_, port)| port))
        }
        None => server.split_once(':').unwrap_or((server, "")),
    };
    let port = match port {
        "" => None,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
        _ => return None,
    };
    Some((host.to_owned(), port.filter(|port| *port != 0)))
}

/// Normalises a host: decoded, without superfluous dots, lower-case. Other scripts become A-labels, numbers IPv4 addresses.
fn plain_host(host: &str) -> String {
    let mut bytes = decoded_fully(host);
    if !bytes.is_ascii() {
        // `surt` follows IDNA 2003, which maps the four characters for which UTS 46 has an option.
        let name = String::from_utf8_lossy(&bytes)
            .replace('\u{fffd}', "")
            .replace('ß', "ss")
            .replace('ς', "σ")
            .replace(['\u{200c}', '\u{200d}'], "");
        if let Ok(parsed) = Host::parse(&name) {
            bytes = parsed.to_string().into_bytes();
        }
    }
    let host = encoded(&bytes).replace("..", ".");
    let host = host.trim_matches('.');
    ipv4(host).map_or_else(|| host.to_owned(), |address| address.to_string())
}

/// Parses an IPv4 address of up to four numbers with dots between them, like `inet_aton` of C.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if is_number(host) {
        // Always decimal; of a larger number the lowest 32 bits.
        let digits = host.bytes().map(|digit| u32::from(digit - b'0'));
        let number = digits.fold(0, |n: u32, digit| n.wrapping_mul(10).wrapping_add(digit));
        return Some(Ipv4Addr::from(number));
    }
    let is_octal = host.starts_with('0');
    if !host.split('.').all(is_number) || is_octal && host.contains(['8', '9']) {
        return None;
    }
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => Some(address),
        _ => None,
    }
}

fn is_www(label: &str) -> bool {
    label
        .strip_prefix("www")
        .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

fn is_default_port(scheme: &str, port: u16) -> bool {
    scheme.eq_ignore_ascii_case("http") && port == 80
        || scheme.eq_ignore_ascii_case("https") && port == 443
}

/// Normalises text: fully decoded, percent-encoded once, lower-case.
fn plain(text: &str) -> String {
    encoded(&decoded_fully(text))
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    percent::push_encoded(
        &mut text,
        bytes.iter().copied(),
        |byte| matches!(byte, b'#' | b'%' | 0..=b' ' | 0x7f..),
    );
    text.make_ascii_lowercase();
    text
}

/// Normalises a path without `.`, `..` and empty segments. A `..` above the root stays. A slash at the end stays, unless only
/// `.` or `..` would leave it.
fn normal_path(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." if !kept.is_empty() => _ = kept.pop(),
            other => kept.push(other),
        }
    }
    let last = kept.pop().unwrap_or_default();
    kept.retain(|segment| !segment.is_empty());
    kept.push(last);
    format!("/{}", kept.join("/"))
}

fn without_sessions(mut text: String, sessions: &[Regex]) -> String {
    for session in sessions {
        if let Cow::Owned(shorter) = session.replace(&text, "$1$2") {
            text = shorter;
        }
    }
    text
}

/// Sorts a query's parameters by name, then by value; a missing value comes before an empty one.
fn sorted(query: &str) -> String {
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_by_key(|parameter| match parameter.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (*parameter, None),
    });
    parameters.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_cdxj_indexer_writes() {
        let cases = include_str!("../tests/cases/cdx_keys.tsv");
        let mut count = 0;
        for line in cases.lines().filter(|line| !line.starts_with('#')) {
            let (uri, key) = line.split_once('\t').unwrap_or((line, ""));
            assert_eq!(cdx_key(uri), key, "{uri}");
            count += 1;
        }
        assert!(count > 100, "{count} cases");
    }

    #[test]
    fn text_that_is_not_a_uri_is_its_own_key() {
        for text in [
            " ",
            "http://a.org:b/",
            "http://a.org:65536/",
            "http://a.org:80:90/",
        ] {
            assert_eq!(cdx_key(text), text);
        }
    }
}
