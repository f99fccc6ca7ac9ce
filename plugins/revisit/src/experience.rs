//! Knowledge about a document at a visit, for evaluators that estimate rates: the results of its visits, kept with the URI, and
//! the usual rates of its neighbourhood. Opilio provides the sums over the documents with the same host, folder, media type,
//! depth and presence of `Last-Modified`.

use opilio_plugin::PastVisit;
use opilio_plugin::prelude::*;

use crate::rate::{Evidence, UsualRate};

/// Name of the evidence that is kept with the URI.
pub(crate) const EVIDENCE: &str = "evidence";

/// Version of the value's format.
pub(crate) const EVIDENCE_VERSION: u32 = 1;

/// A day in milliseconds.
pub(crate) const DAY: f64 = 86_400_000.0;

/// Rate of a document if nothing is known about it and its neighbourhood: a change a month, with the weight of ten observed
/// days.
const DEFAULT_RATE: UsualRate = UsualRate {
    changes: 1.0 / 3.0,
    days: 10.0,
};

/// Weight of the site's rate in the rate of a smaller group of documents, as a number of changes.
const GROUP_CHANGES: f64 = 3.0;

/// Weight of depth and the presence of `Last-Modified`. Folder and type already give most of this information.
const OVERLAP_WEIGHT: f64 = 0.5;

/// Largest factor that corrects the number of changes for those missed because several fell between two visits.
const MISSED_MAX: f64 = 3.0;

/// The interval from the previous visit to the current one, if their contents were compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// Time of the previous visit, in milliseconds since 1970.
    pub(crate) from: u64,
    /// Time of the current visit, in milliseconds since 1970.
    pub(crate) to: u64,
    pub(crate) has_changed: bool,
}

/// Returns `true` if this is a visit. Otherwise it is a reconsideration.
pub(crate) fn is_visit(visit: &Visit) -> bool {
    visit.status() != 0
}

/// Time of the last visit, in milliseconds since 1970. The current visit counts.
pub(crate) fn last_visit(visit: &Visit) -> u64 {
    if is_visit(visit) {
        return visit.now();
    }
    let last = visit.history().into_iter().find(|past| past.status > 0);
    last.map_or(visit.now(), |past| past.at)
}

/// The interval before this visit. `None` at the first visit, or if the content state is unknown.
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

/// Results of earlier visits: the kept evidence. If it is missing or invalid, the host's history.
pub(crate) fn evidence(visit: &Visit, memory: f64) -> Evidence {
    let kept = visit.attribute(EVIDENCE);
    let kept = kept.filter(|kept| kept.version == EVIDENCE_VERSION);
    if let Some(evidence) = kept.and_then(|kept| Evidence::decode(&kept.value)) {
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

/// Time from a visit to a reconsideration, in milliseconds: between half of `longest` and `longest`, derived from the time of
/// the visit. The range spreads the reconsiderations of documents that were found together, because prices react to demand.
pub(crate) fn reconsideration_delay(visited: u64, longest: u64) -> u64 {
    longest - mix_bits(visited) % (longest / 2 + 1)
}

/// Mixes the bits of a number, so that each depends on all bits of the argument: the finaliser of splitmix64.
pub(crate) fn mix_bits(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Days from one time to another, both in milliseconds.
pub(crate) fn days(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / DAY
}

/// Usual rate of the neighbourhood, with the weight of a number of changes.
pub(crate) fn usual_rate(visit: &Visit, weight: f64) -> UsualRate {
    UsualRate {
        changes: weight,
        days: weight / neighbourhood_rates(visit).neighbourhood,
    }
}

/// Mean rates of change, in changes of a document per day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NeighbourhoodRates {
    /// Rate on the whole site.
    pub(crate) site: f64,
    /// Rate in the document's neighbourhood.
    pub(crate) neighbourhood: f64,
    /// Mean time between two visits of a document of the site, in days, if known.
    pub(crate) interval: Option<f64>,
}

/// Computes the rates from the host's sums.
pub(crate) fn neighbourhood_rates(visit: &Visit) -> NeighbourhoodRates {
    let groups = visit.neighbourhood();
    let sums = |shares: &str| {
        let group = groups.iter().find(|group| group.shares == shares);
        group.map(|group| corrected_changes(group.visits, group.changes, group.observed))
    };
    let (changes, days) = sums("host").unwrap_or_default();
    let site = (changes + DEFAULT_RATE.changes) / (days + DEFAULT_RATE.days);
    let within = |shares: &str| {
        let (changes, days) = sums(shares).unwrap_or_default();
        (changes + GROUP_CHANGES) / (days + GROUP_CHANGES / site)
    };
    let relative = |shares: &str| within(shares) / site;
    let folder_and_type = relative("path-prefix") * relative("media-type");
    let overlapping = relative("depth") * relative("last-modified");
    let neighbourhood = site * folder_and_type * overlapping.powf(OVERLAP_WEIGHT);
    let host = groups.iter().find(|group| group.shares == "host");
    let interval = host.filter(|host| host.visits > 0 && host.observed > 0);
    NeighbourhoodRates {
        site: site.clamp(1e-6, 1e4),
        neighbourhood: neighbourhood.clamp(1e-6, 1e4),
        interval: interval.map(|host| host.observed as f64 / host.visits as f64 / DAY),
    }
}

/// Changes and days of a group of documents. The changes include an estimate of those missed because several fell into one
/// interval.
fn corrected_changes(visits: u64, changes: u64, observed: u64) -> (f64, f64) {
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

    /// Documents visited within one hour, a second apart: each tenth of the range gets about a tenth of them.
    #[test]
    fn reconsiderations_of_documents_found_together_are_spread() {
        let mut tenths = [0; 10];
        for second in 0..3_600_u64 {
            let delay = reconsideration_delay(1_700_000_000_000 + second * 1000, 1000);
            assert!((500..=1000).contains(&delay), "{delay}");
            tenths[(delay - 500).min(499) as usize / 50] += 1;
        }
        assert!(
            tenths.iter().all(|count| (280..440).contains(count)),
            "{tenths:?}"
        );
        assert_eq!(reconsideration_delay(1, 0), 0);
    }
}
