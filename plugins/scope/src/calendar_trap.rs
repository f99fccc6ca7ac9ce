//! `calendar-trap`: endless calendars with a page for every month.
//!
//! A URI with a date in its path (`/2031/05/`, `/2031-05-01/`) or query (`year=2031&month=5`, `date=20310501`) is judged by
//! that date.
//! A response has a time of visit: dates too far after it are part of the trap. In the stack `pre-extract`, the links of such
//! pages are not followed, so a calendar ends within about a year. Candidates have no time of visit; the settings `first-year`
//! and `last-year` limit them.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::parts::Parts;

/// Decides on URIs with dates outside the limits.
pub struct CalendarTrap {
    settings: Settings,
    decisions: Decisions,
}

/// Settings of `calendar-trap`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Longest time from the day of the visit to a later date. Applies at stages that have a response.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub ahead: Period,
    /// Longest time from an earlier date to the day of the visit. Left out: no limit, because newspaper archives reach back
    /// centuries.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub behind: Option<Period>,
    /// First year that a date may have, at any stage. Left out: no limit.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub first_year: Option<u16>,
    /// Last year that a date may have. At the stage scope only this setting ends a calendar. Write the year after the crawl's
    /// last year.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub last_year: Option<u16>,
    /// The decision on URIs with a date outside these limits.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on URIs with a date within the limits. URIs without a date get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ahead: Period::seconds(366 * 86_400),
            behind: None,
            first_year: None,
            last_year: None,
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for CalendarTrap {
    const NAME: &'static str = "calendar-trap";
    const SUMMARY: &'static str =
        "Rejects URIs with dates far from today, such as those of endless calendars.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        if let (Some(first), Some(last)) = (settings.first_year, settings.last_year)
            && first > last
        {
            let problem = format!("{last} is before first-year; no date would match");
            return Err(vec![SettingsFault::new("/last-year", problem)]);
        }
        let decisions = Decisions {
            then: settings.then,
            otherwise: settings.otherwise,
        };
        Ok(Self {
            settings,
            decisions,
        })
    }
}

impl Filter for CalendarTrap {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find(candidate.uri(), None))
    }

    fn judge_document(&self, _: &Stage, document: &Document, visit: &Visit) -> Ruling {
        self.decisions
            .rule(self.find(&document.uri(), Some(visit.now())))
    }
}

impl CalendarTrap {
    fn find(&self, uri: &str, now: Option<u64>) -> Finding {
        let Some(date) = date_in(uri) else {
            return Finding::Unknown;
        };
        let settings = &self.settings;
        if settings.first_year.is_some_and(|year| date.year < year) {
            return Finding::matching(format!("{date} is before the first year"));
        }
        if settings.last_year.is_some_and(|year| date.year > year) {
            return Finding::matching(format!("{date} is after the last year"));
        }
        let Some(now) = now.and_then(|now| i64::try_from(now).ok()) else {
            return match settings.first_year.or(settings.last_year) {
                Some(_) => Finding::not_matching(format!("{date}")),
                None => Finding::Unknown,
            };
        };
        let at = date.days() * 86_400_000;
        let span = |period: Period| i64::try_from(period.milliseconds()).unwrap_or(i64::MAX);
        if at.saturating_sub(now) > span(settings.ahead) {
            return Finding::matching(format!("{date} is too far in the future"));
        }
        // A date without a day means the first day. The whole of its month or year is within the limit.
        if settings.behind.is_some_and(|behind| {
            now.saturating_sub(at.saturating_add(date.length_days() * 86_400_000)) > span(behind)
        }) {
            return Finding::matching(format!("{date} is too far in the past"));
        }
        Finding::not_matching(format!("{date}"))
    }
}

/// A date with the precision of the URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: u16,
    month: Option<u8>,
    day: Option<u8>,
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}", self.year)?;
        if let Some(month) = self.month {
            write!(f, "-{month:02}")?;
        }
        if let Some(day) = self.day {
            write!(f, "-{day:02}")?;
        }
        Ok(())
    }
}

impl Date {
    fn new(year: &str, month: &str, day: &str) -> Option<Self> {
        Some(Self {
            year: parse_year(year)?,
            month: Some(parse_number(month, 12)?),
            day: match day {
                "" => None,
                _ => Some(parse_number(day, 31)?),
            },
        })
    }

    /// Returns the days from 1970-01-01 to the first day of the date, in the Gregorian calendar (Hinnant, "chrono-Compatible
    /// Low-Level Date Algorithms").
    fn days(&self) -> i64 {
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        // Years from March, so that the leap day is the last.
        let year = i64::from(self.year) - i64::from(month <= 2);
        let month = (i64::from(month) + 9) % 12;
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// The most days that the date may cover: a day, month or year.
    fn length_days(&self) -> i64 {
        match (self.month, self.day) {
            (_, Some(_)) => 1,
            (Some(_), None) => 31,
            (None, None) => 366,
        }
    }
}

/// Parses a year of four digits, from 1600 on. Newspaper archives reach back centuries.
fn parse_year(text: &str) -> Option<u16> {
    let year = text.parse().ok().filter(|_| has_digits(text, 4, 4))?;
    (1600..=9999).contains(&year).then_some(year)
}

/// Parses a month or day of one or two digits, from 1 to `max`.
fn parse_number(text: &str, max: u8) -> Option<u8> {
    let number = text.parse().ok().filter(|_| has_digits(text, 1, 2))?;
    (1..=max).contains(&number).then_some(number)
}

/// Returns true if the text consists of `min` to `max` digits.
fn has_digits(text: &str, min: usize, max: usize) -> bool {
    (min..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the first date in a URI. The query is read before the path, because it names the requested date.
fn date_in(uri: &str) -> Option<Date> {
    let parts = Parts::of(uri);
    date_in_query(&parts).or_else(|| date_in_path(parts.path))
}

/// Finds a date such as `/2031/05/`, `/2031/5/17/`, `/2031-05/` or `/2031-05-17`.
fn date_in_path(path: &str) -> Option<Date> {
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        if let Some(date) = parse_hyphenated(segment) {
            return Some(date);
        }
        if has_digits(segment, 4, 4) {
            let mut rest = segments.clone();
            let month = rest.next().unwrap_or_default();
            let day = rest.next().filter(|day| parse_number(day, 31).is_some());
            if let Some(date) = Date::new(segment, month, day.unwrap_or_default()) {
                return Some(date);
            }
        }
    }
    None
}

/// Parses `2031-05` or `2031-05-17`. A time of day may follow after a T.
fn parse_hyphenated(text: &str) -> Option<Date> {
    let text = text.split(['T', 't']).next()?;
    let mut parts = text.split('-');
    let (year, month) = (parts.next()?, parts.next()?);
    let day = parts.next().unwrap_or_default();
    // A month of one digit is more likely part of a number or a range.
    let whole = parts.next().is_none() && month.len() == 2 && (day.is_empty() || day.len() == 2);
    Date::new(year, month, day).filter(|_| whole)
}

/// Parses `20310517` or `203105`.
fn parse_compact(text: &str) -> Option<Date> {
    match text.len() {
        8 if text.is_ascii() => Date::new(&text[..4], &text[4..6], &text[6..]),
        6 if text.is_ascii() => Date::new(&text[..4], &text[4..], ""),
        _ => None,
    }
}

/// Names of query keys, in the languages of the most common calendars.
const YEARS: [&str; 8] = ["year", "yr", "y", "jahr", "annee", "ano", "anno", "ar"];
const MONTHS: [&str; 8] = [
    "month", "mon", "m", "monat", "mois", "mes", "mese", "manudur",
];
/// Parts of the names of query keys whose values are whole dates.
const DATES: [&str; 9] = [
    "date", "day", "month", "cal", "datum", "tag", "jour", "dia", "week",
];

/// Finds a date such as `year=2031&month=5`, `date=2031-05-17` or `cal_month=203105`.
fn date_in_query(parts: &Parts<'_>) -> Option<Date> {
    let (mut year, mut month) = (None, None);
    for (name, value) in parts.pairs() {
        let name = name.to_ascii_lowercase();
        if YEARS.contains(&name.as_str()) {
            year = year.or_else(|| parse_year(value));
        } else if MONTHS.contains(&name.as_str()) && has_digits(value, 1, 2) {
            month = month.or_else(|| parse_number(value, 12));
        } else if DATES.iter().any(|word| name.contains(word)) {
            let date = parse_hyphenated(value).or_else(|| parse_compact(value));
            if date.is_some() {
                return date;
            }
        }
    }
    let year = year?;
    Some(Date {
        year,
        month,
        day: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, date: &str) {
        let uri = format!("http://e.org{uri}");
        let found = date_in(&uri).map(|date| date.to_string());
        assert_eq!(found.unwrap_or_default(), date);
    }

    #[test]
    fn dates_are_found() {
        check("/2031/05/", "2031-05");
        check("/events/2031/5/17/concert", "2031-05-17");
        check("/2031-05", "2031-05");
        check("/calendar/2031-05-17/", "2031-05-17");
        check("/c?date=2031-05-17", "2031-05-17");
        check("/c?tribe-bar-date=2031-05", "2031-05");
        check("/c?startDate=2031-05-17T08:00", "2031-05-17");
        check("/c?day=20310517", "2031-05-17");
        check("/c?month=203105", "2031-05");
        check("/c?year=2031&month=5", "2031-05");
        check("/c?month=5&y=2031", "2031-05");
        check("/c?jahr=2031", "2031");
        check("/2014/05/?date=2031-05-17", "2031-05-17");
    }

    #[test]
    fn other_numbers_are_not_dates() {
        for uri in [
            "/",
            "/2031",
            "/2031/",
            "/2031/report.html",
            "/2031/13/",
            "/1234/05/",
            "/20310517",
            "/rfc2031-05a",
            "/2031-5",
            "/a-2031-05",
            "/c?id=20310517",
            "/c?date=99999999",
            "/c?month=5",
            "/c?update=1",
        ] {
            check(uri, "");
        }
    }

    #[test]
    fn days_are_counted_from_1970() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((2000, 3, 1), 11_017),
            ((2000, 2, 29), 11_016),
            ((2026, 11, 22), 20_779),
            ((1900, 3, 1), -25_508),
            ((1600, 1, 1), -135_140),
        ] {
            let (year, month, day) = date;
            let date = Date {
                year,
                month: Some(month),
                day: Some(day),
            };
            assert_eq!(date.days(), days, "{date}");
        }
    }
}
