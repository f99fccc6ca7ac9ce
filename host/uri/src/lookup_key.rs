//! Keys for looking captures up: the `urlkey` of CDX and CDXJ files. Indexes made by different tools must agree on it, so
//! it follows the practice of the web archives rather than the normalisation of [`Uri`](crate::Uri).

use std::borrow::Cow;

use url::Host;

use crate::canonical::{self, Www};
use crate::host::push_reversed;
use crate::percent::{self, decoded_fully};
use crate::scheme::{Beginning, Scheme, beginning};
use crate::uri::{trim, with_scheme};

/// The key under which CDX files list a URI: `org,example)/path?a=1&b=2`.
///
/// From [`lookup_form`], then: no userinfo, no `www`, no scheme's own port, no session ids, everything lower-case, no
/// slash at the end of a path, parameters sorted. `dns:example.org` reads `org,example)`; an empty text is `-`; texts
/// that are no hierarchical URI (`warcinfo:…`, `mailto:…`) stay as they are.
#[must_use]
pub fn cdx_key(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    if let Beginning::Known(Scheme::Dns, host) = beginning(text)
        && !host.starts_with('/')
    {
        return surt_host(&host.to_ascii_lowercase()) + ")";
    }
    let form = lookup_form(text).to_lowercase();
    let Some((scheme, rest)) = form.split_once("://") else {
        return text.to_owned();
    };
    // Only the rules for http know www; the scheme is not part of the key.
    let mut whole = format!("http://{rest}");
    // As indexers have them: one `www`, session ids of 32 characters.
    let rules: [fn(&str) -> Cow<'_, str>; 5] = [
        canonical::strip_userinfo,
        |text| canonical::strip_www(text, Www::Numbered, 1),
        |text| canonical::strip_session_ids(text, canonical::is_indexers_session_id),
        canonical::strip_cfids,
        canonical::fixup_query,
    ];
    for rule in rules {
        if let Cow::Owned(changed) = rule(&whole) {
            whole = changed;
        }
    }
    let whole = &whole["http://".len()..];
    let (server, tail) = whole.split_at(whole.find(['/', '?']).unwrap_or(whole.len()));
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    };
    let (host, port) = split_port(server);

    let mut key = surt_host(host);
    if let Some(port) = port.filter(|port| !is_default_port(scheme, port)) {
        key.push(':');
        key.push_str(port);
    }
    key.push(')');
    match path.strip_suffix('/') {
        Some("") | None if path.len() < 2 => key.push('/'),
        Some(shorter) => key.push_str(shorter),
        None => key.push_str(path),
    }
    if let Some(query) = query {
        let mut parameters: Vec<&str> = query.split('&').collect();
        parameters.sort_by_key(|parameter| match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*parameter, None),
        });
        key.push('?');
        key.push_str(&parameters.join("&"));
    }
    key
}

/// The form of a URI that blocklists and CDX keys are made from: percent-encoding undone as often as it was done and then
/// applied once, and only to what needs it; host lower-case without superfluous dots, numeric hosts as dotted IPv4; dot
/// segments and runs of slashes gone from the path; no fragment. (The canonicalisation that Safe Browsing documents.)
/// Texts without an authority stay as they are.
#[must_use]
pub fn lookup_form(text: &str) -> String {
    let clean = trim(text).replace(['\t', '\n', '\r'], "");
    let clean = clean.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = hierarchical(clean) else {
        return text.to_owned();
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    };
    let (userinfo, server) = match authority.rsplit_once('@') {
        Some((userinfo, server)) => (Some(userinfo), server),
        None => (None, authority),
    };
    let (host, port) = split_port(server);
    let host = plain_host(host);
    if host.is_empty() {
        return text.to_owned();
    }

    let mut form = format!("{}://", scheme.to_ascii_lowercase());
    if let Some(userinfo) = userinfo {
        percent::push_encoded(&mut form, decoded_fully(userinfo), is_unsafe_in_authority);
        form.push('@');
    }
    form.push_str(&host);
    if let Some(port) = port.filter(|port| !is_default_port(&scheme, port)) {
        form.push(':');
        form.push_str(port);
    }
    percent::push_encoded(&mut form, plain_path(&decoded_fully(path)), is_unsafe);
    if let Some(query) = query {
        form.push('?');
        percent::push_encoded(&mut form, decoded_fully(query), is_unsafe);
    }
    form
}

/// Scheme, and what follows its slashes. `example.org/x` is http.
fn hierarchical(text: &str) -> Option<(String, String)> {
    let text = with_scheme(text);
    let (scheme, rest) = text.split_once(':')?;
    let is_web = matches!(
        beginning(&text),
        Beginning::Known(Scheme::Http | Scheme::Https | Scheme::Ftp, _)
    );
    if !is_web && !rest.starts_with("//") {
        return None;
    }
    Some((scheme.to_owned(), rest.trim_start_matches('/').to_owned()))
}

fn surt_host(host: &str) -> String {
    let mut reversed = String::with_capacity(host.len() + 1);
    push_reversed(&mut reversed, host);
    if reversed.ends_with(',') {
        reversed.pop();
    }
    reversed
}

/// Host and port; a colon without digits after it is no port.
fn split_port(server: &str) -> (&str, Option<&str>) {
    match server.rsplit_once(':') {
        Some((host, "")) => (host, None),
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, Some(port)),
        _ => (server, None),
    }
}

fn is_default_port(scheme: &str, port: &str) -> bool {
    Scheme::named(scheme).is_some_and(|scheme| port.parse() == Ok(scheme.default_port()))
}

fn plain_host(host: &str) -> String {
    let bytes = decoded_fully(host);
    let host = without_spare_dots(&String::from_utf8_lossy(&bytes));
    match Host::parse(&host) {
        // Characters that a name ignores may have stood between two dots.
        Ok(Host::Domain(name)) => without_spare_dots(&name),
        Ok(address) => address.to_string(),
        Err(_) => {
            let mut out = String::with_capacity(host.len());
            percent::push_encoded(
                &mut out,
                host.to_lowercase().bytes(),
                is_unsafe_in_authority,
            );
            out
        }
    }
}

fn without_spare_dots(host: &str) -> String {
    let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    labels.join(".")
}

fn plain_path(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_with_slash = true;
    for segment in path.split(|byte| *byte == b'/') {
        ends_with_slash = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let mut out = Vec::with_capacity(path.len() + 1);
    for segment in &segments {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if ends_with_slash {
        out.push(b'/');
    }
    out
}

/// What may not stand in the lookup form as it is.
fn is_unsafe(byte: u8) -> bool {
    matches!(byte, b'#' | b'%' | 0..=b' ' | 0x7f..)
}

/// What would end a host or a userinfo if it stood there as it is.
fn is_unsafe_in_authority(byte: u8) -> bool {
    is_unsafe(byte) || matches!(byte, b'/' | b'\\' | b'?' | b'@' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdx_key_is_what_other_indexers_write() {
        for (uri, key) in [
            ("http://archive.org", "org,archive)/"),
            ("http://www.archive.org/goo/", "org,archive)/goo"),
            ("http://archive.org/goo/?", "org,archive)/goo"),
            (
                "https://u:p@archive.org:443/Goo?b&a",
                "org,archive)/goo?a&b",
            ),
            ("http://archive.org:8080/", "org,archive:8080)/"),
            (
                "http://archive.org/i.php?PHPSESSID=0123456789abcdefghijklemopqrstuv&a=b",
                "org,archive)/i.php?a=b",
            ),
            ("http://127.0.0.1/x", "127.0.0.1)/x"),
            (
                "whois://whois.isoc.org.il/shaveh.co.il",
                "il,org,isoc,whois)/shaveh.co.il",
            ),
            ("http://www.www.archive.org/", "org,archive,www)/"),
            (
                "http://archive.org/?PHPSESSID=0123456789abcdefghijklemop",
                "org,archive)/?phpsessid=0123456789abcdefghijklemop",
            ),
            ("dns:archive.org", "org,archive)"),
            ("mailto:a@b.org", "mailto:a@b.org"),
            ("warcinfo:a.warc.gz", "warcinfo:a.warc.gz"),
        ] {
            assert_eq!(cdx_key(uri), key, "{uri}");
        }
    }

    #[test]
    fn the_documented_examples_of_safe_browsing_hold() {
        for (uri, form) in [
            ("http://host/%25%32%35%25%32%35", "http://host/%25%25"),
            ("http://host/%2525252525252525", "http://host/%25"),
            ("http://host/asdf%25%32%35asd", "http://host/asdf%25asd"),
            (
                "http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/%77%77%77",
                "http://168.188.99.26/.secure/www",
            ),
            ("http://3279880203/blah", "http://195.127.0.11/blah"),
            ("http://www.google.com/blah/..", "http://www.google.com/"),
            ("www.google.com", "http://www.google.com/"),
            (
                "http://www.evil.com/blah#frag#ment",
                "http://www.evil.com/blah",
            ),
            ("http://www.GOOgle.com/", "http://www.google.com/"),
            ("http://www.google.com/q?r?s", "http://www.google.com/q?r?s"),
            ("http://\u{1}\u{80}.com/", "http://%01%C2%80.com/"),
            (
                "http://www.gotaport.com:1234/",
                "http://www.gotaport.com:1234/",
            ),
            (
                "http://host.com//twoslashes?more//slashes",
                "http://host.com/twoslashes?more//slashes",
            ),
        ] {
            assert_eq!(lookup_form(uri), form, "{uri}");
        }
    }
}
