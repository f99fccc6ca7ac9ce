//! What is known of servers: addresses and robots.txt, with the time until which each may be used.
//!
//! Both are durable: they stand in the frontier's store under the server's name, so that a resumed crawl asks nobody
//! twice. Memory holds a bounded number of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::robots::{ROBOTS_BYTES_MAX, Robots};
use opilio_frontier::Frontier;
use opilio_profile::Dns;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// Servers held in memory. Past it the memory is emptied: what is needed again is read from the store.
const SERVERS_MAX: usize = 20_000;

/// Text of robots.txt files held in parsed form.
const ROBOTS_BYTES_HELD_MAX: usize = 32 << 20;

/// Addresses of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Addresses {
    /// None: the name has no address, as far as its last look-up went.
    pub addresses: Vec<IpAddr>,
    /// Milliseconds since 1970 until which this holds.
    expires: i64,
    /// The [`Dns::fingerprint`] with which it was looked up: it holds with no other.
    asked_with: u64,
}

/// What came when robots.txt was asked for; [`Robots::from_response`] says what it means.
#[derive(Debug, Serialize, Deserialize)]
struct RobotsFile {
    /// HTTP status after redirects, or a negative code of the glossary.
    status: i32,
    body: Vec<u8>,
    expires: i64,
}

/// robots.txt files in memory, bounded in number and in bytes of text: parsed they take several times as much.
#[derive(Default)]
struct RobotsHeld {
    parsed: HashMap<String, (Arc<Robots>, i64)>,
    bytes: usize,
}

impl RobotsHeld {
    fn keep(&mut self, key: String, text: usize, robots: Arc<Robots>, expires: i64) {
        if self.parsed.len() >= SERVERS_MAX || self.bytes + text > ROBOTS_BYTES_HELD_MAX {
            self.parsed.clear();
            self.bytes = 0;
        }
        self.bytes += text;
        self.parsed.insert(key, (robots, expires));
    }
}

/// The servers met so far.
#[derive(Default)]
pub(crate) struct Servers {
    addresses: Mutex<HashMap<String, Addresses>>,
    robots: Mutex<RobotsHeld>,
    /// Texts of profiles that stand in for a site's own, parsed.
    custom: Mutex<HashMap<String, Arc<Robots>>>,
}

impl Servers {
    /// The rules of a profile's own text.
    pub(crate) fn custom(&self, text: &str) -> Arc<Robots> {
        let mut custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = custom.get(text) {
            return known.clone();
        }
        make_room(&mut custom);
        let robots = Arc::new(Robots::parse(text.as_bytes()));
        custom.insert(text.to_owned(), robots.clone());
        robots
    }

    /// The addresses of a host, where they are known, were looked up with these settings, and are still good.
    pub(crate) fn addresses(
        &self,
        frontier: &Mutex<Frontier>,
        host: &str,
        dns: &Dns,
        now: Timestamp,
    ) -> Option<Addresses> {
        let host = rootless(host);
        let mut held = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !held.contains_key(host) {
            let stored: Addresses = stored(frontier, &addresses_key(host))?;
            make_room(&mut held);
            held.insert(host.to_owned(), stored);
        }
        held.get(host)
            .filter(|addresses| addresses.asked_with == dns.fingerprint)
            .filter(|addresses| addresses.expires > now.as_millisecond())
            .cloned()
    }

    /// Whether a host had addresses when it was last looked up, however long ago.
    pub(crate) fn had_addresses(&self, frontier: &Mutex<Frontier>, host: &str) -> bool {
        let host = rootless(host);
        let had = |addresses: &Addresses| !addresses.addresses.is_empty();
        let held = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match held.get(host) {
            Some(addresses) => had(addresses),
            None => stored(frontier, &addresses_key(host))
                .as_ref()
                .is_some_and(had),
        }
    }

    /// Keeps the addresses of a host, looked up with these settings; none where it has none.
    pub(crate) fn keep_addresses(
        &self,
        frontier: &Mutex<Frontier>,
        host: &str,
        dns: &Dns,
        addresses: Vec<IpAddr>,
        expires: Timestamp,
    ) -> Result<(), opilio_frontier::Error> {
        let host = rootless(host);
        let kept = Addresses {
            addresses,
            expires: expires.as_millisecond(),
            asked_with: dns.fingerprint,
        };
        keep(frontier, &addresses_key(host), &kept)?;
        let mut held = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        make_room(&mut held);
        held.insert(host.to_owned(), kept);
        Ok(())
    }

    /// The robots.txt of a URI's server, where it is known and still good, and for how long it is.
    pub(crate) fn robots(
        &self,
        frontier: &Mutex<Frontier>,
        uri: &Uri,
        now: Timestamp,
    ) -> Option<(Arc<Robots>, Duration)> {
        let key = robots_key(uri);
        let mut held = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.parsed.contains_key(&key) {
            let stored: RobotsFile = stored(frontier, &key)?;
            let robots = Arc::new(Robots::from_response(stored.status, &stored.body));
            held.keep(key.clone(), stored.body.len(), robots, stored.expires);
        }
        let (robots, expires) = held.parsed.get(&key)?;
        let left = u64::try_from(expires - now.as_millisecond()).ok()?;
        (left > 0).then(|| (robots.clone(), Duration::from_millis(left)))
    }

    /// What came when this robots.txt was asked for, where that is known and still good: status and body.
    pub(crate) fn robots_answer(
        &self,
        frontier: &Mutex<Frontier>,
        uri: &Uri,
        now: Timestamp,
    ) -> Option<(i32, Vec<u8>)> {
        if uri.robots_txt().as_ref() != Some(uri) {
            return None;
        }
        let stored: RobotsFile = stored(frontier, &robots_key(uri))?;
        let is_good = stored.expires > now.as_millisecond();
        is_good.then_some((stored.status, stored.body))
    }

    /// Keeps what came when the robots.txt of a URI's server was asked for, for `lifetime` or as long as its status
    /// may be believed, whichever is shorter.
    pub(crate) fn keep_robots(
        &self,
        frontier: &Mutex<Frontier>,
        uri: &Uri,
        (status, mut body): (i32, Vec<u8>),
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<Arc<Robots>, opilio_frontier::Error> {
        body.truncate(ROBOTS_BYTES_MAX);
        let robots = Arc::new(Robots::from_response(status, &body));
        let expires = (now + lifetime.min(robots.lifetime())).as_millisecond();
        let key = robots_key(uri);
        let text = body.len();
        keep(
            frontier,
            &key,
            &RobotsFile {
                status,
                body,
                expires,
            },
        )?;
        let mut held = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
        held.keep(key, text, robots.clone(), expires);
        Ok(robots)
    }
}

/// `example.org.` and `example.org` are one name; `dns:` URIs leave the dot out.
fn rootless(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn addresses_key(host: &str) -> String {
    format!("dns:{host}")
}

/// RFC 9309 §2.3: rules hold for one scheme, host and port.
fn robots_key(uri: &Uri) -> String {
    uri.robots_txt().map_or_else(
        || uri.as_str().to_owned(),
        |robots| robots.as_str().to_owned(),
    )
}

fn make_room<T>(held: &mut HashMap<String, T>) {
    if held.len() >= SERVERS_MAX {
        held.clear();
    }
}

/// What cannot be read is as good as unknown: it is asked for again.
pub(crate) fn stored<T: for<'de> Deserialize<'de>>(
    frontier: &Mutex<Frontier>,
    key: &str,
) -> Option<T> {
    let frontier = frontier.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = frontier.server(key).ok().flatten()?;
    postcard::from_bytes(&bytes).ok()
}

pub(crate) fn keep<T: Serialize>(
    frontier: &Mutex<Frontier>,
    key: &str,
    value: &T,
) -> Result<(), opilio_frontier::Error> {
    // Our own types always serialise.
    let bytes = postcard::to_stdvec(value).unwrap_or_default();
    frontier
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .put_server(key, &bytes)
}
