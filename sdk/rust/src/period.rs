//! A duration in settings.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration in settings: a string with units, largest first (`"1d"`, `"12h"`, `"1h 30m"`, `"1500ms"`), or a number of
/// seconds. Units: `w`, `d`, `h`, `m`, `s`, `ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Period(pub Duration);

/// Units with their length in milliseconds, largest first.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Period {
    /// A number of seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The duration in milliseconds, the unit of the contract.
    #[must_use]
    pub fn milliseconds(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Error for a text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPeriod(String);

impl fmt::Display for InvalidPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a duration; write it like \"1d\", \"1h 30m\" or \"1500ms\", or as a number of seconds",
            self.0
        )
    }
}

impl std::error::Error for InvalidPeriod {}

impl FromStr for Period {
    type Err = InvalidPeriod;

    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        let bad = || InvalidPeriod(text.to_owned());
        let mut rest = text.trim_ascii();
        let mut total: u64 = 0;
        let mut smallest = usize::MAX;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, tail) = tail.split_at(letters);
            let number: u64 = number.parse().map_err(|_| bad())?;
            let at = UNITS
                .iter()
                .position(|(name, _)| *name == unit)
                .ok_or_else(bad)?;
            if smallest != usize::MAX && at <= smallest {
                return Err(bad());
            }
            smallest = at;
            total = number
                .checked_mul(UNITS[at].1)
                .and_then(|ms| total.checked_add(ms))
                .ok_or_else(bad)?;
            rest = tail.trim_ascii_start();
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.milliseconds();
        let unit = UNITS
            .iter()
            .find(|(_, length)| total.is_multiple_of(*length) && total >= *length);
        match unit {
            Some((name, length)) => write!(f, "{}{name}", total / length),
            None => f.write_str("0s"),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PeriodVisitor;
        impl Visitor<'_> for PeriodVisitor {
            type Value = Period;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"1d\" or a number of seconds")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Period, E> {
                Ok(Period::seconds(seconds))
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Period, E> {
                u64::try_from(seconds)
                    .map(Period::seconds)
                    .map_err(|_| E::custom(InvalidPeriod(seconds.to_string())))
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Period, E> {
                let whole = Duration::try_from_secs_f64(seconds)
                    .map_err(|_| E::custom(InvalidPeriod(seconds.to_string())))?;
                Ok(Period(Duration::from_millis(
                    u64::try_from(whole.as_millis()).unwrap_or(u64::MAX),
                )))
            }
        }
        deserializer.deserialize_any(PeriodVisitor)
    }
}

impl JsonSchema for Period {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": r"^\s*\d+(w|d|h|m|s|ms)(\s*\d+(w|d|h|m|s|ms))*\s*$" },
                { "type": "number", "minimum": 0 },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(json: &str, milliseconds: Option<u64>) {
        let period: Option<Period> = serde_json::from_str(json).ok();
        assert_eq!(period.map(Period::milliseconds), milliseconds, "{json}");
    }

    #[test]
    fn units_add_up() {
        check("\"1d\"", Some(86_400_000));
        check("\"12h\"", Some(43_200_000));
        check("\"1500ms\"", Some(1_500));
        check("\"1h 30m\"", Some(5_400_000));
        check("\" 1w2d \"", Some(777_600_000));
        check("\"0s\"", Some(0));
    }

    #[test]
    fn numbers_are_seconds() {
        check("90", Some(90_000));
        check("1.5", Some(1_500));
        check("0", Some(0));
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for json in [
            "\"\"",
            "\"1\"",
            "\"d\"",
            "\"1x\"",
            "\"1 d\"",
            "\"30m 1h\"",
            "\"1h 1h\"",
            "\"-1h\"",
            "\"1.5h\"",
            "-1",
            "-0.5",
            "1e300",
            "true",
            "null",
            "\"99999999999999999999h\"",
            "\"18446744073709551615w\"",
        ] {
            check(json, None);
        }
    }

    #[test]
    fn display_uses_the_largest_exact_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (86_400, "1d"),
            (2_419_200, "4w"),
            (5_400, "90m"),
            (61, "61s"),
        ] {
            assert_eq!(Period::seconds(seconds).to_string(), text);
            assert_eq!(text.parse(), Ok(Period::seconds(seconds)));
        }
        assert_eq!(Period(Duration::from_millis(1_500)).to_string(), "1500ms");
    }
}
