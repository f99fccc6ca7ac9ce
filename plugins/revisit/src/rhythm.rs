//! Hours of the day and days of the week, in UTC, in which a site's documents change. They are learned and kept for the site,
//! because one document changes too seldom to show a rhythm. An hour is then weighted by its usual number of changes: a night
//! hour without changes counts for almost no time.

use opilio_plugin::prelude::*;

use crate::numbers;

/// Name of the value that is kept with the site.
pub(crate) const RHYTHM: &str = "rhythm";

/// Version of the value's format.
pub(crate) const RHYTHM_VERSION: u32 = 1;

/// An hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// Longest interval from which hours of the day are learned, in milliseconds.
const HOURS_INTERVAL_MAX: u64 = 12 * HOUR;

/// Longest interval from which days of the week are learned, in milliseconds.
const DAYS_INTERVAL_MAX: u64 = 72 * HOUR;

/// Number of evenly distributed changes assumed in each class. Until as many are expected, the weights hardly differ.
const EVEN_CHANGES: f64 = 6.0;

/// Largest number of expected changes in a class. Above it, the counts of the class are halved, because the rhythm may change.
const EXPECTED_MAX: f64 = 400.0;

/// Longest time in hours for which hours are weighted. In a longer time the weights average out.
const HOURS_AHEAD_MAX: u64 = 14 * 24;

/// Rhythm of a site.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rhythm {
    /// Changes seen, and changes expected if all times were equal. The classes are the 24 hours, then the 7 days from Monday.
    classes: [(f64, f64); 31],
    /// Days since 1970 that count as Sundays.
    holidays: Vec<u64>,
}

impl Rhythm {
    /// The rhythm kept for the site of a visit.
    pub(crate) fn of(visit: &Visit, holidays: &[u64]) -> Self {
        let mut rhythm = Self {
            classes: [(0.0, 0.0); 31],
            holidays: holidays.to_vec(),
        };
        let kept = visit.site_value(RHYTHM);
        if let Some(kept) = kept.filter(|kept| kept.version == RHYTHM_VERSION) {
            let mut numbers = numbers::parse(&kept.value).map(|number| f64::from(number) / 100.0);
            for (seen, expected) in &mut rhythm.classes {
                *seen = numbers.next().unwrap_or(0.0);
                *expected = numbers.next().unwrap_or(0.0);
            }
        }
        rhythm
    }

    pub(crate) fn encode(&self) -> String {
        let numbers = self
            .classes
            .iter()
            .flat_map(|&(seen, expected)| [seen, expected]);
        numbers::join(numbers.map(|number| (number * 100.0).round() as u32))
    }

    /// Learns from the interval before a visit. Returns whether the interval was short enough for that. `rate` returns the
    /// document's rate in changes a day, and is only called if needed.
    pub(crate) fn learn(
        &mut self,
        from: u64,
        to: u64,
        has_changed: bool,
        rate: impl FnOnce() -> f64,
    ) -> bool {
        let length = to.saturating_sub(from);
        if length == 0 || length > DAYS_INTERVAL_MAX {
            return false;
        }
        // A visit finds at most one change of an interval.
        let expected = 1.0 - (-rate() * length as f64 / (24.0 * HOUR as f64)).exp();
        let seen = f64::from(u8::from(has_changed));
        let mut at = from;
        while at < to {
            let end = (at / HOUR * HOUR + HOUR).min(to);
            let share = (end - at) as f64 / length as f64;
            let (hour, day) = self.classes_of(at);
            let learns_hours = length <= HOURS_INTERVAL_MAX;
            for class in [hour, day].into_iter().skip(usize::from(!learns_hours)) {
                let (sum_seen, sum_expected) = &mut self.classes[class];
                *sum_seen += share * seen;
                *sum_expected += share * expected;
                if *sum_expected > EXPECTED_MAX {
                    *sum_seen /= 2.0;
                    *sum_expected /= 2.0;
                }
            }
            at = end;
        }
        true
    }

    /// Days between two times in milliseconds, weighted by the usual number of changes.
    pub(crate) fn days(&self, from: u64, to: u64) -> f64 {
        if to.saturating_sub(from) > HOURS_AHEAD_MAX * HOUR {
            return (to - from) as f64 / (24.0 * HOUR as f64);
        }
        let weights = self.weights();
        let mut days = 0.0;
        let mut at = from;
        while at < to {
            let end = (at / HOUR * HOUR + HOUR).min(to);
            days += self.weight(&weights, at) * (end - at) as f64;
            at = end;
        }
        days / (24.0 * HOUR as f64)
    }

    /// Milliseconds from `from` until a number of weighted days have passed.
    pub(crate) fn until(&self, from: u64, days: f64) -> u64 {
        let mut left = days * 24.0 * HOUR as f64;
        if left > (HOURS_AHEAD_MAX * HOUR) as f64 {
            return left as u64;
        }
        let weights = self.weights();
        let mut at = from;
        let end = from + 2 * HOURS_AHEAD_MAX * HOUR;
        while at < end {
            let next = at / HOUR * HOUR + HOUR;
            let weight = self.weight(&weights, at).max(1e-3);
            let here = weight * (next - at) as f64;
            if here >= left {
                return at + (left / weight) as u64 - from;
            }
            left -= here;
            at = next;
        }
        at - from
    }

    /// Weight of each class. The weights of the hours average 1, and so do those of the days.
    fn weights(&self) -> [f64; 31] {
        let mut weights = self
            .classes
            .map(|(seen, expected)| (seen + EVEN_CHANGES) / (expected + EVEN_CHANGES));
        for kind in [0..24, 24..31] {
            let mean = weights[kind.clone()].iter().sum::<f64>() / kind.len() as f64;
            weights[kind].iter_mut().for_each(|weight| *weight /= mean);
        }
        weights
    }

    fn weight(&self, weights: &[f64; 31], at: u64) -> f64 {
        let (hour, day) = self.classes_of(at);
        weights[hour] * weights[day]
    }

    fn classes_of(&self, at: u64) -> (usize, usize) {
        let hours = at / HOUR;
        let day = hours / 24;
        // 1970 began on a Thursday.
        let weekday = match self.holidays.contains(&day) {
            true => 6,
            false => (day + 3) % 7,
        };
        ((hours % 24) as usize, 24 + weekday as usize)
    }
}

/// Days since 1970 of a date such as `2026-12-25`.
pub(crate) fn day_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let mut number = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        part.parse::<u64>().ok()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [
        31,
        28 + u64::from(is_leap),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let month = usize::try_from(month.checked_sub(1)?).ok()?;
    let is_date = year >= 1970 && (1..=*lengths.get(month)?).contains(&day);
    if !is_date || parts.next().is_some() {
        return None;
    }
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - 477;
    Some((year - 1970) * 365 + leap_days + lengths[..month].iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::{VisitFacts, visit};

    /// A site whose documents change between 6:00 and 18:00, visited every three hours.
    fn by_day() -> Rhythm {
        let mut rhythm = Rhythm::of(&visit(VisitFacts::default()), &[]);
        for interval in 0..4_000_u64 {
            let from = interval * 3 * HOUR;
            let is_day = (6..18).contains(&(from / HOUR % 24));
            rhythm.learn(from, from + 3 * HOUR, is_day, || 6.0);
        }
        rhythm
    }

    #[test]
    fn hours_without_changes_count_little() {
        let rhythm = by_day();
        let noon = 100 * 24 * HOUR + 12 * HOUR;
        let midnight = noon + 12 * HOUR;
        let (day, night) = (
            rhythm.days(noon, noon + HOUR),
            rhythm.days(midnight, midnight + HOUR),
        );
        assert!(day > 10.0 * night, "{day} {night}");
        let all = rhythm.days(noon, noon + 24 * HOUR);
        assert!((all - 1.0).abs() < 0.05, "{all}");
        let wait = rhythm.until(midnight, 1.0 / 24.0);
        assert!((4 * HOUR..9 * HOUR).contains(&wait), "{wait}");
        let there_and_back = rhythm.days(noon, noon + rhythm.until(noon, 0.7));
        assert!((there_and_back - 0.7).abs() < 1e-3, "{there_and_back}");
    }

    #[test]
    fn without_visits_all_hours_weigh_the_same() {
        let rhythm = Rhythm::of(&visit(VisitFacts::default()), &[]);
        assert!((rhythm.days(5, 5 + 7 * HOUR) - 7.0 / 24.0).abs() < 1e-6);
        assert_eq!(rhythm.until(5, 0.5), 12 * HOUR);
        assert_eq!(rhythm.until(5, 100.0), 2400 * HOUR);
    }

    #[test]
    fn a_holiday_counts_as_a_sunday() {
        let mut rhythm = Rhythm::of(
            &visit(VisitFacts::default()),
            &[day_of("2026-12-25").unwrap()],
        );
        for day in 0..200_u64 {
            let is_sunday = (day + 3) % 7 == 6;
            rhythm.learn(day * 24 * HOUR, (day + 1) * 24 * HOUR, !is_sunday, || 3.0);
        }
        let of = |date: &str| {
            let from = day_of(date).unwrap() * 24 * HOUR;
            rhythm.days(from, from + 24 * HOUR)
        };
        assert!(
            of("2026-12-24") > 3.0 * of("2026-12-27"),
            "a Thursday, a Sunday"
        );
        assert!(
            (of("2026-12-25") - of("2026-12-27")).abs() < 1e-9,
            "a Friday"
        );
    }

    #[test]
    fn dates_are_converted_to_days_since_1970() {
        for (date, day) in [
            ("1970-01-01", Some(0)),
            ("2000-03-01", Some(11_017)),
            ("2026-12-25", Some(20_812)),
            ("2023-02-29", None),
            ("2024-02-29", Some(19_782)),
            ("2026-13-01", None),
            ("26-1-1", None),
            ("2026-12-25-1", None),
        ] {
            assert_eq!(day_of(date), day, "{date}");
        }
    }
}
