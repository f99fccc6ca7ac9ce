//! The measures of a simulation, kept page by page: exact between events, without sampling. docs/SIMULATION.md has their
//! formulas.

use crate::process::DAY;

/// The measured time, in milliseconds since the simulation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// Sums over pages and time, weighted with the importance of each page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Weight × milliseconds in which pages existed.
    pub(crate) existing: f64,
    /// Weight × milliseconds in which the archive had the current version of existing pages.
    pub(crate) fresh: f64,
    /// Weight × milliseconds² / 2: the time since the first change that the archive does not have.
    pub(crate) age: f64,
    /// Number of changes of pages, and their weight.
    pub(crate) versions: u64,
    pub(crate) versions_weight: f64,
    /// Versions that were captured, without first versions. They count at the time of their capture: by the time of the change,
    /// those captured after the end would be missing.
    pub(crate) captured: u64,
    pub(crate) captured_weight: f64,
    /// Versions that can no longer be captured, because another version came or the page was removed. First versions do not
    /// count. They count at the time of their end.
    pub(crate) missed: u64,
    /// Milliseconds from a version's appearance to its capture, for captured versions.
    pub(crate) delay: f64,
    /// Pages that appeared, and those of which a first version was captured.
    pub(crate) born: u64,
    pub(crate) found: u64,
    /// Existing and fresh time in each part of the window, for the plot of freshness over time.
    pub(crate) parts: Vec<(f64, f64)>,
}

impl Sums {
    pub(crate) fn new(parts: usize) -> Self {
        Self {
            parts: vec![(0.0, 0.0); parts],
            ..Self::default()
        }
    }

    /// Returns the share of time in which the archive had the current versions of pages, by weight.
    pub(crate) fn freshness(&self) -> f64 {
        if self.existing > 0.0 {
            self.fresh / self.existing
        } else {
            1.0
        }
    }

    /// Returns the mean days since the first change that the archive did not have, over all pages and times.
    pub(crate) fn age(&self) -> f64 {
        self.age / self.existing.max(1.0) / DAY
    }

    /// Returns the share of versions that the archive has, by weight; none if nothing changed.
    pub(crate) fn captures(&self) -> Option<f64> {
        (self.versions_weight > 0.0).then(|| self.captured_weight / self.versions_weight)
    }

    /// Returns the mean days from a version's appearance to its capture; none if none was captured.
    pub(crate) fn delay(&self) -> Option<f64> {
        (self.captured > 0).then(|| self.delay / self.captured as f64 / DAY)
    }
}

/// The state of a page and of its copy in the archive.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Time since which the archive lacks the current version; none if it has that version.
    stale_since: Option<i64>,
    /// Time up to which the page has been counted.
    counted: i64,
    /// Time at which the current version appeared.
    changed: i64,
    /// `true` if the archive has the current version.
    has_version: bool,
    /// `true` if the current version is the first.
    is_first: bool,
}

impl Copy {
    /// Creates the state of a page that exists from `born` on and has not been visited.
    pub(crate) fn new(born: i64) -> Self {
        Self {
            stale_since: Some(born),
            counted: born,
            changed: born,
            has_version: false,
            is_first: true,
        }
    }

    /// Returns the time at which the current version appeared.
    pub(crate) fn changed_at(&self) -> i64 {
        self.changed
    }

    /// Counts the time in which the page has not changed, up to now.
    pub(crate) fn count(&mut self, now: i64, weight: f64, window: Window, sums: &mut Sums) {
        let (from, to) = (self.counted.max(window.from), now.min(window.to));
        self.counted = self.counted.max(now);
        if to <= from {
            return;
        }
        let time = (to - from) as f64;
        sums.existing += weight * time;
        match self.stale_since {
            None => sums.fresh += weight * time,
            Some(since) => {
                let (begin, end) = ((from - since) as f64, (to - since) as f64);
                sums.age += weight * 0.5 * (end * end - begin * begin);
            }
        }
        let count = sums.parts.len();
        if count == 0 {
            return;
        }
        let part = (window.to - window.from) as f64 / count as f64;
        let place = |time: i64| (time - window.from) as f64 / part;
        let last = count - 1;
        let mut index = (place(from) as usize).min(last);
        let mut at = from as f64;
        while at < to as f64 && index <= last {
            let end = if index == last {
                to as f64
            } else {
                (window.from as f64 + part * (index + 1) as f64).min(to as f64)
            };
            let (existing, fresh) = &mut sums.parts[index];
            *existing += weight * (end - at);
            if self.stale_since.is_none() {
                *fresh += weight * (end - at);
            }
            at = end;
            index += 1;
        }
    }

    /// Records a change of the page.
    pub(crate) fn change(&mut self, now: i64, weight: f64, window: Window, sums: &mut Sums) {
        self.count(now, weight, window, sums);
        self.end(now, window, sums);
        self.stale_since.get_or_insert(now);
        self.changed = now;
        self.has_version = false;
        self.is_first = false;
        if (window.from..window.to).contains(&now) {
            sums.versions += 1;
            sums.versions_weight += weight;
        }
    }

    /// Counts the end of the current version.
    pub(crate) fn end(&self, now: i64, window: Window, sums: &mut Sums) {
        let is_lost = !self.has_version && !self.is_first;
        sums.missed += u64::from(is_lost && (window.from..window.to).contains(&now));
    }

    /// Records that the archive has the current version. Returns the delay since its appearance if the archive did not have it
    /// before.
    pub(crate) fn capture(
        &mut self,
        now: i64,
        weight: f64,
        window: Window,
        sums: &mut Sums,
    ) -> Option<i64> {
        self.count(now, weight, window, sums);
        self.stale_since = None;
        if std::mem::replace(&mut self.has_version, true) {
            return None;
        }
        let delay = now - self.changed;
        let counts = (window.from..window.to).contains(&now);
        if self.is_first {
            // Pages that existed from the beginning do not count as born.
            let is_born_in_it = self.changed > window.from.max(0);
            sums.found += u64::from(counts && is_born_in_it);
        } else if counts {
            sums.captured += 1;
            sums.captured_weight += weight;
            sums.delay += delay as f64;
        }
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that exists for 100 days, changes on days 10, 20 and 60 and is visited on days 0, 30 and 50. It is fresh for 10 +
    /// 30 days, with an age that grows to 20 and to 40 days. One of three versions is captured, ten days late.
    #[test]
    fn a_page_is_measured_as_computed_by_hand() {
        let window = Window { from: 0, to: 100 };
        let mut sums = Sums::new(4);
        let mut copy = Copy::new(0);
        copy.capture(0, 1.0, window, &mut sums);
        copy.change(10, 1.0, window, &mut sums);
        copy.change(20, 1.0, window, &mut sums);
        assert_eq!(copy.capture(30, 1.0, window, &mut sums), Some(10));
        assert_eq!(copy.capture(50, 1.0, window, &mut sums), None);
        copy.change(60, 1.0, window, &mut sums);
        copy.count(100, 1.0, window, &mut sums);
        assert_eq!((sums.existing, sums.fresh), (100.0, 40.0));
        assert_eq!(sums.age, 200.0 + 800.0);
        assert_eq!((sums.versions, sums.captured, sums.found), (3, 1, 0));
        // The version of day 10 is missed; that of day 60 can still be captured.
        assert_eq!(sums.missed, 1);
        assert_eq!(sums.delay, 10.0);
        let fresh: Vec<f64> = sums.parts.iter().map(|(_, fresh)| *fresh).collect();
        assert_eq!(fresh, [10.0, 20.0, 10.0, 0.0]);
    }

    #[test]
    fn only_pages_that_appear_in_the_window_count_as_found() {
        let window = Window { from: 10, to: 100 };
        let mut sums = Sums::new(1);
        for born in [0, 5, 10, 20, 30] {
            Copy::new(born).capture(50, 1.0, window, &mut sums);
        }
        Copy::new(40).capture(100, 1.0, window, &mut sums);
        assert_eq!(sums.found, 2);
    }

    #[test]
    fn time_outside_the_window_does_not_count() {
        let window = Window { from: 50, to: 80 };
        let mut sums = Sums::new(1);
        let mut copy = Copy::new(0);
        copy.capture(0, 2.0, window, &mut sums);
        copy.change(40, 2.0, window, &mut sums);
        copy.capture(60, 2.0, window, &mut sums);
        copy.count(100, 2.0, window, &mut sums);
        assert_eq!((sums.existing, sums.fresh), (60.0, 40.0));
        // From day 50 to 60 it is 10 to 20 days old.
        assert_eq!(sums.age, 2.0 * 150.0);
        assert_eq!((sums.versions, sums.captured), (0, 1));
        assert_eq!(sums.parts, [(60.0, 40.0)]);
    }
}
