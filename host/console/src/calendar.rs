//! The calendar: jobs that are created and started at certain times, such as a snapshot of a whole country four times a year.
//!
//! Each occurrence creates a separate job, with the date in its name. A file stores the last handled occurrence of each entry, so
//! that none is handled twice. If occurrences were missed because no daemon ran, the last one is handled later, within a day.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr as _;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Deserializer, Serialize, de};

/// Maximum delay of a missed occurrence. After it, the occurrence is skipped: a snapshot of spring must not be made in summer.
const LATE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Maximum missed occurrences that are examined. If there are more, the last one examined counts.
const MISSED_MAX: usize = 10_000;

/// Number of occurrences whose jobs must have different names: five years of daily jobs, or more than a day of jobs each minute.
const NAMES_COMPARED: usize = 2_000;

/// An entry of the calendar: jobs that are created and started at certain times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CalendarEntry {
    /// Name of the entry.
    pub name: String,
    /// Times: minute, hour, day of the month, month, day of the week.
    #[serde(deserialize_with = "cron")]
    pub cron: Cron,
    /// The time zone of the times. Default `"UTC"`.
    #[serde(default = "utc", deserialize_with = "zone")]
    pub zone: TimeZone,
    /// Name of the profile.
    pub profile: String,
    /// Seeds in addition to those of the profile.
    #[serde(default)]
    pub seeds: Vec<String>,
    /// Names of the jobs, with `%Y`, `%m`, `%d`, `%H` and `%M` for their time.
    pub job: String,
}

/// An occurrence that is due now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Due {
    /// The occurrence.
    pub at: Timestamp,
    /// Name of the job.
    pub job: String,
}

/// The last handled occurrence of each entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandledOccurrences(BTreeMap<String, Timestamp>);

impl CalendarEntry {
    /// Returns the next occurrence after a time.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_zoned(self.zone.clone());
        let next: Zoned = self.cron.find_next_occurrence(&after, false).ok()?;
        Some(next.timestamp())
    }

    /// Returns the last occurrence after `since` and not after `now`, unless it is too old.
    pub(crate) fn due(&self, since: Timestamp, now: Timestamp) -> Option<Due> {
        let earliest = now.checked_sub(LATE_MAX).ok()?;
        let mut last = None;
        let mut after = since.max(earliest);
        for _ in 0..MISSED_MAX {
            match self.next(after) {
                Some(next) if next <= now => {
                    last = Some(next);
                    after = next;
                }
                _ => break,
            }
        }
        let at = last?;
        let job = self.job_at(at).ok()?;
        Some(Due { at, job })
    }

    fn job_at(&self, at: Timestamp) -> Result<String, jiff::Error> {
        let time = at.to_zoned(self.zone.clone());
        jiff::fmt::strtime::format(&self.job, &time)
    }

    /// Returns the name of the entry's first job from the beginning of a leap year; `None` if its time never occurs.
    ///
    /// # Errors
    /// The name has a `%` with an invalid time field.
    pub(crate) fn first_name(&self) -> Result<Option<String>, jiff::Error> {
        let first = self.next(compared_from()?);
        first.map(|at| self.job_at(at)).transpose()
    }

    /// Returns a name that two of its jobs would have. The same years are always compared, so that a valid configuration stays
    /// valid.
    ///
    /// # Errors
    /// The name has a `%` with an invalid time field.
    pub(crate) fn repeated_name(&self) -> Result<Option<String>, jiff::Error> {
        let mut names = BTreeSet::new();
        let mut after = compared_from()?;
        for _ in 0..NAMES_COMPARED {
            let Some(next) = self.next(after) else {
                break;
            };
            after = next;
            let name = self.job_at(after)?;
            if names.contains(&name) {
                return Ok(Some(name));
            }
            names.insert(name);
        }
        Ok(None)
    }
}

/// The beginning of a leap year.
fn compared_from() -> Result<Timestamp, jiff::Error> {
    let from = jiff::civil::date(2024, 1, 1).to_zoned(TimeZone::UTC)?;
    Ok(from.timestamp())
}

impl HandledOccurrences {
    pub(crate) fn read(file: &Path) -> io::Result<HandledOccurrences> {
        match fs::read(file) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                Ok(HandledOccurrences::default())
            }
            Err(problem) => Err(problem),
        }
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        crate::own_file::write(file, &serde_json::to_vec_pretty(self)?)
    }

    /// Returns the time of the last handled occurrence of an entry. For a new entry it is `now`, so that no occurrence was missed.
    pub(crate) fn since(&mut self, entry: &str, now: Timestamp) -> Timestamp {
        *self.0.entry(entry.to_owned()).or_insert(now)
    }

    pub(crate) fn done(&mut self, entry: &str, at: Timestamp) {
        self.0.insert(entry.to_owned(), at);
    }
}

fn utc() -> TimeZone {
    TimeZone::UTC
}

fn zone<'d, D: Deserializer<'d>>(from: D) -> Result<TimeZone, D::Error> {
    let text = String::deserialize(from)?;
    TimeZone::get(&text).map_err(|_| de::Error::custom(format!("unknown time zone {text:?}")))
}

fn cron<'d, D: Deserializer<'d>>(from: D) -> Result<Cron, D::Error> {
    let text = String::deserialize(from)?;
    Cron::from_str(&text).map_err(|problem| {
        de::Error::custom(format!(
            "invalid cron expression {text:?}: {problem}; an example is \"0 3 1 1,4,7,10 *\" for three o'clock on the first day of each quarter"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cron: &str, zone: &str) -> CalendarEntry {
        let text = format!(
            "name = \"n\"\ncron = \"{cron}\"\nzone = \"{zone}\"\nprofile = \"p\"\njob = \"dk-%Y-%m-%d\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn occurrences_are_in_the_time_zone_of_the_entry() {
        let entry = entry("0 3 1 1,4,7,10 *", "Europe/Copenhagen");
        let mut times = Vec::new();
        let mut after = at("2026-01-15T00:00:00Z");
        for _ in 0..4 {
            after = entry.next(after).unwrap();
            times.push(after.to_string());
        }
        assert_eq!(
            times,
            [
                "2026-04-01T01:00:00Z",
                "2026-07-01T01:00:00Z",
                "2026-10-01T01:00:00Z",
                "2027-01-01T02:00:00Z",
            ]
        );
        let due = entry.due(at("2026-06-01T00:00:00Z"), at("2026-07-01T01:00:00Z"));
        assert_eq!(due.unwrap().job, "dk-2026-07-01");
        assert_eq!(
            entry.due(at("2026-06-01T00:00:00Z"), at("2026-07-01T00:59:59Z")),
            None
        );
    }

    #[test]
    fn jobs_that_would_have_the_same_name_are_found() {
        for (cron, job, expected) in [
            ("0 3 1 1,4,7,10 *", "dk-%Y-%m", None),
            ("0 3 1 1,4,7,10 *", "dk", Some("dk")),
            ("0 3 1 1,4,7,10 *", "dk-%m", Some("dk-01")),
            ("0 3 * * *", "daily-%Y-%m-%d", None),
            ("0 3 * * *", "daily-%m-%d", Some("daily-01-01")),
            ("0 3,15 * * *", "half-%Y-%m-%d", Some("half-2024-01-01")),
            ("* * * * *", "m-%Y-%m-%d-%H-%M", None),
        ] {
            let mut entry = entry(cron, "Europe/Copenhagen");
            entry.job = job.to_owned();
            let found = entry.repeated_name().unwrap();
            assert_eq!(found.as_deref(), expected, "{cron} {job}");
        }
    }

    #[test]
    fn only_the_last_missed_occurrence_is_due_within_a_day() {
        let entry = entry("0 * * * *", "UTC");
        let due = entry.due(at("2026-06-01T00:30:00Z"), at("2026-06-01T05:10:00Z"));
        assert_eq!(due.unwrap().at, at("2026-06-01T05:00:00Z"));
        let yearly = self::entry("0 0 1 6 *", "UTC");
        assert_eq!(
            yearly.due(at("2026-05-01T00:00:00Z"), at("2026-06-02T00:00:01Z")),
            None
        );
        assert!(
            yearly
                .due(at("2026-05-01T00:00:00Z"), at("2026-06-01T20:00:00Z"))
                .is_some()
        );
    }

    #[test]
    fn a_new_entry_has_missed_no_occurrence() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("calendar.json");
        let mut seen = HandledOccurrences::read(&file).unwrap();
        let now = at("2026-06-01T00:30:00Z");
        assert_eq!(seen.since("a", now), now);
        seen.done("a", at("2026-06-01T01:00:00Z"));
        seen.write(&file).unwrap();
        let mut again = HandledOccurrences::read(&file).unwrap();
        assert_eq!(
            again.since("a", at("2027-01-01T00:00:00Z")),
            at("2026-06-01T01:00:00Z")
        );
    }
}
