//! Recent captures of requests of rendered pages. Pages share scripts, styles and fonts, and each page requests them anew, since
//! each page begins with an empty cache. The archive gets such a payload once for each URI, independently of `archive.duplicates`;
//! further captures are revisit records.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use opilio_visit::EarlierCapture;

/// Maximum of stored URIs and payloads. Beyond it, all are dropped, and payloads are archived once more.
const CAPTURES_MAX: usize = 20_000;

/// Captures of this process.
#[derive(Default)]
pub(crate) struct RenderedCaptures {
    /// Captures by URI and SHA-1 of the payload.
    payloads: Mutex<HashMap<(String, [u8; 20]), EarlierCapture>>,
    /// Time of the last capture of a URI.
    times: Mutex<HashMap<String, Timestamp>>,
}

impl RenderedCaptures {
    /// Returns the capture of a URI with this payload.
    pub(crate) fn earlier(&self, uri: &str, payload: [u8; 20]) -> Option<EarlierCapture> {
        let key = (uri.to_owned(), payload);
        lock(&self.payloads).get(&key).cloned()
    }

    /// Stores a capture that was archived with its payload.
    pub(crate) fn remember(&self, payload: [u8; 20], capture: EarlierCapture) {
        let mut payloads = lock(&self.payloads);
        if payloads.len() >= CAPTURES_MAX {
            payloads.clear();
        }
        payloads.insert((capture.uri.clone(), payload), capture);
    }

    /// Returns the time for a capture that began at `started`. No other capture of the URI gets the same time, because URI and
    /// millisecond identify captures, and pages may request a URI many times.
    pub(crate) fn own_time(&self, uri: &str, started: Timestamp) -> Timestamp {
        let mut times = lock(&self.times);
        if times.len() >= CAPTURES_MAX {
            times.clear();
        }
        let last = times.get(uri).map(|last| last.as_millisecond());
        let millisecond = last.map_or(i64::MIN, |last| last + 1);
        let own = Timestamp::from_millisecond(millisecond.max(started.as_millisecond()));
        let own = own.unwrap_or(started);
        times.insert(uri.to_owned(), own);
        own
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use opilio_frontier::WarcLocation;

    use super::*;

    #[test]
    fn a_payload_is_found_under_its_own_uri_only() {
        let captures = RenderedCaptures::default();
        let capture = EarlierCapture {
            uri: "http://a.org/app.js".to_owned(),
            at: WarcLocation {
                file: "a.warc.gz".to_owned(),
                offset: 7,
                record_id: String::new(),
                date: Timestamp::UNIX_EPOCH,
            },
        };
        captures.remember([1; 20], capture.clone());
        let earlier = captures.earlier("http://a.org/app.js", [1; 20]);
        assert_eq!(earlier, Some(capture));
        assert_eq!(captures.earlier("http://a.org/app.js", [2; 20]), None);
        assert_eq!(captures.earlier("http://b.org/app.js", [1; 20]), None);
    }

    #[test]
    fn captures_of_a_uri_in_the_same_millisecond_get_different_times() {
        let captures = RenderedCaptures::default();
        let own = |uri: &str, at: i64| {
            let at = Timestamp::from_millisecond(at).unwrap();
            captures.own_time(uri, at).as_millisecond()
        };
        let times = [
            own("a", 5),
            own("a", 5),
            own("b", 5),
            own("a", 5),
            own("a", 9),
        ];
        assert_eq!(times, [5, 6, 5, 7, 9]);
    }
}
