//! How far the lists of a site tell of its changes: feeds and sitemaps, read by the host, which has what they name considered at
//! once. Lists may be silent about changes, and name what has not changed. Kept with the site.

use opilio_plugin::prelude::*;

use crate::numbers;

/// Under this name it is kept with the site.
pub(crate) const TOLD: &str = "told";

/// Of its form.
pub(crate) const TOLD_VERSION: u32 = 2;

/// Changes that count against lists before any is seen: a site without lists has none that tell. As many visits without
/// either count for them.
const UNTOLD: f64 = 3.0;

/// Names that count for lists before anything is known of them, and how many of these are taken for true: who is never
/// believed could never show that it was right.
const NAMED: f64 = 3.2;
const NAMED_RIGHTLY: f64 = 3.0;

/// Changes of which lists are taken to have told before any is known.
const GOOD: f64 = 6.0;

/// Visits beyond which all counts are halved, so that lists may begin to tell, or to lie.
const SEEN_MAX: f64 = 1_000.0;

/// However well lists have told, this share of the changes is looked for all the same.
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
    /// What is kept for the site of a visit.
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

    /// Takes note of a visit.
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

    /// The share of the changes of which no list will tell.
    pub(crate) fn untold(&self) -> f64 {
        (1.0 - self.telling()).max(UNTOLD_MIN)
    }

    /// How sure it is, after a list has named a document, that it has not changed because of that: 0 where lists are always
    /// right, 1 where they name anything.
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

    /// What it means that lists have named a document since its last visit, as changes that are to be expected besides those
    /// that time brings. However often they did: they are learned about by visits.
    pub(crate) fn news(&self) -> f64 {
        -self.doubt().ln()
    }

    /// What a site's lists are good for: the share of the changes of which they told. They are thought well of before anything is
    /// known: who is never read could never show what it is good for.
    pub(crate) fn usefulness(&self) -> f64 {
        let changes = self.told + self.untold;
        (changes * self.telling() + GOOD) / (changes + GOOD)
    }

    /// The share of the changes of which lists tell because there was a change, at the least: who names everything tells nothing,
    /// and where nearly everything is named, little is known of what would not be.
    fn telling(&self) -> f64 {
        let idly = self.named_idly / (self.named_idly + self.quiet + UNTOLD);
        (self.named_changed() - idly).max(0.0)
    }

    /// The share of the changes that were named, for whatever reason.
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

    /// Documents that change between nearly all visits, all of them named.
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
