//! Documents of a site that lead to new ones, such as front pages, sections and feeds, and how often they do. Their new links
//! are found only when they are visited, so such a visit is worth more than the document's own change. Learned from the first
//! visits of the new documents, and kept with the site.

use opilio_plugin::prelude::*;

use crate::experience::{self, DAY};

/// Name under which it is kept with the site.
pub(crate) const FINDS: &str = "finds";

/// Version of its form.
pub(crate) const FINDS_VERSION: u32 = 1;

/// Number of remembered documents: those that lead to most others.
const FINDERS_MAX: usize = 24;

/// Days after which a found document counts for a third.
const MEMORY: f64 = 60.0;

/// The links of a document's first visit are older than the visit and do not predict new ones. All of them are found within
/// this many milliseconds.
const AT_ONCE: u64 = 60_000;

/// Days added to the time since a document's first visit: a few finds soon after it prove little.
const DOUBT: f64 = 1.0;

/// Documents that have led to others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Finds {
    finders: Vec<Finder>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Finder {
    /// Hash of its URI.
    uri: u64,
    /// Time of the first document found through it, in minutes since 1970.
    first: u64,
    /// Documents found since, faded by age.
    found: f64,
    /// Time of the last fading, in minutes.
    at: u64,
}

impl Finds {
    /// The value kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(FINDS);
        let kept = kept.filter(|kept| kept.version == FINDS_VERSION);
        kept.map(|kept| Self::read(&kept.value)).unwrap_or_default()
    }

    fn read(value: &str) -> Self {
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

    pub(crate) fn written(&self) -> String {
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
        self.found_on(&via, visit.now().saturating_sub((queued * DAY) as u64));
        true
    }

    fn found_on(&mut self, via: &str, at: u64) {
        let (uri, at) = (hash(via), minutes(at));
        if let Some(finder) = self.finders.iter_mut().find(|finder| finder.uri == uri) {
            if at > finder.first + minutes(AT_ONCE) {
                finder.found = 1.0 + finder.fading(at);
                finder.at = finder.at.max(at);
            } else {
                finder.first = finder.first.min(at);
            }
            return;
        }
        if self.finders.len() >= FINDERS_MAX {
            // A document that leads to nothing is dropped; among equals, the one with the oldest find.
            let least = |one: &&Finder, other: &&Finder| {
                let found = one.fading(at).total_cmp(&other.fading(at));
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

    /// Documents found per day through the visited one.
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
    /// Documents found, faded to a time.
    fn fading(&self, at: u64) -> f64 {
        self.found * (-days(self.at, at) / MEMORY).exp()
    }

    fn rate(&self, now: u64) -> f64 {
        let counted = MEMORY * -(-days(self.first, now) / MEMORY).exp_m1();
        self.fading(now) / (counted + DOUBT)
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
    fn what_was_there_at_first_is_no_find_and_what_comes_each_day_is() {
        let mut finds = Finds::default();
        let began = 400_000 * HOUR;
        for _ in 0..50 {
            finds.found_on(FRONT, began);
        }
        assert_eq!(rate_of(&finds, FRONT, began + 24 * HOUR), 0.0);
        for hour in 1..=30 * 24 {
            // Two a day.
            if hour % 12 == 0 {
                finds.found_on(FRONT, began + hour * HOUR);
            }
        }
        let rate = rate_of(&finds, FRONT, began + 30 * 24 * HOUR);
        assert!((1.8..2.1).contains(&rate), "{rate}");
        // A document that leads to nothing more loses value gradually.
        let later = rate_of(&finds, FRONT, began + 200 * 24 * HOUR);
        assert!(later < 0.1, "{later}");
        let kept = finds.written();
        assert_eq!(Finds::read(&kept).written(), kept);
    }

    #[test]
    fn those_that_lead_to_most_are_remembered() {
        let mut finds = Finds::default();
        for hour in [400_000, 400_024, 400_048] {
            finds.found_on(FRONT, hour * HOUR);
        }
        for page in 0..1_000 {
            finds.found_on(&format!("https://a.example/{page}"), 400_050 * HOUR);
        }
        assert_eq!(finds.finders.len(), FINDERS_MAX);
        assert!(rate_of(&finds, FRONT, 400_072 * HOUR) > 0.3);
        assert!(finds.written().len() < 4096);
    }

    #[test]
    fn a_site_is_a_scheme_and_a_host() {
        assert_eq!(site("https://a.example/b/c"), "https://a.example");
        assert_eq!(site("https://a.example"), "https://a.example");
    }
}
