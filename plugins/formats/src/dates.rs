//! Parses dates in feeds and sitemaps: RFC 3339, the W3C's profile of ISO 8601, RFC 822 and its variants.
//!
//! An unreadable date is ignored, because a wrong date would schedule a visit at the wrong time.

use opilio_plugin::DateSignal;

/// Longest date to read, in bytes.
const DATE_BYTES_MAX: usize = 80;

/// Parses a date into milliseconds since 1970. Returns `None` if the date is invalid or before 1970. A missing zone is UTC, a
/// missing time midnight, and a missing month or day the first.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.len() > DATE_BYTES_MAX || !text.is_ascii() {
        return None;
    }
    let parts = parse_iso(text).or_else(|| parse_rfc_822(text))?;
    u64::try_from(parts.milliseconds()?).ok()
}

/// Returns a signal of these dates; `None` if both are missing.
pub(crate) fn signal(published: Option<u64>, modified: Option<u64>) -> Option<DateSignal> {
    (published.is_some() || modified.is_some()).then_some(DateSignal {
        published,
        modified,
    })
}

/// The parts of a date, not validated.
#[derive(Clone, Copy, Debug)]
struct DateParts {
    year: i64,
    month: i64,
    day: i64,
    time: Time,
    /// Minutes east of UTC.
    zone: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Time {
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
}

impl DateParts {
    /// Converts to milliseconds since 1970. Returns `None` for an impossible date such as the 30th of February.
    fn milliseconds(self) -> Option<i64> {
        let Time {
            hour,
            minute,
            second,
            millisecond,
        } = self.time;
        // A leap second counts as the next second; 24:00 is the end of a day.
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute)
            || (hour, minute, second) == (24, 0, 0);
        let is_date = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=month_days(self.year, self.month)).contains(&self.day);
        if !is_date || !is_time || !(0..=60).contains(&second) || self.zone.abs() > 24 * 60 {
            return None;
        }
        let minutes = (days(self.year, self.month, self.day) * 24 + hour) * 60 + minute - self.zone;
        Some((minutes * 60 + second) * 1000 + millisecond)
    }
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that a leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Parses `2024`, `2024-02`, `2024-2-9`, `20240209`, `2024-02-09T10:20[:30[.123]][ ][Z|+01:00|+0100|+01]`.
fn parse_iso(text: &str) -> Option<DateParts> {
    let date_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '-' && c != '/')
        .unwrap_or(text.len());
    let (date, rest) = text.split_at(date_end);
    let (year, month, day) = parse_iso_date(date)?;
    let rest = rest.trim_start_matches(['T', 't', ' ']);
    let time_end = rest
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.' | ','))
        .unwrap_or(rest.len());
    let (time, zone) = rest.split_at(time_end);
    Some(DateParts {
        year,
        month,
        day,
        time: if time.is_empty() {
            Time::default()
        } else {
            parse_time(time)?
        },
        zone: match zone.trim() {
            "" => 0,
            zone => parse_zone(zone)?,
        },
    })
}

/// Parses the date into year, month and day.
fn parse_iso_date(text: &str) -> Option<(i64, i64, i64)> {
    if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some((
            number(&text[..4])?,
            number(&text[4..6])?,
            number(&text[6..])?,
        ));
    }
    let mut parts = text.split(['-', '/']);
    let year = parts.next().filter(|year| year.len() == 4)?;
    let month = parts.next().map_or(Some(1), number)?;
    let day = parts.next().map_or(Some(1), number)?;
    parts
        .next()
        .is_none()
        .then_some((number(year)?, month, day))
}

/// Parses `10:20`, `10:20:30`, `10:20:30.123456`, `102030`.
fn parse_time(text: &str) -> Option<Time> {
    if text.len() == 6 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Time {
            hour: number(&text[..2])?,
            minute: number(&text[2..4])?,
            second: number(&text[4..])?,
            millisecond: 0,
        });
    }
    let mut parts = text.splitn(3, ':');
    let hour = number(parts.next()?)?;
    let minute = number(parts.next()?)?;
    let seconds = parts.next().unwrap_or("0");
    let (second, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut thousandths = fraction.bytes().chain(*b"000");
    let mut millisecond = 0;
    for _ in 0..3 {
        millisecond = millisecond * 10 + i64::from(thousandths.next()? - b'0');
    }
    Some(Time {
        hour,
        minute,
        second: number(second)?,
        millisecond,
    })
}

/// Parses a number of one to four digits, without sign or blanks.
fn number(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 4 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Parses a zone into minutes east of UTC: `Z`, `+01:00`, `-0530`, `+1`, `GMT+2`, and the names of zones used in feeds.
fn parse_zone(text: &str) -> Option<i64> {
    /// Zones of RFC 822, and other zones that feeds use. `CST` is the zone of North America, as in RFC 822.
    const ZONES: [(&str, i64); 24] = [
        ("Z", 0),
        ("GMT", 0),
        ("UT", 0),
        ("UTC", 0),
        ("WET", 0),
        ("WEST", 60),
        ("BST", 60),
        ("CET", 60),
        ("MET", 60),
        ("CEST", 120),
        ("MEST", 120),
        ("EET", 120),
        ("EEST", 180),
        ("MSK", 180),
        ("JST", 540),
        ("EST", -300),
        ("EDT", -240),
        ("CST", -360),
        ("CDT", -300),
        ("MST", -420),
        ("MDT", -360),
        ("PST", -480),
        ("PDT", -420),
        ("HST", -600),
    ];
    let name_end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    if rest.is_empty() {
        let known = ZONES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        return known.map(|(_, minutes)| *minutes);
    }
    if !matches!(
        name.to_ascii_uppercase().as_str(),
        "" | "GMT" | "UTC" | "UT" | "Z"
    ) {
        return None;
    }
    let (sign, digits) = match rest.split_at(1) {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None if digits.len() <= 2 => (digits, "0"),
        None => return None,
    };
    let minutes = number(minutes).filter(|minutes| *minutes < 60)?;
    Some(sign * (number(hours)? * 60 + minutes))
}

/// Parses `Wed, 02 Oct 2002 13:00:00 GMT` and its variants: a day, the name of a month and a year, with or without time and zone.
/// Examples: weekdays in any language, no comma, `Sept`, two-digit years, `Oct 2, 2002 1:00 PM`, the order of `ctime`.
fn parse_rfc_822(text: &str) -> Option<DateParts> {
    let mut month = None;
    let mut numbers = Vec::new();
    let mut time = None;
    let mut zone = None;
    let mut is_afternoon = None;
    for word in text
        .split(|c: char| c.is_ascii_whitespace() || c == ',')
        .flat_map(split_dashed_date)
        .filter(|word| !word.is_empty())
    {
        if word.contains(':') && time.is_none() {
            // The zone may follow without a blank: `13:00:00+0200`, `13:00:00Z`.
            let end = word
                .find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.')
                .unwrap_or(word.len());
            let (digits, after) = word.split_at(end);
            time = Some(parse_time(digits)?);
            match is_pm(after) {
                Some(pm) => is_afternoon = Some(pm),
                None if after.is_empty() => {}
                None => zone = Some(parse_zone(after)?),
            }
        } else if let Some(number) = number(word) {
            numbers.push((number, word.len()));
        } else if let Some(named) = month_of(word).filter(|_| month.is_none()) {
            month = Some(named);
        } else if let Some(pm) = is_pm(word) {
            is_afternoon = Some(pm);
        } else if time.is_some() && zone.is_none() {
            // An unknown zone is treated as missing. The error is less than a day.
            zone = parse_zone(word);
        }
    }
    let (day, year) = match numbers.as_slice() {
        [(day, _), (year, length)] if *length != 1 && *day <= 31 => {
            (*day, full_year(*year, *length))
        }
        [(year, 4), (day, _)] => (*day, *year),
        _ => return None,
    };
    let mut time = time.unwrap_or_default();
    if let Some(is_afternoon) = is_afternoon {
        time.hour = time.hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    Some(DateParts {
        year,
        month: month?,
        day,
        time,
        zone: zone.unwrap_or_default(),
    })
}

/// Splits `02-Oct-2002` (RFC 850) into its parts. Returns any other word unchanged.
fn split_dashed_date(word: &str) -> impl Iterator<Item = &str> {
    let is_date = word.starts_with(|c: char| c.is_ascii_digit())
        && word.contains('-')
        && word.contains(|c: char| c.is_ascii_alphabetic())
        && !word.contains(':');
    let mut parts = is_date.then(|| word.split('-'));
    let mut whole = (!is_date).then_some(word);
    std::iter::from_fn(move || match &mut parts {
        Some(parts) => parts.next(),
        None => whole.take(),
    })
}

/// Returns `true` for `pm`, `false` for `am`, and `None` for other words.
fn is_pm(word: &str) -> Option<bool> {
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    if is("pm") || is("p.m.") {
        Some(true)
    } else if is("am") || is("a.m.") {
        Some(false)
    } else {
        None
    }
}

/// Returns the number of a month by its English name, or by three or more letters of its start.
fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    if word.len() < 3 {
        return None;
    }
    let at = MONTHS.iter().position(|month| month.starts_with(&word))?;
    i64::try_from(at + 1).ok()
}

/// Adds the century to a short year (RFC 2822 §4.3): 2000 to two digits below 50, 1900 to other years of two or three digits.
fn full_year(year: i64, digits: usize) -> i64 {
    match digits {
        4.. => year,
        2 if year < 50 => year + 2000,
        _ => year + 1900,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1000;
    const DAY: u64 = 24 * 60 * 60 * SECOND;
    /// 2002-10-02T13:00:00Z.
    const OCTOBER: u64 = 1_033_563_600 * SECOND;

    #[track_caller]
    fn check(text: &str, expected: u64) {
        assert_eq!(parse(text), Some(expected), "{text}");
    }

    #[test]
    fn dates_of_the_standards() {
        check("2002-10-02T13:00:00Z", OCTOBER);
        check("2002-10-02t13:00:00.25z", OCTOBER + 250);
        check("2002-10-02T15:00:00+02:00", OCTOBER);
        check("2002-10-02T13:00Z", OCTOBER);
        check("2002-10-02", OCTOBER - 13 * 3600 * SECOND);
        check("1970-02", 31 * DAY);
        check("1971", 365 * DAY);
        check("Wed, 02 Oct 2002 08:00:00 EST", OCTOBER);
        check("Wed, 02 Oct 2002 13:00:00 GMT", OCTOBER);
        check("Wed, 02 Oct 2002 15:00:00 +0200", OCTOBER);
        check("1996-12-19T16:39:57-08:00", 851_042_397 * SECOND);
        check("2016-12-31T23:59:60Z", 1_483_228_800 * SECOND);
        check("2024-02-29", 19_782 * DAY);
        check("2000-02-29", 11_016 * DAY);
    }

    #[test]
    fn usual_malformations() {
        for text in [
            " 2002-10-02 13:00:00 ",
            "2002-10-02 13:00:00 +0000",
            "2002-10-2T13:00:00",
            "2002/10/02 13:00",
            "20021002T130000Z",
            "2002-10-02T14:00:00+01",
            "Wed, 2 Oct 02 13:00 UT",
            "Wednesday, 02-Oct-02 13:00:00 GMT",
            "Wed 02 Oct 2002 13:00:00 GMT",
            "02 October 2002 13:00:00",
            "Mi, 02 Oct 2002 15:00:00 CEST",
            "Wed, 02 Oct 2002 15:00:00 GMT+0200",
            "Wed, 02 Oct 2002 15:00:00 +02:00",
            "Wed, 02 Oct 2002 13:00:00Z",
            "Wed Oct  2 13:00:00 2002",
            "Oct 2, 2002 1:00 PM",
            "Wed, 02 Oct 2002 01:00:00pm GMT",
            "Wed, 02 Oct. 2002 13:00:00 XYZ",
        ] {
            check(text, OCTOBER);
        }
        check("Thu, 01 Sept 1994 00:00:00 GMT", 778_377_600 * SECOND);
        check("1 Jan 1970 12:00 am", 0);
        check("1 Jan 49 00:00 GMT", 2_493_072_000 * SECOND);
        assert_eq!(parse("1 Jan 50 00:00 GMT"), None, "1950");
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "yesterday",
            "2002-13-01",
            "2002-02-30",
            "2023-02-29",
            "1900-02-29",
            "2002-10-02T25:00:00Z",
            "2002-10-02T13:61:00Z",
            "2002-10-02T13:00:00+99:00",
            "2002-10-02T13:00:00Mars",
            "1969-12-31",
            "0000-00-00",
            "0000-00-00T00:00:00Z",
            "32 Oct 2002",
            "Oct 2002",
            "02 Oct",
            "-1",
            "1033563600",
            "20021002130000",
            "２００２-10-02",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"2".repeat(1_000_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "[0-9:TZ+. ,/-]{0,40}|[ -~]{0,40}|\\PC{0,20}") {
            parse(&text);
        }

        #[test]
        fn days_are_counted_as_in_the_calendar(day in 0u64..200_000) {
            let (mut year, mut month, mut rest) = (1970, 1, day as i64);
            while rest >= month_days(year, month) {
                rest -= month_days(year, month);
                (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            }
            let text = format!("{year:04}-{month:02}-{:02}", rest + 1);
            prop_assert_eq!(parse(&text), Some(day * DAY));
        }
    }
}
