//! Reliability of a site's lists: feeds and sitemaps. Opilio reads them and has the documents that they name reconsidered at
//! once. Lists may omit changes, and name unchanged documents. Kept with the site.

use opilio_plugin::prelude::*;

use crate::numbers;

/// Name under which it is kept with the site.
pub(crate) const TOLD: &str = "told";

/// Version of its form.
pub(crate) const TOLD_VERSION: u32 = 2;

/// Number of unreported changes that count against lists before any is seen, because a site without lists reports none. As many
/// visits without a report or change count for them.
const UNTOLD: f64 = 3.0;

/// Number of reports assumed before any is known, and part of them assumed true. A list that is never believed could not prove
/// itself.
const NAMED: f64 = 3.2;
const NAMED_RIGHTLY: f64 = 3.0;

/// Number of reported changes assumed before any is known.
const GOOD: f64 = 6.0;

/// Number of visits past which all counts are halved, so that the behaviour of lists may change.
const SEEN_MAX: f64 = 1_000.0;

/// Least share of changes that visits look for, however well lists have reported.
const UNTOLD_MIN: f64 = 0.05;

/// Visits of a site's documents: whether a list had named them, and whether there was a change.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Told {
    told: f64,
    untold: f64,
    named_idly: f64,
    quiet: f64,
}

impl Told {
    /// The value kept for the site of a visit.
    pub(crate) fn of(visit: &Visit) -> Self {
        let kept = visit.site_value(TOLD);
        let kept = kept.filter(|kept| kept.version == TOLD_VERSION);
        let value = kept.map(|kept| kept.value).unwrap_or_default();
        let mut numbers = numbers::read(&value).map(|number| f64::from(number) / 10.0);
        let mut next = || numbers.next().unwrap_or(0.0);
        Self {
            told: next(),
            untold: next(),
            named_idly: next(),
            quiet: next(),
        }
    }

    pub(crate) fn written(&self) -> String {
        let numbers = [self.told, self.untold, self.named_idly, self.quiet];
        numbers::written(numbers.map(|number| (number * 10.0).round() as u32))
    }

    /// Learns from a visit.
    pub(crate) fn learn(&mut self, was_named: bool, has_changed: bool) {
        let count = match (was_named, has_changed) {
            (true, true) => &mut self.told,
            (false, true) => &mut self.untold,
            (true, false) => &mut self.named_idly,
            (false, false) => &mut self.quiet,
        };
        *count += 1.0;
        if self.told + self.untold + self.named_idly + self.quiet > SEEN_MAX {
            for count in [
                &mut self.told,
                &mut self.untold,
                &mut self.named_idly,
                &mut self.quiet,
            ] {
                *count /= 2.0;
            }
        }
    }

    /// The share of changes that lists will not report.
    pub(crate) fn untold(&self) -> f64 {
        (1.0 - self.telling()).max(UNTOLD_MIN)
    }

    /// Probability that a named document has not changed because of the report: 0 if lists are always right, 1 if they name
    /// anything.
    pub(crate) fn doubt(&self) -> f64 {
        let named = self.named_changed();
        let rightly = if named > 0.0 {
            self.told * self.telling() / named
        } else {
            0.0
        };
        let all = self.told + self.named_idly;
        1.0 - (rightly.min(self.told) + NAMED_RIGHTLY) / (all + NAMED)
    }

    /// Changes to expect after lists have named a document since its last visit, besides those over time. The number of reports
    /// does not matter; visits teach their reliability.
    pub(crate) fn news(&self) -> f64 {
        -self.doubt().ln()
    }

    /// Usefulness of a site's lists: the share of changes that they reported. The assumption before the first report is high,
    /// because an unread list could not prove itself.
    pub(crate) fn usefulness(&self) -> f64 {
        let changes = self.told + self.untold;
        (changes * self.telling() + GOOD) / (changes + GOOD)
    }

    /// Least share of changes that lists report because of the change. Lists that name everything report nothing. If they name
    /// almost everything, little is known about the rest.
    fn telling(&self) -> f64 {
        let idly = self.named_idly / (self.named_idly + self.quiet + UNTOLD);
        (self.named_changed() - idly).max(0.0)
    }

    /// The share of changes that were named, for any reason.
    fn named_changed(&self) -> f64 {
        self.told / (self.told + self.untold + UNTOLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(visits: &[(u32, bool, bool)]) -> Told {
        let mut told = Told::default();
        for &(times, was_named, has_changed) in visits {
            (0..times).for_each(|_| told.learn(was_named, has_changed));
        }
        told
    }

    #[test]
    fn a_site_without_lists_has_none_that_tell() {
        assert_eq!(Told::default().untold(), 1.0);
        assert_eq!(
            after(&[(50, false, true), (50, false, false)]).untold(),
            1.0
        );
    }

    #[test]
    fn lists_that_tell_of_every_change_and_nothing_else_are_believed() {
        let honest = after(&[(200, true, true), (5, false, false)]);
        assert!(honest.untold() < 0.06, "{}", honest.untold());
        assert!(honest.doubt() < 0.03, "{}", honest.doubt());
        assert!(honest.news() > 3.0, "{}", honest.news());
    }

    #[test]
    fn lists_that_name_everything_tell_nothing() {
        let boastful = after(&[(60, true, true), (540, true, false)]);
        assert!(boastful.untold() > 0.9, "{}", boastful.untold());
        assert!(boastful.doubt() > 0.95, "{}", boastful.doubt());
        assert!(boastful.news() < 0.05, "{}", boastful.news());
    }

    /// Documents that change between almost all visits, all of them named.
    #[test]
    fn lists_that_name_everything_tell_nothing_where_nearly_everything_changes() {
        let boastful = after(&[(200, true, true), (50, true, false)]);
        assert!(boastful.untold() > 0.9, "{}", boastful.untold());
        assert!(boastful.news() < 0.1, "{}", boastful.news());
    }

    #[test]
    fn lists_that_are_right_half_of_the_time_leave_a_doubt() {
        let fair = after(&[(100, true, true), (100, true, false), (900, false, false)]);
        assert!(fair.untold() < 0.2, "{}", fair.untold());
        assert!((0.4..0.65).contains(&fair.doubt()), "{}", fair.doubt());
    }

    #[test]
    fn useful_is_what_tells_of_changes_and_of_nothing_else() {
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
    fn nobody_is_doubted_before_anything_is_known() {
        assert!(Told::default().doubt() < 0.1);
    }

    #[test]
    fn what_is_written_is_short_however_many_visits_there_were() {
        let told = after(&[(5_000, true, true), (5_000, false, false)]);
        assert!(told.written().len() < 24, "{}", told.written());
    }
}
