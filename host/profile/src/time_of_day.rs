//! Parts of the day: `22:00-06:00`, in UTC or in a zone that is written after it.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// A part of the day, which may reach over midnight.
#[derive(Debug, Clone)]
pub struct TimeOfDay {
    /// The first minute of the part, counted from midnight.
    from: u32,
    /// The first minute after the part; less than `from` if the part reaches over midnight.
    until: u32,
    zone: TimeZone,
}

impl TimeOfDay {
    /// Parses a part of the day.
    ///
    /// # Errors
    /// The problem with an invalid text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (times, zone) = match text.split_once(' ') {
            Some((times, zone)) => (times, zone.trim()),
            None => (text, "UTC"),
        };
        let parsed = times
            .split_once('-')
            .and_then(|(from, until)| Some((minutes(from)?, minutes(until)?)));
        let (from, until) = parsed.ok_or_else(|| "not a part of the day".to_owned())?;
        if from == until % DAY {
            return Err("begins and ends at the same time".to_owned());
        }
        let zone = TimeZone::get(zone).map_err(|_| format!("unknown time zone: {zone}"))?;
        Ok(Self { from, until, zone })
    }

    /// Returns `true` if a moment is within it.
    pub fn contains(&self, now: Timestamp) -> bool {
        let time = now.to_zoned(self.zone.clone()).time();
        // Neither is negative.
        let now =
            u32::from(time.hour().unsigned_abs()) * 60 + u32::from(time.minute().unsigned_abs());
        if self.from < self.until {
            (self.from..self.until).contains(&now)
        } else {
            now >= self.from || now < self.until
        }
    }
}

/// Parses a time into minutes. 24:00 is the end of a day.
fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let sum = hours * 60 + minutes;
    (minutes < 60 && sum <= DAY).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, now: &str, expected: bool) {
        let now: Timestamp = format!("2026-07-01T{now}Z").parse().unwrap();
        assert_eq!(TimeOfDay::parse(text).unwrap().contains(now), expected);
    }

    #[test]
    fn a_night_reaches_over_midnight() {
        check("22:00-06:00", "21:59:59", false);
        check("22:00-06:00", "22:00:00", true);
        check("22:00-06:00", "05:59:59", true);
        check("22:00-06:00", "06:00:00", false);
        check("08:00-24:00", "23:59:59", true);
        check("08:00-24:00", "07:59:59", false);
        check("00:00-00:01", "00:00:30", true);
    }

    #[test]
    fn a_zone_shifts_the_part() {
        check("22:00-06:00 UTC", "22:00:00", true);
        if TimeZone::get("Europe/Copenhagen").is_ok() {
            check("22:00-06:00 Europe/Copenhagen", "20:00:00", true);
            check("22:00-06:00 Europe/Copenhagen", "19:59:00", false);
        }
    }

    #[test]
    fn an_invalid_part_of_the_day_is_refused_with_the_reason() {
        for text in [
            "",
            "22:00",
            "22-6",
            "22:00-25:00",
            "22:60-23:00",
            "2:00-6:00",
            "a:b-c:d",
            "24:01-01:00",
        ] {
            assert_eq!(
                TimeOfDay::parse(text).unwrap_err(),
                "not a part of the day",
                "{text}"
            );
        }
        assert_eq!(
            TimeOfDay::parse("06:00-06:00").unwrap_err(),
            "begins and ends at the same time"
        );
        assert_eq!(
            TimeOfDay::parse("00:00-24:00").unwrap_err(),
            "begins and ends at the same time"
        );
        assert_eq!(
            TimeOfDay::parse("01:00-02:00 Mars/X").unwrap_err(),
            "unknown time zone: Mars/X"
        );
    }
}
