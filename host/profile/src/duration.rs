//! Durations in the form of a profile: `"2s"`, `"500ms"`, `"1h30m"`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Longest duration in a profile: a hundred years. Sums with a time of this century stay within the range of calendars.
pub const DURATION_MAX: Duration = Duration::from_secs(36_525 * 86_400);

/// Units from long to short, in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A duration as it is written in the file, or `"none"` if the setting allows it. The number 0 needs no unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DurationWritten {
    /// With units.
    Text(String),
    /// Without a unit: valid for 0 only.
    Number(i64),
}

/// Reason for which a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationProblem {
    /// A number is missing.
    Number,
    /// The number has no unit, or an unknown one.
    Unit,
    /// A fraction: use a finer unit.
    Fraction,
    /// Longer than a hundred years.
    TooLong,
}

impl DurationProblem {
    /// A fragment for the error, and a suggestion.
    pub(crate) fn explain(self, written: &str) -> (String, String) {
        match self {
            Self::Number => (
                format!("not a duration: {written}"),
                "write a number and a unit: \"500ms\", \"2s\", \"15m\", \"24h\", \"3d\", \"4w\""
                    .to_owned(),
            ),
            Self::Unit => {
                let digits: String = written.chars().filter(char::is_ascii_digit).collect();
                let digits = if digits.is_empty() {
                    "2".to_owned()
                } else {
                    digits
                };
                (
                    format!("duration without a known unit: {written}"),
                    format!("units are ms, s, m, h, d, w: \"{digits}s\""),
                )
            }
            Self::Fraction => (
                format!("duration with a fraction: {written}"),
                "write \"1h30m\" for one and a half hours".to_owned(),
            ),
            Self::TooLong => (
                format!("duration longer than a hundred years: {written}"),
                "at most \"5217w\"".to_owned(),
            ),
        }
    }
}

impl From<&str> for DurationWritten {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl JsonSchema for DurationWritten {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration with units ms, s, m, h, d, w, such as \"2s\" or \"1h30m\"; 0 needs none. Settings that may be without a limit also take \"none\".",
            "type": ["string", "integer"],
            "pattern": "^(([0-9]+(ms|s|m|h|d|w))+|0|none)$",
            "minimum": 0,
            "maximum": 0,
            "examples": ["2s"],
        })
    }
}

/// Parses a duration: one or more whole numbers, each with a unit, added up; `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, DurationProblem> {
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut milliseconds: u64 = 0;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return Err(DurationProblem::Number);
        }
        let number: u64 = rest[..digits]
            .parse()
            .map_err(|_| DurationProblem::TooLong)?;
        rest = rest[digits..].trim_start();
        if rest.starts_with(['.', ',']) {
            return Err(DurationProblem::Fraction);
        }
        let unit = rest.len() - rest.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (_, size) = UNITS
            .iter()
            .find(|(name, _)| *name == &rest[..unit])
            .ok_or(DurationProblem::Unit)?;
        rest = rest[unit..].trim_start();
        milliseconds = number
            .checked_mul(*size)
            .and_then(|term| milliseconds.checked_add(term))
            .ok_or(DurationProblem::TooLong)?;
        if rest.is_empty() {
            break;
        }
    }
    let duration = Duration::from_millis(milliseconds);
    if duration > DURATION_MAX {
        Err(DurationProblem::TooLong)
    } else {
        Ok(duration)
    }
}

/// Formats a duration in the form of a profile, in the longest unit that is exact (`"90m"`, not `"1h30m"`). Parts finer than a
/// millisecond are left out.
pub fn format_duration(duration: Duration) -> String {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    let whole = UNITS
        .iter()
        .find(|(_, size)| milliseconds.is_multiple_of(*size));
    let (name, size) = whole.unwrap_or(&("ms", 1));
    format!("{}{name}", milliseconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<u64, DurationProblem>) {
        assert_eq!(
            parse_duration(text),
            expected.map(Duration::from_millis),
            "{text:?}"
        );
    }

    #[test]
    fn units_are_read() {
        check("500ms", Ok(500));
        check("2s", Ok(2_000));
        check("15m", Ok(900_000));
        check("24h", Ok(86_400_000));
        check("3d", Ok(3 * 86_400_000));
        check("4w", Ok(2_419_200_000));
        check("1h30m", Ok(5_400_000));
        check("1 h 30 m", Ok(5_400_000));
        check("0", Ok(0));
        check("0s", Ok(0));
        check("5217w", Ok(5217 * 7 * 86_400_000));
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_reason() {
        check("", Err(DurationProblem::Number));
        check("s", Err(DurationProblem::Number));
        check("-2s", Err(DurationProblem::Number));
        check("none", Err(DurationProblem::Number));
        check("2", Err(DurationProblem::Unit));
        check("2 sec", Err(DurationProblem::Unit));
        check("2M", Err(DurationProblem::Unit));
        check("2ü", Err(DurationProblem::Unit));
        check("1.5h", Err(DurationProblem::Fraction));
        check("5219w", Err(DurationProblem::TooLong));
        check("99999999999999999999s", Err(DurationProblem::TooLong));
        check("18446744073709551615w", Err(DurationProblem::TooLong));
    }

    #[test]
    fn durations_are_formatted_as_operators_write_them() {
        let cases = [
            (0, "0s"),
            (500, "500ms"),
            (2_000, "2s"),
            (90_000, "90s"),
            (86_400_000, "1d"),
            (604_800_000, "1w"),
            (61_001, "61001ms"),
        ];
        for (milliseconds, expected) in cases {
            assert_eq!(
                format_duration(Duration::from_millis(milliseconds)),
                expected
            );
        }
    }

    proptest! {
        #[test]
        fn a_formatted_duration_parses_to_itself(milliseconds in 0u64..36_525 * 86_400_000) {
            let duration = Duration::from_millis(milliseconds);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9a-zµ. ]{0,24}") {
            let _ = parse_duration(&text);
        }
    }
}
