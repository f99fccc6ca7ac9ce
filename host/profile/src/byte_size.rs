//! Sizes in the form of a profile: `"64MiB"`, `"1GB"`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Units from large to small. As in the glossary 1 KB is 1024 B, so KB and KiB are the same.
const UNITS: [(&str, &str, u64); 5] = [
    ("TiB", "TB", 1 << 40),
    ("GiB", "GB", 1 << 30),
    ("MiB", "MB", 1 << 20),
    ("KiB", "KB", 1 << 10),
    ("B", "B", 1),
];

/// Most memory that a setting may ask for. A larger value is a mistake: no machine has it.
pub(crate) const MEMORY_MAX: ByteSize = ByteSize::from_gib(256);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(u64);

/// A size as it is written in the file, or `"none"` if the setting allows it. The number 0 needs no unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SizeWritten {
    /// With a unit.
    Text(String),
    /// Without a unit: valid for 0 only.
    Number(i64),
}

/// Reason for which a text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeProblem {
    /// A whole number is missing.
    Number,
    /// The number has no unit, or an unknown one.
    Unit,
    /// A unit of bits (`Kb`): sizes are in bytes.
    Bits,
    /// More than 2^64 - 1 bytes.
    TooLarge,
}

impl ByteSize {
    /// Makes a size of this many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Makes a size of this many MiB.
    pub(crate) const fn from_mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// Makes a size of this many GiB.
    pub(crate) const fn from_gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl SizeProblem {
    /// A fragment for the error, and a suggestion.
    pub(crate) fn explain(self, written: &str) -> (String, String) {
        let digits: String = written.chars().filter(char::is_ascii_digit).collect();
        let digits = if digits.is_empty() {
            "64".to_owned()
        } else {
            digits
        };
        match self {
            Self::Number => (
                format!("not a size: {written}"),
                "write a whole number and a unit: \"16KiB\", \"64MiB\", \"1GiB\"".to_owned(),
            ),
            Self::Unit => (
                format!("size without a known unit: {written}"),
                format!("units are B, KiB, MiB, GiB, TiB: \"{digits}MiB\""),
            ),
            Self::Bits => (
                format!("size in bits: {written}"),
                format!(
                    "sizes are in bytes, with a capital B: {}",
                    written.to_uppercase()
                ),
            ),
            Self::TooLarge => (
                format!("size too large: {written}"),
                "less than \"16777216TiB\"".to_owned(),
            ),
        }
    }
}

impl From<&str> for SizeWritten {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Parses a whole number and a unit; `0` needs no unit.
impl FromStr for ByteSize {
    type Err = SizeProblem;

    fn from_str(text: &str) -> Result<Self, SizeProblem> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self(0));
        }
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return Err(SizeProblem::Number);
        }
        let number: u64 = text[..digits].parse().map_err(|_| SizeProblem::TooLarge)?;
        let unit = text[digits..].trim_start();
        if unit.starts_with(['.', ',']) {
            return Err(SizeProblem::Number);
        }
        if ["b", "Kb", "Mb", "Gb", "Tb", "kb", "mb", "gb", "tb"].contains(&unit) {
            return Err(SizeProblem::Bits);
        }
        let (_, _, size) = UNITS
            .iter()
            .find(|(long, short, _)| unit == *long || unit == *short)
            .ok_or(SizeProblem::Unit)?;
        number
            .checked_mul(*size)
            .map(Self)
            .ok_or(SizeProblem::TooLarge)
    }
}

/// Formats the size in the largest unit that is exact.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = UNITS
            .iter()
            .find(|(_, _, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        match found {
            Some((unit, _, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl JsonSchema for SizeWritten {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size with a unit: B, KiB, MiB, GiB, TiB (KB is the same as KiB), such as \"64MiB\"; 0 needs none. Settings that may be without a limit also take \"none\".",
            "type": ["string", "integer"],
            "pattern": "^([0-9]+ ?(B|[KMGT]i?B)|0|none)$",
            "minimum": 0,
            "maximum": 0,
            "examples": ["64MiB"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<u64, SizeProblem>) {
        assert_eq!(text.parse(), expected.map(ByteSize), "{text:?}");
    }

    #[test]
    fn units_are_read() {
        check("64MiB", Ok(64 << 20));
        check("64MB", Ok(64 << 20));
        check("1GB", Ok(1 << 30));
        check("1KB", Ok(1024));
        check("16 KiB", Ok(16 << 10));
        check("2TiB", Ok(2 << 40));
        check("7B", Ok(7));
        check("0", Ok(0));
    }

    #[test]
    fn an_invalid_size_is_refused_with_the_reason() {
        check("", Err(SizeProblem::Number));
        check("MiB", Err(SizeProblem::Number));
        check("-1MiB", Err(SizeProblem::Number));
        check("1.5GiB", Err(SizeProblem::Number));
        check("64", Err(SizeProblem::Unit));
        check("64M", Err(SizeProblem::Unit));
        check("64 megabytes", Err(SizeProblem::Unit));
        check("64Kb", Err(SizeProblem::Bits));
        check("64mb", Err(SizeProblem::Bits));
        check("99999999999999999999B", Err(SizeProblem::TooLarge));
        check("16777216TiB", Err(SizeProblem::TooLarge));
    }

    proptest! {
        #[test]
        fn a_formatted_size_parses_to_itself(bytes: u64) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9A-Za-zµ. ]{0,24}") {
            let _ = text.parse::<ByteSize>();
        }
    }
}
