//! Documents of a site through which new ones are found, such as front pages, sections and feeds, and the rate of these finds.
//! New links are found only by a visit, so a visit of such a document is worth more than its own change. The rates are learned
//! from the first visits of the new documents, and kept with the site.

use opilio_plugin::prelude::*;

use crate::experience::{self, DAY};

/// Name of the value that is kept with the site.
pub(crate) const FINDS: &str = "finds";

/// Version of the value's format.
pub(crate) const FINDS_VERSION: u32 = 1;

/// Largest number of remembered documents: those with the most finds.
const FINDERS_MAX: usize = 24;

/// Days after which a find counts for a third.
const MEMORY: f64 = 60.0;

/// Time from the first find in which finds are not counted, in milliseconds. They come from the first visit of the document:
/// its links are older than the visit and do not predict new ones.
const FIRST_READ: u64 = 60_000;

/// Days added to the time since the first find, because a few finds soon after it are weak evidence.
const DAYS_ADDED: f64 = 1.0;

/// Documents through which others were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Finds {
    finders: Vec<Finder>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Finder {
    /// Hash of the document's URI.
    uri: u64,
    /// Time of the first document found through it, in minutes since 1970.
    first: u64,
    /// Number of documents found since, faded to the time `at`.
    found: f64,
    /// Time of the last find, in minutes since 1970.
    at: u64,
}

impl Finds {
    /// The value kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(FINDS);
        let kept = kept.filter(|kept| kept.version == FINDS_VERSION);
        kept.map(|kept| Self::decode(&kept.value))
            .unwrap_or_default()
    }

    fn decode(value: &str) -> Self {
        let finder = |line: &str| {
            let mut numbers = line.split(' ').map(|number| number.parse::<u64>().ok());
            let mut next = || numbers.next().flatten();
            Some(Finder {
                uri: next()?,
                first: next()?,
                found: next()? as f64 / 1000.0,
                at: next()?,
            })
        };
        Self {
            finders: value.lines().filter_map(finder).collect(),
        }
    }

    pub(crate) fn encode(&self) -> String {
        let lines = self.finders.iter().map(|finder| {
            let found = (finder.found * 1000.0).round() as u64;
            format!("{} {} {found} {}", finder.uri, finder.first, finder.at)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Learns from a document's first visit. Returns whether anything was learned.
    pub(crate) fn learn(&mut self, visit: &Visit) -> bool {
        if visit.state() != ContentState::New || !experience::is_visit(visit) {
            return false;
        }
        let candidate = visit.candidate();
        let Some(via) = candidate
            .via
            .filter(|via| site(via) == site(&candidate.uri))
        else {
            return false;
        };
        let queued = visit.measure("days-queued").unwrap_or(0.0).max(0.0);
        self.add_find(&via, visit.now().saturating_sub((queued * DAY) as u64));
        true
    }

    fn add_find(&mut self, via: &str, at: u64) {
        let (uri, at) = (hash(via), minutes(at));
        if let Some(finder) = self.finders.iter_mut().find(|finder| finder.uri == uri) {
            if at > finder.first + minutes(FIRST_READ) {
                finder.found = 1.0 + finder.finds_at(at);
                finder.at = finder.at.max(at);
            } else {
                finder.first = finder.first.min(at);
            }
            return;
        }
        if self.finders.len() >= FINDERS_MAX {
            // Drops the document with the fewest finds; among equals, the one with the oldest find.
            let least = |one: &&Finder, other: &&Finder| {
                let found = one.finds_at(at).total_cmp(&other.finds_at(at));
                found.then(one.at.cmp(&other.at))
            };
            let least = self.finders.iter().min_by(least).map(|least| least.uri);
            self.finders.retain(|finder| Some(finder.uri) != least);
        }
        self.finders.push(Finder {
            uri,
            first: at,
            found: 0.0,
            at,
        });
    }

    /// Number of documents found per day through the visited one.
    pub(crate) fn rate(&self, visit: &Visit) -> f64 {
        if self.finders.iter().all(|finder| finder.found <= 0.0) {
            return 0.0;
        }
        let uri = hash(&visit.candidate().uri);
        let finder = self.finders.iter().find(|finder| finder.uri == uri);
        finder.map_or(0.0, |finder| finder.rate(minutes(visit.now())))
    }
}

impl Finder {
    /// Number of finds, faded to a time in minutes.
    fn finds_at(&self, at: u64) -> f64 {
        self.found * (-days(self.at, at) / MEMORY).exp()
    }

    fn rate(&self, now: u64) -> f64 {
        let counted = MEMORY * -(-days(self.first, now) / MEMORY).exp_m1();
        self.finds_at(now) / (counted + DAYS_ADDED)
    }
}

fn minutes(milliseconds: u64) -> u64 {
    milliseconds / 60_000
}

fn days(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / (24.0 * 60.0)
}

/// Scheme and host of a URI.
fn site(uri: &str) -> &str {
    let path = uri.match_indices('/').nth(2);
    path.map_or(uri, |(path, _)| &uri[..path])
}

/// FNV-1a.
fn hash(uri: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    uri.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60 * 1000;
    const FRONT: &str = "https://a.example/";

    fn rate_of(finds: &Finds, uri: &str, at: u64) -> f64 {
        let finder = finds.finders.iter().find(|it| it.uri == hash(uri));
        finder.map_or(0.0, |finder| finder.rate(minutes(at)))
    }

    #[test]
    fn links_of_the_first_visit_do_not_count_as_finds() {
        let mut finds = Finds::default();
        let began = 400_000 * HOUR;
        for _ in 0..50 {
            finds.add_find(FRONT, began);
        }
        assert_eq!(rate_of(&finds, FRONT, began + 24 * HOUR), 0.0);
        for hour in 1..=30 * 24 {
            // Two a day.
            if hour % 12 == 0 {
                finds.add_find(FRONT, began + hour * HOUR);
            }
        }
        let rate = rate_of(&finds, FRONT, began + 30 * 24 * HOUR);
        assert!((1.8..2.1).contains(&rate), "{rate}");
        // Without new finds, the rate falls gradually.
        let later = rate_of(&finds, FRONT, began + 200 * 24 * HOUR);
        assert!(later < 0.1, "{later}");
        let kept = finds.encode();
        assert_eq!(Finds::decode(&kept).encode(), kept);
    }

    #[test]
    fn documents_with_the_most_finds_are_remembered() {
        let mut finds = Finds::default();
        for hour in [400_000, 400_024, 400_048] {
            finds.add_find(FRONT, hour * HOUR);
        }
        for page in 0..1_000 {
            finds.add_find(&format!("https://a.example/{page}"), 400_050 * HOUR);
        }
        assert_eq!(finds.finders.len(), FINDERS_MAX);
        assert!(rate_of(&finds, FRONT, 400_072 * HOUR) > 0.3);
        assert!(finds.encode().len() < 4096);
    }

    #[test]
    fn a_site_is_scheme_and_host() {
        assert_eq!(site("https://a.example/b/c"), "https://a.example");
        assert_eq!(site("https://a.example"), "https://a.example");
    }
}
