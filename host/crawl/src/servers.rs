//! Addresses and robots.txt of servers, each with the time until which it is valid.
//!
//! Both are durable. The frontier's store has them under the server's name, so that a resumed crawl does not request them again.
//! Memory holds a limited number of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::robots::{ROBOTS_BYTES_MAX, Robots};
use opilio_frontier::SharedFrontier;
use opilio_profile::Dns;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// Maximum of servers held in memory. Beyond it, all are dropped from memory, and needed entries are read from the store.
const SERVERS_MAX: usize = 20_000;

/// Maximum of robots.txt text, in bytes, whose parsed form is held in memory.
const ROBOTS_BYTES_HELD_MAX: usize = 32 << 20;

/// Addresses of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Addresses {
    /// Empty if the last look-up found no address for the name.
    pub addresses: Vec<IpAddr>,
    /// Milliseconds since 1970 until which the addresses are valid.
    expires: i64,
    /// The [`Dns::fingerprint`] of the look-up. The addresses are valid only with the same fingerprint.
    asked_with: u64,
}

/// Response to a request for robots.txt. [`Robots::from_response`] interprets it.
#[derive(Debug, Serialize, Deserialize)]
struct RobotsFile {
    /// HTTP status after redirects, or a negative code of the glossary.
    status: i32,
    body: Vec<u8>,
    expires: i64,
}

/// robots.txt files in memory, limited in number and in bytes of text. The parsed form takes several times the size of the text.
#[derive(Default)]
struct CachedRobots {
    parsed: HashMap<String, (Arc<Robots>, i64)>,
    bytes: usize,
}

impl CachedRobots {
    fn keep(&mut self, key: String, text: usize, robots: Arc<Robots>, expires: i64) {
        if self.parsed.len() >= SERVERS_MAX || self.bytes + text > ROBOTS_BYTES_HELD_MAX {
            self.parsed.clear();
            self.bytes = 0;
        }
        self.bytes += text;
        self.parsed.insert(key, (robots, expires));
    }
}

/// The servers of the crawl so far.
#[derive(Default)]
pub(crate) struct Servers {
    addresses: Mutex<HashMap<String, Addresses>>,
    robots: Mutex<CachedRobots>,
    /// Parsed robots.txt texts of profiles, which replace a site's own.
    custom: Mutex<HashMap<String, Arc<Robots>>>,
}

impl Servers {
    /// Returns the rules of a profile's own robots.txt text.
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

    /// Returns the addresses of a host, if they are known, still valid, and were looked up with these settings.
    pub(crate) fn addresses(
        &self,
        frontier: &SharedFrontier,
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

    /// Returns `true` if a host had addresses when it was last looked up, however long ago.
    pub(crate) fn had_addresses(&self, frontier: &SharedFrontier, host: &str) -> bool {
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

    /// Stores the addresses of a host, looked up with these settings. The list is empty if the host has none.
    pub(crate) fn keep_addresses(
        &self,
        frontier: &SharedFrontier,
        host: &str,
        dns: &Dns,
        addresses: Vec<IpAddr>,
        expires: Timestamp,
    ) -> Result<(), opilio_frontier::FrontierError> {
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

    /// Returns the robots.txt of a URI's server and its remaining lifetime, if it is known and still valid.
    pub(crate) fn robots(
        &self,
        frontier: &SharedFrontier,
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

    /// Returns status and body of this robots.txt, if they are known and still valid.
    pub(crate) fn robots_answer(
        &self,
        frontier: &SharedFrontier,
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

    /// Stores the response to a request for the robots.txt of a URI's server. It is valid for `lifetime`, or for the lifetime
    /// that its status allows, whichever is shorter.
    pub(crate) fn keep_robots(
        &self,
        frontier: &SharedFrontier,
        uri: &Uri,
        (status, mut body): (i32, Vec<u8>),
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<Arc<Robots>, opilio_frontier::FrontierError> {
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

/// Removes the final dot: `example.org.` and `example.org` are one name, and `dns:` URIs omit the dot.
fn rootless(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn addresses_key(host: &str) -> String {
    format!("dns:{host}")
}

/// Returns the key of a server's robots.txt. Rules apply to one scheme, host and port (RFC 9309 §2.3).
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

/// Reads a stored value. A value that cannot be read counts as missing, and is requested again.
pub(crate) fn stored<T: for<'de> Deserialize<'de>>(
    frontier: &SharedFrontier,
    key: &str,
) -> Option<T> {
    let frontier = frontier.lock();
    let bytes = frontier.caller_value(key).ok().flatten()?;
    postcard::from_bytes(&bytes).ok()
}

pub(crate) fn keep<T: Serialize>(
    frontier: &SharedFrontier,
    key: &str,
    value: &T,
) -> Result<(), opilio_frontier::FrontierError> {
    // Our own types always serialise.
    let bytes = postcard::to_stdvec(value).unwrap_or_default();
    frontier.lock().put_caller_value(key, &bytes)
}
