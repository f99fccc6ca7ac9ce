//! Names of queues: from a URI to the name of its queue, and from that name back to a URI of its site. Both define identity: their
//! results must never change for a job.

use opilio_uri::Uri;

use crate::fnv::fnv;
use crate::frontier::QueueKey;

/// Name of the queue of all `whois` URIs.
const WHOIS: &str = "whois";

/// Separator before the number of one of several queues of a key. A port has one `#` before it.
const PARALLEL: &str = "##";

/// The key of a URI's queue.
pub(crate) fn key_of(uri: &Uri, key: QueueKey) -> String {
    if uri.scheme() == WHOIS {
        return WHOIS.to_owned();
    }
    let plain = |host: &str| host.strip_suffix('.').unwrap_or(host).to_owned();
    match key {
        QueueKey::SurtAuthority => uri.surt_authority(),
        QueueKey::Host => uri.host().map_or_else(|| uri.surt_authority(), plain),
        QueueKey::Domain => uri
            .registrable_domain()
            .or_else(|| uri.host())
            .map_or_else(|| uri.surt_authority(), plain),
    }
}

/// The name of the queue among those that share a key, by a hash of path and query. The first has the key itself.
pub(crate) fn spread(key: String, uri: &Uri, queues: u32) -> String {
    if queues <= 1 || matches!(uri.scheme(), "dns" | WHOIS) {
        return key;
    }
    let hash = fnv(0, uri.path_and_query().as_bytes());
    // The lower bits of this hash depend only on the last byte.
    match (hash ^ (hash >> 32)) % u64::from(queues) {
        0 => key,
        number => format!("{key}{PARALLEL}{number}"),
    }
}

/// The key, or the forced name, with which a queue's name begins.
pub(crate) fn key_in(name: &str) -> &str {
    name.split(PARALLEL).next().unwrap_or(name)
}

/// A URI of the server, host or domain of a key; `None` if the text is not a key.
pub(crate) fn uri_of_key(key_text: &str, key: QueueKey) -> Option<Uri> {
    match key {
        _ if key_text == WHOIS => None,
        QueueKey::SurtAuthority => Uri::from_key(&format!("{key_text})/#http")).ok(),
        QueueKey::Host | QueueKey::Domain => Uri::parse(&format!("http://{key_text}/"))
            .ok()
            .filter(|uri| uri.host() == Some(key_text)),
    }
}

/// Returns `true` if a forced name might also be a key, and so belong to a site.
pub(crate) fn looks_like_key(name: &str) -> bool {
    name.contains([',', '.', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, key: QueueKey, expected: &str) {
        assert_eq!(key_of(&Uri::parse(uri).unwrap(), key), expected);
    }

    #[test]
    fn a_key_is_authority_host_or_domain() {
        for (uri, authority, host, domain) in [
            (
                "https://www.example.co.uk/a",
                "uk,co,example,www,",
                "www.example.co.uk",
                "example.co.uk",
            ),
            (
                "http://www.example.co.uk.:81/",
                "uk,co,example,www,#81",
                "www.example.co.uk",
                "example.co.uk",
            ),
            (
                "dns:www.example.co.uk",
                "uk,co,example,www,",
                "www.example.co.uk",
                "example.co.uk",
            ),
            (
                "http://127.0.0.1:81/",
                "127.0.0.1#81",
                "127.0.0.1",
                "127.0.0.1",
            ),
            ("http://[::1]/", "[::1]", "[::1]", "[::1]"),
            ("http://localhost/", "localhost,", "localhost", "localhost"),
            ("whois:example.org", "whois", "whois", "whois"),
            ("whois://whois.example.org/x", "whois", "whois", "whois"),
        ] {
            check(uri, QueueKey::SurtAuthority, authority);
            check(uri, QueueKey::Host, host);
            check(uri, QueueKey::Domain, domain);
        }
    }

    #[test]
    fn a_key_is_converted_back_to_a_uri_of_its_site() {
        for uri in [
            "http://www.example.co.uk/",
            "http://www.example.co.uk:81/",
            "http://127.0.0.1:81/",
            "http://[::1]/",
            "http://localhost/",
        ] {
            let uri = Uri::parse(uri).unwrap();
            for key in [QueueKey::SurtAuthority, QueueKey::Host, QueueKey::Domain] {
                let text = key_of(&uri, key);
                let uri_of_site = uri_of_key(&text, key).unwrap();
                assert_eq!(key_of(&uri_of_site, key), text);
                if key == QueueKey::SurtAuthority {
                    assert_eq!(uri_of_site, uri);
                }
            }
        }
        assert_eq!(uri_of_key("whois", QueueKey::Host), None);
        assert_eq!(uri_of_key("news", QueueKey::SurtAuthority), None);
        assert_eq!(uri_of_key("a b/c", QueueKey::Host), None);
    }

    #[test]
    fn the_queues_of_a_spread_key_never_change() {
        let queue_name = |uri: &str, queues| {
            let uri = Uri::parse(uri).unwrap();
            spread(key_of(&uri, QueueKey::SurtAuthority), &uri, queues)
        };
        assert_eq!(queue_name("http://a.org/x", 1), "org,a,");
        assert_eq!(queue_name("dns:a.org", 64), "org,a,");
        let mut counts = [0; 4];
        for number in 0..4000 {
            let name = queue_name(&format!("http://a.org:81/page?id={number}"), 4);
            assert_eq!(key_in(&name), "org,a,#81");
            let queue: usize = name
                .split("##")
                .nth(1)
                .map_or(0, |number| number.parse().unwrap());
            counts[queue] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
        // Frozen: jobs depend on it.
        let frozen: Vec<String> = ["/", "/a", "/b?c=d"]
            .iter()
            .map(|path| queue_name(&format!("http://a.org{path}"), 8))
            .collect();
        assert_eq!(frozen, FROZEN);
    }

    const FROZEN: [&str; 3] = ["org,a,##2", "org,a,##2", "org,a,##7"];
}
