//! Knowledge about a document at a visit, for evaluators that estimate rates. It has two parts: the results of its visits, kept
//! with the URI, and the rates usual in its neighbourhood. Opilio keeps the sums of the site, folder, type, depth and dated
//! documents.

use opilio_plugin::PastVisit;
use opilio_plugin::prelude::*;

use crate::rate::{Evidence, Usual};

/// Name under which evidence is kept with the URI.
pub(crate) const EVIDENCE: &str = "evidence";

/// Version of its form.
pub(crate) const EVIDENCE_VERSION: u32 = 1;

/// A day in milliseconds.
pub(crate) const DAY: f64 = 86_400_000.0;

/// A document without any knowledge of it or its neighbourhood: a change a month, as if seen for ten days.
const NOBODY_KNOWS: Usual = Usual {
    changes: 1.0 / 3.0,
    days: 10.0,
};

/// Number of changes that a wider circle counts for beside a narrower one.
const CIRCLE: f64 = 3.0;

/// Weight of depth and the presence of `Last-Modified`. Folder and type already contain much of their information.
const OVERLAPPING: f64 = 0.5;

/// Largest factor that makes up for missed changes, when several fell between two visits.
const MISSED_MAX: f64 = 3.0;

/// The interval that the current visit ends, if the visit can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// Time of the previous visit, in milliseconds since 1970.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) has_changed: bool,
}

/// Whether this is a visit, and not a reconsideration.
pub(crate) fn is_visit(visit: &Visit) -> bool {
    visit.status() != 0
}

/// Time of the last visit, this one included.
pub(crate) fn last_visit(visit: &Visit) -> u64 {
    if is_visit(visit) {
        return visit.now();
    }
    let last = visit.history().into_iter().find(|past| past.status > 0);
    last.map_or(visit.now(), |past| past.at)
}

/// The interval before this visit. None at the first visit, or if the content state is unknown.
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

/// Results of earlier visits: the kept evidence, or else the host's history.
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

/// A time between half of `all` and `all`, different for each time of a visit. It keeps documents found together from being
/// reconsidered all at once, because prices react to demand.
pub(crate) fn part(visited: u64, all: u64) -> u64 {
    all - mixed(visited) % (all / 2 + 1)
}

/// A number whose bits each depend on all bits of the argument: the finaliser of splitmix64.
pub(crate) fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Days from one time to another.
pub(crate) fn days(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / DAY
}

/// Usual rate of the neighbourhood, weighted as if so many changes of it had been seen.
pub(crate) fn usual(visit: &Visit, weight: f64) -> Usual {
    Usual {
        changes: weight,
        days: weight / surroundings(visit).here,
    }
}

/// Changes of documents per day, on the whole site and in the document's neighbourhood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Surroundings {
    pub(crate) site: f64,
    pub(crate) here: f64,
    /// Days from one visit of a document of the site to the next, if known.
    pub(crate) interval: Option<f64>,
}

/// Reads them from the host's sums.
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

/// Changes and days of a group of documents, corrected for changes missed because several fell into one interval.
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

    /// Documents of one hour, a second apart: each tenth of the range gets its share.
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
