//! What evaluators that estimate rates know of a document at a visit: what its visits have shown, kept with the URI, and what
//! is usual around it, from the sums that the host keeps of its site, its folder, its type, its depth and of those that are dated.

use opilio_plugin::PastVisit;
use opilio_plugin::prelude::*;

use crate::rate::{Evidence, Usual};

/// Under this name evidence is kept with the URI.
pub(crate) const EVIDENCE: &str = "evidence";

/// Of its form.
pub(crate) const EVIDENCE_VERSION: u32 = 1;

/// Milliseconds.
pub(crate) const DAY: f64 = 86_400_000.0;

/// A document of which nothing is known, nor of any around it: a change a month, as if seen for ten days.
const NOBODY_KNOWS: Usual = Usual {
    changes: 1.0 / 3.0,
    days: 10.0,
};

/// Changes that a wider circle counts for beside a narrower one.
const CIRCLE: f64 = 3.0;

/// What depth and the presence of `Last-Modified` tell counts for half, for much of it folder and type have told.
const OVERLAPPING: f64 = 0.5;

/// Changes missed because several fell between two visits are made up for, up to this factor.
const MISSED_MAX: f64 = 3.0;

/// The visit that is being judged, as far as it can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// When the document was visited before: milliseconds since 1970.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) has_changed: bool,
}

/// Whether this is a visit, and not the question what to make of a wait without one.
pub(crate) fn is_visit(visit: &Visit) -> bool {
    visit.status() != 0
}

/// When the document was last visited, this visit included.
pub(crate) fn last_visit(visit: &Visit) -> u64 {
    if is_visit(visit) {
        return visit.now();
    }
    let last = visit.history().into_iter().find(|past| past.status > 0);
    last.map_or(visit.now(), |past| past.at)
}

/// What this visit can be compared with; none at the first, or where nothing can be said.
pub(crate) fn interval(visit: &Visit) -> Option<Interval> {
    let has_changed = match visit.state() {
        ContentState::Changed => true,
        ContentState::Unchanged => false,
        ContentState::New | ContentState::Unknown => return None,
    };
    let before = visit.history().into_iter().find(is_compared)?;
    Some(Interval {
        from: before.at,
        to: visit.now(),
        has_changed,
    })
}

/// What earlier visits have shown: as it was kept, or else what the host still knows of them.
pub(crate) fn evidence(visit: &Visit, memory: f64) -> Evidence {
    let kept = visit.attribute(EVIDENCE);
    let kept = kept.filter(|kept| kept.version == EVIDENCE_VERSION);
    if let Some(evidence) = kept.and_then(|kept| Evidence::read(&kept.value)) {
        return evidence;
    }
    let mut evidence = Evidence::default();
    let compared: Vec<_> = visit.history().into_iter().filter(is_compared).collect();
    for pair in compared.windows(2).rev() {
        let has_changed = pair[0].state == ContentState::Changed;
        evidence.add(days(pair[1].at, pair[0].at), has_changed, memory);
    }
    evidence
}

/// A time between the half of this and all of it, another one for each time of a visit: documents that were found together
/// shall not all be thought over at once, for prices answer to what is asked for.
pub(crate) fn part(visited: u64, all: u64) -> u64 {
    all - mixed(visited) % (all / 2 + 1)
}

/// A number whose bits each depend on all of this one's: the finaliser of splitmix64.
pub(crate) fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// From one time to another.
pub(crate) fn days(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / DAY
}

/// What is usual around the document, as if it had been seen for so many changes of it.
pub(crate) fn usual(visit: &Visit, weight: f64) -> Usual {
    Usual {
        changes: weight,
        days: weight / surroundings(visit).here,
    }
}

/// How often documents change, a day: on the whole site, and where the document stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Surroundings {
    pub(crate) site: f64,
    pub(crate) here: f64,
    /// From one visit of a document of the site to the next, in days, where any is known.
    pub(crate) interval: Option<f64>,
}

/// From the sums that the host keeps.
pub(crate) fn surroundings(visit: &Visit) -> Surroundings {
    let around = visit.neighbourhood();
    let sums = |shares: &str| {
        let one = around.iter().find(|one| one.shares == shares);
        one.map(|one| seen(one.visits, one.changes, one.observed))
    };
    let (changes, days) = sums("host").unwrap_or_default();
    let site = (changes + NOBODY_KNOWS.changes) / (days + NOBODY_KNOWS.days);
    let within = |shares: &str| {
        let (changes, days) = sums(shares).unwrap_or_default();
        (changes + CIRCLE) / (days + CIRCLE / site)
    };
    let compared = |shares: &str| within(shares) / site;
    let named = compared("path-prefix") * compared("media-type");
    let overlapping = compared("depth") * compared("last-modified");
    let here = site * named * overlapping.powf(OVERLAPPING);
    let host = around.iter().find(|one| one.shares == "host");
    let interval = host.filter(|host| host.visits > 0 && host.observed > 0);
    Surroundings {
        site: site.clamp(1e-6, 1e4),
        here: here.clamp(1e-6, 1e4),
        interval: interval.map(|host| host.observed as f64 / host.visits as f64 / DAY),
    }
}

/// Changes and days of a group of documents; changes that were missed because several fell into one interval are made up
/// for.
fn seen(visits: u64, changes: u64, observed: u64) -> (f64, f64) {
    if visits == 0 || changes == 0 {
        return (0.0, observed as f64 / DAY);
    }
    let (visits, changes) = (visits as f64, changes.min(visits) as f64);
    let corrected = -((visits - changes + 0.5) / (visits + 0.5)).ln() * visits;
    let corrected = corrected.clamp(changes, changes * MISSED_MAX);
    (corrected, observed as f64 / DAY)
}

fn is_compared(past: &PastVisit) -> bool {
    past.status > 0 && past.state != ContentState::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of one hour, a second apart: each tenth of the span gets its share.
    #[test]
    fn documents_found_together_are_not_all_thought_over_at_once() {
        let mut tenths = [0; 10];
        for second in 0..3_600_u64 {
            let part = part(1_700_000_000_000 + second * 1000, 1000);
            assert!((500..=1000).contains(&part), "{part}");
            tenths[(part - 500).min(499) as usize / 50] += 1;
        }
        assert!(
            tenths.iter().all(|count| (280..440).contains(count)),
            "{tenths:?}"
        );
        assert_eq!(part(1, 0), 0);
    }
}
