//! The layout of the store's keys. Numbers are big-endian, so that bytes sort as the numbers do. If a queue owns an entry, the
//! key begins with the queue's name, which contains no NUL. So a set of queues is a set of ranges, and can be handed over.
//!
//! | keyspace          | holds                                     | key                                             | value              |
//! |-------------------|-------------------------------------------|-------------------------------------------------|--------------------|
//! | `uris`            | known URIs                                | record key: the exact URI in SURT order         | `UriRecord`        |
//! | `canonical_forms` | index of known canonical forms            | hash of authority, hash of canonical form (8 + 8) | finder, then the URI written against the canonical form |
//! | `ready`           | URIs that may be issued, by queue         | queue, NUL, directive, precedence, due, arrival | record key         |
//! | `waiting`         | URIs that are not due, by queue           | queue, NUL, due, arrival                        | directive, precedence, record key |
//! | `in_process`      | issued URIs that are not finished         | ticket                                          | `Issued`           |
//! | `queues`          | queues                                    | queue                                           | `QueueRecord`      |
//! | `queue_order`     | places of queues that have URIs to issue  | precedence, inactive (0, 1), wake, arrival, queue | nothing          |
//! | `server_groups`   | politeness of server groups               | server group                                    | times at which its slots may issue again |
//! | `tallies`         | counts for quotas                         | kind, NUL, name of host, domain or source       | `Tally`            |
//! | `embeds_by_page`  | embeds of other domains, by page          | hash of a page (16), record key of an embed     | visits without it  |
//! | `pages_by_embed`  | the same, by embed                        | record key of an embed, NUL, hash of a page (16) | nothing           |
//! | `refused_uris`    | URIs that the scope refused               | hash of a URI (16)                              | `Rejection`        |
//! | `site_values`     | values that plugins keep with sites       | record key up to `)`, plugin, NUL, name         | `KeptValue`        |
//! | `site_figures`    | sums over groups of a site's documents    | record key up to `)`, group                     | `GroupFigures`     |
//! | `caller_values`   | values of the caller: robots.txt, addresses, cookies, prices, counts; the outbox | the caller's name; `outbox/`, number | the caller's bytes; `Candidate` |
//! | `meta`            | `counters`, `identity`, `takeover`        | the name                                        | `Counters`, the caller's bytes, a time |
//!
//! A URI that waits moves to `ready` without a change of its record: the keys of both places follow from
//! [`UriState::Queued`](crate::UriState::Queued). A URI in process stays in `ready` until it is finished.

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::{
    Directive, TallyKind,
    instant::{self, Millis},
    record::CanonicalKey,
};

/// The position of an entry of `ready` within its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) directive: Directive,
    pub(crate) precedence: u8,
    pub(crate) due: Millis,
    pub(crate) arrival: u64,
}

/// The sort key of a queue among the queues of its precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct OrderKey {
    /// `true` if it is behind all active queues of its precedence.
    pub(crate) is_inactive: bool,
    pub(crate) wake: Millis,
    /// Arrival number, which breaks ties: the lower number goes first.
    pub(crate) arrival: u64,
}

pub(crate) fn ready(queue: &str, rank: Rank) -> Vec<u8> {
    let mut key = queue_start(queue);
    key.push(directive_byte(rank.directive));
    key.push(rank.precedence);
    key.extend(instant::sortable(rank.due));
    key.extend(rank.arrival.to_be_bytes());
    key
}

/// The rank in a key of `ready`; `None` if the key is malformed.
pub(crate) fn rank(key: &[u8]) -> Option<Rank> {
    let tail = key.last_chunk::<18>()?;
    let (&[directive, precedence], numbers) = tail.split_first_chunk::<2>()?;
    let (due, arrival) = numbers.split_first_chunk::<8>()?;
    Some(Rank {
        directive: directive_of(directive)?,
        precedence,
        due: instant::from_sortable(*due),
        arrival: u64::from_be_bytes(arrival.try_into().ok()?),
    })
}

pub(crate) fn waiting(queue: &str, due: Millis, arrival: u64) -> Vec<u8> {
    let mut key = queue_start(queue);
    key.extend(instant::sortable(due));
    key.extend(arrival.to_be_bytes());
    key
}

/// Due time and arrival in a key of `waiting`; `None` if the key is malformed.
pub(crate) fn due(key: &[u8]) -> Option<(Millis, u64)> {
    let (due, arrival) = key.last_chunk::<16>()?.split_first_chunk::<8>()?;
    Some((
        instant::from_sortable(*due),
        u64::from_be_bytes(arrival.try_into().ok()?),
    ))
}

/// The value under a [`waiting`] key. It has the parts of the `ready` key that the URI gets once it is due.
pub(crate) fn waiting_value(directive: Directive, precedence: u8, record_key: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(record_key.len() + 2);
    value.extend([directive_byte(directive), precedence]);
    value.extend(record_key);
    value
}

/// Directive, precedence and record key in a value of `waiting`; `None` if it is malformed.
pub(crate) fn from_waiting_value(value: &[u8]) -> Option<(Directive, u8, &[u8])> {
    let (&[directive, precedence], record_key) = value.split_first_chunk::<2>()?;
    Some((directive_of(directive)?, precedence, record_key))
}

pub(crate) fn queue_order(precedence: u8, order_key: OrderKey, queue: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(18 + queue.len());
    key.push(precedence);
    key.push(order_key.is_inactive.into());
    key.extend(instant::sortable(order_key.wake));
    key.extend(order_key.arrival.to_be_bytes());
    key.extend(queue.as_bytes());
    key
}

/// Wake-up time and queue in a key of `queue_order`; `None` if it is malformed.
pub(crate) fn from_queue_order(key: &[u8]) -> Option<(Millis, &str)> {
    let (wake, rest) = key.get(2..)?.split_first_chunk::<8>()?;
    Some((
        instant::from_sortable(*wake),
        std::str::from_utf8(rest.get(8..)?).ok()?,
    ))
}

/// The first key that a queue can have in `ready` or `waiting`.
pub(crate) fn queue_start(queue: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(queue.len() + 19);
    key.extend(queue.as_bytes());
    key.push(0);
    key
}

/// The first key after all that a queue can have there.
pub(crate) fn queue_end(queue: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(queue.len() + 1);
    key.extend(queue.as_bytes());
    key.push(1);
    key
}

/// The finder of a URI: the hash of a source seed, or [`SHARED`].
pub(crate) type Finder = u32;

/// The finder of a URI that several sources have found, or whose source is unknown.
pub(crate) const SHARED: Finder = Finder::MAX;

/// The finder of a source, as the index of canonical forms keeps it. Two sources have the same finder with a chance of 1 to 2³².
pub(crate) fn finder(source: Option<&str>) -> Finder {
    let digest = Sha1::digest(source.unwrap_or_default().as_bytes());
    let hash = digest.first_chunk::<4>().copied().unwrap_or_default();
    Finder::from_be_bytes(hash).min(SHARED - 1)
}

/// The finder in a value of the index.
pub(crate) fn finder_of(value: &[u8]) -> Finder {
    value
        .first_chunk::<4>()
        .map_or(SHARED, |finder| Finder::from_be_bytes(*finder))
}

/// The same value with the finder [`SHARED`].
pub(crate) fn shared(value: &[u8]) -> Vec<u8> {
    [&SHARED.to_be_bytes(), value.get(4..).unwrap_or_default()].concat()
}

/// The value of a URI in the index of canonical forms: its finder, and the URI. The URI is left out if it is its own canonical
/// form. Otherwise the value has the numbers of bytes that both share at start and end, and the bytes of the URI between them.
pub(crate) fn to_canonical_value(finder: Finder, uri: &str, canonical: &str) -> Vec<u8> {
    if uri == canonical {
        return finder.to_be_bytes().to_vec();
    }
    let (own, other) = (uri.as_bytes(), canonical.as_bytes());
    let shortest = own.len().min(other.len());
    let start = own.iter().zip(other).take_while(|(a, b)| a == b).count();
    let end = own
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take(shortest - start)
        .take_while(|(a, b)| a == b)
        .count();
    let mut value = Vec::with_capacity(own.len() - start - end + 8);
    value.extend(finder.to_be_bytes());
    for count in [start, end] {
        // URIs have at most 64 KiB, and these two differ.
        value.extend(u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    }
    value.extend(&own[start..own.len() - end]);
    value
}

/// The same value if the canonical form is not known. It shares nothing with the canonical form, and has the record key instead
/// of the URI. The two can be told apart, because no record key parses as a URI.
pub(crate) fn whole_canonical_value(record_key: &[u8]) -> Vec<u8> {
    [&SHARED.to_be_bytes(), &[0; 4], record_key].concat()
}

/// The record key of the URI from which [`to_canonical_value`] made the value; `None` if value and canonical form do not fit
/// together.
pub(crate) fn from_canonical_value(value: &[u8], canonical: &str) -> Option<String> {
    let text = canonical_text(value, canonical)?;
    Some(match Uri::parse(&text) {
        Ok(uri) => uri.key(),
        Err(_) => text,
    })
}

/// The URI or record key in a value of the index, with its canonical form.
fn canonical_text(value: &[u8], canonical: &str) -> Option<String> {
    let (_, value) = value.split_first_chunk::<4>()?;
    if value.is_empty() {
        return Some(canonical.to_owned());
    }
    let other = canonical.as_bytes();
    let (start, rest) = value.split_first_chunk::<2>()?;
    let (end, between) = rest.split_first_chunk::<2>()?;
    let start = usize::from(u16::from_be_bytes(*start));
    let end = usize::from(u16::from_be_bytes(*end));
    let mut text = other.get(..start)?.to_vec();
    text.extend(between);
    text.extend(other.get(other.len().checked_sub(end)?..)?);
    String::from_utf8(text).ok()
}

/// The hash of a page, under which its embeds are stored.
pub(crate) fn page(record_key: &str) -> [u8; 16] {
    canonical(record_key)
}

/// The range of a page's embeds: its first key, and the first key after it.
pub(crate) fn embeds_of(page: &[u8; 16]) -> (Vec<u8>, Vec<u8>) {
    let mut end = page.to_vec();
    end.push(u8::MAX);
    (page.to_vec(), end)
}

pub(crate) fn embed(page: &[u8; 16], embed: &str) -> Vec<u8> {
    let mut key = page.to_vec();
    key.extend(embed.as_bytes());
    key
}

/// The key of the same entry in `pages_by_embed`.
pub(crate) fn page_of_embed(embed: &str, page: &[u8; 16]) -> Vec<u8> {
    let mut key = embed.as_bytes().to_vec();
    key.push(0);
    key.extend(page);
    key
}

/// The range of the pages that show an embed: its first key, and the first key after it.
pub(crate) fn pages_of_embed(embed: &str) -> (Vec<u8>, Vec<u8>) {
    (
        [embed.as_bytes(), &[0]].concat(),
        [embed.as_bytes(), &[1]].concat(),
    )
}

/// Embed and page in a key of `pages_by_embed`; `None` if it is malformed.
pub(crate) fn from_page_of_embed(key: &[u8]) -> Option<(&str, [u8; 16])> {
    let (rest, page) = key.split_last_chunk::<16>()?;
    let (&0, embed) = rest.split_last()? else {
        return None;
    };
    let embed = std::str::from_utf8(embed).ok()?;
    (!embed.is_empty()).then_some((embed, *page))
}

pub(crate) fn tally(kind: TallyKind, name: &str) -> Vec<u8> {
    let mut key = kind.name().as_bytes().to_vec();
    key.push(0);
    key.extend(name.as_bytes());
    key
}

/// The range of a record's site, in `site_values` and `site_figures` as in `uris`: its first key, and the first key after it.
pub(crate) fn site_range(record_key: &str) -> (Vec<u8>, Vec<u8>) {
    let site = record_key.split(')').next().unwrap_or_default().as_bytes();
    // `*` is the next byte after `)`.
    ([site, b")"].concat(), [site, b"*"].concat())
}

pub(crate) fn site_value(record_key: &str, plugin: &str, name: &str) -> Vec<u8> {
    let (mut key, _) = site_range(record_key);
    key.extend(plugin.as_bytes());
    key.push(0);
    key.extend(name.as_bytes());
    key
}

/// Plugin and name in a key of `site_values`; `None` if it is malformed.
pub(crate) fn from_site_value(key: &[u8]) -> Option<(&str, &str)> {
    let (_, names) = std::str::from_utf8(key).ok()?.split_once(')')?;
    let (plugin, name) = names.split_once('\0')?;
    (!plugin.is_empty() && !name.is_empty() && !name.contains('\0')).then_some((plugin, name))
}

pub(crate) fn site_figures(record_key: &str, group: &str) -> Vec<u8> {
    let (mut key, _) = site_range(record_key);
    key.extend(group.as_bytes());
    key
}

/// The group in a key of `site_figures`; `None` if it is malformed.
pub(crate) fn from_site_figures(key: &[u8]) -> Option<&str> {
    let (_, group) = std::str::from_utf8(key).ok()?.split_once(')')?;
    (!group.is_empty() && !group.contains('\0')).then_some(group)
}

/// Prefix of the outbox among the caller's values.
pub(crate) const OUTBOX: &str = "outbox/";

/// Name of an entry of the outbox. Twenty digits hold every number, and sort as the numbers do.
pub(crate) fn outbox(number: u64) -> String {
    format!("{OUTBOX}{number:020}")
}

/// The number in the name of an entry of the outbox; 0 if the name is malformed.
pub(crate) fn outbox_number(name: &str) -> u64 {
    let digits = name.strip_prefix(OUTBOX).unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// The key of a canonical form. One half comes from the authority. So the links of a page, most of which stay on their site, are
/// looked up side by side. Two documents of one site share a key with a chance of 1 to 2⁶⁴ for each pair. At ten million
/// documents on one site, the chance of any such pair is some 3 in a million.
pub(crate) fn canonical(canonical: &str) -> CanonicalKey {
    let mut key = CanonicalKey::default();
    key[..8].copy_from_slice(&Sha1::digest(authority(canonical).as_bytes())[..8]);
    key[8..].copy_from_slice(&Sha1::digest(canonical.as_bytes())[..8]);
    key
}

/// Eight bytes of a digest of a record key, the same in every process.
pub(crate) fn hash(record_key: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha1::digest(record_key.as_bytes())[..8]);
    u64::from_be_bytes(bytes)
}

/// The authority of a canonical form, or its substitute: `http://a.org` of `http://a.org/b`, `dns:a.org` of itself.
fn authority(canonical: &str) -> &str {
    let start = canonical.find("://").map_or(0, |at| at + 3);
    let length = canonical[start..]
        .find(['/', '?', '#'])
        .unwrap_or(canonical.len() - start);
    &canonical[..start + length]
}

fn directive_byte(directive: Directive) -> u8 {
    match directive {
        Directive::Highest => 0,
        Directive::High => 1,
        Directive::Medium => 2,
        Directive::Normal => 3,
    }
}

fn directive_of(byte: u8) -> Option<Directive> {
    Some(match byte {
        0 => Directive::Highest,
        1 => Directive::High,
        2 => Directive::Medium,
        3 => Directive::Normal,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_sorts_by_directive_precedence_due_and_arrival() {
        let rank = |directive, precedence, due, arrival| Rank {
            directive,
            precedence,
            due,
            arrival,
        };
        let order = [
            rank(Directive::Highest, 9, 9, 9),
            rank(Directive::High, 9, 9, 9),
            rank(Directive::Medium, 9, 9, 9),
            rank(Directive::Normal, 0, 9, 9),
            rank(Directive::Normal, 200, -9, 9),
            rank(Directive::Normal, 200, 0, 9),
            rank(Directive::Normal, 200, 300, 1),
            rank(Directive::Normal, 200, 300, 256),
        ];
        for pair in order.windows(2) {
            assert!(ready("q", pair[0]) < ready("q", pair[1]), "{pair:?}");
        }
        for one in order {
            assert_eq!(super::rank(&ready("q", one)), Some(one));
        }
    }

    #[test]
    fn no_other_queue_has_keys_in_the_range_of_a_queue() {
        for other in ["ab", "a ", "a\u{1}", "", "A"] {
            let key = waiting(other, 5, 5);
            assert!(
                !(queue_start("a")..queue_end("a")).contains(&key),
                "{other:?}"
            );
        }
        assert!((queue_start("a")..queue_end("a")).contains(&waiting("a", Millis::MAX, u64::MAX)));
    }

    #[test]
    fn keys_decode_to_their_parts() {
        let order_key = OrderKey {
            is_inactive: true,
            wake: -5,
            arrival: 7,
        };
        assert_eq!(
            from_queue_order(&queue_order(3, order_key, "org,a,")),
            Some((-5, "org,a,"))
        );
        assert_eq!(due(&waiting("org,a,", 12, 34)), Some((12, 34)));
        let group = "path-prefix /a)/";
        assert_eq!(
            from_site_figures(&site_figures("org,a,)/b)#http", group)),
            Some(group)
        );
        for malformed in ["org,a,)", "org,a,", "org,a,)a\0b"] {
            assert_eq!(from_site_figures(malformed.as_bytes()), None, "{malformed}");
        }
        assert_eq!(
            from_waiting_value(&waiting_value(Directive::High, 4, b"key")),
            Some((Directive::High, 4, &b"key"[..]))
        );
    }

    proptest::proptest! {
        #[test]
        fn a_canonical_value_gives_the_text_back(uri in "[ab]{0,12}", canonical in "[ab]{0,12}") {
            let value = to_canonical_value(7, &uri, &canonical);
            proptest::prop_assert_eq!(canonical_text(&value, &canonical), Some(uri));
        }
    }

    #[test]
    fn a_uri_with_another_prefix_takes_a_few_bytes() {
        let (uri, canonical) = ("http://www.a.org/page", "http://a.org/page");
        let value = to_canonical_value(7, uri, canonical);
        assert_eq!(value, b"\0\0\0\x07\0\x07\0\x0awww.");
        assert_eq!((finder_of(&value), finder_of(&shared(&value))), (7, SHARED));
        let key = Some("org,a,www,)/page#http");
        assert_eq!(
            from_canonical_value(&shared(&value), canonical).as_deref(),
            key
        );
        let whole = whole_canonical_value(b"org,a,www,)/page#http");
        assert_eq!(from_canonical_value(&whole, canonical).as_deref(), key);
        let own = to_canonical_value(7, canonical, canonical);
        let own = from_canonical_value(&own, canonical);
        assert_eq!(own.as_deref(), Some("org,a,)/page#http"));
        assert_eq!(from_canonical_value(b"\0\0\0\0\0\x63\0\0x", "short"), None);
    }

    #[test]
    fn no_record_key_reads_as_a_uri() {
        for text in [
            "http://a.org/b:c?d",
            "https://user@a.org:8443/",
            "dns:a.org",
            "http://127.0.0.1:80/",
            "http://[::1]:8080/x",
            "http://localhost/",
            "ftp://x/",
            "whois://whois.net/a",
        ] {
            let Ok(uri) = Uri::parse(text) else {
                panic!("{text}");
            };
            assert!(Uri::parse(&uri.key()).is_err(), "{}", uri.key());
        }
    }

    #[test]
    fn canonical_keys_share_their_site_and_nothing_else() {
        let (a, b, c) = (
            canonical("http://a.org/1"),
            canonical("http://a.org/2"),
            canonical("http://b.org/1"),
        );
        assert_eq!(a[..8], b[..8]);
        assert_ne!(a[8..], b[8..]);
        assert_ne!(a[..8], c[..8]);
    }

    #[test]
    fn authority_ends_where_the_path_begins() {
        for (canonical, expected) in [
            ("http://a.org/b/c", "http://a.org"),
            ("http://a.org?q", "http://a.org"),
            ("http://a.org", "http://a.org"),
            ("dns:a.org", "dns:a.org"),
            ("", ""),
        ] {
            assert_eq!(authority(canonical), expected);
        }
    }
}
