//! Reliability of a site's lists: feeds and sitemaps. Opilio reads lists, and reconsiders the documents that they name at once.
//! Lists may omit changes, and may name unchanged documents. The counts are kept with the site.

use opilio_plugin::prelude::*;

use crate::numbers;

/// Name of the value that is kept with the site.
pub(crate) const RELIABILITY: &str = "told";

/// Version of the value's format.
pub(crate) const RELIABILITY_VERSION: u32 = 2;

/// Number of unreported changes assumed before the first visit, because a site without lists reports no changes. The same
/// number of visits without a report or a change is assumed.
const UNREPORTED_PRIOR: f64 = 3.0;

/// Number of reports assumed before the first one, and the number of these that are assumed true. Most are, because a list that
/// is never trusted could not prove its reliability.
const REPORTS_PRIOR: f64 = 3.2;
const TRUE_REPORTS_PRIOR: f64 = 3.0;

/// Number of reported changes assumed before the first visit, for the usefulness of lists.
const REPORTED_PRIOR: f64 = 6.0;

/// Number of visits above which all counts are halved, because the behaviour of lists may change.
const VISITS_MAX: f64 = 1_000.0;

/// Minimum of the share of changes that lists are expected to omit, however reliable they were.
const UNREPORTED_MIN: f64 = 0.05;

/// Number of visits to a site's documents, by whether a list had named the document and whether it had changed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ListReliability {
    reported_changes: f64,
    unreported_changes: f64,
    false_reports: f64,
    quiet_visits: f64,
}

impl ListReliability {
    /// The value kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(RELIABILITY);
        let kept = kept.filter(|kept| kept.version == RELIABILITY_VERSION);
        let value = kept.map(|kept| kept.value).unwrap_or_default();
        let mut numbers = numbers::parse(&value).map(|number| f64::from(number) / 10.0);
        let mut next = || numbers.next().unwrap_or(0.0);
        Self {
            reported_changes: next(),
            unreported_changes: next(),
            false_reports: next(),
            quiet_visits: next(),
        }
    }

    pub(crate) fn encode(&self) -> String {
        let numbers = [
            self.reported_changes,
            self.unreported_changes,
            self.false_reports,
            self.quiet_visits,
        ];
        numbers::join(numbers.map(|number| (number * 10.0).round() as u32))
    }

    /// Learns from a visit.
    pub(crate) fn learn(&mut self, was_named: bool, has_changed: bool) {
        let count = match (was_named, has_changed) {
            (true, true) => &mut self.reported_changes,
            (false, true) => &mut self.unreported_changes,
            (true, false) => &mut self.false_reports,
            (false, false) => &mut self.quiet_visits,
        };
        *count += 1.0;
        if self.reported_changes + self.unreported_changes + self.false_reports + self.quiet_visits
            > VISITS_MAX
        {
            for count in [
                &mut self.reported_changes,
                &mut self.unreported_changes,
                &mut self.false_reports,
                &mut self.quiet_visits,
            ] {
                *count /= 2.0;
            }
        }
    }

    /// The share of changes that lists are expected not to report.
    pub(crate) fn unreported_share(&self) -> f64 {
        (1.0 - self.informative_share()).max(UNREPORTED_MIN)
    }

    /// Probability that a report does not indicate a change: 0 if lists are always right, 1 if they name documents regardless
    /// of changes.
    pub(crate) fn doubt(&self) -> f64 {
        let reported = self.reported_share();
        let informative = if reported > 0.0 {
            self.reported_changes * self.informative_share() / reported
        } else {
            0.0
        };
        let all = self.reported_changes + self.false_reports;
        1.0 - (informative.min(self.reported_changes) + TRUE_REPORTS_PRIOR) / (all + REPORTS_PRIOR)
    }

    /// Number of changes to expect in a document that lists have named since its last visit, in addition to those over time.
    /// The number of reports does not matter.
    pub(crate) fn expected_changes(&self) -> f64 {
        -self.doubt().ln()
    }

    /// Usefulness of a site's lists: the share of changes that they reported. It begins at 1, because a list that is never read
    /// could not prove its usefulness.
    pub(crate) fn usefulness(&self) -> f64 {
        let changes = self.reported_changes + self.unreported_changes;
        (changes * self.informative_share() + REPORTED_PRIOR) / (changes + REPORTED_PRIOR)
    }

    /// Share of changes that lists report because of the change: the share of reported changes minus the share of unchanged
    /// documents that are named too. Lists that name every document get about 0.
    fn informative_share(&self) -> f64 {
        let coincidental =
            self.false_reports / (self.false_reports + self.quiet_visits + UNREPORTED_PRIOR);
        (self.reported_share() - coincidental).max(0.0)
    }

    /// Share of changes that lists reported, for any reason.
    fn reported_share(&self) -> f64 {
        self.reported_changes / (self.reported_changes + self.unreported_changes + UNREPORTED_PRIOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(visits: &[(u32, bool, bool)]) -> ListReliability {
        let mut reliability = ListReliability::default();
        for &(times, was_named, has_changed) in visits {
            (0..times).for_each(|_| reliability.learn(was_named, has_changed));
        }
        reliability
    }

    #[test]
    fn without_lists_all_changes_are_unreported() {
        assert_eq!(ListReliability::default().unreported_share(), 1.0);
        assert_eq!(
            after(&[(50, false, true), (50, false, false)]).unreported_share(),
            1.0
        );
    }

    #[test]
    fn lists_that_report_exactly_the_changes_are_trusted() {
        let honest = after(&[(200, true, true), (5, false, false)]);
        assert!(
            honest.unreported_share() < 0.06,
            "{}",
            honest.unreported_share()
        );
        assert!(honest.doubt() < 0.03, "{}", honest.doubt());
        assert!(
            honest.expected_changes() > 3.0,
            "{}",
            honest.expected_changes()
        );
    }

    #[test]
    fn lists_that_name_every_document_are_ignored() {
        let boastful = after(&[(60, true, true), (540, true, false)]);
        assert!(
            boastful.unreported_share() > 0.9,
            "{}",
            boastful.unreported_share()
        );
        assert!(boastful.doubt() > 0.95, "{}", boastful.doubt());
        assert!(
            boastful.expected_changes() < 0.05,
            "{}",
            boastful.expected_changes()
        );
    }

    /// Documents that change between almost all visits, all of them named.
    #[test]
    fn lists_that_name_every_document_are_ignored_even_if_nearly_all_change() {
        let boastful = after(&[(200, true, true), (50, true, false)]);
        assert!(
            boastful.unreported_share() > 0.9,
            "{}",
            boastful.unreported_share()
        );
        assert!(
            boastful.expected_changes() < 0.1,
            "{}",
            boastful.expected_changes()
        );
    }

    #[test]
    fn half_of_the_reports_wrong_gives_medium_doubt() {
        let fair = after(&[(100, true, true), (100, true, false), (900, false, false)]);
        assert!(fair.unreported_share() < 0.2, "{}", fair.unreported_share());
        assert!((0.4..0.65).contains(&fair.doubt()), "{}", fair.doubt());
    }

    #[test]
    fn useful_lists_report_exactly_the_changes() {
        let useful = |visits: &[_]| after(visits).usefulness();
        assert_eq!(useful(&[]), 1.0);
        let honest = [(100, true, true), (5, false, false)];
        let boastful = [(100, true, true), (300, true, false)];
        let stale = [(100, false, true), (300, false, false)];
        assert!(useful(&honest) > 0.95, "{}", useful(&honest));
        assert!(useful(&boastful) < 0.1, "{}", useful(&boastful));
        assert!(useful(&stale) < 0.1, "{}", useful(&stale));
    }

    #[test]
    fn doubt_is_low_without_visits() {
        assert!(ListReliability::default().doubt() < 0.1);
    }

    #[test]
    fn the_kept_value_stays_short() {
        let reliability = after(&[(5_000, true, true), (5_000, false, false)]);
        assert!(reliability.encode().len() < 24, "{}", reliability.encode());
    }
}
